//! Local repair: RFC 3561 §6.12.

use super::harness::*;
use super::network::Network;
use crate::aodv::config::LocalRepair;
use crate::aodv::*;
use hopline_core::Seq32;
use hopline_wire::aodv::{Message, Rerr};

const REPAIR: LocalRepair = LocalRepair::Rfc { max_hops: 10, add_ttl: 2 };

fn config() -> Config {
    Config { local_repair: REPAIR, ..Config::rfc3561() }
}

/// A relay that 8 (over 1) uses to reach 9 (over 2, three hops off) and 5 (over 2).
fn relay(config: Config) -> TestNode {
    let mut node = TestNode::new(config);
    node.receive_broadcast(1, 5, rreq(8, 1, 9, 1));
    node.skip(ms(20));
    node.receive_unicast(2, rrep(8, 9, 7, 2));
    node.receive_unicast(2, rrep(8, 5, 7, 2));
    node
}

fn failed(travelled: u8) -> FailedContent<u32> {
    FailedContent::Data { packet: 5, destination: node_address(9), source: node_address(8), travelled }
}

#[test]
fn s6_12_the_node_at_the_break_starts_a_discovery() {
    let mut node = relay(config());
    let sent = node.fail_link(2, failed(4));
    let (request, ttl) = only_request(&sent[..1]);
    assert_eq!(ttl, 5, "three hops to the destination, LOCAL_ADD_TTL more");
    assert_eq!((request.originator, request.destination_seq), (ME, Some(Seq32(8))));
    assert_eq!(node.route_view(9).unwrap().state, RouteState::Repairing);
    let error = only_error(&sent[1..]).0;
    assert!(
        error.unreachable.contains(&(node_address(5), Seq32(8))),
        "other routes over the link are given up"
    );
    assert!(!error.unreachable.iter().any(|(address, _)| *address == node_address(9)));
    assert_eq!(node.forward(8, 1, 9, 6), Decision::Accepted, "more packets wait too");
}

#[test]
fn s6_12_the_reach_of_the_repair_grows_with_the_distance_travelled() {
    let mut node = relay(config());
    assert_eq!(only_request(&node.fail_link(2, failed(12))[..1]).1, 8, "half of 12 hops, and 2");
}

#[test]
fn s6_12_a_repaired_route_carries_the_packets_and_a_longer_one_is_announced() {
    let mut node = relay(config());
    node.fail_link(2, failed(4));
    node.events();
    assert_eq!(node.receive_unicast(3, rrep(0, 9, 8, 2)), [], "as long as before: nobody need know");
    let events = node.events();
    assert!(events.contains(&Event::Release { packet: 5, next_hop: node_address(3) }));

    let mut node = relay(config());
    node.fail_link(2, failed(4));
    let sent = node.receive_unicast(3, rrep(0, 9, 8, 3));
    let (error, _) = only_error(&sent);
    assert_eq!(error, &Rerr { no_delete: true, unreachable: vec![(node_address(9), Seq32(8))] });
}

#[test]
fn s6_12_a_repair_that_fails_becomes_a_route_error() {
    let mut node = relay(config());
    node.fail_link(2, failed(4));
    node.events();
    let start = node.now;
    let sent = node.advance(ms(60_000));
    assert_eq!(sent.len(), 1, "one attempt only");
    assert_eq!(sent[0].0 - start, ms(2 * 40 * (5 + 2)), "RING_TRAVERSAL_TIME");
    let sent = [sent[0].1.clone()];
    assert_eq!(only_error(&sent).0.unreachable, [(node_address(9), Seq32(8))]);
    let dropped = Event::Drop { packet: 5, reason: DropReason::RepairFailed };
    assert_eq!(node.events(), [dropped, Event::RouteLost { destination: node_address(9) }]);
    assert_eq!(node.valid_route(9), None);
}

#[test]
fn s6_12_a_destination_beyond_max_repair_ttl_is_not_repaired() {
    let mut node =
        relay(Config { local_repair: LocalRepair::Rfc { max_hops: 2, add_ttl: 2 }, ..Config::rfc3561() });
    only_error(&node.fail_link(2, failed(4)));
    assert!(node.events().contains(&Event::Drop { packet: 5, reason: DropReason::LinkFailure }));
}

#[test]
fn s6_12_the_source_of_a_packet_repairs_nothing() {
    let mut node = relay(config());
    only_error(&node.fail_link(2, failed(0)));
}

#[test]
fn s6_12_an_n_flag_keeps_the_route_and_is_forwarded() {
    let mut node = relay(Config::rfc3561());
    let error = Message::Rerr(Rerr { no_delete: true, unreachable: vec![(node_address(9), Seq32(9))] });
    let sent = node.receive_unicast(2, error.clone());
    assert_eq!((&sent[0].message, sent[0].next_hop), (&error, node_address(1)));
    assert_eq!(node.valid_route(9), Some((node_address(2), 3, Some(Seq32(7)))));
}

#[test]
fn s6_12_a_packet_in_flight_survives_a_repaired_break() {
    // 0 – 1 – 2 – 3 – 4, and a way 2 – 5 – 4 around the break.
    let mut network = Network::new(6, config());
    network.link_all(&[(0, 1), (1, 2), (2, 3), (3, 4)]);
    network.send(0, 4, 1);
    network.run(ms(2_000));
    network.cut(2, 3);
    network.link(2, 5);
    network.link(5, 4);
    network.send(0, 4, 2);
    network.run(ms(200));
    assert_eq!(network.dropped, []);
    assert_eq!(
        network.delivered.iter().map(|(_, id, hops)| (*id, *hops)).collect::<Vec<_>>(),
        [(1, 4), (2, 4)]
    );
    assert_eq!(network.path(0, 4), [0, 1, 2, 5, 4]);
    assert_eq!(network.nodes[0].stats().requests_originated, 3, "the source did not search again");
}
