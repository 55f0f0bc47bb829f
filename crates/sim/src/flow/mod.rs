//! Flows: the applications at both ends, what is between them and the network layer, and what they measure.

mod arrivals;
mod connection;
mod counters;
mod datagrams;
mod endpoints;
mod exchange;
mod fates;
mod gaps;
mod held;
mod needless;
mod recording;

use crate::ids::Side;
use crate::kernel::Kernel;
use crate::outcome::{AckBursts, Connected, Detected, FlowOutcome, FlowSample, Packets};
use crate::packet::{Account, Arrival, Body, Handle, Packet, header};
use crate::spec::{FlowSpec, Series, Spec, Traffic, Transport};
use crate::trace::Tracer;
use connection::{App, Connection};
use counters::{Counters, Told};
use datagrams::{Bursts, Datagrams, Schedule, Sent};
use exchange::Exchange;
use fates::{Copies, Fates};
use gaps::Gaps;
pub(crate) use gaps::Route;
pub(crate) use held::Held;
use held::{News, Repeats};
use hopline_core::{Duration, FlowId, Instant, Length, NodeId, Payload, Purpose, Stream};
use hopline_wire::ipv4::{HEADER_LEN, Protocol};
use hopline_wire::udp;
use recording::Recording;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Datagrams go here: the discard port (RFC 863).
const SERVER_PORT: u16 = 9;
/// Client ports start here, one a flow (RFC 6335: dynamic ports).
const FIRST_CLIENT_PORT: u16 = 49_152;
/// All flows. Endpoints that have something to send, or to say, are drained with [`Flows::poll`].
#[derive(Debug)]
pub(crate) struct Flows {
    flows: Vec<Flow>,
}

/// A packet that a node is to send.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) from: NodeId,
    pub(crate) packet: Packet,
}

/// Action of an application that is due.
#[derive(Debug)]
pub(crate) enum Does {
    /// Nothing more.
    Nothing,
    /// Nothing before this moment.
    Waits(Instant),
    /// It has moved the endpoint at this side, which is to be drained, and may be due again at some moment.
    Moves(Side, Option<Instant>),
    /// It sends a datagram, and may be due again at some moment.
    Sends(Outgoing, Option<Instant>),
}

/// A flow in the middle of a run.
#[derive(Debug)]
struct Flow {
    id: FlowId,
    src: NodeId,
    dst: NodeId,
    start: Instant,
    stop: Instant,
    /// At source and sink.
    ports: [u16; 2],
    kind: Kind,
    bytes_received: u64,
    last_delivery: Instant,
    /// The longest time without a delivery, of those that a delivery ended, since it counts.
    silence: Duration,
    /// Packets, by the side that sends.
    packets: [Packets; 2],
    /// Fates of packets, by the side that sends.
    fates: [Fates; 2],
    /// Segments that arrived with nothing new.
    repeats: Repeats,
    /// At the source.
    ack_bursts: AckBursts,
    series: VecDeque<FlowSample>,
    /// Packets of data that arrived in the warm-up, and their delays added up: series show it.
    warm_up: (u64, Duration),
    /// Most samples in it.
    most_samples: usize,
    /// Number of notifications to its ends that the route was lost, and that there was one again.
    told: Told,
    gaps: Gaps,
    /// Time at which counting began.
    since: Instant,
    /// Counters at the end of the warm-up.
    before: Counters,
}

#[derive(Debug)]
enum Kind {
    Connection(Box<Connection>),
    Udp(Datagrams),
}

impl Kind {
    /// Returns the side that speaks first.
    const fn opener(&self) -> Side {
        match self {
            Self::Connection(connection) => connection.app.opener(),
            Self::Udp(_) => Side::Source,
        }
    }
}

/// Ports of flow number `id` at source and sink, by the side that speaks first.
fn ports(opener: Side, over: Option<&Transport>, id: u32) -> [u16; 2] {
    let client = FIRST_CLIENT_PORT + (id % 16_384) as u16;
    let server = over.map_or(SERVER_PORT, Transport::server_port);
    match opener {
        Side::Source => [client, server],
        Side::Sink => [server, client],
    }
}

impl Flow {
    fn new(spec: &FlowSpec, id: u32, of: &Spec, (seed, run): (u64, u64)) -> Self {
        let stream = |purpose| Stream::keyed(seed, run, u64::from(id), purpose);
        let laws = RefCell::new(stream(Purpose::OwnLaw));
        let copies = match of.proxies.is_empty() && of.pairs.is_empty() && of.cells.is_none() {
            true => Copies::None,
            false => Copies::Possible,
        };
        let connection = |over: &Transport, app: App| {
            let ports = ports(app.opener(), Some(over), id);
            Kind::Connection(Box::new(Connection::new(
                spec.ends.each_ref().map(|end| end.as_ref().unwrap_or(over)),
                app,
                ports,
                &mut stream(Purpose::Transport),
                |law| of.machines.make_law(law, &mut laws.borrow_mut()),
            )))
        };
        let kind = match &spec.traffic {
            Traffic::Bulk { over, bytes } => connection(over, App::Bulk { size: *bytes }),
            Traffic::Exchange { over, exchange } => {
                connection(over, App::Exchange(Exchange::new(*exchange, stream(Purpose::Traffic))))
            }
            &Traffic::Cbr { packet_bytes, interval } => {
                Kind::Udp(Datagrams::new(Schedule::Rate { packet_bytes, interval, bursts: None }))
            }
            &Traffic::OnOff { packet_bytes, interval, on, off } => {
                let bursts = Some(Bursts { on, off, stream: stream(Purpose::Traffic), until: None });
                Kind::Udp(Datagrams::new(Schedule::Rate { packet_bytes, interval, bursts }))
            }
            Traffic::Recorded { over, packets } => {
                let recording = Recording::new(packets.clone(), spec.start);
                match over {
                    Some(over) => connection(over, App::Recorded(recording)),
                    None => Kind::Udp(Datagrams::new(Schedule::Recorded(recording))),
                }
            }
        };
        Self {
            id: FlowId(id),
            src: spec.src,
            dst: spec.dst,
            start: spec.start,
            stop: spec.stop,
            ports: ports(kind.opener(), spec.traffic.transport(), id),
            kind,
            bytes_received: 0,
            last_delivery: spec.start,
            silence: Duration::ZERO,
            packets: Default::default(),
            fates: [(); 2].map(|()| Fates::new(copies)),
            repeats: Repeats::default(),
            ack_bursts: AckBursts::default(),
            series: VecDeque::new(),
            most_samples: match of.series {
                Series::Whole => usize::MAX,
                Series::Latest(most) => most.get() as usize,
            },
            told: Told::default(),
            gaps: Gaps::default(),
            since: spec.start,
            before: Counters::default(),
            warm_up: (0, Duration::ZERO),
        }
    }

    /// Notes the state at `now`.
    fn sample(&mut self, now: Instant, queue_packets: u32) {
        let (cwnd_bytes, srtt) = match &self.kind {
            Kind::Connection(connection) => {
                let source = connection.source();
                (source.cwnd_bytes(), source.srtt())
            }
            Kind::Udp(_) => (0, None),
        };
        let bytes_received = self.bytes_received;
        if self.series.len() >= self.most_samples {
            self.series.pop_front();
        }
        let data = &self.packets[Side::Source as usize];
        let (packets_received, delay_sum) =
            (self.warm_up.0 + data.received, self.warm_up.1 + data.delays.sum());
        self.series.push_back(FlowSample {
            at: now,
            bytes_received,
            cwnd_bytes,
            srtt,
            queue_packets,
            packets_received,
            delay_sum,
        });
    }

    /// Restarts the counters at `now`, after the warm-up. `held`: packets in flight, by the side that sent
    /// them.
    fn restart(&mut self, now: Instant, held: &[Held; 2]) {
        self.since = self.start.max(now);
        self.before = self.counters(now);
        self.silence = Duration::ZERO;
        let data = &self.packets[Side::Source as usize];
        self.warm_up = (data.received, data.delays.sum());
        for (packets, held) in self.packets.iter_mut().zip(held) {
            packets.restart(held.packets(), held.bytes);
        }
        for (fates, held) in self.fates.iter_mut().zip(held) {
            fates.restart(|number| held.numbers.contains(&number));
        }
        self.ack_bursts = AckBursts::default();
        if let Kind::Connection(connection) = &mut self.kind {
            connection.forget_timeouts();
            if let App::Exchange(exchange) = &mut connection.app {
                exchange.restart();
            }
        }
    }

    /// Settles the counters at the end of the run. `held`: packets in flight, by the side that sent them.
    fn settle(&mut self, held: &[Held; 2]) {
        for (packets, held) in self.packets.iter_mut().zip(held) {
            packets.settle(held.packets(), held.bytes);
        }
        self.ack_bursts.end();
    }

    /// Returns the result at the end of the run, `now`.
    fn outcome(self, now: Instant) -> FlowOutcome {
        let counters = self.counters(now) - self.before;
        let complete = self.is_complete();
        let end = if complete { self.last_delivery } else { self.stop.min(now) };
        let counted = complete && end >= self.since;
        let mut outcome = FlowOutcome {
            bytes_received: counters.bytes_received,
            since: self.since,
            active: end.since(self.since),
            longest_silence: self.silence.max(self.silence_until(end)),
            segments_sent: counters.segments_sent,
            retransmissions: counters.retransmissions,
            duplicates: counters.duplicates,
            copies: counters.copies,
            timeouts: counters.timeouts,
            needless_timeouts: counters.needless_timeouts,
            detected: counters.detected,
            segments_received: counters.segments_received,
            connected: if self.bytes_received > 0 { Connected::Yes } else { Connected::Never },
            completion: counted.then(|| end.since(self.start)),
            ports: self.ports,
            requests: counters.requests,
            route_losses_told: counters.told.losses,
            route_returns_told: counters.told.returns,
            route_gaps: counters.gaps.begun,
            route_gap: counters.gaps.time,
            door: counters.door,
            freezes: counters.frozen.freezes,
            route_probes: counters.frozen.probes,
            frozen: counters.frozen.time,
            series: self.series.into(),
            ..FlowOutcome::default()
        };
        [outcome.data, outcome.back] = self.packets;
        outcome.ack_bursts = self.ack_bursts;
        if let Kind::Connection(connection) = self.kind
            && let App::Exchange(exchange) = connection.app
        {
            outcome.responses = exchange.responses;
        }
        outcome
    }

    /// Returns the counters from the start of the run until `now`.
    fn counters(&self, now: Instant) -> Counters {
        let (bytes_received, told) = (self.bytes_received, self.told);
        let gaps = self.gaps.until(self.stop.min(now));
        match &self.kind {
            Kind::Connection(connection) => {
                let mss = connection.source().effective_mss();
                let (segments_received, requests) = match &connection.app {
                    App::Bulk { .. } => (bytes_received.div_ceil(mss.into()), 0),
                    App::Exchange(exchange) => (exchange.segments_received(mss), exchange.requests),
                    App::Recorded(_) => (connection.distinct_segments_sent(), 0),
                };
                Counters {
                    bytes_received,
                    segments_sent: connection.count(|stats| stats.segments_sent),
                    retransmissions: connection.count(|stats| stats.retransmissions),
                    duplicates: self.repeats.resent,
                    copies: self.repeats.copies,
                    timeouts: connection.count(|stats| stats.timeouts),
                    needless_timeouts: connection.needless_timeouts(),
                    detected: Detected {
                        rack_losses: connection.count(|stats| stats.detected.rack_losses),
                        tail_probes: connection.count(|stats| stats.detected.tail_probes),
                        spurious_timeouts: connection.count(|stats| stats.detected.spurious_timeouts),
                        spurious_recoveries: connection.count(|stats| stats.detected.spurious_recoveries),
                    },
                    segments_received,
                    requests,
                    told,
                    gaps,
                    door: connection.door(),
                    frozen: connection.frozen(now),
                }
            }
            Kind::Udp(datagrams) => Counters {
                bytes_received,
                segments_sent: datagrams.sent.into(),
                segments_received: datagrams.received,
                gaps,
                ..Counters::default()
            },
        }
    }

    /// Returns the source and destination port of what the end at `side` sends.
    fn ports_from(&self, side: Side) -> [u16; 2] {
        let [source, sink] = self.ports;
        match side {
            Side::Source => [source, sink],
            Side::Sink => [sink, source],
        }
    }

    /// Returns the end that has this address.
    fn side_of(&self, address: Ipv4Addr) -> Side {
        if address == self.src.ipv4() { Side::Source } else { Side::Sink }
    }

    /// Its end at `side` hands a packet to the IP layer.
    fn send(&mut self, side: Side, mut packet: Packet) -> Outgoing {
        packet.original.number = self.fates[side as usize].add();
        self.packets[side as usize].send(packet.made, packet.len_bytes);
        let from = match side {
            Side::Source => self.src,
            Side::Sink => self.dst,
        };
        Outgoing { from, packet }
    }

    /// Returns whether a flow of limited length has come to its end.
    fn is_complete(&self) -> bool {
        match &self.kind {
            Kind::Connection(connection) => match &connection.app {
                App::Bulk { size } => size.is_some_and(|size| self.bytes_received >= size),
                App::Exchange(exchange) => exchange.is_done(),
                App::Recorded(recording) => self.bytes_received >= recording.total(),
            },
            Kind::Udp(_) => false,
        }
    }

    /// Counts what arrives, except what had arrived before or was still in flight when the flow stopped.
    fn take_delivery(&mut self, now: Instant, bytes: u64) {
        if now < self.stop && bytes > 0 {
            self.silence = self.silence.max(self.silence_until(now));
            self.bytes_received += bytes;
            self.last_delivery = now;
        }
    }

    /// Returns the counted part of the time without a delivery that lasts until `end`.
    fn silence_until(&self, end: Instant) -> Duration {
        end.since(self.last_delivery.max(self.since))
    }
}

impl Flows {
    pub(crate) fn new(spec: &Spec, key: (u64, u64)) -> Self {
        Self { flows: (0..).zip(&spec.flows).map(|(id, flow)| Flow::new(flow, id, spec, key)).collect() }
    }

    pub(crate) const fn len(&self) -> usize {
        self.flows.len()
    }

    /// Notes the state of all at `now`. `queue_len`: packets that wait at a node.
    pub(crate) fn sample(&mut self, now: Instant, queue_len: impl Fn(NodeId) -> u32) {
        for flow in &mut self.flows {
            flow.sample(now, queue_len(flow.src));
        }
    }

    /// Restarts the counters after the warm-up. `held`: packets in flight, by flow and side that sent.
    pub(crate) fn restart(&mut self, now: Instant, held: &[[Held; 2]]) {
        for (flow, held) in self.flows.iter_mut().zip(held) {
            flow.restart(now, held);
        }
    }

    /// Returns the outcomes at the end of the run, `now`. `held` as in [`restart`](Self::restart).
    pub(crate) fn outcomes(self, now: Instant, held: &[[Held; 2]]) -> Vec<FlowOutcome> {
        let settled = self.flows.into_iter().zip(held).map(|(mut flow, held)| {
            flow.settle(held);
            flow.outcome(now)
        });
        settled.collect()
    }

    /// Returns the end of a flow that has this address.
    pub(crate) fn side_of(&self, flow: FlowId, address: Ipv4Addr) -> Side {
        self.flows[flow.index()].side_of(address)
    }

    /// Returns the source and destination port of what the end at `side` sends.
    pub(crate) fn ports_from(&self, flow: u32, side: Side) -> [u16; 2] {
        self.flows[flow as usize].ports_from(side)
    }

    /// Returns whether the data of a flow come from `node`.
    pub(crate) fn is_source(&self, flow: FlowId, node: NodeId) -> bool {
        self.flows[flow.index()].src == node
    }

    /// Records that the application of a flow starts.
    pub(crate) fn start<T: Tracer>(&mut self, kernel: &Kernel<T>, flow: u32) -> Does {
        match self.flows[flow as usize].kind {
            Kind::Connection(_) => self.open(kernel.now, flow),
            Kind::Udp(ref datagrams) => match datagrams.first(kernel.now) {
                Some(at) if at > kernel.now => Does::Waits(at),
                _ => self.send_datagram(kernel, flow),
            },
        }
    }

    /// Handles an application that is due: for its next datagram, its next request, or the next packet of a
    /// recording.
    pub(crate) fn wake_application<T: Tracer>(&mut self, kernel: &Kernel<T>, flow: u32) -> Does {
        match self.flows[flow as usize].kind {
            Kind::Connection(_) => self.go_on(kernel.now, flow),
            Kind::Udp(_) => self.send_datagram(kernel, flow),
        }
    }

    /// Delivers a packet of a flow to its destination node, for the first time or again. Returns the side of
    /// the endpoint that is now to be drained.
    pub(crate) fn deliver<T: Tracer>(
        &mut self,
        kernel: &Kernel<T>,
        flow: FlowId,
        handle: Handle,
        arrival: Arrival,
    ) -> Option<Side> {
        let now = kernel.now;
        let packet = kernel.packets.get(handle);
        let state = &mut self.flows[flow.index()];
        let from = state.side_of(packet.ip.src);
        let forwarded = packet.ip.ttl - handle.ttl;
        let news = match arrival {
            Arrival::First => state.arrive(now, from, packet, forwarded),
            Arrival::Again => News::None,
        };
        match (&packet.body, &mut state.kind) {
            (Body::Segment(segment), Kind::Connection(connection)) => {
                if from == Side::Sink && arrival == Arrival::First && segment.data_len() == 0 {
                    state.ack_bursts.record(now);
                }
                let segment = segment.clone().with_ecn(kernel.packets.ecn(handle));
                let before = connection.repeats_at(from.other());
                connection.handle_packet(now, from.other(), segment, packet.made, forwarded + 1);
                if connection.repeats_at(from.other()) > before {
                    state.note_repeat(packet, news);
                }
                return Some(from.other());
            }
            (Body::Udp { datagram, number }, Kind::Udp(datagrams)) if now < state.stop => {
                let bytes = datagrams.take(*number, datagram.payload.len());
                state.take_delivery(now, bytes);
            }
            _ => {}
        }
        None
    }

    /// Sends a datagram of a source, and schedules the next.
    fn send_datagram<T: Tracer>(&mut self, kernel: &Kernel<T>, flow: u32) -> Does {
        let now = kernel.now;
        let state = &mut self.flows[flow as usize];
        let Kind::Udp(datagrams) = &mut state.kind else { return Does::Nothing };
        if now >= state.stop {
            return Does::Nothing;
        }
        let Some(Sent { number, bytes, next }) = datagrams.send(now) else { return Does::Nothing };
        let [src_port, dst_port] = state.ports;
        let datagram = udp::Datagram { src_port, dst_port, payload: Length(bytes.into()) };
        let ip = header(state.src.ipv4(), state.dst.ipv4(), Protocol::Udp);
        let len_bytes = (HEADER_LEN + udp::HEADER_LEN) as u32 + bytes;
        let packet = kernel.made(ip, Body::Udp { datagram, number }, len_bytes, Account::Flow(state.id));
        Does::Sends(state.send(Side::Source, packet), next)
    }

    /// Records that a packet of `flow` leaves the source of its data, and `route` is the state of its peer in
    /// the routing agent there. Only agents have gaps.
    pub(crate) fn note_route(&mut self, now: Instant, flow: FlowId, route: Route) {
        self.flows[flow.index()].gaps.note(now, route);
    }
}
