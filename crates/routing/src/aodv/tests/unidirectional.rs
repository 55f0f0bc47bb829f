//! Unidirectional links. One HELLO or one request of a neighbour is enough to send to it (RFC 3561 §6.9, §6.5). No node
//! checks that the neighbour receives it, unless the link layer reports a failure (§6.8).

use super::harness::*;
use super::network::Network;
use crate::aodv::config::{Hello, HelloSenders, LinkSensing, ReplyAck};
use crate::aodv::*;
use hopline_core::Seq32;
use hopline_wire::aodv::Rrep;

fn by_hello() -> Config {
    let hello = Hello { senders: HelloSenders::Always, ..Hello::RFC3561 };
    Config { link_sensing: LinkSensing::Hello(hello), ..Config::rfc3561() }
}

fn hello(from: u32, seq: u32) -> Rrep {
    Rrep { lifetime: ms(2_000), ..rrep(from, from, seq, 0) }
}

#[test]
fn s6_9_one_hello_creates_a_route_over_a_possibly_unidirectional_link() {
    let mut node = TestNode::new(by_hello());
    assert!(node.receive_broadcast(1, 1, hello(1, 4)).is_empty());
    assert_eq!(node.send(1, 7), Decision::Forward { next_hop: node_address(1) });
    assert!(node.sent().is_empty(), "no request, no question");
}

#[test]
fn s6_5_one_request_creates_a_reverse_route_over_its_relay() {
    let mut node = TestNode::new(by_hello());
    let sent = node.receive_broadcast(1, 5, rreq(8, 0, 0, 2));
    assert_eq!(only_reply(&sent).1, node_address(1));
    assert_eq!(node.send(8, 7), Decision::Forward { next_hop: node_address(1) });
    assert_eq!(node.send(1, 8), Decision::Forward { next_hop: node_address(1) });
}

#[test]
fn s6_8_in_hello_mode_a_lost_reply_is_repeated_over_the_same_link() {
    let mut node = TestNode::new(by_hello());
    for id in 0..5 {
        let sent = node.receive_broadcast(1, 5, rreq(8, id, 0, 2));
        assert_eq!(only_reply(&sent).1, node_address(1), "request {id}");
        assert!(node.fail_link(1, FailedContent::Reply).is_empty(), "the link layer is not believed");
        node.skip(ms(500));
    }
    assert_eq!(node.aodv.stats().ignored(IgnoredReason::Blacklisted), 0);
    assert_eq!(node.aodv.stats().links_broken, 0);
}

#[test]
fn s6_8_with_the_link_layer_a_lost_reply_blacklists_the_neighbour() {
    let mut node = TestNode::new(Config::rfc3561());
    let sent = node.receive_broadcast(1, 5, rreq(8, 0, 0, 2));
    assert_eq!(only_reply(&sent).1, node_address(1));
    node.fail_link(1, FailedContent::Reply);
    assert!(
        node.receive_broadcast(1, 5, rreq(8, 1, 0, 2)).is_empty(),
        "a request over the link that works one way"
    );
    let sent = node.receive_broadcast(2, 5, rreq(8, 1, 0, 3));
    assert_eq!(only_reply(&sent).1, node_address(2), "the same one over another way, if longer");
    node.skip(ms(5_600));
    let sent = node.receive_broadcast(1, 5, rreq(8, 2, 0, 2));
    assert_eq!(only_reply(&sent).1, node_address(1), "after BLACKLIST_TIMEOUT it may try again");
}

#[test]
fn s6_8_without_the_link_layer_rrep_ack_blacklists_the_neighbour() {
    let mut node = TestNode::new(Config { reply_ack: ReplyAck::Always, ..by_hello() });
    let sent = node.receive_broadcast(1, 5, rreq(8, 0, 0, 2));
    assert!(only_reply(&sent).0.ack_required);
    node.skip(ms(1_000));
    assert!(node.receive_broadcast(1, 5, rreq(8, 1, 0, 2)).is_empty());
    assert_eq!(node.aodv.stats().ignored(IgnoredReason::Blacklisted), 1);
}

#[test]
fn s6_9_a_broken_direction_is_not_detected_while_hellos_arrive() {
    let mut node = TestNode::new(by_hello());
    for seq in 0..60 {
        node.receive_broadcast(1, 1, hello(1, seq));
        assert_eq!(node.send(1, seq), Decision::Forward { next_hop: node_address(1) }, "second {seq}");
        let carried =
            FailedContent::Data { packet: seq, destination: node_address(1), source: ME, travelled: 0 };
        node.fail_link(1, carried);
        assert_eq!(node.events().last(), Some(&Event::Drop { packet: seq, reason: DropReason::LinkFailure }));
        node.skip(ms(1_000));
    }
    assert_eq!(
        (node.aodv.stats().links_broken, node.valid_route(1).map(|r| r.2)),
        (0, Some(Some(Seq32(59))))
    );
    node.skip(ms(1_001));
    assert_eq!(node.valid_route(1), None, "but two HELLOs that do not come");
}

#[test]
fn a_hello_replaces_a_working_detour_to_the_neighbour() {
    // 0 receives from 1, but not 1 from 0; both directions work over 2.
    let way_around = |config: Config| {
        let mut network = Network::new(3, config);
        network.link_all(&[(0, 1), (0, 2), (2, 1)]);
        network.cut_one_way(0, 1);
        network.run(ms(1_500)); // a HELLO of each
        for id in 0..100 {
            network.send(0, 1, id);
            network.run(ms(100));
        }
        (network.delivered.len(), network.path(0, 1))
    };
    // The link layer reports the first packet as failed, and the request takes the other path.
    let (delivered, path) = way_around(Config::rfc3561());
    assert_eq!(path, [0, 2, 1]);
    assert!(delivered >= 98, "{delivered}");
    // Without that report, 1 is a neighbour as long as its HELLOs arrive.
    let (delivered, path) = way_around(by_hello());
    assert_eq!((delivered, path), (0, vec![0, 1]));
}

#[test]
fn a_request_over_a_unidirectional_link_finds_no_reverse_route() {
    // 2 receives from 1, but not 1 from 2.
    let mut network = Network::chain(3, by_hello());
    network.cut_one_way(2, 1);
    network.send(0, 2, 1);
    network.run(ms(2_000));
    assert_eq!(network.path(2, 0), [2, 1, 0], "the request was heard");
    assert_eq!(network.next_hop(0, 2), None, "its answer was not");
    network.send(2, 0, 2);
    network.run(ms(20_000));
    assert!(network.delivered.is_empty(), "and what 2 sends goes the same way");
    assert_eq!(network.dropped, [(2, 2, DropReason::LinkFailure), (1, 0, DropReason::DiscoveryFailed)]);
}
