//! Random early detection (Floyd and Jacobson 1993): signals congestion before the queue is full.
//!
//! [`Red`] decides and holds no packets; [`InterfaceQueue`](crate::InterfaceQueue) calls it for each arriving packet.

use crate::packet_access::SignalAction;
use hopline_core::{Duration, Instant, RandomStream};

/// Parameters of RED.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// `minth`: average queue below which no packet is dropped, in packets. At least 0 and below `max_threshold`; default 5.
    pub min_threshold: f64,
    /// `maxth`: average queue from which on all packets are dropped, or with [`Gentle::On`] more than `max_probability`; in
    /// packets. Default 15.
    pub max_threshold: f64,
    /// `wq`: weight of the present queue in the average. Above 0, at most 1; default 0.002.
    pub weight: f64,
    /// `maxp`: drop probability as the average reaches `max_threshold`. Above 0, at most 1; default 0.02, as in the paper
    /// (1/50); later advice is 0.1.
    pub max_probability: f64,
    /// Unit of the queue length. Default packets.
    pub measure: Measure,
    /// Drops from `max_threshold` on. Default all packets are dropped.
    pub gentle: Gentle,
    /// Behaviour of the average while the queue is empty. Default it decays.
    pub idle: IdlePolicy,
    /// Action on a packet that is chosen. Default drop. Above `max_threshold`, packets are dropped even if they could be
    /// marked (RFC 3168 §7).
    pub action: SignalAction,
}

/// Unit of the queue length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Packets, whatever their length.
    Packets,
    /// Bytes, in units of a packet of this length. Long packets are more likely to be dropped (the paper's §4).
    Bytes {
        /// Length of the unit, bytes. At least 1; default 1000.
        packet_bytes: u32,
    },
}

/// Drops above `max_threshold`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gentle {
    /// All packets are dropped.
    Off,
    /// The probability rises from `max_probability` to 1 at twice `max_threshold` (Floyd 2000, "gentle RED").
    On,
}

/// Behaviour of the average while the queue is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdlePolicy {
    /// Kept: the next arrival continues from the last value.
    Keep,
    /// Decayed as if an empty queue had been seen once in this time, the transmission time of a small packet (the paper's
    /// §4).
    Decay {
        /// Transmission time of a small packet on the link. Above zero.
        packet_time: Duration,
    },
}

impl RedConfig {
    /// Parameters of Floyd and Jacobson's simulations, in packets.
    pub const PAPER: Self = Self {
        min_threshold: 5.0,
        max_threshold: 15.0,
        weight: 0.002,
        max_probability: 0.02,
        measure: Measure::Packets,
        gentle: Gentle::Off,
        idle: IdlePolicy::Decay { packet_time: Duration::from_millis(1) },
        action: SignalAction::Drop,
    };

    /// Checks every field against its range.
    ///
    /// # Errors
    /// Text of the requirement that the first invalid field violates.
    pub fn validate(&self) -> Result<(), &'static str> {
        let share = |p: f64| p > 0.0 && p <= 1.0;
        let rules = [
            (
                self.min_threshold >= 0.0 && self.min_threshold < self.max_threshold,
                "min_threshold < max_threshold",
            ),
            (self.max_threshold.is_finite(), "max_threshold is a number"),
            (share(self.weight), "weight above 0 and at most 1"),
            (share(self.max_probability), "max_probability above 0 and at most 1"),
            (self.measure != Measure::Bytes { packet_bytes: 0 }, "packet_bytes at least 1"),
            (self.idle != IdlePolicy::Decay { packet_time: Duration::ZERO }, "packet_time above 0"),
        ];
        rules.iter().find(|(ok, _)| !ok).map_or(Ok(()), |(_, must)| Err(must))
    }
}

/// Verdict on an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedDecision {
    /// Enter.
    Enqueue,
    /// Chosen: to be marked, or dropped.
    Signal,
    /// Dropped, whatever the action.
    Drop,
}

/// RED of one queue.
#[derive(Clone, Debug)]
pub struct Red {
    config: RedConfig,
    random: RandomStream,
    /// `avg`, packets.
    average: f64,
    spacing: DropSpacing,
    /// Time at which the queue became empty, or at which a packet last found it empty.
    empty_since: Instant,
}

impl Red {
    /// A controller of an empty queue.
    #[must_use]
    pub fn new(config: RedConfig, random: RandomStream) -> Self {
        Self { config, random, average: 0.0, spacing: DropSpacing::default(), empty_since: Instant::ZERO }
    }

    /// Parameters.
    #[must_use]
    pub fn config(&self) -> &RedConfig {
        &self.config
    }

    /// The average queue, in packets.
    #[must_use]
    pub fn average(&self) -> f64 {
        self.average
    }

    /// Decides on a packet of `len_bytes` that arrives at a queue of `packets` packets and `bytes` bytes.
    pub fn on_arrival(&mut self, now: Instant, len_bytes: u32, packets: usize, bytes: u64) -> RedDecision {
        self.update_average(now, packets, bytes);
        let RedConfig { min_threshold, max_threshold, max_probability, gentle, .. } = self.config;
        let above = self.average - max_threshold;
        let probability = if self.average < min_threshold {
            self.spacing.reset();
            return RedDecision::Enqueue;
        } else if above < 0.0 {
            max_probability * (self.average - min_threshold) / (max_threshold - min_threshold)
        } else if gentle == Gentle::On && above < max_threshold {
            max_probability + (1.0 - max_probability) * above / max_threshold
        } else {
            self.spacing.record_chosen();
            return RedDecision::Drop;
        };
        let probability = match self.config.measure {
            Measure::Packets => probability,
            Measure::Bytes { packet_bytes } => probability * f64::from(len_bytes) / f64::from(packet_bytes),
        };
        self.spacing.choose(probability, &mut self.random)
    }

    /// Records that the queue has become empty.
    pub fn on_empty(&mut self, now: Instant) {
        self.empty_since = now;
    }

    fn update_average(&mut self, now: Instant, packets: usize, bytes: u64) {
        let weight = self.config.weight;
        if let (0, IdlePolicy::Decay { packet_time }) = (packets, self.config.idle) {
            let missed = now.since(self.empty_since).as_secs_f64() / packet_time.as_secs_f64();
            self.average *= libm::pow(1.0 - weight, missed);
            self.empty_since = now;
            return;
        }
        let queue = match self.config.measure {
            Measure::Packets => packets as f64,
            Measure::Bytes { packet_bytes } => bytes as f64 / f64::from(packet_bytes),
        };
        self.average += weight * (queue - self.average);
    }
}

/// Spaces the chosen packets evenly.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DropSpacing {
    /// Packets since the last chosen one; `None`: no packet was subject to the choice since.
    count: Option<u32>,
}

impl DropSpacing {
    /// Resets the count: no packet is subject to the choice.
    pub(crate) fn reset(&mut self) {
        self.count = None;
    }

    /// Records that a packet was chosen in another way.
    pub(crate) fn record_chosen(&mut self) {
        self.count = Some(0);
    }

    /// Decides with `pa = pb / (1 - count · pb)`; chooses for certain if the denominator is not positive.
    pub(crate) fn choose(&mut self, pb: f64, random: &mut RandomStream) -> RedDecision {
        let count = self.count.map_or(0, |count| count.saturating_add(1));
        let left = 1.0 - f64::from(count) * pb;
        let pa = if left > pb { pb / left } else { 1.0 };
        if pb > 0.0 && random.bernoulli(pa) {
            self.count = Some(0);
            RedDecision::Signal
        } else {
            self.count = Some(count);
            RedDecision::Enqueue
        }
    }
}

#[cfg(test)]
mod tests;
