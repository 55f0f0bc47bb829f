//! Arrival pattern of ACKs: one by one, or in bursts.

use hopline_core::{Duration, Instant};

/// An ACK that arrives within this time of the one before is of the same burst. Two ACKs that leave a radio
/// SIFS apart at 54 Mb/s are 52 µs apart, two on a wire of 100 Mb/s are 5 µs apart; those that contend for
/// the channel one by one are farther.
pub const BURST_GAP: Duration = Duration::from_micros(100);

/// Longer bursts count as ones of this length in percentiles.
const MAX_LENGTH: usize = 1024;

/// Bursts of ACKs as they arrive at the source of the data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AckBursts {
    last: Option<Instant>,
    /// ACKs of the burst that has not ended.
    current: u64,
    ended: u64,
    acks: u64,
    longest: u64,
    /// Number of ended bursts of each length, from one on.
    by_length: Vec<u64>,
}

impl AckBursts {
    /// Records that an ACK arrives.
    pub(crate) fn record(&mut self, now: Instant) {
        let goes_on = self.last.replace(now).is_some_and(|last| now.since(last) <= BURST_GAP);
        if !goes_on {
            self.end_burst();
        }
        self.current += 1;
    }

    /// Records that the burst that goes on, if one does, has ended.
    pub(crate) fn end_burst(&mut self) {
        let length = core::mem::take(&mut self.current);
        if length == 0 {
            return;
        }
        let slot = (length as usize).min(MAX_LENGTH);
        if self.by_length.len() < slot {
            self.by_length.resize(slot, 0);
        }
        self.by_length[slot - 1] += 1;
        self.ended += 1;
        self.acks += length;
        self.longest = self.longest.max(length);
    }

    /// Returns the number of bursts.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.ended
    }

    /// Returns aCKs of a burst, mean over bursts. `None` if there were none.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.ended > 0).then(|| self.acks as f64 / self.ended as f64)
    }

    /// Returns aCKs of the longest one. `None` if there were none.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        (self.ended > 0).then_some(self.longest)
    }

    /// Returns the length that the share `q` of them, from 0 to 1, does not exceed. `None` if there were
    /// none.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let rank = (q * self.ended as f64).max(1.0);
        let mut so_far = 0;
        (1..).zip(&self.by_length).find_map(|(length, count)| {
            so_far += count;
            (so_far as f64 >= rank).then_some(length)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns bursts of these lengths. ACKs of a burst are 100 µs apart; bursts are 101 µs apart.
    fn bursts_of(lengths: &[usize]) -> AckBursts {
        let (mut bursts, mut now) = (AckBursts::default(), Instant::ZERO);
        for &length in lengths {
            for _ in 0..length {
                now += BURST_GAP;
                bursts.record(now);
            }
            now += Duration::from_micros(1);
        }
        bursts.end_burst();
        bursts
    }

    #[test]
    fn a_burst_ends_where_an_ack_is_late() {
        let bursts = bursts_of(&[1, 4, 1]);
        assert_eq!((bursts.count(), bursts.mean(), bursts.max()), (3, Some(2.0), Some(4)));
        assert_eq!((bursts.quantile(0.5), bursts.quantile(0.95)), (Some(1), Some(4)));
    }

    #[test]
    fn without_acks_there_is_no_burst() {
        let none = bursts_of(&[]);
        assert_eq!((none.count(), none.mean(), none.max(), none.quantile(0.5)), (0, None, None, None));
    }

    #[test]
    fn an_endless_burst_takes_bounded_memory() {
        let bursts = bursts_of(&[100_000]);
        assert_eq!((bursts.max(), bursts.quantile(1.0)), (Some(100_000), Some(1024)));
        assert_eq!(bursts.by_length.len(), MAX_LENGTH);
    }
}
