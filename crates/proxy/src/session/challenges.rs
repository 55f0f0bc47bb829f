//! Challenges of one end: each is met once, and the time until then is a sample of the round trip.

use crate::dproxy::Key;
use hopline_core::{Duration, Instant};
use std::collections::VecDeque;

/// Challenges that can still be met, at most. Greetings that ask for proof are 150 ms apart, so that the oldest of these is 9 s old.
const OUTSTANDING: usize = 64;
/// Latest samples of the round trip that count: after a radio has slept, it answers to all that was sent meanwhile.
const SAMPLES: usize = 64;
/// Greatest sample: an attacker who delays answers cannot have an end that died be waited for longer.
const LONGEST_RTT: Duration = Duration::from_secs(8);

/// Challenges that were sent and not met, and the round trip that those which were met took.
#[derive(Debug)]
pub(super) struct Challenges {
    made: u64,
    /// In the order in which they were made.
    outstanding: VecDeque<Challenge>,
    samples: VecDeque<Duration>,
}

/// Round trip to the other end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rtt {
    /// The greatest sample; zero before the first.
    pub(super) most: Duration,
    /// Difference between that and the least.
    pub(super) spread: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Challenge {
    value: u64,
    /// Time at which an answer was asked for with it. `None`: the other end meets it when it greets for a reason of its own.
    asked: Option<Instant>,
}

impl Challenges {
    pub(super) const fn new() -> Self {
        Self { made: 0, outstanding: VecDeque::new(), samples: VecDeque::new() }
    }

    /// Makes the challenge of a greeting that is due. Each has its own, so that the one that is met tells when it was sent.
    pub(super) fn make(&mut self, key: &Key, life: u64, asked: Option<Instant>) -> u64 {
        self.made += 1;
        let value = value(key, life, self.made);
        if self.outstanding.len() == OUTSTANDING {
            self.outstanding.pop_front();
        }
        self.outstanding.push_back(Challenge { value, asked });
        value
    }

    /// Returns the challenge of an answer: the latest, until it is met. So a recording that asks for many answers displaces none.
    pub(super) fn latest(&mut self, key: &Key, life: u64, asked: Option<Instant>) -> u64 {
        match self.outstanding.back() {
            Some(latest) => latest.value,
            None => self.make(key, life, asked),
        }
    }

    /// Returns whether the other end has met a challenge. Neither that one nor an earlier one can be met from now on.
    pub(super) fn meet(&mut self, now: Instant, met: u64) -> bool {
        let Some(at) = self.outstanding.iter().position(|challenge| challenge.value == met) else {
            return false;
        };
        if let Some(asked) = self.outstanding[at].asked {
            self.samples.push_back(now.since(asked).min(LONGEST_RTT));
            if self.samples.len() > SAMPLES {
                self.samples.pop_front();
            }
        }
        self.outstanding.drain(..=at);
        true
    }

    /// Forgets those that were not met: a former life of the other end may have answered them.
    pub(super) fn forget(&mut self) {
        self.outstanding.clear();
    }

    /// Returns the round trip as the latest samples have it.
    pub(super) fn rtt(&self) -> Rtt {
        let samples = || self.samples.iter().copied();
        let most = samples().max().unwrap_or(Duration::ZERO);
        Rtt { most, spread: most.saturating_sub(samples().min().unwrap_or(most)) }
    }
}

/// Without the key it cannot be known before it is sent. 0 stands for none.
fn value(key: &Key, life: u64, number: u64) -> u64 {
    let mut bytes = *b"challenge................";
    bytes[9..17].copy_from_slice(&life.to_be_bytes());
    bytes[17..].copy_from_slice(&number.to_be_bytes());
    u64::from_be_bytes(key.derive(&bytes)[..8].try_into().expect("8 of 32 bytes")).max(1)
}
