//! A shaper between the queue and the transmission of a link.

use crate::spec::links::Shaper;
use hopline_core::{Duration, Instant};

/// Nanoseconds of a second.
const NANOS_PER_SEC: i128 = 1_000_000_000;

/// State of a shaper. Credit is in bits times nanoseconds per second, so that nothing is rounded.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShaperState {
    config: Shaper,
    credit: i128,
    since: Instant,
    /// An event will release the next packet.
    is_waiting: bool,
}

/// Verdict on the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    /// It may leave.
    Now,
    /// It waits for an event at this time, which the caller schedules.
    At(Instant),
    /// It waits for an event that has been scheduled.
    Scheduled,
}

impl ShaperState {
    pub(super) fn new(config: Shaper) -> Self {
        let mut state = Self { config, credit: 0, since: Instant::ZERO, is_waiting: false };
        state.credit = state.limit();
        state
    }

    /// Returns whether a packet may leave the queue.
    pub(super) fn release(&mut self, now: Instant) -> Release {
        if self.is_waiting {
            return Release::Scheduled;
        }
        let rate = i128::from(self.config.rate_bps);
        let grown = i128::from(now.since(self.since).as_nanos()) * rate;
        self.credit = (self.credit + grown).min(self.limit());
        self.since = now;
        if self.credit >= 0 {
            return Release::Now;
        }
        self.is_waiting = true;
        let wait = (-self.credit).unsigned_abs().div_ceil(rate.unsigned_abs());
        Release::At(now + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX)))
    }

    /// Records that the event has come.
    pub(super) fn on_release(&mut self) {
        self.is_waiting = false;
    }

    /// Accounts for a packet that leaves.
    pub(super) fn charge(&mut self, len_bytes: u32) {
        let Shaper { overhead_bytes, mpu_bytes, .. } = self.config;
        let counted = (i128::from(len_bytes) + i128::from(overhead_bytes)).max(mpu_bytes.into());
        self.credit -= counted * 8 * NANOS_PER_SEC;
    }

    /// Greatest credit.
    fn limit(&self) -> i128 {
        i128::from(self.config.burst_bytes) * 8 * NANOS_PER_SEC
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// 8 kb/s: a byte each millisecond.
    fn state(burst_bytes: u64) -> ShaperState {
        ShaperState::new(Shaper { rate_bps: 8_000, burst_bytes, overhead_bytes: 0, mpu_bytes: 0 })
    }

    #[test]
    fn packets_are_spaced_by_their_lengths() {
        let mut shaper = state(0);
        assert_eq!(shaper.release(ms(0)), Release::Now);
        shaper.charge(100);
        assert_eq!(shaper.release(ms(10)), Release::At(ms(100)));
        assert_eq!(shaper.release(ms(20)), Release::Scheduled);
        shaper.on_release();
        assert_eq!(shaper.release(ms(100)), Release::Now);
        shaper.charge(50);
        assert_eq!(shaper.release(ms(100)), Release::At(ms(150)));
    }

    #[test]
    fn credit_is_at_most_the_burst() {
        let mut shaper = state(250);
        for now in [0, 60_000, 120_000] {
            // 250, 150, 50 and -50 bytes.
            for _ in 0..3 {
                assert_eq!(shaper.release(ms(now)), Release::Now);
                shaper.charge(100);
            }
            assert_eq!(shaper.release(ms(now)), Release::At(ms(now + 50)));
            shaper.on_release();
        }
    }

    #[test]
    fn overhead_and_a_least_size_count() {
        let config = Shaper { overhead_bytes: 38, mpu_bytes: 84, ..state(0).config };
        for (len_bytes, counted) in [(0, 84), (46, 84), (47, 85), (1500, 1538)] {
            let mut shaper = ShaperState::new(config);
            shaper.charge(len_bytes);
            assert_eq!(shaper.release(ms(0)), Release::At(ms(counted)), "{len_bytes} bytes");
        }
    }

    #[test]
    fn a_rate_that_does_not_divide_is_exact_in_the_long_run() {
        // 125 bytes at 7 bit/s take 142.857142857... s.
        let mut shaper = ShaperState::new(Shaper { rate_bps: 7, ..state(0).config });
        let mut now = Instant::ZERO;
        for _ in 0..7_000 {
            shaper.charge(125);
            if let Release::At(at) = shaper.release(now) {
                now = at;
            }
            shaper.on_release();
        }
        assert_eq!(now, Instant::from_secs(1_000_000));
    }

    #[test]
    fn huge_values_do_not_overflow() {
        let config =
            Shaper { rate_bps: 1, burst_bytes: u64::MAX, overhead_bytes: u32::MAX, mpu_bytes: u32::MAX };
        let mut shaper = ShaperState::new(config);
        shaper.charge(u32::MAX);
        assert_eq!(shaper.release(Instant::from_secs(4_000_000)), Release::Now);
        let mut shaper = ShaperState::new(Shaper { burst_bytes: 0, ..config });
        shaper.charge(u32::MAX);
        assert!(matches!(shaper.release(ms(0)), Release::At(_)));
    }
}
