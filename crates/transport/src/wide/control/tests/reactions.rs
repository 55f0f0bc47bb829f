//! Reactions to acknowledgments: first estimate, growth, congestion, losses, outage.

use super::driver::{AckedPackets, Driver, PACKET};
use crate::wide::controller::{Controller, RoundOutcome, SendLimit};
use hopline_core::{Duration, Instant};

const MS: fn(u64) -> Duration = Duration::from_millis;

/// Rate of [`AckedPackets::FOUR_PACKETS`], bytes per second.
const LINK: f64 = 4.0 * PACKET as f64 / 2e-3;

/// One packet is marked.
const MARKED: AckedPackets = AckedPackets { marks: 1, ..AckedPackets::FOUR_PACKETS };

/// Behind a queue that others fill.
const QUEUED: AckedPackets = AckedPackets { delay: Duration::from_millis(400), ..AckedPackets::FOUR_PACKETS };

/// A quarter is lost.
const LOSSY: AckedPackets = AckedPackets { packets: 3, lost: 1, ..AckedPackets::FOUR_PACKETS };

#[test]
fn the_initial_window_is_not_paced_and_its_spacing_is_the_first_estimate() {
    let mut driver = Driver::new();
    assert_eq!(driver.control.pacing_rate(), None);
    assert_eq!(driver.control.window(MS(50), Duration::ZERO, 4), 10 * u64::from(PACKET));
    assert_eq!(driver.control.sending_time(1), None, "nothing is known");
    for _ in 0..3 {
        driver.acknowledge(AckedPackets::FOUR_PACKETS);
    }
    assert!(driver.is_in("Startup"));
    // Each packet was sent at another time here, so the window per round trip is the estimate; half of it is sent.
    let by_window = 10.0 * f64::from(PACKET) / 0.05;
    let pace = driver.control.pacing_rate().expect("paced from now on");
    assert!((by_window / 2.0..=by_window * 16.0).contains(&pace), "{pace}");
}

#[test]
fn short_packets_are_no_part_of_the_first_burst() {
    let mut driver = Driver::new();
    for _ in 0..7 {
        driver.acknowledge_short();
    }
    driver.acknowledge(AckedPackets { packets: 1, ..AckedPackets::FOUR_PACKETS });
    assert!(driver.is_in("InitialWindow"), "a packet has no spacing");
    for _ in 0..2 {
        driver.acknowledge(AckedPackets::FOUR_PACKETS);
    }
    assert!(driver.is_in("Startup"));
}

#[test]
fn startup_ends_at_the_rate_that_the_link_carries() {
    let driver = Driver::cruising();
    let pace = driver.control.pacing_rate().expect("paced");
    assert!((0.9..1.1).contains(&(pace / LINK)), "{pace} of {LINK}");
    assert!(driver.control.is_loss_below(0.1));
}

#[test]
fn a_queue_above_the_bound_is_drained_and_one_below_is_not() {
    let mut driver = Driver::cruising();
    let before = driver.control.reductions();
    driver.acknowledge_for(MS(40), AckedPackets { delay: MS(1), ..AckedPackets::FOUR_PACKETS });
    assert_eq!(driver.control.reductions(), before);
    // 1.5 ms and 2.5 packets of 0.5 ms are 2.75 ms.
    let begin = driver.now;
    while !driver.is_in("Drain") {
        driver.acknowledge(AckedPackets { delay: MS(4), ..AckedPackets::FOUR_PACKETS });
        assert!(driver.now < begin + MS(200), "{:?}", driver.control);
    }
    assert_eq!(driver.control.reductions(), before + 1);
    let drained = driver.control.pacing_rate().expect("paced");
    assert!((0.70..0.78).contains(&(drained / LINK)), "{}", drained / LINK);
}

#[test]
fn a_mark_is_answered_at_once() {
    let mut driver = Driver::cruising();
    driver.acknowledge(MARKED);
    assert!(driver.is_in("Drain"));
}

#[test]
fn losses_that_stay_at_a_reduced_rate_belong_to_the_path() {
    let mut driver = Driver::cruising();
    driver.acknowledge_for(MS(100), AckedPackets { delay: MS(2), ..AckedPackets::FOUR_PACKETS });
    driver.acknowledge_for(MS(100), AckedPackets::FOUR_PACKETS);
    driver.acknowledge_for(MS(2500), LOSSY);
    assert!(!driver.control.is_loss_below(0.1), "a quarter is lost by the path");
    let pace = driver.control.pacing_rate().expect("paced");
    assert!(pace > LINK * 0.5, "{pace} of {LINK}");
}

#[test]
fn large_losses_without_a_visible_queue_reduce_the_rate_by_their_share() {
    let mut driver = Driver::cruising();
    driver.acknowledge_for(MS(2500), LOSSY);
    assert!(driver.control.is_loss_below(0.11), "a tenth at most without a queue that has been short");
    let pace = driver.control.pacing_rate().expect("paced");
    assert!(pace < LINK * 0.2, "{pace} of {LINK}");
}

/// A full queue looks like none once the least delay is measured in it.
#[test]
fn losses_are_no_longer_those_of_the_path_once_the_base_delay_is_measured_anew() {
    let mut driver = Driver::cruising();
    driver.acknowledge_for(MS(100), AckedPackets { delay: MS(2), ..AckedPackets::FOUR_PACKETS });
    driver.acknowledge_for(MS(100), AckedPackets::FOUR_PACKETS);
    driver.control.on_base_delay_reset();
    driver.acknowledge_for(MS(2500), LOSSY);
    assert!(driver.control.is_loss_below(0.11), "a tenth at most");
    let pace = driver.control.pacing_rate().expect("paced");
    assert!(pace < LINK * 0.2, "{pace} of {LINK}");
}

#[test]
fn after_losses_without_a_queue_the_rate_grows_by_single_steps() {
    let mut driver = Driver::cruising();
    driver.acknowledge_for(MS(2500), LOSSY);
    let reduced = driver.control.pacing_rate().expect("paced");
    driver.acknowledge_for(MS(1000), AckedPackets::FOUR_PACKETS);
    let pace = driver.control.pacing_rate().expect("paced");
    assert!(reduced < pace && pace < LINK * 0.7, "{pace} of {LINK}, after {reduced}");
}

#[test]
fn a_mark_reduces_the_rate_to_85_percent() {
    let mut driver = Driver::cruising();
    let before = driver.control.rate.min(driver.control.latest_link_rate);
    driver.acknowledge(MARKED);
    // 98 % of it, as for a queue.
    assert_reduced(&driver, before * 0.85);
}

#[test]
fn a_mark_before_the_rate_of_the_link_is_known_takes_15_percent() {
    let mut driver = starting();
    let before = driver.control.rate;
    driver.control.latest_link_rate = 0.0;
    driver.acknowledge(AckedPackets { after: Duration::from_micros(1), ..MARKED });
    assert_eq!(driver.control.latest_link_rate, 0.0, "still unknown");
    assert_reduced(&driver, before * 0.85);
}

/// In Startup the delivery rate is a lower bound of the rate of the link, unless that was saturated.
#[test]
fn in_startup_congestion_cuts_the_rate_to_that_of_a_saturated_link_and_no_lower_bound() {
    for (congestion, kept) in [(MARKED, 0.85), (QUEUED, 1.0)] {
        let mut driver = starting();
        let mut before = 0.0;
        while driver.is_in("Startup") {
            before = driver.control.rate;
            driver.control.latest_link_rate = before / 50.0;
            driver.control.sampler.clear();
            driver.acknowledge(AckedPackets { after: MS(1), ..congestion });
        }
        assert!(driver.is_in("Drain"), "{:?}", driver.control.state);
        assert_reduced(&driver, before * kept);
    }
    let mut driver = starting();
    while driver.is_in("Startup") {
        driver.acknowledge(AckedPackets {
            delay: driver.now.since(Instant::from_secs(1)),
            ..AckedPackets::FOUR_PACKETS
        });
    }
    assert!(driver.control.rate < LINK * 1.1, "{} of {LINK}", driver.control.rate);
}

/// A driver after the initial window.
fn starting() -> Driver {
    let mut driver = Driver::new();
    while !driver.is_in("Startup") {
        driver.acknowledge(AckedPackets::FOUR_PACKETS);
    }
    driver
}

#[test]
fn marks_without_a_queue_are_answered_at_intervals_that_double() {
    let mut driver = Driver::cruising();
    let reductions = |driver: &Driver| driver.control.reductions();
    let (begin, mut times, mut before) = (driver.now, Vec::new(), reductions(&driver));
    while driver.now < begin + MS(2000) {
        driver.acknowledge(MARKED);
        if reductions(&driver) > before {
            before = reductions(&driver);
            times.push(driver.now);
        }
    }
    let waits: Vec<_> = times.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    assert!((4..7).contains(&waits.len()), "{waits:?}");
    assert!(waits.windows(2).all(|pair| pair[1] > pair[0]), "{waits:?}");
    assert!(waits[waits.len() - 1] > waits[0].saturating_mul(4), "{waits:?}");
}

#[test]
fn marks_in_a_queue_are_answered_after_every_drain() {
    let mut driver = Driver::cruising();
    let before = driver.control.reductions();
    driver.acknowledge_for(MS(2000), AckedPackets { delay: MS(2), ..MARKED });
    let reductions = driver.control.reductions() - before;
    assert!(reductions > 10, "{reductions}");
}

#[test]
fn growth_is_slow_near_a_rate_that_was_marked_in_a_short_queue_and_only_there() {
    let slow_near = |delay| {
        let mut driver = Driver::cruising();
        driver.acknowledge(AckedPackets { delay, ..MARKED });
        // The drain after the mark has others.
        driver.acknowledge_for(MS(20), MARKED);
        driver.control.policer_rate
    };
    assert!((LINK * 0.9..LINK * 1.1).contains(&slow_near(Duration::ZERO)), "that of the first mark");
    assert_eq!(slow_near(MS(8)), f64::INFINITY);
}

#[test]
fn a_queue_that_empties_faster_than_the_flow_sends_starts_it_again_at_half_of_that_at_most() {
    let mut driver = draining();
    // The link is ten times as fast.
    for _ in 0..4 {
        driver.acknowledge(AckedPackets { delay: MS(100), ..FAST });
    }
    driver.acknowledge(FAST);
    assert!(driver.is_in("Startup"), "{:?}", driver.control.state);
    // Jitter of the arrivals may have made the link look faster.
    let share = driver.control.rate / (10.0 * LINK);
    assert!((0.2..0.5).contains(&share), "{share}");
}

#[test]
fn a_queue_that_empties_at_the_rate_of_the_flow_is_no_faster_link() {
    let mut driver = draining();
    for delay in [MS(60), MS(40), MS(20), MS(0)] {
        driver.acknowledge(AckedPackets { delay, ..AckedPackets::FOUR_PACKETS });
    }
    assert!(!driver.is_in("Startup"), "{:?}", driver.control.state);
}

#[test]
fn packets_that_a_full_queue_drops_are_no_rate_of_the_link() {
    let mut driver = draining();
    for delay in [MS(100), MS(100), MS(0)] {
        driver.acknowledge(AckedPackets { delay, lost: 40, ..AckedPackets::FOUR_PACKETS });
    }
    assert!(!driver.is_in("Startup"), "{:?}", driver.control.state);
}

/// Four packets in a tenth of the time.
const FAST: AckedPackets = AckedPackets { after: Duration::from_micros(200), ..AckedPackets::FOUR_PACKETS };

/// A driver that drains a long queue.
fn draining() -> Driver {
    let mut driver = Driver::cruising();
    while !driver.is_in("Drain") {
        driver.acknowledge(AckedPackets { delay: MS(100), ..AckedPackets::FOUR_PACKETS });
    }
    driver.acknowledge_for(MS(20), AckedPackets { delay: MS(100), ..AckedPackets::FOUR_PACKETS });
    driver
}

#[test]
fn marks_count_once_in_a_round_trip_while_the_base_delay_is_measured() {
    let mut driver = Driver::cruising();
    while !driver.is_in("ProbeRtt") {
        driver.acknowledge(AckedPackets { base_age: Duration::from_secs(6), ..AckedPackets::FOUR_PACKETS });
    }
    let before = driver.control.rate.min(driver.control.latest_link_rate);
    driver.acknowledge_for(MS(10), MARKED);
    assert!(driver.is_in("ProbeRtt"));
    assert_reduced(&driver, before * 0.85);
}

#[test]
fn a_mark_during_a_test_of_the_losses_ends_it_at_the_reduced_rate() {
    let mut driver = Driver::cruising();
    driver.acknowledge_for(MS(100), AckedPackets { delay: MS(2), ..AckedPackets::FOUR_PACKETS });
    driver.acknowledge_for(MS(100), AckedPackets::FOUR_PACKETS);
    while !driver.is_in("ProbeLoss") {
        driver.acknowledge(LOSSY);
    }
    let before = driver.control.rate.min(driver.control.latest_link_rate);
    driver.acknowledge(MARKED);
    assert!(driver.is_in("Cruise"));
    assert_reduced(&driver, before * 0.85);
}

#[test]
fn a_flow_with_few_packets_in_flight_grows_although_there_is_a_short_queue() {
    // Packets arrive as fast as they are sent, through a queue between both bounds.
    let grown = |packets_in_flight: f64| {
        let mut driver = Driver::cruising();
        let rate = packets_in_flight * f64::from(PACKET) / driver.srtt.as_secs_f64();
        driver.control.rate = rate;
        driver.control.state.continue_cruise(1.0);
        let mut acknowledge = |times| {
            for _ in 0..times {
                let after = Duration::from_secs_f64(4.0 * f64::from(PACKET) / driver.control.rate);
                let delay = driver.control.queue_high() / 2;
                driver.acknowledge(AckedPackets { after, delay, ..AckedPackets::FOUR_PACKETS });
            }
            driver.control.rate
        };
        // The jump of the delay counts as jitter for a while.
        let before = acknowledge(100);
        acknowledge(100) / before
    };
    assert!(grown(4.0) > 1.2, "{}", grown(4.0));
    assert!(grown(30.0) <= 1.0, "{}", grown(30.0));
}

/// Checks that the rate is `expected`, with a tolerance of 2 %.
#[track_caller]
fn assert_reduced(driver: &Driver, expected: f64) {
    let share = driver.control.rate / expected;
    assert!((0.98..1.02).contains(&share), "{} in place of {expected}", driver.control.rate);
}

#[test]
fn a_mark_counts_in_its_own_round_trip_only() {
    let mut driver = Driver::cruising();
    driver.acknowledge(AckedPackets { marks: 1, ..AckedPackets::FOUR_PACKETS });
    assert!(driver.control.marks.is_marked());
    // Competitive mode would take it for a new one.
    driver.acknowledge_for(MS(200), AckedPackets::FOUR_PACKETS);
    assert!(!driver.control.marks.is_marked());
}

#[test]
fn a_drain_ends_once_nothing_is_queued() {
    let mut driver = Driver::cruising();
    while !driver.is_in("Drain") {
        driver.acknowledge(AckedPackets { delay: MS(400), ..AckedPackets::FOUR_PACKETS });
    }
    driver.acknowledge_for(MS(200), AckedPackets { delay: MS(300), ..AckedPackets::FOUR_PACKETS });
    assert!(driver.is_in("Drain"), "400 ms take 1.5 s");
    driver.acknowledge_for(MS(60), AckedPackets::FOUR_PACKETS);
    assert!(driver.is_in("Cruise"));
}

#[test]
fn a_longer_delay_that_drains_do_not_change_is_another_path() {
    let mut driver = Driver::cruising();
    let longer = AckedPackets { delay: MS(90), ..AckedPackets::FOUR_PACKETS };
    let begin = driver.now;
    while driver.acknowledge(longer) != RoundOutcome::PathChanged {
        assert!(driver.now < begin + Duration::from_secs(3), "{:?}", driver.control);
    }
    assert!(driver.is_in("Cruise"));
}

#[test]
fn growth_doubles_its_steps_up_to_the_rate() {
    let mut driver = Driver::cruising();
    driver.control.rate = LINK / 16.0;
    driver.control.state.continue_cruise(1.0);
    let mut rounds = 0;
    // Packets arrive as fast as they are sent.
    while driver.control.rate < LINK / 2.0 {
        let time = Duration::from_secs_f64(4.0 * f64::from(PACKET) / driver.control.rate);
        let outcome = driver.acknowledge(AckedPackets { after: time, ..AckedPackets::FOUR_PACKETS });
        rounds += u32::from(outcome == RoundOutcome::Over);
        assert!(rounds < 13, "eightfold: {:?}", driver.control);
    }
}

#[test]
fn the_base_delay_is_measured_again_if_no_packet_had_it_for_long() {
    let mut driver = Driver::cruising();
    let old = AckedPackets { base_age: Duration::from_secs(6), ..AckedPackets::FOUR_PACKETS };
    let outcome =
        std::iter::repeat_with(|| driver.acknowledge(old)).find(|outcome| *outcome != RoundOutcome::NotOver);
    assert_eq!(outcome, Some(RoundOutcome::ProbeRtt));
    assert!(driver.is_in("ProbeRtt"));
    let low = driver.control.pacing_rate().expect("paced");
    assert!(low < LINK * 0.25, "{low} of {LINK}");
}

#[test]
fn a_sender_without_data_does_not_learn_the_rate() {
    let mut driver = Driver::cruising();
    let pace = driver.control.pacing_rate().expect("paced");
    let idle = AckedPackets { after: MS(20), limit: SendLimit::Application, ..AckedPackets::FOUR_PACKETS };
    driver.acknowledge_for(Duration::from_secs(1), idle);
    assert_eq!(driver.control.pacing_rate(), Some(pace), "neither more nor less");
}

#[test]
fn a_pause_of_the_application_in_startup_does_not_lower_the_rate() {
    let mut driver = Driver::new();
    while !driver.is_in("Startup") {
        driver.acknowledge(AckedPackets::FOUR_PACKETS);
    }
    let pace = driver.control.pacing_rate().expect("paced");
    // The measurement begins with the next packet to be sent.
    let first = driver.number + 100;
    while driver.number < first {
        driver.acknowledge(AckedPackets::FOUR_PACKETS);
    }
    // The second of two responses, after 8 s: little went through in that time, and a packet was lost.
    driver.pause(Duration::from_secs(8));
    driver.acknowledge(AckedPackets { after: Duration::from_secs(8), lost: 1, ..AckedPackets::FOUR_PACKETS });
    driver.acknowledge(AckedPackets::FOUR_PACKETS);
    assert!(driver.control.rate >= pace, "{} of {pace}", driver.control.rate);
}

#[test]
fn round_trips_without_enough_data_do_not_limit_later_ones() {
    let mut driver = Driver::cruising();
    let pace = driver.control.pacing_rate().expect("paced");
    let idle = AckedPackets { after: MS(20), limit: SendLimit::Application, ..AckedPackets::FOUR_PACKETS };
    driver.acknowledge_for(Duration::from_secs(6), idle);
    // Two round trips of 100 packets in which the window limits: the packets arrive as slowly as they leave.
    for _ in 0..50 {
        driver.pause(MS(8));
        driver.acknowledge(AckedPackets { after: MS(10), ..AckedPackets::FOUR_PACKETS });
    }
    assert!(driver.control.rate > pace * 0.9, "{} of {pace}", driver.control.rate);
}

#[test]
fn congestion_after_pauses_does_not_cut_the_rate_to_what_the_application_sent() {
    let mut driver = Driver::cruising();
    let pace = driver.control.pacing_rate().expect("paced");
    let request = AckedPackets { delay: MS(4), limit: SendLimit::Application, ..AckedPackets::FOUR_PACKETS };
    while !driver.is_in("Drain") {
        driver.pause(MS(200));
        driver.acknowledge(AckedPackets { after: MS(202), ..request });
    }
    assert!(driver.control.rate > pace * 0.9, "{} of {pace}", driver.control.rate);
}

#[test]
fn a_queue_of_others_that_grows_in_pauses_does_not_make_the_link_look_slow() {
    let mut driver = Driver::cruising();
    let link = driver.control.latest_link_rate;
    let burst = AckedPackets { limit: SendLimit::Application, ..AckedPackets::FOUR_PACKETS };
    for _ in 0..20 {
        driver.pause(MS(200));
        driver.acknowledge(AckedPackets { after: MS(240), ..burst });
    }
    assert!(driver.control.latest_link_rate >= link, "{} of {link}", driver.control.latest_link_rate);
    // The application sends without pauses from now on.
    driver.pause(MS(200));
    driver.acknowledge(AckedPackets { after: MS(240), ..AckedPackets::FOUR_PACKETS });
    driver.acknowledge_for(MS(100), AckedPackets::FOUR_PACKETS);
    let share = driver.control.latest_link_rate / link;
    assert!((0.9..1.1).contains(&share), "{share}");
}

#[test]
fn after_an_outage_half_the_rate_is_left() {
    let mut driver = Driver::cruising();
    let pace = driver.control.pacing_rate().expect("paced");
    driver.control.restart(driver.now, driver.number);
    assert!(driver.is_in("Startup"));
    assert_eq!(driver.control.pacing_rate(), Some(pace / 2.0));
}

#[test]
fn an_eighth_of_a_packet_per_round_trip_is_the_least_rate() {
    let mut driver = Driver::cruising();
    let all_lost =
        AckedPackets { after: MS(20), packets: 1, lost: 19, delay: MS(300), ..AckedPackets::FOUR_PACKETS };
    driver.acknowledge_for(Duration::from_secs(60), all_lost);
    let least = f64::from(PACKET) / 0.05 / 8.0;
    assert!(driver.control.rate >= least, "{} of {least}", driver.control.rate);
}
