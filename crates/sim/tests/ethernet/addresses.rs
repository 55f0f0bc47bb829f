//! Destinations of frames: addresses of taps, of hosts behind them, and unknown ones.

use super::{Dialogue, experiment, host, near, row, tap};
use crate::support::SpecBuilder;
use hopline_core::NodeId;
use hopline_sim::TapCounts;
use hopline_wire::dot11::MacAddr;

#[test]
fn an_unknown_destination_is_flooded_until_its_place_is_learnt() {
    let mut talk = Dialogue::new(&near(3));
    talk.inject(100, 0, &experiment(tap(0), host(7), 50));
    assert_eq!(talk.left_at(110), [1, 2], "flooded");
    talk.inject(200, 2, &experiment(host(7), tap(0), 50));
    assert_eq!(talk.left_at(210), [0]);
    talk.inject(300, 0, &experiment(tap(0), host(7), 50));
    assert_eq!(talk.left_at(310), [2], "learnt from the frame before");
    let counts = talk.world.tap_counts(NodeId(0));
    assert_eq!(
        counts,
        TapCounts { accepted: 2, flooded: 1, delivered: 2, emitted: 1, ..TapCounts::default() }
    );
    let outcome = talk.finish();
    assert_eq!(outcome.nodes.iter().map(|node| node.frames.ack).collect::<Vec<_>>(), [1, 0, 1]);
}

#[test]
fn several_hosts_behind_one_tap_are_learnt_each() {
    let mut talk = Dialogue::new(&near(3));
    talk.inject(100, 1, &experiment(host(1), MacAddr::BROADCAST, 50));
    talk.inject(200, 1, &experiment(host(2), MacAddr::BROADCAST, 50));
    talk.inject(300, 2, &experiment(host(3), MacAddr::BROADCAST, 50));
    talk.left(390);
    for (at, to, node) in [(400, host(1), 1), (500, host(2), 1), (600, host(3), 2), (700, tap(1), 1)] {
        talk.inject(at, 0, &experiment(tap(0), to, 50));
        assert_eq!(talk.left_at(at + 50), [node], "{to}");
    }
    assert_eq!(talk.world.tap_counts(NodeId(0)).flooded, 0);
}

#[test]
fn frames_between_hosts_behind_one_tap_are_not_sent() {
    let mut talk = Dialogue::new(&near(2));
    talk.inject(100, 0, &experiment(host(1), MacAddr::BROADCAST, 50));
    assert_eq!(talk.left_at(150), [1]);
    for (at, to) in [(200, host(1)), (250, tap(0))] {
        talk.inject(at, 0, &experiment(host(2), to, 50));
        assert_eq!(talk.left_at(at + 40), [] as [u32; 0]);
    }
    let counts = talk.world.tap_counts(NodeId(0));
    assert_eq!((counts.accepted, counts.filtered), (1, 2));
}

#[test]
fn a_host_that_moves_to_another_tap_is_found_there() {
    let mut talk = Dialogue::new(&near(3));
    for (at, node) in [(100, 1), (300, 2)] {
        talk.inject(at, node, &experiment(host(1), MacAddr::BROADCAST, 50));
        talk.left(at + 50);
        talk.inject(at + 100, 0, &experiment(tap(0), host(1), 50));
        assert_eq!(talk.left_at(at + 150), [node]);
    }
    // It was behind tap 1 itself, and is no more.
    talk.inject(500, 1, &experiment(tap(1), host(1), 50));
    assert_eq!(talk.left_at(550), [2]);
}

#[test]
fn an_address_is_forgotten_after_five_minutes() {
    let mut talk = Dialogue::new(&near(3));
    talk.inject(1_000, 1, &experiment(host(1), MacAddr::BROADCAST, 50));
    talk.left(1_100);
    for (at, reached) in [(300_900, vec![1]), (301_100, vec![1, 2])] {
        talk.inject(at, 0, &experiment(tap(0), host(1), 50));
        assert_eq!(talk.left_at(at + 50), reached);
    }
}

#[test]
fn the_address_of_a_radio_cannot_be_claimed_by_another_host() {
    let mut talk = Dialogue::new(&near(3));
    talk.inject(100, 2, &experiment(tap(1), MacAddr::BROADCAST, 50));
    assert_eq!(talk.left_at(150), [1, 0]);
    talk.inject(200, 0, &experiment(tap(0), tap(1), 50));
    assert_eq!(talk.left_at(250), [1]);
}

#[test]
fn an_address_two_hops_away_is_out_of_reach() {
    let mut talk = Dialogue::new(&row(3));
    talk.inject(100, 0, &experiment(tap(0), tap(2), 50));
    assert_eq!(talk.left_at(1_000), [] as [u32; 0]);
    assert_eq!(talk.world.tap_counts(NodeId(0)).dropped.retry_limit, 1);
}

#[test]
fn a_second_radio_carries_broadcasts_and_what_its_channel_shares() {
    use hopline_sim::spec::Channel;
    // Node 0 has both channels, node 1 the first, node 2 the second.
    let spec = near(3).change(|spec| {
        spec.nodes[0].radio_channels = vec![Channel(1), Channel(6)];
        spec.nodes[1].radio_channels = vec![Channel(1)];
        spec.nodes[2].radio_channels = vec![Channel(6)];
    });
    let mut talk = Dialogue::new(&spec);
    talk.inject(100, 0, &experiment(tap(0), MacAddr::BROADCAST, 50));
    assert_eq!(talk.left_at(150), [1, 2]);
    for (at, to) in [(200, 1), (250, 2)] {
        talk.inject(at, 0, &experiment(tap(0), tap(to), 50));
        assert_eq!(talk.left_at(at + 40), [to]);
    }
    talk.inject(300, 1, &experiment(tap(1), tap(2), 50));
    assert_eq!(talk.left_at(350), [] as [u32; 0]);
    assert_eq!(talk.world.tap_counts(NodeId(1)).dropped.unresolved, 1, "they share no channel");
}
