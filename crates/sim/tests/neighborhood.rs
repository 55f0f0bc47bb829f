//! Neighborhood RED: flows that starve without it and get their share with it, and its effect on other flows.

use crate::support::{SpecBuilder, disk, standing};
use hopline_core::{Duration, NodeId};
use hopline_queue::SignalAction;
use hopline_queue::neighborhood_red::Config;
use hopline_queue::neighborhood_red::config::{Delivery, IncomingPolicy};
use hopline_radio::phy::propagation::{Propagation, RangeDisk};
use hopline_sim::outcome::{NodeOutcome, NoticeCounts};
use hopline_sim::spec::{NeighborhoodSpec, NodeSet};
use hopline_sim::{Outcome, Spec, simulate};
use hopline_transport::tcp;
use std::collections::BTreeSet;

const SECONDS: u64 = 60;

/// Three lanes of one hop, side by side. The outer ones do not sense each other; neighbouring lanes hear each other.
fn three_lanes() -> Spec {
    lanes(tcp::Config::ns2_235().with_mss(512).with_window_clamp(Some(32)))
}

/// The same, over such a TCP.
fn lanes(over: tcp::Config) -> Spec {
    let places: Vec<_> = (0..6).map(|n| (350.0 * f64::from(n % 2), 350.0 * f64::from(n / 2))).collect();
    let circles = RangeDisk { transmission_m: 367.0, interference_m: 653.0, carrier_sense_m: 653.0 };
    let mut spec = standing(&places).seconds(SECONDS);
    let mut radio = disk(367.0);
    radio.phy.propagation = Propagation::RangeDisk(circles);
    spec.radio = Some(radio);
    spec.bulk(0, 1, over).bulk(2, 3, over).bulk(4, 5, over)
}

fn with_neighborhood_red(spec: Spec, config: Config, members: NodeSet) -> Spec {
    spec.radio(|radio| {
        radio.neighborhood = Some(NeighborhoodSpec {
            config,
            members,
            observed: BTreeSet::new(),
            observed_weight: config.weight,
        })
    })
}

/// kb/s of each flow.
fn goodput_kbps(outcome: &Outcome) -> Vec<u64> {
    outcome.flows.iter().map(|flow| flow.bytes_received * 8 / SECONDS / 1000).collect()
}

fn all(config: Config) -> Outcome {
    simulate(&with_neighborhood_red(three_lanes(), config, NodeSet::All), 1)
}

/// Notices of all nodes: sent, and received or overheard.
fn notices(outcome: &Outcome) -> (u64, u64) {
    let sum = |of: fn(&NoticeCounts) -> u64| outcome.nodes.iter().map(|n| of(&n.notices)).sum();
    (sum(|notices| notices.sent), sum(|notices| notices.received))
}

#[test]
fn neighborhood_red_prevents_starvation_of_the_middle_lane() {
    let without = goodput_kbps(&simulate(&three_lanes(), 1));
    assert!(without[1] * 10 < without[0].min(without[2]), "{without:?}");
    let outcome = all(Config::PAPER);
    let with = goodput_kbps(&outcome);
    assert!(2 * with[1] > with[0].max(with[2]), "{with:?}");
    let sent: Vec<u64> = outcome.nodes.iter().map(|node| node.notices.sent).collect();
    assert!(
        sent[2] + sent[3] > 3 * (sent[0] + sent[1]).max(sent[4] + sent[5]),
        "the middle complains: {sent:?}"
    );
    assert!(outcome.nodes.iter().all(|node| node.drops.neighborhood > 0));
}

#[test]
fn notices_by_unicast_are_overheard_and_more_of_them_arrive_than_of_those_by_broadcast() {
    let heard = |delivery| {
        let outcome = all(Config { delivery, ..Config::PAPER });
        let (sent, received) = notices(&outcome);
        let (intended, arrived) = delivered(&outcome);
        (received as f64 / sent as f64, arrived as f64 / intended as f64)
    };
    let (unicast, broadcast) = (heard(Delivery::Unicast), heard(Delivery::Broadcast));
    assert!(unicast.0 > broadcast.0 && unicast.1 > broadcast.1, "{unicast:?} {broadcast:?}");
    assert!(unicast.0 > 1.0, "others than the one addressed hear it: {unicast:?}");
    assert!(unicast.1 < 1.0, "and not all do: {unicast:?}");
}

#[test]
fn a_notice_is_for_the_members_that_can_decode_its_sender() {
    // The ends of the outer lanes have two others in range, those of the middle one three.
    for node in all(Config::PAPER).nodes.iter().zip([2, 2, 3, 3, 2, 2]) {
        let (NodeOutcome { notices, .. }, neighbours) = node;
        assert_eq!(notices.intended, notices.sent * neighbours);
        assert!(notices.arrived <= notices.intended);
    }
    let middle = NodeSet::Some([NodeId(2), NodeId(3)].into());
    let outcome = simulate(&with_neighborhood_red(three_lanes(), Config::PAPER, middle), 1);
    let NoticeCounts { sent, intended, arrived, .. } = outcome.nodes[2].notices;
    assert!(sent > 0 && intended == sent, "only the other end is one: {sent} {intended}");
    assert!(arrived > 0 && arrived <= outcome.nodes[3].notices.received);
}

/// Pairs of a notice and a node that it was for, and those in which it arrived.
fn delivered(outcome: &Outcome) -> (u64, u64) {
    let sum = |of: fn(&NoticeCounts) -> u64| outcome.nodes.iter().map(|n| of(&n.notices)).sum();
    (sum(|notices| notices.intended), sum(|notices| notices.arrived))
}

#[test]
fn nodes_without_neighborhood_red_ignore_notices() {
    let middle = NodeSet::Some([NodeId(2), NodeId(3)].into());
    let outcome = simulate(&with_neighborhood_red(three_lanes(), Config::PAPER, middle), 1);
    assert!(outcome.nodes[2].notices.sent > 0);
    for outer in [0, 1, 4, 5] {
        let node = &outcome.nodes[outer];
        assert_eq!((node.notices.received, node.drops.neighborhood), (0, 0));
    }
    let alone = goodput_kbps(&outcome);
    assert!(alone[1] * 5 < alone[0].min(alone[2]), "nobody makes room: {alone:?}");
}

#[test]
fn without_members_nothing_changes_and_runs_are_deterministic() {
    let none = simulate(&with_neighborhood_red(three_lanes(), Config::PAPER, NodeSet::Some([].into())), 1);
    assert_eq!(none.fingerprint, simulate(&three_lanes(), 1).fingerprint);
    assert_eq!(all(Config::PAPER), all(Config::PAPER));
}

#[test]
fn marking_gives_the_middle_lane_its_share_too() {
    let config = Config { action: SignalAction::Mark, ..Config::PAPER };
    let with_ecn = with_neighborhood_red(
        lanes(tcp::Config::linux().with_ecn(tcp::EcnMode::Request).with_mss(512).with_window_clamp(Some(32))),
        config,
        NodeSet::All,
    );
    let outcome = simulate(&with_ecn, 1);
    let goodput = goodput_kbps(&outcome);
    assert!(outcome.nodes.iter().map(|node| node.marks).sum::<u64>() > 50);
    assert!(2 * goodput[1] > goodput[0].max(goodput[2]), "{goodput:?}");
}

#[test]
fn relayed_notices_reach_senders_to_neighbours() {
    let outcome = all(Config { incoming: IncomingPolicy::Relayed, ..Config::PAPER });
    assert!(outcome.nodes.iter().map(|node| node.notices.relayed).sum::<u64>() > 20);
    let goodput = goodput_kbps(&outcome);
    assert!(3 * goodput[1] > goodput[0].max(goodput[2]), "{goodput:?}");
}

/// `spec` with the neighbourhoods of these nodes observed.
fn observed(spec: Spec, config: Config, nodes: &[u32]) -> Spec {
    let observed = nodes.iter().copied().map(NodeId).collect();
    spec.radio(|radio| {
        radio.neighborhood =
            Some(NeighborhoodSpec { config, members: NodeSet::All, observed, observed_weight: config.weight })
    })
}

const MONITORING: Config = Config { delivery: Delivery::None, ..Config::PAPER };

#[test]
fn monitoring_changes_nothing() {
    let plain = simulate(&three_lanes(), 1);
    let watched = simulate(&observed(three_lanes(), MONITORING, &[2, 5]), 1);
    assert_eq!((plain.fingerprint, &plain.flows), (watched.fingerprint, &watched.flows));
    let seen: Vec<usize> =
        watched.nodes.iter().map(|n| n.neighborhood.as_ref().map_or(0, |n| n.samples.len())).collect();
    assert_eq!(seen, [0, 0, 600, 0, 0, 600], "ten a second, of those that are observed");
    let acting = all(Config::PAPER);
    let both = simulate(&observed(three_lanes(), Config::PAPER, &[2]), 1);
    assert_eq!((acting.fingerprint, &acting.flows), (both.fingerprint, &both.flows));
}

/// A line of nodes 200 m apart of which only neighbours hear each other, and datagrams faster than the radio takes them;
/// observed at node `at`.
fn line_of_queues(nodes: u32, flows: &[(u32, u32)], at: u32) -> Spec {
    let places: Vec<_> = (0..nodes).map(|n| (200.0 * f64::from(n), 0.0)).collect();
    let mut spec = standing(&places).seconds(2);
    spec.radio = Some(disk(250.0));
    for &(src, dst) in flows {
        spec = spec.cbr(src, dst, 1000, Duration::from_micros(100));
    }
    observed(spec, MONITORING, &[at])
}

fn real_queue(spec: &Spec, at: u32) -> Vec<u32> {
    let node = &simulate(spec, 1).nodes[at as usize];
    let series = node.neighborhood.as_ref().expect("it is observed");
    series.samples.iter().map(|sample| sample.queue_packets).collect()
}

#[test]
fn the_real_queue_is_averaged_as_red_averages_a_queue() {
    let spec = line_of_queues(4, &[(0, 1)], 1);
    let series = simulate(&spec, 1).nodes[1].neighborhood.clone().expect("it is observed");
    let mut average = 0.0;
    for sample in &series.samples {
        average = 0.8 * average + 0.2 * f64::from(sample.queue_packets);
        assert!((sample.average_queue - average).abs() < 1e-9, "{sample:?}, not {average}");
    }
    assert!(average > 40.0, "{average}");
    let latest = |spec: Spec| {
        let spec = spec.radio(|radio| {
            radio.neighborhood.as_mut().expect("nodes have it").observed_weight = 1.0;
        });
        simulate(&spec, 1).nodes[1].neighborhood.clone().expect("it is observed")
    };
    for sample in latest(spec).samples {
        assert_eq!(sample.average_queue, f64::from(sample.queue_packets));
    }
}

#[test]
fn the_real_queue_matches_its_definition() {
    // A full queue of 50, and one with the MAC: 51 packets at the sender, after the first moments and but for the moment at
    // which the MAC takes the next.
    let full = |flows: &[(u32, u32)], at| {
        let queue = real_queue(&line_of_queues(4, flows, at), at);
        queue[5..].iter().copied().max().expect("there are samples")
    };
    assert_eq!(full(&[(0, 1)], 0), 51, "at the node itself");
    assert_eq!(full(&[(0, 1)], 1), 51, "at its neighbour");
    assert_eq!(full(&[(0, 1)], 2), 51, "at its neighbour's neighbour, for the neighbour");
    assert_eq!(full(&[(3, 2)], 1), 51, "the same from the other side");
    assert_eq!(full(&[(1, 0)], 3), 0, "for somebody else: not in the neighbourhood of node 3");
    assert_eq!(full(&[(0, 1)], 3), 0, "three hops away");
    let two = full(&[(0, 1), (2, 3)], 1);
    assert!((100..=102).contains(&two), "two queues: {two}");
}

#[test]
fn samples_before_the_end_of_the_warm_up_do_not_count() {
    let mut spec = line_of_queues(2, &[(0, 1)], 0);
    spec.warmup = Duration::from_millis(1500);
    let outcome = simulate(&spec, 1);
    let series = outcome.nodes[0].neighborhood.as_ref().expect("it is observed");
    assert_eq!((series.samples.len(), series.counted().len()), (20, 6), "1.5 s is the first that counts");
    assert_eq!(series.counted()[0].at, hopline_core::Instant::from_millis(1500));
    assert!(series.samples.iter().all(|s| s.average <= 244.15 && s.latest <= 244.15));
    assert!(series.samples[19].latest > 150.0, "busy but for backoff: {:?}", series.samples[19]);
}
