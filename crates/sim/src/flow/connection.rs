//! Flows over a connection: both endpoints, and the application above them.

use super::exchange::{Exchange, Next};
use super::needless::Timeouts;
use super::recording::Recording;
use super::{Does, Flow, Flows, Kind, Outgoing, Side, UNLIMITED};
use crate::alarm::Alarm;
use crate::event::Event;
use crate::kernel::Kernel;
use crate::own::{Culprit, OwnLaw, OwnLawId};
use crate::packet::{Account, Body, header};
use crate::spec::Transport;
use crate::trace::{TraceEvent, Tracer};
use hopline_core::{Instant, Length, Payload, Stream};
use hopline_transport::any::{Counts, Endpoint, Frozen, Segment};
use hopline_transport::tcp::{DoorStats, Ports};
use hopline_transport::{Signal, connection};
use hopline_wire::ipv4::{HEADER_LEN, Header};

/// A connection between the two ends of a flow.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) app: App,
    /// The two ends, by side.
    ends: [End; 2],
}

/// Application that uses the connection.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the connection around it is boxed")]
pub(super) enum App {
    /// The source sends; `None`: without end.
    Bulk { size: Option<u64> },
    /// The sink asks, the source answers.
    Exchange(Exchange),
    /// The source sends what was recorded when it was.
    Recorded(Recording),
}

/// An endpoint and when it will be woken.
#[derive(Debug)]
struct End {
    endpoint: Endpoint<Length>,
    /// Its congestion control algorithm, if that is user-defined.
    law: Option<OwnLawId>,
    alarm: Alarm,
    /// Number of hops over which the last segment came, as reported to the endpoint.
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
    /// Returns the side that opens the connection, and in the end closes or aborts it.
    pub(super) const fn opener(&self) -> Side {
        match self {
            Self::Bulk { .. } | Self::Recorded(_) => Side::Source,
            Self::Exchange(_) => Side::Sink,
        }
    }
}

impl Connection {
    /// Creates the endpoints of a flow with these ports at source and sink, neither open yet.
    pub(super) fn new(
        over: [&Transport; 2],
        app: App,
        [source, sink]: [u16; 2],
        stream: &mut Stream,
        law: impl Fn(OwnLawId) -> Box<dyn OwnLaw>,
    ) -> Self {
        // No two connections' clocks were started at the same moment.
        let at_sink = over[1].with_clock_phase(&mut stream.clone());
        let at_source = over[0].with_clock_phase(stream);
        let mut end = |over: &Transport, local, remote| End {
            endpoint: Endpoint::with_laws(over, Ports { local, remote }, stream, &law),
            law: over.own_law(),
            alarm: Alarm::OFF,
            hops: 0,
            timeouts: Timeouts::default(),
        };
        Self { app, ends: [end(&at_source, source, sink), end(&at_sink, sink, source)] }
    }

    /// Returns the endpoint where the data come from.
    pub(super) fn source(&self) -> &Endpoint<Length> {
        &self.ends[Side::Source as usize].endpoint
    }

    /// Returns a counter, summed over the endpoints that send data.
    pub(super) fn count(&self, of: fn(&Counts) -> u64) -> u64 {
        let senders = match self.app {
            App::Bulk { .. } | App::Recorded(_) => &self.ends[..1],
            App::Exchange(_) => &self.ends,
        };
        senders.iter().map(|end| of(&end.endpoint.counts())).sum()
    }

    /// Segments with data that came to the end at `side` and held nothing new.
    pub(super) fn repeats_at(&self, side: Side) -> u64 {
        self.ends[side as usize].endpoint.counts().duplicates_received
    }

    /// Restarts the counting of time-outs: earlier ones are not judged.
    pub(super) fn forget_timeouts(&mut self) {
        self.ends.iter_mut().for_each(|end| end.timeouts.forget_open());
    }

    /// Segments of data that were sent, each once.
    pub(super) fn distinct_segments_sent(&self) -> u64 {
        self.count(|stats| stats.segments_sent).saturating_sub(self.count(|stats| stats.retransmissions))
    }

    /// Returns the number of spurious time-outs of both ends. TPA counts bytes in another order, so that
    /// nothing can be said of it.
    pub(super) fn needless_timeouts(&self) -> u64 {
        let counted = self.ends.iter().filter(|end| end.endpoint.counts_in_order());
        counted.map(|end| end.timeouts.needless()).sum()
    }

    /// Returns the TCP-DOOR counters of both ends.
    pub(super) fn door(&self) -> DoorStats {
        let [one, other] = &self.ends;
        one.endpoint.door() + other.endpoint.door()
    }

    /// Returns the time that its two ends have spent waiting for routes until `now`.
    pub(super) fn frozen(&self, now: Instant) -> Frozen {
        self.ends.iter().map(|end| end.endpoint.frozen(now)).fold(Frozen::default(), |sum, end| sum + end)
    }

    fn end(&mut self, side: Side) -> &mut End {
        &mut self.ends[side as usize]
    }

    /// Handles the timer of the end at `side`.
    fn handle_timeout(&mut self, now: Instant, side: Side) {
        let before = self.end(side).endpoint.counts().timeouts;
        self.end(side).endpoint.handle_timeout(now);
        let counts = self.end(side).endpoint.counts();
        if counts.timeouts > before {
            let received = self.end(side.other()).endpoint.counts().bytes_received;
            self.end(side).timeouts.expire(now, counts.bytes_acked, received);
        }
    }

    /// Records that a segment that was `made` then has come to the end at `side`.
    pub(super) fn handle_packet(
        &mut self,
        now: Instant,
        side: Side,
        segment: Segment<Length>,
        made: Instant,
        hops: u8,
    ) {
        let end = self.end(side);
        end.tell_path_length(now, hops);
        end.endpoint.handle_packet(now, segment);
        if self.end(side.other()).timeouts.are_open() {
            let received = self.end(side).endpoint.counts().bytes_received;
            self.end(side.other()).timeouts.arrive(made, received);
        }
    }

    /// Hands `len` bytes to the application at `side`. Returns when it wants to be woken.
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

    /// Handles an event of the endpoint at `side`.
    fn handle_event(&mut self, now: Instant, side: Side, event: connection::Event) {
        if event == connection::Event::PeerClosed && matches!(self.app, App::Exchange(_)) {
            self.close(now, side);
        }
    }

    fn send(&mut self, now: Instant, side: Side, bytes: u64) {
        self.end(side).endpoint.send(now, Length(bytes));
    }

    fn close(&mut self, now: Instant, side: Side) {
        self.end(side).endpoint.close(now);
    }

    /// Sends the packets of a recording that are due, and closes after the last of them. Returns when more
    /// are due.
    fn play(&mut self, now: Instant) -> Option<Instant> {
        loop {
            let App::Recorded(recording) = &mut self.app else { return None };
            match (recording.play(now), recording.due()) {
                (Some(bytes), next) => {
                    self.send(now, Side::Source, bytes);
                    if next.is_none() {
                        self.close(now, Side::Source);
                        return None;
                    }
                }
                (None, next) => return next,
            }
        }
    }
}

impl Flows {
    /// Opens the connection of a flow; the data of the first message go with it.
    pub(super) fn open(&mut self, now: Instant, flow: u32) -> Does {
        let Some(connection) = self.connection(flow) else { return Does::Nothing };
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
            App::Recorded(_) => return Does::Moves(opener, connection.play(now)),
        }
        Does::Moves(opener, None)
    }

    /// Stops the application of a flow: deliveries before now count, and a connection is aborted. Returns the
    /// side to drain.
    pub(crate) fn abort(&mut self, now: Instant, flow: u32) -> Option<Side> {
        let connection = self.connection(flow)?;
        let opener = connection.app.opener();
        connection.end(opener).endpoint.abort(now);
        Some(opener)
    }

    /// Continues an application: a client that has thought sends a request, or more of a recording is due.
    pub(super) fn go_on(&mut self, now: Instant, flow: u32) -> Does {
        if now >= self.flows[flow as usize].stop {
            return Does::Nothing;
        }
        let Some(connection) = self.connection(flow) else { return Does::Nothing };
        match &mut connection.app {
            App::Exchange(exchange) => {
                let request_bytes = exchange.ask(now);
                connection.send(now, Side::Sink, request_bytes);
                Does::Moves(Side::Sink, None)
            }
            App::Recorded(_) => Does::Moves(Side::Source, connection.play(now)),
            App::Bulk { .. } => Does::Nothing,
        }
    }

    /// Notifies the end at `side` about its route. Returns whether it is to be drained. Datagrams have no
    /// endpoint to notify, and a flow that has not begun or is over ignores it.
    pub(crate) fn signal<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        flow: u32,
        side: Side,
        signal: Signal,
    ) -> bool {
        let now = kernel.now;
        let state = &mut self.flows[flow as usize];
        if !(state.start..state.stop).contains(&now) {
            return false;
        }
        let Kind::Connection(connection) = &mut state.kind else { return false };
        connection.end(side).endpoint.handle_signal(now, signal);
        match signal {
            Signal::RouteLost => state.told.losses += 1,
            Signal::RouteFound => state.told.returns += 1,
            _ => {}
        }
        if T::ENABLED {
            let node = if side == Side::Source { state.src } else { state.dst };
            kernel.tracer.note(now, node, TraceEvent::Signalled { flow: state.id, signal });
        }
        true
    }

    /// Handles the wake-up of an endpoint. Returns whether it is to be drained.
    pub(crate) fn wake(&mut self, now: Instant, flow: u32, side: Side) -> bool {
        let Some(connection) = self.connection(flow) else { return false };
        let rings = connection.end(side).alarm.rings(now);
        if rings {
            connection.handle_timeout(now, side);
        }
        rings
    }

    /// Drains an endpoint until it has a packet to send: data go to the application, and in the end its wake-up is armed.
    pub(crate) fn poll<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        flow: u32,
        side: Side,
    ) -> Option<Outgoing> {
        let now = kernel.now;
        let state = &mut self.flows[flow as usize];
        loop {
            let Kind::Connection(connection) = &mut state.kind else { return None };
            let end = connection.end(side);
            if let Some(segment) = end.endpoint.poll_transmit(now) {
                return Some(state.send_segment(kernel, side, segment));
            } else if let Some(data) = end.endpoint.recv() {
                if let Some(at) = state.hand_over(now, side, data.len()) {
                    kernel.schedule(at, Event::Application { flow });
                }
            } else if let Some(event) = end.endpoint.poll_event() {
                connection.handle_event(now, side, event);
            } else {
                if let Some(reason) = end.endpoint.take_own_failure()
                    && let Some(id) = end.law
                {
                    let node = if side == Side::Source { state.src } else { state.dst };
                    kernel.fail(Culprit::Law { id, flow: state.id, node }, reason);
                    return None;
                }
                let wanted = end.endpoint.poll_timeout();
                end.alarm.set(now, wanted, &mut kernel.scheduler, Event::Endpoint { flow, side });
                return None;
            }
        }
    }

    fn connection(&mut self, flow: u32) -> Option<&mut Connection> {
        match &mut self.flows[flow as usize].kind {
            Kind::Connection(connection) => Some(connection),
            Kind::Udp(_) => None,
        }
    }
}

impl Flow {
    /// Hands `len` bytes to the application at `side`, unless it has stopped. Returns when that wants to be woken.
    fn hand_over(&mut self, now: Instant, side: Side, len: u64) -> Option<Instant> {
        if now >= self.stop {
            return None;
        }
        if side == Side::Sink {
            self.take_delivery(now, len);
        }
        match &mut self.kind {
            Kind::Connection(connection) => connection.take(now, side, len),
            Kind::Udp(_) => None,
        }
    }

    fn send_segment<T: Tracer>(
        &mut self,
        kernel: &Kernel<T>,
        side: Side,
        segment: Segment<Length>,
    ) -> Outgoing {
        let (from, to) = match side {
            Side::Source => (self.src, self.dst),
            Side::Sink => (self.dst, self.src),
        };
        let ip = Header { ecn: segment.ecn(), ..header(from.ipv4(), to.ipv4(), segment.protocol()) };
        let len_bytes = (HEADER_LEN + segment.wire_len()) as u32;
        let packet = kernel.made(ip, Body::Segment(segment), len_bytes, Account::Flow(self.id));
        self.send(side, packet)
    }
}
