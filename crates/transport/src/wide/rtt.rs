//! Round-trip times (RFC 6298, RFC 9002 §5), and queueing delays on the way to the peer.

use hopline_core::{Duration, Instant};

/// Difference of one-way delays up to which they count as equal.
pub(super) const SAME: Duration = Duration::from_micros(300);

/// Minimum of the current and the previous period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Least<T> {
    span: Duration,
    since: Option<Instant>,
    now: Option<T>,
    before: Option<T>,
}

impl<T: Copy + Ord> Least<T> {
    /// Creates a filter over at least `span`, and at most twice as long.
    pub(super) const fn over(span: Duration) -> Self {
        Self { span, since: None, now: None, before: None }
    }

    pub(super) fn sample(&mut self, now: Instant, value: T) {
        if self.since.is_none_or(|since| now.since(since) >= self.span) {
            self.before = self.now.take();
            self.since = Some(now);
        }
        self.now = Some(self.now.map_or(value, |least| least.min(value)));
    }

    pub(super) fn get(&self) -> Option<T> {
        [self.now, self.before].into_iter().flatten().min()
    }

    pub(super) fn forget(&mut self) {
        *self = Self::over(self.span);
    }
}

/// Delay estimates of the path.
#[derive(Clone, Debug)]
pub(super) struct Times {
    srtt: Option<Duration>,
    deviation: Duration,
    least: Least<Duration>,
    /// Least one-way delay, by two clocks, microseconds; only differences from it have a meaning. Time at which it was
    /// last seen.
    base: Option<(i64, Instant)>,
    /// Last arrival stamp, to unwrap the following ones.
    stamp: Option<(u32, i64)>,
}

impl Times {
    pub(super) const fn new(memory: Duration) -> Self {
        Self { srtt: None, deviation: Duration::ZERO, least: Least::over(memory), base: None, stamp: None }
    }

    /// Adds a round-trip time sample of `whole`, of which `held` was the delay at the peer.
    pub(super) fn sample(&mut self, now: Instant, whole: Duration, held: Duration) {
        self.least.sample(now, whole.saturating_sub(held).max(Duration::from_nanos(1)));
        let rtt = whole.saturating_sub(held).max(self.least());
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
        let at = match self.stamp {
            None => i64::from(stamp),
            Some((last, at)) => at + i64::from(stamp.wrapping_sub(last) as i32),
        };
        self.stamp = Some((stamp, at));
        let delay = at - (sent.as_nanos() / 1000) as i64;
        let same = (SAME.as_nanos() / 1000) as i64;
        let base = match self.base {
            Some((base, seen)) if delay > base => (base, if delay <= base + same { now } else { seen }),
            _ => (delay, now),
        };
        self.base = Some(base);
        (at, Duration::from_micros((delay - base.0) as u64))
    }

    /// Records that packets have no queueing delay now. On a radio, hardly two packets have the same delay.
    pub(super) fn saw_base(&mut self, now: Instant) {
        self.base = self.base.map(|(base, _)| (base, now));
    }

    /// Returns the time since the last packet without queueing delay.
    pub(super) fn base_age(&self, now: Instant) -> Duration {
        self.base.map_or(Duration::ZERO, |(_, seen)| now.since(seen))
    }

    /// Discards the least one-way delay.
    pub(super) fn forget_base(&mut self) {
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
    pub(super) fn least(&self) -> Duration {
        self.least.get().unwrap_or(Duration::ZERO)
    }

    /// Discards the delay estimates after a change of the path.
    pub(super) fn forget(&mut self) {
        self.least.forget();
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
    fn a_packet_that_has_not_waited_is_as_quick_as_the_quickest_or_said_to_be() {
        let mut times = Times::new(Duration::from_secs(10));
        let mut take = |sent: u64, delay_us: u32| {
            let now = ms(sent + 10);
            times.arrival(now, ms(sent), 1000 * sent as u32 + delay_us).1
        };
        assert_eq!(take(0, 5000), Duration::ZERO);
        assert_eq!(take(1000, 5250), Duration::from_micros(250), "the same");
        assert_eq!(take(2000, 5400), Duration::from_micros(400), "it has waited");
        assert_eq!(times.base_age(ms(2010)), Duration::from_secs(1));
        times.saw_base(ms(2010));
        assert_eq!(times.base_age(ms(2010)), Duration::ZERO);
        times.forget_base();
        times.saw_base(ms(2010));
        assert_eq!(times.arrival(ms(3010), ms(3000), 3_009_000).1, Duration::ZERO, "another path");
    }
}
