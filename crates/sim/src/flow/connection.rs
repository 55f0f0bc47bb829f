//! Flows over a connection: both endpoints, and the application above them.

use super::counters::Frozen;
use super::endpoint::{Counts, Endpoint, ecn, packet_len, with_clock_phase};
use super::exchange::{Exchange, Next};
use super::needless::Timeouts;
use super::{Kind, Side, UNLIMITED};
use crate::alarm::Alarm;
use crate::packet::{Account, Body, Packet};
use crate::spec::Transport;
use crate::stack::header;
use crate::trace::{TraceEvent, Tracer};
use crate::world::{Event, World};
use hopline_core::{FlowId, Instant, Payload, Stream};
use hopline_transport::tcp::{DoorStats, Ports};
use hopline_transport::{Signal, connection};
use hopline_wire::ipv4::{Header, Protocol};

/// A connection between the two ends of a flow.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) app: App,
    /// By side.
    ends: [End; 2],
}

/// What uses the connection.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the connection around it is boxed")]
pub(super) enum App {
    /// The source sends; `None`: without end.
    Bulk { size: Option<u64> },
    /// The sink asks, the source answers.
    Exchange(Exchange),
}

/// An endpoint and when it will be woken.
#[derive(Debug)]
struct End {
    endpoint: Endpoint,
    alarm: Alarm,
    /// Hops over which the last segment came, as the endpoint was told.
    hops: u8,
    timeouts: Timeouts,
}

impl End {
    /// Tells the endpoint the length of the path if it has changed; only pacing wants to know.
    fn tell_path_length(&mut self, now: Instant, hops: u8) {
        if self.hops != hops && self.endpoint.is_paced() {
            self.hops = hops;
            self.endpoint.handle_signal(now, Signal::PathLength { hops });
        }
    }
}

impl App {
    /// The side that opens the connection, and in the end closes or aborts it.
    pub(super) const fn opener(&self) -> Side {
        match self {
            Self::Bulk { .. } => Side::Source,
            Self::Exchange(_) => Side::Sink,
        }
    }
}

impl Connection {
    /// The endpoints of a flow with these ports at source and sink, neither open yet.
    pub(super) fn new(over: &Transport, app: App, [source, sink]: [u16; 2], stream: &mut Stream) -> Self {
        // No two connections' clocks were started at the same moment.
        let over = with_clock_phase(*over, stream);
        let mut end = |local, remote| End {
            endpoint: Endpoint::new(&over, Ports { local, remote }, stream),
            alarm: Alarm::OFF,
            hops: 0,
            timeouts: Timeouts::default(),
        };
        Self { app, ends: [end(source, sink), end(sink, source)] }
    }

    /// The endpoint where the data come from.
    pub(super) fn source(&self) -> &Endpoint {
        &self.ends[Side::Source as usize].endpoint
    }

    /// A counter, summed over the endpoints that send data.
    pub(super) fn count(&self, of: fn(&Counts) -> u64) -> u64 {
        let senders = match self.app {
            App::Bulk { .. } => &self.ends[..1],
            App::Exchange(_) => &self.ends,
        };
        senders.iter().map(|end| of(&end.endpoint.counts())).sum()
    }

    /// A counter, summed over the endpoints that receive data.
    pub(super) fn count_received(&self, of: fn(&Counts) -> u64) -> u64 {
        let receivers = match self.app {
            App::Bulk { .. } => &self.ends[1..],
            App::Exchange(_) => &self.ends,
        };
        receivers.iter().map(|end| of(&end.endpoint.counts())).sum()
    }

    /// Time-outs of both ends that were needless. TPA counts bytes in another order, so that nothing can be said of it.
    pub(super) fn needless_timeouts(&self) -> u64 {
        let of_tcp = self.ends.iter().filter(|end| matches!(end.endpoint, Endpoint::Tcp(_)));
        of_tcp.map(|end| end.timeouts.needless()).sum()
    }

    /// What TCP-DOOR counted, at both ends.
    pub(super) fn door(&self) -> DoorStats {
        let [one, other] = &self.ends;
        one.endpoint.door() + other.endpoint.door()
    }

    /// How its two ends have waited for routes until `now`.
    pub(super) fn frozen(&self, now: Instant) -> Frozen {
        self.ends.iter().map(|end| end.endpoint.frozen(now)).fold(Frozen::default(), |sum, end| sum + end)
    }

    fn end(&mut self, side: Side) -> &mut End {
        &mut self.ends[side as usize]
    }

    /// The end at `side` is due.
    fn handle_timeout(&mut self, now: Instant, side: Side) {
        let before = self.end(side).endpoint.counts().timeouts;
        self.end(side).endpoint.handle_timeout(now);
        let counts = self.end(side).endpoint.counts();
        if counts.timeouts > before {
            let received = self.end(side.other()).endpoint.counts().bytes_received;
            self.end(side).timeouts.expire(now, counts.bytes_acked, received);
        }
    }

    /// A segment that was `made` then has come to the end at `side`.
    fn handle_packet(&mut self, now: Instant, side: Side, body: &Body, made: Instant, hops: u8) {
        let end = self.end(side);
        end.tell_path_length(now, hops);
        end.endpoint.handle_packet(now, body);
        if self.end(side.other()).timeouts.are_open() {
            let received = self.end(side).endpoint.counts().bytes_received;
            self.end(side.other()).timeouts.arrive(made, received);
        }
    }

    /// The application at `side` takes `len` bytes. Returns when it wants to be woken.
    fn take(&mut self, now: Instant, side: Side, len: u64) -> Option<Instant> {
        let App::Exchange(exchange) = &mut self.app else { return None };
        // What the segments carried that brought the data.
        let mss = self.ends[side.other() as usize].endpoint.effective_mss();
        match side {
            Side::Source => {
                if let Some(response_bytes) = exchange.server_takes(len, mss) {
                    self.send(now, Side::Source, response_bytes);
                }
                None
            }
            Side::Sink => match exchange.client_takes(now, len, mss)? {
                Next::Think(pause) => Some(now + pause),
                Next::Close => {
                    self.close(now, Side::Sink);
                    None
                }
            },
        }
    }

    /// The endpoint at `side` says something.
    fn handle_event(&mut self, now: Instant, side: Side, event: connection::Event) {
        if event == connection::Event::PeerClosed && matches!(self.app, App::Exchange(_)) {
            self.close(now, side);
        }
    }

    fn send(&mut self, now: Instant, side: Side, bytes: u64) {
        self.end(side).endpoint.send(now, bytes);
    }

    fn close(&mut self, now: Instant, side: Side) {
        self.end(side).endpoint.close(now);
    }
}

impl<T: Tracer> World<T> {
    /// Opens the connection of a flow; the data of the first message go with it.
    pub(super) fn open(&mut self, flow: u32) {
        let now = self.now;
        let Some(connection) = self.connection(flow) else { return };
        let opener = connection.app.opener();
        connection.end(opener.other()).endpoint.listen();
        connection.end(opener).endpoint.connect(now);
        match &mut connection.app {
            App::Bulk { size } => {
                let size = *size;
                connection.send(now, opener, size.unwrap_or(UNLIMITED));
                if size.is_some() {
                    connection.close(now, opener);
                }
            }
            App::Exchange(exchange) => {
                let request_bytes = exchange.ask(now);
                connection.send(now, opener, request_bytes);
            }
        }
        self.drive_endpoint(flow, opener);
    }

    /// Aborts the connection of a flow.
    pub(super) fn abort(&mut self, flow: u32) {
        let now = self.now;
        let Some(connection) = self.connection(flow) else { return };
        let opener = connection.app.opener();
        connection.end(opener).endpoint.abort(now);
        self.drive_endpoint(flow, opener);
    }

    /// A client has thought, and asks.
    pub(super) fn ask(&mut self, flow: u32) {
        let now = self.now;
        if now >= self.flows[flow as usize].stop {
            return;
        }
        let Some(connection) = self.connection(flow) else { return };
        if let App::Exchange(exchange) = &mut connection.app {
            let request_bytes = exchange.ask(now);
            connection.send(now, Side::Sink, request_bytes);
            self.drive_endpoint(flow, Side::Sink);
        }
    }

    /// A segment that was `made` then has reached the end at `side`, over so many hops.
    pub(super) fn receive_segment(&mut self, flow: u32, side: Side, body: &Body, made: Instant, hops: u8) {
        let now = self.now;
        let Some(connection) = self.connection(flow) else { return };
        connection.handle_packet(now, side, body, made, hops);
        self.drive_endpoint(flow, side);
    }

    /// The network layer tells the end at `side` of its route. Datagrams have no endpoint that could be told, and what
    /// has not begun or is over does not care.
    pub(crate) fn signal(&mut self, flow: u32, side: Side, signal: Signal) {
        let now = self.now;
        let state = &mut self.flows[flow as usize];
        if !(state.start..state.stop).contains(&now) {
            return;
        }
        let Kind::Connection(connection) = &mut state.kind else { return };
        connection.end(side).endpoint.handle_signal(now, signal);
        match signal {
            Signal::RouteLost => state.told.losses += 1,
            Signal::RouteFound => state.told.returns += 1,
            Signal::PathLength { .. } => {}
        }
        if T::ENABLED {
            let node = if side == Side::Source { state.src } else { state.dst };
            self.tracer.note(now, node, TraceEvent::Signalled { flow: FlowId(flow), signal });
        }
        self.drive_endpoint(flow, side);
    }

    /// An endpoint's wake-up is due.
    pub(crate) fn wake_endpoint(&mut self, flow: u32, side: Side) {
        let now = self.now;
        let Some(connection) = self.connection(flow) else { return };
        let end = connection.end(side);
        if end.alarm.rings(now) {
            connection.handle_timeout(now, side);
            self.drive_endpoint(flow, side);
        }
    }

    fn connection(&mut self, flow: u32) -> Option<&mut Connection> {
        match &mut self.flows[flow as usize].kind {
            Kind::Connection(connection) => Some(connection),
            Kind::Udp(_) => None,
        }
    }

    /// Drains an endpoint: segments, data for the application, events.
    fn drive_endpoint(&mut self, flow: u32, side: Side) {
        let now = self.now;
        loop {
            let Some(connection) = self.connection(flow) else { return };
            let endpoint = &mut connection.end(side).endpoint;
            if let Some(body) = endpoint.poll_transmit(now) {
                self.send_segment(flow, side, body);
            } else if let Some(data) = endpoint.recv() {
                self.hand_over(flow, side, data.len());
            } else if let Some(event) = endpoint.poll_event() {
                connection.handle_event(now, side, event);
            } else {
                break;
            }
        }
        let Kind::Connection(connection) = &mut self.flows[flow as usize].kind else { return };
        let end = connection.end(side);
        let wanted = end.endpoint.poll_timeout();
        end.alarm.set(now, wanted, &mut self.scheduler, Event::Endpoint { flow, side });
    }

    /// Hands `len` bytes to the application at `side`, unless it has stopped.
    fn hand_over(&mut self, flow: u32, side: Side, len: u64) {
        let now = self.now;
        let state = &mut self.flows[flow as usize];
        if now >= state.stop {
            return;
        }
        if side == Side::Sink {
            state.take_delivery(now, len);
        }
        let Some(connection) = self.connection(flow) else { return };
        if let Some(at) = connection.take(now, side, len) {
            self.scheduler.schedule(at, Event::Application { flow });
        }
    }

    fn send_segment(&mut self, flow: u32, side: Side, body: Body) {
        let state = &self.flows[flow as usize];
        let (from, to) = match side {
            Side::Source => (state.src, state.dst),
            Side::Sink => (state.dst, state.src),
        };
        let protocol = if let Body::Tcp(_) = body { Protocol::Tcp } else { Protocol::Udp };
        let packet = Packet {
            ip: Header { ecn: ecn(&body), ..header(from.ipv4(), to.ipv4(), protocol) },
            len_bytes: packet_len(&body) + self.extra_header_bytes,
            body,
            account: Account::Flow(FlowId(flow)),
            made: self.now,
            serial: 0,
        };
        self.send_of_flow(from, side, packet);
    }
}
