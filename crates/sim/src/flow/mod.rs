//! Flows: the applications at both ends, what is between them and the network layer, and what they measure.

mod arrivals;
mod connection;
mod counters;
mod datagrams;
mod endpoints;
mod exchange;
mod held;
mod packet_states;
mod replay;
mod route_gaps;
mod spurious_timeouts;

use crate::ids::Side;
use crate::kernel::Kernel;
use crate::outcome::{AckBursts, Connected, FlowOutcome, FlowSample, LossDetectionStats, PacketCounts};
use crate::packet::{ArrivalState, Body, Handle, Packet, PacketAccount, header};
use crate::spec::{FlowSpec, SeriesRetention, Spec, Traffic, Transport};
use crate::trace::{Tracer, TransportEvent};
use connection::{App, Connection};
use counters::{FlowCounters, RouteNotifications};
use datagrams::{Datagrams, OnOffProcess, SendSchedule, SentDatagram};
use exchange::ExchangeState;
pub(crate) use held::InFlight;
use held::{DuplicateSegments, Novelty};
use hopline_core::{Duration, FlowId, Instant, Length, NodeId, Payload, Purpose, RandomStream};
use hopline_wire::ipv4::{HEADER_LEN, Protocol};
use hopline_wire::udp;
use packet_states::{CopySource, PacketStates};
use replay::Replay;
use route_gaps::RouteGaps;
pub(crate) use route_gaps::RouteKnowledge;
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
pub(crate) struct OutgoingPacket {
    pub(crate) from: NodeId,
    pub(crate) packet: Packet,
}

/// Action of an application that is due.
#[derive(Debug)]
pub(crate) enum AppAction {
    /// Nothing more.
    None,
    /// Nothing before this moment.
    WaitUntil(Instant),
    /// It has moved the endpoint at this side, which is to be drained, and may be due again at some moment.
    DriveEndpoint(Side, Option<Instant>),
    /// It sends a datagram, and may be due again at some moment.
    SendDatagram(OutgoingPacket, Option<Instant>),
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
    kind: FlowKind,
    bytes_received: u64,
    last_delivery: Instant,
    /// The longest time without a delivery, of those that a delivery ended, since it counts.
    longest_silence: Duration,
    /// Packets, by the side that sends.
    packets: [PacketCounts; 2],
    /// Fates of packets, by the side that sends.
    packet_states: [PacketStates; 2],
    /// Segments that arrived with nothing new.
    repeats: DuplicateSegments,
    /// At the source.
    ack_bursts: AckBursts,
    series: VecDeque<FlowSample>,
    /// Packets of data that arrived in the warm-up, and their delays added up: series show it.
    warmup_delays: (u64, Duration),
    /// Most samples in it.
    max_samples: usize,
    /// Number of notifications to its ends that the route was lost, and that there was one again.
    notifications: RouteNotifications,
    route_gaps: RouteGaps,
    /// Time at which counting began.
    counting_since: Instant,
    /// Counters at the end of the warm-up.
    warmup_counters: FlowCounters,
}

#[derive(Debug)]
enum FlowKind {
    Connection(Box<Connection>),
    Udp(Datagrams),
}

impl FlowKind {
    /// Returns the side that speaks first.
    const fn initiator(&self) -> Side {
        match self {
            Self::Connection(connection) => connection.app.initiator(),
            Self::Udp(_) => Side::Source,
        }
    }
}

/// Ports of flow number `id` at source and sink, by the side that speaks first.
fn ports(initiator: Side, over: Option<&Transport>, id: u32) -> [u16; 2] {
    let client = FIRST_CLIENT_PORT + (id % 16_384) as u16;
    let server = over.map_or(SERVER_PORT, Transport::server_port);
    match initiator {
        Side::Source => [client, server],
        Side::Sink => [server, client],
    }
}

impl Flow {
    fn new(spec: &FlowSpec, id: u32, of: &Spec, (seed, run): (u64, u64)) -> Self {
        let stream = |purpose| RandomStream::keyed(seed, run, u64::from(id), purpose);
        let laws = RefCell::new(stream(Purpose::CustomCongestionControl));
        let copies = match of.proxies.is_empty() && of.pairs.is_empty() && of.cells.is_none() {
            true => CopySource::None,
            false => CopySource::Possible,
        };
        let connection = |over: &Transport, app: App| {
            let ports = ports(app.initiator(), Some(over), id);
            FlowKind::Connection(Box::new(Connection::new(
                spec.end_transports.each_ref().map(|end| end.as_ref().unwrap_or(over)),
                app,
                ports,
                &mut stream(Purpose::Transport),
                |law| of.custom_algorithms.make_congestion_control(law, &mut laws.borrow_mut()),
                |config, ports, random| {
                    of.custom_algorithms.make_quic_endpoint(config, ports, random, &mut laws.borrow_mut())
                },
            )))
        };
        let kind = match &spec.traffic {
            Traffic::Bulk { over, bytes } => connection(over, App::Bulk { size: *bytes }),
            Traffic::Exchange { over, exchange } => {
                connection(over, App::Exchange(ExchangeState::new(*exchange, stream(Purpose::Traffic))))
            }
            &Traffic::Cbr { packet_bytes, interval } => {
                FlowKind::Udp(Datagrams::new(SendSchedule::Rate { packet_bytes, interval, bursts: None }))
            }
            &Traffic::OnOff { packet_bytes, interval, on, off } => {
                let bursts = Some(OnOffProcess { on, off, stream: stream(Purpose::Traffic), until: None });
                FlowKind::Udp(Datagrams::new(SendSchedule::Rate { packet_bytes, interval, bursts }))
            }
            Traffic::Recorded { over, packets } => {
                let recording = Replay::new(packets.clone(), spec.start);
                match over {
                    Some(over) => connection(over, App::Recorded(recording)),
                    None => FlowKind::Udp(Datagrams::new(SendSchedule::Recorded(recording))),
                }
            }
        };
        Self {
            id: FlowId(id),
            src: spec.src,
            dst: spec.dst,
            start: spec.start,
            stop: spec.stop,
            ports: ports(kind.initiator(), spec.traffic.transport(), id),
            kind,
            bytes_received: 0,
            last_delivery: spec.start,
            longest_silence: Duration::ZERO,
            packets: Default::default(),
            packet_states: [(); 2].map(|()| PacketStates::new(copies)),
            repeats: DuplicateSegments::default(),
            ack_bursts: AckBursts::default(),
            series: VecDeque::new(),
            max_samples: match of.series {
                SeriesRetention::Whole => usize::MAX,
                SeriesRetention::Latest(most) => most.get() as usize,
            },
            notifications: RouteNotifications::default(),
            route_gaps: RouteGaps::default(),
            counting_since: spec.start,
            warmup_counters: FlowCounters::default(),
            warmup_delays: (0, Duration::ZERO),
        }
    }

    /// Notes the state at `now`.
    fn sample(&mut self, now: Instant, queue_packets: u32) {
        let (cwnd_bytes, srtt) = match &self.kind {
            FlowKind::Connection(connection) => {
                let source = connection.source();
                (source.cwnd_bytes(), source.srtt())
            }
            FlowKind::Udp(_) => (0, None),
        };
        let bytes_received = self.bytes_received;
        if self.series.len() >= self.max_samples {
            self.series.pop_front();
        }
        let data = &self.packets[Side::Source as usize];
        let (packets_received, delay_sum) =
            (self.warmup_delays.0 + data.received, self.warmup_delays.1 + data.delays.sum());
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
    fn restart(&mut self, now: Instant, held: &[InFlight; 2]) {
        self.counting_since = self.start.max(now);
        self.warmup_counters = self.counters(now);
        self.longest_silence = Duration::ZERO;
        let data = &self.packets[Side::Source as usize];
        self.warmup_delays = (data.received, data.delays.sum());
        for (packets, held) in self.packets.iter_mut().zip(held) {
            packets.restart(held.packets(), held.bytes);
        }
        for (fates, held) in self.packet_states.iter_mut().zip(held) {
            fates.restart(|number| held.numbers.contains(&number));
        }
        self.ack_bursts = AckBursts::default();
        if let FlowKind::Connection(connection) = &mut self.kind {
            connection.restart_timeouts();
            if let App::Exchange(exchange) = &mut connection.app {
                exchange.restart();
            }
        }
    }

    /// Settles the counters at the end of the run. `held`: packets in flight, by the side that sent them.
    fn finish_counters(&mut self, held: &[InFlight; 2]) {
        for (packets, held) in self.packets.iter_mut().zip(held) {
            packets.finish(held.packets(), held.bytes);
        }
        self.ack_bursts.end_burst();
    }

    /// Returns the result at the end of the run, `now`.
    fn outcome(self, now: Instant) -> FlowOutcome {
        let counters = self.counters(now) - self.warmup_counters;
        let complete = self.is_complete();
        let end = if complete { self.last_delivery } else { self.stop.min(now) };
        let counted = complete && end >= self.counting_since;
        let mut outcome = FlowOutcome {
            bytes_received: counters.bytes_received,
            counting_since: self.counting_since,
            active_time: end.since(self.counting_since),
            longest_silence: self.longest_silence.max(self.silence_until(end)),
            segments_sent: counters.segments_sent,
            retransmissions: counters.retransmissions,
            duplicates: counters.duplicates,
            copies: counters.copies,
            timeouts: counters.timeouts,
            spurious_timeouts: counters.spurious_timeouts,
            loss_detection: counters.loss_detection,
            segments_received: counters.segments_received,
            connected: if self.bytes_received > 0 { Connected::Yes } else { Connected::Never },
            completion: counted.then(|| end.since(self.start)),
            ports: self.ports,
            requests: counters.requests,
            route_loss_notifications: counters.notifications.lost,
            route_recovery_notifications: counters.notifications.found,
            route_gaps: counters.route_gaps.count,
            route_gap_time: counters.route_gaps.time,
            door_stats: counters.door,
            freezes: counters.frozen.freezes,
            route_probes: counters.frozen.probes,
            frozen_time: counters.frozen.time,
            series: self.series.into(),
            ..FlowOutcome::default()
        };
        [outcome.data, outcome.reverse] = self.packets;
        outcome.ack_bursts = self.ack_bursts;
        if let FlowKind::Connection(connection) = self.kind
            && let App::Exchange(exchange) = connection.app
        {
            outcome.responses = exchange.responses;
        }
        outcome
    }

    /// Returns the counters from the start of the run until `now`.
    fn counters(&self, now: Instant) -> FlowCounters {
        let (bytes_received, told) = (self.bytes_received, self.notifications);
        let gaps = self.route_gaps.totals_until(self.stop.min(now));
        match &self.kind {
            FlowKind::Connection(connection) => {
                let mss = connection.source().effective_mss();
                let (segments_received, requests) = match &connection.app {
                    App::Bulk { .. } => (bytes_received.div_ceil(mss.into()), 0),
                    App::Exchange(exchange) => (exchange.segments_received(mss), exchange.requests),
                    App::Recorded(_) => (connection.distinct_segments_sent(), 0),
                };
                FlowCounters {
                    bytes_received,
                    segments_sent: connection.sum_counter(|stats| stats.segments_sent),
                    retransmissions: connection.sum_counter(|stats| stats.retransmissions),
                    duplicates: self.repeats.retransmitted,
                    copies: self.repeats.copies,
                    timeouts: connection.sum_counter(|stats| stats.timeouts),
                    spurious_timeouts: connection.spurious_timeouts(),
                    loss_detection: LossDetectionStats {
                        rack_losses: connection.sum_counter(|stats| stats.loss_detection.rack_losses),
                        tail_probes: connection.sum_counter(|stats| stats.loss_detection.tail_probes),
                        spurious_timeouts: connection
                            .sum_counter(|stats| stats.loss_detection.spurious_timeouts),
                        spurious_recoveries: connection
                            .sum_counter(|stats| stats.loss_detection.spurious_recoveries),
                    },
                    segments_received,
                    requests,
                    notifications: told,
                    route_gaps: gaps,
                    door: connection.door_stats(),
                    frozen: connection.freeze_stats(now),
                }
            }
            FlowKind::Udp(datagrams) => FlowCounters {
                bytes_received,
                segments_sent: datagrams.sent.into(),
                segments_received: datagrams.received,
                route_gaps: gaps,
                ..FlowCounters::default()
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
    fn send(&mut self, side: Side, mut packet: Packet) -> OutgoingPacket {
        packet.original.number = self.packet_states[side as usize].add();
        self.packets[side as usize].record_sent(packet.made, packet.len_bytes);
        let from = match side {
            Side::Source => self.src,
            Side::Sink => self.dst,
        };
        OutgoingPacket { from, packet }
    }

    /// Returns whether a flow of limited length has come to its end.
    fn is_complete(&self) -> bool {
        match &self.kind {
            FlowKind::Connection(connection) => match &connection.app {
                App::Bulk { size } => size.is_some_and(|size| self.bytes_received >= size),
                App::Exchange(exchange) => exchange.is_done(),
                App::Recorded(recording) => self.bytes_received >= recording.total(),
            },
            FlowKind::Udp(_) => false,
        }
    }

    /// Counts what arrives, except what had arrived before or was still in flight when the flow stopped.
    fn record_delivery(&mut self, now: Instant, bytes: u64) {
        if now < self.stop && bytes > 0 {
            self.longest_silence = self.longest_silence.max(self.silence_until(now));
            self.bytes_received += bytes;
            self.last_delivery = now;
        }
    }

    /// Returns the counted part of the time without a delivery that lasts until `end`.
    fn silence_until(&self, end: Instant) -> Duration {
        end.since(self.last_delivery.max(self.counting_since))
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
    pub(crate) fn restart(&mut self, now: Instant, held: &[[InFlight; 2]]) {
        for (flow, held) in self.flows.iter_mut().zip(held) {
            flow.restart(now, held);
        }
    }

    /// Returns the outcomes at the end of the run, `now`. `held` as in [`restart`](Self::restart).
    pub(crate) fn outcomes(self, now: Instant, held: &[[InFlight; 2]]) -> Vec<FlowOutcome> {
        let settled = self.flows.into_iter().zip(held).map(|(mut flow, held)| {
            flow.finish_counters(held);
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
    pub(crate) fn start<T: Tracer>(&mut self, kernel: &Kernel<T>, flow: u32) -> AppAction {
        match self.flows[flow as usize].kind {
            FlowKind::Connection(_) => self.open(kernel.now, flow),
            FlowKind::Udp(ref datagrams) => match datagrams.first(kernel.now) {
                Some(at) if at > kernel.now => AppAction::WaitUntil(at),
                _ => self.send_datagram(kernel, flow),
            },
        }
    }

    /// Handles an application that is due: for its next datagram, its next request, or the next packet of a
    /// recording.
    pub(crate) fn wake_application<T: Tracer>(&mut self, kernel: &Kernel<T>, flow: u32) -> AppAction {
        match self.flows[flow as usize].kind {
            FlowKind::Connection(_) => self.continue_app(kernel.now, flow),
            FlowKind::Udp(_) => self.send_datagram(kernel, flow),
        }
    }

    /// Delivers a packet of a flow to its destination node, for the first time or again. Returns the side of
    /// the endpoint that is now to be drained.
    pub(crate) fn deliver<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        flow: FlowId,
        handle: Handle,
        arrival: ArrivalState,
    ) -> Option<Side> {
        let now = kernel.now;
        let packet = kernel.packets.get(handle);
        let state = &mut self.flows[flow.index()];
        let from = state.side_of(packet.ip.src);
        let forwarded = packet.ip.ttl - handle.ttl;
        let news = match arrival {
            ArrivalState::First => state.record_arrival(now, from, packet, forwarded),
            ArrivalState::Duplicate => Novelty::Duplicate,
        };
        match (&packet.body, &mut state.kind) {
            (Body::Segment(segment), FlowKind::Connection(connection)) => {
                if from == Side::Sink && arrival == ArrivalState::First && segment.data_len() == 0 {
                    state.ack_bursts.record(now);
                }
                let segment = segment.clone().with_ecn(kernel.packets.ecn(handle));
                let before = connection.duplicates_at(from.other());
                let traced = T::ENABLED.then(|| segment.clone());
                connection.handle_packet(now, from.other(), segment, packet.made, forwarded + 1);
                if connection.duplicates_at(from.other()) > before {
                    state.record_duplicate(packet, news);
                }
                if let Some(segment) = &traced {
                    let received = TransportEvent::Received { number: packet.original.number, segment };
                    state.trace(&mut kernel.tracer, now, from.other(), received);
                }
                return Some(from.other());
            }
            (Body::Udp { datagram, number }, FlowKind::Udp(datagrams)) if now < state.stop => {
                let bytes = datagrams.receive(*number, datagram.payload.len());
                state.record_delivery(now, bytes);
            }
            _ => {}
        }
        None
    }

    /// Sends a datagram of a source, and schedules the next.
    fn send_datagram<T: Tracer>(&mut self, kernel: &Kernel<T>, flow: u32) -> AppAction {
        let now = kernel.now;
        let state = &mut self.flows[flow as usize];
        let FlowKind::Udp(datagrams) = &mut state.kind else { return AppAction::None };
        if now >= state.stop {
            return AppAction::None;
        }
        let Some(SentDatagram { number, bytes, next }) = datagrams.send(now) else { return AppAction::None };
        let [src_port, dst_port] = state.ports;
        let datagram = udp::Datagram { src_port, dst_port, payload: Length(bytes.into()) };
        let ip = header(state.src.ipv4(), state.dst.ipv4(), Protocol::Udp);
        let len_bytes = (HEADER_LEN + udp::HEADER_LEN) as u32 + bytes;
        let packet =
            kernel.new_packet(ip, Body::Udp { datagram, number }, len_bytes, PacketAccount::Flow(state.id));
        AppAction::SendDatagram(state.send(Side::Source, packet), next)
    }

    /// Records that a packet of `flow` leaves the source of its data, and `route` is the state of its peer in
    /// the routing agent there. Only agents have gaps.
    pub(crate) fn record_route_state(&mut self, now: Instant, flow: FlowId, route: RouteKnowledge) {
        self.flows[flow.index()].route_gaps.record(now, route);
    }
}
