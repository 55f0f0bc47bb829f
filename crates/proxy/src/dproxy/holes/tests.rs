//! Dialogues: holes, arrivals, and the times of requests. Times are in milliseconds; the initial average is
//! 10.

use super::*;
use proptest::prelude::*;

/// A flow over a link.
struct Link {
    requests: Requests<u32>,
    holes: Holes<u32>,
    now: Instant,
}

impl Link {
    fn new(config: Recovery) -> Self {
        Self { requests: Requests::new(config), holes: Holes::new(), now: Instant::ZERO }
    }

    fn at(&mut self, ms: u64) -> &mut Self {
        self.now = Instant::from_millis(ms);
        self
    }

    fn asked(&mut self) -> Vec<u32> {
        self.requests.take_asked().collect()
    }

    fn misses(&mut self, what: impl IntoIterator<Item = u32>) -> Vec<u32> {
        for what in what {
            self.holes.open(self.now, what, &mut self.requests);
        }
        self.asked()
    }

    /// Handles a replay. Returns the requests that it causes.
    fn comes(&mut self, what: u32) -> Vec<u32> {
        assert!(self.holes.arrive(self.now, what, (By::Replay, Rest::Asked), &mut self.requests));
        self.asked()
    }

    /// Returns the requests by timeouts, with their times, until no timer is set.
    fn waits(&mut self) -> Vec<(u64, u32)> {
        let mut all = Vec::new();
        while let Some(due) = self.holes.due() {
            self.now = due;
            self.holes.expire(due, &mut self.requests);
            let ms = due.as_nanos() / 1_000_000;
            all.extend(self.asked().into_iter().map(|what| (ms, what)));
        }
        all
    }

    fn average_us(&self) -> u64 {
        self.requests.average().as_micros()
    }
}

fn patient(config: Recovery) -> Recovery {
    Recovery { patience: Duration::from_secs(1_000), ..config }
}

#[test]
fn each_missing_packet_has_a_request_in_order() {
    let mut link = Link::new(Recovery::default());
    assert_eq!(link.misses([3, 4, 7]), [3, 4, 7]);
    assert_eq!(link.requests.stats().requests, 3);
}

#[test]
fn a_request_is_repeated_after_two_three_and_four_averages_and_then_given_up() {
    let mut link = Link::new(Recovery::default());
    link.misses([1]);
    assert_eq!(link.waits(), [(20, 1), (50, 1), (90, 1)]);
    assert_eq!(link.now, Instant::from_millis(130), "4 more (C3)");
    assert_eq!((link.requests.stats().given_up, link.requests.stats().timeouts), (1, 3));
}

#[test]
fn the_averages_may_count_from_the_first_request() {
    let mut link = Link::new(Recovery { timeouts: Timeouts::Cumulative, ..Recovery::default() });
    link.misses([1]);
    assert_eq!(link.waits(), [(20, 1), (30, 1), (40, 1)]);
    assert_eq!(link.now, Instant::from_millis(80));
}

#[test]
fn without_timeouts_patience_ends_it() {
    let mut link = Link::new(Recovery { timeouts: Timeouts::Off, ..Recovery::default() });
    link.misses([1]);
    assert_eq!((link.waits(), link.now), (vec![], Instant::from_millis(200)));
}

#[test]
fn patience_ends_whatever_was_asked() {
    let patience = Duration::from_millis(45);
    let mut link = Link::new(Recovery { patience, ..Recovery::default() });
    link.misses([1]);
    assert_eq!((link.waits(), link.now), (vec![(20, 1)], Instant::from_millis(45)));
}

#[test]
fn a_replay_that_overtakes_an_earlier_request_has_it_repeated_at_once() {
    let mut link = Link::new(Recovery::default());
    link.misses([5792, 7240, 10_136]);
    assert_eq!(link.at(4).comes(7240), [5792], "the example of §III-C.3");
    assert_eq!(link.at(5).comes(10_136), [0u32; 0], "5792 was asked for after 10136 since");
    assert_eq!(link.at(8).comes(5792), [0u32; 0]);
    assert_eq!((link.requests.stats().overtaken, link.requests.stats().recovered), (1, 3));
}

#[test]
fn a_repeated_request_is_repeated_once_more_when_a_later_one_is_answered() {
    let mut link = Link::new(Recovery::default());
    link.misses([1, 2]);
    assert_eq!(link.at(4).comes(2), [1]);
    assert_eq!(link.at(5).misses([9]), [9]);
    assert_eq!(link.at(9).comes(9), [1], "by the order of requests (C7)");
}

#[test]
fn what_comes_first_shows_the_loss_of_later_numbers_that_were_asked_for_before_it() {
    let mut link = Link::new(Recovery::default());
    link.misses([1, 2, 3]);
    assert_eq!(link.at(4).comes(3), [1, 2]);
    assert_eq!(link.at(8).comes(2), [1]);
    link.misses([4]);
    assert_eq!(link.at(12).comes(1), [4u32; 0], "4 was asked for after it");
}

#[test]
fn the_order_rule_can_be_switched_off_and_has_a_limit_of_its_own() {
    let mut link = Link::new(Recovery { order_rule: OrderRule::Off, ..Recovery::default() });
    link.misses([1, 2]);
    assert_eq!(link.at(4).comes(2), [0u32; 0]);
    let three = NonZeroU8::new(3);
    let mut link = Link::new(Recovery { order_requests: three, ..Recovery::default() });
    link.misses([1, 2, 3, 4, 5, 6]);
    let asked: Vec<_> = (2..=6).map(|what| link.at(u64::from(what)).comes(what).len()).collect();
    assert_eq!(asked, [1, 0, 0, 0, 0], "1 stands behind all of them after the first");
    for what in 7..=9 {
        link.misses([what]);
        link.comes(what);
    }
    assert_eq!(link.requests.stats().overtaken, 3);
}

#[test]
fn the_order_rule_does_not_use_up_the_requests_of_the_timer() {
    let mut link = Link::new(Recovery { floor: Duration::from_millis(10), ..Recovery::default() });
    link.misses([1]);
    for what in 2..=9 {
        link.misses([what]);
        assert_eq!(link.comes(what), [1], "the paper names no limit");
    }
    assert_eq!(link.waits(), [(20, 1), (50, 1), (90, 1)], "after 2, 3 and 4 averages");
    assert_eq!(link.now, Instant::from_millis(130));
    assert_eq!((link.requests.stats().overtaken, link.requests.stats().timeouts), (8, 3));
}

#[test]
fn the_average_follows_what_was_asked_for_once_down_to_its_floor() {
    let floor = Duration::from_millis(2);
    let samples = Samples::OneRequest;
    let mut link = Link::new(patient(Recovery { samples, floor, ..Recovery::default() }));
    link.misses([1, 2]);
    link.at(2).comes(1);
    assert_eq!(link.average_us(), 9_000, "7/8 of 10 and 1/8 of 2");
    link.at(20);
    link.holes.expire(link.now, &mut link.requests);
    assert_eq!(link.asked(), [2]);
    link.at(21).comes(2);
    assert_eq!(link.average_us(), 9_000, "Karn");
    for what in 3..200 {
        link.misses([what]);
        link.comes(what);
    }
    assert_eq!(link.average_us(), 2_000);
}

/// Returns the average after recoveries with replays after 160 ms, as behind a long queue, ms.
fn learnt_behind_a_queue(samples: Samples) -> u64 {
    let mut link = Link::new(Recovery { samples, ..Recovery::default() });
    for what in 0..40 {
        let answered = link.now + Duration::from_millis(160);
        link.misses([what]);
        while let Some(due) = link.holes.due().filter(|due| *due < answered) {
            link.now = due;
            link.holes.expire(due, &mut link.requests);
        }
        link.now = answered;
        link.holes.arrive(answered, what, (By::Replay, Rest::Asked), &mut link.requests);
        link.asked();
    }
    link.average_us() / 1000
}

#[test]
fn replays_that_take_longer_than_all_requests_are_learnt_unless_one_request_alone_counts() {
    let learnt = learnt_behind_a_queue(Samples::All);
    assert!((150..=160).contains(&learnt), "{learnt} ms");
    assert_eq!(learnt_behind_a_queue(Samples::OneRequest), 10);
}

#[test]
fn a_recovery_of_which_a_request_was_lost_makes_no_average() {
    let mut link = Link::new(Recovery::default());
    link.misses([1, 2]);
    assert_eq!(link.at(10).comes(2), [1]);
    link.at(20).comes(1);
    assert_eq!(link.average_us(), 10_000);
}

#[test]
fn the_average_has_no_floor_where_none_is_set() {
    let mut link = Link::new(Recovery::default());
    for what in 0..100 {
        link.misses([what]);
        link.comes(what);
    }
    assert_eq!(link.average_us(), 1, "the paper names none");
}

#[test]
fn with_grace_what_was_overtaken_is_not_asked_for() {
    let mut link = Link::new(Recovery { grace: 2, ..Recovery::default() });
    assert_eq!(link.misses([1]), [0u32; 0], "one later packet has come");
    link.holes.overtake(link.now, &mut link.requests);
    assert_eq!(link.asked(), [0u32; 0]);
    assert_eq!(link.comes(1), [0u32; 0]);
    link.misses([2]);
    for _ in 0..2 {
        link.holes.overtake(link.now, &mut link.requests);
    }
    assert_eq!(link.asked(), [2], "three later ones");
    link.misses([3]);
    assert_eq!(link.waits()[0], (10, 3), "no more come");
    assert_eq!(link.requests.stats().late, 1);
}

#[test]
fn what_was_late_says_nothing_of_others() {
    let mut link = Link::new(Recovery::default());
    link.misses([1, 2]);
    let by = (By::Original, Rest::Asked);
    assert!(link.holes.arrive(link.now, 2, by, &mut link.requests));
    assert_eq!(link.asked(), [0u32; 0]);
    assert_eq!((link.requests.stats().late, link.average_us()), (1, 10_000));
}

#[test]
fn once_packets_were_late_what_is_missing_is_asked_for_when_it_is_later_than_they_were() {
    let mut link = Link::new(Recovery::default());
    assert_eq!(link.misses([1]), [1]);
    link.at(3);
    assert!(link.holes.arrive(link.now, 1, (By::Original, Rest::Asked), &mut link.requests));
    link.at(20);
    assert_eq!(link.misses([2, 3]), [0u32; 0]);
    link.at(22).comes(2);
    assert_eq!(link.waits()[0], (23, 3));
}

#[test]
fn a_replay_of_what_has_come_meanwhile_shows_that_it_was_late() {
    let mut link = Link::new(Recovery::default());
    assert_eq!(link.misses([1]), [1]);
    link.at(2).comes(1);
    link.at(7);
    link.holes.note_copy(link.now, 1, &mut link.requests);
    assert_eq!(link.misses([2]), [0u32; 0]);
    assert_eq!(link.waits()[0], (9, 2));
}

#[test]
fn what_the_other_side_does_not_keep_is_not_waited_for() {
    let mut link = Link::new(Recovery::default());
    link.misses([1, 2]);
    assert!(link.holes.forget(1, &mut link.requests));
    assert!(!link.holes.forget(1, &mut link.requests));
    assert_eq!((link.holes.first(), link.requests.stats().not_cached), (Some(2), 1));
}

proptest! {
    #[test]
    fn nothing_is_asked_for_oftener_than_it_may_or_longer_than_patience(
        steps in prop::collection::vec((0u64..30, 0u32..4, 0u32..40), 1..200),
        attempts in 1u8..6,
        order in 1u8..6,
        grace in 0u8..3,
    ) {
        let [attempts, order] = [attempts, order].map(|requests| NonZeroU8::new(requests).unwrap());
        let config = Recovery { attempts, order_requests: Some(order), grace, ..Recovery::default() };
        let mut link = Link::new(config);
        let (mut next, mut asked, mut opened) = (0u32, vec![0u8; 1000], vec![Instant::ZERO; 1000]);
        for (ms, what, which) in steps {
            link.now += Duration::from_millis(ms);
            link.holes.expire(link.now, &mut link.requests);
            match what {
                0 | 1 => {
                    link.holes.overtake(link.now, &mut link.requests);
                    opened[next as usize] = link.now;
                    link.holes.open(link.now, next, &mut link.requests);
                    next += 1;
                }
                _ => {
                    let what = next.saturating_sub(which);
                    link.holes.arrive(link.now, what, (By::Replay, Rest::Asked), &mut link.requests);
                }
            }
            for what in link.asked() {
                asked[what as usize] += 1;
                prop_assert!(asked[what as usize] <= attempts.get() + order.get());
                prop_assert!(link.now.since(opened[what as usize]) < Duration::from_millis(200));
            }
            prop_assert!(link.holes.due().is_none_or(|due| due > link.now));
        }
        link.waits();
        prop_assert!(link.holes.is_empty());
        let stats = link.requests.stats();
        prop_assert_eq!(stats.holes, stats.recovered + stats.late + stats.given_up);
    }
}
