//! `[neighborhood_red]`.

use super::*;
use hopline_core::NodeId;
use hopline_queue::SignalAction;
use hopline_queue::neighborhood_red::Config;
use hopline_queue::neighborhood_red::config::{
    Delivery, IncomingPolicy, Limits, NoticeLimits, StarvationTest,
};
use hopline_sim::spec::{NeighborhoodSpec, NodeSet};

fn neighborhood(settings: &[&str]) -> Option<NeighborhoodSpec> {
    spec(CHAIN, settings).radio.expect("has radios").neighborhood
}

fn problem(settings: &[&str]) -> String {
    parse(CHAIN, settings).and_then(|s| s.spec(1)).expect_err("this is wrong").to_string()
}

#[test]
fn the_section_enables_it_and_scales_it_to_the_data_rate() {
    assert!(neighborhood(&[]).is_none());
    let plain = neighborhood(&["neighborhood_red.share=1", "mac.data_rate_mbps=2"]).unwrap();
    assert_eq!((plain.config, plain.members), (Config::PAPER, NodeSet::All));
    let fast = neighborhood(&["neighborhood_red.share=1", "mac.data_rate_mbps=11"]).unwrap();
    assert_eq!(fast.config, Config::for_bandwidth(11_000_000));
}

#[test]
fn thresholds_follow_the_rate_by_default() {
    let thresholds = |settings: &[&str]| {
        let config = neighborhood(settings).unwrap().config;
        (config.bandwidth_bps, config.min_threshold, config.max_threshold)
    };
    let share = "neighborhood_red.share=1";
    let fast = "mac.data_rate_mbps=11";
    let (low, high) =
        ("neighborhood_red.min_threshold_packets=120", "neighborhood_red.max_threshold_packets=1400");
    assert_eq!(thresholds(&[share, "mac.data_rate_mbps=2"]), (2_000_000, 100.0, 240.0));
    assert_eq!(thresholds(&[share, fast]), (11_000_000, 550.0, 1320.0));
    assert_eq!(thresholds(&[share, "neighborhood_red.bandwidth_mbps=54"]), (54_000_000, 2700.0, 6480.0));
    assert_eq!(thresholds(&[fast, low, high]), (11_000_000, 120.0, 1400.0));
    assert_eq!(thresholds(&[fast, low]), (11_000_000, 120.0, 1320.0), "each for itself");
    let lone = problem(&[fast, "neighborhood_red.max_threshold_packets=240"]);
    assert!(lone.contains("Neighborhood RED wants min_threshold < max_threshold"), "{lone}");
    assert!(lone.contains("550") && lone.contains("on a channel of 11 Mb/s"), "{lone}");
}

#[test]
fn members_are_named_or_drawn() {
    let named = neighborhood(&["neighborhood_red.nodes=[\"n0\", \"n2\"]"]).unwrap();
    assert_eq!(named.members, NodeSet::Some([NodeId(0), NodeId(2)].into()));
    let both = problem(&["neighborhood_red.nodes=[\"n0\"]", "neighborhood_red.share=0.5"]);
    assert!(both.contains("share and nodes both say which nodes have Neighborhood RED"), "{both}");
    assert!(problem(&["neighborhood_red.nodes=[\"n9\"]"]).contains("n9"));
    let idle = problem(&["neighborhood_red.nodes=[\"n0\"]", "neighborhood_red.observe=[\"n1\"]"]);
    assert!(idle.contains("`n1` is observed and is not among nodes"), "{idle}");
}

#[test]
fn the_real_queue_is_averaged_with_the_weight_of_the_estimate_by_default() {
    let weight = |settings: &[&str]| neighborhood(settings).unwrap().observed_weight;
    assert_eq!(weight(&["neighborhood_red.weight=0.3"]), 0.3);
    assert_eq!(weight(&["neighborhood_red.weight=0.3", "neighborhood_red.observe_weight=0.02"]), 0.02);
}

#[test]
fn every_parameter_can_be_set() {
    let set = neighborhood(&[
        "neighborhood_red.sampling_s=0.2",
        "neighborhood_red.weight=0.3",
        "neighborhood_red.bandwidth_mbps=1",
        "neighborhood_red.mean_packet_bytes=512",
        "neighborhood_red.min_threshold_packets=50",
        "neighborhood_red.max_threshold_packets=120",
        "neighborhood_red.max_probability=0.1",
        "neighborhood_red.notice_interval_s=0.25",
        "neighborhood_red.lifetime_s=1",
        "neighborhood_red.suffering=below-fair-share",
        "neighborhood_red.flow_memory_s=3",
        "neighborhood_red.neighbour_memory_s=2",
        "neighborhood_red.delivery=broadcast",
        "neighborhood_red.incoming=relayed",
        "neighborhood_red.action=mark",
        "neighborhood_red.guard=on",
        "neighborhood_red.guard_rest_s=20",
    ])
    .unwrap()
    .config;
    let expected = Config {
        sampling: Duration::from_millis(200),
        weight: 0.3,
        bandwidth_bps: 1_000_000,
        packet_bits: 4096,
        min_threshold: 50.0,
        max_threshold: 120.0,
        max_probability: 0.1,
        notice_interval: Duration::from_millis(250),
        lifetime: Duration::from_secs(1),
        starvation: StarvationTest::BelowFairShare,
        flow_memory: Duration::from_secs(3),
        neighbour_memory: Duration::from_secs(2),
        delivery: Delivery::Broadcast,
        incoming: IncomingPolicy::Relayed,
        action: SignalAction::Mark,
        notice_limits: NoticeLimits::On(Limits { recovery_time: Duration::from_secs(20), ..Limits::DEFAULT }),
        ..Config::PAPER
    };
    assert_eq!(set, expected);
    let half = neighborhood(&["neighborhood_red.suffering_share=0.25"]).unwrap();
    assert_eq!(half.config.starvation, StarvationTest::BelowShare(0.25));
}

#[test]
fn a_larger_share_contains_the_nodes_of_a_smaller_one() {
    let members = |share: &str, run| {
        let scenario = parse(CHAIN, &["nodes.count=40", &format!("neighborhood_red.share={share}")]).unwrap();
        match scenario.spec(run).unwrap().radio.unwrap().neighborhood.unwrap().members {
            NodeSet::Some(nodes) => nodes,
            NodeSet::All => panic!("a share is not all"),
        }
    };
    let (quarter, half) = (members("0.25", 1), members("0.5", 1));
    assert_eq!((members("0", 1).len(), quarter.len(), half.len()), (0, 10, 20));
    assert!(quarter.is_subset(&half));
    assert_eq!(half, members("0.5", 1));
    assert_ne!(half, members("0.5", 2));
}

#[test]
fn observers_and_observed_nodes_are_configurable() {
    let set = neighborhood(&["neighborhood_red.delivery=none", "neighborhood_red.observe=[\"n2\", \"n0\"]"])
        .unwrap();
    assert_eq!(set.config.delivery, Delivery::None);
    assert_eq!(set.observed, [NodeId(0), NodeId(2)].into());
    assert!(neighborhood(&["neighborhood_red.share=1"]).unwrap().observed.is_empty());
}

#[test]
fn contradictory_settings_are_rejected() {
    for (settings, expected) in [
        (
            &["neighborhood_red.lifetime_s=0.9"][..],
            "Neighborhood RED wants a lifetime of at least two notice intervals",
        ),
        (
            &["neighborhood_red.min_threshold_packets=300"],
            "Neighborhood RED wants min_threshold < max_threshold",
        ),
        (&["neighborhood_red.guard_rest_s=3"], "`guard_rest_s` is used with guard = \"on\", not \"off\""),
        (
            &["neighborhood_red.suffering=below-fair-share", "neighborhood_red.suffering_share=0.3"],
            "`suffering_share` is used with suffering = \"below-share\"",
        ),
        (&["neighborhood_red.share=1.5"], "`neighborhood_red.share` = 1.5 is out of range"),
        (&["neighborhood_red.observe=[\"n77\"]"], "there is no node `n77`"),
        (&["neighborhood_red.wait=1"], "unknown key `wait` in `neighborhood_red`"),
    ] {
        let problem = problem(settings);
        assert!(problem.contains(expected), "{problem}");
    }
}
