//! Overheard packets for other nodes (RFC 4728 §3.3.1, §3.4.3).

use super::harness::*;
use crate::dsr::config::{GratuitousReplies, Tap};
use crate::dsr::*;

#[test]
fn routes_are_learnt_from_overheard_packets() {
    let mut node = TestNode::new(Config::rfc4728());
    node.overhear(5, 6, data(4, &[5, 6], 1, 9, 1));
    assert_eq!(node.routes(), [path(&[5, 6, 9]), path(&[5, 4])]);
    let mut node = TestNode::new(Config::rfc4728());
    node.overhear(5, 6, reply(9, &[5, 6], 1, 4, &[6, 5, 9]));
    assert_eq!(node.routes(), [path(&[5, 6, 4]), path(&[5, 9])]);
}

#[test]
fn without_tapping_nothing_is_learnt() {
    let mut node = TestNode::new(with_cache(|cache| cache.tap = Tap::Off));
    assert_eq!(node.overhear(5, 6, data(4, &[5, 6, 0], 2, 9, 1)), []);
    assert_eq!((node.advance_past_jitter(), node.routes().len()), (vec![], 0));
}

#[test]
fn packets_that_contradict_their_route_are_ignored() {
    let mut node = TestNode::new(Config::rfc4728());
    node.overhear(5, 7, data(4, &[5, 6], 1, 9, 1)); // sent to 7
    node.overhear(3, 6, data(4, &[5, 6], 1, 9, 1)); // by 3
    node.overhear(5, 0, data(4, &[5, 0], 1, 9, 1)); // to this node
    assert_eq!((node.routes().len(), node.ignored(IgnoredReason::Malformed)), (0, 3));
    assert_eq!(node.events(), []);
}

#[test]
fn gratuitous_replies_are_rate_limited() {
    let mut node = TestNode::new(Config::rfc4728());
    let detour = || data(4, &[5, 6, 7, 0, 8], 4, 9, 1);
    node.overhear(5, 6, detour());
    let sent = node.advance_past_jitter();
    let (packet, next_hop) = only_packet(&sent);
    assert_eq!((packet.source, packet.destination, next_hop), (ME, node_address(4), node_address(5)));
    assert_eq!(packet.header.options.as_slice(), [source_route(0, &[5], 1), reply_option(&[5, 0, 8, 9])]);
    node.overhear(5, 6, detour());
    assert_eq!((node.advance_past_jitter(), node.ignored(IgnoredReason::HeldOff)), (vec![], 1));
    node.overhear(6, 7, data(4, &[5, 6, 7, 0, 8], 3, 9, 1));
    assert_eq!(node.advance_past_jitter().len(), 1, "another transmitter");
    node.overhear(5, 6, data(3, &[5, 6, 0], 2, 9, 1));
    assert_eq!(node.advance_past_jitter().len(), 1, "another source");
    node.advance(ms(1000));
    node.overhear(5, 6, detour());
    assert_eq!(node.advance_past_jitter().len(), 1, "a second later");
    assert_eq!(node.dsr.stats().replies_gratuitous, 4);
    assert_eq!(node.events(), [], "the packet itself comes later");
}

#[test]
fn a_destination_that_overhears_the_source_sends_a_gratuitous_reply() {
    let mut node = TestNode::new(Config::rfc4728());
    node.overhear(4, 6, data(4, &[6], 1, 0, 1));
    let sent = node.advance_past_jitter();
    assert_eq!(
        (only_packet(&sent).1, only_packet(&sent).0.header.options.as_slice()),
        (node_address(4), [source_route(0, &[], 0), reply_option(&[0])].as_slice())
    );
}

#[test]
fn revisited_salvaged_or_dataless_packets_are_no_detours() {
    let mut node = TestNode::new(Config::rfc4728());
    node.overhear(6, 7, data(4, &[0, 6, 7], 1, 9, 1));
    node.overhear(5, 6, with_data(packet(4, 9, &[source_route(1, &[5, 6, 0], 2)]), 1));
    node.overhear(5, 6, reply(4, &[5, 6, 0], 2, 9, &[0, 6, 5, 4]));
    assert_eq!(node.advance_past_jitter(), []);
}

#[test]
fn no_gratuitous_replies_if_disabled_or_the_table_is_full() {
    let mut node = TestNode::new(with_cache(|cache| cache.gratuitous_replies = GratuitousReplies::Off));
    node.overhear(5, 6, data(4, &[5, 6, 0], 2, 9, 1));
    assert_eq!(node.advance_past_jitter(), []);
    let mut config = Config::rfc4728();
    config.limits.gratuitous_table = 1;
    let mut node = TestNode::new(config);
    node.overhear(5, 6, data(4, &[5, 6, 0], 2, 9, 1));
    node.overhear(5, 6, data(3, &[5, 6, 0], 2, 9, 1));
    assert_eq!((node.advance_past_jitter().len(), node.ignored(IgnoredReason::TableFull)), (1, 1));
}

/// Returns the packet as data of an established flow.
fn established(packet: Packet<u32>) -> Packet<u32> {
    Packet { flow: Flow::Established, ..packet }
}

#[test]
fn nothing_is_learnt_from_established_flows() {
    let mut node = TestNode::new(Config::ns2());
    node.overhear(5, 6, established(data(4, &[5, 6], 1, 9, 1)));
    node.receive(5, established(data(4, &[5, 0, 6], 2, 9, 2)));
    assert_eq!(node.routes(), [] as [hopline_wire::dsr::Addresses; 0]);
    node.overhear(5, 6, data(4, &[5, 6], 1, 9, 3));
    assert_eq!(node.routes(), [path(&[5, 6, 9])], "by one that tells its way");
}

#[test]
fn for_established_flows_only_relays_send_gratuitous_replies() {
    let mut relay = TestNode::new(Config::ns2());
    assert_eq!(relay.overhear(5, 6, established(data(4, &[5, 6, 7, 0, 8], 4, 9, 1))).len(), 1);
    let mut target = TestNode::new(Config::ns2());
    assert_eq!(target.overhear(4, 6, established(data(4, &[6], 1, 0, 1))), []);
    assert_eq!(target.overhear(4, 6, data(4, &[6], 1, 0, 2)).len(), 1, "of one that tells its way");
}

#[test]
fn a_source_marks_established_flows_after_the_first_packets() {
    let mut node = TestNode::new(Config::ns2());
    node.learn_route(&[1, 9]);
    let mut flow = || node.send(9, 7)[0].packet.flow;
    let told: Vec<bool> = (0..5).map(|_| flow() == Flow::Announced).collect();
    assert_eq!(told, [true, true, true, false, false]);
    node.advance(ms(5001));
    assert_eq!(node.send(9, 7)[0].packet.flow, Flow::Announced, "now and again");
}
