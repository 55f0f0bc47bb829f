//! The two halves of a split connection, and the data passed between them.

use super::Config;
use crate::packet::{Connection, Side};
use hopline_core::{Instant, Payload, RandomStream};
use hopline_transport::any::{Endpoint, Segment};
use hopline_transport::connection::{CloseReason, Event, SendError, State};
use hopline_transport::tcp::Ports;

/// Both halves.
#[derive(Debug)]
pub(super) struct SplitConnection<P: Payload> {
    fixed: Half<P>,
    mobile: Half<P>,
    initiator: Side,
    /// SYN of the connection, until the other host has answered it.
    pending_syn: Option<Segment<P>>,
    /// Reset that tells the client that the server does not answer, or refuses.
    pending_reset: Option<Segment<P>>,
}

/// An endpoint, and its received data that the other half has not accepted.
#[derive(Debug)]
struct Half<P: Payload> {
    endpoint: Endpoint<P>,
    /// Data read from the endpoint and not yet accepted.
    unaccepted: Option<P>,
    fin_state: FinState,
    closed: Option<CloseReason>,
}

/// State of the end of a host's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FinState {
    /// The host may send more.
    Open,
    /// The host has closed; its data are not all passed on.
    Received,
    /// The close is passed on, too.
    PassedOn,
}

impl<P: Payload> Half<P> {
    fn new(endpoint: Endpoint<P>) -> Self {
        Self { endpoint, unaccepted: None, fin_state: FinState::Open, closed: None }
    }

    /// Returns the next data to pass on.
    fn read(&mut self) -> Option<P> {
        self.unaccepted.take().or_else(|| self.endpoint.recv())
    }
}

impl<P: Payload> SplitConnection<P> {
    /// Creates the halves of a connection that the host on the side `initiator` opens.
    pub(super) fn new(
        config: &Config,
        connection: Connection,
        initiator: Side,
        random: &mut RandomStream,
    ) -> Self {
        let Connection { fixed: (_, fixed), mobile: (_, mobile) } = connection;
        // Each half uses the port of the host on the other side.
        let mut end =
            |transport, local, remote| Half::new(Endpoint::new(transport, Ports { local, remote }, random));
        let (mut fixed, mut mobile) = (end(&config.fixed, mobile, fixed), end(&config.mobile, fixed, mobile));
        match initiator {
            Side::Fixed => fixed.endpoint.listen(),
            Side::Mobile => mobile.endpoint.listen(),
        }
        Self { fixed, mobile, initiator, pending_syn: None, pending_reset: None }
    }

    fn half(&mut self, side: Side) -> &mut Half<P> {
        match side {
            Side::Fixed => &mut self.fixed,
            Side::Mobile => &mut self.mobile,
        }
    }

    /// Returns whether both halves have ended, TIME-WAIT included.
    pub(super) fn is_closed(&self) -> bool {
        let over = |half: &Half<P>| {
            half.closed.is_some() || matches!(half.endpoint.state(), State::Closed | State::TimeWait)
        };
        over(&self.fixed) && over(&self.mobile) && self.pending_syn.is_none()
    }

    pub(super) fn handle_packet(&mut self, now: Instant, from: Side, segment: Segment<P>) {
        if from != self.initiator || self.half(from).endpoint.state() != State::Listen {
            return self.half(from).endpoint.handle_packet(now, segment);
        }
        // It is a SYN or a retransmission of it: the other host must answer first.
        if super::is_connection_request(&segment) {
            let other = self.half(from.other());
            if other.endpoint.state() == State::Closed && other.closed.is_none() {
                other.endpoint.connect(now);
            }
            self.pending_syn = Some(segment);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.fixed.endpoint.handle_timeout(now);
        self.mobile.endpoint.handle_timeout(now);
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
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
        [&self.fixed, &self.mobile].map(|half| half.endpoint.stats().retransmissions).iter().sum()
    }

    /// Returns the number of bytes acknowledged to one host and not yet acknowledged by the other.
    pub(super) fn buffered_bytes(&self) -> u64 {
        let held = |from: &Half<P>, to: &Half<P>| {
            from.endpoint.stats().bytes_received.saturating_sub(to.endpoint.stats().bytes_acked)
        };
        held(&self.fixed, &self.mobile) + held(&self.mobile, &self.fixed)
    }

    /// Lets both halves act until neither has anything more to send; segments are passed to `send`.
    pub(super) fn process(&mut self, now: Instant, mut send: impl FnMut(Side, Segment<P>)) {
        loop {
            let mut quiet = true;
            if let Some(refusal) = self.pending_reset.take() {
                send(self.initiator, refusal);
            }
            for side in [Side::Fixed, Side::Mobile] {
                while let Some(event) = self.half(side).endpoint.poll_event() {
                    quiet = false;
                    self.handle_event(now, side, event);
                }
                self.relay_data(now, side);
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
                if let Some(call) = self.pending_syn.take_if(|_| side != self.initiator) {
                    self.half(side.other()).endpoint.handle_packet(now, call);
                }
            }
            Event::PeerClosed => self.half(side).fin_state = FinState::Received,
            Event::Closed(reason) => {
                self.half(side).closed = Some(reason);
                if reason != CloseReason::Finished {
                    self.close_half(now, side.other());
                }
            }
            // `relay_data` reads and writes after every input.
            _ => {}
        }
    }

    /// Ends the half on this side because the other one has failed.
    fn close_half(&mut self, now: Instant, side: Side) {
        match self.pending_syn.take() {
            Some(Segment::Tcp(call)) => {
                self.half(side).closed = Some(CloseReason::Refused);
                self.pending_reset = Some(Segment::Tcp(super::reset_for(&call)));
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
    fn relay_data(&mut self, now: Instant, side: Side) {
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
                    from.unaccepted = Some(data);
                    return;
                }
                Err(SendError::Full { free }) => {
                    let some = free.min(data.len());
                    let _ = to.endpoint.try_send(now, data.slice(0..some));
                    from.unaccepted = Some(data.slice(some..data.len())).filter(|rest| !rest.is_empty());
                    return;
                }
                // The half has ended, which is reported by its own event; the data are dropped.
                Err(_) => {}
            }
        }
        if from.fin_state == FinState::Received {
            from.fin_state = FinState::PassedOn;
            to.endpoint.close(now);
        }
    }
}
