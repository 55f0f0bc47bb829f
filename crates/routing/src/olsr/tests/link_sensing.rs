//! Link sensing, neighbours and two-hop neighbours (RFC 3626 §6 to §8, §13).

use super::harness::*;
use crate::olsr::config::LinkSensing;
use crate::olsr::*;
use hopline_core::StateMachine;
use hopline_wire::olsr::{Body, CodedTime, Hello, LinkCode, LinkMessage, LinkType, Willingness};

#[test]
fn a_link_becomes_asymmetric_symmetric_and_lost() {
    let mut node = TestNode::new(without_jitter());
    assert_eq!(node.next_hello(), []);
    node.receive_hello(1, &[]);
    assert_eq!(node.link(1), Some(LinkState::Asymmetric));
    assert_eq!(node.next_hello(), [(ASYMMETRIC, 1)]);
    assert_eq!(node.route(1), None);

    node.receive_hello(1, &[(ASYMMETRIC, &[0])]);
    assert_eq!(node.link(1), Some(LinkState::Symmetric));
    assert_eq!(node.events(), [Event::RouteFound { destination: node_address(1), hops: 1 }]);
    assert_eq!(node.next_hello(), [(SYMMETRIC, 1)]);
    assert_eq!(node.route(1), Some((1, 1)));

    // The HELLO is valid for 6 s; then the link is advertised as lost for another 6 s.
    node.advance(ms(3_999));
    assert_eq!(node.route(1), Some((1, 1)));
    node.advance(ms(1));
    assert_eq!((node.route(1), node.link(1)), (None, Some(LinkState::Lost)));
    assert_eq!(node.events(), [Event::RouteLost { destination: node_address(1) }]);
    assert_eq!(node.next_hello(), [(LOST, 1)]);
    node.advance(ms(4_000));
    assert_eq!(node.link(1), None);
    assert_eq!(node.next_hello(), []);
}

#[test]
fn a_neighbour_announces_a_lost_link() {
    let mut node = TestNode::new(without_jitter());
    node.receive_hello(1, &[(SYMMETRIC, &[0])]);
    node.receive_hello(1, &[(LOST, &[0])]);
    assert_eq!((node.link(1), node.route(1)), (Some(LinkState::Asymmetric), None));
    assert_eq!(node.next_hello(), [(ASYMMETRIC, 1)]);
}

#[test]
fn a_neighbour_that_stops_listing_us_stays_symmetric_until_expiry() {
    let mut node = TestNode::new(without_jitter());
    node.receive_hello(1, &[(SYMMETRIC, &[0])]);
    for _ in 0..2 {
        node.advance(secs(2));
        node.receive_hello(1, &[]);
        assert_eq!(node.link(1), Some(LinkState::Symmetric));
    }
    node.advance(secs(2));
    assert_eq!(node.link(1), Some(LinkState::Asymmetric));
}

#[test]
fn hellos_come_early_by_less_than_a_quarter_of_the_interval() {
    let mut node = TestNode::new(Config::rfc3626());
    let sent = node.advance(secs(200));
    let gaps: Vec<_> = sent.windows(2).map(|pair| pair[1].0.since(pair[0].0)).collect();
    assert!(gaps.iter().all(|gap| *gap > ms(1_500) && *gap <= secs(2)), "{gaps:?}");
    assert!(gaps.iter().any(|gap| *gap < ms(1_600)) && gaps.iter().any(|gap| *gap > ms(1_900)));
    assert!(sent.iter().all(|(_, message)| matches!(message.body, Body::Hello(_)) && message.ttl == 1));
    let numbers: Vec<_> = sent.iter().map(|(_, message)| message.seq.0).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "each message has the next number");
}

#[test]
fn two_hop_neighbours_are_learnt_and_select_mprs() {
    let mut node = TestNode::new(without_jitter());
    node.receive_hello(1, &[(SYMMETRIC, &[0, 2]), (MPR, &[5]), (ASYMMETRIC, &[6])]);
    node.receive_hello(2, &[(SYMMETRIC, &[0, 1])]);
    assert_eq!(node.mprs(), [1]);
    assert_eq!((node.route(5), node.route(6), node.route(2)), (Some((1, 2)), None, Some((2, 1))));
    assert_eq!(node.next_hello(), [(SYMMETRIC, 2), (MPR, 1)]);
    // 1 loses 5: no node remains to be reached over it.
    node.receive_hello(1, &[(SYMMETRIC, &[0, 2]), (LOST, &[5])]);
    assert_eq!((node.mprs(), node.route(5)), (vec![], None));
}

#[test]
fn two_hop_neighbours_are_removed_with_their_neighbour() {
    let mut node = TestNode::new(without_jitter());
    node.receive_hello(1, &[(SYMMETRIC, &[0, 5])]);
    node.events();
    node.receive_hello(1, &[(LOST, &[0]), (SYMMETRIC, &[5])]);
    let lost = |node| Event::RouteLost { destination: node_address(node) };
    assert_eq!(node.events(), [lost(1), lost(5)]);
    assert_eq!((node.mprs(), node.olsr.table_sizes()[0]), (vec![], 0));
}

#[test]
fn a_two_hop_neighbour_that_is_not_mentioned_again_expires() {
    let mut node = TestNode::new(without_jitter());
    node.receive_hello(1, &[(SYMMETRIC, &[0, 5])]);
    node.advance(secs(3));
    node.receive_hello(1, &[(SYMMETRIC, &[0])]);
    assert_eq!(node.route(5), Some((1, 2)));
    node.advance(secs(3));
    assert_eq!((node.route(5), node.route(1)), (None, Some((1, 1))));
}

#[test]
fn an_unwilling_neighbour_is_reached_but_no_relay() {
    let mut node = TestNode::new(without_jitter());
    node.receive_hello_with_willingness(1, Willingness::NEVER, &[(SYMMETRIC, &[0, 5])]);
    assert_eq!((node.mprs(), node.route(1), node.route(5)), (vec![], Some((1, 1)), None));
    node.receive_hello_with_willingness(1, Willingness::LOW, &[(SYMMETRIC, &[0, 5])]);
    assert_eq!((node.mprs(), node.route(5)), (vec![1], Some((1, 2))));
}

#[test]
fn invalid_link_codes_are_skipped() {
    let mut node = TestNode::new(without_jitter());
    let nonsense = LinkCode::from_bits(LinkType::Symmetric as u8);
    node.receive_hello(1, &[(nonsense, &[0, 7]), (SYMMETRIC, &[0, 5]), (LinkCode::from_bits(200), &[8])]);
    assert_eq!((node.route(5), node.route(7), node.route(8)), (Some((1, 2)), None, None));
    assert_eq!(node.ignored(IgnoredReason::BadLinkCode), 2);
}

#[test]
fn link_layer_reports_are_used_if_configured() {
    let fail = |sensing| {
        let mut node = TestNode::new(Config { link_sensing: sensing, ..without_jitter() });
        node.receive_hello(1, &[(SYMMETRIC, &[0, 5])]);
        node.olsr.handle_signal(node.now, Signal::LinkFailed { neighbour: node_address(1) });
        node.olsr.handle_signal(node.now, Signal::LinkFailed { neighbour: node_address(9) });
        node
    };
    assert_eq!(fail(LinkSensing::Hello).route(1), Some((1, 1)));

    let mut node = fail(LinkSensing::HelloAndLinkLayer);
    assert_eq!((node.route(1), node.route(5), node.link(1)), (None, None, Some(LinkState::Lost)));
    // For NEIGHB_HOLD_TIME, a HELLO does not restore it.
    node.receive_hello(1, &[(SYMMETRIC, &[0, 5])]);
    assert_eq!(node.next_hello(), [(LOST, 1)]);
    node.advance(secs(3));
    node.receive_hello(1, &[(SYMMETRIC, &[0, 5])]);
    assert_eq!(node.link(1), Some(LinkState::Lost));
    node.advance(secs(1));
    assert_eq!(node.link(1), Some(LinkState::Symmetric));
    node.receive_hello(1, &[(SYMMETRIC, &[0, 5])]);
    assert_eq!(node.route(5), Some((1, 2)));
}

#[test]
fn s13_a_failed_link_is_announced_as_lost_for_neighb_hold_time() {
    let config = Config { link_sensing: LinkSensing::HelloAndLinkLayer, ..without_jitter() };
    // The link would be remembered for 6 s or for 12; given up just before the end, for longer than that.
    for (says, then) in [(ASYMMETRIC, secs(0)), (LOST, secs(0)), (LOST, ms(5_999))] {
        let mut node = TestNode::new(config);
        node.receive_hello(1, &[(says, &[0])]);
        node.advance(then);
        node.olsr.handle_signal(node.now, Signal::LinkFailed { neighbour: node_address(1) });
        assert_eq!(node.next_hello(), [(LOST, 1)]);
        node.advance(ms(3_999));
        assert_eq!(node.link(1), Some(LinkState::Lost), "{says:?} {then}");
        node.advance(ms(1));
        assert_eq!(node.link(1), None, "{says:?} {then}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let life = || {
        let mut node = TestNode::new(Config::rfc3626());
        node.receive_hello(1, &[(MPR, &[0]), (SYMMETRIC, &[5])]);
        node.receive_tc(1, 5, 3, &[1, 6]);
        node.advance(secs(60))
    };
    assert_eq!(life(), life());
}

#[test]
fn a_deleted_link_removes_its_route_despite_a_longer_hello_validity() {
    let mut node = TestNode::new(Config { link_sensing: LinkSensing::HelloAndLinkLayer, ..without_jitter() });
    let hears = |node: &mut TestNode, validity, links| {
        let hello =
            Hello { interval: CodedTime::at_least(secs(2)), willingness: Willingness::DEFAULT, links };
        let message = node.message(1, validity, Body::Hello(hello));
        node.receive(node_address(1), message);
    };
    hears(&mut node, secs(15), vec![LinkMessage { code: SYMMETRIC, neighbours: vec![ME] }]);
    // Lost for 6 s, and kept for 8 s, since a HELLO without this node is still received.
    node.olsr.handle_signal(node.now, Signal::LinkFailed { neighbour: node_address(1) });
    hears(&mut node, secs(8), vec![]);
    assert_eq!((node.route(1), node.link(1)), (None, Some(LinkState::Lost)));
    node.advance(secs(7));
    assert_eq!(
        (node.route(1), node.link(1)),
        (Some((1, 1)), Some(LinkState::Symmetric)),
        "by the first HELLO"
    );
    node.advance(secs(2));
    assert_eq!((node.route(1), node.link(1)), (None, None));
    assert_eq!(node.olsr.routes().count(), 0);
}
