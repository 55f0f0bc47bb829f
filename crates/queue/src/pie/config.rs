//! Parameters of PIE.

use crate::packet_access::SignalAction;
use hopline_core::Duration;

/// Parameters of PIE. The optional elements of RFC 8033 §5 are off by default; [`Self::LINUX`] has those of Linux.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieConfig {
    /// QDELAY_REF: target of the queueing delay. Above 0; default 15 ms (RFC 8033 §4.2).
    pub target: Duration,
    /// T_UPDATE: interval between updates of the drop probability. Above 0; default 15 ms (§4.2).
    pub update_interval: Duration,
    /// alpha: change of the drop probability per update and second of delay above the target. At least 0; default 0.125
    /// (§4.2).
    pub alpha_hz: f64,
    /// beta: change of the drop probability per update and second by which the delay has grown. At least 0; default 1.25
    /// (§4.2).
    pub beta_hz: f64,
    /// MAX_BURST: time for which a burst enters without drops. Default 150 ms (§4.4).
    pub max_burst: Duration,
    /// MEAN_PKTSIZE in bytes: a queue of at most two such packets drops none (§4.1). Default 1024, as in RFC 8034, since
    /// RFC 8033 gives no value; Linux has the MTU and the link header, here 1514.
    pub mean_packet_bytes: u32,
    /// Action on a packet that is chosen. Default drop.
    pub action: SignalAction,
    /// MARK_ECNTH: drop probability from which on packets are dropped even if they could be marked. 0 to 1; default 0.1
    /// (§5.1).
    pub mark_threshold: f64,
    /// Measurement of the queueing delay. Default timestamps (§4.3), as in Linux.
    pub delay_estimate: DelayEstimate,
    /// Condition under which PIE acts. Default always, as in Linux.
    pub activation: Activation,
    /// Spacing of the drops. Default off; on in Linux.
    pub derandomization: Derandomization,
    /// Limit on the growth of the drop probability. Default off; on in Linux.
    pub cap_drop_adjustment: CapDropAdjustment,
}

/// Measurement of the queueing delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayEstimate {
    /// Time that the last packet to leave spent in the queue (RFC 8033 §4.3).
    Timestamps,
    /// Length of the queue divided by the rate at which it is served (§5.2).
    DequeueRate {
        /// DQ_THRESHOLD in bytes: length of a measurement, and queue at which one starts. At least 1; default 16 384.
        threshold_bytes: u32,
    },
}

/// Condition under which PIE acts (RFC 8033 §5.3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activation {
    /// Always.
    Always,
    /// From the time at which the queue has filled to a share of its capacity, until it is below this share, the drop
    /// probability is zero, and the delay is below half the target.
    AboveOccupancy {
        /// Share of the capacity. Above 0, at most 1; the RFC recommends 1/3.
        share: f64,
    },
}

/// Spacing of the drops (RFC 8033 §5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Derandomization {
    /// Each packet is chosen by itself.
    Off,
    /// No packet is chosen before the probabilities since the last drop add up to 0.85; at 8.5 one is chosen for certain.
    On,
}

/// Limit on the growth of the drop probability (RFC 8033 §5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapDropAdjustment {
    /// No limit.
    Off,
    /// At most 0.02 per update from a drop probability of 0.1 on.
    On,
}

impl PieConfig {
    /// The basic scheme of RFC 8033 §4, without the options of §5.
    pub const RFC8033: Self = Self {
        target: Duration::from_millis(15),
        update_interval: Duration::from_millis(15),
        alpha_hz: 0.125,
        beta_hz: 1.25,
        max_burst: Duration::from_millis(150),
        mean_packet_bytes: 1024,
        action: SignalAction::Drop,
        mark_threshold: 0.1,
        delay_estimate: DelayEstimate::Timestamps,
        activation: Activation::Always,
        derandomization: Derandomization::Off,
        cap_drop_adjustment: CapDropAdjustment::Off,
    };

    /// Defaults of Linux (`net/sched/sch_pie.c`, read for facts). What Linux does otherwise is in the page of PIE.
    pub const LINUX: Self = Self {
        mean_packet_bytes: 1514,
        derandomization: Derandomization::On,
        cap_drop_adjustment: CapDropAdjustment::On,
        ..Self::RFC8033
    };

    /// DQ_THRESHOLD of the RFC, in bytes (§5.2).
    pub const DEQUEUE_THRESHOLD_BYTES: u32 = 1 << 14;

    /// Checks every field against its range.
    ///
    /// # Errors
    /// Text of the requirement that the first invalid field violates.
    pub fn validate(&self) -> Result<(), &'static str> {
        let share = match self.activation {
            Activation::Always => 1.0,
            Activation::AboveOccupancy { share } => share,
        };
        let gain = |hz: f64| hz >= 0.0 && hz.is_finite();
        let rules = [
            (!self.target.is_zero(), "a target above 0"),
            (!self.update_interval.is_zero(), "an update interval above 0"),
            (gain(self.alpha_hz), "alpha of at least 0"),
            (gain(self.beta_hz), "beta of at least 0"),
            ((0.0..=1.0).contains(&self.mark_threshold), "a mark threshold from 0 to 1"),
            (share > 0.0 && share <= 1.0, "an activation share above 0 and at most 1"),
            (
                self.delay_estimate != DelayEstimate::DequeueRate { threshold_bytes: 0 },
                "a dequeue threshold of at least 1 byte",
            ),
        ];
        rules.iter().find(|(ok, _)| !ok).map_or(Ok(()), |(_, must)| Err(must))
    }

    /// Half the target, below which the delay counts as low.
    pub(super) fn half_target(&self) -> Duration {
        Duration::from_nanos(self.target.as_nanos() / 2)
    }
}
