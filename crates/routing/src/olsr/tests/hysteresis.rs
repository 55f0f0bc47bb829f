//! Link hysteresis (RFC 3626 §14).

use super::dialogue::*;
use crate::olsr::config::Hysteresis;
use crate::olsr::*;
use hopline_wire::olsr::{Body, Message};

fn wary() -> Node {
    Node::new(Config { hysteresis: Some(Hysteresis::RFC3626), ..punctual() })
}

/// Neighbour 1 says HELLO every 2 s, `times`; the next comes in 2 s.
fn hear(node: &mut Node, times: u32) {
    for _ in 0..times {
        node.hear_hello(1, &[(SYMMETRIC, &[0])]);
        node.pass(ms(1_999));
    }
}

#[test]
fn a_new_link_is_used_after_three_packets_and_not_mentioned_before() {
    let mut node = wary();
    node.hear_hello(1, &[(SYMMETRIC, &[0])]);
    // Quality 0.5, then 0.75, then 0.875 > 0.8.
    assert_eq!((node.link(1), node.route(1)), (Some(LinkState::Pending), None));
    let sent = node.pass(ms(1_999));
    let of_nobody =
        |(_, message): &(_, Message)| matches!(&message.body, Body::Hello(h) if h.links.is_empty());
    assert!(sent.iter().any(of_nobody) && sent.iter().all(of_nobody), "{sent:?}");
    let mut node = wary();
    hear(&mut node, 2);
    assert_eq!(node.link(1), Some(LinkState::Pending));
    hear(&mut node, 1);
    assert_eq!((node.link(1), node.route(1)), (Some(LinkState::Symmetric), Some((1, 1))));
}

#[test]
fn two_intervals_of_silence_lose_a_link_that_is_known_well() {
    let mut node = wary();
    hear(&mut node, 10);
    assert_eq!(node.link(1), Some(LinkState::Symmetric));
    // Just below 1, 0.5, and 0.25 < 0.3 at 4 s after the last HELLO: before NEIGHB_HOLD_TIME.
    node.pass(ms(2_000));
    assert_eq!(node.link(1), Some(LinkState::Symmetric));
    node.pass(ms(2));
    assert_eq!((node.link(1), node.route(1)), (Some(LinkState::Lost), None));
    assert_eq!(node.next_hello(), [(LOST, 1)]);
}

#[test]
fn numbers_that_are_missing_count_as_losses() {
    let mut node = wary();
    hear(&mut node, 10);
    node.seq += 2;
    node.hear_hello(1, &[(SYMMETRIC, &[0])]);
    // Two losses and a packet: 0.25, 0.625.
    assert_eq!(node.link(1), Some(LinkState::Symmetric));
    node.seq += 30_000;
    node.hear_hello(1, &[(SYMMETRIC, &[0])]);
    // Lost for certain, and then 0.5: neither above nor below.
    assert_eq!(node.link(1), Some(LinkState::Symmetric));
    node.pass(ms(2_000));
    assert_eq!(node.link(1), Some(LinkState::Lost), "0.25");
}

#[test]
fn a_lost_link_comes_back_when_it_is_good_again() {
    let mut node = wary();
    hear(&mut node, 10);
    node.pass(secs(3));
    assert_eq!(node.link(1), Some(LinkState::Lost));
    // 0.25, then 0.625; with 0.8125 it is trusted, and no longer lost (§14.3).
    hear(&mut node, 1);
    assert_eq!(node.link(1), Some(LinkState::Lost));
    hear(&mut node, 1);
    assert_eq!(node.link(1), Some(LinkState::Symmetric));
}

#[test]
fn s14_3_a_link_that_fails_before_it_was_ever_used_is_told_lost_until_it_is_forgotten() {
    let mut node = wary();
    node.hear_hello(1, &[(SYMMETRIC, &[0])]);
    node.pass(ms(1_999));
    assert_eq!(node.link(1), Some(LinkState::Pending));
    // 0.25 after the first interval of silence. Each further interval is below the threshold too. The end of the advertised
    // loss therefore moves on, up to L_time: NEIGHB_HOLD_TIME for the HELLO, and as long again.
    node.pass(ms(2));
    assert_eq!(node.link(1), Some(LinkState::Lost));
    assert_eq!(node.next_hello(), [(LOST, 1)]);
    node.pass(ms(7_998));
    assert_eq!(node.link(1), Some(LinkState::Lost));
    node.pass(ms(2));
    assert_eq!(node.link(1), None);
    assert_eq!(node.next_hello(), []);
}

#[test]
fn numbers_that_go_back_are_no_losses() {
    let mut node = wary();
    hear(&mut node, 10);
    node.seq = hopline_core::Seq16(3);
    hear(&mut node, 3);
    assert_eq!(node.link(1), Some(LinkState::Symmetric));
}
