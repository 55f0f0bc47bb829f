//! Frames that are refused, and more frames than a world holds.

use super::{Dialogue, experiment, frame, host, near, tap};
use crate::support::{SpecBuilder, link, wired};
use bytes::Bytes;
use hopline_core::{Duration, Instant, NodeId};
use hopline_sim::{FrameError, MAX_FRAME_LEN, NoTrace, TapCounts, World};
use hopline_wire::dot11::MacAddr;

/// Injects bytes at a node of two, and returns the error and the counters of node 0.
fn refused(node: u32, bytes: &[u8]) -> (FrameError, TapCounts) {
    let mut world = World::new(&near(3).ethernet_taps(0..2), 1, NoTrace);
    let error = world.inject_frame(NodeId(node), &Bytes::copy_from_slice(bytes)).expect_err("refused");
    world.run_until(Instant::from_millis(100));
    assert_eq!((world.poll_frame(), world.packets()), (None, 0));
    (error, world.tap_counts(NodeId(0)))
}

#[test]
fn a_frame_longer_than_802_11_carries_is_refused_and_counted() {
    let (error, counts) = refused(0, &experiment(tap(0), tap(1), MAX_FRAME_LEN - 13));
    assert_eq!(error.to_string(), "a frame of 2311 bytes is too long for 802.11: at most 2310 bytes");
    assert_eq!(counts, TapCounts { too_long: 1, ..TapCounts::default() });
    let mut talk = Dialogue::new(&near(2));
    let longest = experiment(tap(0), tap(1), MAX_FRAME_LEN - 14);
    talk.inject(100, 0, &longest);
    assert_eq!(talk.left(200), [(1, longest)]);
}

#[test]
fn frames_that_no_bridge_forwards_are_refused_and_counted() {
    let good = experiment(tap(0), tap(1), 20);
    for len in 0..14 {
        let (error, counts) = refused(0, &good[..len]);
        assert_eq!(
            error.to_string(),
            format!("no Ethernet frame: truncated: 14 bytes needed, {len} present")
        );
        assert_eq!(counts, TapCounts { malformed: 1, ..TapCounts::default() });
    }
    for source in [MacAddr::BROADCAST, MacAddr([1, 0, 0x5e, 0, 0, 1]), MacAddr::default()] {
        let (error, counts) = refused(0, &experiment(source, tap(1), 20));
        assert!(matches!(error, FrameError::Malformed(_)), "{error}");
        assert_eq!(counts.malformed, 1);
    }
}

#[test]
fn a_node_that_is_no_tap_takes_no_frame() {
    for node in [2, 9, u32::MAX] {
        let (error, counts) = refused(node, &experiment(host(1), tap(1), 20));
        assert_eq!(error.to_string(), format!("n{node} is no Ethernet tap"));
        assert_eq!(counts, TapCounts::default());
    }
}

#[test]
fn hostile_contents_pass_unchanged() {
    let mut talk = Dialogue::new(&near(2));
    let payloads: [(u16, &[u8]); 6] = [
        (0x0800, &[]),
        (0x0800, &[0x45]),
        (0x0800, &[0x4f; 25]),
        (0x86dd, &[0x60; 40]),
        (0x8100, &[0xff; 60]),
        (0, &[0xff; 60]),
    ];
    for (n, (ethertype, payload)) in (1..).zip(payloads) {
        for (at, to) in [(100 * n, tap(1)), (100 * n + 50, MacAddr::BROADCAST)] {
            let sent = frame(tap(0), to, ethertype, payload);
            talk.inject(at, 0, &sent);
            assert_eq!(talk.left(at + 40), [(1, sent)]);
        }
    }
}

#[test]
fn a_full_queue_drops_and_counts() {
    let mut talk = Dialogue::new(&near(2));
    for _ in 0..80 {
        talk.inject(100, 0, &experiment(tap(0), tap(1), 1000));
    }
    let counts = talk.world.tap_counts(NodeId(0));
    // 50 wait, and the MAC has one.
    assert_eq!((counts.accepted, counts.held, counts.dropped.queue_full), (80, 51, 29));
    assert_eq!(talk.left_at(1_000).len(), 51);
    let counts = talk.world.tap_counts(NodeId(0));
    assert_eq!((counts.delivered, counts.held, counts.dropped.total()), (51, 0, 29));
    assert_eq!(talk.finish().nodes[0].drops.queue_full, 29);
}

#[test]
fn frames_that_the_caller_does_not_fetch_are_bounded() {
    let spec = wired(2).link(link(0, 1, 10_000_000_000, Duration::ZERO, 1000)).ethernet_taps(0..2);
    let mut world = World::new(&spec, 1, NoTrace);
    let sent = experiment(tap(0), tap(1), 46);
    for n in 0..70_000_u64 {
        world.run_until(Instant::from_nanos(n * 1_000));
        world.inject_frame(NodeId(0), &sent).expect("a good frame");
    }
    world.run_until(Instant::from_millis(100));
    assert_eq!(core::iter::from_fn(|| world.poll_frame()).count(), 65_536);
    let counts = world.tap_counts(NodeId(0));
    assert_eq!((counts.delivered, counts.dropped.queue_full), (65_536, 70_000 - 65_536));
}
