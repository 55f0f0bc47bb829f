//! Packets from outside: a packet that enters at one node leaves at another, changed as routers change it and
//! no more. An external clock can step the world.

use crate::support::{SpecBuilder, at, chain, link, ns2_tcp, wired};
use bytes::Bytes;
use hopline_core::{Duration, Instant, NodeId, Purpose, RandomStream};
use hopline_queue::{RedConfig, SignalAction};
use hopline_routing::{aodv, dsr};
use hopline_sim::spec::Discipline;
use hopline_sim::trace::PcapTracer;
use hopline_sim::{Egress, InjectError, NoTrace, Spec, World, simulate};
use hopline_wire::ipv4::{Ecn, Header, Protocol, RawPacket};
use proptest::prelude::*;

const TTL: u8 = 30;

/// Returns a packet, from one node to another, of a protocol that no node here speaks.
fn packet(from: u32, to: u32, ecn: Ecn, payload: &[u8]) -> Bytes {
    let (src, dst) = (NodeId(from).ipv4(), NodeId(to).ipv4());
    let header = Header { src, dst, ttl: TTL, protocol: Protocol::Other(253), ecn, id: 77 };
    let mut bytes = Vec::new();
    header.emit(payload.len(), &mut bytes);
    bytes.extend_from_slice(payload);
    bytes.into()
}

fn hello(from: u32, to: u32) -> Bytes {
    packet(from, to, Ecn::NotCapable, b"hello")
}

/// Returns the packets, with time and place, that leave `spec` within its time if these packets come in.
fn run_with_packets(spec: &Spec, come: &[(f64, u32, Bytes)]) -> Vec<Egress> {
    let spec = &spec.clone().with_taps();
    let mut world = World::new(spec, 1, NoTrace);
    for (seconds, node, packet) in come {
        world.run_until(at(*seconds));
        world.inject(NodeId(*node), packet).expect("a good packet");
    }
    world.run_until(Instant::ZERO + spec.duration);
    core::iter::from_fn(|| world.poll_egress()).collect()
}

#[test]
fn a_packet_crosses_three_hops_over_any_routing_and_a_wire_behind_them() {
    let networks = [
        chain(3),
        chain(3).aodv(aodv::Config::rfc3561()),
        chain(3).dsr(dsr::Config::rfc4728()),
        chain(2).wired_node().link(link(2, 3, 1_000_000, Duration::from_millis(1), 10)),
    ];
    for spec in networks {
        let out = run_with_packets(&spec, &[(1.0, 0, hello(0, 3))]);
        let [Egress { at: left, node, packet }] = out.as_slice() else { panic!("{out:?}") };
        assert_eq!(*node, NodeId(3));
        assert!(at(1.001) < *left && *left < at(2.0), "{left}");
        let mut expected = Vec::new();
        RawPacket::parse(&hello(0, 3)).unwrap().emit(TTL - 2, Ecn::NotCapable, &mut expected);
        assert_eq!(packet, &expected);
    }
}

#[test]
fn packets_leave_in_the_order_in_which_they_arrive() {
    let spec = chain(2);
    let come: Vec<_> = (0..20).map(|n| (1.0, 0, packet(0, 2, Ecn::NotCapable, &[n]))).collect();
    let out = run_with_packets(&spec, &come);
    assert_eq!(
        out.iter().map(|e| *e.packet.last().unwrap()).collect::<Vec<_>>(),
        (0..20).collect::<Vec<_>>()
    );
    assert!(out.is_sorted_by_key(|e| e.at));
}

#[test]
fn a_queue_marks_ecn_capable_external_packets() {
    let red = RedConfig {
        min_threshold: 0.1,
        max_threshold: 50.0,
        weight: 1.0,
        max_probability: 1.0,
        ..RedConfig::PAPER
    };
    let mut slow = link(0, 1, 100_000, Duration::from_millis(1), 100);
    slow.queue.discipline = Discipline::Red(RedConfig { action: SignalAction::Mark, ..red });
    let come: Vec<_> = (0..30).map(|_| (1.0, 0, packet(0, 1, Ecn::Capable0, &[0; 100]))).collect();
    let marked = |e: &&Egress| e.packet[1] & 0b11 == Ecn::CongestionExperienced.bits();
    let out = run_with_packets(&wired(2).link(slow), &come);
    assert!(out.len() == 30 && out.iter().filter(marked).count() > 5);
    assert!(
        out.iter().all(|e| RawPacket::parse(&Bytes::from(e.packet.clone())).is_ok()),
        "checksums are right"
    );
}

#[test]
fn packets_without_a_route_are_dropped_and_counted() {
    let mut world = World::new(&chain(1).with_taps(), 1, NoTrace);
    for to in [9, 200_000] {
        world.inject(NodeId(0), &hello(0, to)).expect("a good packet");
    }
    let broadcast = Header {
        src: NodeId(0).ipv4(),
        dst: std::net::Ipv4Addr::BROADCAST,
        ttl: 3,
        protocol: Protocol::Udp,
        ecn: Ecn::NotCapable,
        id: 0,
    };
    let mut bytes = Vec::new();
    broadcast.emit(0, &mut bytes);
    world.inject(NodeId(0), &bytes.into()).expect("a good packet");
    world.run_until(at(2.0));
    assert_eq!((world.poll_egress(), world.packets()), (None, 0));
    assert_eq!(world.finish().0.nodes[0].drops.no_route, 3);
}

#[test]
fn a_packet_with_too_few_hops_left_does_not_arrive() {
    let mut short = Vec::new();
    RawPacket::parse(&hello(0, 3)).unwrap().emit(2, Ecn::NotCapable, &mut short);
    let mut world = World::new(&chain(3).with_taps(), 1, NoTrace);
    world.inject(NodeId(0), &short.into()).unwrap();
    world.run_until(at(1.0));
    assert_eq!(world.poll_egress(), None);
    assert_eq!(world.finish().0.nodes[2].drops.ttl, 1);
}

#[test]
fn invalid_packets_and_nodes_without_a_tap_are_refused() {
    let mut world = World::new(&chain(1).with_taps(), 1, NoTrace);
    let refused = |world: &mut World<NoTrace>, node, bytes: &[u8]| {
        world.inject(NodeId(node), &Bytes::copy_from_slice(bytes)).expect_err("bad").to_string()
    };
    let good = hello(0, 1);
    assert!(refused(&mut world, 0, &good[..19]).starts_with("no IPv4 packet: "));
    assert!(refused(&mut world, 0, &[]).starts_with("no IPv4 packet: "));
    let mut flipped = good.to_vec();
    flipped[15] ^= 1;
    assert!(matches!(world.inject(NodeId(0), &flipped.into()), Err(InjectError::Malformed(_))));
    let mut dead = Vec::new();
    RawPacket::parse(&good).unwrap().emit(0, Ecn::NotCapable, &mut dead);
    assert_eq!(refused(&mut world, 0, &dead), "the packet's time to live is over");
    assert_eq!(refused(&mut world, 2, &good), "n2 is no tap");
    world.run_until(at(1.0));
    assert_eq!((world.packets(), world.finish().0.nodes[0].drops.total()), (0, 0));
}

#[test]
fn flows_count_only_their_own_packets() {
    let spec = wired(3)
        .link(link(0, 1, 1_000_000, Duration::from_millis(5), 20))
        .link(link(1, 2, 1_000_000, Duration::from_millis(5), 20))
        .bulk(0, 2, ns2_tcp(8))
        .cbr(2, 0, 100, Duration::from_millis(50))
        .warmup(2.0)
        .with_taps();
    let mut world = World::new(&spec, 1, NoTrace);
    for n in 0..9_000_u64 {
        world.run_until(Instant::from_millis(n));
        world.inject(NodeId((n % 3) as u32), &hello((n % 3) as u32, ((n + 1) % 3) as u32)).unwrap();
    }
    world.run_until(at(10.0));
    let left = core::iter::from_fn(|| world.poll_egress()).count();
    let (outcome, _) = world.finish();
    assert!(left > 5_000, "{left}");
    for flow in &outcome.flows {
        for packets in [&flow.data, &flow.reverse] {
            assert!(packets.lost <= packets.sent && packets.received <= packets.sent, "{packets:?}");
        }
    }
    assert!(outcome.flows[0].bytes_received > 0);
}

#[test]
fn a_capture_shows_what_passed() {
    let spec = chain(1).aodv(aodv::Config::rfc3561()).with_taps();
    let mut world = World::new(&spec, 1, PcapTracer::new(Vec::new(), &spec).unwrap());
    world.inject(NodeId(0), &packet(0, 1, Ecn::NotCapable, b"a word in the capture")).unwrap();
    world.run_until(at(1.0));
    let capture = world.finish().1.finish().unwrap();
    assert!(capture.windows(21).any(|bytes| bytes == b"a word in the capture"));
}

#[test]
fn unfetched_packets_are_bounded() {
    let spec = wired(2).link(link(0, 1, 10_000_000_000, Duration::ZERO, 1000)).with_taps();
    let mut world = World::new(&spec, 1, NoTrace);
    for n in 0..70_000_u64 {
        world.inject(NodeId(0), &hello(0, 1)).unwrap();
        world.run_until(Instant::from_nanos(n * 1_000));
    }
    world.run_until(at(1.0));
    assert_eq!(core::iter::from_fn(|| world.poll_egress()).count(), 65_536);
    assert_eq!((world.packets(), world.finish().0.nodes[1].drops.queue_full), (0, 70_000 - 65_536));
}

/// A network in which much happens, with packets from outside.
fn busy() -> Spec {
    chain(3)
        .aodv(aodv::Config::rfc3561())
        .bulk(0, 3, ns2_tcp(2))
        .cbr(2, 0, 100, Duration::from_millis(40))
        .seconds(3)
        .with_taps()
}

/// Runs it, with a packet each 100 ms, in the steps that `next` names; what left, and the fingerprint.
fn stepped(mut next: impl FnMut(&World<NoTrace>) -> Instant) -> (Vec<Egress>, u64) {
    let spec = busy();
    let mut world = World::new(&spec, 1, NoTrace);
    let mut left = Vec::new();
    for tenth in 1..=30 {
        let until = Instant::from_millis(tenth * 100);
        while world.now() < until {
            let step = next(&world).max(world.now() + Duration::from_nanos(1));
            world.run_until(step.min(until));
            left.extend(core::iter::from_fn(|| world.poll_egress()));
        }
        world.inject(NodeId(0), &hello(0, 3)).expect("a good packet");
    }
    (left, world.finish().0.fingerprint)
}

#[test]
fn stepping_by_due_times_equals_one_run() {
    let whole = stepped(|_| Instant::FAR_FUTURE);
    assert!(whole.0.len() > 20, "{}", whole.0.len());
    assert_eq!(stepped(World::next_due), whole);
}

#[test]
fn an_idle_world_has_no_due_time() {
    let mut world = World::new(
        &wired(2).link(link(0, 1, 1_000_000, Duration::from_millis(1), 5)).with_taps(),
        1,
        NoTrace,
    );
    let (now, first) = (world.now(), world.next_due());
    assert!(first > now, "the state of flows is sampled each second, and nothing else is due");
    world.inject(NodeId(0), &hello(0, 1)).unwrap();
    assert!(world.next_due() < first);
}

#[test]
fn without_packets_from_outside_steps_change_nothing() {
    let spec = busy();
    let mut world = World::new(&spec, 1, NoTrace);
    while world.now() < Instant::ZERO + spec.duration {
        let next = world.next_due().min(Instant::ZERO + spec.duration);
        world.run_until(next);
    }
    assert_eq!(world.finish().0, simulate(&spec, 1));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn random_steps_equal_one_run(seed: u64) {
        let mut stream = RandomStream::global(seed, 1, Purpose::Traffic);
        let stepped_randomly = stepped(|world| world.now() + stream.duration_below(Duration::from_millis(5)));
        prop_assert_eq!(stepped_randomly, stepped(|_| Instant::FAR_FUTURE));
    }
}

#[test]
fn an_unfetched_series_is_bounded_and_changes_nothing() {
    let spec = chain(2).bulk(0, 2, ns2_tcp(4)).seconds(30);
    let latest = spec.clone().change(|spec| {
        spec.series = hopline_sim::spec::SeriesRetention::Latest(5.try_into().expect("not zero"));
    });
    let [whole, latest] = [spec, latest].map(|spec| simulate(&spec, 1));
    assert_eq!(whole.fingerprint, latest.fingerprint);
    assert_eq!((whole.flows[0].series.len(), latest.flows[0].series.len()), (30, 5));
    assert_eq!(whole.flows[0].series[25..], latest.flows[0].series[..]);
}
