//! Channels, gateways, routes, and nodes that stand while others move.

use super::*;
use hopline_sim::spec::{Channel, HostRoute};

/// A gateway between a wireless node and a server.
const GATEWAY: &str = "\
duration_s = 10
[radio]
[routing]
protocol = \"aodv\"
[mobility]
model = \"random-waypoint\"
width_m = 500
height_m = 500
max_speed_mps = 5
[[node]]
name = \"door\"
x_m = 250
fixed = true
[[node]]
name = \"server\"
interface = \"wired\"
[[node]]
name = \"m\"
[[link]]
a = \"door\"
b = \"server\"
rate_mbps = 10
delay_ms = 1
[[flow]]
src = \"server\"
dst = \"m\"
";

#[test]
fn a_fixed_node_is_stationary_while_others_move() {
    let nodes = spec(GATEWAY, &[]).nodes;
    let moves: Vec<bool> = nodes.iter().map(|node| !node.trajectory.is_static()).collect();
    assert_eq!(moves, [false, false, true]);
    assert_eq!(nodes[0].trajectory.position_at(Instant::ZERO).x_m, 250.0);
}

#[test]
fn movement_does_not_depend_on_fixed_nodes() {
    let (before, after) = (spec(GATEWAY, &[]), spec(GATEWAY, &["node.0.fixed=false"]));
    assert!(!after.nodes[0].trajectory.is_static());
    assert_eq!(before.nodes[2].trajectory, after.nodes[2].trajectory);
}

#[test]
fn wireless_nodes_have_the_common_channels_by_default() {
    let channels = |settings: &[&str]| -> Vec<Vec<Channel>> {
        spec(GATEWAY, settings).nodes.into_iter().map(|node| node.radio_channels).collect()
    };
    assert_eq!(channels(&[]), [vec![Channel(0)], vec![], vec![Channel(0)]]);
    let settings = ["radio.channels=[1, 6]", "node.2.channels=[6]"];
    assert_eq!(channels(&settings), [vec![Channel(1), Channel(6)], vec![], vec![Channel(6)]]);
}

#[test]
fn the_common_gateway_applies_to_nodes_without_their_own() {
    let gateways = |settings: &[&str]| -> Vec<Option<NodeId>> {
        spec(GATEWAY, settings).nodes.iter().map(|node| node.gateway).collect()
    };
    assert_eq!(gateways(&[]), [None, None, None]);
    assert_eq!(gateways(&["node.2.gateway=door"]), [None, None, Some(NodeId(0))]);
    assert_eq!(gateways(&["routing.gateway=door"]), [Some(NodeId(0)), None, Some(NodeId(0))]);
}

#[test]
fn a_route_is_added_to_the_table_of_its_node() {
    let text = GATEWAY.to_owned() + "[[route]]\nat = \"server\"\nto = \"m\"\nvia = \"door\"\n";
    let route = HostRoute { destination: NodeId(2), next_hop: NodeId(0) };
    assert_eq!(spec(&text, &[]).nodes[1].routes, [route]);
}
