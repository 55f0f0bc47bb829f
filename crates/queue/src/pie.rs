//! PIE, proportional integral controller enhanced (RFC 8033): drops or marks arriving packets with a probability that
//! follows the queueing delay and its trend.
//!
//! [`Pie`] decides and holds no packets. [`PieQueue`] calls it for each packet that arrives or leaves. The periodic update of
//! the probability needs no timer: its inputs change only if a packet arrives or leaves, so updates that have become due are
//! made then.

mod config;
mod queue;

pub use config::{Activation, CapDropAdjustment, DelayEstimate, Derandomization, PieConfig};
pub use queue::PieQueue;

use hopline_core::{Duration, Instant, RandomStream};

/// Verdict on an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieDecision {
    /// Enter.
    Enqueue,
    /// Chosen: to be marked if it is ECN-capable and marks are allowed, else dropped.
    Signal,
    /// Chosen while the drop probability is at the ECN threshold or above: dropped (RFC 8033 §5.1).
    Drop,
}

/// PIE of one queue. Fields in code style below are those of the RFC's pseudocode.
#[derive(Clone, Debug)]
pub struct Pie {
    config: PieConfig,
    random: RandomStream,
    /// Time of the next update.
    next_update: Instant,
    /// `active_`.
    state: State,
    control: Control,
    /// `accu_prob_`: sum of the drop probabilities since the last drop.
    accumulated: f64,
    delay: DelayMeasurement,
}

/// State that an update of the drop probability changes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Control {
    /// `drop_prob_`, 0 to 1.
    drop_probability: f64,
    /// `qdelay_old_`: queueing delay at the last update.
    last_delay: Duration,
    /// `burst_allowance_`.
    burst_allowance: Duration,
}

/// Activation state (§5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Inactive,
    Active,
}

/// Latest measurement of the queueing delay.
#[derive(Clone, Copy, Debug)]
enum DelayMeasurement {
    /// Queueing delay of the last packet that left, or zero since the queue became empty.
    Sojourn(Duration),
    /// Estimation of the dequeue rate (§5.2).
    Rate(DequeueRate),
}

/// Estimator of the time in which the link takes `DQ_THRESHOLD` bytes (§5.2).
#[derive(Clone, Copy, Debug)]
struct DequeueRate {
    threshold_bytes: u32,
    /// Start of the measurement and the bytes that have left since; `None`: no measurement.
    measurement: Option<(Instant, u64)>,
    /// `avg_dq_time_`: average time of a measurement.
    average: Option<Duration>,
}

impl Pie {
    /// Creates a controller of an empty queue.
    #[must_use]
    pub fn new(config: PieConfig, random: RandomStream) -> Self {
        let state = match config.activation {
            Activation::Always => State::Active,
            Activation::AboveOccupancy { .. } => State::Inactive,
        };
        Self {
            config,
            random,
            next_update: Instant::ZERO + config.update_interval,
            state,
            control: Control::reset(&config),
            accumulated: 0.0,
            delay: DelayMeasurement::new(config.delay_estimate),
        }
    }

    /// Parameters.
    #[must_use]
    pub fn config(&self) -> &PieConfig {
        &self.config
    }

    /// Drop probability, 0 to 1.
    #[must_use]
    pub fn drop_probability(&self) -> f64 {
        self.control.drop_probability
    }

    /// Time for which bursts still enter without drops (RFC 8033 §4.4).
    #[must_use]
    pub fn burst_allowance(&self) -> Duration {
        self.control.burst_allowance
    }

    /// Decides on a packet that arrives at a queue of `bytes` bytes. The share `occupancy` of its capacity is in use.
    pub fn on_arrival(&mut self, now: Instant, bytes: u64, occupancy: f64) -> PieDecision {
        self.advance(now, bytes);
        let calm = self.is_calm(bytes);
        if calm {
            // RFC 8033 §4.4.
            self.control.burst_allowance = self.config.max_burst;
        }
        let decision = self.decide(bytes);
        if let Activation::AboveOccupancy { share } = self.config.activation {
            match self.state {
                State::Inactive if occupancy >= share => self.activate(now),
                // RFC 8033 §5.3. A queue above the share would be activated again at once.
                State::Active if calm && occupancy < share => self.deactivate(),
                State::Inactive | State::Active => {}
            }
        }
        decision
    }

    /// Records that a packet of `len_bytes` bytes left after `sojourn` in the queue, which holds `left_bytes` bytes now.
    pub fn on_departure(&mut self, now: Instant, len_bytes: u32, sojourn: Duration, left_bytes: u64) {
        self.advance(now, left_bytes + u64::from(len_bytes));
        match &mut self.delay {
            DelayMeasurement::Sojourn(latest) => {
                *latest = if left_bytes == 0 { Duration::ZERO } else { sojourn };
            }
            DelayMeasurement::Rate(rate) => rate.on_departure(now, len_bytes, left_bytes),
        }
    }

    /// Records that packets were removed from the queue without being served. It held `bytes` bytes and now holds
    /// `left_bytes`.
    pub fn on_removal(&mut self, now: Instant, bytes: u64, left_bytes: u64) {
        self.advance(now, bytes);
        if let (DelayMeasurement::Sojourn(latest), 0) = (&mut self.delay, left_bytes) {
            *latest = Duration::ZERO;
        }
    }

    /// Records that a full queue refused a packet.
    pub fn on_tail_drop(&mut self) {
        self.accumulated = 0.0;
    }

    /// Chooses a packet that arrives at `bytes` bytes (§4.1, §4.4). The drop probability of an inactive PIE is zero.
    fn decide(&mut self, bytes: u64) -> PieDecision {
        let Control { drop_probability, last_delay, burst_allowance } = self.control;
        let low_delay = last_delay < self.config.half_target() && drop_probability < 0.2;
        let short = bytes <= 2 * u64::from(self.config.mean_packet_bytes);
        if !burst_allowance.is_zero() || low_delay || short {
            return PieDecision::Enqueue;
        }
        if !self.choose() {
            return PieDecision::Enqueue;
        }
        self.accumulated = 0.0;
        if drop_probability < self.config.mark_threshold { PieDecision::Signal } else { PieDecision::Drop }
    }

    fn choose(&mut self) -> bool {
        let probability = self.control.drop_probability;
        if self.config.derandomization == Derandomization::On {
            // RFC 8033 §5.4.
            self.accumulated = if probability > 0.0 { self.accumulated + probability } else { 0.0 };
            if self.accumulated < 0.85 {
                return false;
            }
            if self.accumulated >= 8.5 {
                return true;
            }
        }
        self.random.bernoulli(probability)
    }

    /// Returns whether the congestion is over (§4.4): no drops, and low delays at the last update and now.
    fn is_calm(&self, bytes: u64) -> bool {
        let Control { drop_probability, last_delay, .. } = self.control;
        let half = self.config.half_target();
        drop_probability == 0.0 && last_delay < half && self.delay.current(bytes) < half
    }

    fn activate(&mut self, now: Instant) {
        // RFC 8033 §5.3 and appendix B. The average dequeue time restarts too, since the rate may have changed.
        self.state = State::Active;
        self.control = Control::reset(&self.config);
        self.accumulated = 0.0;
        self.next_update = now + self.config.update_interval;
        if let DelayMeasurement::Rate(rate) = &mut self.delay {
            rate.average = None;
            rate.measurement = Some((now, 0));
        }
    }

    fn deactivate(&mut self) {
        self.state = State::Inactive;
        if let DelayMeasurement::Rate(rate) = &mut self.delay {
            rate.measurement = None;
        }
    }

    /// Makes all updates that are due by `now`, while the queue held `bytes` bytes.
    fn advance(&mut self, now: Instant, bytes: u64) {
        while self.next_update <= now {
            let before = self.control;
            if self.state == State::Active {
                let delay = self.delay.current(bytes);
                self.control.update(&self.config, delay);
            }
            self.next_update += self.config.update_interval;
            // The next packet restores the burst allowance of a calm queue.
            let same = Control { burst_allowance: self.control.burst_allowance, ..before } == self.control;
            if self.control == before || same && self.is_calm(bytes) {
                // All further updates have the same input and the same result.
                self.skip_updates(now);
            }
        }
    }

    /// Moves the next update beyond `now`, by whole intervals.
    fn skip_updates(&mut self, now: Instant) {
        if self.next_update <= now {
            let interval = self.config.update_interval.as_nanos();
            let missed = now.since(self.next_update).as_nanos() / interval + 1;
            self.next_update += self.config.update_interval.saturating_mul(missed);
        }
    }
}

impl Control {
    fn reset(config: &PieConfig) -> Self {
        Self { drop_probability: 0.0, last_delay: Duration::ZERO, burst_allowance: config.max_burst }
    }

    /// Updates the drop probability and the burst allowance (§4.2, §4.4).
    fn update(&mut self, config: &PieConfig, delay: Duration) {
        let before = self.last_delay;
        let mut probability = self.drop_probability + self.adjustment(config, delay);
        if delay.is_zero() && before.is_zero() {
            // RFC 8033 §4.2: exponential decay once the congestion is over.
            probability *= 0.98;
        }
        self.drop_probability = probability.clamp(0.0, 1.0);
        self.last_delay = delay;
        self.burst_allowance = self.burst_allowance.saturating_sub(config.update_interval);
    }

    /// Returns the change of the drop probability (§4.2, §5.5).
    fn adjustment(&self, config: &PieConfig, delay: Duration) -> f64 {
        let delay = delay.as_secs_f64();
        let error = config.alpha_hz * (delay - config.target.as_secs_f64());
        let trend = config.beta_hz * (delay - self.last_delay.as_secs_f64());
        let change = (error + trend) * auto_tuning(self.drop_probability);
        if config.cap_drop_adjustment == CapDropAdjustment::On && self.drop_probability >= 0.1 {
            change.min(0.02)
        } else {
            change
        }
    }
}

/// Returns the factor by which the gains are reduced at a drop probability (§4.2).
fn auto_tuning(drop_probability: f64) -> f64 {
    const STEPS: [(f64, f64); 6] =
        [(0.000_001, 2048.0), (0.000_01, 512.0), (0.000_1, 128.0), (0.001, 32.0), (0.01, 8.0), (0.1, 2.0)];
    STEPS.iter().find(|(below, _)| drop_probability < *below).map_or(1.0, |(_, divisor)| 1.0 / divisor)
}

impl DelayMeasurement {
    fn new(estimate: DelayEstimate) -> Self {
        match estimate {
            DelayEstimate::Timestamps => Self::Sojourn(Duration::ZERO),
            DelayEstimate::DequeueRate { threshold_bytes } => {
                Self::Rate(DequeueRate { threshold_bytes, measurement: None, average: None })
            }
        }
    }

    /// Returns the queueing delay at a queue of `bytes` bytes.
    fn current(&self, bytes: u64) -> Duration {
        match self {
            Self::Sojourn(latest) => *latest,
            Self::Rate(rate) => rate.delay(bytes),
        }
    }
}

impl DequeueRate {
    /// Zero before the first measurement.
    fn delay(&self, bytes: u64) -> Duration {
        let time = self.average.map_or(0.0, Duration::as_secs_f64);
        Duration::from_secs_f64(bytes as f64 * time / f64::from(self.threshold_bytes))
    }

    fn on_departure(&mut self, now: Instant, len_bytes: u32, left_bytes: u64) {
        let threshold = u64::from(self.threshold_bytes);
        if let Some((start, left)) = &mut self.measurement {
            *left += u64::from(len_bytes);
            if *left < threshold {
                return;
            }
            // RFC 8033 §5.2 and appendix B: weight DQ_THRESHOLD / 2^16. The time counts for the bytes that left, which
            // may be more than the threshold by a part of a packet.
            let time = now.since(*start).as_secs_f64() * threshold as f64 / *left as f64;
            let weight = (threshold as f64 / 65_536.0).min(1.0);
            let average = self.average.map_or(time, |old| weight * time + (1.0 - weight) * old.as_secs_f64());
            self.average = Some(Duration::from_secs_f64(average));
            self.measurement = None;
        }
        if self.measurement.is_none() && left_bytes >= threshold {
            self.measurement = Some((now, 0));
        }
    }
}

#[cfg(test)]
mod tests;
