//! Pacing of the segments that a window allows: adaptive pacing for multi-hop radio paths, or a rate ([`RatePacing`]) set
//! by congestion control.
//!
//! Adaptive pacing (TCP-AP): S. ElRakabawy, A. Klemm, C. Lindemann, "TCP with Adaptive Pacing for Multihop Wireless
//! Networks", MobiHoc 2005; its parameters and details after the authors' ns-2 code. TCP and TPA use it alike.
//!
//! Only nodes four hops apart can transmit at the same time. Segments within the window are therefore spaced by the time
//! that a segment needs for four hops, stretched according to the contention of the medium. [`AdaptivePacing`] estimates
//! that spacing from round-trip times and the length of the path, and returns the release time of the next segment. The
//! endpoint chooses the segment, and stops and resumes pacing.
//!
//! The arithmetic uses `+ - * /` and square root on `f64` and whole nanoseconds: by IEEE 754 the results are equal on
//! every machine.

mod config;
mod history;
mod rate;

#[cfg(test)]
mod tests;

pub use config::{Config, DuplicateAcks, ShortPaths, Variability};
pub use rate::RatePacing;

use crate::ConfigError;
use core::num::NonZeroU8;
use history::SampleHistory;
use hopline_core::{Duration, Instant};

/// Pacing of the segments that a window allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// None: segments within the window are sent at once.
    None,
    /// Spacing by the four-hop delay and the contention of the path (TCP-AP, TPA-AP). Needs a network layer that reports
    /// the [length of the path](crate::Signal::PathLength); until then, the spacing is [`Config::initial_interval`].
    Adaptive(Config),
}

impl Pacing {
    /// Creates the state of adaptive pacing, if it is configured.
    pub(crate) fn new_state(self) -> Option<Box<AdaptivePacing>> {
        match self {
            Self::None => None,
            Self::Adaptive(config) => Some(Box::new(AdaptivePacing::new(config))),
        }
    }

    /// Checks every parameter against its range.
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::None => Ok(()),
            Self::Adaptive(config) => config.validate(),
        }
    }
}

/// State of the pacing of an endpoint.
#[derive(Clone, Debug)]
pub(crate) enum Pacer {
    /// Adaptive pacing, by the round-trip times of the path.
    Adaptive(AdaptivePacing),
    /// Rate-based pacing, at the rate set by congestion control.
    Rate(RatePacing),
}

impl Pacer {
    /// Returns the release time of a segment of `len` data bytes: `now` if it need not wait, [`Instant::FAR_FUTURE`]
    /// while pacing is stopped.
    pub(crate) fn release_time(&self, now: Instant, len: u64) -> Instant {
        match self {
            Self::Adaptive(pacing) => pacing.release_time(now),
            Self::Rate(pacing) => pacing.release_time(now, len),
        }
    }

    /// Records the release of a segment of `len` data bytes.
    pub(crate) fn on_released(&mut self, now: Instant, len: u64) {
        match self {
            Self::Adaptive(pacing) => pacing.on_released(now),
            Self::Rate(pacing) => pacing.on_released(now, len),
        }
    }

    /// Returns the state of adaptive pacing, if it is in use.
    pub(crate) fn adaptive(&mut self) -> Option<&mut AdaptivePacing> {
        match self {
            Self::Adaptive(pacing) => Some(pacing),
            Self::Rate(_) => None,
        }
    }

    /// Returns the state of rate-based pacing, if it is in use.
    pub(crate) fn rate(&mut self) -> Option<&mut RatePacing> {
        match self {
            Self::Rate(pacing) => Some(pacing),
            Self::Adaptive(_) => None,
        }
    }
}

/// Spacing of segments on one path, and the clock that releases them.
///
/// # Example
///
/// ```
/// use hopline_core::{Duration, Instant};
/// use hopline_transport::pacing::{AdaptivePacing, Config};
///
/// let mut pacing = AdaptivePacing::new(Config::AUTHORS);
/// pacing.set_hops(6);
/// for _ in 0..10 {
///     pacing.on_rtt_sample(Duration::from_millis(120), 1460);
/// }
/// let now = Instant::from_secs(1);
/// pacing.on_released(now);
/// assert_eq!(pacing.release_time(now), now + pacing.interval());
/// ```
#[derive(Clone, Debug)]
pub struct AdaptivePacing {
    config: Config,
    /// Number of hops to the peer, if known.
    hops: Option<NonZeroU8>,
    /// Average four-hop delay, nanoseconds; `None` before the first sample.
    mean_fhd: Option<f64>,
    /// Smoothed queueing delay per hop, nanoseconds.
    smoothed_queueing_delay: Option<f64>,
    history: SampleHistory,
    interval: Duration,
    release: ReleaseState,
}

/// State of the release of the next segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReleaseState {
    /// It may be sent at once.
    Ready,
    /// It may be sent at this time.
    Due(Instant),
    /// One segment, a retransmission, may be sent at once; none after it.
    RetransmitOnly,
    /// None may be sent.
    Stopped,
}

impl AdaptivePacing {
    /// Creates the state without samples; the first segment is sent at once. `config` must be [valid](Config::validate).
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            hops: None,
            mean_fhd: None,
            smoothed_queueing_delay: None,
            history: SampleHistory::new(config.history),
            interval: config.initial_interval,
            release: ReleaseState::Ready,
        }
    }

    /// Returns the parameters.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the spacing: 1/R.
    #[must_use]
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Returns the average four-hop delay; `None` before the first sample.
    #[must_use]
    pub fn four_hop_delay(&self) -> Option<Duration> {
        self.mean_fhd.map(|ns| Duration::from_nanos(ns as u64))
    }

    /// Returns the measured contention: the coefficient that [`Config::variability`] chooses. 0 before the second sample.
    #[must_use]
    pub fn variability(&self) -> f64 {
        match self.config.variability {
            Variability::MadFhd => self.history.mean_absolute_deviation(),
            Variability::CovRtt => self.history.coefficient_of_variation(),
        }
    }

    /// Sets the number of hops to the peer, over which its last acknowledgment came. 0 means unknown and changes nothing.
    pub fn set_hops(&mut self, hops: u8) {
        self.hops = NonZeroU8::new(hops).or(self.hops);
    }

    /// Adds a round-trip time sample, from the sending of a segment with `data_bytes` to the arrival of its
    /// acknowledgment. A sample before the path length is known, or with a four-hop delay above the limit, is ignored. A
    /// release time that is already set stays; the new spacing applies from the next segment on.
    pub fn on_rtt_sample(&mut self, round_trip: Duration, data_bytes: u32) {
        let Some(hops) = self.hops else { return };
        let delay = self.fhd_sample(round_trip, hops.get(), data_bytes);
        if !(delay > 0.0 && delay < nanos(self.config.sample_limit)) {
            return;
        }
        let weight = self.config.history_weight;
        let average = self.mean_fhd.map_or(delay, |average| weight * average + (1.0 - weight) * delay);
        self.mean_fhd = Some(average);
        self.history.push(match self.config.variability {
            Variability::MadFhd => delay as u64,
            Variability::CovRtt => round_trip.as_nanos(),
        });
        let stretch = 1.0 + 2.0 * self.config.contention_factor * self.variability(); // TPA §5.2, Eqs 2 and 3
        self.interval = Duration::from_nanos((average * stretch) as u64);
    }

    /// Returns the release time of the next segment: `now` if it need not wait, [`Instant::FAR_FUTURE`] while pacing is
    /// stopped.
    #[must_use]
    pub fn release_time(&self, now: Instant) -> Instant {
        match self.release {
            ReleaseState::Stopped => Instant::FAR_FUTURE,
            ReleaseState::Due(at) if at > now => at,
            ReleaseState::Ready | ReleaseState::Due(_) | ReleaseState::RetransmitOnly => now,
        }
    }

    /// Records the release of a segment.
    pub fn on_released(&mut self, now: Instant) {
        self.release = match self.release {
            ReleaseState::Ready | ReleaseState::Due(_) => ReleaseState::Due(now + self.interval),
            ReleaseState::RetransmitOnly | ReleaseState::Stopped => ReleaseState::Stopped,
        };
    }

    /// Stops pacing after a loss: one segment, the retransmission, may be sent at once, and no other until
    /// [`resume`](Self::resume). The estimates of the path are kept.
    pub fn stop(&mut self) {
        self.release = ReleaseState::RetransmitOnly;
    }

    /// Resumes pacing with a segment that is sent at once. Does nothing if pacing is not stopped.
    pub fn resume(&mut self) {
        if matches!(self.release, ReleaseState::RetransmitOnly | ReleaseState::Stopped) {
            self.release = ReleaseState::Ready;
        }
    }

    /// Returns the four-hop delay of a round-trip time sample, nanoseconds. It is negative if the assumed path is wrong.
    fn fhd_sample(&mut self, round_trip: Duration, hops: u8, data_bytes: u32) -> f64 {
        let air = |bytes: f64| bytes * 8e9 / self.config.link_rate_bps as f64;
        let ack = air(f64::from(self.config.overhead_bytes));
        let data = air(f64::from(data_bytes) + f64::from(self.config.overhead_bytes));
        // A round trip is `hops` times data and ACK on the air, each after waiting equally long.
        let queueing = self.smooth_queueing_delay(0.5 * (nanos(round_trip) / f64::from(hops) - (data + ack)));
        let one_hop = queueing + data;
        match self.config.short_paths {
            ShortPaths::OneHop if hops < self.config.spatial_factor => one_hop,
            ShortPaths::OneHop | ShortPaths::FewerHops => {
                one_hop * f64::from(hops.min(self.config.spatial_factor))
            }
        }
    }

    /// Updates the smoothed queueing delay with `measured`. Returns the value to use.
    fn smooth_queueing_delay(&mut self, measured: f64) -> f64 {
        let gain = self.config.queueing_gain;
        let smoothed =
            self.smoothed_queueing_delay.map_or(measured, |old| (1.0 - gain) * old + gain * measured);
        self.smoothed_queueing_delay = Some(smoothed);
        if measured > nanos(self.config.queueing_limit) { smoothed } else { measured }
    }
}

fn nanos(time: Duration) -> f64 {
    time.as_nanos() as f64
}
