//! Samples of the rate of delivery.

use super::{BbrConfig, PLAIN, TestPath};
use crate::tcp::RackConfig;
use crate::tcp::delivery_rate::{RateSample, SendLimit};
use crate::tcp::rack::{Rack, RackAck};
use crate::tcp::scoreboard::Scoreboard;
use hopline_core::{Duration, Instant};

fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// Ten segments of 1000 bytes, sent one each `every` milliseconds from 100 ms on.
fn ten_segments(every: u64) -> Rack {
    let mut rack = Rack::with_rate_samples(RackConfig::RFC8985, 1);
    for i in 0..10 {
        rack.on_sent(1 + 1000 * i, 1001 + 1000 * i, ms(100 + every * i));
    }
    rack
}

/// Acknowledges below `una`, of which `delivered` bytes are news.
fn acknowledge(rack: &mut Rack, at: Instant, una: u64, delivered: u64) -> Option<RateSample> {
    let board = Scoreboard::default();
    rack.on_ack(RackAck { now: at, una, scoreboard: &board, blocks: &[], echoed_send_time: None });
    let least = rack.min_rtt();
    rack.rate_sampler.as_mut().unwrap().sample(at, delivered, least)
}

#[test]
fn the_first_flight_samples_the_delivery_since_its_sending() {
    let mut rack = ten_segments(0);
    let sample = acknowledge(&mut rack, ms(200), 2001, 2000).unwrap();
    assert_eq!((sample.delivered, sample.prior_delivered, sample.in_flight), (2000, 0, 2000));
    assert!((sample.rate.unwrap() - 20_000.0).abs() < 1e-6, "2000 bytes in 100 ms");
    assert_eq!(sample.min_rtt, Some(Duration::from_millis(100)));
    let sample = acknowledge(&mut rack, ms(250), 10_001, 8000).unwrap();
    assert!((sample.rate.unwrap() - 10_000.0 / 0.15).abs() < 1e-6);
}

#[test]
fn aggregated_acks_do_not_raise_the_rate_above_the_sending_rate() {
    // A segment every 20 ms; all acknowledged 10 ms after the last.
    let mut rack = ten_segments(20);
    let sample = acknowledge(&mut rack, ms(290), 10_001, 10_000).unwrap();
    assert!((sample.rate.unwrap() - 10_000.0 / 0.19).abs() < 1e-6, "of the acknowledgment's 190 ms");
    for i in 10..20 {
        rack.on_sent(1 + 1000 * i, 1001 + 1000 * i, ms(300 + 20 * (i - 10)));
    }
    acknowledge(&mut rack, ms(479), 11_001, 1000);
    acknowledge(&mut rack, ms(480), 19_001, 8000);
    for i in 20..30 {
        rack.on_sent(1 + 1000 * i, 1001 + 1000 * i, ms(490 + 20 * (i - 20)));
    }
    let sample = acknowledge(&mut rack, ms(680), 29_001, 10_000).unwrap();
    let sent_in = 0.650 - 0.460;
    assert!(sample.rate.unwrap() <= 10_000.0 / sent_in + 1e-6, "{sample:?}");
}

#[test]
fn a_sample_shorter_than_any_round_trip_has_no_rate() {
    let mut rack = ten_segments(0);
    acknowledge(&mut rack, ms(200), 1001, 1000);
    rack.on_sent(1001, 2001, ms(210)); // again
    let sample = acknowledge(&mut rack, ms(215), 2001, 1000).unwrap();
    assert_eq!(sample.min_rtt, None, "nobody knows which transmission it is for");
    assert!(sample.rate.is_some(), "110 ms between what was sent at 100 ms and that");
    rack.on_sent(2001, 3001, ms(216));
    let sample = acknowledge(&mut rack, ms(218), 3001, 1000).unwrap();
    assert_eq!((sample.rate, sample.delivered), (None, 1000), "6 ms of sending, 3 ms of acknowledgments");
}

#[test]
fn lost_segments_are_counted_and_reported_once() {
    use crate::tcp::RecoveryPhase;
    use crate::tcp::rack::ReorderingInput;
    let mut rack = ten_segments(0);
    let mut board = Scoreboard::default();
    board.add(3001, 10_001);
    rack.on_ack(RackAck {
        now: ms(200),
        una: 1,
        scoreboard: &board,
        blocks: &[(3001, 10_001)],
        echoed_send_time: None,
    });
    let circumstances = ReorderingInput { phase: RecoveryPhase::Open, srtt: None, dup_thresh: 3 };
    assert_eq!(rack.detect(ms(200), circumstances).lost, 3);
    let rate = rack.rate_sampler.as_mut().unwrap();
    let sample = rate.sample(ms(200), 7000, None).unwrap();
    assert_eq!((sample.lost, rate.lost()), (3000, 3000));
    let losses = rate.take_losses();
    assert_eq!(losses.iter().map(|loss| loss.segment.start).collect::<Vec<_>>(), [1, 1001, 2001]);
    assert_eq!(losses.iter().map(|loss| loss.lost).collect::<Vec<_>>(), [1000, 2000, 3000]);
    assert_eq!(losses[0].stamp.in_flight, 1000);
    assert!(rate.take_losses().is_empty());
}

#[test]
fn an_ack_of_part_of_a_segment_gives_no_sample() {
    let mut rack = ten_segments(0);
    assert_eq!(acknowledge(&mut rack, ms(200), 500, 499), None);
    let sample = acknowledge(&mut rack, ms(201), 1001, 501).unwrap();
    assert_eq!(sample.delivered, 1000);
}

#[test]
fn application_limited_segments_are_marked_until_delivered() {
    let mut rack = ten_segments(0);
    let in_flight = rack.segments.in_flight();
    rack.rate_sampler.as_mut().unwrap().set_app_limited(in_flight);
    rack.on_sent(10_001, 11_001, ms(150));
    assert_eq!(acknowledge(&mut rack, ms(200), 10_001, 10_000).unwrap().limit, SendLimit::Path);
    assert_eq!(acknowledge(&mut rack, ms(250), 11_001, 1000).unwrap().limit, SendLimit::Application);
    rack.on_sent(11_001, 12_001, ms(260));
    assert_eq!(acknowledge(&mut rack, ms(360), 12_001, 1000).unwrap().limit, SendLimit::Path);
}

#[test]
fn an_application_that_sends_little_does_not_lower_the_bandwidth() {
    for bbr in [BbrConfig::V1, BbrConfig::V3] {
        let mut path = TestPath::new_idle(bbr, PLAIN, 1);
        path.send(3_000_000);
        path.run_until(4.0);
        let known = path.model().bandwidth;
        assert!(known > 1.1e6, "{known}");
        // 8 kB/s for a minute: hundreds of rounds.
        for tenth in 41..640 {
            path.run_until(f64::from(tenth) / 10.0);
            path.send(800);
        }
        let after = path.model().bandwidth;
        assert!((after - known).abs() < 0.02 * known, "{after} after {known}");
        path.send(10_000_000);
        path.run_until(64.6);
        let share = path.goodput_until(66.0) / 8.0 / known;
        assert!(share > 0.9, "{share}: at full rate at once");
    }
}
