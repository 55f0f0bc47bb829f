//! TC messages: a relay's advertisement, and its effect on other nodes (RFC 3626 §9, §10).

use super::harness::*;
use crate::olsr::config::EarlyTc;
use crate::olsr::*;

/// A node that neighbour 1 has chosen as its relay.
fn relay(config: Config) -> TestNode {
    let mut node = TestNode::new(config);
    node.receive_hello(1, &[(MPR, &[0])]);
    node
}

#[test]
fn an_mpr_advertises_its_selectors_every_tc_interval() {
    let mut node = relay(without_jitter());
    assert_eq!(node.selectors(), [1]);
    let mut told = Vec::new();
    for _ in 0..10 {
        told.extend(tcs(&node.advance(secs(2))));
        node.receive_hello(1, &[(MPR, &[0])]);
    }
    assert_eq!(told.len(), 4);
    assert!(told.windows(2).all(|pair| pair[1].0.since(pair[0].0) == secs(5)));
    assert!(told.iter().all(|(_, ansn, nodes)| (*ansn, &nodes[..]) == (1, &[1])), "{told:?}");
}

#[test]
fn a_node_without_selectors_sends_no_tc() {
    let mut node = TestNode::new(without_jitter());
    node.receive_hello(1, &[(SYMMETRIC, &[0, 5])]);
    assert_eq!(tcs(&node.advance(secs(60))), []);
}

#[test]
fn the_ansn_rises_with_every_change_and_empty_tcs_withdraw_entries() {
    let mut node = relay(Config { early_tc: EarlyTc::Never, ..without_jitter() });
    node.receive_hello(2, &[(MPR, &[0])]);
    let first = tcs(&node.advance(secs(5)));
    assert_eq!((first[0].1, &first[0].2[..]), (2, &[1, 2][..]));
    // Both fall silent and are lost 6 s after they were heard: the selectors go one by one.
    let rest = tcs(&node.advance(secs(60)));
    let told: Vec<_> = rest.iter().map(|(_, ansn, nodes)| (*ansn, nodes.len())).collect();
    assert_eq!(told, [(4, 0), (4, 0), (4, 0)], "for TOP_HOLD_TIME");
}

#[test]
fn a_selector_that_no_longer_selects_expires() {
    let mut node = relay(without_jitter());
    for _ in 0..3 {
        assert_eq!(node.selectors(), [1]);
        node.advance(secs(2));
        node.receive_hello(1, &[(SYMMETRIC, &[0])]);
    }
    assert!(node.selectors().is_empty());
}

#[test]
fn a_lost_selector_causes_early_but_rate_limited_tcs() {
    let spacing = ms(1_250);
    let mut node = relay(Config { early_tc: EarlyTc::OnLinkFailure { spacing }, ..without_jitter() });
    let before = tcs(&node.advance(secs(5)));
    assert_eq!(before.len(), 1);
    let mut told = Vec::new();
    // Each time the link is back and lost again.
    for _ in 0..30 {
        node.receive_hello(1, &[(MPR, &[0])]);
        node.receive_hello(1, &[(LOST, &[0])]);
        told.extend(tcs(&node.advance(ms(100))));
    }
    let gaps: Vec<_> = told.windows(2).map(|pair| pair[1].0.since(pair[0].0)).collect();
    assert!(told.len() >= 2 && gaps.iter().all(|gap| *gap >= spacing), "{told:?}");
    assert!(told.iter().all(|(.., nodes)| nodes.is_empty()), "{told:?}");
}

#[test]
fn routes_use_advertised_links() {
    let mut node = TestNode::new(without_jitter());
    node.receive_hello(1, &[(SYMMETRIC, &[0, 5])]);
    node.events();
    node.receive_tc(1, 5, 1, &[1, 6]);
    node.receive_tc(1, 6, 1, &[5, 7, 0]);
    assert_eq!([5, 6, 7].map(|to| node.route(to)), [Some((1, 2)), Some((1, 3)), Some((1, 4))]);
    let found = |node, hops| Event::RouteFound { destination: node_address(node), hops };
    assert_eq!(node.events(), [found(6, 3), found(7, 4)]);
    // 6 withdraws 7.
    node.receive_tc(1, 6, 2, &[5]);
    assert_eq!(node.events(), [Event::RouteLost { destination: node_address(7) }]);
}

#[test]
fn advertised_links_expire_after_top_hold_time() {
    let mut node = TestNode::new(without_jitter());
    let hello = |node: &mut TestNode| node.receive_hello(1, &[(SYMMETRIC, &[0, 5])]);
    hello(&mut node);
    node.receive_tc(1, 5, 1, &[6]);
    for _ in 0..14 {
        node.advance(secs(1));
        hello(&mut node);
    }
    assert_eq!(node.route(6), Some((1, 3)));
    node.advance(secs(1));
    assert_eq!((node.route(6), node.route(5)), (None, Some((1, 2))));
}

#[test]
fn an_older_number_is_stale_and_zero_follows_the_greatest() {
    let mut node = TestNode::new(without_jitter());
    node.receive_hello(1, &[(SYMMETRIC, &[0, 5])]);
    node.receive_tc(1, 5, 65_535, &[6]);
    node.receive_tc(1, 5, 65_534, &[7]);
    assert_eq!((node.route(6), node.route(7)), (Some((1, 3)), None));
    assert_eq!(node.ignored(IgnoredReason::StaleTopology), 1);
    node.receive_tc(1, 5, 0, &[7]);
    assert_eq!((node.route(6), node.route(7)), (None, Some((1, 3))));
}

#[test]
fn the_routing_table_is_computed_only_when_a_set_has_changed() {
    let mut node = TestNode::new(without_jitter());
    let computed = |node: &TestNode| node.olsr.stats().table_computations;
    assert_eq!(computed(&node), 0);
    node.receive_hello(1, &[(SYMMETRIC, &[0, 5, 6, 7])]);
    assert_eq!(computed(&node), 1);
    node.receive_hello(1, &[(SYMMETRIC, &[0, 5, 6, 7])]);
    node.receive_tc(1, 5, 1, &[8]);
    node.receive_tc(1, 5, 1, &[8]);
    node.advance(secs(4));
    assert_eq!(computed(&node), 2);
}
