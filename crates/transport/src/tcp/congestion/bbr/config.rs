//! Parameters of BBR.

use crate::ConfigError;
use hopline_core::{Duration, settings};

settings! {
    /// Parameters of [`CongestionControl::Bbr`](super::super::CongestionControl::Bbr). Start from [`Self::V1`] or [`Self::V3`] and use the setters.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct BbrConfig {
        /// Version of BBR. [`Self::V1`] and [`Self::V3`] have one each.
        version, with_version: BbrVersion,
        /// Largest volume in flight once the path is known, as a multiple of its bandwidth-delay product. Range 1–10,
        /// default 2.
        cwnd_gain, with_cwnd_gain: f64,
        /// Share by which the pacing rate is below the bandwidth, so that queues drain. Range 0 to below 1, default 0.01.
        pacing_margin, with_pacing_margin: f64,
        /// Time without a round trip as short as the minimum after which ProbeRTT begins. In v1 it is also the window of the
        /// minimum filter; in v3 that window is twice as long. Above 0, at most an hour; default 10 s (v1), 5 s (v3).
        probe_rtt_interval, with_probe_rtt_interval: Duration as into,
        /// Duration of ProbeRTT, at least a round trip. At most a minute, default 200 ms.
        probe_rtt_duration, with_probe_rtt_duration: Duration as into,
    }
}

/// Version of BBR, with the parameters that only that version has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BbrVersion {
    /// As Linux has it (`net/ipv4/tcp_bbr.c` of 6.x).
    V1 {
        /// Policer detection: treats a steady delivery rate with a fifth of the data lost as the rate of a policer.
        /// Default on.
        policer: PolicerDetection,
    },
    /// As draft-ietf-ccwg-bbr has it.
    V3 {
        /// Share of a flight that must be lost for the bytes in flight to be lowered: BBR.LossThresh. Range 0 to below 1,
        /// default 0.02.
        loss_threshold: f64,
        /// Least factor by which one round with losses multiplies the short-term bounds: BBR.Beta. Above 0 and at most 1,
        /// default 0.7.
        beta: f64,
        /// Share of the long-term bound that is left to competing flows between probes: BBR.Headroom. Range 0 to below 1,
        /// default 0.15.
        headroom: f64,
    },
}

/// Detection of policers (v1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicerDetection {
    /// Enabled: the sender uses the rate of a detected policer for 48 round trips.
    On,
    /// Disabled: losses have no influence on the bandwidth.
    Off,
}

impl BbrConfig {
    /// v1, as Linux.
    pub const V1: Self = Self {
        version: BbrVersion::V1 { policer: PolicerDetection::On },
        cwnd_gain: 2.0,
        pacing_margin: 0.01,
        probe_rtt_interval: Duration::from_secs(10),
        probe_rtt_duration: Duration::from_millis(200),
    };
    /// v3, as the draft.
    pub const V3: Self = Self {
        version: BbrVersion::V3 { loss_threshold: 0.02, beta: 0.7, headroom: 0.15 },
        probe_rtt_interval: Duration::from_secs(5),
        ..Self::V1
    };

    /// Checks every field against its range.
    pub(in crate::tcp) fn validate(&self) -> Result<(), ConfigError> {
        const HOUR: Duration = Duration::from_secs(3600);
        let (loss_threshold, beta, headroom) = match self.version {
            BbrVersion::V1 { .. } => (0.0, 1.0, 0.0),
            BbrVersion::V3 { loss_threshold, beta, headroom } => (loss_threshold, beta, headroom),
        };
        let share = |x: f64| (0.0..1.0).contains(&x);
        let rules: [(bool, &'static str, &'static str); 7] = [
            ((1.0..=10.0).contains(&self.cwnd_gain), "law.cwnd_gain", "1 to 10"),
            (share(self.pacing_margin), "law.pacing_margin", "0 to below 1"),
            (
                !self.probe_rtt_interval.is_zero() && self.probe_rtt_interval <= HOUR,
                "law.probe_rtt_interval",
                "above 0 and at most 3600 s",
            ),
            (self.probe_rtt_duration <= Duration::from_secs(60), "law.probe_rtt_duration", "at most 60 s"),
            (share(loss_threshold), "law.loss_threshold", "0 to below 1"),
            (beta > 0.0 && beta <= 1.0, "law.beta", "above 0 and at most 1"),
            (share(headroom), "law.headroom", "0 to below 1"),
        ];
        match rules.iter().find(|(ok, ..)| !ok) {
            Some(&(_, field, must)) => Err(ConfigError { field, requirement: must }),
            None => Ok(()),
        }
    }
}
