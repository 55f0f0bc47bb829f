//! Learning from packets in a node of ns-2, and its treatment of packets that it cannot forward.

use super::harness::*;
use crate::dsr::config::{LearntDirections, NeighbourQueries, UnsalvageablePackets};
use crate::dsr::*;

const PURGE: Event<u32> = Event::PurgeQueue { next_hop: node_address(6) };

fn forward_learning_node() -> TestNode {
    TestNode::new(with_cache(|cache| cache.learnt_directions = LearntDirections::Forward))
}

/// A packet of 4 for 9, of an established flow, that this node passes on to 6, which does not answer.
fn fail_forwarding(node: &mut TestNode, id: u32) -> Vec<Transmit<u32>> {
    let sent = node.receive(5, Packet { flow: Flow::Established, ..data(4, &[5, 0, 6], 2, 9, id) });
    node.fail_transmission(sent[0].clone())
}

/// Returns the TTLs of the requests in `sent`.
fn requests(sent: &[Transmit<u32>]) -> Vec<u8> {
    sent.iter().filter(|sent| sent.next_hop == ALL).map(|sent| sent.packet.ttl).collect()
}

#[test]
fn only_the_forward_path_is_learnt() {
    let mut relay = forward_learning_node();
    relay.receive(5, data(4, &[5, 0, 6], 2, 9, 1));
    assert_eq!(relay.routes(), [path(&[6, 9])]);
    let mut bystander = forward_learning_node();
    bystander.overhear(5, 6, data(4, &[5, 6], 1, 9, 1));
    assert_eq!(bystander.routes(), [path(&[5, 6, 9])]);
    let mut target = forward_learning_node();
    target.receive(5, data(4, &[5], 0, 0, 1));
    assert!(target.routes().is_empty());
}

#[test]
fn a_request_teaches_the_replying_node() {
    let mut relay = forward_learning_node();
    relay.receive(5, request(4, 1, 9, &[5]));
    assert!(relay.routes().is_empty());
    let mut target = forward_learning_node();
    target.receive(5, request(4, 1, 0, &[5]));
    assert_eq!(target.routes(), [path(&[5, 4])]);
    let mut cache = forward_learning_node();
    cache.learn_route(&[6, 9]);
    cache.receive(5, request(4, 1, 9, &[5]));
    assert_eq!(cache.routes(), [path(&[6, 9]), path(&[5, 4])]);
}

#[test]
fn the_path_of_a_reply_is_learnt_by_its_initiator_and_relays() {
    let passing = || reply(9, &[6, 0, 5], 2, 4, &[5, 0, 6, 9]);
    let mut relay = forward_learning_node();
    relay.receive(6, passing());
    assert_eq!(relay.routes(), [path(&[5, 4])], "where the reply itself goes");
    relay.overhear(5, 4, reply(9, &[6, 0, 5], 0, 4, &[5, 0, 6, 9]));
    assert_eq!(relay.routes(), [path(&[5, 4]), path(&[6, 9])]);
    let mut bystander = forward_learning_node();
    bystander.overhear(5, 4, reply(9, &[6, 7, 5], 0, 4, &[5, 7, 6, 9]));
    assert_eq!(bystander.routes(), [path(&[5, 4])]);
    let mut initiator = forward_learning_node();
    initiator.receive(5, reply(9, &[6, 5], 0, 0, &[5, 6, 9]));
    assert_eq!(initiator.routes(), [path(&[5, 6, 9])]);
}

#[test]
fn a_gratuitous_reply_teaches_its_sender_the_path() {
    let mut node = forward_learning_node();
    node.overhear(5, 6, data(4, &[5, 6, 7, 0, 8], 4, 9, 1));
    assert!(node.routes().contains(&path(&[5, 4])));
}

#[test]
fn a_relay_queries_neighbours_once_and_then_drops_packets_one_by_one() {
    let mut node = TestNode::new(Config::ns2());
    assert_eq!(requests(&fail_forwarding(&mut node, 1)), [1], "neighbours alone");
    assert_eq!(requests(&fail_forwarding(&mut node, 2)), Vec::<u8>::new(), "they were asked just now");
    assert_eq!((node.events(), node.dsr.buffered()), (vec![PURGE; 2], 2));
    let drop = |packet| Event::Drop { packet, reason: DropReason::NoRoute };
    for (seconds, packet) in [(2, 1), (8, 2)] {
        node.advance(ms(seconds * 1000 - 1));
        assert_eq!(node.events(), []);
        assert_eq!((node.advance(ms(1)), node.events()), (vec![], vec![drop(packet)]), "after {seconds} s");
    }
}

#[test]
fn a_packet_buffered_at_a_relay_is_forwarded_over_a_learnt_path() {
    let mut node = TestNode::new(Config::ns2());
    fail_forwarding(&mut node, 77);
    let sent = node.receive(7, reply(9, &[7], 0, 0, &[7, 9]));
    let (packet, next_hop) = only_packet(&sent);
    assert_eq!((packet.source, packet.payload, next_hop), (node_address(4), Some(77), node_address(7)));
    assert_eq!(packet.header.options.as_slice(), [source_route(1, &[0, 7], 1)]);
    assert_eq!((node.events(), node.dsr.buffered()), (vec![PURGE], 0));
}

#[test]
fn own_packets_shorten_the_wait_of_neighbour_queries() {
    let mut node = TestNode::new(Config::ns2());
    fail_forwarding(&mut node, 1);
    node.advance(ms(10));
    assert_eq!(node.send(9, 2), []);
    let sent: Vec<Transmit<u32>> = node.advance(ms(20)).into_iter().map(|(_, sent)| sent).collect();
    assert_eq!(requests(&sent), [255], "30 ms after neighbours were asked");
    node.receive(5, reply(9, &[5], 0, 0, &[5, 9]));
    let sent: Vec<Option<u32>> = node.advance(ms(100)).iter().map(|(_, sent)| sent.packet.payload).collect();
    assert_eq!((sent, node.dsr.buffered()), (vec![Some(2)], 0), "30 ms behind the other");
}

#[test]
fn a_packet_at_max_salvage_is_not_buffered() {
    let mut node = TestNode::new(Config { max_salvage: 0, ..Config::ns2() });
    assert!(requests(&fail_forwarding(&mut node, 1)).is_empty());
    let dropped = Event::Drop { packet: 1, reason: DropReason::LinkFailure };
    assert_eq!((node.events(), node.dsr.buffered()), (vec![PURGE, dropped], 0));
}

#[test]
fn a_reply_is_salvaged_unless_it_contains_the_failed_link() {
    let mut node = TestNode::new(Config::ns2());
    node.learn_route(&[1, 4]);
    let sent = node.receive(5, reply(9, &[5, 0, 6], 2, 4, &[7, 5, 9]));
    let sent = node.fail_transmission(sent[0].clone());
    let [error, reply_again] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!((error.packet.destination, error.next_hop), (node_address(9), node_address(5)));
    assert_eq!(reply_again.next_hop, node_address(1));
    assert_eq!(
        reply_again.packet.header.options.as_slice(),
        [source_route(1, &[0, 1], 1), reply_option(&[7, 5, 9])]
    );
    node.advance(ms(1));
    let sent = node.receive(5, reply(9, &[5, 0, 6], 2, 4, &[6, 0, 5, 9]));
    let sent = node.fail_transmission(sent[0].clone());
    assert_eq!(
        (only_packet(&sent).1, node.dsr.stats().control_lost),
        (node_address(5), 1),
        "the error alone"
    );
}

#[test]
fn an_error_is_salvaged() {
    let mut node = TestNode::new(Config::ns2());
    node.learn_route(&[1, 4]);
    let sent = node.receive(5, packet(9, 4, &[source_route(0, &[5, 0, 6], 2), error_option(9, 8, 4)]));
    let sent = node.fail_transmission(sent[0].clone());
    let (packet, next_hop) = only_packet(&sent);
    assert_eq!(
        (packet.source, packet.destination, next_hop),
        (node_address(9), node_address(4), node_address(1))
    );
    assert_eq!(packet.header.options.as_slice(), [source_route(1, &[0, 1], 1), error_option(9, 8, 4)]);
}

#[test]
fn errors_are_flooded_even_after_a_neighbour_query() {
    let ask = |asked| {
        let mut node = TestNode::new(Config { neighbour_queries: asked, ..Config::rfc4728() });
        node.receive(5, packet(3, 0, &[source_route(0, &[5], 0), error_option(3, 9, 0)]));
        let mut sent = node.send(8, 1);
        sent.extend(node.advance(ms(30)).into_iter().map(|(_, sent)| sent));
        sent.iter().map(|sent| (sent.packet.ttl, sent.packet.header.options.len())).collect::<Vec<_>>()
    };
    assert_eq!(ask(NeighbourQueries::EachTime), [(1, 2), (255, 2)]);
    assert_eq!(ask(NeighbourQueries::Once), [(1, 2), (255, 1)]);
}

#[test]
fn hostile_packets_cannot_fill_more_than_the_buffer() {
    let mut node = TestNode::new(Config::ns2());
    assert_eq!(
        with_cache(|cache| cache.unsalvageable_packets = UnsalvageablePackets::QueryNeighbours)
            .buffer_packets
            .get(),
        64
    );
    for id in 0..200 {
        fail_forwarding(&mut node, id);
    }
    let refused = node.events().iter().filter(|event| matches!(event, Event::Drop { .. })).count();
    assert_eq!((node.dsr.buffered(), refused), (64, 136));
}
