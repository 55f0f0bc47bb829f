//! Nodes that act at the same instant: broadcasts are not repeated by a MAC, so that those which meet on an
//! idle medium are lost, and lost again at each further attempt if nothing draws a delay (RFC 5148).

use crate::support::{SpecBuilder, disk, ns2_tcp, standing};
use hopline_core::Duration;
use hopline_routing::{aodv, dsr, olsr};
use hopline_sim::spec::AddressResolution;
use hopline_sim::{Spec, simulate};

/// Nodes that reach each other over 250 m, with the MAC of the standard, which sends at once where the medium is idle.
fn nodes(positions: &[(f64, f64)]) -> Spec {
    standing(positions).change(|spec| spec.radio = Some(disk(250.0)))
}

/// Two stations on both sides of a third. They hear each other.
fn neighbour_positions() -> Spec {
    nodes(&[(0.0, 0.0), (50.0, 0.0), (100.0, 0.0)])
}

/// Places of stations that are out of each other's range.
fn hidden_positions() -> Spec {
    nodes(&[(0.0, 0.0), (200.0, 0.0), (400.0, 0.0)])
}

/// Four stations around node 0. Those on opposite sides do not hear each other.
fn cross_positions() -> Spec {
    nodes(&[(0.0, 0.0), (200.0, 0.0), (-200.0, 0.0), (0.0, 200.0), (0.0, -200.0)])
}

/// Ten datagrams a second from each of `sources`, all at the same instants.
fn synchronised_flows_to(spec: Spec, destination: u32, sources: &[u32]) -> Spec {
    let interval = Duration::from_millis(100);
    sources.iter().fold(spec, |spec, source| spec.cbr(*source, destination, 100, interval)).seconds(10)
}

/// Flows of several networks, all of which start together, without the rest of what they need.
fn synchronised_networks() -> [Spec; 3] {
    [
        synchronised_flows_to(neighbour_positions(), 1, &[0, 2]),
        synchronised_flows_to(hidden_positions(), 1, &[0, 2]),
        synchronised_flows_to(cross_positions(), 0, &[1, 2, 3, 4]),
    ]
}

/// Relays act in step with each other, and nodes that hear both do not receive them: a far node behind two
/// relays, and the middle of a row to which both ends send.
fn relayed() -> [Spec; 2] {
    let diamond = nodes(&[(0.0, 0.0), (150.0, 130.0), (150.0, -130.0), (300.0, 0.0)]);
    let row = nodes(&[(0.0, 0.0), (200.0, 0.0), (400.0, 0.0), (600.0, 0.0), (800.0, 0.0)]);
    [synchronised_flows_to(diamond, 3, &[0]), synchronised_flows_to(row, 2, &[0, 4])]
}

/// The smallest share of its datagrams that a flow delivers.
fn worst_delivery_ratio(spec: &Spec) -> f64 {
    let flows = simulate(spec, 1).flows;
    flows.iter().map(|flow| flow.segments_received as f64 / flow.segments_sent as f64).fold(1.0, f64::min)
}

#[test]
fn aodv_finds_routes_of_simultaneous_flows() {
    let jittered = aodv::Config::rfc3561();
    let in_step = aodv::Config { originated_jitter: Duration::ZERO, ..jittered };
    for spec in synchronised_networks() {
        assert_eq!(worst_delivery_ratio(&spec.clone().aodv(in_step)), 0.0, "their requests meet");
        let share = worst_delivery_ratio(&spec.aodv(jittered));
        assert!(share > 0.8, "{share}");
    }
}

#[test]
fn dsr_finds_routes_of_simultaneous_flows() {
    for jittered in [dsr::Config::rfc4728(), dsr::Config::rfc4728().without_cache()] {
        let in_step = dsr::Config { originated_jitter: Duration::ZERO, ..jittered };
        for spec in synchronised_networks() {
            assert_eq!(worst_delivery_ratio(&spec.clone().dsr(in_step)), 0.0, "their requests meet");
            let share = worst_delivery_ratio(&spec.dsr(jittered));
            assert!(share > 0.8, "{share}");
        }
    }
}

#[test]
fn relays_of_the_same_request_do_not_always_collide() {
    let (none, by_aodv, by_dsr) = (Duration::ZERO, aodv::Config::rfc3561(), dsr::Config::rfc4728());
    let aodv_in_step = aodv::Config { originated_jitter: none, broadcast_jitter: none, ..by_aodv };
    let dsr_in_step = dsr::Config { originated_jitter: none, broadcast_jitter: none, ..by_dsr };
    for spec in relayed() {
        let in_step = [spec.clone().aodv(aodv_in_step), spec.clone().dsr(dsr_in_step)];
        assert_eq!(in_step.map(|spec| worst_delivery_ratio(&spec)), [0.0; 2], "what they relay meets");
        for spec in [spec.clone().aodv(by_aodv), spec.dsr(by_dsr)] {
            let share = worst_delivery_ratio(&spec);
            assert!(share > 0.8, "{share}");
        }
    }
}

#[test]
fn olsr_converges_for_nodes_that_start_together() {
    for spec in synchronised_networks().into_iter().chain(relayed()) {
        // Links are known after three HELLO messages, and routes after the next TC message.
        let spec = spec.olsr(olsr::Config::rfc3626()).seconds(40);
        let share = worst_delivery_ratio(&spec);
        assert!(share > 0.6, "{share}");
    }
}

#[test]
fn arp_resolves_simultaneous_requests() {
    let asking = |spec: Spec, jitter: Duration| {
        spec.radio(|radio| {
            radio.address_resolution = AddressResolution::Arp;
            radio.arp_jitter = jitter;
        })
    };
    let jitter = disk(250.0).arp_jitter;
    for spec in synchronised_networks() {
        assert_eq!(worst_delivery_ratio(&asking(spec.clone(), Duration::ZERO)), 0.0, "their requests meet");
        let share = worst_delivery_ratio(&asking(spec, jitter));
        assert!(share > 0.8, "{share}");
    }
}

#[test]
fn tcp_connections_that_start_together_are_established_and_share_the_medium() {
    let spec = || neighbour_positions().bulk(0, 1, ns2_tcp(32)).bulk(2, 1, ns2_tcp(32)).seconds(10);
    let mut asking = spec();
    if let Some(radio) = &mut asking.radio {
        radio.address_resolution = AddressResolution::Arp;
    }
    for spec in [spec().aodv(aodv::Config::rfc3561()), spec().dsr(dsr::Config::rfc4728()), asking] {
        for flow in simulate(&spec, 1).flows {
            assert!(flow.segments_received > 500, "{}", flow.segments_received);
        }
    }
}
