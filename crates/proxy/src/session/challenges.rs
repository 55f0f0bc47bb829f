//! Challenges of one end. Each can be answered once; the time until then is a round-trip sample.

use crate::dproxy::Key;
use hopline_core::{Duration, Instant};
use std::collections::VecDeque;

/// Maximum number of outstanding challenges. Greetings that ask for proof are 150 ms apart, so that the
/// oldest of these is 9 s old.
const MAX_OUTSTANDING: usize = 64;
/// Number of recent round-trip samples: after a radio has slept, it answers all that was sent meanwhile.
const MAX_SAMPLES: usize = 64;
/// Maximum sample: an attacker that delays answers cannot prolong the wait for an end that died without
/// limit.
const MAX_RTT_SAMPLE: Duration = Duration::from_secs(8);

/// Outstanding challenges, and round-trip samples of answered ones.
#[derive(Debug)]
pub(super) struct Challenges {
    next_number: u64,
    /// Outstanding challenges, oldest first.
    outstanding: VecDeque<Challenge>,
    samples: VecDeque<Duration>,
}

/// Round-trip time to the other end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RttRange {
    /// Maximum sample; zero before the first.
    pub(super) max: Duration,
    /// Difference between maximum and minimum.
    pub(super) spread: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Challenge {
    value: u64,
    /// Time at which an answer was requested with it. `None`: the other end answers with its next scheduled
    /// greeting.
    requested_at: Option<Instant>,
}

impl Challenges {
    pub(super) const fn new() -> Self {
        Self { next_number: 0, outstanding: VecDeque::new(), samples: VecDeque::new() }
    }

    /// Creates the challenge of a scheduled greeting. Each has its own, so that the answer tells when it was
    /// sent.
    pub(super) fn create(&mut self, key: &Key, life: u64, asked: Option<Instant>) -> u64 {
        self.next_number += 1;
        let value = challenge_value(key, life, self.next_number);
        if self.outstanding.len() == MAX_OUTSTANDING {
            self.outstanding.pop_front();
        }
        self.outstanding.push_back(Challenge { value, requested_at: asked });
        value
    }

    /// Returns the challenge of a reply: the latest, until it is answered. Recorded greetings that ask for
    /// many replies thus displace none.
    pub(super) fn latest(&mut self, key: &Key, life: u64, asked: Option<Instant>) -> u64 {
        match self.outstanding.back() {
            Some(latest) => latest.value,
            None => self.create(key, life, asked),
        }
    }

    /// Returns whether `met` answers an outstanding challenge. That one and earlier ones can no longer be
    /// answered.
    pub(super) fn verify(&mut self, now: Instant, met: u64) -> bool {
        let Some(at) = self.outstanding.iter().position(|challenge| challenge.value == met) else {
            return false;
        };
        if let Some(asked) = self.outstanding[at].requested_at {
            self.samples.push_back(now.since(asked).min(MAX_RTT_SAMPLE));
            if self.samples.len() > MAX_SAMPLES {
                self.samples.pop_front();
            }
        }
        self.outstanding.drain(..=at);
        true
    }

    /// Drops outstanding challenges: a former incarnation of the other end may have answered them.
    pub(super) fn clear(&mut self) {
        self.outstanding.clear();
    }

    /// Returns the round-trip time from recent samples.
    pub(super) fn rtt(&self) -> RttRange {
        let samples = || self.samples.iter().copied();
        let most = samples().max().unwrap_or(Duration::ZERO);
        RttRange { max: most, spread: most.saturating_sub(samples().min().unwrap_or(most)) }
    }
}

/// Returns a challenge that is unpredictable without the key. It is never 0, which means none.
fn challenge_value(key: &Key, life: u64, number: u64) -> u64 {
    let mut bytes = *b"challenge................";
    bytes[9..17].copy_from_slice(&life.to_be_bytes());
    bytes[17..].copy_from_slice(&number.to_be_bytes());
    u64::from_be_bytes(key.derive(&bytes)[..8].try_into().expect("8 of 32 bytes")).max(1)
}
