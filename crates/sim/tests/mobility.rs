//! Nodes that move: reception follows their positions, and routes follow.

use crate::support::recorder::{RecordedKind, record};
use crate::support::{SpecBuilder, chain, disk, grid, moving, ns2_tcp, standing, walk};
use hopline_core::{Duration, Instant, NodeId};
use hopline_radio::mobility::{Area, RandomWaypoint, SetdestWaypoint, Trajectory};
use hopline_radio::phy::propagation::{Propagation, Shadowing, ShadowingDraw};
use hopline_routing::aodv;
use hopline_sim::outcome::Connected;
use hopline_sim::trace::DropReason;
use hopline_sim::{Outcome, Spec, simulate};

const TICK: Duration = Duration::from_millis(50);

/// Bytes delivered between two moments, in whole seconds.
fn delivered(outcome: &Outcome, from: usize, to: usize) -> u64 {
    let series = &outcome.flows[0].series;
    series[to - 1].bytes_received - series[from - 1].bytes_received
}

#[test]
fn datagrams_arrive_while_the_receiver_is_in_range_and_at_no_other_time() {
    // At 50 m/s out to 900 m and back; crosses 250 m at t = 4 s and at t = 30 s.
    let there_and_back = walk(&[(0.0, 50.0, 0.0), (17.0, 900.0, 0.0), (34.0, 50.0, 0.0)]);
    let spec = standing(&[(0.0, 0.0)]).wireless_node(there_and_back);
    let spec = spec.change(|spec| spec.radio = Some(disk(250.0)));
    let spec = spec.cbr(0, 1, 100, TICK).from(0.01).seconds(34);
    let outcome = simulate(&spec, 1);
    assert_eq!(delivered(&outcome, 5, 28), 0);
    // 80 ticks in each of the first and last four seconds; retries may straddle the edge.
    let received = outcome.flows[0].segments_received;
    assert!((159..=163).contains(&received), "{received}");
}

#[test]
fn static_routes_are_those_of_the_start() {
    let away = walk(&[(0.0, 200.0, 0.0), (1.0, 200.0, 0.0), (2.0, 2000.0, 0.0)]);
    let spec = standing(&[(0.0, 0.0)]).wireless_node(away);
    let spec = spec.cbr(0, 1, 100, Duration::from_millis(500)).from(3.0).until(5.0);
    let outcome = simulate(&spec.seconds(10), 1);
    assert_eq!(outcome.flows[0].connected, Connected::Never);
    assert_eq!(outcome.nodes[0].drops.retry_limit, 4);
}

#[test]
fn a_node_that_moves_far_away_changes_nothing() {
    // Its movement makes the medium measure every distance anew, and the answers must be the same.
    let wanderer = || walk(&[(0.0, 1e6, 1e6), (100.0, 1.001e6, 1e6)]);
    let shadowed = |draw| {
        chain(2).radio(|radio| {
            radio.phy.propagation =
                Propagation::Shadowing(Shadowing { deviation_db: 2.0, draw, ..Shadowing::default() });
        })
    };
    for spec in [
        chain(4),
        grid(3),
        chain(3).aodv(aodv::Config::rfc3561()),
        shadowed(ShadowingDraw::PerLink),
        shadowed(ShadowingDraw::PerFrame),
    ] {
        let last = spec.nodes.len() as u32 - 1;
        let spec = spec.bulk(0, last, ns2_tcp(8)).seconds(5);
        let still = simulate(&spec, 1);
        let moving = simulate(&spec.wireless_node(wanderer()), 1);
        assert_eq!(still.flows, moving.flows);
        assert_eq!(still.fingerprint, moving.fingerprint);
    }
}

#[test]
fn a_flow_pauses_out_of_range_and_aodv_finds_a_path_on_return() {
    // 0 stays, 1 is a relay at 200 m; 2 leaves from beside 0 and returns behind the relay.
    let spec = standing(&[(0.0, 0.0), (200.0, 0.0)]);
    let spec = spec.wireless_node(walk(&[
        (0.0, 0.0, 100.0),
        (5.0, 0.0, 100.0),
        (8.0, 0.0, 1500.0),
        (15.0, 0.0, 1500.0),
        (18.0, 380.0, 0.0),
    ]));
    for config in [aodv::Config::rfc3561(), aodv::Config::rfc3561_hello(), aodv::Config::ns2_235()] {
        let outcome = simulate(&spec.clone().aodv(config).bulk(0, 2, ns2_tcp(8)).seconds(60), 1);
        assert!(delivered(&outcome, 1, 5) > 100_000, "at first beside it");
        assert_eq!(delivered(&outcome, 8, 15), 0, "out of range");
        // Back within the back-off of TCP, over two hops.
        assert!(delivered(&outcome, 30, 60) > 500_000, "{:?}", outcome.flows[0].series);
        assert!(outcome.nodes[1].airtime.transmitting > Duration::from_secs(5), "the relay works");
        assert!(outcome.flows[0].timeouts > 0);
    }
}

#[test]
fn a_broken_link_clears_the_queue_of_packets_for_that_neighbour() {
    let away = walk(&[(0.0, 200.0, 0.0), (1.0, 200.0, 0.0), (1.01, 5000.0, 0.0)]);
    let spec = standing(&[(0.0, 0.0)]).wireless_node(away).aodv(aodv::Config::ns2_235());
    let spec = spec.cbr(0, 1, 500, Duration::from_millis(2)).until(1.2).seconds(2);
    let (outcome, notes) = record(&spec, 1);
    let purged =
        notes.times(0, RecordedKind::Dropped(DropReason::Routing(hopline_routing::DropReason::LinkFailure)));
    let at_once = purged.iter().filter(|&&at| at == purged[0]).count();
    assert!(at_once >= 5, "{purged:?}");
    assert_eq!(outcome.nodes[0].drops.retry_limit as usize, purged.len());
}

/// 20 nodes that walk about as `setdest` has them.
fn mobile_network(draw: u64) -> Spec {
    let model = RandomWaypoint::Setdest(SetdestWaypoint {
        area: Area { width_m: 800.0, height_m: 500.0 },
        max_speed_mps: 20.0,
        pause: Duration::from_secs(1),
    });
    let trajectory = |node| {
        let mut stream =
            hopline_core::RandomStream::new(draw, 0, NodeId(node), hopline_core::Purpose::Mobility);
        model.trajectory(Duration::from_secs(20), &mut stream).expect("a valid model")
    };
    moving((0..20).map(trajectory))
}

#[test]
fn receptions_match_ranges() {
    // HELLO from all, nothing else: hardly any collisions, so that reception is geometry.
    let range_m = 250.0;
    let spec = mobile_network(7).change(|spec| spec.radio = Some(disk(range_m)));
    let spec = spec.aodv(aodv::Config::rfc3561_hello()).cbr(0, 19, 64, Duration::from_secs(1)).seconds(20);
    let (_, notes) = record(&spec, 1);
    let position = |node: NodeId, at: Instant| spec.nodes[node.index()].trajectory.position_at(at);
    let reached = |from: NodeId, at: Instant| {
        let neighbours = (0..20).map(NodeId).filter(|&node| node != from);
        neighbours.filter(|&node| position(node, at).distance_m(position(from, at)) <= range_m).count()
    };
    let sent = notes.0.iter().filter(|note| matches!(note.kind, RecordedKind::DataSent { .. }));
    let expected: usize = sent.map(|note| reached(note.node, note.at)).sum();
    let received = notes.count(RecordedKind::DataReceived);
    assert!(expected > 300, "{expected}");
    assert!(received <= expected && received * 10 >= expected * 9, "{received} of {expected}");
}

#[test]
fn a_fast_node_is_received_at_every_position() {
    // 100 m/s past a row of nodes 1 km apart: the grid must follow. Each hears some of its datagrams.
    let mut spec = standing(&(0..10).map(|n| (1000.0 * f64::from(n), 100.0)).collect::<Vec<_>>());
    let fixed = Trajectory::fixed(hopline_radio::mobility::Position::new(0.0, 0.0));
    spec.nodes.push(hopline_sim::spec::NodeSpec::new("fast", fixed, [hopline_sim::spec::Channel(0)]));
    spec.nodes[10].trajectory = walk(&[(0.0, 0.0, 0.0), (95.0, 9500.0, 0.0)]);
    let mut spec = spec.change(|spec| spec.radio = Some(disk(250.0)));
    spec = spec.aodv(aodv::Config { rreq_rate_limit: None, ..aodv::Config::rfc3561() });
    for n in 0..10 {
        spec = spec.cbr(10, n, 64, Duration::from_millis(500)).from(10.0 * f64::from(n));
        spec = if n < 9 { spec.until(10.0 * f64::from(n) + 2.0) } else { spec };
    }
    let outcome = simulate(&spec.seconds(95), 1);
    for (n, flow) in outcome.flows.iter().enumerate() {
        assert!(flow.segments_received >= 3, "node {n}: {}", flow.segments_received);
    }
}
