//! Counts and results of a round trip.

use super::super::controller::{Arrival, SendLimit};
use super::link_rate::{self, SATURATION};
use hopline_core::{Duration, Instant};

/// Least number of packets in a round trip, and of samples of the queue in half of one. Fewer give no loss rate, a flow at the least rate
/// would react to each packet, and a single packet may be late for another reason. Own choice, not swept.
pub(super) const MIN_ROUND_PACKETS: u64 = 4;

/// Measurement of the link at a new rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RateTrial {
    /// First packet sent at the new rate.
    from: u64,
    /// Its arrival, or that of the first one after it, and the bytes delivered by then.
    first: Option<(Arrival, u64)>,
}

/// Result of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TrialResult {
    /// Rate of the link, if no packets are lost before it, bytes per second.
    pub(super) link_rate: f64,
    /// `true` if the link was saturated; if not, it carries `link_rate` at least.
    pub(super) is_saturated: bool,
    /// Share of the bytes that were delivered.
    pub(super) delivered_share: f64,
    /// Number of bytes measured.
    pub(super) bytes: f64,
}

impl RateTrial {
    pub(super) const fn starting_at(from: u64) -> Self {
        Self { from, first: None }
    }

    /// Returns the result once packets over a sufficient time and with sufficient bytes have arrived. `delivered`: total
    /// of delivered bytes; `jitter`: possible error of an arrival time.
    pub(super) fn sample(
        &mut self,
        (number, arrival): (u64, Arrival),
        delivered: u64,
        (span, bytes): (Duration, f64),
        jitter: Duration,
    ) -> Option<TrialResult> {
        if number < self.from {
            return None;
        }
        let (first, before) = *self.first.get_or_insert((arrival, delivered));
        let sent = (arrival.sent_bytes - first.sent_bytes) as f64;
        if arrival.sent.since(first.sent) < span || sent < bytes {
            return None;
        }
        let jitter = jitter.saturating_mul(2);
        Some(TrialResult {
            link_rate: link_rate::max_rate_between(first, arrival, jitter)?,
            is_saturated: link_rate::is_saturated_between(first, arrival, jitter),
            delivered_share: ((delivered - before) as f64 / sent).min(1.0),
            bytes: sent,
        })
    }
}

/// Loss rate, and the rate at which the packets were sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LossEvidence {
    pub(super) loss_rate: f64,
    pub(super) sent: f64,
}

/// Losses above the baseline in the last round trip. A single one may be chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExcessLosses {
    No,
    Once,
}

/// Origin of arriving packets: sent before or after the start of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OldPacketsDrained {
    NotYet,
    Yes,
}

/// Counts of the current round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) since: Instant,
    /// Packet that ends the round trip when it is settled.
    pub(super) end: u64,
    pub(super) delivered: u64,
    pub(super) packets: u64,
    /// Shortest and longest queue.
    queues: Option<[Duration; 2]>,
    pub(super) limit: SendLimit,
}

/// Counts of the current half-round, for reactions that must not wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct HalfRound {
    pub(super) since: Instant,
    pub(super) samples: u64,
    pub(super) queue: Duration,
}

/// Results of a round trip. Rates are bytes per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundSample {
    /// Rate of the link.
    pub(super) link_rate: f64,
    /// Delivery rate.
    pub(super) delivered: f64,
    /// Sending rate.
    pub(super) sent: f64,
    /// Shortest queue.
    pub(super) queue: Duration,
}

impl RoundSample {
    /// Returns whether the rate of the link was below the sending rate.
    pub(super) fn is_saturated(&self) -> bool {
        self.link_rate < self.sent * SATURATION
    }
}

impl Round {
    pub(super) const fn new(since: Instant, end: u64) -> Self {
        Self { since, end, delivered: 0, packets: 0, queues: None, limit: SendLimit::Path }
    }
}

impl Round {
    pub(super) fn record_queue(&mut self, queue: Duration) {
        let [shortest, longest] = self.queues.unwrap_or([queue; 2]);
        self.queues = Some([shortest.min(queue), longest.max(queue)]);
    }

    /// Returns the shortest queue; none before the first sample.
    pub(super) fn shortest_queue(&self) -> Duration {
        self.queues.map_or(Duration::ZERO, |[shortest, _]| shortest)
    }

    /// Returns the longest queue; none before the first sample.
    pub(super) fn longest_queue(&self) -> Duration {
        self.queues.map_or(Duration::ZERO, |[_, longest]| longest)
    }
}

impl HalfRound {
    pub(super) const fn new(since: Instant) -> Self {
        Self { since, samples: 0, queue: Duration::from_secs(3600) }
    }

    pub(super) fn record(&mut self, queue: Duration) {
        self.samples += 1;
        self.queue = self.queue.min(queue);
    }

    /// Returns whether there are enough samples.
    pub(super) const fn has_samples(&self) -> bool {
        self.samples >= MIN_ROUND_PACKETS
    }

    pub(super) fn is_over(&self, now: Instant, srtt: Duration) -> bool {
        self.has_samples() && now.since(self.since) >= srtt / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: (Duration, f64) = (Duration::from_millis(10), 5000.0);

    /// Packet `number` of 1000 bytes, sent each millisecond, arrived each second one.
    fn arrival(number: u64) -> (u64, Arrival) {
        let at_us = number as i64 * 2000;
        (number, Arrival { sent: Instant::from_millis(number), at_us, sent_bytes: number * 1000 })
    }

    #[test]
    fn a_trial_begins_with_the_first_packet_at_the_new_rate() {
        let mut trial = RateTrial::starting_at(100);
        assert_eq!(trial.sample(arrival(99), 0, SPAN, Duration::ZERO), None);
        assert_eq!(trial.sample(arrival(100), 0, SPAN, Duration::ZERO), None);
        assert_eq!(trial.sample(arrival(109), 9000, SPAN, Duration::ZERO), None, "9 ms are too short");
        let result = trial.sample(arrival(110), 5000, SPAN, Duration::ZERO).expect("10 ms, 10 packets");
        assert!((result.link_rate - 500_000.0).abs() < 1e-3, "{result:?}");
        assert!((result.delivered_share - 0.5).abs() < 1e-3, "half has arrived: {result:?}");
        assert!(result.is_saturated);
    }

    #[test]
    fn jitter_does_not_lower_the_result_of_a_trial() {
        let mut trial = RateTrial::starting_at(0);
        trial.sample(arrival(0), 0, SPAN, Duration::ZERO);
        let result = trial.sample(arrival(10), 10_000, SPAN, Duration::from_millis(2)).expect("10 ms");
        // 20 ms less twice the jitter.
        assert!((result.link_rate - 10_000.0 / 0.016).abs() < 1e-3, "{result:?}");
    }

    #[test]
    fn a_half_round_is_over_after_half_a_round_trip_with_four_samples() {
        let (srtt, at) = (Duration::from_millis(40), Instant::from_millis);
        let mut half_round = HalfRound::new(at(0));
        for ms in [9, 3, 7] {
            half_round.record(Duration::from_millis(ms));
        }
        assert!(!half_round.is_over(at(100), srtt), "three samples");
        half_round.record(Duration::from_millis(5));
        assert!(!half_round.is_over(at(19), srtt));
        assert!(half_round.is_over(at(20), srtt));
        assert_eq!(half_round.queue, Duration::from_millis(3));
    }

    #[test]
    fn a_link_is_saturated_below_97_percent_of_the_sending_rate() {
        let sample =
            |link_rate| RoundSample { link_rate, delivered: 0.0, sent: 100.0, queue: Duration::ZERO };
        assert!(sample(96.9).is_saturated() && !sample(97.1).is_saturated());
    }
}
