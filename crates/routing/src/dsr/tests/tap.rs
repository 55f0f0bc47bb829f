//! Overheard packets for other nodes (RFC 4728 §3.3.1, §3.4.3).

use super::dialogue::*;
use crate::dsr::config::{GratuitousReplies, Tap};
use crate::dsr::*;

#[test]
fn routes_are_learnt_of_packets_for_others() {
    let mut node = Node::new(Config::rfc4728());
    node.overhear(5, 6, data(4, &[5, 6], 1, 9, 1));
    assert_eq!(node.routes(), [path(&[5, 6, 9]), path(&[5, 4])]);
    let mut node = Node::new(Config::rfc4728());
    node.overhear(5, 6, reply(9, &[5, 6], 1, 4, &[6, 5, 9]));
    assert_eq!(node.routes(), [path(&[5, 6, 4]), path(&[5, 9])]);
}

#[test]
fn nothing_is_learnt_where_that_is_off() {
    let mut node = Node::new(with_cache(|cache| cache.tap = Tap::Off));
    assert_eq!(node.overhear(5, 6, data(4, &[5, 6, 0], 2, 9, 1)), []);
    assert_eq!((node.settle(), node.routes().len()), (vec![], 0));
}

#[test]
fn what_contradicts_its_own_route_is_not_believed() {
    let mut node = Node::new(Config::rfc4728());
    node.overhear(5, 7, data(4, &[5, 6], 1, 9, 1)); // sent to 7
    node.overhear(3, 6, data(4, &[5, 6], 1, 9, 1)); // by 3
    node.overhear(5, 0, data(4, &[5, 0], 1, 9, 1)); // to this node
    assert_eq!((node.routes().len(), node.ignored(Ignored::Malformed)), (0, 3));
    assert_eq!(node.events(), []);
}

#[test]
fn the_source_of_a_packet_on_a_detour_is_told_once_in_a_while() {
    let mut node = Node::new(Config::rfc4728());
    let detour = || data(4, &[5, 6, 7, 0, 8], 4, 9, 1);
    node.overhear(5, 6, detour());
    let sent = node.settle();
    let (packet, next_hop) = only(&sent);
    assert_eq!((packet.source, packet.destination, next_hop), (ME, n(4), n(5)));
    assert_eq!(packet.header.options.as_slice(), [route(0, &[5], 1), reply_option(&[5, 0, 8, 9])]);
    node.overhear(5, 6, detour());
    assert_eq!((node.settle(), node.ignored(Ignored::HeldOff)), (vec![], 1));
    node.overhear(6, 7, data(4, &[5, 6, 7, 0, 8], 3, 9, 1));
    assert_eq!(node.settle().len(), 1, "another transmitter");
    node.overhear(5, 6, data(3, &[5, 6, 0], 2, 9, 1));
    assert_eq!(node.settle().len(), 1, "another source");
    node.pass(ms(1000));
    node.overhear(5, 6, detour());
    assert_eq!(node.settle().len(), 1, "a second later");
    assert_eq!(node.dsr.stats().replies_gratuitous, 4);
    assert_eq!(node.events(), [], "the packet itself comes later");
}

#[test]
fn a_destination_that_hears_the_source_itself_says_so() {
    let mut node = Node::new(Config::rfc4728());
    node.overhear(4, 6, data(4, &[6], 1, 0, 1));
    let sent = node.settle();
    assert_eq!(
        (only(&sent).1, only(&sent).0.header.options.as_slice()),
        (n(4), [route(0, &[], 0), reply_option(&[0])].as_slice())
    );
}

#[test]
fn what_was_here_before_or_was_salvaged_or_has_no_data_is_no_detour() {
    let mut node = Node::new(Config::rfc4728());
    node.overhear(6, 7, data(4, &[0, 6, 7], 1, 9, 1));
    node.overhear(5, 6, carrying(packet(4, 9, &[route(1, &[5, 6, 0], 2)]), 1));
    node.overhear(5, 6, reply(4, &[5, 6, 0], 2, 9, &[0, 6, 5, 4]));
    assert_eq!(node.settle(), []);
}

#[test]
fn nobody_is_told_where_that_is_off_or_where_the_table_is_full() {
    let mut node = Node::new(with_cache(|cache| cache.gratuitous_replies = GratuitousReplies::Off));
    node.overhear(5, 6, data(4, &[5, 6, 0], 2, 9, 1));
    assert_eq!(node.settle(), []);
    let mut config = Config::rfc4728();
    config.limits.gratuitous_table = 1;
    let mut node = Node::new(config);
    node.overhear(5, 6, data(4, &[5, 6, 0], 2, 9, 1));
    node.overhear(5, 6, data(3, &[5, 6, 0], 2, 9, 1));
    assert_eq!((node.settle().len(), node.ignored(Ignored::TableFull)), (1, 1));
}

/// Returns the packet as data of an established flow.
fn established(packet: Packet<u32>) -> Packet<u32> {
    Packet { flow: Flow::Established, ..packet }
}

#[test]
fn nothing_is_learnt_of_a_flow_that_is_established() {
    let mut node = Node::new(Config::ns2());
    node.overhear(5, 6, established(data(4, &[5, 6], 1, 9, 1)));
    node.get(5, established(data(4, &[5, 0, 6], 2, 9, 2)));
    assert_eq!(node.routes(), [] as [hopline_wire::dsr::Addresses; 0]);
    node.overhear(5, 6, data(4, &[5, 6], 1, 9, 3));
    assert_eq!(node.routes(), [path(&[5, 6, 9])], "by one that tells its way");
}

#[test]
fn of_a_flow_that_is_established_relays_tell_detours_and_the_target_does_not() {
    let mut relay = Node::new(Config::ns2());
    assert_eq!(relay.overhear(5, 6, established(data(4, &[5, 6, 7, 0, 8], 4, 9, 1))).len(), 1);
    let mut target = Node::new(Config::ns2());
    assert_eq!(target.overhear(4, 6, established(data(4, &[6], 1, 0, 1))), []);
    assert_eq!(target.overhear(4, 6, data(4, &[6], 1, 0, 2)).len(), 1, "of one that tells its way");
}

#[test]
fn a_source_marks_what_follows_the_first_packets_over_a_way() {
    let mut node = Node::new(Config::ns2());
    node.knows(&[1, 9]);
    let mut flow = || node.send(9, 7)[0].packet.flow;
    let told: Vec<bool> = (0..5).map(|_| flow() == Flow::Announced).collect();
    assert_eq!(told, [true, true, true, false, false]);
    node.pass(ms(5001));
    assert_eq!(node.send(9, 7)[0].packet.flow, Flow::Announced, "now and again");
}
