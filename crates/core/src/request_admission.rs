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
const IMMEDIATE_PER_SECOND: u32 = 2000;
/// Memory of requests: at least this, at most twice this. Initiators retransmit within it.
const REQUEST_MEMORY: Duration = Duration::from_secs(4);
/// Words of the memory. At 80,000 requests per second, at most one in 100 is mistaken for another.
const REQUEST_WORDS: usize = 1 << 17;
/// Time in which a request that was answered is not answered again: at least this, at most twice this. Initiators retransmit
/// later.
const ANSWER_MEMORY: Duration = Duration::from_millis(100);
/// Words of the memory of answers. Of at most 800 answers, hardly one is mistaken for another.
const ANSWER_WORDS: usize = 1 << 11;

/// Admission control of connection requests.
///
/// # Example
///
/// ```
/// use hopline_core::Instant;
/// use hopline_core::request_admission::{RequestAdmission, RequestId};
///
/// let mut admission = RequestAdmission::new();
/// let request = |n: u64| RequestId { source_hash: n.wrapping_mul(0x9e37_79b9_7f4a_7c15), content_hash: n };
/// // 3000 requests in one instant: the first 2000 are answered at once.
/// let answered = (0..3000).filter(|&n| admission.admit(Instant::ZERO, || request(n))).count();
/// assert_eq!(answered, 2000);
/// ```
#[derive(Clone, Debug, Default)]
pub struct RequestAdmission {
    first_budget: Option<TokenBucket>,
    flood: Option<Box<Flood>>,
}

/// Identity of a request: numbers that an attacker cannot choose, such as a keyed hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId {
    /// Hash of the content and of the source address.
    pub source_hash: u64,
    /// Hash of the content alone. The content of a legitimate request is unique.
    pub content_hash: u64,
}

/// State kept during a flood only: 4 MiB.
#[derive(Clone, Debug)]
struct Flood {
    /// Answers to requests that have arrived before.
    repeat_budget: TokenBucket,
    seen_sources: RotatingBloomFilter,
    seen_contents: RotatingBloomFilter,
    answered_sources: RotatingBloomFilter,
    /// Time of the last request that was not answered.
    last_refused: Instant,
}

/// Set of numbers recorded recently. It may contain more than was put into it: a Bloom filter with four bits of one word for
/// each number.
#[derive(Clone, Debug)]
struct RotatingBloomFilter {
    current: Vec<u64>,
    previous: Vec<u64>,
    /// Time at which `now` was started; it is filled for `memory`.
    current_since: Instant,
    memory: Duration,
}

impl RequestAdmission {
    /// Creates admission control that has seen no request.
    #[must_use]
    pub const fn new() -> Self {
        Self { first_budget: None, flood: None }
    }

    /// Returns whether to answer a request. Must be called for every request; `call` is evaluated only during a flood.
    pub fn admit(&mut self, now: Instant, call: impl FnOnce() -> RequestId) -> bool {
        let first = self.first_budget.get_or_insert_with(|| TokenBucket::new(IMMEDIATE_PER_SECOND, now));
        self.flood.take_if(|flood| now >= flood.last_refused + REQUEST_MEMORY.saturating_mul(2));
        if self.flood.is_none() && first.take(now) {
            return true;
        }
        self.flood.get_or_insert_with(|| Box::new(Flood::new(now))).admit(now, call(), first)
    }
}

impl Flood {
    fn new(now: Instant) -> Self {
        Self {
            repeat_budget: TokenBucket::new(IMMEDIATE_PER_SECOND, now),
            seen_sources: RotatingBloomFilter::new(now, REQUEST_MEMORY, REQUEST_WORDS),
            seen_contents: RotatingBloomFilter::new(now, REQUEST_MEMORY, REQUEST_WORDS),
            answered_sources: RotatingBloomFilter::new(now, ANSWER_MEMORY, ANSWER_WORDS),
            last_refused: now,
        }
    }

    fn admit(&mut self, now: Instant, call: RequestId, first: &mut TokenBucket) -> bool {
        let (again, new) = (
            self.seen_sources.insert(now, call.source_hash),
            !self.seen_contents.insert(now, call.content_hash),
        );
        let answered = !self.answered_sources.contains(now, call.source_hash)
            && ((new && first.take(now)) || (again && self.repeat_budget.take(now)));
        if answered {
            self.answered_sources.insert(now, call.source_hash);
        } else {
            self.last_refused = now;
        }
        answered
    }
}

impl RotatingBloomFilter {
    fn new(now: Instant, memory: Duration, words: usize) -> Self {
        Self { current: vec![0; words], previous: vec![0; words], current_since: now, memory }
    }

    /// Returns whether the set contains `number`.
    fn contains(&mut self, now: Instant, number: u64) -> bool {
        self.rotate(now);
        let (word, mask) = self.word_and_mask(number);
        (self.current[word] | self.previous[word]) & mask == mask
    }

    /// Records a number. Returns whether it was in the set.
    fn insert(&mut self, now: Instant, number: u64) -> bool {
        let was_there = self.contains(now, number);
        let (word, mask) = self.word_and_mask(number);
        self.current[word] |= mask;
        was_there
    }

    fn word_and_mask(&self, number: u64) -> (usize, u64) {
        let mask = [40, 46, 52, 58].map(|from| 1 << (number >> from & 63)).into_iter().fold(0, |a, b| a | b);
        ((number % self.current.len() as u64) as usize, mask)
    }

    fn rotate(&mut self, now: Instant) {
        if now < self.current_since + self.memory {
            return;
        }
        std::mem::swap(&mut self.current, &mut self.previous);
        self.current.fill(0);
        if now >= self.current_since + self.memory.saturating_mul(2) {
            self.previous.fill(0);
        }
        self.current_since = now;
    }
}

/// Token bucket with a depth of one second. Tokens return continuously, so that no moment within a second is better than
/// another.
///
/// # Example
///
/// ```
/// use hopline_core::Instant;
/// use hopline_core::request_admission::TokenBucket;
///
/// let mut allowance = TokenBucket::new(1, Instant::ZERO);
/// assert!(allowance.take(Instant::ZERO));
/// assert!(!allowance.take(Instant::from_millis(500)));
/// assert!(allowance.take(Instant::from_secs(1)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    /// Tokens that return in a second.
    rate: u32,
    /// Tokens left, in units of 10⁻⁹ token; `rate` units return in a nanosecond.
    tokens: u64,
    updated: Instant,
}

const NANOS_PER_SEC: u64 = 1_000_000_000;

impl TokenBucket {
    /// Creates a full bucket.
    #[must_use]
    pub const fn new(a_second: u32, now: Instant) -> Self {
        Self { rate: a_second, tokens: a_second as u64 * NANOS_PER_SEC, updated: now }
    }

    /// Takes a token. Returns whether there was one.
    pub fn take(&mut self, now: Instant) -> bool {
        let all = u64::from(self.rate) * NANOS_PER_SEC;
        let back = now.since(self.updated).as_nanos().min(NANOS_PER_SEC) * u64::from(self.rate);
        self.tokens = all.min(self.tokens + back);
        self.updated = self.updated.max(now);
        let some = self.tokens >= NANOS_PER_SEC;
        if some {
            self.tokens -= NANOS_PER_SEC;
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
    fn hash_of(n: u64) -> u64 {
        let mixed = (n ^ (n >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 32)
    }

    /// Returns the `n`th request, with unique content.
    fn unique_request(n: u64) -> RequestId {
        RequestId { source_hash: hash_of(n), content_hash: hash_of(!n) }
    }

    /// Sends 80 forged requests in each millisecond of a span, and legitimate ones, each given by its millisecond and its
    /// number. Returns the number of forged requests answered, and for each legitimate one whether it was answered.
    fn admitted_during_flood(
        calls: &mut RequestAdmission,
        [from, to]: [u64; 2],
        mut forged: impl FnMut() -> RequestId,
        honest: &[(u64, u64)],
    ) -> (u32, Vec<bool>) {
        let (mut answered, mut heard) = (0, Vec::new());
        for n in from * 80..to * 80 {
            let now = at(n / 80) + Duration::from_nanos(n % 80 * 12_500);
            let call = honest.iter().filter(|(when, _)| when * 80 + hash_of(*when) % 80 == n);
            heard.extend(call.map(|(_, who)| calls.admit(now, || unique_request(*who))));
            answered += u32::from(calls.admit(now, &mut forged));
        }
        (answered, heard)
    }

    fn new_requests() -> impl FnMut() -> RequestId {
        let mut last = 1_000_000;
        move || {
            last += 1;
            unique_request(last)
        }
    }

    #[test]
    fn a_token_bucket_refills_continuously() {
        let mut allowance = TokenBucket::new(2, at(5));
        assert!(allowance.take(at(5)) && allowance.take(at(5)) && !allowance.take(at(504)));
        assert!(allowance.take(at(505)) && !allowance.take(at(505)));
        assert!(allowance.take(at(60_000)) && allowance.take(at(60_000)) && !allowance.take(at(60_000)));
        assert!(!allowance.take(at(5)), "time that goes back brings nothing");
    }

    #[test]
    fn the_filter_mistakes_few_requests_of_a_flood_for_known_ones() {
        let mut lately = RotatingBloomFilter::new(at(0), REQUEST_MEMORY, REQUEST_WORDS);
        for n in 0..640_000 {
            lately.insert(at(n / 80), hash_of(n));
        }
        assert!((320_001..640_000).all(|n| lately.contains(at(7999), hash_of(n))));
        let others = (0..100_000).filter(|n| lately.contains(at(7999), hash_of(1_000_000 + n))).count();
        assert!((100..1000).contains(&others), "{others}");
        assert!(!lately.contains(at(16_000), hash_of(639_999)));
    }

    #[test]
    fn requests_below_the_limit_are_all_admitted_without_state() {
        let mut calls = RequestAdmission::new();
        for n in 0..u64::from(IMMEDIATE_PER_SECOND) * 3 {
            assert!(calls.admit(at(n / 2), || unique_request(n)), "{n}");
        }
        assert!(
            (0..IMMEDIATE_PER_SECOND / 2).all(|_| calls.admit(at(10_000), || unique_request(1))),
            "repeated or not"
        );
        assert!(calls.flood.is_none());
    }

    #[test]
    fn during_a_flood_retransmitted_requests_are_admitted_and_few_forged_ones() {
        let mut calls = RequestAdmission::new();
        let honest = [(1000, 1), (1200, 1), (2000, 2), (4000, 2), (4050, 2), (4400, 2)];
        let (answered, heard) = admitted_during_flood(&mut calls, [0, 5000], new_requests(), &honest);
        assert_eq!(heard, [false, true, false, true, false, true]);
        assert!((10_000..=5 * 5000).contains(&answered), "{answered}");
    }

    #[test]
    fn replayed_requests_do_not_displace_legitimate_ones() {
        let mut calls = RequestAdmission::new();
        let mut address = 1_000_000;
        let recorded = || {
            address += 1;
            RequestId { content_hash: 7, ..unique_request(address) }
        };
        let honest: Vec<_> = (200..300).map(|n| (n * 10, n)).collect();
        let (answered, heard) = admitted_during_flood(&mut calls, [0, 5000], recorded, &honest);
        assert!(
            heard.iter().filter(|heard| **heard).count() >= 98,
            "nearly all at their first call: {heard:?}"
        );
        assert!((2000..10_000).contains(&answered), "{answered}");
    }

    #[test]
    fn a_request_repeated_without_end_does_not_displace_others() {
        let mut calls = RequestAdmission::new();
        let honest = [(1000, 1), (1200, 1), (3000, 2), (3400, 2)];
        let (answered, heard) = admitted_during_flood(&mut calls, [0, 4000], || unique_request(7), &honest);
        assert!(heard[1] && heard[3], "{heard:?}");
        // The bucket is full at first, and refills at ten per second.
        assert!((2000..=2300).contains(&answered), "{answered}");
    }

    #[test]
    fn the_chance_of_admission_does_not_depend_on_the_moment_within_a_second() {
        let mut calls = RequestAdmission::new();
        // Each request from 40,000 addresses is repeated after half a second, so that it looks like a legitimate one.
        let mut last = 0;
        let all = || {
            last += 1;
            unique_request(last % 40_000)
        };
        let honest: Vec<_> = (2000..12_000).step_by(20).map(|ms| (ms, 1_000_000 + ms % 1000)).collect();
        let (_, heard) = admitted_during_flood(&mut calls, [0, 12_000], all, &honest);
        let chance = |of: usize| {
            let slice: Vec<_> = (0..heard.len()).filter(|n| n % 50 / 10 == of).map(|n| heard[n]).collect();
            slice.iter().filter(|heard| **heard).count() * 100 / slice.len()
        };
        let chances: Vec<_> = (0..5).map(chance).collect();
        assert!(chances.iter().all(|chance| (2..20).contains(chance)), "{chances:?} %");
    }

    #[test]
    fn memory_is_released_after_a_flood() {
        let mut calls = RequestAdmission::new();
        for n in 0..6000 {
            calls.admit(at(0), || unique_request(n));
        }
        assert!(calls.flood.is_some());
        assert!(calls.admit(at(8000), || unique_request(1)));
        assert!(calls.flood.is_none());
    }
}
