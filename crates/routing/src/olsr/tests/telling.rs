//! TC messages: a relay's advertisement, and its effect on other nodes (RFC 3626 §9, §10).

use super::dialogue::*;
use crate::olsr::config::EarlyTc;
use crate::olsr::*;

/// A node that neighbour 1 has chosen as its relay.
fn relay(config: Config) -> Node {
    let mut node = Node::new(config);
    node.hear_hello(1, &[(RELAY, &[0])]);
    node
}

#[test]
fn a_relay_tells_of_its_selectors_every_five_seconds() {
    let mut node = relay(punctual());
    assert_eq!(node.selectors(), [1]);
    let mut told = Vec::new();
    for _ in 0..10 {
        told.extend(tcs(&node.pass(secs(2))));
        node.hear_hello(1, &[(RELAY, &[0])]);
    }
    assert_eq!(told.len(), 4);
    assert!(told.windows(2).all(|pair| pair[1].0.since(pair[0].0) == secs(5)));
    assert!(told.iter().all(|(_, ansn, nodes)| (*ansn, &nodes[..]) == (1, &[1])), "{told:?}");
}

#[test]
fn who_is_no_relay_tells_nothing() {
    let mut node = Node::new(punctual());
    node.hear_hello(1, &[(SYMMETRIC, &[0, 5])]);
    assert_eq!(tcs(&node.pass(secs(60))), []);
}

#[test]
fn the_number_rises_with_every_change_and_nothing_left_is_told_until_it_is_forgotten() {
    let mut node = relay(Config { early_tc: EarlyTc::Never, ..punctual() });
    node.hear_hello(2, &[(RELAY, &[0])]);
    let first = tcs(&node.pass(secs(5)));
    assert_eq!((first[0].1, &first[0].2[..]), (2, &[1, 2][..]));
    // Both fall silent and are lost 6 s after they were heard: the selectors go one by one.
    let rest = tcs(&node.pass(secs(60)));
    let told: Vec<_> = rest.iter().map(|(_, ansn, nodes)| (*ansn, nodes.len())).collect();
    assert_eq!(told, [(4, 0), (4, 0), (4, 0)], "for TOP_HOLD_TIME");
}

#[test]
fn a_selector_that_no_longer_selects_expires() {
    let mut node = relay(punctual());
    for _ in 0..3 {
        assert_eq!(node.selectors(), [1]);
        node.pass(secs(2));
        node.hear_hello(1, &[(SYMMETRIC, &[0])]);
    }
    assert!(node.selectors().is_empty());
}

#[test]
fn a_selector_lost_with_its_link_is_told_early_but_not_too_often() {
    let spacing = ms(1_250);
    let mut node = relay(Config { early_tc: EarlyTc::OnLinkFailure { spacing }, ..punctual() });
    let before = tcs(&node.pass(secs(5)));
    assert_eq!(before.len(), 1);
    let mut told = Vec::new();
    // Each time the link is back and lost again.
    for _ in 0..30 {
        node.hear_hello(1, &[(RELAY, &[0])]);
        node.hear_hello(1, &[(LOST, &[0])]);
        told.extend(tcs(&node.pass(ms(100))));
    }
    let gaps: Vec<_> = told.windows(2).map(|pair| pair[1].0.since(pair[0].0)).collect();
    assert!(told.len() >= 2 && gaps.iter().all(|gap| *gap >= spacing), "{told:?}");
    assert!(told.iter().all(|(.., nodes)| nodes.is_empty()), "{told:?}");
}

#[test]
fn routes_lead_over_what_relays_tell() {
    let mut node = Node::new(punctual());
    node.hear_hello(1, &[(SYMMETRIC, &[0, 5])]);
    node.events();
    node.hear_tc(1, 5, 1, &[1, 6]);
    node.hear_tc(1, 6, 1, &[5, 7, 0]);
    assert_eq!([5, 6, 7].map(|to| node.route(to)), [Some((1, 2)), Some((1, 3)), Some((1, 4))]);
    let found = |node, hops| Event::RouteFound { destination: n(node), hops };
    assert_eq!(node.events(), [found(6, 3), found(7, 4)]);
    // 6 withdraws 7.
    node.hear_tc(1, 6, 2, &[5]);
    assert_eq!(node.events(), [Event::RouteLost { destination: n(7) }]);
}

#[test]
fn what_is_not_repeated_is_forgotten_after_fifteen_seconds() {
    let mut node = Node::new(punctual());
    let hello = |node: &mut Node| node.hear_hello(1, &[(SYMMETRIC, &[0, 5])]);
    hello(&mut node);
    node.hear_tc(1, 5, 1, &[6]);
    for _ in 0..14 {
        node.pass(secs(1));
        hello(&mut node);
    }
    assert_eq!(node.route(6), Some((1, 3)));
    node.pass(secs(1));
    assert_eq!((node.route(6), node.route(5)), (None, Some((1, 2))));
}

#[test]
fn an_older_number_is_stale_and_zero_follows_the_greatest() {
    let mut node = Node::new(punctual());
    node.hear_hello(1, &[(SYMMETRIC, &[0, 5])]);
    node.hear_tc(1, 5, 65_535, &[6]);
    node.hear_tc(1, 5, 65_534, &[7]);
    assert_eq!((node.route(6), node.route(7)), (Some((1, 3)), None));
    assert_eq!(node.ignored(Ignored::StaleTopology), 1);
    node.hear_tc(1, 5, 0, &[7]);
    assert_eq!((node.route(6), node.route(7)), (None, Some((1, 3))));
}

#[test]
fn the_table_is_computed_when_a_set_has_changed_and_only_then() {
    let mut node = Node::new(punctual());
    let computed = |node: &Node| node.olsr.stats().table_computations;
    assert_eq!(computed(&node), 0);
    node.hear_hello(1, &[(SYMMETRIC, &[0, 5, 6, 7])]);
    assert_eq!(computed(&node), 1);
    node.hear_hello(1, &[(SYMMETRIC, &[0, 5, 6, 7])]);
    node.hear_tc(1, 5, 1, &[8]);
    node.hear_tc(1, 5, 1, &[8]);
    node.pass(secs(4));
    assert_eq!(computed(&node), 2);
}
