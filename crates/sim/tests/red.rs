//! Random early detection in front of links and radios: what is dropped, what is marked, what the mark does.

use crate::support::{self, SpecBuilder, chain, link, ns2_tcp, wired};
use hopline_core::{Duration, Instant, NodeId};
use hopline_queue::{RedConfig, SignalAction};
use hopline_routing::dsr;
use hopline_sim::spec::Discipline;
use hopline_sim::trace::{TraceEvent, Tracer};
use hopline_sim::{Outcome, Spec, World, simulate};
use hopline_transport::tcp::{Config, EcnMode, InitialSsthresh};
use hopline_wire::ipv4::Ecn;

const RED: RedConfig = RedConfig { max_probability: 0.1, ..RedConfig::PAPER };

/// A slow link with RED before it, over which `over` transfers for 30 s.
fn bottleneck(over: Config, action: SignalAction) -> Spec {
    support::bottleneck(100, Discipline::Red(RedConfig { action, ..RED })).bulk(0, 2, over).seconds(30)
}

fn goodput_bps(outcome: &Outcome) -> f64 {
    8.0 * outcome.flows[0].bytes_received as f64 / 30.0
}

#[test]
fn with_ecn_congestion_is_signalled_without_loss() {
    // From slow start on: its overshoot takes the average beyond the upper threshold, where marks end.
    let config =
        Config::linux().with_ecn(EcnMode::Request).with_initial_ssthresh(InitialSsthresh::Segments(10));
    let outcome = simulate(&bottleneck(config, SignalAction::Mark), 1);
    let node = &outcome.nodes[1];
    assert!(node.marks > 5, "{} marks", node.marks);
    assert_eq!((node.drops.total(), outcome.flows[0].retransmissions), (0, 0));
    assert!(goodput_bps(&outcome) > 1.7e6, "{}", goodput_bps(&outcome));
}

#[test]
fn without_ecn_red_drops_and_the_queue_is_as_short() {
    for (over, action) in [
        (Config::linux(), SignalAction::Mark),
        (Config::linux().with_ecn(EcnMode::Request), SignalAction::Drop),
        (Config::modern().with_newreno(), SignalAction::Drop),
    ] {
        let outcome = simulate(&bottleneck(over, action), 1);
        let node = &outcome.nodes[1];
        assert_eq!((node.marks, node.drops.queue_full), (0, 0));
        assert!(node.drops.early > 5, "{}", node.drops.early);
        assert!(outcome.flows[0].retransmissions + 20 >= node.drops.early);
        assert!(goodput_bps(&outcome) > 1.6e6, "{}", goodput_bps(&outcome));
    }
}

#[test]
fn datagrams_are_never_marked() {
    let mut spec = bottleneck(Config::linux().with_ecn(EcnMode::Request), SignalAction::Mark);
    spec.flows.clear();
    let outcome = simulate(&spec.cbr(0, 2, 972, Duration::from_millis(3)), 1);
    assert_eq!(outcome.nodes[1].marks, 0);
    assert!(outcome.nodes[1].drops.early > 100);
}

/// Counts TCP packets by their ECN field where they arrive over a wire or are delivered.
#[derive(Default)]
struct EcnCounter {
    /// At the far end of the slow link, over the wire: capable, marked.
    wire: [u64; 2],
    /// Before the queue: marked.
    early: u64,
}

impl Tracer for EcnCounter {
    fn trace(&mut self, _now: Instant, node: NodeId, event: TraceEvent<'_>) {
        let TraceEvent::PacketReceived(view) = event else { return };
        match (node, view.ecn) {
            (NodeId(2), Ecn::Capable0) => self.wire[0] += 1,
            (NodeId(2), Ecn::CongestionExperienced) => self.wire[1] += 1,
            (_, Ecn::CongestionExperienced) => self.early += 1,
            _ => {}
        }
    }
}

#[test]
fn a_mark_is_in_the_header_from_the_queue_on() {
    let spec = bottleneck(Config::linux().with_ecn(EcnMode::Request), SignalAction::Mark);
    let mut world = World::new(&spec, 1, EcnCounter::default());
    world.run_until(Instant::ZERO + spec.duration);
    let (outcome, seen) = world.finish();
    assert_eq!(seen.early, 0);
    assert!(seen.wire[0] > 1000);
    let under_way = outcome.nodes[1].marks - seen.wire[1];
    assert!(seen.wire[1] > 5 && under_way <= 100, "{} of {}", seen.wire[1], outcome.nodes[1].marks);
}

#[test]
fn over_the_air_marks_survive_the_mac_and_the_hops() {
    let queue = Discipline::Red(RedConfig {
        min_threshold: 1.0,
        max_threshold: 20.0,
        weight: 0.2,
        action: SignalAction::Mark,
        ..RED
    });
    let spec = chain(3).radio(|radio| radio.queue.discipline = queue).seconds(30);
    let marking = simulate(&spec.clone().bulk(0, 3, Config::linux().with_ecn(EcnMode::Request)), 1);
    let marks: u64 = marking.nodes.iter().map(|node| node.marks).sum();
    assert!(marks > 5, "{marks}");
    let deaf = simulate(&spec.bulk(0, 3, Config::linux()), 1);
    assert_eq!(deaf.nodes.iter().map(|node| node.marks).sum::<u64>(), 0);
    let retransmissions = |o: &Outcome| o.flows[0].retransmissions;
    assert!(retransmissions(&marking) < retransmissions(&deaf));
}

#[test]
fn a_mark_survives_hops_that_rebuild_the_packet() {
    let red = RedConfig {
        min_threshold: 0.1,
        weight: 1.0,
        max_probability: 1.0,
        action: SignalAction::Mark,
        ..RED
    };
    let config = Config::linux().with_ecn(EcnMode::Request).with_window_clamp(Some(8));
    let plain = chain(3).dsr(dsr::Config::rfc4728()).bulk(0, 3, config).seconds(30);
    let marking = plain.clone().radio(|radio| radio.queue.discipline = Discipline::Red(red));
    let (plain, marking) = (simulate(&plain, 1), simulate(&marking, 1));
    let marks: u64 = marking.nodes.iter().map(|node| node.marks).sum();
    assert!(marks > 50, "{marks}");
    let cwnd = |o: &Outcome| o.flows[0].series.iter().map(|s| s.cwnd_bytes).sum::<u64>();
    let (told, never) = (cwnd(&marking), cwnd(&plain));
    assert!(4 * told < 3 * never, "the sender was told: {told} for {never}");
}

#[test]
fn choices_depend_on_seed_and_run() {
    let spec = bottleneck(Config::linux().with_ecn(EcnMode::Request), SignalAction::Mark);
    let fingerprint = |run| simulate(&spec, run).fingerprint;
    assert_eq!(fingerprint(1), fingerprint(1));
    assert_ne!(fingerprint(1), fingerprint(2));
}

#[test]
fn a_queue_with_thresholds_out_of_reach_is_drop_tail() {
    let mut red = wired(2)
        .link(link(0, 1, 1_000_000, Duration::from_millis(5), 10))
        .bulk(0, 1, ns2_tcp(32))
        .seconds(10);
    let plain = simulate(&red, 1);
    let config = RedConfig { min_threshold: 1e4, max_threshold: 2e4, ..RED };
    red.links[0].queue.discipline = Discipline::Red(config);
    assert_eq!(simulate(&red, 1), plain);
    assert!(plain.nodes[0].drops.queue_full > 0);
}
