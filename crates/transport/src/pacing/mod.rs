//! When segments leave that a window allows: as far apart as a path of radios needs them (adaptive pacing), or at a rate
//! ([`RatePacing`]) that congestion control decides on.
//!
//! Adaptive pacing (TCP-AP): S. ElRakabawy, A. Klemm, C. Lindemann, "TCP with Adaptive Pacing for Multihop Wireless
//! Networks", MobiHoc 2005; its parameters and details after the authors' ns-2 code. TCP and TPA use it alike.
//!
//! Only nodes four hops apart can transmit at the same time. So the segments that the window allows do not leave at once:
//! they leave one by one, as far apart as a segment needs for four hops, stretched by how much the medium is contended for.
//! [`AdaptivePacing`] estimates that spacing from round-trip times and the length of the path, and says when the next segment
//! may leave. Which segment that is, and when pacing stops, is the endpoint's business.
//!
//! The arithmetic is `+ - * /` and square root on `f64` and whole nanoseconds: IEEE 754 makes them equal on every machine.

mod config;
mod history;
mod rate;

#[cfg(test)]
mod tests;

pub use config::{Config, DuplicateAcks, ShortPaths, Variability};
pub use rate::RatePacing;

use crate::ConfigError;
use core::num::NonZeroU8;
use history::History;
use hopline_core::{Duration, Instant};

/// How the segments that a window allows are spaced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// They are not: what the window allows leaves at once.
    None,
    /// By the four-hop delay and the contention of the path (TCP-AP, TPA-AP). It needs a network layer that [says how long
    /// the path is](crate::Signal::PathLength); until it does, the spacing is [`Config::initial_interval`].
    Adaptive(Config),
}

impl Pacing {
    /// The machine, if one is asked for.
    pub(crate) fn machine(self) -> Option<Box<AdaptivePacing>> {
        match self {
            Self::None => None,
            Self::Adaptive(config) => Some(Box::new(AdaptivePacing::new(config))),
        }
    }

    /// Whether every parameter is in its range.
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::None => Ok(()),
            Self::Adaptive(config) => config.validate(),
        }
    }
}

/// What spaces the segments of an endpoint.
#[derive(Clone, Debug)]
pub(crate) enum Pacer {
    /// The path, as its round trips tell.
    Adaptive(AdaptivePacing),
    /// The rate that congestion control says.
    Rate(RatePacing),
}

impl Pacer {
    /// When a segment of `len` data bytes may leave: `now` if it need not wait, [`Instant::FAR_FUTURE`] while pacing is stopped.
    pub(crate) fn next_release(&self, now: Instant, len: u64) -> Instant {
        match self {
            Self::Adaptive(pacing) => pacing.next_release(now),
            Self::Rate(pacing) => pacing.next_release(now, len),
        }
    }

    /// A segment of `len` data bytes left.
    pub(crate) fn released(&mut self, now: Instant, len: u64) {
        match self {
            Self::Adaptive(pacing) => pacing.released(now),
            Self::Rate(pacing) => pacing.released(now, len),
        }
    }

    /// The path's, if it is that.
    pub(crate) fn adaptive(&mut self) -> Option<&mut AdaptivePacing> {
        match self {
            Self::Adaptive(pacing) => Some(pacing),
            Self::Rate(_) => None,
        }
    }

    /// The clock of a rate, if it is that.
    pub(crate) fn rate(&mut self) -> Option<&mut RatePacing> {
        match self {
            Self::Rate(pacing) => Some(pacing),
            Self::Adaptive(_) => None,
        }
    }
}

/// The spacing of segments on one path, and the clock that releases them.
#[derive(Clone, Debug)]
pub struct AdaptivePacing {
    config: Config,
    /// Hops to the peer, once known.
    hops: Option<NonZeroU8>,
    /// Average four-hop delay, nanoseconds; `None` before the first sample.
    average: Option<f64>,
    /// Smoothed queueing delay of a hop, nanoseconds.
    queueing: Option<f64>,
    history: History,
    interval: Duration,
    clock: Clock,
}

/// When the next segment may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    /// The next one may leave at once.
    Ready,
    /// The next one may leave then.
    Due(Instant),
    /// One may leave at once, for what was lost; none after it.
    Resending,
    /// None may leave.
    Stopped,
}

impl AdaptivePacing {
    /// No sample yet; the first segment leaves at once. `config` must be [valid](Config::validate).
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            hops: None,
            average: None,
            queueing: None,
            history: History::new(config.history),
            interval: config.initial_interval,
            clock: Clock::Ready,
        }
    }

    /// The parameters.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The spacing: 1/R.
    #[must_use]
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Average four-hop delay; `None` before the first sample.
    #[must_use]
    pub fn four_hop_delay(&self) -> Option<Duration> {
        self.average.map(|ns| Duration::from_nanos(ns as u64))
    }

    /// Measured contention: the coefficient that [`Config::variability`] chooses. 0 before the second sample.
    #[must_use]
    pub fn variability(&self) -> f64 {
        match self.config.variability {
            Variability::MadFhd => self.history.mean_absolute_deviation(),
            Variability::CovRtt => self.history.coefficient_of_variation(),
        }
    }

    /// The peer is so many hops away: the hops over which its last acknowledgment came. 0 says nothing, and changes nothing.
    pub fn set_hops(&mut self, hops: u8) {
        self.hops = NonZeroU8::new(hops).or(self.hops);
    }

    /// Takes a round trip: from the departure of a segment with `data_bytes` to the arrival of its acknowledgment. Before the
    /// length of the path is known it tells nothing. One whose four-hop delay is not believable changes nothing. A segment whose time is already set keeps
    /// it; the new spacing holds from the next one on.
    pub fn sample(&mut self, round_trip: Duration, data_bytes: u32) {
        let Some(hops) = self.hops else { return };
        let delay = self.delay(round_trip, hops.get(), data_bytes);
        if !(delay > 0.0 && delay < nanos(self.config.sample_limit)) {
            return;
        }
        let weight = self.config.history_weight;
        let average = self.average.map_or(delay, |average| weight * average + (1.0 - weight) * delay);
        self.average = Some(average);
        self.history.push(match self.config.variability {
            Variability::MadFhd => delay as u64,
            Variability::CovRtt => round_trip.as_nanos(),
        });
        let stretch = 1.0 + 2.0 * self.config.contention_factor * self.variability(); // TPA §5.2, Eqs 2 and 3
        self.interval = Duration::from_nanos((average * stretch) as u64);
    }

    /// When the next segment may leave: `now` if it need not wait, [`Instant::FAR_FUTURE`] while pacing is stopped.
    #[must_use]
    pub fn next_release(&self, now: Instant) -> Instant {
        match self.clock {
            Clock::Stopped => Instant::FAR_FUTURE,
            Clock::Due(at) if at > now => at,
            Clock::Ready | Clock::Due(_) | Clock::Resending => now,
        }
    }

    /// A segment left.
    pub fn released(&mut self, now: Instant) {
        self.clock = match self.clock {
            Clock::Ready | Clock::Due(_) => Clock::Due(now + self.interval),
            Clock::Resending | Clock::Stopped => Clock::Stopped,
        };
    }

    /// A loss: one segment may leave at once, that which is resent, and no other until [`resume`](Self::resume). What was
    /// learnt about the path stays.
    pub fn stop(&mut self) {
        self.clock = Clock::Resending;
    }

    /// Segments are spaced again, beginning with one that leaves at once. Nothing changes if they already are.
    pub fn resume(&mut self) {
        if matches!(self.clock, Clock::Resending | Clock::Stopped) {
            self.clock = Clock::Ready;
        }
    }

    /// Four-hop delay that a round trip tells of, nanoseconds. It may be negative, if the path cannot be what it is taken for.
    fn delay(&mut self, round_trip: Duration, hops: u8, data_bytes: u32) -> f64 {
        let air = |bytes: f64| bytes * 8e9 / self.config.link_rate_bps as f64;
        let ack = air(f64::from(self.config.overhead_bytes));
        let data = air(f64::from(data_bytes) + f64::from(self.config.overhead_bytes));
        // A round trip is `hops` times data and ACK on the air, each after waiting equally long.
        let queueing = self.smooth(0.5 * (nanos(round_trip) / f64::from(hops) - (data + ack)));
        let one_hop = queueing + data;
        match self.config.short_paths {
            ShortPaths::OneHop if hops < self.config.spatial_factor => one_hop,
            ShortPaths::OneHop | ShortPaths::FewerHops => {
                one_hop * f64::from(hops.min(self.config.spatial_factor))
            }
        }
    }

    /// The queueing delay to go on with when `measured` is the new one.
    fn smooth(&mut self, measured: f64) -> f64 {
        let gain = self.config.queueing_gain;
        let smoothed = self.queueing.map_or(measured, |old| (1.0 - gain) * old + gain * measured);
        self.queueing = Some(smoothed);
        if measured > nanos(self.config.queueing_limit) { smoothed } else { measured }
    }
}

fn nanos(time: Duration) -> f64 {
    time.as_nanos() as f64
}
