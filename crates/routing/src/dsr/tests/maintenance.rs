//! Links that fail (RFC 4728 §8.3.4 to §8.3.6, §3.4.2).

use super::dialogue::*;
use crate::dsr::config::QueuedPackets;
use crate::dsr::*;
use hopline_wire::dsr::{DsrOption, ErrorKind, RouteError};

const PURGE: Event<u32> = Event::PurgeQueue { next_hop: n(6) };

fn dropped(packet: u32, reason: DropReason) -> Event<u32> {
    Event::Drop { packet, reason }
}

/// A packet of 4 for 9 that this node passed on to 6.
fn passed(node: &mut Node, id: u32) -> Transmit<u32> {
    let sent = node.get(5, data(4, &[5, 0, 6], 2, 9, id));
    sent.into_iter().find(|sent| sent.packet.carried == Some(id)).unwrap()
}

#[test]
fn the_source_is_told_the_way_the_packet_came_and_the_link_is_forgotten() {
    let mut node = Node::new(Config::rfc4728());
    let transmit = passed(&mut node, 77);
    let sent = node.fails(transmit);
    let (packet, next_hop) = only(&sent);
    assert_eq!((packet.source, packet.destination, next_hop), (ME, n(4), n(5)));
    let error =
        RouteError { salvage: 0, source: ME, destination: n(4), kind: ErrorKind::NodeUnreachable(n(6)) };
    assert_eq!(packet.header.options.as_slice(), [route(0, &[5], 1), DsrOption::Error(error)]);
    assert_eq!(node.events(), [PURGE, dropped(77, DropReason::NoRoute)]);
    assert_eq!(node.routes(), [path(&[5, 4])]);
}

#[test]
fn a_packet_is_salvaged_after_the_error() {
    let mut node = Node::new(Config::rfc4728());
    node.knows(&[1, 2, 9]);
    let transmit = passed(&mut node, 77);
    let sent = node.fails(transmit);
    let [error, salvaged] = sent.as_slice() else { panic!("{sent:?}") };
    assert!(matches!(error.packet.header.options.as_slice(), [_, DsrOption::Error(_)]));
    assert_eq!((salvaged.next_hop, salvaged.packet.source, salvaged.packet.ttl), (n(1), n(4), 63));
    assert_eq!(salvaged.packet.header.options.as_slice(), [route(1, &[0, 1, 2], 2)]);
    assert_eq!((salvaged.packet.carried, node.events()), (Some(77), vec![PURGE]));
}

#[test]
fn the_salvager_is_told_about_a_salvaged_packet() {
    let mut node = Node::new(Config::rfc4728());
    let sent = node.get(5, carrying(packet(4, 9, &[route(3, &[8, 5, 0, 6], 2)]), 77));
    let sent = node.fails(sent[0].clone());
    let (packet, next_hop) = only(&sent);
    assert_eq!((packet.destination, next_hop), (n(8), n(5)));
    let [_, DsrOption::Error(error)] = packet.header.options.as_slice() else { panic!("{packet:?}") };
    assert_eq!((error.salvage, error.destination), (3, n(8)));
}

#[test]
fn a_salvager_whose_own_route_fails_tells_nobody_and_salvages_again() {
    let mut node = Node::new(Config::rfc4728());
    node.knows(&[1, 9]);
    node.knows(&[2, 3, 9]);
    let transmit = passed(&mut node, 77);
    let sent = node.fails(transmit);
    let sent = node.fails(sent[1].clone());
    assert_eq!(only(&sent).0.header.options.as_slice(), [route(2, &[0, 2, 3], 2)]);
}

#[test]
fn a_packet_is_salvaged_so_often_and_no_more() {
    for (salvaged, max_salvage, saved) in [(15, 15, false), (14, 15, true), (15, 200, false), (0, 0, false)] {
        let mut node = Node::new(Config { max_salvage, ..Config::rfc4728() });
        node.knows(&[1, 2, 9]);
        let sent = node.get(5, carrying(packet(4, 9, &[route(salvaged, &[5, 0, 6], 2)]), 77));
        let sent = node.fails(sent[0].clone());
        assert_eq!(sent.iter().any(|sent| sent.packet.carried == Some(77)), saved);
        let expected = if saved { vec![PURGE] } else { vec![PURGE, dropped(77, DropReason::LinkFailure)] };
        assert_eq!(node.events(), expected);
    }
}

#[test]
fn of_queued_packets_each_source_is_told_once() {
    // §3.4.2
    let mut node = Node::new(Config::rfc4728());
    let first = passed(&mut node, 1);
    let second = passed(&mut node, 2);
    let other = node.get(3, data(3, &[0, 6], 2, 9, 3));
    let again = passed(&mut node, 4);
    assert_eq!(
        [node.fails(first).len(), node.fails(second).len(), node.fails(other[0].clone()).len()],
        [1, 0, 1]
    );
    node.pass(ms(1));
    assert_eq!(node.fails(again).len(), 1, "another break");
    assert_eq!(node.dsr.stats().errors_sent, 3);
}

#[test]
fn a_lost_error_does_not_hide_that_a_packet_of_the_same_source_is_lost_too() {
    let mut node = Node::new(Config::rfc4728());
    let error = node.get(5, packet(4, 9, &[route(0, &[5, 0, 6], 2), error_option(4, 8, 9)]));
    let data = passed(&mut node, 77);
    assert_eq!(node.fails(error[0].clone()), [], "no errors about errors");
    assert!(matches!(only(&node.fails(data)).0.header.options.as_slice(), [_, DsrOption::Error(_)]));
}

#[test]
fn the_queue_is_left_alone_if_told_so() {
    let mut node = Node::new(Config { queued_packets: QueuedPackets::Kept, ..Config::rfc4728() });
    let transmit = passed(&mut node, 77);
    node.fails(transmit);
    assert_eq!(node.events(), [dropped(77, DropReason::NoRoute)]);
}

#[test]
fn a_source_takes_another_route_or_looks_for_one() {
    let mut node = Node::new(Config::rfc4728());
    node.knows(&[6, 9]);
    node.knows(&[1, 2, 9]);
    let sent = node.send(9, 7);
    let sent = node.fails(sent[0].clone());
    assert_eq!(
        (only(&sent).1, only(&sent).0.header.options.as_slice()),
        (n(1), [route(0, &[1, 2], 2)].as_slice())
    );
    assert_eq!(node.events(), [PURGE], "there is still a route");
    let sent = node.fails(sent[0].clone());
    assert_eq!(only_request(&sent).0.target, n(9));
    let events = node.events();
    assert_eq!(events, [Event::PurgeQueue { next_hop: n(1) }, Event::RouteLost { destination: n(9) }]);
    assert_eq!(node.dsr.buffered(), 1);
}

#[test]
fn a_lost_reply_is_reported_and_not_salvaged() {
    // §8.3.6: it tests whether the links of the way back work.
    let mut node = Node::new(Config::rfc4728());
    node.knows(&[1, 4]);
    let sent = node.get(5, reply(9, &[5, 0, 6], 2, 4, &[6, 0, 5, 9]));
    let sent = node.fails(sent[0].clone());
    let (packet, next_hop) = only(&sent);
    assert_eq!((packet.destination, next_hop), (n(9), n(5)));
    assert!(matches!(packet.header.options.as_slice(), [_, DsrOption::Error(_)]));
    assert_eq!((node.dsr.stats().control_lost, node.dsr.stats().salvaged), (1, 0));
}

#[test]
fn a_lost_error_is_not_reported() {
    let mut node = Node::new(Config::rfc4728());
    let sent = node.get(5, packet(9, 4, &[route(0, &[5, 0, 6], 2), error_option(9, 8, 4)]));
    assert_eq!((node.fails(sent[0].clone()), node.events()), (vec![], vec![PURGE]));
}

#[test]
fn whoever_passes_an_error_on_or_hears_it_believes_it() {
    // §8.3.5
    let error = packet(3, 4, &[route(0, &[5, 0, 6], 2), error_option(3, 9, 4)]);
    let mut relay = Node::new(Config::rfc4728());
    relay.knows(&[2, 3, 9]);
    assert_eq!(relay.get(5, error.clone()).len(), 1);
    let mut bystander = Node::new(Config::rfc4728());
    bystander.knows(&[2, 3, 9]);
    let elsewhere = packet(3, 4, &[route(0, &[5, 7, 6], 2), error_option(3, 9, 4)]);
    assert_eq!(bystander.overhear(5, 7, elsewhere), []);
    for node in [relay, bystander] {
        assert!(!node.dsr.has_route(node.now, n(9)));
        assert!(node.dsr.has_route(node.now, n(3)));
    }
}

#[test]
fn the_loss_of_the_last_route_is_told_once_to_a_source_and_not_to_others() {
    let mut node = Node::new(Config::rfc4728());
    node.knows(&[1, 2, 9]);
    node.knows(&[1, 2, 8]);
    node.send(9, 1);
    let error = packet(1, 0, &[route(0, &[], 0), error_option(1, 2, 0)]);
    node.get(1, error.clone());
    node.get(1, error);
    assert_eq!(node.events(), [Event::RouteLost { destination: n(9) }]);
    assert!(!node.dsr.has_route(node.now, n(8)));
}

#[test]
fn a_report_of_what_this_node_never_sent_harms_nothing() {
    let mut node = Node::new(Config::rfc4728());
    let strange = Transmit { packet: data(4, &[5, 7], 1, 9, 77), next_hop: n(7) };
    assert_eq!(node.fails(strange), []);
    let bad = Transmit { packet: carrying(packet(4, 9, &[route(0, &[5], 9)]), 78), next_hop: n(7) };
    assert_eq!(node.fails(bad), []);
    let purge = Event::PurgeQueue { next_hop: n(7) };
    assert_eq!(
        node.events(),
        [purge, dropped(77, DropReason::NoRoute), purge, dropped(78, DropReason::NoRoute)]
    );
}
