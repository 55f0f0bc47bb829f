//! Links that fail (RFC 4728 §8.3.4 to §8.3.6, §3.4.2).

use super::harness::*;
use crate::dsr::config::QueuedPackets;
use crate::dsr::*;
use hopline_wire::dsr::{DsrOption, ErrorKind, RouteError};

const PURGE: Event<u32> = Event::PurgeQueue { next_hop: node_address(6) };

fn dropped(packet: u32, reason: DropReason) -> Event<u32> {
    Event::Drop { packet, reason }
}

/// A packet of 4 for 9 that this node passed on to 6.
fn forwarded_packet(node: &mut TestNode, id: u32) -> Transmit<u32> {
    let sent = node.receive(5, data(4, &[5, 0, 6], 2, 9, id));
    sent.into_iter().find(|sent| sent.packet.payload == Some(id)).unwrap()
}

#[test]
fn an_error_returns_along_the_path_and_the_link_is_removed() {
    let mut node = TestNode::new(Config::rfc4728());
    let transmit = forwarded_packet(&mut node, 77);
    let sent = node.fail_transmission(transmit);
    let (packet, next_hop) = only_packet(&sent);
    assert_eq!((packet.source, packet.destination, next_hop), (ME, node_address(4), node_address(5)));
    let error = RouteError {
        salvage: 0,
        source: ME,
        destination: node_address(4),
        kind: ErrorKind::NodeUnreachable(node_address(6)),
    };
    assert_eq!(packet.header.options.as_slice(), [source_route(0, &[5], 1), DsrOption::Error(error)]);
    assert_eq!(node.events(), [PURGE, dropped(77, DropReason::NoRoute)]);
    assert_eq!(node.routes(), [path(&[5, 4])]);
}

#[test]
fn a_packet_is_salvaged_after_the_error() {
    let mut node = TestNode::new(Config::rfc4728());
    node.learn_route(&[1, 2, 9]);
    let transmit = forwarded_packet(&mut node, 77);
    let sent = node.fail_transmission(transmit);
    let [error, salvaged] = sent.as_slice() else { panic!("{sent:?}") };
    assert!(matches!(error.packet.header.options.as_slice(), [_, DsrOption::Error(_)]));
    assert_eq!(
        (salvaged.next_hop, salvaged.packet.source, salvaged.packet.ttl),
        (node_address(1), node_address(4), 63)
    );
    assert_eq!(salvaged.packet.header.options.as_slice(), [source_route(1, &[0, 1, 2], 2)]);
    assert_eq!((salvaged.packet.payload, node.events()), (Some(77), vec![PURGE]));
}

#[test]
fn errors_about_salvaged_packets_go_to_the_salvaging_node() {
    let mut node = TestNode::new(Config::rfc4728());
    let sent = node.receive(5, with_data(packet(4, 9, &[source_route(3, &[8, 5, 0, 6], 2)]), 77));
    let sent = node.fail_transmission(sent[0].clone());
    let (packet, next_hop) = only_packet(&sent);
    assert_eq!((packet.destination, next_hop), (node_address(8), node_address(5)));
    let [_, DsrOption::Error(error)] = packet.header.options.as_slice() else { panic!("{packet:?}") };
    assert_eq!((error.salvage, error.destination), (3, node_address(8)));
}

#[test]
fn a_salvaging_node_with_a_failed_route_salvages_again_without_error() {
    let mut node = TestNode::new(Config::rfc4728());
    node.learn_route(&[1, 9]);
    node.learn_route(&[2, 3, 9]);
    let transmit = forwarded_packet(&mut node, 77);
    let sent = node.fail_transmission(transmit);
    let sent = node.fail_transmission(sent[1].clone());
    assert_eq!(only_packet(&sent).0.header.options.as_slice(), [source_route(2, &[0, 2, 3], 2)]);
}

#[test]
fn salvaging_is_limited_by_max_salvage() {
    for (salvaged, max_salvage, saved) in [(15, 15, false), (14, 15, true), (15, 200, false), (0, 0, false)] {
        let mut node = TestNode::new(Config { max_salvage, ..Config::rfc4728() });
        node.learn_route(&[1, 2, 9]);
        let sent = node.receive(5, with_data(packet(4, 9, &[source_route(salvaged, &[5, 0, 6], 2)]), 77));
        let sent = node.fail_transmission(sent[0].clone());
        assert_eq!(sent.iter().any(|sent| sent.packet.payload == Some(77)), saved);
        let expected = if saved { vec![PURGE] } else { vec![PURGE, dropped(77, DropReason::LinkFailure)] };
        assert_eq!(node.events(), expected);
    }
}

#[test]
fn each_source_of_queued_packets_gets_one_error() {
    // §3.4.2
    let mut node = TestNode::new(Config::rfc4728());
    let first = forwarded_packet(&mut node, 1);
    let second = forwarded_packet(&mut node, 2);
    let other = node.receive(3, data(3, &[0, 6], 2, 9, 3));
    let again = forwarded_packet(&mut node, 4);
    assert_eq!(
        [
            node.fail_transmission(first).len(),
            node.fail_transmission(second).len(),
            node.fail_transmission(other[0].clone()).len()
        ],
        [1, 0, 1]
    );
    node.advance(ms(1));
    assert_eq!(node.fail_transmission(again).len(), 1, "another break");
    assert_eq!(node.dsr.stats().errors_sent, 3);
}

#[test]
fn a_lost_error_does_not_suppress_errors_about_other_packets() {
    let mut node = TestNode::new(Config::rfc4728());
    let error = node.receive(5, packet(4, 9, &[source_route(0, &[5, 0, 6], 2), error_option(4, 8, 9)]));
    let data = forwarded_packet(&mut node, 77);
    assert_eq!(node.fail_transmission(error[0].clone()), [], "no errors about errors");
    assert!(matches!(
        only_packet(&node.fail_transmission(data)).0.header.options.as_slice(),
        [_, DsrOption::Error(_)]
    ));
}

#[test]
fn the_queue_is_kept_if_configured() {
    let mut node = TestNode::new(Config { queued_packets: QueuedPackets::Kept, ..Config::rfc4728() });
    let transmit = forwarded_packet(&mut node, 77);
    node.fail_transmission(transmit);
    assert_eq!(node.events(), [dropped(77, DropReason::NoRoute)]);
}

#[test]
fn a_source_uses_another_route_or_starts_a_search() {
    let mut node = TestNode::new(Config::rfc4728());
    node.learn_route(&[6, 9]);
    node.learn_route(&[1, 2, 9]);
    let sent = node.send(9, 7);
    let sent = node.fail_transmission(sent[0].clone());
    assert_eq!(
        (only_packet(&sent).1, only_packet(&sent).0.header.options.as_slice()),
        (node_address(1), [source_route(0, &[1, 2], 2)].as_slice())
    );
    assert_eq!(node.events(), [PURGE], "there is still a route");
    let sent = node.fail_transmission(sent[0].clone());
    assert_eq!(only_request(&sent).0.target, node_address(9));
    let events = node.events();
    assert_eq!(
        events,
        [Event::PurgeQueue { next_hop: node_address(1) }, Event::RouteLost { destination: node_address(9) }]
    );
    assert_eq!(node.dsr.buffered(), 1);
}

#[test]
fn a_lost_reply_is_reported_and_not_salvaged() {
    // §8.3.6: it tests whether the links of the way back work.
    let mut node = TestNode::new(Config::rfc4728());
    node.learn_route(&[1, 4]);
    let sent = node.receive(5, reply(9, &[5, 0, 6], 2, 4, &[6, 0, 5, 9]));
    let sent = node.fail_transmission(sent[0].clone());
    let (packet, next_hop) = only_packet(&sent);
    assert_eq!((packet.destination, next_hop), (node_address(9), node_address(5)));
    assert!(matches!(packet.header.options.as_slice(), [_, DsrOption::Error(_)]));
    assert_eq!((node.dsr.stats().control_lost, node.dsr.stats().salvaged), (1, 0));
}

#[test]
fn a_lost_error_is_not_reported() {
    let mut node = TestNode::new(Config::rfc4728());
    let sent = node.receive(5, packet(9, 4, &[source_route(0, &[5, 0, 6], 2), error_option(9, 8, 4)]));
    assert_eq!((node.fail_transmission(sent[0].clone()), node.events()), (vec![], vec![PURGE]));
}

#[test]
fn forwarded_and_overheard_errors_are_applied() {
    // §8.3.5
    let error = packet(3, 4, &[source_route(0, &[5, 0, 6], 2), error_option(3, 9, 4)]);
    let mut relay = TestNode::new(Config::rfc4728());
    relay.learn_route(&[2, 3, 9]);
    assert_eq!(relay.receive(5, error.clone()).len(), 1);
    let mut bystander = TestNode::new(Config::rfc4728());
    bystander.learn_route(&[2, 3, 9]);
    let elsewhere = packet(3, 4, &[source_route(0, &[5, 7, 6], 2), error_option(3, 9, 4)]);
    assert_eq!(bystander.overhear(5, 7, elsewhere), []);
    for node in [relay, bystander] {
        assert!(!node.dsr.has_route(node.now, node_address(9)));
        assert!(node.dsr.has_route(node.now, node_address(3)));
    }
}

#[test]
fn the_loss_of_the_last_route_is_reported_once_at_its_source() {
    let mut node = TestNode::new(Config::rfc4728());
    node.learn_route(&[1, 2, 9]);
    node.learn_route(&[1, 2, 8]);
    node.send(9, 1);
    let error = packet(1, 0, &[source_route(0, &[], 0), error_option(1, 2, 0)]);
    node.receive(1, error.clone());
    node.receive(1, error);
    assert_eq!(node.events(), [Event::RouteLost { destination: node_address(9) }]);
    assert!(!node.dsr.has_route(node.now, node_address(8)));
}

#[test]
fn failure_reports_of_unsent_packets_are_harmless() {
    let mut node = TestNode::new(Config::rfc4728());
    let strange = Transmit { packet: data(4, &[5, 7], 1, 9, 77), next_hop: node_address(7) };
    assert_eq!(node.fail_transmission(strange), []);
    let bad = Transmit {
        packet: with_data(packet(4, 9, &[source_route(0, &[5], 9)]), 78),
        next_hop: node_address(7),
    };
    assert_eq!(node.fail_transmission(bad), []);
    let purge = Event::PurgeQueue { next_hop: node_address(7) };
    assert_eq!(
        node.events(),
        [purge, dropped(77, DropReason::NoRoute), purge, dropped(78, DropReason::NoRoute)]
    );
}
