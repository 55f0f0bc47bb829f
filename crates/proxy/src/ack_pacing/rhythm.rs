//! How often bursts of ACKs come, and how many ACKs are in one.

use super::Config;
use hopline_core::{Duration, Instant};

/// The rhythm in which ACKs of a connection come.
#[derive(Debug, Default)]
pub(super) struct Rhythm {
    /// When the last one came.
    last: Option<Instant>,
    /// When the burst began that goes on.
    began: Instant,
    /// ACKs in it.
    acks: u32,
    smoothed: Option<Smoothed>,
}

/// Averages over bursts that have ended. Their ratio is the time from one ACK to the next.
#[derive(Clone, Copy, Debug)]
struct Smoothed {
    /// From the beginning of a burst to that of the next.
    period: Duration,
    /// ACKs of a burst, times [`ONE`].
    acks: u64,
}

/// Where an ACK stands in its burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    First,
    Later,
}

/// Averages count ACKs in parts of one.
const ONE: u64 = 256;
/// How much a new burst counts: one of this many.
const GAIN: u64 = 4;

impl Rhythm {
    /// An ACK comes.
    pub(super) fn hear(&mut self, now: Instant, config: &Config) -> Heard {
        let heard = match self.last.replace(now) {
            Some(last) if now.since(last) <= config.burst_gap => Heard::Later,
            _ => Heard::First,
        };
        let lasted = now.since(self.began);
        // A burst that does not end is as many as fit in the longest time.
        if heard == Heard::First || lasted >= config.max_hold {
            if self.acks > 0 {
                self.end(lasted.min(config.max_hold));
            }
            (self.began, self.acks) = (now, 0);
        }
        self.acks += 1;
        heard
    }

    /// From one ACK to the next, of as many as usual or of a `crowd`, if that is more: all go before the next burst. Zero until a burst
    /// has ended.
    pub(super) fn interval(&self, crowd: usize) -> Duration {
        let Some(Smoothed { period, acks }) = self.smoothed else { return Duration::ZERO };
        let acks = acks.max(ONE.saturating_mul(crowd as u64));
        Duration::from_nanos(period.as_nanos().saturating_mul(ONE) / acks)
    }

    fn end(&mut self, period: Duration) {
        let acks = u64::from(self.acks) * ONE;
        self.smoothed = Some(match self.smoothed {
            None => Smoothed { period, acks },
            Some(before) => Smoothed {
                period: Duration::from_nanos(nearer(before.period.as_nanos(), period.as_nanos())),
                acks: nearer(before.acks, acks),
            },
        });
    }
}

/// The average with one more sample in it.
const fn nearer(average: u64, sample: u64) -> u64 {
    if sample >= average { average + (sample - average) / GAIN } else { average - (average - sample) / GAIN }
}
