//! Period of ACK bursts, and number of ACKs in a burst.

use super::config::Config;
use hopline_core::{Duration, Instant};

/// Rhythm of the ACKs of a connection.
#[derive(Debug, Default)]
pub(super) struct Rhythm {
    /// Arrival time of the last ACK.
    last: Option<Instant>,
    /// Time at which the current burst began.
    began: Instant,
    /// ACKs in the current burst.
    acks: u32,
    smoothed: Option<Smoothed>,
}

/// Averages over complete bursts. Their ratio is the time from one ACK to the next.
#[derive(Clone, Copy, Debug)]
struct Smoothed {
    /// Time from the beginning of a burst to the beginning of the next.
    period: Duration,
    /// ACKs of a burst, times [`ONE`].
    acks: u64,
}

/// Position of an ACK in its burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    First,
    Later,
}

/// Fixed-point scale of the average number of ACKs.
const ONE: u64 = 256;
/// Divisor of the weight of a new burst in the averages.
const GAIN: u64 = 4;

impl Rhythm {
    /// Records the arrival of an ACK.
    pub(super) fn hear(&mut self, now: Instant, config: &Config) -> Heard {
        let heard = match self.last.replace(now) {
            Some(last) if now.since(last) <= config.burst_gap => Heard::Later,
            _ => Heard::First,
        };
        let lasted = now.since(self.began);
        // A burst that does not end is cut at the longest holding time.
        if heard == Heard::First || lasted >= config.max_hold {
            if self.acks > 0 {
                self.end(lasted.min(config.max_hold));
            }
            (self.began, self.acks) = (now, 0);
        }
        self.acks += 1;
        heard
    }

    /// Returns the time between two forwarded ACKs, so that all are forwarded before the next burst: for the
    /// average burst, or for `crowd` ACKs if these are more. Zero until a burst has ended.
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

/// Returns the average after one more sample.
const fn nearer(average: u64, sample: u64) -> u64 {
    if sample >= average { average + (sample - average) / GAIN } else { average - (average - sample) / GAIN }
}
