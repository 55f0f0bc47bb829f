//! Rates of a link that change with time and repeat.

use hopline_core::{Duration, Instant};

/// Nanoseconds in a second.
const NANOS: u128 = 1_000_000_000;

/// Rates of one direction of a link, repeated until the run ends.
///
/// A packet in transmission when the rate changes goes on at the new rate. A rate of zero stops the link: packets wait, the one
/// in transmission too. So the link carries in any interval just the integral of the rates.
///
/// ```
/// use hopline_core::{Duration, Instant};
/// use hopline_sim::spec::links::RateTrace;
/// // 1 Mb/s for a millisecond, then nothing for two.
/// let rates = vec![(Duration::ZERO, 1_000_000), (Duration::from_millis(1), 0)];
/// let trace = RateTrace::new(rates, Duration::from_millis(3), Duration::ZERO).unwrap();
/// assert_eq!(trace.sent_at(Instant::ZERO, 1500), Instant::from_nanos(3_500_000));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateTrace {
    /// Start of each rate within the period, and bits per second.
    rates: Vec<(Duration, u64)>,
    period: Duration,
    /// Time within the trace at which a run starts.
    offset: Duration,
    /// Bits that a period carries, times 10⁹.
    carried: u128,
}

impl RateTrace {
    /// Creates a trace of `rates` in bits per second, each from a time within `period` on. A run starts at `offset` of the
    /// repeated trace. Returns `None` unless the first time is zero, times increase up to the period, and the mean is at least
    /// 1 bit/s.
    #[must_use]
    pub fn new(rates: Vec<(Duration, u64)>, period: Duration, offset: Duration) -> Option<Self> {
        let is_ordered = rates.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let starts = rates.first().is_some_and(|(from, _)| from.is_zero());
        let ends = rates.last().is_some_and(|&(from, _)| from < period);
        let mut trace = Self { rates, period, offset, carried: 0 };
        let carried =
            |index: usize| u128::from(trace.rates[index].1) * u128::from(trace.length(index).as_nanos());
        if !(is_ordered && starts && ends) {
            return None;
        }
        trace.carried = (0..trace.rates.len()).map(carried).sum();
        // The least mean rate bounds the time of a packet, so that it is within the range of times.
        (trace.carried >= u128::from(period.as_nanos())).then_some(trace)
    }

    /// Returns the mean rate in bits per second, at least 1.
    #[must_use]
    pub fn mean_bps(&self) -> u64 {
        u64::try_from(self.carried / u128::from(self.period.as_nanos())).unwrap_or(u64::MAX)
    }

    /// Returns the time after which the trace repeats.
    #[must_use]
    pub const fn period(&self) -> Duration {
        self.period
    }

    /// Returns the number of bits that the link can carry in the first `elapsed` of a run.
    #[must_use]
    pub fn bits_by(&self, elapsed: Duration) -> u64 {
        let carried = self.carried_by(self.offset + elapsed) - self.carried_by(self.offset);
        u64::try_from(carried / NANOS).unwrap_or(u64::MAX)
    }

    /// Returns the bits up to `time` of the repeated trace, times 10⁹.
    fn carried_by(&self, time: Duration) -> u128 {
        let (time, period) = (u128::from(time.as_nanos()), u128::from(self.period.as_nanos()));
        let within = time % period;
        let part = |index: usize| {
            let from = u128::from(self.rates[index].0.as_nanos());
            let length = u128::from(self.length(index).as_nanos());
            u128::from(self.rates[index].1) * within.saturating_sub(from).min(length)
        };
        time / period * self.carried + (0..self.rates.len()).map(part).sum::<u128>()
    }

    /// Returns the time at which the link has sent `bits`, of which it sends the first at `start`.
    #[must_use]
    pub fn sent_at(&self, start: Instant, bits: u64) -> Instant {
        let position = (start + self.offset).as_nanos() % self.period.as_nanos();
        let position = Duration::from_nanos(position);
        let mut index = self.rates.partition_point(|&(from, _)| from <= position) - 1;
        let mut length = self.end(index).as_nanos() - position.as_nanos();
        let mut left = u128::from(bits) * NANOS;
        let mut elapsed: u128 = 0;
        loop {
            let rate = u128::from(self.rates[index].1);
            let carried = rate * u128::from(length);
            if rate > 0 && carried >= left {
                elapsed += left.div_ceil(rate);
                return start + Duration::from_nanos(u64::try_from(elapsed).unwrap_or(u64::MAX));
            }
            left -= carried;
            elapsed += u128::from(length);
            index += 1;
            if index == self.rates.len() {
                index = 0;
                let whole = left.saturating_sub(1) / self.carried;
                left -= whole * self.carried;
                elapsed += whole * u128::from(self.period.as_nanos());
            }
            length = self.length(index).as_nanos();
        }
    }

    fn end(&self, index: usize) -> Duration {
        self.rates.get(index + 1).map_or(self.period, |&(from, _)| from)
    }

    fn length(&self, index: usize) -> Duration {
        self.end(index) - self.rates[index].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn trace(rates: &[(u64, u64)], period_ms: u64, offset_ms: u64) -> Option<RateTrace> {
        let rates = rates.iter().map(|&(from, rate)| (MS(from), rate)).collect();
        RateTrace::new(rates, MS(period_ms), MS(offset_ms))
    }

    fn at_us(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    #[test]
    fn a_constant_trace_is_a_constant_rate() {
        let trace = trace(&[(0, 2_000_000)], 1, 0).unwrap();
        for (start, bits) in [(0, 12_000), (17, 8), (999_999, 524_280), (5, 1)] {
            let start = Instant::from_nanos(start);
            assert_eq!(trace.sent_at(start, bits), start + Duration::of_bits(bits, 2_000_000));
        }
        assert_eq!(trace.mean_bps(), 2_000_000);
    }

    #[test]
    fn a_packet_goes_on_at_the_next_rate_and_waits_while_the_link_stops() {
        // 1000 bits, then 4 ms of nothing, then 2000 bits.
        let trace = trace(&[(0, 1_000_000), (1, 0), (5, 2_000_000)], 6, 0).unwrap();
        let sent = |start_us, bits| trace.sent_at(at_us(start_us), bits).as_nanos() / 1000;
        assert_eq!(sent(0, 1000), 1000, "the last bit leaves before the link stops");
        assert_eq!(sent(0, 1001), 5000, "half a microsecond later");
        assert_eq!(sent(0, 2000), 5500);
        assert_eq!(sent(3000, 2000), 6000);
        assert_eq!(sent(3000, 3000), 7000, "the trace repeats");
        // 100 periods of 3000 bits, and a half of a bit's time more.
        assert_eq!(sent(0, 300_500), 600_500);
        assert_eq!(sent(6_000_000, 1000), 6_001_000);
    }

    #[test]
    fn an_offset_skips_a_part() {
        let trace = trace(&[(0, 1_000_000), (1, 0)], 2, 5).unwrap();
        assert_eq!(trace.sent_at(Instant::ZERO, 1000), Instant::from_millis(2));
    }

    #[test]
    fn bits_are_those_of_the_stretch_from_the_offset_on() {
        // 1000 bits, then 4 ms of nothing, then 2000 bits.
        let bits = |offset_ms, elapsed_ms| {
            let trace = trace(&[(0, 1_000_000), (1, 0), (5, 2_000_000)], 6, offset_ms).unwrap();
            trace.bits_by(MS(elapsed_ms))
        };
        assert_eq!([bits(0, 0), bits(0, 1), bits(0, 5), bits(0, 6)], [0, 1000, 1000, 3000]);
        assert_eq!(bits(1, 4), 0, "the link stops");
        assert_eq!(bits(5, 2), 3000, "the end, and the start of the repetition");
        assert_eq!(bits(605, 602), 303_000, "an offset beyond the period");
        let long =
            RateTrace::new(vec![(Duration::ZERO, 3)], Duration::from_nanos(1), Duration::ZERO).unwrap();
        assert_eq!(long.bits_by(Duration::from_secs(10_000_000)), 30_000_000);
    }

    #[test]
    fn slow_traces_stay_within_the_range_of_times() {
        let year = Duration::from_secs(10_000_000);
        let rates = vec![(Duration::ZERO, 2), (Duration::from_secs(5_000_000), 0)];
        let trace = RateTrace::new(rates, year, year).unwrap();
        let sent = trace.sent_at(Instant::ZERO, 524_280);
        assert_eq!(sent, Instant::from_secs(262_140));
        assert!(trace.sent_at(Instant::from_secs(10_000_000), u64::from(u32::MAX)) < Instant::FAR_FUTURE);
    }

    #[test]
    fn traces_that_are_none_are_refused() {
        let refused: [(&[(u64, u64)], u64); 6] = [
            (&[], 5),
            (&[(1, 5)], 5),
            (&[(0, 0)], 5),
            (&[(0, 5), (0, 6)], 5),
            (&[(0, 5), (5, 6)], 5),
            (&[(0, 1), (1, 0)], 5),
        ];
        for (rates, period) in refused {
            assert_eq!(trace(rates, period, 0), None, "{rates:?}");
        }
    }
}
