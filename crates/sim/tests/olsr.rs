//! OLSR in the simulated network: when routes are there, what that costs, and what happens when links go.

use crate::support::{NotificationRecorder, SpecBuilder, at, chain, ns2_tcp, standing, walk};
use hopline_core::{Duration, Instant, NodeId};
use hopline_routing::olsr::Config;
use hopline_routing::olsr::config::LinkSensing;
use hopline_sim::trace::TraceEvent;
use hopline_sim::{Spec, Tracer, World, simulate};
use hopline_transport::Signal;

/// Arrival times of packets of flows at their destination.
#[derive(Default)]
struct Arrivals(Vec<Instant>);

impl Tracer for Arrivals {
    fn trace(&mut self, now: Instant, _node: NodeId, event: TraceEvent<'_>) {
        if let TraceEvent::Delivered(_) = event {
            self.0.push(now);
        }
    }
}

fn arrivals(spec: &Spec, run: u64) -> Vec<Instant> {
    let mut world = World::new(spec, run, Arrivals::default());
    world.run_until(Instant::ZERO + spec.duration);
    world.finish().1.0
}

/// A small packet every 20 ms.
fn with_cbr(spec: Spec, to: u32) -> Spec {
    spec.cbr(0, to, 20, Duration::from_millis(20))
}

#[test]
fn a_four_hop_chain_carries_packets_once_hellos_and_topology_have_gone_round() {
    let spec = with_cbr(chain(4).olsr(Config::rfc3626()), 4).seconds(30);
    let mut first: Vec<f64> = (1..=50)
        .map(|run| {
            let outcome = simulate(&spec, run);
            assert!(outcome.nodes[0].drops.no_route > 0, "until then there is no route");
            outcome.flows[0].data.first_received.expect("packets arrive").as_secs_f64()
        })
        .collect();
    first.sort_by(f64::total_cmp);
    let (fastest, median, slowest) = (first[0], first[25], first[49]);
    // Four HELLOs and a TC message at most, and jitter at two relays.
    assert!(fastest > 4.0 && slowest < 15.0, "{fastest} {median} {slowest}");
    println!("first packet over four hops: {fastest:.1} s, median {median:.1} s, slowest {slowest:.1} s");
}

#[test]
fn routing_overhead_does_not_depend_on_traffic() {
    let idle = simulate(&chain(4).olsr(Config::rfc3626()).warmup(30.0).seconds(330), 1);
    let per_s = |of: fn(&hopline_sim::outcome::NodeOutcome) -> u64| {
        idle.nodes.iter().map(|node| of(node) as f64 / 300.0).collect::<Vec<_>>()
    };
    let (packets, bytes) = (per_s(|node| node.routing_packets), per_s(|node| node.routing_bytes));
    println!(
        "packets a second: {packets:.2?}; bytes a second: {bytes:.1?}, {:.1} in all",
        bytes.iter().sum::<f64>()
    );
    // A HELLO in 1.75 s on average. The ends say nothing else; the middle passes on and tells.
    for end in [0, 4] {
        assert!((0.53..0.61).contains(&packets[end]), "{packets:?}");
    }
    assert!(bytes[2] > 2.0 * bytes[0], "{bytes:?}");
    // Three tell of themselves every 4.75 s, and two others pass each of that on.
    let sum: f64 = bytes.iter().sum();
    assert!((250.0..500.0).contains(&sum), "{sum}");
}

#[test]
fn a_lost_node_is_detected_and_a_detour_found() {
    // n1 leaves at 20 s; n3 stands where n2 can still be reached over it.
    let leaving = |config| {
        let spec = standing(&[(0.0, 0.0)])
            .wireless_node(walk(&[(0.0, 200.0, 0.0), (20.0, 200.0, 0.0), (21.0, 200.0, 5000.0)]))
            .wireless_node(walk(&[(0.0, 400.0, 0.0)]))
            .wireless_node(walk(&[(0.0, 200.0, -140.0)]))
            .olsr(config);
        with_cbr(spec, 2).from(15.0).seconds(45)
    };
    let gap = |config| {
        let arrivals = arrivals(&leaving(config), 1);
        assert!(*arrivals.last().unwrap() > at(44.9));
        let gaps = arrivals.windows(2).map(|pair| pair[1].since(pair[0]).as_secs_f64());
        gaps.fold(0.0, f64::max)
    };
    // If n3 was chosen in the first place, there is no gap: then the test would have to choose another address.
    let by_hello = gap(Config::rfc3626());
    // NEIGHB_HOLD_TIME after a HELLO at most; then the interface queue tries what it holds for the lost neighbour first.
    assert!((4.0..8.0).contains(&by_hello), "{by_hello}");
    let by_link_layer = gap(Config { link_sensing: LinkSensing::HelloAndLinkLayer, ..Config::rfc3626() });
    assert!(by_link_layer < 0.5, "{by_link_layer}");
}

#[test]
fn both_ends_are_notified_of_route_loss_and_recovery_if_configured() {
    let away = walk(&[
        (0.0, 400.0, 0.0),
        (20.0, 400.0, 0.0),
        (21.0, 400.0, 5000.0),
        (35.0, 400.0, 5000.0),
        (36.0, 400.0, 0.0),
    ]);
    let spec = chain(1).wireless_node(away).olsr(Config::rfc3626());
    let spec = spec.bulk(0, 2, ns2_tcp(4)).from(15.0).seconds(60);
    let told = |spec: &Spec| {
        let mut world = World::new(spec, 1, NotificationRecorder::default());
        world.run_until(Instant::ZERO + spec.duration);
        world.finish().1.0
    };
    assert_eq!(told(&spec), []);
    let mut heard = told(&spec.elfn());
    heard.sort_by_key(|(node, signal)| (*node, *signal == Signal::RouteFound));
    let each = |node| [(node, Signal::RouteLost), (node, Signal::RouteFound)];
    assert_eq!(heard, [each(0), each(2)].concat());
}

#[test]
fn a_transfer_goes_over_four_hops() {
    let outcome =
        simulate(&chain(4).olsr(Config::rfc3626()).bulk(0, 4, ns2_tcp(4)).from(20.0).seconds(80), 1);
    let fixed = simulate(&chain(4).bulk(0, 4, ns2_tcp(4)).from(20.0).seconds(80), 1);
    let share = outcome.flows[0].goodput_bps() / fixed.flows[0].goodput_bps();
    assert!((0.3..1.05).contains(&share), "{share} of what it is over fixed routes");
}
