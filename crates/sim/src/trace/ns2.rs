//! A trace in ns-2's old wireless format, for the scripts that read it.
//!
//! A line each for what the application (AGT), the network layer (RTR), the MAC and the interface queue (IFQ) send (s),
//! receive (r), pass on (f) and drop (D):
//!
//! ```text
//! s 1.034543844 _0_ AGT  --- 2 tcp 1500 [0 0 0 0] ------- [0:49152 3:9 64 0] [1 1] 0 0
//! ```
//!
//! Packets that agents send are numbered from 0 in their order, without holes; all other packets have 0, as
//! routing packets have in ns-2.
//!
//! Fields: event, time, node, layer, reason, number of the packet, type, bytes; the MAC header in hexadecimal
//! (duration, to, from, type); source and destination with their ports, hop limit, next hop; of TCP the sequence and
//! acknowledgment numbers, of TPA 256 times the block number plus the transmission number, of datagrams their number; how
//! often the packet was passed on. As ns-2 has it, TCP counts 40 bytes of headers at AGT (so does TPA here), datagrams
//! none, and a data frame 58. Sequence numbers count bytes as ns-2's FullTcp does,
//! the SYN being 0. Wired links have MAC lines without addresses.

use super::{DropReason, PacketView, TraceEvent, Tracer};
use crate::packet::{Body, Packet};
use crate::spec::{Spec, radios};
use core::fmt::Arguments;
use hopline_core::{Instant, Length, LinkId, NodeId, Payload, Seq32};
use hopline_routing::router;
use hopline_transport::any;
use hopline_wire::aodv::Message;
use hopline_wire::dot11::{self, Frame, MacAddr};
use hopline_wire::dsr::{self, DsrOption, ErrorKind};
use hopline_wire::tcp::{Flags, Segment};
use hopline_wire::tpa;
use hopline_wire::{dproxy, handoff as wire_handoff, ncn, olsr};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::net::Ipv4Addr;

/// Bytes that ns-2's agents count for the headers of TCP and IP.
const TCP_HEADERS: u64 = 40;
/// ns-2's 802.11 header of a data frame, physical layer included.
const DATA_HEADERS: u32 = 58;
/// ns-2's physical layer header, in front of control frames.
const PLCP: usize = 24;
/// Port of ns-2's routing agents.
const ROUTING_PORT: u16 = 255;

/// Writes the trace. After the first write error nothing more is written; [`Ns2Tracer::finish`] returns it.
#[derive(Debug)]
pub struct Ns2Tracer<W: Write> {
    out: W,
    /// Flows: the source address of the data, and the numbers of the SYNs of both ends.
    flows: Vec<(Ipv4Addr, [Option<Seq32>; 2])>,
    /// Serial numbers of the packets of the run that agents have sent, ascending. The position here is the
    /// packet's number in the trace.
    sent: Vec<u64>,
    /// Addresses of all radios.
    addresses: BTreeSet<(NodeId, LinkId, MacAddr)>,
    failed: io::Result<()>,
}

/// Place on its route at which a packet is observed.
#[derive(Clone, Copy)]
struct TracePoint {
    now: Instant,
    node: NodeId,
    event: char,
    layer: &'static str,
    reason: &'static str,
    next_hop: Option<NodeId>,
    mac: (u16, MacAddr, MacAddr),
}

impl TracePoint {
    fn at(now: Instant, node: NodeId, event: char, layer: &'static str) -> Self {
        let mac = (0, MacAddr::default(), MacAddr::default());
        Self { now, node, event, layer, reason: "---", next_hop: None, mac }
    }
}

impl<W: Write> Ns2Tracer<W> {
    /// Creates a trace of a run of `spec`.
    pub fn new(out: W, spec: &Spec) -> Self {
        let flows = spec.flows.iter().map(|flow| (flow.src.ipv4(), [None; 2])).collect();
        let radios = radios(&spec.nodes).into_iter();
        let addresses =
            radios.map(|radio| (radio.node, LinkId(radio.number.into()), radio.address)).collect();
        Self { out, flows, sent: Vec::new(), addresses, failed: Ok(()) }
    }

    /// Ends the trace.
    ///
    /// # Errors
    /// The first error that writing met.
    pub fn finish(mut self) -> io::Result<W> {
        self.failed?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn write(&mut self, line: Arguments<'_>) {
        if self.failed.is_ok() {
            self.failed = self.out.write_fmt(line);
        }
    }

    /// Writes a line about a packet.
    fn write_packet(&mut self, seen: TracePoint, view: PacketView<'_>) {
        let PacketView { packet, ttl, inner: carried, .. } = view;
        // Data behind a DSR header are data.
        let shown = carried.unwrap_or(packet);
        let (kind, sport, dport) = match &shown.body {
            Body::Segment(segment) => {
                let [sport, dport] = segment.ports();
                (ns2_packet_type(segment), sport, dport)
            }
            Body::Udp { datagram, .. } => ("cbr", datagram.src_port, datagram.dst_port),
            Body::Routing { message, .. } => (message.name(), ROUTING_PORT, ROUTING_PORT),
            // ns-2 has the type and no such packet.
            Body::Icmp(_) => ("icmp", 0, 0),
            Body::Ncn(_) => ("message", ncn::PORT, ncn::PORT),
            Body::Handoff(_) => ("message", wire_handoff::PORT, wire_handoff::PORT),
            Body::DProxy(_) => ("message", dproxy::PORT, dproxy::PORT),
            Body::Link(_) | Body::Handover(_) | Body::Tunnel(_) => ("message", 0, 0),
            Body::Arp(_) => ("ARP", 0, 0),
            Body::Ethernet(frame) => ("message", frame.ports[0], frame.ports[1]),
            Body::External(opaque) => {
                let [sport, dport] = opaque.ports().unwrap_or_default();
                ("message", sport, dport)
            }
        };
        let number = self.sent.binary_search(&shown.serial).unwrap_or(0);
        let TracePoint { now, node, event, layer, reason, next_hop, mac: (duration_us, to, from) } = seen;
        let size = ns2_size(packet, layer, event);
        let ethertype = if to == MacAddr::default() { 0 } else { 0x800 };
        let next_hop = next_hop.map_or(0, |hop| i64::from(hop.0));
        let (at, nanos) = (now.as_nanos() / 1_000_000_000, now.as_nanos() % 1_000_000_000);
        self.write(format_args!(
            "{event} {at}.{nanos:09} _{}_ {layer}  {reason} {number} {kind} {size} [{duration_us:x} {:x} {:x} {ethertype:x}] ------- [{}:{sport} {}:{dport} {ttl} {next_hop}] ",
            node.0, ns2_station(to), ns2_station(from), ns2_host(packet.ip.src), ns2_host(packet.ip.dst),
        ));
        let forwards = packet.ip.ttl - ttl.min(packet.ip.ttl);
        match &shown.body {
            Body::Segment(segment) => {
                let (seq, ack) = match segment {
                    any::Segment::Tcp(segment) => self.positions(shown, segment),
                    any::Segment::Tpa { segment, .. } => (
                        tpa_number(segment.block, segment.tx),
                        segment.ack.map_or(0, |a| tpa_number(a.block, a.tx)),
                    ),
                    any::Segment::Wide { packet, .. } => {
                        (packet.number as u32, packet.ack.as_ref().map_or(0, |ack| ack.largest() as u32))
                    }
                    // Its acknowledgments are in frames that are not read here.
                    any::Segment::Quic { datagram, .. } => (datagram.data.start as u32, 0),
                };
                self.write(format_args!("[{seq} {ack}] {forwards} 0\n"));
            }
            Body::Udp { number, .. } => self.write(format_args!("[{number}] {forwards} 0\n")),
            Body::Routing { message, .. } => match message {
                router::Message::Aodv(message) => self.write_aodv(message),
                router::Message::Olsr(packet) => self.write_olsr(packet),
                router::Message::Dsr { header, .. } => self.write_dsr(packet, header),
            },
            Body::Icmp(_)
            | Body::Ncn(_)
            | Body::Handoff(_)
            | Body::Handover(_)
            | Body::Link(_)
            | Body::DProxy(_)
            | Body::Tunnel(_)
            | Body::Arp(_)
            | Body::External(_)
            | Body::Ethernet(_) => self.write(format_args!("\n")),
        }
    }

    /// Writes the part after the IP header of an OLSR packet. ns-2.35 has no OLSR and so no form for it:
    /// packet number, and of each message type, originator, number, hops left and hops taken.
    fn write_olsr(&mut self, packet: &olsr::Packet) {
        self.write(format_args!("[{}]", packet.seq));
        for message in &packet.messages {
            let (kind, from) = (message.body.kind(), ns2_host(message.originator));
            self.write(format_args!(
                " [0x{kind:x} {from} {} {} {}]",
                message.seq, message.ttl, message.hop_count
            ));
        }
        self.write(format_args!(" (OLSR)\n"));
    }

    /// Writes the part after the IP header of a DSR packet without data: length of the route; whether it is a
    /// request, and its number; whether it is a reply, the length of its route and where that begins and
    /// ends; whether it is an error, how many, its destination and which link failed.
    fn write_dsr(&mut self, packet: &Packet, header: &dsr::Header) {
        let (mut route, mut request, mut reply, mut error) = (0, (0, 0), (0, 0, 0, 0), (0, 0, 0, 0));
        for option in &header.options {
            match option {
                DsrOption::SourceRoute(m) => route = m.path.len() + 2,
                DsrOption::Request(m) => (route, request) = (m.path.len() + 1, (1, m.id)),
                DsrOption::Reply(m) => {
                    let target = m.path.last().map_or(-1, |last| ns2_host(*last));
                    reply = (1, m.path.len() + 1, ns2_host(packet.ip.dst), target);
                }
                DsrOption::Error(m) => {
                    let lost = match m.kind {
                        ErrorKind::NodeUnreachable(node) => ns2_host(node),
                        ErrorKind::Other { .. } => -1,
                    };
                    error = (error.0 + 1, ns2_host(m.destination), ns2_host(m.source), lost);
                }
                DsrOption::AckRequest(_) | DsrOption::Ack(_) | DsrOption::Unknown { .. } => {}
            }
        }
        let ((is_request, id), (is_reply, len, from, to)) = (request, reply);
        let (errors, told, near, far) = error;
        let is_error = errors.min(1);
        self.write(format_args!(
            "{route} [{is_request} {id}] [{is_reply} {id} {len} {from}->{to}] [{is_error} {errors} {told} {near}->{far}]\n"
        ));
    }

    /// Writes the part after the IP header of an AODV message.
    fn write_aodv(&mut self, message: &Message) {
        match message {
            Message::Rreq(m) => self.write(format_args!(
                "[0x2 {} {} [{} {}] [{} {}]] (REQUEST)\n",
                m.hop_count,
                m.id,
                ns2_host(m.destination),
                m.destination_seq.map_or(0, |seq| seq.0),
                ns2_host(m.originator),
                m.originator_seq.0
            )),
            Message::Rrep(m) => self.write(format_args!(
                "[0x4 {} [{} {}] {:.6}] ({})\n",
                m.hop_count,
                ns2_host(m.destination),
                m.destination_seq.0,
                m.lifetime.as_secs_f64(),
                if m.originator == m.destination { "HELLO" } else { "REPLY" }
            )),
            Message::Rerr(m) => {
                let (first, seq) =
                    m.unreachable.first().copied().unwrap_or((Ipv4Addr::UNSPECIFIED, Seq32(0)));
                let count = m.unreachable.len();
                self.write(format_args!("[0x8 {count} [{} {}] 0.000000] (ERROR)\n", ns2_host(first), seq.0));
            }
            Message::RrepAck => self.write(format_args!("[0x10] (REPLY-ACK)\n")),
        }
    }

    /// Returns the sequence and acknowledgment number of a segment, counted from the SYNs.
    fn positions(&self, packet: &Packet, segment: &Segment<Length>) -> (u32, u32) {
        let Some((source, starts)) = packet.account.flow().and_then(|flow| self.flows.get(flow.index()))
        else {
            return (segment.seq.0, segment.ack.0);
        };
        let own = usize::from(packet.ip.src != *source);
        let since = |start: Option<Seq32>, seq: Seq32| start.map_or(0, |start| seq.0.wrapping_sub(start.0));
        let acked = segment.flags.contains(Flags::ACK);
        (since(starts[own], segment.seq), if acked { since(starts[1 - own], segment.ack) } else { 0 })
    }

    /// Notes the number of a SYN.
    fn learn_syn(&mut self, packet: &Packet) {
        if let Body::Segment(any::Segment::Tcp(segment)) = &packet.body
            && segment.flags.contains(Flags::SYN)
            && let Some((source, starts)) =
                packet.account.flow().and_then(|flow| self.flows.get_mut(flow.index()))
        {
            starts[usize::from(packet.ip.src != *source)] = Some(segment.seq);
        }
    }

    /// Writes a line about a frame.
    fn write_frame(&mut self, now: Instant, node: NodeId, event: char, frame: &Frame<PacketView<'_>>) {
        let (kind, len, ta) = match *frame {
            Frame::Rts { ta, .. } => ("RTS", dot11::RTS_LEN, ta),
            Frame::Cts { .. } => ("CTS", dot11::CTS_LEN, MacAddr::default()),
            Frame::Ack { .. } => ("ACK", dot11::ACK_LEN, MacAddr::default()),
            Frame::BlockAckReq { ta, .. } => ("BAR", dot11::BLOCK_ACK_REQ_LEN, ta),
            Frame::BlockAck { ta, .. } => ("BA", dot11::BLOCK_ACK_LEN, ta),
            Frame::Action { ta, action, .. } => ("ACT", action.frame_len(), ta),
            Frame::Data { body, ta, .. } | Frame::QosData { body, ta, .. } => {
                let mac = (frame.duration_us(), frame.ra(), ta);
                let next_hop = frame.ra().node();
                self.write_packet(
                    TracePoint { mac, next_hop, ..TracePoint::at(now, node, event, "MAC") },
                    body,
                );
                return;
            }
        };
        let (at, nanos) = (now.as_nanos() / 1_000_000_000, now.as_nanos() % 1_000_000_000);
        self.write(format_args!(
            "{event} {at}.{nanos:09} _{}_ MAC  --- 0 {kind} {} [{:x} {:x} {:x} 0] \n",
            node.0,
            len + PLCP,
            frame.duration_us(),
            ns2_station(frame.ra()),
            ns2_station(ta)
        ));
    }
}

impl<W: Write + 'static> Tracer for Ns2Tracer<W> {
    fn trace(&mut self, now: Instant, node: NodeId, event: TraceEvent<'_>) {
        let seen = |event, layer| TracePoint::at(now, node, event, layer);
        match event {
            TraceEvent::Originated(packet) => {
                self.learn_syn(packet.packet);
                self.sent.push(packet.packet.serial);
                self.write_packet(seen('s', "AGT"), packet);
                self.write_packet(seen('r', "RTR"), packet);
            }
            TraceEvent::Arrived(packet) => self.write_packet(seen('r', "RTR"), packet),
            TraceEvent::Routed { packet, next_hop } => {
                let own = packet.ttl == packet.packet.ip.ttl;
                self.write_packet(
                    TracePoint { next_hop, ..seen(if own { 's' } else { 'f' }, "RTR") },
                    packet,
                );
            }
            TraceEvent::Delivered(packet) => self.write_packet(seen('r', "AGT"), packet),
            TraceEvent::FrameSent { frame, .. } => self.write_frame(now, node, 's', frame),
            // ns-2's MAC passes on what is for it, and says nothing of the rest.
            TraceEvent::FrameReceived { link, frame } => {
                if frame.ra().is_group() || self.addresses.contains(&(node, link, frame.ra())) {
                    self.write_frame(now, node, 'r', frame);
                }
            }
            TraceEvent::PacketSent { packet, .. } => self.write_packet(seen('s', "MAC"), packet),
            TraceEvent::PacketReceived(packet) => self.write_packet(seen('r', "MAC"), packet),
            TraceEvent::Dropped { packet, reason, .. } => {
                let (layer, reason) = ns2_drop_names(reason);
                self.write_packet(TracePoint { reason, ..seen('D', layer) }, packet);
            }
            TraceEvent::Signalled { .. }
            | TraceEvent::FrameLost { .. }
            | TraceEvent::Queued { .. }
            | TraceEvent::Transport { .. } => {}
        }
    }
}

/// Returns the layer and reason of a drop, as ns-2 names them (ns-2.35, trace/cmu-trace.h).
const fn ns2_drop_names(reason: DropReason) -> (&'static str, &'static str) {
    use hopline_routing::DropReason as Routing;
    match reason {
        DropReason::QueueFull | DropReason::Early | DropReason::Neighborhood => ("IFQ", "---"),
        DropReason::RetryLimit => ("MAC", "RET"),
        DropReason::LinkError | DropReason::Outage => ("MAC", "ERR"),
        DropReason::Policed => ("IFQ", "POL"),
        DropReason::Ttl => ("RTR", "TTL"),
        DropReason::Unresolved => ("IFQ", "ARP"),
        DropReason::NoNeighbour | DropReason::NoRoute | DropReason::OtherCell => ("RTR", "NRTE"),
        DropReason::Routing(reason) => match reason {
            Routing::NoRoute
            | Routing::DiscoveryFailed
            | Routing::RepairFailed
            | Routing::Unroutable
            | Routing::BadRoute => ("RTR", "NRTE"),
            Routing::BufferFull => ("RTR", "IFQ"),
            Routing::BufferTimeout => ("RTR", "TOUT"),
            Routing::LinkFailure => ("RTR", "CBK"),
            Routing::RoutingLoop => ("RTR", "LOOP"),
            Routing::TtlExpired => ("RTR", "TTL"),
        },
    }
}

/// Segments with data and connection requests are called after their transport, all others "ack".
fn ns2_packet_type(segment: &any::Segment<Length>) -> &'static str {
    let (name, requests) = match segment {
        any::Segment::Tcp(s) => ("tcp", s.flags.contains(Flags::SYN) && !s.flags.contains(Flags::ACK)),
        any::Segment::Tpa { segment: s, .. } => ("tpa", s.control == tpa::Control::Syn && s.ack.is_none()),
        any::Segment::Wide { packet, .. } => ("tpa-wide", packet.opening.is_some() && packet.ack.is_none()),
        any::Segment::Quic { datagram, .. } => ("quic", datagram.is_initial()),
    };
    if requests || segment.data_len() > 0 { name } else { "ack" }
}

/// Returns the block and the transmission as one number that rises from one transmission to the next.
fn tpa_number(block: u16, tx: u8) -> u32 {
    u32::from(block) << 8 | u32::from(tx)
}

/// Returns the bytes of a packet as `layer` counts them.
fn ns2_size(packet: &Packet, layer: &str, event: char) -> u64 {
    match (layer, &packet.body) {
        ("AGT", Body::Segment(segment)) => segment.data_len() + TCP_HEADERS,
        ("AGT", Body::Udp { datagram, .. }) => datagram.payload.len(),
        ("MAC", _) if event == 's' => u64::from(packet.len_bytes + DATA_HEADERS),
        _ => packet.len_bytes.into(),
    }
}

/// Returns a node's number, as ns-2's flat addresses are; -1 for broadcast.
fn ns2_host(address: Ipv4Addr) -> i64 {
    NodeId::from_ipv4(address).map_or(-1, |node| node.0.into())
}

/// Returns a node's number; all ones for broadcast, 0 for none.
fn ns2_station(address: MacAddr) -> u32 {
    if address == MacAddr::default() { 0 } else { address.node().map_or(u32::MAX, |node| node.0) }
}
