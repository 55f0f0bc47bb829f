//! Admission control of connection requests under a flood.
//!
//! A response costs the responder several times what a forged request costs its attacker, and work spent on responses is
//! lost to established connections. Requests are therefore answered immediately only up to a number per second. Above that
//! number:
//!
//! - A request must arrive twice. A legitimate initiator retransmits soon; a flood from forged addresses does not.
//!   (Greylisting does the same to mail: RFC 6647.)
//! - Content that was seen before, from any address, is not answered immediately. A request that an attacker recorded and
//!   replays from arbitrary addresses takes no initiator's place.
//! - A request that was answered a moment ago is not answered again.

use crate::time::{Duration, Instant};

/// Requests per second answered immediately, and as many again that have arrived before.
const ANSWERS: u32 = 2000;
/// Memory of requests: at least this, at most twice this. Initiators retransmit within it.
const MEMORY: Duration = Duration::from_secs(4);
/// Words of the memory. At 80,000 requests per second, at most one in 100 is mistaken for another.
const WORDS: usize = 1 << 17;
/// Time in which a request that was answered is not answered again: at least this, at most twice this. Initiators retransmit
/// later.
const PAUSE: Duration = Duration::from_millis(100);
/// Words of the memory of answers. Of at most 800 answers, hardly one is mistaken for another.
const PAUSE_WORDS: usize = 1 << 11;

/// Admission control of connection requests.
///
/// # Example
///
/// ```
/// use hopline_core::Instant;
/// use hopline_core::flood::{Call, Calls};
///
/// let mut calls = Calls::new();
/// let request = |n: u64| Call { whose: n.wrapping_mul(0x9e37_79b9_7f4a_7c15), said: n };
/// // 3000 requests in one instant: the first 2000 are answered at once.
/// let answered = (0..3000).filter(|&n| calls.answers(Instant::ZERO, || request(n))).count();
/// assert_eq!(answered, 2000);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Calls {
    first: Option<Allowance>,
    flood: Option<Box<Flood>>,
}

/// Identity of a request: numbers that an attacker cannot choose, such as a keyed hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Hash of the content and of the source address.
    pub whose: u64,
    /// Hash of the content alone. The content of a legitimate request is unique.
    pub said: u64,
}

/// State kept during a flood only: 4 MiB.
#[derive(Clone, Debug)]
struct Flood {
    /// Answers to requests that have arrived before.
    again: Allowance,
    called: Lately,
    said: Lately,
    answered: Lately,
    /// Time of the last request that was not answered.
    last: Instant,
}

/// Set of numbers recorded recently. It may contain more than was put into it: a Bloom filter with four bits of one word for
/// each number.
#[derive(Clone, Debug)]
struct Lately {
    now: Vec<u64>,
    before: Vec<u64>,
    /// Time at which `now` was started; it is filled for `memory`.
    since: Instant,
    memory: Duration,
}

impl Calls {
    /// Creates admission control that has seen no request.
    #[must_use]
    pub const fn new() -> Self {
        Self { first: None, flood: None }
    }

    /// Returns whether to answer a request. Must be called for every request; `call` is evaluated only during a flood.
    pub fn answers(&mut self, now: Instant, call: impl FnOnce() -> Call) -> bool {
        let first = self.first.get_or_insert_with(|| Allowance::new(ANSWERS, now));
        self.flood.take_if(|flood| now >= flood.last + MEMORY.saturating_mul(2));
        if self.flood.is_none() && first.take(now) {
            return true;
        }
        self.flood.get_or_insert_with(|| Box::new(Flood::new(now))).answers(now, call(), first)
    }
}

impl Flood {
    fn new(now: Instant) -> Self {
        Self {
            again: Allowance::new(ANSWERS, now),
            called: Lately::new(now, MEMORY, WORDS),
            said: Lately::new(now, MEMORY, WORDS),
            answered: Lately::new(now, PAUSE, PAUSE_WORDS),
            last: now,
        }
    }

    fn answers(&mut self, now: Instant, call: Call, first: &mut Allowance) -> bool {
        let (again, new) = (self.called.note(now, call.whose), !self.said.note(now, call.said));
        let answered = !self.answered.has(now, call.whose)
            && ((new && first.take(now)) || (again && self.again.take(now)));
        if answered {
            self.answered.note(now, call.whose);
        } else {
            self.last = now;
        }
        answered
    }
}

impl Lately {
    fn new(now: Instant, memory: Duration, words: usize) -> Self {
        Self { now: vec![0; words], before: vec![0; words], since: now, memory }
    }

    /// Returns whether the set contains `number`.
    fn has(&mut self, now: Instant, number: u64) -> bool {
        self.forget(now);
        let (word, mask) = self.place(number);
        (self.now[word] | self.before[word]) & mask == mask
    }

    /// Records a number. Returns whether it was in the set.
    fn note(&mut self, now: Instant, number: u64) -> bool {
        let was_there = self.has(now, number);
        let (word, mask) = self.place(number);
        self.now[word] |= mask;
        was_there
    }

    fn place(&self, number: u64) -> (usize, u64) {
        let mask = [40, 46, 52, 58].map(|from| 1 << (number >> from & 63)).into_iter().fold(0, |a, b| a | b);
        ((number % self.now.len() as u64) as usize, mask)
    }

    fn forget(&mut self, now: Instant) {
        if now < self.since + self.memory {
            return;
        }
        std::mem::swap(&mut self.now, &mut self.before);
        self.now.fill(0);
        if now >= self.since + self.memory.saturating_mul(2) {
            self.before.fill(0);
        }
        self.since = now;
    }
}

/// Token bucket with a depth of one second. Tokens return continuously, so that no moment within a second is better than
/// another.
///
/// # Example
///
/// ```
/// use hopline_core::Instant;
/// use hopline_core::flood::Allowance;
///
/// let mut allowance = Allowance::new(1, Instant::ZERO);
/// assert!(allowance.take(Instant::ZERO));
/// assert!(!allowance.take(Instant::from_millis(500)));
/// assert!(allowance.take(Instant::from_secs(1)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// Tokens that return in a second.
    a_second: u32,
    /// Tokens left, in units of 10⁻⁹ token; `a_second` units return in a nanosecond.
    left: u64,
    since: Instant,
}

const SECOND: u64 = 1_000_000_000;

impl Allowance {
    /// Creates a full bucket.
    #[must_use]
    pub const fn new(a_second: u32, now: Instant) -> Self {
        Self { a_second, left: a_second as u64 * SECOND, since: now }
    }

    /// Takes a token. Returns whether there was one.
    pub fn take(&mut self, now: Instant) -> bool {
        let all = u64::from(self.a_second) * SECOND;
        let back = now.since(self.since).as_nanos().min(SECOND) * u64::from(self.a_second);
        self.left = all.min(self.left + back);
        self.since = self.since.max(now);
        let some = self.left >= SECOND;
        if some {
            self.left -= SECOND;
        }
        some
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// Returns a number distributed like a hash of `n`.
    fn number(n: u64) -> u64 {
        let mixed = (n ^ (n >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 32)
    }

    /// Returns the `n`th request, with unique content.
    fn by(n: u64) -> Call {
        Call { whose: number(n), said: number(!n) }
    }

    /// Sends 80 forged requests in each millisecond of a span, and legitimate ones, each given by its millisecond and its
    /// number. Returns the number of forged requests answered, and for each legitimate one whether it was answered.
    fn under_flood(
        calls: &mut Calls,
        [from, to]: [u64; 2],
        mut forged: impl FnMut() -> Call,
        honest: &[(u64, u64)],
    ) -> (u32, Vec<bool>) {
        let (mut answered, mut heard) = (0, Vec::new());
        for n in from * 80..to * 80 {
            let now = at(n / 80) + Duration::from_nanos(n % 80 * 12_500);
            let call = honest.iter().filter(|(when, _)| when * 80 + number(*when) % 80 == n);
            heard.extend(call.map(|(_, who)| calls.answers(now, || by(*who))));
            answered += u32::from(calls.answers(now, &mut forged));
        }
        (answered, heard)
    }

    fn ever_new() -> impl FnMut() -> Call {
        let mut last = 1_000_000;
        move || {
            last += 1;
            by(last)
        }
    }

    #[test]
    fn an_allowance_comes_back_bit_by_bit() {
        let mut allowance = Allowance::new(2, at(5));
        assert!(allowance.take(at(5)) && allowance.take(at(5)) && !allowance.take(at(504)));
        assert!(allowance.take(at(505)) && !allowance.take(at(505)));
        assert!(allowance.take(at(60_000)) && allowance.take(at(60_000)) && !allowance.take(at(60_000)));
        assert!(!allowance.take(at(5)), "time that goes back brings nothing");
    }

    #[test]
    fn of_the_calls_of_a_flood_few_are_taken_for_others() {
        let mut lately = Lately::new(at(0), MEMORY, WORDS);
        for n in 0..640_000 {
            lately.note(at(n / 80), number(n));
        }
        assert!((320_001..640_000).all(|n| lately.has(at(7999), number(n))));
        let others = (0..100_000).filter(|n| lately.has(at(7999), number(1_000_000 + n))).count();
        assert!((100..1000).contains(&others), "{others}");
        assert!(!lately.has(at(16_000), number(639_999)));
    }

    #[test]
    fn few_calls_are_all_answered_and_nothing_is_kept_of_them() {
        let mut calls = Calls::new();
        for n in 0..u64::from(ANSWERS) * 3 {
            assert!(calls.answers(at(n / 2), || by(n)), "{n}");
        }
        assert!((0..ANSWERS / 2).all(|_| calls.answers(at(10_000), || by(1))), "repeated or not");
        assert!(calls.flood.is_none());
    }

    #[test]
    fn in_a_flood_who_calls_again_is_answered_and_hardly_anybody_else() {
        let mut calls = Calls::new();
        let honest = [(1000, 1), (1200, 1), (2000, 2), (4000, 2), (4050, 2), (4400, 2)];
        let (answered, heard) = under_flood(&mut calls, [0, 5000], ever_new(), &honest);
        assert_eq!(heard, [false, true, false, true, false, true]);
        assert!((10_000..=5 * 5000).contains(&answered), "{answered}");
    }

    #[test]
    fn what_was_recorded_and_is_repeated_from_anywhere_takes_nobodys_place() {
        let mut calls = Calls::new();
        let mut address = 1_000_000;
        let recorded = || {
            address += 1;
            Call { said: 7, ..by(address) }
        };
        let honest: Vec<_> = (200..300).map(|n| (n * 10, n)).collect();
        let (answered, heard) = under_flood(&mut calls, [0, 5000], recorded, &honest);
        assert!(
            heard.iter().filter(|heard| **heard).count() >= 98,
            "nearly all at their first call: {heard:?}"
        );
        assert!((2000..10_000).contains(&answered), "{answered}");
    }

    #[test]
    fn one_call_that_is_repeated_without_end_takes_nobodys_place() {
        let mut calls = Calls::new();
        let honest = [(1000, 1), (1200, 1), (3000, 2), (3400, 2)];
        let (answered, heard) = under_flood(&mut calls, [0, 4000], || by(7), &honest);
        assert!(heard[1] && heard[3], "{heard:?}");
        // The bucket is full at first, and refills at ten per second.
        assert!((2000..=2300).contains(&answered), "{answered}");
    }

    #[test]
    fn whenever_in_a_second_one_calls_the_chances_are_the_same_if_all_of_a_flood_call_twice() {
        let mut calls = Calls::new();
        // Each request from 40,000 addresses is repeated after half a second, so that it looks like a legitimate one.
        let mut last = 0;
        let all = || {
            last += 1;
            by(last % 40_000)
        };
        let honest: Vec<_> = (2000..12_000).step_by(20).map(|ms| (ms, 1_000_000 + ms % 1000)).collect();
        let (_, heard) = under_flood(&mut calls, [0, 12_000], all, &honest);
        let chance = |of: usize| {
            let slice: Vec<_> = (0..heard.len()).filter(|n| n % 50 / 10 == of).map(|n| heard[n]).collect();
            slice.iter().filter(|heard| **heard).count() * 100 / slice.len()
        };
        let chances: Vec<_> = (0..5).map(chance).collect();
        assert!(chances.iter().all(|chance| (2..20).contains(chance)), "{chances:?} %");
    }

    #[test]
    fn after_the_flood_its_memory_is_given_back() {
        let mut calls = Calls::new();
        for n in 0..6000 {
            calls.answers(at(0), || by(n));
        }
        assert!(calls.flood.is_some());
        assert!(calls.answers(at(8000), || by(1)));
        assert!(calls.flood.is_none());
    }
}
