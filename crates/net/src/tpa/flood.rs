//! Whom to answer when more call than can be answered.
//!
//! An answer costs several times what a forged call costs who sends it, and what is spent on answers is not there for the
//! connections that are open. So calls are answered as they come only up to a number a second. Above it a call has to come
//! twice: who means it calls again soon, and a flood from forged addresses does not. (The
//! same is done to mail, as greylisting: RFC 6647.)

use hopline_core::{Duration, Instant};

/// Calls answered in a second as they come, and as many again that have come before.
const ANSWERS: u32 = 5000;
/// How long a call is remembered: at least this, at most twice this. Callers repeat theirs within it.
const MEMORY: Duration = Duration::from_secs(4);
/// Bits of the memory; of 80,000 calls a second for four seconds one in 26 is taken for another.
const BITS: usize = 1 << 23;

/// Decides about calls.
#[derive(Debug)]
pub(super) struct Calls {
    first: Allowance,
    again: Allowance,
    /// Takes 2 MiB while there is a flood, and nothing else.
    seen: Option<Box<Seen>>,
}

/// Calls that were not answered, by their numbers: a set that may hold more than was put into it.
#[derive(Debug)]
struct Seen {
    lately: Vec<u64>,
    before: Vec<u64>,
    /// Since when `lately` is filled.
    since: Instant,
}

impl Calls {
    pub(super) const fn new() -> Self {
        Self { first: Allowance::of(ANSWERS), again: Allowance::of(ANSWERS), seen: None }
    }

    /// Whether to answer a call; `number` is one that nobody can choose.
    pub(super) fn answers(&mut self, now: Instant, number: impl FnOnce() -> u64) -> bool {
        if self.first.take(now) {
            self.seen = self.seen.take().filter(|seen| now < seen.since + MEMORY.saturating_mul(2));
            return true;
        }
        let seen = self.seen.get_or_insert_with(|| Box::new(Seen::new(now)));
        seen.contains_or_insert(now, number()) && self.again.take(now)
    }
}

impl Seen {
    fn new(now: Instant) -> Self {
        Self { lately: vec![0; BITS / 64], before: vec![0; BITS / 64], since: now }
    }

    fn contains_or_insert(&mut self, now: Instant, number: u64) -> bool {
        if now >= self.since + MEMORY {
            std::mem::swap(&mut self.lately, &mut self.before);
            self.lately.fill(0);
            self.since = now;
        }
        let bit = number as usize % BITS;
        let (word, mask) = (bit / 64, 1 << (bit % 64));
        let contained = (self.lately[word] | self.before[word]) & mask != 0;
        self.lately[word] |= mask;
        contained
    }
}

/// So many a second, and no more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    a_second: u32,
    left: u32,
    since: Instant,
}

impl Allowance {
    pub(super) const fn of(a_second: u32) -> Self {
        Self { a_second, left: a_second, since: Instant::ZERO }
    }

    /// Takes one, if there is one.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        if now >= self.since + Duration::from_secs(1) {
            (self.left, self.since) = (self.a_second, now);
        }
        let some = self.left > 0;
        self.left = self.left.saturating_sub(1);
        some
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// A number as a hash gives it.
    fn number(n: u64) -> u64 {
        n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7
    }

    #[test]
    fn an_allowance_is_renewed_every_second() {
        let mut allowance = Allowance::of(2);
        let taken = |allowance: &mut Allowance, ms: u64| allowance.take(at(ms));
        assert!(taken(&mut allowance, 5) && taken(&mut allowance, 5) && !taken(&mut allowance, 999));
        assert!(taken(&mut allowance, 1000));
    }

    #[test]
    fn few_calls_are_all_answered_and_nothing_is_kept_of_them() {
        let mut calls = Calls::new();
        for n in 0..u64::from(ANSWERS) {
            assert!(calls.answers(at(n / 10), || number(n)));
        }
        assert!(calls.seen.is_none());
    }

    #[test]
    fn in_a_flood_who_calls_again_is_answered_and_hardly_anybody_else() {
        let mut calls = Calls::new();
        let (mut answered, mut flood) = (0, 1_000_000);
        let mut second = |calls: &mut Calls, ms: u64, honest: u64| {
            let mut heard = false;
            for n in 0..80_000 {
                flood += 1;
                answered += u64::from(calls.answers(at(ms), || number(flood)));
                heard |= n == 60_000 && calls.answers(at(ms), || number(honest));
            }
            heard
        };
        assert!(!second(&mut calls, 0, 1), "the first call is one among 80,000");
        assert!(second(&mut calls, 1000, 1), "the second is answered");
        assert!(!second(&mut calls, 2000, 2));
        second(&mut calls, 3000, 9);
        assert!(second(&mut calls, 4000, 2), "and so is one that comes after two seconds");
        assert!((25_000..=5 * 10_000).contains(&answered), "{answered}");
    }

    #[test]
    fn after_the_flood_its_memory_is_given_back() {
        let mut calls = Calls::new();
        for n in 0..6000 {
            calls.answers(at(0), || number(n));
        }
        assert!(calls.seen.is_some());
        assert!(calls.answers(at(8000), || number(1)));
        assert!(calls.seen.is_none());
    }
}
