//! Parameters of adaptive pacing. Unless noted otherwise, defaults are those of the authors' ns-2 code of September 2005
//! ("the authors" below), which the TCP-AP paper and the TPA study used.

use crate::ConfigError;
use hopline_core::{Duration, settings};

settings! {
    /// Parameters of [`AdaptivePacing`](super::AdaptivePacing). Start from [`Config::AUTHORS`] and use the setters.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Config {
        /// Distance in hops between nodes of a chain that can transmit at the same time. The next segment may follow when the
        /// previous one is this far away. Range 1–255, default 4, for radios with a reception range of 250 m and a carrier
        /// sense range of 550 m.
        spatial_factor, with_spatial_factor: u8,
        /// Overhead of every packet on the air, bytes: TCP, IP, MAC. It is also the length of an ACK. Range 0–10 000,
        /// default 112.
        overhead_bytes, with_overhead_bytes: u32,
        /// Rate of the links on the path, bits per second. Range 1000–10¹², default 2 Mb/s; scenarios take that of their radios.
        link_rate_bps, with_link_rate_bps: u64,
        /// Weight of the past in the average of four-hop delays: α. Range 0 to below 1, default 0.7 (TPA study, footnote 2).
        history_weight, with_history_weight: f64,
        /// Number of samples for the variability: N. Range 1–1000, default 50.
        history, with_history: u16,
        /// Measure of the contention of the medium. Default the authors'.
        variability, with_variability: Variability,
        /// Weight of the variability: K of R = 1 / (FHD·(1 + 2·K·cov)). Range 0–1000, default 1. TPA study, Eq. 3, as far as
        /// its text is legible.
        contention_factor, with_contention_factor: f64,
        /// Delay used for paths shorter than four hops. Default the authors'.
        short_paths, with_short_paths: ShortPaths,
        /// Use of duplicate ACKs of TCP as round-trip time samples. Default the authors'.
        duplicate_acks, with_duplicate_acks: DuplicateAcks,
        /// Upper limit of four-hop delay samples; larger ones are discarded. Above 0, at most 60 s, default 0.5 s.
        sample_limit, with_sample_limit: Duration as into,
        /// Queueing delay of a hop above which the smoothed value is used instead. At most 60 s, default 0.5 s.
        queueing_limit, with_queueing_limit: Duration as into,
        /// Weight of a new queueing delay in the smoothed value. Range 0.01–1, default 0.5.
        queueing_gain, with_queueing_gain: f64,
        /// Spacing before the first sample. Above 0, at most 60 s, default 0.05 s.
        initial_interval, with_initial_interval: Duration as into,
    }
}

/// Measure of the contention of the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variability {
    /// Mean absolute deviation of the four-hop delays over their mean: the authors' code.
    MadFhd,
    /// Standard deviation of the round-trip times over their mean (of the samples, not corrected for their number): the
    /// papers.
    CovRtt,
}

/// Delay used if the path has fewer than [`Config::spatial_factor`] hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShortPaths {
    /// Delay of one hop: the authors' code. The rate may then exceed the capacity of the medium, since the nodes of a
    /// path of two or three hops cannot transmit at the same time.
    OneHop,
    /// Delay of all hops of the path.
    FewerHops,
}

/// Use of duplicate ACKs of TCP as round-trip time samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DuplicateAcks {
    /// Used: the authors' code takes a sample from every ACK. In a duplicate ACK, receivers of RFC 7323 and of ns-2 echo
    /// the timestamp acknowledged last. The sample then includes the time since that, and the spacing grows with losses.
    Sampled,
    /// Not used.
    Ignored,
}

impl Config {
    /// The authors' values.
    pub const AUTHORS: Self = Self {
        spatial_factor: 4,
        overhead_bytes: 112,
        link_rate_bps: 2_000_000,
        history_weight: 0.7,
        history: 50,
        variability: Variability::MadFhd,
        contention_factor: 1.0,
        short_paths: ShortPaths::OneHop,
        duplicate_acks: DuplicateAcks::Sampled,
        sample_limit: Duration::from_millis(500),
        queueing_limit: Duration::from_millis(500),
        queueing_gain: 0.5,
        initial_interval: Duration::from_millis(50),
    };

    /// Checks every field against its range.
    ///
    /// # Errors
    /// The first field that is out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const MINUTE: Duration = Duration::from_secs(60);
        let time = |t: Duration| !t.is_zero() && t <= MINUTE;
        let rules: [(bool, &'static str, &'static str); 10] = [
            (self.spatial_factor > 0, "pacing.spatial_factor", "1 to 255 hops"),
            (self.overhead_bytes <= 10_000, "pacing.overhead_bytes", "0 to 10000 bytes"),
            (
                (1_000..=1_000_000_000_000).contains(&self.link_rate_bps),
                "pacing.link_rate_bps",
                "1000 to 10^12 bits per second",
            ),
            ((0.0..1.0).contains(&self.history_weight), "pacing.history_weight", "0 to below 1"),
            ((1..=1000).contains(&self.history), "pacing.history", "1 to 1000 samples"),
            ((0.0..=1000.0).contains(&self.contention_factor), "pacing.contention_factor", "0 to 1000"),
            (time(self.sample_limit), "pacing.sample_limit", "above 0 and at most 60 s"),
            (self.queueing_limit <= MINUTE, "pacing.queueing_limit", "at most 60 s"),
            ((0.01..=1.0).contains(&self.queueing_gain), "pacing.queueing_gain", "0.01 to 1"),
            (time(self.initial_interval), "pacing.initial_interval", "above 0 and at most 60 s"),
        ];
        match rules.iter().find(|(ok, ..)| !ok) {
            Some(&(_, field, must)) => Err(ConfigError { field, requirement: must }),
            None => Ok(()),
        }
    }
}
