//! Link sensing, neighbours and two-hop neighbours (RFC 3626 §6 to §8, §13).

use super::dialogue::*;
use crate::olsr::config::LinkSensing;
use crate::olsr::*;
use hopline_core::Machine;
use hopline_wire::olsr::{Body, CodedTime, Hello, LinkCode, LinkMessage, LinkType, Willingness};

#[test]
fn a_link_is_heard_then_symmetric_then_silent() {
    let mut node = Node::new(punctual());
    assert_eq!(node.next_hello(), []);
    node.hear_hello(1, &[]);
    assert_eq!(node.link(1), Some(LinkState::Asymmetric));
    assert_eq!(node.next_hello(), [(HEARD, 1)]);
    assert_eq!(node.route(1), None);

    node.hear_hello(1, &[(HEARD, &[0])]);
    assert_eq!(node.link(1), Some(LinkState::Symmetric));
    assert_eq!(node.events(), [Event::RouteFound { destination: n(1), hops: 1 }]);
    assert_eq!(node.next_hello(), [(SYMMETRIC, 1)]);
    assert_eq!(node.route(1), Some((1, 1)));

    // The HELLO is valid for 6 s; then the link is advertised as lost for another 6 s.
    node.pass(ms(3_999));
    assert_eq!(node.route(1), Some((1, 1)));
    node.pass(ms(1));
    assert_eq!((node.route(1), node.link(1)), (None, Some(LinkState::Lost)));
    assert_eq!(node.events(), [Event::RouteLost { destination: n(1) }]);
    assert_eq!(node.next_hello(), [(LOST, 1)]);
    node.pass(ms(4_000));
    assert_eq!(node.link(1), None);
    assert_eq!(node.next_hello(), []);
}

#[test]
fn a_neighbour_that_no_longer_hears_us_says_so() {
    let mut node = Node::new(punctual());
    node.hear_hello(1, &[(SYMMETRIC, &[0])]);
    node.hear_hello(1, &[(LOST, &[0])]);
    assert_eq!((node.link(1), node.route(1)), (Some(LinkState::Asymmetric), None));
    assert_eq!(node.next_hello(), [(HEARD, 1)]);
}

#[test]
fn a_neighbour_that_stops_mentioning_us_is_symmetric_until_that_expires() {
    let mut node = Node::new(punctual());
    node.hear_hello(1, &[(SYMMETRIC, &[0])]);
    for _ in 0..2 {
        node.pass(secs(2));
        node.hear_hello(1, &[]);
        assert_eq!(node.link(1), Some(LinkState::Symmetric));
    }
    node.pass(secs(2));
    assert_eq!(node.link(1), Some(LinkState::Asymmetric));
}

#[test]
fn hellos_come_early_by_less_than_a_quarter_of_the_interval() {
    let mut node = Node::new(Config::rfc3626());
    let sent = node.pass(secs(200));
    let gaps: Vec<_> = sent.windows(2).map(|pair| pair[1].0.since(pair[0].0)).collect();
    assert!(gaps.iter().all(|gap| *gap > ms(1_500) && *gap <= secs(2)), "{gaps:?}");
    assert!(gaps.iter().any(|gap| *gap < ms(1_600)) && gaps.iter().any(|gap| *gap > ms(1_900)));
    assert!(sent.iter().all(|(_, message)| matches!(message.body, Body::Hello(_)) && message.ttl == 1));
    let numbers: Vec<_> = sent.iter().map(|(_, message)| message.seq.0).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "each message has the next number");
}

#[test]
fn what_neighbours_reach_is_two_hops_away_and_makes_them_relays() {
    let mut node = Node::new(punctual());
    node.hear_hello(1, &[(SYMMETRIC, &[0, 2]), (RELAY, &[5]), (HEARD, &[6])]);
    node.hear_hello(2, &[(SYMMETRIC, &[0, 1])]);
    assert_eq!(node.relays(), [1]);
    assert_eq!((node.route(5), node.route(6), node.route(2)), (Some((1, 2)), None, Some((2, 1))));
    assert_eq!(node.next_hello(), [(SYMMETRIC, 2), (RELAY, 1)]);
    // 1 loses 5: no node remains to be reached over it.
    node.hear_hello(1, &[(SYMMETRIC, &[0, 2]), (LOST, &[5])]);
    assert_eq!((node.relays(), node.route(5)), (vec![], None));
}

#[test]
fn what_a_neighbour_reaches_goes_with_it() {
    let mut node = Node::new(punctual());
    node.hear_hello(1, &[(SYMMETRIC, &[0, 5])]);
    node.events();
    node.hear_hello(1, &[(LOST, &[0]), (SYMMETRIC, &[5])]);
    let lost = |node| Event::RouteLost { destination: n(node) };
    assert_eq!(node.events(), [lost(1), lost(5)]);
    assert_eq!((node.relays(), node.olsr.entries()[0]), (vec![], 0));
}

#[test]
fn a_two_hop_neighbour_that_is_not_mentioned_again_expires() {
    let mut node = Node::new(punctual());
    node.hear_hello(1, &[(SYMMETRIC, &[0, 5])]);
    node.pass(secs(3));
    node.hear_hello(1, &[(SYMMETRIC, &[0])]);
    assert_eq!(node.route(5), Some((1, 2)));
    node.pass(secs(3));
    assert_eq!((node.route(5), node.route(1)), (None, Some((1, 1))));
}

#[test]
fn an_unwilling_neighbour_is_reached_and_not_passed_through() {
    let mut node = Node::new(punctual());
    node.hear_willing(1, Willingness::NEVER, &[(SYMMETRIC, &[0, 5])]);
    assert_eq!((node.relays(), node.route(1), node.route(5)), (vec![], Some((1, 1)), None));
    node.hear_willing(1, Willingness::LOW, &[(SYMMETRIC, &[0, 5])]);
    assert_eq!((node.relays(), node.route(5)), (vec![1], Some((1, 2))));
}

#[test]
fn a_link_code_that_means_nothing_is_passed_over() {
    let mut node = Node::new(punctual());
    let nonsense = LinkCode::from_bits(LinkType::Symmetric as u8);
    node.hear_hello(1, &[(nonsense, &[0, 7]), (SYMMETRIC, &[0, 5]), (LinkCode::from_bits(200), &[8])]);
    assert_eq!((node.route(5), node.route(7), node.route(8)), (Some((1, 2)), None, None));
    assert_eq!(node.ignored(Ignored::BadLinkCode), 2);
}

#[test]
fn the_link_layer_is_heard_if_that_is_wanted() {
    let fail = |sensing| {
        let mut node = Node::new(Config { link_sensing: sensing, ..punctual() });
        node.hear_hello(1, &[(SYMMETRIC, &[0, 5])]);
        node.olsr.handle_signal(node.now, Signal::LinkFailed { neighbour: n(1) });
        node.olsr.handle_signal(node.now, Signal::LinkFailed { neighbour: n(9) });
        node
    };
    assert_eq!(fail(LinkSensing::Hello).route(1), Some((1, 1)));

    let mut node = fail(LinkSensing::HelloAndLinkLayer);
    assert_eq!((node.route(1), node.route(5), node.link(1)), (None, None, Some(LinkState::Lost)));
    // For NEIGHB_HOLD_TIME, a HELLO does not restore it.
    node.hear_hello(1, &[(SYMMETRIC, &[0, 5])]);
    assert_eq!(node.next_hello(), [(LOST, 1)]);
    node.pass(secs(3));
    node.hear_hello(1, &[(SYMMETRIC, &[0, 5])]);
    assert_eq!(node.link(1), Some(LinkState::Lost));
    node.pass(secs(1));
    assert_eq!(node.link(1), Some(LinkState::Symmetric));
    node.hear_hello(1, &[(SYMMETRIC, &[0, 5])]);
    assert_eq!(node.route(5), Some((1, 2)));
}

#[test]
fn s13_what_the_link_layer_gave_up_is_told_lost_for_neighb_hold_time_and_then_forgotten() {
    let config = Config { link_sensing: LinkSensing::HelloAndLinkLayer, ..punctual() };
    // The link would be remembered for 6 s or for 12; given up just before the end, for longer than that.
    for (says, then) in [(HEARD, secs(0)), (LOST, secs(0)), (LOST, ms(5_999))] {
        let mut node = Node::new(config);
        node.hear_hello(1, &[(says, &[0])]);
        node.pass(then);
        node.olsr.handle_signal(node.now, Signal::LinkFailed { neighbour: n(1) });
        assert_eq!(node.next_hello(), [(LOST, 1)]);
        node.pass(ms(3_999));
        assert_eq!(node.link(1), Some(LinkState::Lost), "{says:?} {then}");
        node.pass(ms(1));
        assert_eq!(node.link(1), None, "{says:?} {then}");
    }
}

#[test]
fn the_same_seed_gives_the_same_life() {
    let life = || {
        let mut node = Node::new(Config::rfc3626());
        node.hear_hello(1, &[(RELAY, &[0]), (SYMMETRIC, &[5])]);
        node.hear_tc(1, 5, 3, &[1, 6]);
        node.pass(secs(60))
    };
    assert_eq!(life(), life());
}

#[test]
fn a_link_that_is_forgotten_takes_its_route_along_though_a_hello_was_good_for_longer() {
    let mut node = Node::new(Config { link_sensing: LinkSensing::HelloAndLinkLayer, ..punctual() });
    let hears = |node: &mut Node, validity, links| {
        let hello =
            Hello { interval: CodedTime::at_least(secs(2)), willingness: Willingness::DEFAULT, links };
        let message = node.message(1, validity, Body::Hello(hello));
        node.take(n(1), message);
    };
    hears(&mut node, secs(15), vec![LinkMessage { code: SYMMETRIC, neighbours: vec![ME] }]);
    // Lost for 6 s, and kept for 8 s, since a HELLO without this node is still received.
    node.olsr.handle_signal(node.now, Signal::LinkFailed { neighbour: n(1) });
    hears(&mut node, secs(8), vec![]);
    assert_eq!((node.route(1), node.link(1)), (None, Some(LinkState::Lost)));
    node.pass(secs(7));
    assert_eq!(
        (node.route(1), node.link(1)),
        (Some((1, 1)), Some(LinkState::Symmetric)),
        "by the first HELLO"
    );
    node.pass(secs(2));
    assert_eq!((node.route(1), node.link(1)), (None, None));
    assert_eq!(node.olsr.routes().count(), 0);
}
