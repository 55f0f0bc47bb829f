//! Packets on their way (RFC 4728 §8.1.4 to §8.1.6, §8.3.3).

use super::harness::*;
use crate::dsr::*;
use hopline_wire::dsr::{Ack, AckRequest, DsrOption, ErrorKind};

fn with(mut packet: Packet<u32>, option: DsrOption) -> Packet<u32> {
    std::sync::Arc::make_mut(&mut packet.header).options.push(option);
    packet
}

#[test]
fn a_packet_is_forwarded_along_its_route() {
    let mut node = TestNode::new(Config::rfc4728());
    let sent = node.receive(5, data(4, &[5, 0, 6], 2, 9, 77));
    let (packet, next_hop) = only_packet(&sent);
    assert_eq!(
        (packet.source, packet.destination, packet.ttl, next_hop),
        (node_address(4), node_address(9), 63, node_address(6))
    );
    assert_eq!(packet.header.options.as_slice(), [source_route(0, &[5, 0, 6], 1)]);
    assert_eq!(packet.payload, Some(77));
    let sent = node.receive(5, data(4, &[5, 0], 1, 9, 78));
    assert_eq!(
        (only_packet(&sent).1, only_packet(&sent).0.header.options.as_slice()),
        (node_address(9), [source_route(0, &[5, 0], 0)].as_slice())
    );
    assert_eq!((node.events(), node.dsr.stats().data_forwarded), (vec![], 2));
}

#[test]
fn its_route_is_learnt_forwards_and_backwards() {
    let mut node = TestNode::new(Config::rfc4728());
    node.receive(5, data(4, &[5, 0, 6], 2, 9, 77));
    assert_eq!(node.routes(), [path(&[6, 9]), path(&[5, 4])]);
}

#[test]
fn the_path_to_the_salvaging_node_is_not_learnt() {
    // §8.1.4
    let mut node = TestNode::new(Config::rfc4728());
    let sent = node.receive(5, with_data(packet(4, 9, &[source_route(2, &[5, 0, 6], 2)]), 77));
    assert_eq!(only_packet(&sent).0.header.options.as_slice(), [source_route(2, &[5, 0, 6], 1)]);
    assert_eq!(node.routes(), [path(&[6, 9]), path(&[5])]);
}

#[test]
fn a_packet_for_this_node_is_delivered_with_or_without_a_route() {
    let mut node = TestNode::new(Config::rfc4728());
    node.receive(5, data(4, &[5], 0, 0, 1));
    node.receive(5, with_data(packet(5, 0, &[]), 2));
    assert_eq!(node.events(), [Event::Deliver { packet: 1, ttl: 64 }, Event::Deliver { packet: 2, ttl: 64 }]);
    assert_eq!(node.sent(), []);
}

#[test]
fn a_packet_with_expired_ttl_is_dropped() {
    let mut node = TestNode::new(Config::rfc4728());
    assert_eq!(node.receive(5, Packet { ttl: 1, ..data(4, &[5, 0], 1, 9, 77) }), []);
    assert_eq!(node.events(), [Event::Drop { packet: 77, reason: DropReason::TtlExpired }]);
    assert_eq!(node.ignored(IgnoredReason::TtlExpired), 1);
    node.receive(5, Packet { ttl: 1, ..data(4, &[5], 0, 0, 78) });
    assert_eq!(node.events(), [Event::Deliver { packet: 78, ttl: 1 }]);
}

#[test]
fn a_packet_that_contradicts_its_route_is_dropped() {
    let mut node = TestNode::new(Config::rfc4728());
    for bad in [data(4, &[5, 6], 1, 9, 77), data(5, &[], 0, 9, 77), data(4, &[5, 0, 6], 1, 9, 77)] {
        assert_eq!(node.receive(5, bad), []);
        assert_eq!(node.events(), [Event::Drop { packet: 77, reason: DropReason::BadRoute }]);
    }
    assert_eq!(node.ignored(IgnoredReason::NotOnRoute), 3);
    assert!(node.routes().is_empty());
}

#[test]
fn invalid_routes_are_refused() {
    let two = with(data(4, &[5, 0], 1, 9, 77), source_route(0, &[5, 0], 1));
    let unvisited = with_data(packet(4, 9, &[source_route(1, &[0, 5], 2)]), 77);
    let beyond = with_data(packet(4, 9, &[source_route(0, &[5, 0], 3)]), 77);
    let multicast =
        Packet { destination: std::net::Ipv4Addr::new(224, 0, 0, 9), ..data(4, &[5, 0], 1, 9, 77) };
    let nobody = Packet { source: std::net::Ipv4Addr::UNSPECIFIED, ..data(4, &[5, 0], 1, 9, 77) };
    let cases = [
        two,
        unvisited,
        beyond,
        multicast,
        nobody,
        data(4, &[5, 0, 5], 2, 9, 77), // twice
        data(4, &[9, 0], 1, 9, 77),    // through its destination
        data(4, &[6, 0], 1, 9, 77),    // 6 should have sent it
        with_data(packet(0, 0, &[]), 77),
    ];
    for (case, bad) in cases.into_iter().enumerate() {
        let mut node = TestNode::new(Config::rfc4728());
        assert_eq!(node.receive(5, bad), [], "case {case}");
        assert_eq!(node.events(), [Event::Drop { packet: 77, reason: DropReason::BadRoute }], "case {case}");
        assert_eq!(node.ignored(IgnoredReason::Malformed), 1, "case {case}");
        assert!(node.routes().is_empty(), "case {case}");
    }
}

#[test]
fn acknowledgement_requests_are_answered_and_removed() {
    // §8.3.3
    let mut node = TestNode::new(Config::rfc4728());
    let asking = with(data(4, &[5, 0], 1, 9, 77), DsrOption::AckRequest(AckRequest { id: 3 }));
    let sent = node.receive(5, asking.clone());
    let [ack, on] = sent.as_slice() else { panic!("{sent:?}") };
    let expected = DsrOption::Ack(Ack { id: 3, source: ME, destination: node_address(5) });
    assert_eq!((ack.next_hop, ack.packet.destination, ack.packet.ttl), (node_address(5), node_address(5), 1));
    assert_eq!(ack.packet.header.options.as_slice(), [expected]);
    assert_eq!(on.packet.header.options.as_slice(), [source_route(0, &[5, 0], 0)]);
    let both =
        with(asking, DsrOption::Ack(Ack { id: 9, source: node_address(4), destination: node_address(9) }));
    assert_eq!(node.receive(5, both).len(), 1, "not with an acknowledgement for another");
    assert_eq!(node.dsr.stats().acks_sent, 1);
}

#[test]
fn an_acknowledgement_teaches_a_link() {
    let mut node = TestNode::new(Config::rfc4728());
    let ack = DsrOption::Ack(Ack { id: 3, source: node_address(5), destination: ME });
    assert_eq!(node.receive(5, packet(5, 0, &[ack])), []);
    assert_eq!(node.routes(), [path(&[5])]);
}

#[test]
fn unknown_options_are_treated_by_their_type() {
    // §8.1.6
    let passed = |kind: u8| {
        let mut node = TestNode::new(Config::rfc4728());
        let option = DsrOption::Unknown { kind, data: [1].into_iter().collect() };
        let sent = node.receive(5, with(data(4, &[5, 0], 1, 9, 77), option));
        let on = sent.iter().find(|sent| sent.packet.payload.is_some());
        let errors =
            sent.iter().flat_map(|sent| sent.packet.header.options.iter()).filter_map(
                |option| match option {
                    DsrOption::Error(error) => Some((error.kind.clone(), error.destination)),
                    _ => None,
                },
            );
        (on.map(|on| on.packet.header.options.get(1).cloned()), errors.collect::<Vec<_>>(), node.events())
    };
    let unknown = |kind, first| DsrOption::Unknown { kind, data: [first].into_iter().collect() };
    assert_eq!(passed(0x10), (Some(Some(unknown(0x10, 1))), vec![], vec![]));
    assert_eq!(passed(0x30), (Some(None), vec![], vec![]));
    assert_eq!(passed(0x50), (Some(Some(unknown(0x50, 0x81))), vec![], vec![]));
    let lost = vec![Event::Drop { packet: 77, reason: DropReason::BadRoute }];
    assert_eq!(passed(0x70), (None, vec![], lost.clone()));
    let told =
        |kind: u8| vec![(ErrorKind::Other { kind: 3, data: [kind].into_iter().collect() }, node_address(4))];
    assert_eq!(passed(0x90), (Some(Some(unknown(0x90, 1))), told(0x90), vec![]));
    assert_eq!(passed(0xf0), (None, told(0xf0), lost));
}
