//! TCP-DOOR over links with a changing path.

use crate::any_link;
use crate::tcp::transfer;
use hopline_core::{Duration, Instant};
use hopline_testkit::Emulation;
use hopline_testkit::transfer::Transfer;
use hopline_transport::tcp::{
    AckPolicy, Config, DataOrder, Detection, DoorConfig, DoorStats, Endpoint, LateRule, OptionOffer,
};
use proptest::prelude::*;

const LENGTH: u64 = 400_000;

/// Four hops, and two.
fn slow() -> Emulation {
    path(Duration::from_millis(80))
}

fn fast() -> Emulation {
    path(Duration::from_millis(20))
}

fn path(latency: Duration) -> Emulation {
    Emulation::delay(latency).with_rate(Some(1_000_000))
}

/// Sends over the slow path, over these two after a second, and over the slow one again after another; returns what sender and
/// receiver counted.
fn transfer_with_switch(config: Config, to: [Emulation; 2]) -> [DoorStats; 2] {
    let mut t = transfer([config; 2], [7, 9], [LENGTH, 0], &slow(), 1);
    t.run(Instant::from_secs(1));
    t.pair.change_link(to);
    t.run(Instant::from_secs(2));
    t.pair.change_link([slow(), slow()]);
    t.run(Instant::from_secs(1000));
    t.assert_complete();
    door_stats(&t)
}

fn door_stats(t: &Transfer<Endpoint<bytes::Bytes>>) -> [DoorStats; 2] {
    [t.pair.a.stats().door, t.pair.b.stats().door]
}

fn config(door: DoorConfig) -> Config {
    let ack_policy = AckPolicy::EverySegment;
    Config::modern()
        .with_ack_policy(ack_policy)
        .with_initial_ssthresh(hopline_transport::tcp::InitialSsthresh::Segments(16))
        .with_door(Some(door))
}

#[test]
fn a_shorter_data_path_is_one_event_reported_to_the_sender() {
    for door in [DoorConfig::all(2.0, 2.0), DoorConfig::receiver_detection(2.0, 2.0)] {
        let [sender, receiver] = transfer_with_switch(config(door), [fast(), slow()]);
        assert_eq!((receiver.data_events, sender.reported_events, sender.disable_periods), (1, 1, 1));
        assert_eq!(sender.ack_events, 0, "acknowledgments keep their order");
    }
}

#[test]
fn timestamps_detect_the_same_switch() {
    let door =
        DoorConfig::receiver_detection(2.0, 2.0).with_detection(Detection::Receiver(DataOrder::Timestamps));
    let [sender, receiver] =
        transfer_with_switch(config(door).with_timestamps(OptionOffer::Offered), [fast(), slow()]);
    assert_eq!((receiver.data_events, sender.reported_events), (1, 1));
}

#[test]
fn a_switch_of_the_path_of_acknowledgments_is_one_event_of_the_sender() {
    for door in [DoorConfig::all(2.0, 2.0), DoorConfig::sender_detection(2.0, 2.0)] {
        let [sender, receiver] = transfer_with_switch(config(door), [slow(), fast()]);
        assert_eq!((sender.ack_events, sender.reported_events, receiver.data_events), (1, 0, 0));
    }
}

#[test]
fn each_late_packet_is_an_event_if_configured() {
    let door = DoorConfig::all(2.0, 2.0).with_late(LateRule::Each);
    let [sender, receiver] = transfer_with_switch(config(door), [fast(), slow()]);
    assert!(receiver.data_events > 1 && sender.reported_events > 1);
}

#[test]
fn losses_without_reordering_raise_no_event() {
    for loss in [0.0, 0.02, 0.1, 0.25] {
        for seed in 0..8 {
            let link = slow().with_loss(loss).with_queue(Some(20));
            let mut t =
                transfer([config(DoorConfig::all(1.0, 1.0)); 2], [7, 9], [LENGTH / 4; 2], &link, seed);
            t.run(Instant::from_secs(10_000));
            t.assert_complete();
            assert_eq!(door_stats(&t), [DoorStats::default(); 2], "loss {loss}, seed {seed}");
        }
    }
}

#[test]
fn reordering_alone_no_longer_shrinks_the_window() {
    let link = path(Duration::from_millis(40)).with_reorder(0.05).with_extra_delay(Duration::from_millis(60));
    let received = |config: Config| {
        let mut t = transfer([config; 2], [7, 9], [1 << 30, 0], &link, 3);
        t.run(Instant::from_secs(30));
        (t.received()[0], t.pair.a.stats().door)
    };
    let with_door = config(DoorConfig::all(2.0, 2.0));
    let (with, door) = received(with_door);
    let (without, _) = received(with_door.with_door(None));
    assert!(door.reported_events > 0 && door.instant_recoveries > 0);
    assert!(with > without, "{with} bytes against {without}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// With the invariants of every transfer: data in flight has a timer, and the window stays within its clamp.
    #[test]
    fn every_byte_arrives_once_and_in_order_despite_reordering(
        n in 0..56usize, sack in any::<bool>(), clamp in 1u32..40, link in any_link(), seed in any::<u64>(),
        there in 0u64..40_000, back in 0u64..20_000,
    ) {
        let door = DoorConfig::study_settings().nth(n).unwrap();
        let preset = if sack { Config::ns2_235().with_sack() } else { Config::modern().with_newreno() };
        let mut config = preset.with_door(Some(door)).with_window_clamp(Some(clamp)).with_syn_retries(None).with_data_retries(None).with_time_wait(Duration::from_secs(240));
        config = config.with_rto(config.rto().with_max(Duration::from_secs(10)));
        let mut t = transfer([config; 2], [seed as u32, 9], [there, back], &link, seed);
        t.run(Instant::from_secs(100_000));
        t.assert_complete();
    }
}
