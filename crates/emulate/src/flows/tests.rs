//! Exchanges of packets between three nodes in a row, seen at their taps.

use super::*;
use bytes::Bytes;
use hopline_wire::ethernet::{Frame, IPV4, IPV6};
use hopline_wire::ip::{Ecn, Protocol};
use hopline_wire::{ipv4, ipv6};
use packet::SegmentFields;

const MS: fn(u64) -> Instant = Instant::from_millis;

/// A tracker of three nodes, the addresses of which are 10.0.0.1 to 10.0.0.3.
fn tracker() -> FlowTracker {
    FlowTracker {
        owners: (0..3).map(NodeId).map(|node| (node.ipv4().into(), node)).collect(),
        packets: BTreeMap::new(),
        order: VecDeque::new(),
        flows: Vec::new(),
        numbers: BTreeMap::new(),
        uncounted_packets: 0,
        queues: QueueSeries { packets: vec![0; 3], seconds: Vec::new() },
    }
}

fn end(node: u32, port: u16) -> SocketAddr {
    SocketAddr::new(NodeId(node).ipv4().into(), port)
}

fn datagram(identity: u64, payload: u32) -> FlowPacket {
    let (src, dst) = (end(0, 1000), end(2, 7));
    FlowPacket { protocol: FlowProtocol::Udp, src, dst, len: payload + 28, payload, identity, segment: None }
}

/// A segment from node 0 to node 2, or back.
fn segment(identity: u64, is_back: bool, sequence: u32, payload: u32, is_first: bool) -> FlowPacket {
    let ends = [end(0, 1000), end(2, 80)];
    let [src, dst] = if is_back { [ends[1], ends[0]] } else { ends };
    let segment = Some(SegmentFields { sequence, is_first });
    FlowPacket { protocol: FlowProtocol::Tcp, src, dst, len: payload + 40, payload, identity, segment }
}

/// Carries a packet from node 0 to node 2 by way of node 1, or back, 10 ms for each hop.
fn carry(tracker: &mut FlowTracker, at_ms: u64, packet: &FlowPacket) {
    let from = if packet.src.ip() == end(0, 0).ip() { 0 } else { 2 };
    tracker.entered(MS(at_ms), NodeId(from), packet);
    tracker.left(MS(at_ms + 10), NodeId(1), packet);
    tracker.entered(MS(at_ms + 10), NodeId(1), packet);
    tracker.left(MS(at_ms + 20), NodeId(2 - from), packet);
}

fn only(flows: &RealFlows) -> &RealFlow {
    let [flow] = &*flows.flows else { panic!("{flows:?}") };
    flow
}

#[test]
fn a_packet_counts_once_however_many_hops_it_takes() {
    let mut tracker = tracker();
    carry(&mut tracker, 0, &datagram(1, 500));
    carry(&mut tracker, 1500, &datagram(2, 500));
    tracker.entered(MS(2000), NodeId(0), &datagram(3, 500));
    let flows = tracker.finish(MS(4500));
    let flow = only(&flows);
    assert_eq!((flow.protocol, flow.src, flow.dst), (FlowProtocol::Udp, end(0, 1000), end(2, 7)));
    assert_eq!(flow.nodes, [Some(NodeId(0)), Some(NodeId(2))]);
    let data = &flow.outcome.data;
    assert_eq!((data.sent, data.received, data.lost, data.forwarded), (3, 2, 1, 2));
    assert_eq!((data.sent_bytes, data.delays.mean_s()), (3 * 528, Some(0.02)));
    assert_eq!((flow.outcome.bytes_received, flow.outcome.active_time), (1000, Duration::from_millis(1520)));
    let series: Vec<_> = flow.outcome.series.iter().map(|sample| sample.bytes_received).collect();
    assert_eq!(series, [500, 1000, 1000, 1000]);
}

#[test]
fn a_packet_of_the_last_second_is_in_flight_and_not_lost() {
    let mut tracker = tracker();
    tracker.entered(MS(100), NodeId(0), &datagram(1, 10));
    tracker.entered(MS(1500), NodeId(0), &datagram(2, 10));
    assert_eq!(only(&tracker.finish(MS(2000))).outcome.data.lost, 1);
}

#[test]
fn retransmissions_are_known_by_their_sequence_numbers() {
    let mut tracker = tracker();
    carry(&mut tracker, 0, &segment(1, false, 100, 0, true));
    carry(&mut tracker, 50, &segment(2, true, 900, 0, true));
    carry(&mut tracker, 100, &segment(3, false, 100, 1000, false));
    // The second one is lost, the third comes, and the second again.
    tracker.entered(MS(110), NodeId(0), &segment(4, false, 1100, 1000, false));
    carry(&mut tracker, 120, &segment(5, false, 2100, 1000, false));
    carry(&mut tracker, 200, &segment(6, true, 900, 0, false));
    carry(&mut tracker, 400, &segment(7, false, 1100, 1000, false));
    // In vain.
    carry(&mut tracker, 500, &segment(8, false, 1100, 1000, false));
    let flows = tracker.finish(MS(3000));
    let flow = only(&flows);
    let FlowOutcome { segments_sent, retransmissions, duplicates, segments_received, .. } = flow.outcome;
    assert_eq!((segments_sent, retransmissions, duplicates, segments_received), (5, 2, 1, 3));
    assert_eq!((flow.outcome.bytes_received, flow.outcome.data.lost), (3000, 1));
    assert_eq!((flow.outcome.reverse.sent, flow.outcome.reverse.received), (2, 2));
    assert_eq!(flow.outcome.active_time, Duration::from_millis(420));
}

#[test]
fn the_source_of_a_flow_is_the_end_that_sends_more_data() {
    let mut tracker = tracker();
    carry(&mut tracker, 0, &segment(1, false, 0, 100, false));
    carry(&mut tracker, 100, &segment(2, true, 0, 1400, false));
    let flows = tracker.finish(MS(1000));
    assert_eq!((only(&flows).src, only(&flows).nodes[0]), (end(2, 80), Some(NodeId(2))));
    assert_eq!((only(&flows).outcome.bytes_received, only(&flows).outcome.ports), (1400, [80, 1000]));
}

#[test]
fn an_address_that_a_program_adds_is_learnt_from_what_it_sends() {
    let mut tracker = tracker();
    let other: SocketAddr = "[fd00::2]:9".parse().unwrap();
    let there = FlowPacket { src: other, dst: end(0, 1000), ..datagram(1, 10) };
    tracker.entered(MS(0), NodeId(2), &there);
    carry(&mut tracker, 10, &FlowPacket { dst: other, ..datagram(2, 10) });
    let flows = tracker.finish(MS(20));
    assert_eq!(only(&flows).nodes, [Some(NodeId(2)), Some(NodeId(0))]);
    // Not at the router.
    assert_eq!(only(&flows).outcome.reverse.delays.mean_s(), Some(0.02));
}

#[test]
fn what_a_proxy_on_the_way_sends_again_is_from_the_source() {
    let mut tracker = tracker();
    carry(&mut tracker, 0, &segment(1, false, 0, 1000, false));
    tracker.entered(MS(50), NodeId(1), &segment(1, false, 0, 1000, false));
    let flows = tracker.finish(MS(1000));
    assert_eq!(only(&flows).nodes, [Some(NodeId(0)), Some(NodeId(2))]);
    assert_eq!(only(&flows).outcome.retransmissions, 1);
}

#[test]
fn flows_and_packets_are_remembered_in_bounded_numbers() {
    let mut tracker = tracker();
    for number in 0..MAX_PACKETS as u64 + 10 {
        let src = SocketAddr::new(end(0, 0).ip(), (number % 1100) as u16);
        tracker.entered(MS(number / 10), NodeId(0), &FlowPacket { src, ..datagram(number, 10) });
    }
    assert_eq!(tracker.flows.len(), MAX_FLOWS);
    assert!(tracker.order.len() <= MAX_PACKETS && tracker.packets.len() <= MAX_PACKETS);
    assert!(tracker.uncounted_packets > 5000);
    let src = SocketAddr::new(end(0, 0).ip(), 1);
    tracker.entered(MS(60_000), NodeId(0), &FlowPacket { src, ..datagram(1, 10) });
    assert_eq!((tracker.order.len(), tracker.packets.len()), (1, 1));
}

fn frame(ethertype: u16, packet: &[u8]) -> Frame {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0];
    bytes.extend(ethertype.to_be_bytes());
    bytes.extend_from_slice(packet);
    bytes.extend([0; 5]); // padding
    Frame::parse(&Bytes::from(bytes)).unwrap()
}

/// A segment of 10 bytes from port 5 to 80 with sequence number 256, and a SYN or not.
fn tcp(flags: u8) -> Vec<u8> {
    let mut bytes = vec![0, 5, 0, 80, 0, 0, 1, 0, 0, 0, 0, 0, 0x50, flags, 0, 9, 0, 0, 0, 0];
    bytes.extend([7; 10]);
    bytes
}

fn ipv4_packet(ttl: u8, transport: &[u8]) -> Vec<u8> {
    let (src, dst) = (NodeId(0).ipv4(), NodeId(2).ipv4());
    let mut packet = Vec::new();
    let header = ipv4::Header { src, dst, ttl, protocol: Protocol::Tcp, ecn: Ecn::NotCapable, id: 7 };
    header.emit(transport.len(), &mut packet);
    packet.extend_from_slice(transport);
    packet
}

#[test]
fn a_frame_has_the_packet_of_a_flow_whatever_its_hop_limit() {
    let first = FlowPacket::of(&frame(IPV4, &ipv4_packet(64, &tcp(0x10)))).unwrap();
    assert_eq!((first.src, first.dst, first.len, first.payload), (end(0, 5), end(2, 80), 50, 10));
    assert_eq!(first.segment, Some(SegmentFields { sequence: 256, is_first: false }));
    assert_eq!(FlowPacket::of(&frame(IPV4, &ipv4_packet(63, &tcp(0x10)))), Some(first));
    let syn = FlowPacket::of(&frame(IPV4, &ipv4_packet(64, &tcp(0x02)))).unwrap();
    assert_eq!(syn.segment, Some(SegmentFields { sequence: 257, is_first: true }));
    assert_ne!(syn.identity, first.identity);
    let [src, dst] = [1, 2].map(|n| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n));
    let v6 = |hop_limit| {
        let ecn = Ecn::NotCapable;
        let header = ipv6::Header { src, dst, hop_limit, protocol: Protocol::Udp, ecn, flow_label: 0 };
        let mut packet = Vec::new();
        header.emit(12, &mut packet);
        packet.extend([0, 5, 0, 7, 0, 12, 0, 0, 1, 2, 3, 4]);
        FlowPacket::of(&frame(IPV6, &packet)).unwrap()
    };
    assert_eq!((v6(5).src, v6(5).len, v6(5).payload), (SocketAddr::new(src.into(), 5), 52, 4));
    assert_eq!(v6(5), v6(4));
}

#[test]
fn frames_without_a_flow_are_left_out_whatever_they_contain() {
    let whole = ipv4_packet(64, &tcp(0x10));
    let mut fragment = whole.clone();
    fragment[6] = 0x20;
    assert_eq!(FlowPacket::of(&frame(IPV4, &fragment)), None);
    assert_eq!(FlowPacket::of(&frame(0x88b5, &whole)), None);
    for len in 0..whole.len() {
        for transport in [&whole[..len], &whole[20..20 + len.min(30)]] {
            FlowPacket::of(&frame(IPV4, transport));
            FlowPacket::of(&frame(IPV6, transport));
        }
        let short = ipv4_packet(64, &tcp(0x10)[..len.min(13)]);
        assert_eq!(FlowPacket::of(&frame(IPV4, &short)), None, "{len}");
    }
    let mut offset = tcp(0x10);
    offset[12] = 0xf0;
    assert_eq!(FlowPacket::of(&frame(IPV4, &ipv4_packet(64, &offset))), None, "a header beyond the end");
}

#[test]
fn the_link_local_address_of_a_node_is_that_of_its_kernel() {
    assert_eq!(link_local(NodeId(1)), "fe80::ff:fe00:1".parse::<Ipv6Addr>().unwrap());
}
