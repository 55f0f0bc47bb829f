//! An endpoint and a scripted peer: common parts of the dialogues of all transports.

use crate::connection::{Connection, Event, State};
use hopline_core::{Instant, Length, LinkId, Payload, StateMachine};

/// Peer of a dialogue.
pub(crate) trait Peer {
    /// Endpoint under test.
    type Endpoint: Connection<Length>;
    /// Segment of the peer, under construction.
    type Segment;

    /// Completes a segment.
    fn complete(&self, segment: Self::Segment) -> <Self::Endpoint as StateMachine>::Packet;

    /// Describes a segment of the endpoint in words.
    fn describe(&self, segment: &<Self::Endpoint as StateMachine>::Transmit) -> String;
}

/// Endpoint at a point in time, and its peer.
pub(crate) struct Script<P: Peer> {
    pub(crate) endpoint: P::Endpoint,
    pub(crate) now: Instant,
    pub(crate) peer: P,
    /// Last segment of the endpoint.
    pub(crate) last: Option<<P::Endpoint as StateMachine>::Transmit>,
}

impl<P: Peer> Script<P> {
    /// Creates a dialogue at time 0.
    pub(crate) fn new_between(endpoint: P::Endpoint, peer: P) -> Self {
        Self { endpoint, now: Instant::ZERO, peer, last: None }
    }

    /// Delivers a segment of the peer now.
    pub(crate) fn receive(&mut self, segment: P::Segment) {
        let segment = self.peer.complete(segment);
        self.endpoint.handle_packet(self.now, LinkId::ONLY, segment);
    }

    /// Delivers a segment of the peer `ms` milliseconds after the start.
    pub(crate) fn receive_at(&mut self, ms: u64, segment: P::Segment) {
        assert_eq!(self.run_until(ms), "", "nothing is said before {ms} ms");
        self.receive(segment);
    }

    /// Returns all segments that the endpoint sends now.
    pub(crate) fn transmits(&mut self) -> String {
        let mut lines = Vec::new();
        while let Some(segment) = self.endpoint.poll_transmit(self.now) {
            lines.push(self.peer.describe(&segment));
            self.last = Some(segment);
        }
        lines.join("; ")
    }

    /// Advances time to `ms` milliseconds after the start, with its timers. Returns the segments sent, with times in
    /// milliseconds.
    pub(crate) fn run_until(&mut self, ms: u64) -> String {
        let until = Instant::from_millis(ms);
        assert!(until >= self.now, "time does not go backwards");
        let mut lines = Vec::new();
        loop {
            let said = self.transmits();
            if !said.is_empty() {
                lines.push(format!("{}: {said}", self.now.as_nanos() / 1_000_000));
            }
            match self.endpoint.poll_timeout() {
                Some((at, _)) if at <= until => {
                    self.now = self.now.max(at);
                    self.endpoint.handle_timeout(self.now);
                }
                _ => break,
            }
        }
        self.now = until;
        lines.join("; ")
    }

    pub(crate) fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.endpoint.poll_event()).collect()
    }

    pub(crate) fn state(&self) -> State {
        self.endpoint.state()
    }

    /// Reads all data. Returns the number of bytes.
    pub(crate) fn read_all(&mut self) -> u64 {
        std::iter::from_fn(|| self.endpoint.recv()).map(|data| data.len()).sum()
    }
}

/// All states of a connection.
pub(crate) const STATES: [State; 11] = [
    State::Closed,
    State::Listen,
    State::SynSent,
    State::SynReceived,
    State::Established,
    State::FinWait1,
    State::FinWait2,
    State::CloseWait,
    State::Closing,
    State::LastAck,
    State::TimeWait,
];
