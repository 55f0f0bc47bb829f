//! Round-trip times (RFC 6298, RFC 9002 §5), and queueing delays on the way to the peer.

use hopline_core::{Duration, Instant};

/// Difference of one-way delays up to which they count as equal.
pub(super) const DELAY_TOLERANCE: Duration = Duration::from_micros(300);

/// Minimum of the current and the previous period.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinFilter<T> {
    span: Duration,
    since: Option<Instant>,
    current: Option<T>,
    previous: Option<T>,
}

impl<T: Copy + Ord> MinFilter<T> {
    /// Creates a filter over at least `span`, and at most twice as long.
    pub(super) const fn with_span(span: Duration) -> Self {
        Self { span, since: None, current: None, previous: None }
    }

    pub(super) fn sample(&mut self, now: Instant, value: T) {
        if self.since.is_none_or(|since| now.since(since) >= self.span) {
            self.previous = self.current.take();
            self.since = Some(now);
        }
        self.current = Some(self.current.map_or(value, |least| least.min(value)));
    }

    pub(super) fn get(&self) -> Option<T> {
        [self.current, self.previous].into_iter().flatten().min()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::with_span(self.span);
    }
}

/// Delay estimates of the path.
#[derive(Clone, Debug)]
pub(super) struct DelayEstimator {
    srtt: Option<Duration>,
    deviation: Duration,
    min_rtt: MinFilter<Duration>,
    /// Least one-way delay, by two clocks, microseconds; only differences from it have a meaning. Time at which it was
    /// last seen.
    base: Option<(i64, Instant)>,
    /// Last arrival stamp, to unwrap the following ones.
    last_stamp: Option<(u32, i64)>,
}

impl DelayEstimator {
    pub(super) const fn new(memory: Duration) -> Self {
        Self {
            srtt: None,
            deviation: Duration::ZERO,
            min_rtt: MinFilter::with_span(memory),
            base: None,
            last_stamp: None,
        }
    }

    /// Adds a round-trip time sample of `whole`, of which `held` was the delay at the peer.
    pub(super) fn sample(&mut self, now: Instant, whole: Duration, held: Duration) {
        self.min_rtt.sample(now, whole.saturating_sub(held).max(Duration::from_nanos(1)));
        let rtt = whole.saturating_sub(held).max(self.min_rtt());
        match self.srtt {
            None => (self.srtt, self.deviation) = (Some(rtt), rtt / 2),
            Some(srtt) => {
                let off = srtt.abs_diff(rtt);
                self.deviation = self.deviation.saturating_sub(self.deviation / 4) + off / 4;
                self.srtt = Some(srtt.saturating_sub(srtt / 8) + rtt / 8);
            }
        }
    }

    /// Processes an arrival stamp of a packet sent at `sent`. Returns the time of arrival, in unwrapped microseconds of
    /// the peer's clock, and the delay above the minimum.
    pub(super) fn arrival(&mut self, now: Instant, sent: Instant, stamp: u32) -> (i64, Duration) {
        let at = match self.last_stamp {
            None => i64::from(stamp),
            Some((last, at)) => at + i64::from(stamp.wrapping_sub(last) as i32),
        };
        self.last_stamp = Some((stamp, at));
        let delay = at - (sent.as_nanos() / 1000) as i64;
        let same = (DELAY_TOLERANCE.as_nanos() / 1000) as i64;
        let base = match self.base {
            Some((base, seen)) if delay > base => (base, if delay <= base + same { now } else { seen }),
            _ => (delay, now),
        };
        self.base = Some(base);
        (at, Duration::from_micros((delay - base.0) as u64))
    }

    /// Records that packets have no queueing delay now. On a radio, hardly two packets have the same delay.
    pub(super) fn record_no_queue(&mut self, now: Instant) {
        self.base = self.base.map(|(base, _)| (base, now));
    }

    /// Returns the time since the last packet without queueing delay.
    pub(super) fn base_age(&self, now: Instant) -> Duration {
        self.base.map_or(Duration::ZERO, |(_, seen)| now.since(seen))
    }

    /// Discards the least one-way delay.
    pub(super) fn clear_base(&mut self) {
        self.base = None;
    }

    /// Returns the smoothed round-trip time, if there is a sample.
    pub(super) fn srtt(&self) -> Option<Duration> {
        self.srtt
    }

    /// Returns the mean deviation of the round-trip time.
    pub(super) fn deviation(&self) -> Duration {
        self.deviation
    }

    /// Returns the minimum round-trip time of the filter window; zero before the first sample.
    pub(super) fn min_rtt(&self) -> Duration {
        self.min_rtt.get().unwrap_or(Duration::ZERO)
    }

    /// Discards the delay estimates after a change of the path.
    pub(super) fn clear(&mut self) {
        self.min_rtt.clear();
        self.base = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn a_packet_without_queueing_has_the_least_delay_or_is_recorded_as_such() {
        let mut times = DelayEstimator::new(Duration::from_secs(10));
        let mut take = |sent: u64, delay_us: u32| {
            let now = ms(sent + 10);
            times.arrival(now, ms(sent), 1000 * sent as u32 + delay_us).1
        };
        assert_eq!(take(0, 5000), Duration::ZERO);
        assert_eq!(take(1000, 5250), Duration::from_micros(250), "the same");
        assert_eq!(take(2000, 5400), Duration::from_micros(400), "it has waited");
        assert_eq!(times.base_age(ms(2010)), Duration::from_secs(1));
        times.record_no_queue(ms(2010));
        assert_eq!(times.base_age(ms(2010)), Duration::ZERO);
        times.clear_base();
        times.record_no_queue(ms(2010));
        assert_eq!(times.arrival(ms(3010), ms(3000), 3_009_000).1, Duration::ZERO, "another path");
    }
}
