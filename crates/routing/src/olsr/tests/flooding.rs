//! The default forwarding algorithm (RFC 3626 §3.4).

use super::harness::*;
use crate::olsr::*;
use hopline_core::{LinkId, Seq16, StateMachine};
use hopline_wire::olsr::{Body, Message, Packet};
use std::sync::Arc;

/// A node that neighbour 1 has chosen as its relay, and neighbour 2 has not.
fn relay(config: Config) -> TestNode {
    let mut node = TestNode::new(config);
    node.receive_hello(1, &[(MPR, &[0])]);
    node.receive_hello(2, &[(SYMMETRIC, &[0])]);
    node
}

/// Returns the messages of other nodes sent in the next half second.
fn forwarded_messages(node: &mut TestNode) -> Vec<Message> {
    let sent = node.advance(ms(500)).into_iter().map(|(_, message)| message);
    sent.filter(|message| message.originator != ME).collect()
}

#[test]
fn an_mpr_forwards_messages_of_its_selectors() {
    let mut node = relay(Config::rfc3626());
    let tc = node.tc(9, 1, &[8]);
    node.receive(node_address(1), tc.clone());
    assert_eq!(forwarded_messages(&mut node), [Message { ttl: 8, hop_count: 3, ..tc }]);
    assert_eq!(node.olsr.stats().messages_forwarded, 1);
}

#[test]
fn a_message_of_unknown_type_is_forwarded_unchanged() {
    let mut node = relay(Config::rfc3626());
    let body = Body::Unknown { kind: 99, bytes: vec![1, 2, 3] };
    let message = node.message(9, secs(15), body.clone());
    node.receive(node_address(1), message);
    assert_eq!(forwarded_messages(&mut node)[0].body, body);
    let mid = node.message(9, secs(15), Body::Mid(vec![node_address(8)]));
    node.receive(node_address(1), mid);
    assert_eq!(forwarded_messages(&mut node)[0].body, Body::Mid(vec![node_address(8)]));
    assert_eq!(node.route(9), None, "and nothing more is made of it");
}

#[test]
fn a_message_received_first_from_a_non_selector_is_not_forwarded() {
    let mut node = relay(Config::rfc3626());
    let tc = node.tc(9, 1, &[8]);
    node.receive(node_address(2), tc.clone());
    node.receive(node_address(1), tc);
    assert_eq!(forwarded_messages(&mut node), []);
    assert_eq!((node.ignored(IgnoredReason::Duplicate), node.olsr.topology().count()), (1, 1));
}

#[test]
fn a_message_is_forwarded_once_within_its_ttl() {
    let mut node = relay(Config::rfc3626());
    let tc = node.tc(9, 1, &[8]);
    node.receive(node_address(1), tc.clone());
    node.receive(node_address(1), tc);
    assert_eq!(forwarded_messages(&mut node).len(), 1);
    let last = Message { ttl: 1, ..node.tc(9, 2, &[7]) };
    node.receive(node_address(1), last);
    assert_eq!(forwarded_messages(&mut node), []);
    assert_eq!(indices(node.olsr.topology().map(|(_, to)| to)), [7], "processed all the same");
    let over = Message { ttl: 0, ..node.tc(9, 3, &[6]) };
    node.receive(node_address(1), over);
    assert_eq!(node.ignored(IgnoredReason::TtlExpired), 1);
    let own = node.tc(0, 3, &[6]);
    node.receive(node_address(1), own);
    assert_eq!(node.ignored(IgnoredReason::OwnMessage), 1);
}

#[test]
fn a_message_over_an_asymmetric_link_is_not_recorded() {
    let mut node = relay(Config::rfc3626());
    node.receive_hello(3, &[]);
    let tc = node.tc(9, 1, &[8]);
    node.receive(node_address(3), tc.clone());
    node.receive(node_address(4), tc.clone());
    assert_eq!((node.ignored(IgnoredReason::NotSymmetric), node.olsr.topology().count()), (2, 0));
    node.receive(node_address(1), tc);
    assert_eq!((forwarded_messages(&mut node).len(), node.olsr.topology().count()), (1, 1));
}

#[test]
fn a_message_is_forgotten_after_thirty_seconds() {
    let mut node = relay(Config::rfc3626());
    let tc = node.tc(9, 1, &[8]);
    node.receive(node_address(1), tc.clone());
    for _ in 0..14 {
        node.advance(secs(2));
        node.receive_hello(1, &[(MPR, &[0])]);
    }
    node.receive(node_address(1), tc.clone());
    assert_eq!(forwarded_messages(&mut node), []);
    node.advance(ms(1_500));
    node.receive_hello(1, &[(MPR, &[0])]);
    node.receive(node_address(1), tc);
    assert_eq!(forwarded_messages(&mut node).len(), 1);
}

#[test]
fn numbers_wrap_around() {
    let mut node = relay(Config::rfc3626());
    for seq in [65_534, 65_535, 0, 1, 65_535] {
        let tc = Message { seq: Seq16(seq), ..node.tc(9, 1, &[8]) };
        node.receive(node_address(1), tc);
    }
    assert_eq!(forwarded_messages(&mut node).len(), 4);
    node.olsr.message_seq = Seq16(65_535);
    let numbers: Vec<_> = node.advance(secs(4)).into_iter().map(|(_, message)| message.seq.0).collect();
    assert_eq!(numbers[..2], [65_535, 0]);
}

#[test]
fn waiting_messages_share_packets() {
    let mut node = relay(Config { max_packet_bytes: 100, ..Config::rfc3626() });
    let before = node.olsr.stats().packets_sent;
    let messages = (0..6).map(|ansn| node.tc(9, ansn, &[8, 7, 6])).collect();
    let packet = Arc::new(Packet { seq: Seq16(9), messages });
    node.olsr.handle_packet(node.now, LinkId::ONLY, Received { packet, from: node_address(1) });
    node.advance(ms(500));
    assert_eq!(node.olsr.stats().messages_forwarded, 6);
    // 28 bytes each, three to a packet; a HELLO may have gone before.
    let packets = node.olsr.stats().packets_sent - before;
    assert!((2..=3).contains(&packets), "{packets} packets");
}

#[test]
fn packets_are_numbered_one_after_the_other() {
    let mut node = relay(Config::rfc3626());
    node.olsr.outbox.packet_seq = Seq16(65_535);
    let mut numbers = Vec::new();
    for _ in 0..3 {
        let (due, _) = node.olsr.poll_timeout().unwrap();
        node.now = due;
        node.olsr.handle_timeout(due);
        numbers.extend(node.packets().into_iter().map(|packet| packet.seq.0));
        node.receive_hello(1, &[(MPR, &[0])]);
    }
    assert!(numbers.len() >= 2 && numbers[..2] == [65_535, 0], "{numbers:?}");
}
