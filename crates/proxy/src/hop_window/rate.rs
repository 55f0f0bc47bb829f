//! Estimators of the last hop's rate, bursts and round-trip time.

use hopline_core::{Duration, Instant};

/// Windowed maximum of the rate, bytes per second.
///
/// The window advances only with samples of a busy hop: the rate of a sender with little data does not show
/// the capacity of the hop.
#[derive(Debug)]
pub(super) struct WindowedMax {
    period_start: Instant,
    current: f64,
    previous: f64,
}

/// Minimum time for which a rate counts; the maximum is twice as long.
const MAX_WINDOW: Duration = Duration::from_millis(500);

impl WindowedMax {
    pub(super) const fn new(now: Instant) -> Self {
        Self { period_start: now, current: 0.0, previous: 0.0 }
    }

    pub(super) fn sample(&mut self, now: Instant, rate: f64, busy: bool) {
        if busy && now.since(self.period_start) >= MAX_WINDOW {
            (self.previous, self.current, self.period_start) = (self.current, 0.0, now);
        }
        self.current = self.current.max(rate);
    }

    pub(super) const fn get(&self) -> f64 {
        self.current.max(self.previous)
    }
}

/// Estimator of burst size: bytes beyond its rate that a hop delivers at once, as radios do that aggregate,
/// take turns or repair in order. To keep such a hop busy, the window needs as much room beyond the
/// bandwidth-delay product (BBRv3, draft-ietf-ccwg-bbr, `extra_acked`).
///
/// If the window is smaller than the bursts of the hop, each burst is as large as the window, which therefore
/// grows until it suffices.
#[derive(Debug)]
pub(super) struct BurstEstimator {
    largest: WindowedMax,
    /// Time since which the hop has delivered more than its rate carries, and the bytes delivered since.
    burst_start: Instant,
    burst_bytes: u64,
    /// Rate against which bursts were measured.
    rate: f64,
}

/// Growth of the rate after which bursts are measured anew: they were overestimated.
const RESET_GROWTH: f64 = 1.05;
/// Longest time that a burst makes up for: a hop that delivers more at once had an outage.
const MAX_BURST_DURATION: Duration = Duration::from_millis(100);

impl BurstEstimator {
    pub(super) const fn new(now: Instant) -> Self {
        Self { largest: WindowedMax::new(now), burst_start: now, burst_bytes: 0, rate: 0.0 }
    }

    /// Records the arrival of `bytes` over a hop of this rate.
    pub(super) fn sample(&mut self, now: Instant, bytes: u64, rate: f64) {
        if rate > RESET_GROWTH * self.rate {
            *self = Self { rate, ..Self::new(now) };
        }
        let expected = rate * now.since(self.burst_start).as_secs_f64();
        if self.burst_bytes as f64 <= expected {
            (self.burst_start, self.burst_bytes) = (now, 0);
        }
        self.burst_bytes += bytes;
        let beyond = self.burst_bytes as f64 - rate * now.since(self.burst_start).as_secs_f64();
        self.largest.sample(now, beyond.min(rate * MAX_BURST_DURATION.as_secs_f64()), true);
    }

    /// Returns the largest recent burst, bytes.
    pub(super) const fn largest(&self) -> f64 {
        self.largest.get()
    }
}

/// Windowed minimum of the round-trip time, and its probing: a busy hop does not show it by itself.
#[derive(Debug)]
pub(super) struct MinRttEstimator {
    min_rtt: Option<Duration>,
    sampled_at: Instant,
    /// Time since which the window is reduced, so that the next sample is of an empty queue.
    probing_since: Option<Instant>,
}

/// Time for which a minimum counts before it is probed again.
const MIN_RTT_LIFETIME: Duration = Duration::from_secs(10);
/// Maximum duration of a probe.
const MAX_PROBE_DURATION: Duration = Duration::from_secs(1);

impl MinRttEstimator {
    pub(super) const fn new(now: Instant) -> Self {
        Self { min_rtt: None, sampled_at: now, probing_since: None }
    }

    /// Records a sample. `alone`: hardly anything was in flight before it.
    pub(super) fn sample(&mut self, now: Instant, took: Duration, alone: bool) {
        let is_shorter = self.min_rtt.is_none_or(|known| took <= known);
        let is_over = self.probing_since.is_some_and(|since| alone || now.since(since) >= MAX_PROBE_DURATION);
        if is_shorter || is_over {
            (self.min_rtt, self.sampled_at, self.probing_since) = (Some(took), now, None);
        } else if self.probing_since.is_none() && now.since(self.sampled_at) >= MIN_RTT_LIFETIME {
            self.probing_since = Some(now);
        }
    }

    pub(super) const fn get(&self) -> Option<Duration> {
        self.min_rtt
    }

    pub(super) const fn is_probing(&self) -> bool {
        self.probing_since.is_some()
    }
}
