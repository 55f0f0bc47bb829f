//! Rate of the path: packet numbers over the time of their arrivals.
//!
//! Packets lost behind the bottleneck have used it. The span of numbers between two arrivals, and not the number of
//! packets that arrived, divided by the time between them is therefore the rate of the bottleneck, whatever was lost.

use super::super::controller::Arrival;
use hopline_core::Duration;
use std::collections::VecDeque;

/// Ratio of the rate of the link to the sending rate below which the link is saturated. Three hundredths are one packet in half a round trip
/// of 33. With 0.98 a flow beside CUBIC with a queue of four products has 3.5 in place of 5.9 Mb/s.
pub(super) const SATURATION: f64 = 0.97;

/// Recent arrivals.
#[derive(Clone, Debug, Default)]
pub(super) struct LinkRateSampler {
    arrivals: VecDeque<Arrival>,
}

/// Largest number of arrivals kept: a bound of the memory, 100 KB. At four packets an arrival, half a round trip of 16,000
/// packets is measured in full. Own choice.
const MAX_ARRIVALS: usize = 4096;

impl LinkRateSampler {
    /// Records an arrival. Returns the rate over at least `span`, bytes per second, if the arrivals go back that far.
    pub(super) fn sample(&mut self, arrival: Arrival, span: Duration) -> Option<f64> {
        if self
            .arrivals
            .back()
            .is_some_and(|last| arrival.sent_bytes <= last.sent_bytes || arrival.at_us < last.at_us)
        {
            return None;
        }
        // The one that comes just before the span begins is the first that counts.
        let begin = arrival.at_us - span.as_micros() as i64;
        while self.arrivals.len() > 1
            && (self.arrivals[1].at_us <= begin || self.arrivals.len() >= MAX_ARRIVALS)
        {
            self.arrivals.pop_front();
        }
        self.arrivals.push_back(arrival);
        let first = self.arrivals[0];
        (first.at_us <= begin).then(|| rate_between(first, arrival)).flatten()
    }

    /// Returns whether the link was saturated during the last sample.
    pub(super) fn is_saturated(&self) -> bool {
        matches!(
            (self.arrivals.front(), self.arrivals.back()),
            (Some(&first), Some(&last)) if is_saturated_between(first, last, Duration::ZERO)
        )
    }

    /// Returns whether a packet has arrived that was sent later than the first burst.
    pub(super) fn is_beyond_burst(&self) -> bool {
        matches!((self.arrivals.front(), self.arrivals.back()), (Some(first), Some(last)) if last.sent > first.sent)
    }

    /// Returns the rate of arrival of the first burst, if it spans at least `bytes` bytes.
    pub(super) fn burst_rate(&self, bytes: f64) -> Option<f64> {
        let first = *self.arrivals.front()?;
        let last = *self.arrivals.iter().take_while(|arrival| arrival.sent == first.sent).last()?;
        ((last.sent_bytes - first.sent_bytes) as f64 >= bytes).then(|| rate_between(first, last)).flatten()
    }

    pub(super) fn clear(&mut self) {
        self.arrivals.clear();
    }
}

/// Returns whether the packets between two arrivals came at longer intervals than they were sent, since the link was saturated. A
/// pause of the sender shows at both ends. The time between the arrivals may be shorter by `less`.
pub(super) fn is_saturated_between(first: Arrival, last: Arrival, less: Duration) -> bool {
    let (arriving, leaving) = times_between(first, last, less);
    arriving * SATURATION > leaving
}

/// Returns the rate between two arrivals, bytes per second, if there was any time between them.
pub(super) fn rate_between(first: Arrival, last: Arrival) -> Option<f64> {
    max_rate_between(first, last, Duration::ZERO)
}

/// As [`rate_between`], if the time between the arrivals may be shorter by `less`.
pub(super) fn max_rate_between(first: Arrival, last: Arrival, less: Duration) -> Option<f64> {
    let (arriving, leaving) = times_between(first, last, less);
    let seconds = arriving.max(leaving);
    (seconds > 0.0).then(|| (last.sent_bytes - first.sent_bytes) as f64 / seconds)
}

/// Returns the seconds between two arrivals, and between their departures.
fn times_between(first: Arrival, last: Arrival, less: Duration) -> (f64, f64) {
    let arriving = (last.at_us - first.at_us) as f64 * 1e-6 - less.as_secs_f64();
    (arriving, last.sent.since(first.sent).as_secs_f64())
}

/// Maximum of the last `N` rounds.
#[derive(Clone, Debug)]
pub(in crate::wide) struct MaxFilter<const N: usize> {
    rounds: [f64; N],
}

impl<const N: usize> MaxFilter<N> {
    pub(in crate::wide) const fn new() -> Self {
        Self { rounds: [0.0; N] }
    }

    pub(in crate::wide) fn sample(&mut self, value: f64) {
        self.rounds[0] = self.rounds[0].max(value);
    }

    pub(in crate::wide) fn on_round(&mut self) {
        self.rounds.rotate_right(1);
        self.rounds[0] = 0.0;
    }

    /// Returns the maximum of this round and the previous one. In one round alone, few packets and some jitter may hide
    /// the rate.
    pub(in crate::wide) fn latest(&self) -> f64 {
        self.rounds[0].max(self.rounds[1])
    }

    pub(in crate::wide) fn get(&self) -> f64 {
        self.rounds.iter().fold(0.0, |a: f64, &b| a.max(b))
    }

    pub(in crate::wide) fn clear(&mut self) {
        self.rounds = [0.0; N];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_core::Instant;

    /// Packet `number` of 1000 bytes, sent at `sent_ms`, arrived at `at_ms`.
    fn arrival(number: u64, sent_ms: u64, at_ms: i64) -> Arrival {
        Arrival { sent: Instant::from_millis(sent_ms), at_us: at_ms * 1000, sent_bytes: number * 1000 }
    }

    #[test]
    fn lost_packets_count_in_the_rate_of_the_link() {
        let mut sampler = LinkRateSampler::default();
        let span = Duration::from_millis(4);
        assert_eq!(sampler.sample(arrival(1, 0, 50), span), None, "one arrival has no rate");
        assert_eq!(sampler.sample(arrival(3, 2, 52), span), None, "2 ms are too short");
        // Packets 4 to 6 were lost: six packets in 6 ms.
        let rate = sampler.sample(arrival(7, 6, 56), span).expect("long enough");
        assert!((rate - 1e6).abs() < 1.0, "{rate}");
    }

    #[test]
    fn aggregated_arrivals_do_not_exceed_the_sending_rate() {
        let rate = rate_between(arrival(0, 0, 50), arrival(10, 20, 51)).expect("some time");
        assert!((rate - 10_000.0 / 0.02).abs() < 1.0, "{rate}");
        assert_eq!(rate_between(arrival(0, 0, 50), arrival(10, 0, 50)), None);
        let at_best = max_rate_between(arrival(0, 0, 50), arrival(10, 4, 60), Duration::from_millis(5));
        assert!((at_best.expect("some time") - 10_000.0 / 0.005).abs() < 1.0);
    }

    #[test]
    fn an_arrival_out_of_order_is_ignored() {
        let mut sampler = LinkRateSampler::default();
        sampler.sample(arrival(5, 0, 50), Duration::ZERO);
        assert_eq!(sampler.sample(arrival(4, 0, 60), Duration::ZERO), None);
        assert_eq!(sampler.sample(arrival(6, 0, 49), Duration::ZERO), None);
        assert!(sampler.sample(arrival(6, 1, 51), Duration::ZERO).is_some());
    }

    #[test]
    fn the_first_burst_is_measured_alone() {
        let mut sampler = LinkRateSampler::default();
        for n in 0..4 {
            sampler.sample(arrival(n, 0, 50 + n as i64), Duration::from_secs(1));
        }
        assert!(!sampler.is_beyond_burst());
        let rate = sampler.burst_rate(3000.0).expect("three packets");
        assert!((rate - 1e6).abs() < 1.0, "{rate}");
        assert_eq!(sampler.burst_rate(3001.0), None);
        sampler.sample(arrival(9, 30, 90), Duration::from_secs(1));
        assert!(sampler.is_beyond_burst());
        assert_eq!(sampler.burst_rate(3000.0), Some(rate));
    }

    #[test]
    fn memory_is_bounded() {
        let mut sampler = LinkRateSampler::default();
        for n in 0..3 * MAX_ARRIVALS as u64 {
            sampler.sample(arrival(n, n, n as i64), Duration::from_secs(3600));
        }
        assert!(sampler.arrivals.len() <= MAX_ARRIVALS);
    }

    #[test]
    fn a_link_is_saturated_if_packets_arrive_more_slowly_than_they_were_sent() {
        let saturated = |arrives_ms, less_ms| {
            is_saturated_between(
                arrival(0, 0, 0),
                arrival(10, 100, arrives_ms),
                Duration::from_millis(less_ms),
            )
        };
        assert!(!saturated(100, 0), "as fast, or with the same pause");
        assert!(!saturated(103, 0) && saturated(104, 0));
        assert!(!saturated(120, 20), "jitter");
    }

    #[test]
    fn a_maximum_expires_after_its_rounds() {
        let mut filter = MaxFilter::<3>::new();
        filter.sample(5.0);
        filter.sample(2.0);
        assert!((filter.get() - 5.0).abs() < 1e-9 && (filter.latest() - 5.0).abs() < 1e-9);
        filter.on_round();
        filter.sample(3.0);
        assert!((filter.latest() - 5.0).abs() < 1e-9);
        filter.on_round();
        assert!((filter.latest() - 3.0).abs() < 1e-9 && (filter.get() - 5.0).abs() < 1e-9);
        filter.on_round();
        assert!((filter.get() - 3.0).abs() < 1e-9);
    }
}
