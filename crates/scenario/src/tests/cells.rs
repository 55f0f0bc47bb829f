//! `[cells]` and `[[mobile]]`.

use super::errors::first_problem;
use super::*;
use hopline_core::NodeId;
use hopline_sim::spec::{AcceptedStations, HandoffRule, Scheme, StartState};

/// A server, two stations and a mobile host, with `rest` of `[cells]` and `of_mobile` of `[[mobile]]`.
fn cells(rest: &str, of_mobile: &str) -> String {
    format!(
        "duration_s = 10\n[radio]\npreset = \"ns2-wavelan\"\n\
         [[node]]\nname = \"s\"\ninterface = \"wired\"\n[[node]]\nname = \"b1\"\nx_m = 0\ny_m = 0\n\
         [[node]]\nname = \"b2\"\nx_m = 200\ny_m = 0\n[[node]]\nname = \"m\"\nx_m = 100\ny_m = 0\n\
         [[link]]\na = \"s\"\nb = \"b1\"\nrate_mbps = 10\ndelay_ms = 1\n\
         [[link]]\na = \"s\"\nb = \"b2\"\nrate_mbps = 10\ndelay_ms = 1\n\
         [[flow]]\nsrc = \"s\"\ndst = \"m\"\n[cells]\nhome_agent = \"s\"\n{rest}[[mobile]]\nnode = \"m\"\n{of_mobile}"
    )
}

fn resolved(rest: &str, of_mobile: &str) -> hopline_sim::spec::CellsSpec {
    spec(&cells(rest, of_mobile), &[]).cells.expect("there are cells")
}

#[test]
fn defaults_are_those_of_the_paper() {
    let of = resolved("", "");
    assert_eq!((of.scheme, of.home_agent, of.cold), (Scheme::Multicast, NodeId(0), StartState::Cold));
    assert_eq!(of.stations, [NodeId(1), NodeId(2)], "every node with a radio that is not mobile");
    assert_eq!((of.beacon_interval, of.buffer_packets), (Duration::from_secs(1), 12));
    let host = of.mobiles[0];
    assert_eq!((host.node, host.buffering_stations, host.accepts), (NodeId(3), 1, AcceptedStations::All));
    assert_eq!(
        (host.handoff_decision, host.station_lifetime),
        (HandoffRule::Stronger { margin_db: 6.0, beacons: 2 }, Duration::from_secs(3))
    );
}

#[test]
fn every_key_has_an_effect() {
    let of = resolved(
        "scheme = \"registration\"\nstations = [\"b2\"]\nbuffer_packets = 0\nbeacon_s = 0.5\nstart = \"warm\"\n",
        "handoff_every_s = 2\nbuffering = 3\nlistens = \"current\"\nlifetime_s = 9\n",
    );
    assert_eq!(
        (of.scheme, of.stations.as_slice(), of.buffer_packets),
        (Scheme::Registration, &[NodeId(2)][..], 0)
    );
    assert_eq!((of.beacon_interval, of.cold), (Duration::from_millis(500), StartState::Warm));
    let host = of.mobiles[0];
    assert_eq!(
        (host.handoff_decision, host.buffering_stations),
        (HandoffRule::Periodic(Duration::from_secs(2)), 3)
    );
    assert_eq!((host.accepts, host.station_lifetime), (AcceptedStations::Current, Duration::from_secs(9)));
    let quick = resolved("beacon_s = 0.1\n", "hysteresis_db = 3\nbeacons = 4\n").mobiles[0];
    assert_eq!(
        (quick.handoff_decision, quick.station_lifetime),
        (HandoffRule::Stronger { margin_db: 3.0, beacons: 4 }, Duration::from_millis(300))
    );
}

#[test]
fn errors_are_named() {
    let problem = |rest: &str, of_mobile: &str| first_problem(&cells(rest, of_mobile));
    for (rest, of_mobile, message) in [
        ("stations = [\"x\"]\n", "", "there is no node `x`"),
        ("stations = [\"s\"]\n", "", "`s` has no radio"),
        ("stations = [\"m\"]\n", "", "`m` is a mobile host"),
        ("scheme = \"unicast\"\n", "", "`cells.scheme` does not know \"unicast\""),
        ("", "[[mobile]]\nnode = \"m\"\n", "`m` is a mobile host twice"),
        ("", "[[mobile]]\nnode = \"s\"\n", "`s` has no radio"),
        ("", "handoff_every_s = 0\n", "`mobile.0.handoff_every_s`"),
        ("[routing]\nprotocol = \"aodv\"\n", "", "[cells] with a routing protocol"),
    ] {
        let problem = problem(rest, of_mobile);
        assert!(problem.contains(message), "{rest}{of_mobile}: {problem}");
    }
    let without = cells("", "").replace("[cells]\nhome_agent = \"s\"\n", "");
    assert!(first_problem(&without).contains("[[mobile]] without [cells]"));
    let at_home = cells("", "").replace("home_agent = \"s\"", "home_agent = \"m\"");
    assert!(first_problem(&at_home).contains("`m` is a mobile host"));
}

#[test]
fn the_number_of_repeated_acks_is_configurable() {
    let repeats = |rest: &str| resolved("", rest).mobiles[0].fast_retransmit.map(|of| of.duplicates.get());
    assert_eq!(["", "fast_retransmit = 0\n", "fast_retransmit = 4\n"].map(repeats), [None, None, Some(4)]);
}
