//! Flows of real programs, by their addresses and ports, measured at the taps of the nodes.
//!
//! A packet enters the network at the node that sends it. Each router on its way takes it out and brings it in again, with
//! another hop limit and otherwise unchanged: by that the tracker knows it. It has arrived at the node that has its
//! destination address. The kernel's own time in routers is a part of its delay.

mod direction;
mod packet;
mod sequence;
#[cfg(test)]
mod tests;

pub use packet::FlowProtocol;

use direction::{Arrival, Direction};
use hopline_core::{Duration, Instant, NodeId};
use hopline_sim::outcome::{Connected, FlowOutcome, FlowSample};
use hopline_sim::trace::{Body, PacketView, TraceEvent};
use hopline_sim::{Spec, Tracer};
use hopline_wire::ethernet::Frame;
use packet::FlowPacket;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Most flows that are told apart. Packets of later ones are counted together.
const MAX_FLOWS: usize = 1000;
/// Most addresses that are learnt besides those that the nodes have at the start.
const MAX_ADDRESSES: usize = 4096;
/// Most packets that are remembered, and for how long.
const MAX_PACKETS: usize = 65_536;
const MEMORY: Duration = Duration::from_secs(30);
/// A packet sent within this time before the end, and not arrived, is in flight, and not lost.
const IN_FLIGHT: Duration = Duration::from_secs(1);

/// Returns the flow of the packet in a frame, its bytes and those for the application, and its identity; for a fuzz target.
#[doc(hidden)]
#[must_use]
pub fn flow_in_frame(frame: &Frame) -> Option<(FlowProtocol, [SocketAddr; 2], [u32; 2], u64)> {
    let FlowPacket { protocol, src, dst, len, payload, identity, .. } = FlowPacket::of(frame)?;
    Some((protocol, [src, dst], [len, payload], identity))
}

/// Observer of the frames at all taps.
#[derive(Debug)]
pub(crate) struct FlowTracker {
    /// Nodes by address.
    owners: BTreeMap<IpAddr, NodeId>,
    /// Packets by identity: in the network, or passed on by a kernel.
    packets: BTreeMap<u64, Vec<Passage>>,
    /// The same in the order of time.
    order: VecDeque<(Instant, u64)>,
    flows: Vec<Connection>,
    numbers: BTreeMap<FlowKey, usize>,
    uncounted_packets: u64,
    queues: QueueSeries,
}

/// Protocol and both ends, the smaller one first.
type FlowKey = (FlowProtocol, SocketAddr, SocketAddr);

/// Both directions of a flow.
#[derive(Debug)]
struct Connection {
    protocol: FlowProtocol,
    /// The end that sent first, and the other one.
    ends: [SocketAddr; 2],
    /// Nodes that sent from there, as far as one has.
    nodes: [Option<NodeId>; 2],
    since: Instant,
    /// From the first end to the second, and back.
    directions: [Direction; 2],
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
struct Passage {
    flow: usize,
    /// Number of the end that has sent it.
    from: usize,
    arrival: Arrival,
    destination: IpAddr,
    /// Node with the kernel that has it.
    at: Option<NodeId>,
    is_delivered: bool,
}

/// Lengths of the queues of all nodes, second by second.
#[derive(Debug)]
struct QueueSeries {
    packets: Vec<i64>,
    seconds: Vec<Vec<u16>>,
}

/// Flow of real programs.
#[derive(Clone, Debug)]
pub struct RealFlow {
    /// Protocol.
    pub protocol: FlowProtocol,
    /// The end that has sent more payload, as far as both have: the source of the data.
    pub src: SocketAddr,
    /// The other end.
    pub dst: SocketAddr,
    /// Their nodes. `None`: no node has sent from this address.
    pub nodes: [Option<NodeId>; 2],
    /// Measured counters. Those that only an endpoint knows, such as timeouts, are zero.
    pub outcome: FlowOutcome,
}

/// Flows of real programs.
#[derive(Clone, Debug, Default)]
pub struct RealFlows {
    /// Flows in the order of their first packets.
    pub flows: Vec<RealFlow>,
    /// Packets of flows beyond the number that is told apart.
    pub uncounted_packets: u64,
}

impl FlowTracker {
    pub(crate) fn new(spec: &Spec) -> Self {
        let nodes = (0..spec.nodes.len() as u32).map(NodeId);
        let owners = nodes.flat_map(|node| [(node.ipv4().into(), node), (link_local(node).into(), node)]);
        Self {
            owners: owners.collect(),
            packets: BTreeMap::new(),
            order: VecDeque::new(),
            flows: Vec::new(),
            numbers: BTreeMap::new(),
            uncounted_packets: 0,
            queues: QueueSeries { packets: vec![0; spec.nodes.len()], seconds: Vec::new() },
        }
    }

    /// Ends the measurement.
    pub(crate) fn finish(mut self, now: Instant) -> RealFlows {
        self.queues.advance(now);
        let mut held = vec![[(0, 0); 2]; self.flows.len()];
        for passage in self.packets.values().flatten().filter(|passage| !passage.is_delivered) {
            if now.since(passage.arrival.sent) < IN_FLIGHT {
                let (packets, bytes) = &mut held[passage.flow][passage.from];
                *packets += 1;
                *bytes += u64::from(passage.arrival.len);
            }
        }
        let flows = self.flows.into_iter().zip(held).map(|(flow, held)| flow.finish(now, held, &self.queues));
        RealFlows { flows: flows.collect(), uncounted_packets: self.uncounted_packets }
    }

    /// Records that a kernel sends a packet at `node`.
    fn entered(&mut self, now: Instant, node: NodeId, packet: &FlowPacket) {
        let known = self.packets.get_mut(&packet.identity);
        if let Some(passage) = known.and_then(|all| all.iter_mut().find(|passage| passage.at == Some(node))) {
            passage.at = None;
            passage.arrival.forwarded = passage.arrival.forwarded.saturating_add(1);
            return;
        }
        if self.owners.len() < MAX_ADDRESSES {
            self.owners.entry(packet.src.ip()).or_insert(node);
        }
        // A proxy on the way, such as Snoop, sends packets of the source again.
        let source = self.owners.get(&packet.src.ip()).copied().unwrap_or(node);
        let Some((flow, from)) = self.flow_of(now, packet) else {
            self.uncounted_packets += 1;
            return;
        };
        let connection = &mut self.flows[flow];
        connection.nodes[from] = Some(source);
        let offset = connection.directions[from].record_sent(now, packet);
        let (len, payload) = (packet.len, packet.payload);
        self.remember(
            packet.identity,
            Passage {
                flow,
                from,
                arrival: Arrival { sent: now, len, payload, offset, forwarded: 0 },
                destination: packet.dst.ip(),
                at: None,
                is_delivered: false,
            },
        );
    }

    /// Records that a packet comes to the kernel of `node`.
    fn left(&mut self, now: Instant, node: NodeId, packet: &FlowPacket) {
        let known = self.packets.get_mut(&packet.identity);
        let Some(passage) = known.and_then(|all| all.iter_mut().find(|one| one.at.is_none())) else { return };
        passage.at = Some(node);
        let is_there = self.owners.get(&passage.destination).is_none_or(|owner| *owner == node);
        if is_there && !passage.is_delivered {
            passage.is_delivered = true;
            let connection = &mut self.flows[passage.flow];
            connection.nodes[1 - passage.from].get_or_insert(node);
            connection.directions[passage.from].record_received(now, passage.arrival, connection.since);
        }
    }

    /// Returns the number of the flow of a packet, and that of the end that sends it.
    fn flow_of(&mut self, now: Instant, packet: &FlowPacket) -> Option<(usize, usize)> {
        let FlowPacket { protocol, src, dst, .. } = *packet;
        let key = (protocol, src.min(dst), src.max(dst));
        let flow = match self.numbers.get(&key) {
            Some(&flow) => flow,
            None if self.flows.len() >= MAX_FLOWS => return None,
            None => {
                self.flows.push(Connection {
                    protocol,
                    ends: [src, dst],
                    nodes: [None; 2],
                    since: now,
                    directions: Default::default(),
                });
                self.numbers.insert(key, self.flows.len() - 1);
                self.flows.len() - 1
            }
        };
        Some((flow, usize::from(self.flows[flow].ends[0] != src)))
    }

    fn remember(&mut self, identity: u64, passage: Passage) {
        let now = passage.arrival.sent;
        let is_old = |sent: Instant| now.since(sent) > MEMORY;
        while let Some(&(sent, oldest)) =
            self.order.front().filter(|(sent, _)| is_old(*sent) || self.order.len() >= MAX_PACKETS)
        {
            self.order.pop_front();
            if let Some(all) = self.packets.get_mut(&oldest) {
                all.retain(|one| one.arrival.sent != sent);
                if all.is_empty() {
                    self.packets.remove(&oldest);
                }
            }
        }
        self.order.push_back((now, identity));
        self.packets.entry(identity).or_default().push(passage);
    }
}

impl Tracer for FlowTracker {
    fn trace(&mut self, now: Instant, node: NodeId, event: TraceEvent<'_>) {
        self.queues.advance(now);
        let packet = |view: PacketView<'_>| match &view.packet.body {
            Body::Ethernet(tap_frame) => FlowPacket::of(&tap_frame.frame),
            _ => None,
        };
        match event {
            TraceEvent::Originated(view) => {
                if let Some(packet) = packet(view) {
                    self.entered(now, node, &packet);
                }
            }
            TraceEvent::Delivered(view) => {
                if let Some(packet) = packet(view) {
                    self.left(now, node, &packet);
                }
            }
            TraceEvent::Queued { before, after } => {
                self.queues.packets[node.index()] += after as i64 - before as i64;
            }
            _ => {}
        }
    }
}

impl QueueSeries {
    /// Keeps the lengths at the ends of the seconds before `now`.
    fn advance(&mut self, now: Instant) {
        let second = (now.as_nanos() / 1_000_000_000) as usize;
        while self.seconds.len() < second {
            let lengths = self.packets.iter().map(|packets| (*packets).clamp(0, u16::MAX.into()) as u16);
            self.seconds.push(lengths.collect());
        }
    }

    fn at(&self, second: usize, node: Option<NodeId>) -> u32 {
        let lengths = self.seconds.get(second);
        node.and_then(|node| Some(lengths?[node.index()].into())).unwrap_or(0)
    }
}

impl Connection {
    /// Returns the flow. `held`: packets in flight from each end, and their bytes.
    fn finish(mut self, now: Instant, held: [(u64, u64); 2], queues: &QueueSeries) -> RealFlow {
        for (direction, (packets, bytes)) in self.directions.iter_mut().zip(held) {
            direction.counts.finish(packets, bytes);
        }
        let [first, second] = &self.directions;
        let source = usize::from(second.payload_sent > first.payload_sent);
        let [data, reverse] = [source, 1 - source].map(|number| &self.directions[number]);
        let ends = [source, 1 - source].map(|number| self.ends[number]);
        let nodes = [source, 1 - source].map(|number| self.nodes[number]);
        let mut series = data.series(now.as_nanos() / 1_000_000_000);
        for (second, sample) in series.iter_mut().enumerate() {
            *sample = FlowSample { queue_packets: queues.at(second, nodes[0]), ..*sample };
        }
        let active_time = data.last_progress.map_or(Duration::ZERO, |last| last.since(self.since));
        let outcome = FlowOutcome {
            bytes_received: data.payload_received,
            counting_since: self.since,
            active_time,
            longest_silence: data.longest_silence,
            segments_sent: data.segments_sent,
            retransmissions: data.retransmissions,
            duplicates: data.duplicates,
            segments_received: data.segments_received,
            connected: if data.payload_received > 0 { Connected::Yes } else { Connected::Never },
            ports: ends.map(|end| end.port()),
            data: data.counts.clone(),
            reverse: reverse.counts.clone(),
            series,
            ..FlowOutcome::default()
        };
        RealFlow { protocol: self.protocol, src: ends[0], dst: ends[1], nodes, outcome }
    }
}

/// Returns the address that the kernel makes of the MAC address of a node's interface (RFC 4291, appendix A).
fn link_local(node: NodeId) -> Ipv6Addr {
    let mac = hopline_wire::dot11::MacAddr::of_node(node).0;
    let word = |high: u8, low: u8| u16::from_be_bytes([high, low]);
    let words = [word(mac[0] ^ 2, mac[1]), word(mac[2], 0xff), word(0xfe, mac[3]), word(mac[4], mac[5])];
    Ipv6Addr::new(0xfe80, 0, 0, 0, words[0], words[1], words[2], words[3])
}
