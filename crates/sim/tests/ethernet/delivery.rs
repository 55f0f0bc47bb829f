//! Frames that arrive: at the right time, unchanged, with and without an ACK.

use super::{Dialogue, EXPERIMENT, experiment, frame, host, near, row, tap};
use crate::support::{SpecBuilder, at, chain, link, ns2_tcp, wired};
use bytes::Bytes;
use hopline_core::{Duration, Instant, NodeId, Purpose, RandomStream};
use hopline_queue::{RedConfig, SignalAction};
use hopline_sim::spec::Discipline;
use hopline_sim::trace::PcapTracer;
use hopline_sim::{EgressFrame, HostInterface, Medium, NoTrace, TapCounts, World, simulate};
use hopline_wire::arp::{self, Message, Operation};
use hopline_wire::dot11::MacAddr;
use hopline_wire::ethernet::{self, Frame};
use hopline_wire::ip::{Ecn, Protocol};
use hopline_wire::{ipv4, ipv6};
use proptest::prelude::*;

/// 802.11b, in µs: long preamble and PLCP header.
const PLCP: f64 = 192.0;
/// Three addresses, LLC/SNAP and FCS.
const OVERHEAD: usize = 24 + 8 + 4;
/// 200 m at the speed of light, in µs.
const PROPAGATION: f64 = 200.0 / 299.792_458;

/// Returns the time of a frame from the network layer of one node to that of the other, in µs. The medium has been idle for
/// more than a DIFS, so that the frame is sent at once (IEEE Std 802.11-2020 §10.3.4.2).
fn one_hop_us(payload: usize, mbps: f64) -> f64 {
    PLCP + (8.0 * (payload + OVERHEAD) as f64 / mbps).ceil() + PROPAGATION
}

/// A packet with 30 bytes of payload, and with ECT(0).
fn ipv4_packet(from: u32, to: u32) -> Vec<u8> {
    let (src, dst) = (NodeId(from).ipv4(), NodeId(to).ipv4());
    let header = ipv4::Header { src, dst, ttl: 9, protocol: Protocol::Other(253), ecn: Ecn::Capable0, id: 7 };
    let mut packet = Vec::new();
    header.emit(30, &mut packet);
    packet.extend([0x77; 30]);
    packet
}

fn ipv6_packet() -> Vec<u8> {
    let [src, dst] = ["fe80::1", "fe80::2"].map(|text| text.parse().expect("an address"));
    let header =
        ipv6::Header { src, dst, hop_limit: 64, protocol: Protocol::Udp, ecn: Ecn::Capable0, flow_label: 0 };
    let mut packet = Vec::new();
    header.emit(8, &mut packet);
    packet.extend([1, 2, 3, 4, 0, 8, 0, 0]);
    packet
}

#[test]
fn a_unicast_frame_takes_the_airtime_of_its_bytes() {
    for payload in [0, 28, 1000, 1500, 2296] {
        let mut talk = Dialogue::new(&row(2));
        let sent = experiment(tap(0), tap(1), payload);
        talk.inject(1000, 0, &sent);
        talk.run_until(1100);
        let [EgressFrame { at: left, node: NodeId(1), frame, .. }] = talk.left.as_slice() else {
            panic!("{:?}", talk.left)
        };
        let took = 1e6 * (*left - at(1.0)).as_secs_f64();
        let expected = one_hop_us(payload, 11.0);
        assert!((took - expected).abs() < 0.01, "{payload} bytes: {took} µs, expected {expected}");
        assert_eq!(frame, &sent);
        let outcome = talk.finish();
        assert_eq!((outcome.nodes[0].frames.data, outcome.nodes[1].frames.ack), (1, 1));
    }
}

#[test]
fn a_frame_and_a_simulated_packet_take_the_same_time() {
    let packet = Bytes::from(ipv4_packet(0, 1));
    let mut of_packet = World::new(&row(2).with_taps(), 1, NoTrace);
    let mut of_frame = World::new(&row(2), 1, NoTrace);
    of_packet.inject(NodeId(0), &packet).expect("a good packet");
    of_frame.inject_frame(NodeId(0), &frame(tap(0), tap(1), ethernet::IPV4, &packet)).expect("a good frame");
    of_packet.run_until(at(1.0));
    of_frame.run_until(at(1.0));
    let times = (of_packet.poll_egress().map(|left| left.at), of_frame.poll_frame().map(|left| left.at));
    assert!(times.0.is_some() && times.0 == times.1, "{times:?}");
}

#[test]
fn a_broadcast_reaches_all_in_range_at_the_basic_rate_without_an_ack() {
    let mut talk = Dialogue::new(&row(4));
    let sent = experiment(tap(1), MacAddr::BROADCAST, 100);
    talk.inject(1000, 1, &sent);
    talk.run_until(1100);
    let expected = one_hop_us(100, 1.0);
    let nodes: Vec<_> = talk.left.iter().map(|left| left.node.0).collect();
    assert_eq!(nodes, [0, 2], "the neighbours, and not the node two hops away");
    for left in &talk.left {
        let took = 1e6 * (left.at - at(1.0)).as_secs_f64();
        assert!((took - expected).abs() < 0.01 && left.frame == sent, "{took} µs, expected {expected}");
    }
    let counts = talk.world.tap_counts(NodeId(1));
    assert_eq!(counts, TapCounts { accepted: 1, delivered: 1, ..TapCounts::default() });
    assert_eq!(talk.world.tap_counts(NodeId(2)).emitted, 1);
    let outcome = talk.finish();
    assert_eq!(outcome.nodes.iter().map(|node| node.frames.total()).sum::<u64>(), 1, "no ACK, no repetition");
}

#[test]
fn multicasts_of_both_ip_versions_reach_all_neighbours_once() {
    let mut talk = Dialogue::new(&near(4));
    for (n, group) in [[0x01, 0, 0x5e, 0, 0, 251], [0x33, 0x33, 0, 0, 0, 1]].into_iter().enumerate() {
        let sent = frame(tap(2), MacAddr(group), ethernet::IPV6, &ipv6_packet());
        talk.inject(1000 + 100 * n as u64, 2, &sent);
        let left = talk.left(1090 + 100 * n as u64);
        assert_eq!(left.iter().map(|(node, _)| *node).collect::<Vec<_>>(), [1, 3, 0]);
        assert!(left.iter().all(|(_, frame)| *frame == sent));
    }
}

#[test]
fn two_hosts_resolve_an_address_by_arp() {
    let mut talk = Dialogue::new(&near(3));
    let message = |operation, sender: u32, target: (MacAddr, u32)| {
        let mut bytes = Vec::new();
        let target = (target.0, NodeId(target.1).ipv4());
        Message { operation, sender: (tap(sender), NodeId(sender).ipv4()), target }.emit(&mut bytes);
        bytes
    };
    let request = message(Operation::Request, 0, (MacAddr::default(), 1));
    talk.inject(100, 0, &frame(tap(0), MacAddr::BROADCAST, arp::ETHERTYPE, &request));
    assert_eq!(talk.left_at(110), [1, 2]);
    let reply = frame(tap(1), tap(0), arp::ETHERTYPE, &message(Operation::Reply, 1, (tap(0), 0)));
    talk.inject(110, 1, &reply);
    assert_eq!(talk.left(120), [(0, reply)]);
    let outcome = talk.finish();
    assert_eq!(outcome.nodes.iter().map(|node| node.frames.ack).collect::<Vec<_>>(), [1, 0, 0]);
}

#[test]
fn frames_cross_a_wire_and_a_radio_beside_it() {
    let spec = row(2).wired_node().link(link(1, 2, 1_000_000, Duration::from_millis(1), 10));
    let spec = spec.ethernet_taps(0..3);
    let mut talk = Dialogue::new(&spec);
    talk.inject(100, 2, &experiment(tap(2), tap(1), 125));
    talk.run_until(110);
    // 125 bytes at 1 Mb/s, and the delay.
    assert_eq!(talk.left[0].at, Instant::from_millis(102));
    assert_eq!(talk.left_at(110), [1]);
    talk.inject(200, 1, &experiment(tap(1), MacAddr::BROADCAST, 125));
    assert_eq!(talk.left_at(210), [0, 2]);
    talk.inject(300, 0, &experiment(tap(0), tap(2), 125));
    assert_eq!(talk.left_at(400), [] as [u32; 0], "frames for other hops are a matter of routers outside");
    assert_eq!(talk.world.tap_counts(NodeId(0)).dropped.unresolved, 1);
}

#[test]
fn frames_of_one_medium_do_not_cross_the_other() {
    // A station between a radio and a wire, with a second wire.
    let wire = |to| link(1, to, 10_000_000, Duration::from_millis(1), 10);
    let spec = row(2).wired_node().wired_node().link(wire(2)).link(wire(3)).ethernet_taps(0..4);
    let mut talk = Dialogue::new(&spec);
    let mut over = |at_ms, medium, to| {
        talk.run_until(at_ms);
        let frame = experiment(tap(1), to, 125);
        talk.world.inject_frame_over(NodeId(1), medium, &frame).expect("a good frame");
        talk.left_at(at_ms + 50)
    };
    assert_eq!(over(100, Medium::Radio, MacAddr::BROADCAST), [0]);
    assert_eq!(over(200, Medium::Wire(NodeId(2)), MacAddr::BROADCAST), [2]);
    assert_eq!(over(300, Medium::Wire(NodeId(3)), tap(3)), [3]);
    assert_eq!(over(400, Medium::Radio, tap(0)), [0]);
    let nowhere: [u32; 0] = [];
    assert_eq!(over(500, Medium::Wire(NodeId(3)), tap(2)), nowhere);
    assert_eq!(over(600, Medium::Wire(NodeId(2)), tap(0)), nowhere);
    assert_eq!(over(700, Medium::Radio, tap(2)), nowhere);
    assert_eq!(talk.world.tap_counts(NodeId(1)).dropped.unresolved, 3);
}

#[test]
fn a_frame_leaves_with_the_medium_by_which_it_came() {
    let spec = row(2).wired_node().link(link(1, 2, 10_000_000, Duration::from_millis(1), 10));
    let mut talk = Dialogue::new(&spec.ethernet_taps(0..3));
    talk.inject(100, 0, &experiment(tap(0), tap(1), 125));
    talk.inject(200, 2, &experiment(tap(2), tap(1), 125));
    talk.run_until(300);
    let media: Vec<_> = talk.left.iter().map(|left| (left.node, left.medium)).collect();
    assert_eq!(media, [(NodeId(1), Medium::Radio), (NodeId(1), Medium::Wire(NodeId(2)))]);
}

#[test]
fn a_host_has_an_interface_for_its_radios_and_one_for_each_wire_to_a_host() {
    let wire = |to| link(1, to, 10_000_000, Duration::from_millis(1), 10);
    let spec = row(2).wired_node().wired_node().link(wire(2)).link(wire(3)).link(wire(2));
    let at = |node, hosts: &[u32]| {
        let spec =
            spec.clone().change(|spec| spec.ethernet_taps = hosts.iter().copied().map(NodeId).collect());
        let pair = |interface: HostInterface| (interface.name, interface.medium);
        HostInterface::at(&spec, NodeId(node)).into_iter().map(pair).collect::<Vec<_>>()
    };
    let wire = |name: &str, to| (name.to_owned(), Some(Medium::Wire(NodeId(to))));
    let [alone, radio] = [None, Some(Medium::Radio)].map(|medium| ("air0".to_owned(), medium));
    assert_eq!(at(1, &[0, 1, 2, 3]), [radio.clone(), wire("wire0", 2), wire("wire1", 3)]);
    assert_eq!(at(1, &[0, 1, 3]), [radio, wire("wire0", 3)]);
    assert_eq!(at(1, &[0, 1]), std::slice::from_ref(&alone), "no wire leads to a host");
    assert_eq!(at(0, &[0, 1, 2, 3]), std::slice::from_ref(&alone), "radios alone");
    assert_eq!(at(2, &[0, 1, 2, 3]), [alone], "wires alone");
}

#[test]
fn a_queue_marks_ip_packets_in_frames() {
    let red = RedConfig {
        min_threshold: 0.1,
        max_threshold: 50.0,
        weight: 1.0,
        max_probability: 1.0,
        action: SignalAction::Mark,
        ..RedConfig::PAPER
    };
    let mut slow = link(0, 1, 100_000, Duration::from_millis(1), 100);
    slow.queue.discipline = Discipline::Red(red);
    let spec = wired(2).link(slow).ethernet_taps(0..2);
    for (ethertype, packet) in [(ethernet::IPV4, ipv4_packet(0, 1)), (ethernet::IPV6, ipv6_packet())] {
        let mut talk = Dialogue::new(&spec);
        let sent = frame(tap(0), tap(1), ethertype, &packet);
        (0..30).for_each(|_| talk.inject(100, 0, &sent));
        let left = talk.left(9_000);
        let ecn = |frame: &Bytes| Frame::parse(frame).unwrap().ip_fields().expect("a valid packet").ecn;
        let marked = left.iter().filter(|(_, frame)| ecn(frame) == Ecn::CongestionExperienced).count();
        assert!(left.len() == 30 && marked > 5, "{marked} of {}", left.len());
        assert!(left.iter().all(|(_, frame)| *frame == sent || ecn(frame) == Ecn::CongestionExperienced));
    }
}

#[test]
fn a_capture_shows_frames_with_their_ethertype() {
    let spec = near(2);
    let mut world = World::new(&spec, 1, PcapTracer::new(Vec::new(), &spec).unwrap());
    let bytes = experiment(tap(0), tap(1), 3);
    // With an LLC header of its own: a length takes the place of the EtherType.
    let bpdu = frame(tap(0), MacAddr([1, 0x80, 0xc2, 0, 0, 0]), 4, &[0x42, 0x42, 3, 9]);
    world.inject_frame(NodeId(0), &bytes).unwrap();
    world.inject_frame(NodeId(0), &bpdu).unwrap();
    world.run_until(at(1.0));
    let capture = world.finish().1.finish().unwrap();
    let contains = |part: &[u8]| capture.windows(part.len()).any(|bytes| bytes == part);
    assert!(contains(&[0xaa, 0xaa, 3, 0, 0, 0, 0x88, 0xb5, 0x5a, 0x5a, 0x5a]));
    assert!(contains(&[0x42, 0x42, 3, 9]) && !contains(&[0xaa, 0xaa, 3, 0, 0, 0, 0, 4]));
}

#[test]
fn simulated_flows_count_only_their_own_packets() {
    let spec = chain(2).bulk(0, 2, ns2_tcp(4)).ethernet_taps(0..3);
    let mut talk = Dialogue::new(&spec);
    for n in 0..900 {
        talk.inject(10 * n, (n % 3) as u32, &experiment(tap((n % 3) as u32), MacAddr::BROADCAST, 200));
    }
    talk.run_until(10_000);
    let accepted: u64 = (0..3).map(|n| talk.world.tap_counts(NodeId(n)).accepted).sum();
    assert_eq!(accepted, 900);
    let outcome = talk.finish();
    let flow = &outcome.flows[0];
    assert!(flow.bytes_received > 0 && flow.data.received <= flow.data.sent);
    let alone = simulate(&spec, 1);
    assert!(flow.bytes_received < alone.flows[0].bytes_received, "frames take airtime");
}

/// Runs a network with a simulated flow and a frame each 10 ms, in the steps that `next` names; what left, and the
/// fingerprint.
fn stepped(mut next: impl FnMut(&World<NoTrace>) -> Instant) -> (Vec<EgressFrame>, u64) {
    let spec = chain(3).bulk(0, 3, ns2_tcp(2)).ethernet_taps(0..4);
    let mut world = World::new(&spec, 1, NoTrace);
    let mut left = Vec::new();
    for n in 1..=200_u64 {
        let until = Instant::from_millis(n * 10);
        while world.now() < until {
            let step = next(&world).max(world.now() + Duration::from_nanos(1));
            world.run_until(step.min(until));
            left.extend(core::iter::from_fn(|| world.poll_frame()));
        }
        let from = (n % 4) as u32;
        let to = if n % 3 == 0 { MacAddr::BROADCAST } else { tap(from ^ 1) };
        world.inject_frame(NodeId(from), &experiment(tap(from), to, n as usize)).expect("a good frame");
    }
    (left, world.finish().0.fingerprint)
}

#[test]
fn equal_inputs_give_equal_fingerprints_in_steps_of_any_size() {
    let whole = stepped(|_| Instant::FAR_FUTURE);
    assert!(whole.0.len() > 150, "{}", whole.0.len());
    assert_eq!(stepped(|_| Instant::FAR_FUTURE), whole);
    assert_eq!(stepped(World::next_due), whole);
    let mut stream = RandomStream::global(7, 1, Purpose::Traffic);
    assert_eq!(stepped(|world| world.now() + stream.duration_below(Duration::from_millis(2))), whole);
}

#[test]
fn taps_without_frames_change_nothing() {
    let spec = chain(3).bulk(0, 3, ns2_tcp(2)).seconds(5);
    assert_eq!(simulate(&spec.clone().ethernet_taps(0..4), 1), simulate(&spec, 1));
}

/// A random frame: the node at which it comes in, its destination and its payload.
fn any_frame() -> impl Strategy<Value = (u32, MacAddr, Vec<u8>)> {
    let to = prop_oneof![
        (0..5_u32).prop_map(tap),
        Just(MacAddr::BROADCAST),
        (0..3_u8).prop_map(host),
        any::<[u8; 6]>().prop_map(MacAddr),
    ];
    (0..4_u32, to, proptest::collection::vec(any::<u8>(), 0..300))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever comes in: it leaves as it came, and each frame has one fate, which the end of the run checks.
    #[test]
    fn random_frames_leave_unchanged_and_none_vanishes(
        frames in proptest::collection::vec(any_frame(), 1..60),
        from in (0..3_u8).prop_map(host),
    ) {
        let mut world = World::new(&chain(3).ethernet_taps(0..4), 1, NoTrace);
        let mut sent = std::collections::BTreeSet::new();
        for (n, (node, to, payload)) in (0..).zip(&frames) {
            world.run_until(Instant::from_nanos(700_000 * n));
            let bytes = frame(from, *to, EXPERIMENT, payload);
            prop_assert!(world.inject_frame(NodeId(*node), &bytes).is_ok());
            sent.insert(bytes);
        }
        // Some are still under way then.
        world.run_until(Instant::from_nanos(700_000 * frames.len() as u64 + 1_000_000));
        while let Some(left) = world.poll_frame() {
            prop_assert!(sent.contains(&left.frame));
        }
        let _ = world.finish();
    }
}
