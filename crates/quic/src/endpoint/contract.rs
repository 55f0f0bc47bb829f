//! The contract of all transports, by the methods of the same names.

use super::Endpoint;
use crate::stream_data::StreamData;
use hopline_core::{Duration, Instant, LinkId, StateMachine};
use hopline_transport::Signal;
use hopline_transport::connection::{CloseError, Connection, Event, OpenError, SendError, State};
use hopline_transport::quic::{self, Datagram, Stats, Timer};

impl<P: StreamData> StateMachine for Endpoint<P> {
    type Packet = Datagram;
    type Transmit = Datagram;
    type Signal = Signal;
    type Event = Event;
    type Timer = Timer;

    fn handle_packet(&mut self, now: Instant, _link: LinkId, packet: Datagram) {
        self.handle_packet(now, &packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.handle_timeout(now);
    }

    /// QUIC takes no reports of the network layer.
    fn handle_signal(&mut self, _now: Instant, _signal: Signal) {}

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        self.poll_transmit(now)
    }

    fn poll_timeout(&self) -> Option<(Instant, Timer)> {
        self.poll_timeout().map(|at| (at, Timer::Connection))
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.poll_event()
    }
}

impl<P: StreamData> Connection<P> for Endpoint<P> {
    fn connect(&mut self, now: Instant) -> Result<(), OpenError> {
        self.connect(now)
    }

    fn listen(&mut self) -> Result<(), OpenError> {
        self.listen()
    }

    fn send(&mut self, _now: Instant, data: P) -> Result<(), SendError> {
        self.send(data)
    }

    fn recv(&mut self) -> Option<P> {
        self.recv()
    }

    fn close(&mut self, _now: Instant) -> Result<(), CloseError> {
        self.close()
    }

    fn abort(&mut self, now: Instant) {
        self.abort(now);
    }

    fn state(&self) -> State {
        self.state()
    }
}

impl<P: StreamData> quic::Endpoint<P> for Endpoint<P> {
    fn cwnd(&self) -> u64 {
        self.cwnd()
    }

    fn srtt(&self) -> Option<Duration> {
        self.srtt()
    }

    fn effective_mss(&self) -> u32 {
        self.effective_mss()
    }

    fn stats(&self) -> Stats {
        self.stats()
    }
}
