//! Link hysteresis (RFC 3626 §14).

use super::harness::*;
use crate::olsr::config::Hysteresis;
use crate::olsr::*;
use hopline_wire::olsr::{Body, Message};

fn with_hysteresis() -> TestNode {
    TestNode::new(Config { hysteresis: Some(Hysteresis::RFC3626), ..without_jitter() })
}

/// Neighbour 1 says HELLO every 2 s, `times`; the next comes in 2 s.
fn receive_hellos(node: &mut TestNode, times: u32) {
    for _ in 0..times {
        node.receive_hello(1, &[(SYMMETRIC, &[0])]);
        node.advance(ms(1_999));
    }
}

#[test]
fn a_new_link_is_used_and_announced_after_three_packets() {
    let mut node = with_hysteresis();
    node.receive_hello(1, &[(SYMMETRIC, &[0])]);
    // Quality 0.5, then 0.75, then 0.875 > 0.8.
    assert_eq!((node.link(1), node.route(1)), (Some(LinkState::Pending), None));
    let sent = node.advance(ms(1_999));
    let of_nobody =
        |(_, message): &(_, Message)| matches!(&message.body, Body::Hello(h) if h.links.is_empty());
    assert!(sent.iter().any(of_nobody) && sent.iter().all(of_nobody), "{sent:?}");
    let mut node = with_hysteresis();
    receive_hellos(&mut node, 2);
    assert_eq!(node.link(1), Some(LinkState::Pending));
    receive_hellos(&mut node, 1);
    assert_eq!((node.link(1), node.route(1)), (Some(LinkState::Symmetric), Some((1, 1))));
}

#[test]
fn two_silent_intervals_lose_an_established_link() {
    let mut node = with_hysteresis();
    receive_hellos(&mut node, 10);
    assert_eq!(node.link(1), Some(LinkState::Symmetric));
    // Just below 1, 0.5, and 0.25 < 0.3 at 4 s after the last HELLO: before NEIGHB_HOLD_TIME.
    node.advance(ms(2_000));
    assert_eq!(node.link(1), Some(LinkState::Symmetric));
    node.advance(ms(2));
    assert_eq!((node.link(1), node.route(1)), (Some(LinkState::Lost), None));
    assert_eq!(node.next_hello(), [(LOST, 1)]);
}

#[test]
fn numbers_that_are_missing_count_as_losses() {
    let mut node = with_hysteresis();
    receive_hellos(&mut node, 10);
    node.seq += 2;
    node.receive_hello(1, &[(SYMMETRIC, &[0])]);
    // Two losses and a packet: 0.25, 0.625.
    assert_eq!(node.link(1), Some(LinkState::Symmetric));
    node.seq += 30_000;
    node.receive_hello(1, &[(SYMMETRIC, &[0])]);
    // Lost for certain, and then 0.5: neither above nor below.
    assert_eq!(node.link(1), Some(LinkState::Symmetric));
    node.advance(ms(2_000));
    assert_eq!(node.link(1), Some(LinkState::Lost), "0.25");
}

#[test]
fn a_lost_link_comes_back_when_it_is_good_again() {
    let mut node = with_hysteresis();
    receive_hellos(&mut node, 10);
    node.advance(secs(3));
    assert_eq!(node.link(1), Some(LinkState::Lost));
    // 0.25, then 0.625; with 0.8125 it is trusted, and no longer lost (§14.3).
    receive_hellos(&mut node, 1);
    assert_eq!(node.link(1), Some(LinkState::Lost));
    receive_hellos(&mut node, 1);
    assert_eq!(node.link(1), Some(LinkState::Symmetric));
}

#[test]
fn s14_3_a_link_that_fails_while_pending_is_announced_as_lost() {
    let mut node = with_hysteresis();
    node.receive_hello(1, &[(SYMMETRIC, &[0])]);
    node.advance(ms(1_999));
    assert_eq!(node.link(1), Some(LinkState::Pending));
    // 0.25 after the first interval of silence. Each further interval is below the threshold too. The end of the advertised
    // loss therefore moves on, up to L_time: NEIGHB_HOLD_TIME for the HELLO, and as long again.
    node.advance(ms(2));
    assert_eq!(node.link(1), Some(LinkState::Lost));
    assert_eq!(node.next_hello(), [(LOST, 1)]);
    node.advance(ms(7_998));
    assert_eq!(node.link(1), Some(LinkState::Lost));
    node.advance(ms(2));
    assert_eq!(node.link(1), None);
    assert_eq!(node.next_hello(), []);
}

#[test]
fn numbers_that_go_back_are_no_losses() {
    let mut node = with_hysteresis();
    receive_hellos(&mut node, 10);
    node.seq = hopline_core::Seq16(3);
    receive_hellos(&mut node, 3);
    assert_eq!(node.link(1), Some(LinkState::Symmetric));
}
