//! Networks of agents with wires behind them, nodes with several radios, and what a forwarding table says.

use crate::support::{
    self, NotificationRecorder, SpecBuilder, at, chain, disk, link, moving, ns2_tcp, standing, walk,
};
use bytes::Bytes;
use hopline_core::{Duration, Instant, NodeId};
use hopline_radio::mobility::Trajectory;
use hopline_routing::{aodv, dsr, olsr};
use hopline_sim::spec::{Channel, HostRoute};
use hopline_sim::trace::{DropLocation, DropReason};
use hopline_sim::{NoTrace, Spec, World, simulate};
use hopline_transport::Signal;
use hopline_wire::ipv4::{Ecn, Header, Protocol};
use std::net::Ipv4Addr;

/// Nodes 0 to `hops` in a row, of which the last is wired to a server behind a router: `hops` + 1 and + 2.
fn with_server(hops: u32) -> Spec {
    let (door, router, server) = (hops, hops + 1, hops + 2);
    let cable = |a, b| link(a, b, 10_000_000, Duration::from_millis(2), 50);
    chain(hops).wired_node().wired_node().link(cable(door, router)).link(cable(router, server)).seconds(20)
}

fn with_each_agent(spec: &Spec) -> [(&'static str, Spec); 3] {
    [
        ("AODV", spec.clone().aodv(aodv::Config::rfc3561())),
        ("OLSR", spec.clone().olsr(olsr::Config::rfc3626())),
        ("DSR", spec.clone().dsr(dsr::Config::rfc4728())),
    ]
}

#[test]
fn mobile_nodes_reach_a_server_behind_a_gateway_and_it_reaches_them() {
    for (src, dst) in [(0, 5), (5, 0)] {
        for (protocol, spec) in with_each_agent(&with_server(3).transfer(src, dst, ns2_tcp(8), 200_000)) {
            let flow = &simulate(&spec, 1).flows[0];
            assert_eq!(flow.bytes_received, 200_000, "{protocol}, from {src} to {dst}");
            assert_eq!(flow.data.hops_mean(), Some(5.0), "{protocol}, from {src} to {dst}");
        }
    }
}

#[test]
fn a_gateway_that_sends_over_its_wire_is_never_without_a_route() {
    for (protocol, spec) in with_each_agent(&with_server(1).transfer(1, 3, ns2_tcp(8), 50_000)) {
        let flow = &simulate(&spec, 1).flows[0];
        assert_eq!((flow.bytes_received, flow.route_gaps), (50_000, 0), "{protocol}");
    }
}

#[test]
fn nodes_of_the_same_network_never_go_through_the_wire() {
    for (protocol, spec) in with_each_agent(&with_server(3).transfer(0, 3, ns2_tcp(8), 50_000)) {
        let outcome = simulate(&spec, 1);
        assert_eq!(outcome.flows[0].data.hops_mean(), Some(3.0), "{protocol}");
        let drops = &outcome.nodes[4].drops;
        assert_eq!(drops.total(), 0, "{protocol}: the router has nothing to do");
    }
}

#[test]
fn a_node_uses_the_nearer_gateway_by_default() {
    // 0 – 1 – 2 – 3 – 4, of which 0 and 4 are wired to the server 5.
    let cable = |door| link(door, 5, 10_000_000, Duration::from_millis(1), 50);
    let spec =
        chain(4).wired_node().link(cable(0)).link(cable(4)).transfer(1, 5, ns2_tcp(8), 20_000).seconds(20);
    for (protocol, spec) in with_each_agent(&spec) {
        let hops = |spec: &Spec| simulate(spec, 1).flows[0].data.hops_mean();
        assert_eq!(hops(&spec), Some(2.0), "{protocol}");
        let told =
            spec.change(|spec| spec.nodes[1..4].iter_mut().for_each(|node| node.gateway = Some(NodeId(4))));
        assert_eq!(hops(&told), Some(4.0), "{protocol}");
    }
}

#[test]
fn two_networks_of_agents_meet_over_the_wire_between_their_gateways() {
    // 0 – 1 and 2 – 3, far apart; 1 and 2 are wired to each other.
    let far = 10_000.0;
    let spec = standing(&[(0.0, 0.0), (200.0, 0.0), (far, 0.0), (far + 200.0, 0.0)]);
    let cable = link(1, 2, 1_000_000, Duration::from_millis(5), 50);
    // The node beyond the wire is known to have an agent, so that only a host route leads there.
    let spec = spec.link(cable).change(|spec| {
        for (node, destination, next_hop) in [(1, 3, 2), (2, 0, 1)] {
            let route = HostRoute { destination: NodeId(destination), next_hop: NodeId(next_hop) };
            spec.nodes[node].routes.push(route);
        }
    });
    let spec = spec.cbr(1, 3, 100, Duration::from_millis(100)).from(5.0).seconds(15);
    for (protocol, spec) in with_each_agent(&spec) {
        let flow = &simulate(&spec, 1).flows[0];
        assert_eq!(flow.data.hops_mean(), Some(2.0), "{protocol}");
        assert!(flow.segments_received >= 95, "{protocol}: {}", flow.segments_received);
    }
}

#[test]
fn an_end_is_notified_of_loss_and_recovery_of_the_route_to_its_gateway() {
    // The node goes out of reach of the gateway and comes back.
    let way = walk(&[
        (0.0, 100.0, 0.0),
        (4.0, 100.0, 0.0),
        (8.0, 1000.0, 0.0),
        (12.0, 1000.0, 0.0),
        (16.0, 100.0, 0.0),
    ]);
    let spec = moving([way, Trajectory::fixed(hopline_radio::mobility::Position::new(0.0, 0.0))]);
    let cable = link(1, 2, 10_000_000, Duration::from_millis(1), 50);
    let spec = spec.wired_node().link(cable).bulk(0, 2, ns2_tcp(8)).elfn().seconds(60);
    for (protocol, spec) in with_each_agent(&spec) {
        let mut world = World::new(&spec, 1, NotificationRecorder::default());
        world.run_until(at(60.0));
        let (outcome, told) = world.finish();
        let of_node = |signal| told.0.iter().filter(|told| **told == (0, signal)).count();
        assert!(of_node(Signal::RouteLost) > 0, "{protocol}: {:?}", told.0);
        assert!(of_node(Signal::RouteFound) > 0, "{protocol}: {:?}", told.0);
        assert!(outcome.flows[0].route_gaps > 0 || protocol == "OLSR", "{protocol}");
    }
}

#[test]
fn channels_do_not_interfere() {
    // Two pairs within reach of each other.
    let pairs = |channels: [u16; 2]| {
        let spec = standing(&[(0.0, 0.0), (100.0, 0.0), (0.0, 100.0), (100.0, 100.0)]);
        let spec = spec.bulk(0, 1, ns2_tcp(8)).bulk(2, 3, ns2_tcp(8)).change(|spec| {
            for (node, at) in spec.nodes.iter_mut().enumerate() {
                at.radio_channels = vec![Channel(channels[node / 2])];
            }
        });
        let outcome = simulate(&spec, 1);
        let alone = standing(&[(0.0, 0.0), (100.0, 0.0)]).bulk(0, 1, ns2_tcp(8));
        let alone = simulate(&alone, 1).flows[0].bytes_received as f64;
        let share = outcome.flows.iter().map(|flow| flow.bytes_received as f64).sum::<f64>() / alone;
        let senses = outcome.nodes.iter().any(|node| !node.airtime.sensing.is_zero());
        (share, senses)
    };
    let (shared, apart) = (pairs([1, 1]), pairs([1, 6]));
    assert!(shared.0 < 1.1, "{shared:?}");
    assert!(apart.0 > 1.99 && !apart.1, "{apart:?}");
}

#[test]
fn a_relay_with_two_radios_sends_on_one_while_it_receives_on_the_other() {
    let relayed = |radios: [&[Channel]; 3]| {
        let spec = chain(2).bulk(0, 2, ns2_tcp(8)).seconds(10).change(|spec| {
            for (node, radios) in spec.nodes.iter_mut().zip(radios) {
                node.radio_channels = radios.to_vec();
            }
        });
        [spec.clone(), spec.aodv(aodv::Config::rfc3561())].map(|spec| {
            let outcome = simulate(&spec, 1);
            let relay = outcome.nodes[1].airtime;
            let time = relay.transmitting + relay.receiving + relay.sensing + relay.nav + relay.idle;
            assert_eq!(time, spec.duration * spec.nodes[1].radio_channels.len() as u64);
            outcome.flows[0].bytes_received as f64
        })
    };
    let (a, b) = (Channel(1), Channel(11));
    let one = relayed([&[a], &[a], &[a]]);
    let two = relayed([&[a], &[a, b], &[b]]);
    for (one, two) in one.into_iter().zip(two) {
        assert!(two > 1.7 * one, "one channel {one}, two {two}");
    }
}

#[test]
fn nodes_without_a_channel_in_common_are_no_neighbours() {
    let spec = chain(1).cbr(0, 1, 100, Duration::from_millis(100)).seconds(2);
    let spec = spec.change(|spec| spec.nodes[1].radio_channels = vec![Channel(7)]);
    let outcome = simulate(&spec, 1);
    assert_eq!((outcome.flows[0].segments_received, outcome.nodes[0].drops.no_route), (0, 21));
}

#[test]
fn a_next_hop_that_no_interface_leads_to_is_a_counted_drop() {
    let spec = chain(1).wired_node().cbr(0, 1, 100, Duration::from_millis(100)).seconds(2);
    let astray = HostRoute { destination: NodeId(1), next_hop: NodeId(2) };
    let spec = spec.change(|spec| spec.nodes[0].routes.push(astray));
    let (outcome, drops) = support::drops(&spec, 1);
    assert_eq!((outcome.nodes[0].drops.unresolved, outcome.nodes[0].frames.total()), (21, 0));
    assert!(drops.iter().all(|drop| *drop == (NodeId(0), DropReason::NoNeighbour, DropLocation::Network)));
}

#[test]
fn a_host_route_overrides_other_routes() {
    // A triangle of wires: the direct one is left out.
    let cable = |a, b| link(a, b, 10_000_000, Duration::from_millis(1), 50);
    let triangle = support::wired(3).link(cable(0, 1)).link(cable(1, 2)).link(cable(0, 2));
    let spec = triangle.cbr(0, 2, 100, Duration::from_millis(100)).seconds(2);
    assert_eq!(simulate(&spec, 1).flows[0].data.hops_mean(), Some(1.0));
    let around = HostRoute { destination: NodeId(2), next_hop: NodeId(1) };
    let spec = spec.change(|spec| spec.nodes[0].routes.push(around));
    assert_eq!(simulate(&spec, 1).flows[0].data.hops_mean(), Some(2.0));
}

#[test]
fn a_node_answers_to_every_address_that_it_has() {
    let server = Ipv4Addr::new(192, 0, 2, 7);
    for (protocol, spec) in with_each_agent(&with_server(2).with_taps()) {
        let spec = spec.change(|spec| spec.nodes[4].addresses.push(server));
        let header = Header {
            src: NodeId(0).ipv4(),
            dst: server,
            ttl: 9,
            protocol: Protocol::Other(253),
            ecn: Ecn::NotCapable,
            id: 1,
        };
        let mut bytes = Vec::new();
        header.emit(2, &mut bytes);
        bytes.extend(b"hi");
        let mut world = World::new(&spec, 1, NoTrace);
        world.run_until(at(10.0));
        world.inject(NodeId(0), &Bytes::from(bytes)).expect("a good packet");
        world.run_until(Instant::ZERO + spec.duration);
        let out = world.poll_egress().unwrap_or_else(|| panic!("{protocol}: nothing came"));
        assert_eq!((out.node, &out.packet[20..]), (NodeId(4), &b"hi"[..]), "{protocol}");
    }
}

#[test]
fn packets_to_unknown_addresses_are_dropped_at_the_source() {
    for (protocol, spec) in with_each_agent(&with_server(1).with_taps()) {
        let header = Header {
            src: NodeId(0).ipv4(),
            dst: Ipv4Addr::new(203, 0, 113, 1),
            ttl: 9,
            protocol: Protocol::Other(253),
            ecn: Ecn::NotCapable,
            id: 1,
        };
        let mut bytes = Vec::new();
        header.emit(0, &mut bytes);
        let mut world = World::new(&spec.seconds(60), 1, NoTrace);
        world.run_until(at(10.0));
        world.inject(NodeId(0), &Bytes::from(bytes)).expect("a good packet");
        world.run_until(at(60.0));
        assert!(world.poll_egress().is_none(), "{protocol}");
        let (outcome, _) = world.finish();
        assert_eq!(outcome.nodes[0].drops.no_route, 1, "{protocol}");
    }
}

#[test]
fn a_capture_has_an_interface_for_each_radio() {
    let spec = chain(1).cbr(0, 1, 100, Duration::from_millis(500)).seconds(2);
    let spec = spec.change(|spec| spec.nodes[1].radio_channels = vec![Channel(3), Channel(0)]);
    let mut world = World::new(
        &spec,
        1,
        hopline_sim::trace::PcapTracer::new(Vec::new(), &spec).expect("a vector takes all"),
    );
    world.run_until(at(2.0));
    let (outcome, pcap) = world.finish();
    let bytes = pcap.finish().expect("a vector takes all");
    assert_eq!(outcome.flows[0].segments_received, 4);
    let name = b"n1 (radio 2)";
    assert!(bytes.windows(name.len()).any(|window| window == name));
}

#[test]
fn equal_networks_with_gateways_and_radios_have_equal_fingerprints() {
    let (a, b) = (Channel(1), Channel(11));
    let spec = with_server(3).bulk(0, 5, ns2_tcp(8)).bulk(5, 1, ns2_tcp(8)).change(|spec| {
        spec.radio = Some(disk(250.0));
        for (node, radios) in spec.nodes.iter_mut().zip([vec![a], vec![a, b], vec![b, a], vec![b]]) {
            node.radio_channels = radios;
        }
    });
    for (protocol, spec) in with_each_agent(&spec) {
        let [one, other] = [1, 1].map(|run| simulate(&spec, run));
        assert_eq!(one, other, "{protocol}");
        assert!(one.flows.iter().all(|flow| flow.bytes_received > 0), "{protocol}");
    }
}
