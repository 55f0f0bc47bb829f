//! The two halves of a split connection, and the data passed between them.

use super::Config;
use crate::packet::{Connection, Side};
use hopline_core::{Instant, Payload, Stream};
use hopline_transport::any::{Endpoint, Segment};
use hopline_transport::connection::{CloseReason, Event, SendError, State};
use hopline_transport::tcp::Ports;

/// Both halves.
#[derive(Debug)]
pub(super) struct Halves<P: Payload> {
    fixed: Half<P>,
    mobile: Half<P>,
    opener: Side,
    /// SYN of the connection, until the other host has answered it.
    call: Option<Segment<P>>,
    /// Reset that tells the client that the server does not answer, or refuses.
    refusal: Option<Segment<P>>,
}

/// An endpoint, and its received data that the other half has not accepted.
#[derive(Debug)]
struct Half<P: Payload> {
    endpoint: Endpoint<P>,
    /// Data read from the endpoint and not yet accepted.
    unsent: Option<P>,
    end: End,
    over: Option<CloseReason>,
}

/// State of the end of a host's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The host may send more.
    Open,
    /// The host has closed; its data are not all passed on.
    Seen,
    /// The close is passed on, too.
    PassedOn,
}

impl<P: Payload> Half<P> {
    fn new(endpoint: Endpoint<P>) -> Self {
        Self { endpoint, unsent: None, end: End::Open, over: None }
    }

    /// Returns the next data to pass on.
    fn read(&mut self) -> Option<P> {
        self.unsent.take().or_else(|| self.endpoint.recv())
    }
}

impl<P: Payload> Halves<P> {
    /// Creates the halves of a connection that the host on the side `opener` opens.
    pub(super) fn new(config: &Config, connection: Connection, opener: Side, random: &mut Stream) -> Self {
        let Connection { fixed: (_, fixed), mobile: (_, mobile) } = connection;
        // Each half uses the port of the host on the other side.
        let mut end =
            |transport, local, remote| Half::new(Endpoint::new(transport, Ports { local, remote }, random));
        let (mut fixed, mut mobile) = (end(&config.fixed, mobile, fixed), end(&config.mobile, fixed, mobile));
        match opener {
            Side::Fixed => fixed.endpoint.listen(),
            Side::Mobile => mobile.endpoint.listen(),
        }
        Self { fixed, mobile, opener, call: None, refusal: None }
    }

    fn half(&mut self, side: Side) -> &mut Half<P> {
        match side {
            Side::Fixed => &mut self.fixed,
            Side::Mobile => &mut self.mobile,
        }
    }

    /// Returns whether both halves have ended, TIME-WAIT included.
    pub(super) fn is_over(&self) -> bool {
        let over = |half: &Half<P>| {
            half.over.is_some() || matches!(half.endpoint.state(), State::Closed | State::TimeWait)
        };
        over(&self.fixed) && over(&self.mobile) && self.call.is_none()
    }

    pub(super) fn handle_packet(&mut self, now: Instant, from: Side, segment: Segment<P>) {
        if from != self.opener || self.half(from).endpoint.state() != State::Listen {
            return self.half(from).endpoint.handle_packet(now, segment);
        }
        // It is a SYN or a retransmission of it: the other host must answer first.
        if super::opens(&segment) {
            let other = self.half(from.other());
            if other.endpoint.state() == State::Closed && other.over.is_none() {
                other.endpoint.connect(now);
            }
            self.call = Some(segment);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.fixed.endpoint.handle_timeout(now);
        self.mobile.endpoint.handle_timeout(now);
    }

    pub(super) fn next_wake(&self) -> Option<Instant> {
        let [a, b] = [&self.fixed, &self.mobile].map(|half| half.endpoint.poll_timeout());
        a.into_iter().chain(b).min()
    }

    /// Aborts both halves.
    pub(super) fn abort(&mut self, now: Instant) {
        self.fixed.endpoint.abort(now);
        self.mobile.endpoint.abort(now);
    }

    /// Returns the number of retransmitted segments with data.
    pub(super) fn retransmissions(&self) -> u64 {
        [&self.fixed, &self.mobile].map(|half| half.endpoint.counts().retransmissions).iter().sum()
    }

    /// Returns the number of bytes acknowledged to one host and not yet acknowledged by the other.
    pub(super) fn held_bytes(&self) -> u64 {
        let held = |from: &Half<P>, to: &Half<P>| {
            from.endpoint.counts().bytes_received.saturating_sub(to.endpoint.counts().bytes_acked)
        };
        held(&self.fixed, &self.mobile) + held(&self.mobile, &self.fixed)
    }

    /// Lets both halves act until neither has anything more to send; segments are passed to `send`.
    pub(super) fn settle(&mut self, now: Instant, mut send: impl FnMut(Side, Segment<P>)) {
        loop {
            let mut quiet = true;
            if let Some(refusal) = self.refusal.take() {
                send(self.opener, refusal);
            }
            for side in [Side::Fixed, Side::Mobile] {
                while let Some(event) = self.half(side).endpoint.poll_event() {
                    quiet = false;
                    self.handle_event(now, side, event);
                }
                self.pass_on(now, side);
                while let Some(segment) = self.half(side).endpoint.poll_transmit(now) {
                    quiet = false;
                    send(side, segment);
                }
            }
            if quiet {
                return;
            }
        }
    }

    fn handle_event(&mut self, now: Instant, side: Side, event: Event) {
        match event {
            Event::Connected => {
                if let Some(call) = self.call.take_if(|_| side != self.opener) {
                    self.half(side.other()).endpoint.handle_packet(now, call);
                }
            }
            Event::PeerClosed => self.half(side).end = End::Seen,
            Event::Closed(reason) => {
                self.half(side).over = Some(reason);
                if reason != CloseReason::Finished {
                    self.end_of(now, side.other());
                }
            }
            // `pass_on` reads and writes after every input.
            _ => {}
        }
    }

    /// Ends the half on this side because the other one has failed.
    fn end_of(&mut self, now: Instant, side: Side) {
        match self.call.take() {
            Some(Segment::Tcp(call)) => {
                self.half(side).over = Some(CloseReason::Refused);
                self.refusal = Some(Segment::Tcp(super::reset_of(&call)));
            }
            // TPA has no refusal; the connection is accepted and aborted.
            Some(call) => {
                self.half(side).endpoint.handle_packet(now, call);
                self.half(side).endpoint.abort(now);
            }
            None => self.half(side).endpoint.abort(now),
        }
    }

    /// Passes on the data and the close from a side, as far as the other half accepts them.
    fn pass_on(&mut self, now: Instant, side: Side) {
        let (from, to) = match side {
            Side::Fixed => (&mut self.fixed, &mut self.mobile),
            Side::Mobile => (&mut self.mobile, &mut self.fixed),
        };
        // Until a half is open it accepts nothing: no data should wait for a host that may never answer.
        if !to.endpoint.state().is_synchronized() {
            return;
        }
        while let Some(data) = from.read() {
            match to.endpoint.try_send(now, data.clone()) {
                Ok(()) => {}
                Err(SendError::Full { free: 0 }) => {
                    from.unsent = Some(data);
                    return;
                }
                Err(SendError::Full { free }) => {
                    let some = free.min(data.len());
                    let _ = to.endpoint.try_send(now, data.slice(0..some));
                    from.unsent = Some(data.slice(some..data.len())).filter(|rest| !rest.is_empty());
                    return;
                }
                // The half has ended, which is reported by its own event; the data are dropped.
                Err(_) => {}
            }
        }
        if from.end == End::Seen {
            from.end = End::PassedOn;
            to.endpoint.close(now);
        }
    }
}
