//! Dialogues: holes, arrivals, and the times of requests. Times are in milliseconds; the initial average is
//! 10.

use super::*;
use proptest::prelude::*;

/// A flow over a link.
struct Flow {
    requests: RequestScheduler<u32>,
    holes: HoleList<u32>,
    now: Instant,
}

impl Flow {
    fn new(config: RecoveryConfig) -> Self {
        Self { requests: RequestScheduler::new(config), holes: HoleList::new(), now: Instant::ZERO }
    }

    fn at(&mut self, ms: u64) -> &mut Self {
        self.now = Instant::from_millis(ms);
        self
    }

    fn requested(&mut self) -> Vec<u32> {
        self.requests.drain_pending().collect()
    }

    fn miss(&mut self, what: impl IntoIterator<Item = u32>) -> Vec<u32> {
        for what in what {
            self.holes.open(self.now, what, &mut self.requests);
        }
        self.requested()
    }

    /// Handles a replay. Returns the requests that it causes.
    fn receive_replay(&mut self, what: u32) -> Vec<u32> {
        assert!(self.holes.handle_arrival(
            self.now,
            what,
            (FilledBy::Replay, Remainder::AlreadyRequested),
            &mut self.requests
        ));
        self.requested()
    }

    /// Returns the requests by timeouts, with their times, until no timer is set.
    fn timed_requests(&mut self) -> Vec<(u64, u32)> {
        let mut all = Vec::new();
        while let Some(due) = self.holes.next_timeout() {
            self.now = due;
            self.holes.handle_timeout(due, &mut self.requests);
            let ms = due.as_nanos() / 1_000_000;
            all.extend(self.requested().into_iter().map(|what| (ms, what)));
        }
        all
    }

    fn average_us(&self) -> u64 {
        self.requests.recovery_average().as_micros()
    }
}

fn without_max_wait(config: RecoveryConfig) -> RecoveryConfig {
    RecoveryConfig { max_wait: Duration::from_secs(1_000), ..config }
}

#[test]
fn each_missing_packet_has_a_request_in_order() {
    let mut link = Flow::new(RecoveryConfig::default());
    assert_eq!(link.miss([3, 4, 7]), [3, 4, 7]);
    assert_eq!(link.requests.stats().requests, 3);
}

#[test]
fn a_request_is_repeated_after_two_three_and_four_averages_and_then_given_up() {
    let mut link = Flow::new(RecoveryConfig::default());
    link.miss([1]);
    assert_eq!(link.timed_requests(), [(20, 1), (50, 1), (90, 1)]);
    assert_eq!(link.now, Instant::from_millis(130), "4 more (C3)");
    assert_eq!((link.requests.stats().given_up, link.requests.stats().timeouts), (1, 3));
}

#[test]
fn timeouts_may_count_from_the_first_request() {
    let mut link =
        Flow::new(RecoveryConfig { timeout_rule: TimeoutRule::Cumulative, ..RecoveryConfig::default() });
    link.miss([1]);
    assert_eq!(link.timed_requests(), [(20, 1), (30, 1), (40, 1)]);
    assert_eq!(link.now, Instant::from_millis(80));
}

#[test]
fn without_timeouts_max_wait_gives_up() {
    let mut link = Flow::new(RecoveryConfig { timeout_rule: TimeoutRule::Off, ..RecoveryConfig::default() });
    link.miss([1]);
    assert_eq!((link.timed_requests(), link.now), (vec![], Instant::from_millis(200)));
}

#[test]
fn max_wait_gives_up_whatever_was_requested() {
    let patience = Duration::from_millis(45);
    let mut link = Flow::new(RecoveryConfig { max_wait: patience, ..RecoveryConfig::default() });
    link.miss([1]);
    assert_eq!((link.timed_requests(), link.now), (vec![(20, 1)], Instant::from_millis(45)));
}

#[test]
fn later_replay_repeats_an_earlier_request_at_once() {
    let mut link = Flow::new(RecoveryConfig::default());
    link.miss([5792, 7240, 10_136]);
    assert_eq!(link.at(4).receive_replay(7240), [5792], "the example of §III-C.3");
    assert_eq!(link.at(5).receive_replay(10_136), [0u32; 0], "5792 was asked for after 10136 since");
    assert_eq!(link.at(8).receive_replay(5792), [0u32; 0]);
    assert_eq!((link.requests.stats().order_rule_requests, link.requests.stats().recovered), (1, 3));
}

#[test]
fn repeated_request_is_repeated_again_by_the_order_rule() {
    let mut link = Flow::new(RecoveryConfig::default());
    link.miss([1, 2]);
    assert_eq!(link.at(4).receive_replay(2), [1]);
    assert_eq!(link.at(5).miss([9]), [9]);
    assert_eq!(link.at(9).receive_replay(9), [1], "by the order of requests (C7)");
}

#[test]
fn order_rule_follows_request_order_not_number_order() {
    let mut link = Flow::new(RecoveryConfig::default());
    link.miss([1, 2, 3]);
    assert_eq!(link.at(4).receive_replay(3), [1, 2]);
    assert_eq!(link.at(8).receive_replay(2), [1]);
    link.miss([4]);
    assert_eq!(link.at(12).receive_replay(1), [4u32; 0], "4 was asked for after it");
}

#[test]
fn order_rule_can_be_disabled_and_limited() {
    let mut link = Flow::new(RecoveryConfig { order_rule: OrderRule::Off, ..RecoveryConfig::default() });
    link.miss([1, 2]);
    assert_eq!(link.at(4).receive_replay(2), [0u32; 0]);
    let three = NonZeroU8::new(3);
    let mut link = Flow::new(RecoveryConfig { max_order_requests: three, ..RecoveryConfig::default() });
    link.miss([1, 2, 3, 4, 5, 6]);
    let asked: Vec<_> = (2..=6).map(|what| link.at(u64::from(what)).receive_replay(what).len()).collect();
    assert_eq!(asked, [1, 0, 0, 0, 0], "1 stands behind all of them after the first");
    for what in 7..=9 {
        link.miss([what]);
        link.receive_replay(what);
    }
    assert_eq!(link.requests.stats().order_rule_requests, 3);
}

#[test]
fn the_order_rule_does_not_use_up_the_requests_of_the_timer() {
    let mut link =
        Flow::new(RecoveryConfig { min_average: Duration::from_millis(10), ..RecoveryConfig::default() });
    link.miss([1]);
    for what in 2..=9 {
        link.miss([what]);
        assert_eq!(link.receive_replay(what), [1], "the paper names no limit");
    }
    assert_eq!(link.timed_requests(), [(20, 1), (50, 1), (90, 1)], "after 2, 3 and 4 averages");
    assert_eq!(link.now, Instant::from_millis(130));
    assert_eq!((link.requests.stats().order_rule_requests, link.requests.stats().timeouts), (8, 3));
}

#[test]
fn average_follows_samples_down_to_its_minimum() {
    let floor = Duration::from_millis(2);
    let samples = SampleRule::SingleRequest;
    let mut link = Flow::new(without_max_wait(RecoveryConfig {
        sample_rule: samples,
        min_average: floor,
        ..RecoveryConfig::default()
    }));
    link.miss([1, 2]);
    link.at(2).receive_replay(1);
    assert_eq!(link.average_us(), 9_000, "7/8 of 10 and 1/8 of 2");
    link.at(20);
    link.holes.handle_timeout(link.now, &mut link.requests);
    assert_eq!(link.requested(), [2]);
    link.at(21).receive_replay(2);
    assert_eq!(link.average_us(), 9_000, "Karn");
    for what in 3..200 {
        link.miss([what]);
        link.receive_replay(what);
    }
    assert_eq!(link.average_us(), 2_000);
}

/// Returns the average after recoveries with replays after 160 ms, as behind a long queue, ms.
fn average_behind_a_queue(samples: SampleRule) -> u64 {
    let mut link = Flow::new(RecoveryConfig { sample_rule: samples, ..RecoveryConfig::default() });
    for what in 0..40 {
        let answered = link.now + Duration::from_millis(160);
        link.miss([what]);
        while let Some(due) = link.holes.next_timeout().filter(|due| *due < answered) {
            link.now = due;
            link.holes.handle_timeout(due, &mut link.requests);
        }
        link.now = answered;
        link.holes.handle_arrival(
            answered,
            what,
            (FilledBy::Replay, Remainder::AlreadyRequested),
            &mut link.requests,
        );
        link.requested();
    }
    link.average_us() / 1000
}

#[test]
fn slow_replays_update_the_average_unless_single_request_samples() {
    let learnt = average_behind_a_queue(SampleRule::All);
    assert!((150..=160).contains(&learnt), "{learnt} ms");
    assert_eq!(average_behind_a_queue(SampleRule::SingleRequest), 10);
}

#[test]
fn recovery_with_a_lost_request_is_no_sample() {
    let mut link = Flow::new(RecoveryConfig::default());
    link.miss([1, 2]);
    assert_eq!(link.at(10).receive_replay(2), [1]);
    link.at(20).receive_replay(1);
    assert_eq!(link.average_us(), 10_000);
}

#[test]
fn average_without_minimum_may_be_zero() {
    let mut link = Flow::new(RecoveryConfig::default());
    for what in 0..100 {
        link.miss([what]);
        link.receive_replay(what);
    }
    assert_eq!(link.average_us(), 1, "the paper names none");
}

#[test]
fn reordering_threshold_prevents_requests() {
    let mut link = Flow::new(RecoveryConfig { reordering_threshold: 2, ..RecoveryConfig::default() });
    assert_eq!(link.miss([1]), [0u32; 0], "one later packet has come");
    link.holes.handle_beyond(link.now, &mut link.requests);
    assert_eq!(link.requested(), [0u32; 0]);
    assert_eq!(link.receive_replay(1), [0u32; 0]);
    link.miss([2]);
    for _ in 0..2 {
        link.holes.handle_beyond(link.now, &mut link.requests);
    }
    assert_eq!(link.requested(), [2], "three later ones");
    link.miss([3]);
    assert_eq!(link.timed_requests()[0], (10, 3), "no more come");
    assert_eq!(link.requests.stats().late, 1);
}

#[test]
fn late_packet_does_not_trigger_the_order_rule() {
    let mut link = Flow::new(RecoveryConfig::default());
    link.miss([1, 2]);
    let by = (FilledBy::Original, Remainder::AlreadyRequested);
    assert!(link.holes.handle_arrival(link.now, 2, by, &mut link.requests));
    assert_eq!(link.requested(), [0u32; 0]);
    assert_eq!((link.requests.stats().late, link.average_us()), (1, 10_000));
}

#[test]
fn requests_are_delayed_by_the_observed_lateness() {
    let mut link = Flow::new(RecoveryConfig::default());
    assert_eq!(link.miss([1]), [1]);
    link.at(3);
    assert!(link.holes.handle_arrival(
        link.now,
        1,
        (FilledBy::Original, Remainder::AlreadyRequested),
        &mut link.requests
    ));
    link.at(20);
    assert_eq!(link.miss([2, 3]), [0u32; 0]);
    link.at(22).receive_replay(2);
    assert_eq!(link.timed_requests()[0], (23, 3));
}

#[test]
fn replay_after_the_original_shows_lateness() {
    let mut link = Flow::new(RecoveryConfig::default());
    assert_eq!(link.miss([1]), [1]);
    link.at(2).receive_replay(1);
    link.at(7);
    link.holes.handle_duplicate(link.now, 1, &mut link.requests);
    assert_eq!(link.miss([2]), [0u32; 0]);
    assert_eq!(link.timed_requests()[0], (9, 2));
}

#[test]
fn uncached_packets_are_given_up() {
    let mut link = Flow::new(RecoveryConfig::default());
    link.miss([1, 2]);
    assert!(link.holes.give_up_range(1, &mut link.requests));
    assert!(!link.holes.give_up_range(1, &mut link.requests));
    assert_eq!((link.holes.first(), link.requests.stats().not_cached), (Some(2), 1));
}

proptest! {
    #[test]
    fn requests_are_limited_in_number_and_time(
        steps in prop::collection::vec((0u64..30, 0u32..4, 0u32..40), 1..200),
        attempts in 1u8..6,
        order in 1u8..6,
        grace in 0u8..3,
    ) {
        let [attempts, order] = [attempts, order].map(|requests| NonZeroU8::new(requests).unwrap());
        let config = RecoveryConfig { max_timer_requests: attempts, max_order_requests: Some(order), reordering_threshold: grace, ..RecoveryConfig::default() };
        let mut link = Flow::new(config);
        let (mut next, mut asked, mut opened) = (0u32, vec![0u8; 1000], vec![Instant::ZERO; 1000]);
        for (ms, what, which) in steps {
            link.now += Duration::from_millis(ms);
            link.holes.handle_timeout(link.now, &mut link.requests);
            match what {
                0 | 1 => {
                    link.holes.handle_beyond(link.now, &mut link.requests);
                    opened[next as usize] = link.now;
                    link.holes.open(link.now, next, &mut link.requests);
                    next += 1;
                }
                _ => {
                    let what = next.saturating_sub(which);
                    link.holes.handle_arrival(link.now, what, (FilledBy::Replay, Remainder::AlreadyRequested), &mut link.requests);
                }
            }
            for what in link.requested() {
                asked[what as usize] += 1;
                prop_assert!(asked[what as usize] <= attempts.get() + order.get());
                prop_assert!(link.now.since(opened[what as usize]) < Duration::from_millis(200));
            }
            prop_assert!(link.holes.next_timeout().is_none_or(|due| due > link.now));
        }
        link.timed_requests();
        prop_assert!(link.holes.is_empty());
        let stats = link.requests.stats();
        prop_assert_eq!(stats.holes, stats.recovered + stats.late + stats.given_up);
    }
}
