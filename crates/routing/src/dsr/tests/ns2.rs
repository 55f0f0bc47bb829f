//! Learning from packets in a node of ns-2, and its treatment of packets that it cannot forward.

use super::dialogue::*;
use crate::dsr::config::{NeighboursAsked, Stranded, WaysLearnt};
use crate::dsr::*;

const PURGE: Event<u32> = Event::PurgeQueue { next_hop: n(6) };

fn onward() -> Node {
    Node::new(with_cache(|cache| cache.ways_learnt = WaysLearnt::Onward))
}

/// A packet of 4 for 9, of an established flow, that this node passes on to 6, which does not answer.
fn strand(node: &mut Node, id: u32) -> Vec<Transmit<u32>> {
    let sent = node.get(5, Packet { flow: Flow::Established, ..data(4, &[5, 0, 6], 2, 9, id) });
    node.fails(sent[0].clone())
}

/// Returns the TTLs of the requests in `sent`.
fn requests(sent: &[Transmit<u32>]) -> Vec<u8> {
    sent.iter().filter(|sent| sent.next_hop == ALL).map(|sent| sent.packet.ttl).collect()
}

#[test]
fn the_way_onward_is_learnt_and_the_way_back_is_not() {
    let mut relay = onward();
    relay.get(5, data(4, &[5, 0, 6], 2, 9, 1));
    assert_eq!(relay.routes(), [path(&[6, 9])]);
    let mut bystander = onward();
    bystander.overhear(5, 6, data(4, &[5, 6], 1, 9, 1));
    assert_eq!(bystander.routes(), [path(&[5, 6, 9])]);
    let mut target = onward();
    target.get(5, data(4, &[5], 0, 0, 1));
    assert!(target.routes().is_empty());
}

#[test]
fn a_request_teaches_whoever_answers_it() {
    let mut relay = onward();
    relay.get(5, request(4, 1, 9, &[5]));
    assert!(relay.routes().is_empty());
    let mut target = onward();
    target.get(5, request(4, 1, 0, &[5]));
    assert_eq!(target.routes(), [path(&[5, 4])]);
    let mut cache = onward();
    cache.knows(&[6, 9]);
    cache.get(5, request(4, 1, 9, &[5]));
    assert_eq!(cache.routes(), [path(&[6, 9]), path(&[5, 4])]);
}

#[test]
fn the_path_of_a_reply_is_for_its_initiator_and_for_relays_that_hear_it_pass() {
    let passing = || reply(9, &[6, 0, 5], 2, 4, &[5, 0, 6, 9]);
    let mut relay = onward();
    relay.get(6, passing());
    assert_eq!(relay.routes(), [path(&[5, 4])], "where the reply itself goes");
    relay.overhear(5, 4, reply(9, &[6, 0, 5], 0, 4, &[5, 0, 6, 9]));
    assert_eq!(relay.routes(), [path(&[5, 4]), path(&[6, 9])]);
    let mut bystander = onward();
    bystander.overhear(5, 4, reply(9, &[6, 7, 5], 0, 4, &[5, 7, 6, 9]));
    assert_eq!(bystander.routes(), [path(&[5, 4])]);
    let mut initiator = onward();
    initiator.get(5, reply(9, &[6, 5], 0, 0, &[5, 6, 9]));
    assert_eq!(initiator.routes(), [path(&[5, 6, 9])]);
}

#[test]
fn whoever_tells_of_a_detour_knows_the_way_to_whom_it_tells() {
    let mut node = onward();
    node.overhear(5, 6, data(4, &[5, 6, 7, 0, 8], 4, 9, 1));
    assert!(node.routes().contains(&path(&[5, 4])));
}

#[test]
fn a_relay_asks_its_neighbours_once_and_then_lets_one_packet_go_at_a_time() {
    let mut node = Node::new(Config::ns2());
    assert_eq!(requests(&strand(&mut node, 1)), [1], "neighbours alone");
    assert_eq!(requests(&strand(&mut node, 2)), Vec::<u8>::new(), "they were asked just now");
    assert_eq!((node.events(), node.dsr.buffered()), (vec![PURGE; 2], 2));
    let drop = |packet| Event::Drop { packet, reason: DropReason::NoRoute };
    for (seconds, packet) in [(2, 1), (8, 2)] {
        node.pass(ms(seconds * 1000 - 1));
        assert_eq!(node.events(), []);
        assert_eq!((node.pass(ms(1)), node.events()), (vec![], vec![drop(packet)]), "after {seconds} s");
    }
}

#[test]
fn a_packet_that_waits_at_a_relay_goes_on_when_a_path_is_heard_of() {
    let mut node = Node::new(Config::ns2());
    strand(&mut node, 77);
    let sent = node.get(7, reply(9, &[7], 0, 0, &[7, 9]));
    let (packet, next_hop) = only(&sent);
    assert_eq!((packet.source, packet.carried, next_hop), (n(4), Some(77), n(7)));
    assert_eq!(packet.header.options.as_slice(), [route(1, &[0, 7], 1)]);
    assert_eq!((node.events(), node.dsr.buffered()), (vec![PURGE], 0));
}

#[test]
fn a_packet_of_this_nodes_own_does_not_wait_for_what_others_may_not_ask() {
    let mut node = Node::new(Config::ns2());
    strand(&mut node, 1);
    node.pass(ms(10));
    assert_eq!(node.send(9, 2), []);
    let sent: Vec<Transmit<u32>> = node.pass(ms(20)).into_iter().map(|(_, sent)| sent).collect();
    assert_eq!(requests(&sent), [255], "30 ms after neighbours were asked");
    node.get(5, reply(9, &[5], 0, 0, &[5, 9]));
    let sent: Vec<Option<u32>> = node.pass(ms(100)).iter().map(|(_, sent)| sent.packet.carried).collect();
    assert_eq!((sent, node.dsr.buffered()), (vec![Some(2)], 0), "30 ms behind the other");
}

#[test]
fn a_packet_that_was_salvaged_too_often_does_not_wait() {
    let mut node = Node::new(Config { max_salvage: 0, ..Config::ns2() });
    assert!(requests(&strand(&mut node, 1)).is_empty());
    let dropped = Event::Drop { packet: 1, reason: DropReason::LinkFailure };
    assert_eq!((node.events(), node.dsr.buffered()), (vec![PURGE, dropped], 0));
}

#[test]
fn a_reply_takes_another_path_unless_it_tells_of_the_dead_link() {
    let mut node = Node::new(Config::ns2());
    node.knows(&[1, 4]);
    let sent = node.get(5, reply(9, &[5, 0, 6], 2, 4, &[7, 5, 9]));
    let sent = node.fails(sent[0].clone());
    let [error, reply_again] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!((error.packet.destination, error.next_hop), (n(9), n(5)));
    assert_eq!(reply_again.next_hop, n(1));
    assert_eq!(
        reply_again.packet.header.options.as_slice(),
        [route(1, &[0, 1], 1), reply_option(&[7, 5, 9])]
    );
    node.pass(ms(1));
    let sent = node.get(5, reply(9, &[5, 0, 6], 2, 4, &[6, 0, 5, 9]));
    let sent = node.fails(sent[0].clone());
    assert_eq!((only(&sent).1, node.dsr.stats().control_lost), (n(5), 1), "the error alone");
}

#[test]
fn an_error_takes_another_path() {
    let mut node = Node::new(Config::ns2());
    node.knows(&[1, 4]);
    let sent = node.get(5, packet(9, 4, &[route(0, &[5, 0, 6], 2), error_option(9, 8, 4)]));
    let sent = node.fails(sent[0].clone());
    let (packet, next_hop) = only(&sent);
    assert_eq!((packet.source, packet.destination, next_hop), (n(9), n(4), n(1)));
    assert_eq!(packet.header.options.as_slice(), [route(1, &[0, 1], 1), error_option(9, 8, 4)]);
}

#[test]
fn everybody_hears_of_a_dead_link_though_neighbours_were_asked_first() {
    let ask = |asked| {
        let mut node = Node::new(Config { neighbours_asked: asked, ..Config::rfc4728() });
        node.get(5, packet(3, 0, &[route(0, &[5], 0), error_option(3, 9, 0)]));
        let mut sent = node.send(8, 1);
        sent.extend(node.pass(ms(30)).into_iter().map(|(_, sent)| sent));
        sent.iter().map(|sent| (sent.packet.ttl, sent.packet.header.options.len())).collect::<Vec<_>>()
    };
    assert_eq!(ask(NeighboursAsked::EachTime), [(1, 2), (255, 2)]);
    assert_eq!(ask(NeighboursAsked::Once), [(1, 2), (255, 1)]);
}

#[test]
fn hostile_packets_cannot_fill_more_than_the_buffer() {
    let mut node = Node::new(Config::ns2());
    assert_eq!(with_cache(|cache| cache.stranded = Stranded::NeighboursAsked).buffer_packets.get(), 64);
    for id in 0..200 {
        strand(&mut node, id);
    }
    let refused = node.events().iter().filter(|event| matches!(event, Event::Drop { .. })).count();
    assert_eq!((node.dsr.buffered(), refused), (64, 136));
}
