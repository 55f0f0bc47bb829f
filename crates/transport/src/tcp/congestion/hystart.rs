//! HyStart of Linux: end of slow start by the length of ACK trains and by the round-trip time.
//!
//! S. Ha and I. Rhee, "Taming the elephants: New TCP slow start" (2011), with the numbers and changes of `tcp_cubic.c`
//! (Linux 6.18). The window at the exit becomes `ssthresh`.
//!
//! | detection | slow start ends when |
//! |---|---|
//! | ACK train | ACKs have followed each other within 2 ms for half the least round-trip time |
//! | delay | the least of more than eight samples of a round is an eighth above the least so far, between 4 and 16 ms |

use super::slow_start_input::{PacingUse, SlowStartAck, SlowStartVerdict};
use hopline_core::{Duration, Instant, settings};

/// Largest allowance for bursts in the length of a train (`hystart_ack_delay`).
const MAX_ACK_DELAY: Duration = Duration::from_millis(1);
/// Bytes that may wait together before they leave: four of the largest segments that a network card divides.
const ACK_DELAY_BYTES: f64 = 4.0 * 65_536.0;
/// Ratio of the pacing rate that Linux computes to `cwnd` per round trip, in the first half of slow start and later.
const PACING_RATIOS: (f64, f64) = (2.0, 1.2);
/// Age of a congestion avoidance stage up to which samples do not count: they come from right after a recovery.
const MIN_EPOCH_AGE: Duration = Duration::from_secs(1);

settings! {
    /// Parameters of [`SlowStart::HyStart`](super::SlowStart::HyStart). Start from [`Self::LINUX`] and use the setters.
    /// "Default" is the value of Linux; module parameters of `tcp_cubic` are named.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct HyStartConfig {
        /// Least window at which slow start may end, segments: `hystart_low_window`. Default 16.
        low_window, with_low_window: u32,
        /// Detections in use: `hystart_detect`. Default both.
        detect, with_detect: HyStartDetection,
        /// Longest time between two ACKs of a train: `hystart_ack_delta_us`. Default 2 ms.
        ack_delta, with_ack_delta: Duration as into,
        /// Samples of a round that are collected before one more decides. Default 8.
        min_samples, with_min_samples: u8,
        /// Least rise of the round-trip time that counts. Default 4 ms.
        min_delay, with_min_delay: Duration as into,
        /// Rise that counts in any case. At least `min_delay`, default 16 ms.
        max_delay, with_max_delay: Duration as into,
    }
}

/// Detections that end slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HyStartDetection {
    /// The length of ACK trains.
    AckTrain,
    /// The round-trip time.
    Delay,
    /// Either.
    Both,
}

impl HyStartDetection {
    fn uses_trains(self) -> bool {
        matches!(self, Self::AckTrain | Self::Both)
    }

    fn uses_delay(self) -> bool {
        matches!(self, Self::Delay | Self::Both)
    }
}

impl HyStartConfig {
    /// Parameters of Linux.
    pub const LINUX: Self = Self {
        low_window: 16,
        detect: HyStartDetection::Both,
        ack_delta: Duration::from_millis(2),
        min_samples: 8,
        min_delay: Duration::from_millis(4),
        max_delay: Duration::from_millis(16),
    };

    pub(super) fn validate(&self) -> Result<(), (&'static str, &'static str)> {
        if self.min_delay > self.max_delay {
            return Err(("slow_start.max_delay", "at least min_delay"));
        }
        Ok(())
    }
}

/// State of the algorithm.
#[derive(Clone, Copy, Debug)]
pub(super) struct HyStart {
    config: HyStartConfig,
    phase: HyStartPhase,
    /// Least round-trip time since the connection began or timed out: `delay_min`.
    delay_min: Option<Duration>,
    round: Option<Round>,
}

/// Phase of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HyStartPhase {
    /// Slow start may end.
    Searching,
    /// It has ended (`found`); a later slow start ends at `ssthresh`.
    Found,
}

/// Round: from one acknowledgment to that of everything sent by then.
#[derive(Clone, Copy, Debug)]
struct Round {
    start: Instant,
    /// Position after the data sent at its start: `end_seq`.
    end: u64,
    /// Last ACK of the train that began with the round: `last_ack`.
    last_ack: Instant,
    /// Least round-trip time: `curr_rtt`.
    min_rtt: Duration,
    /// Number of samples, up to the configured one: `sample_cnt`.
    samples: u8,
}

impl HyStart {
    pub(super) fn new(config: HyStartConfig) -> Self {
        Self { config, phase: HyStartPhase::Searching, delay_min: None, round: None }
    }

    /// Processes an acknowledgment before the window grows by it.
    pub(super) fn on_ack(&mut self, ack: &SlowStartAck) -> SlowStartVerdict {
        let Some(rtt) = ack.rtt else { return SlowStartVerdict::Continue };
        if ack.cubic_epoch_age.is_some_and(|age| age < MIN_EPOCH_AGE) {
            return SlowStartVerdict::Continue;
        }
        let least = self.delay_min.map_or(rtt, |least| least.min(rtt));
        self.delay_min = Some(least);
        if self.phase == HyStartPhase::Found || !ack.is_slow_start() {
            return SlowStartVerdict::Continue;
        }
        if self.round.is_none_or(|round| ack.una > round.end) {
            let new =
                Round { start: ack.now, end: ack.nxt, last_ack: ack.now, min_rtt: Duration::MAX, samples: 0 };
            self.round = Some(new);
        }
        if ack.cwnd / ack.mss < self.config.low_window {
            return SlowStartVerdict::Continue;
        }
        let config = self.config;
        let Some(round) = &mut self.round else { return SlowStartVerdict::Continue };
        let by_train = config.detect.uses_trains() && round.is_long_train(&config, ack, least);
        let by_delay = config.detect.uses_delay() && round.is_delayed(&config, rtt, least);
        if by_train || by_delay {
            self.enter(HyStartPhase::Found);
            return SlowStartVerdict::Exit;
        }
        SlowStartVerdict::Continue
    }

    /// Processes a time-out: everything is learnt anew, as in Linux.
    pub(super) fn on_timeout(&mut self) {
        self.delay_min = None;
        self.round = None;
        self.enter(HyStartPhase::Searching);
    }

    /// Changes the phase; nothing else does.
    fn enter(&mut self, phase: HyStartPhase) {
        self.phase = phase;
    }
}

impl Round {
    /// Extends the train, and returns whether it is as long as the path. Half the least round-trip time counts as the path;
    /// all of it for a paced sender, which spreads the train itself.
    fn is_long_train(&mut self, config: &HyStartConfig, ack: &SlowStartAck, least: Duration) -> bool {
        if ack.now.since(self.last_ack) > config.ack_delta {
            return false; // it has ended, until the next round
        }
        self.last_ack = ack.now;
        let limit = least + ack_delay(ack);
        let limit = if ack.pacing == PacingUse::Unpaced { limit / 2 } else { limit };
        ack.now.since(self.start) > limit
    }

    /// Records a sample, and returns whether the delay has risen.
    fn is_delayed(&mut self, config: &HyStartConfig, rtt: Duration, least: Duration) -> bool {
        self.min_rtt = self.min_rtt.min(rtt);
        if self.samples < config.min_samples {
            self.samples += 1;
            return false;
        }
        self.min_rtt > least + (least / 8).min(config.max_delay).max(config.min_delay)
    }
}

/// Returns the time that a burst waits in the sender, at the pacing rate that Linux computes also for an unpaced sender.
fn ack_delay(ack: &SlowStartAck) -> Duration {
    if ack.srtt.is_zero() {
        return Duration::ZERO;
    }
    let ratio = if ack.cwnd < ack.ssthresh / 2 { PACING_RATIOS.0 } else { PACING_RATIOS.1 };
    let rate = ratio * f64::from(ack.cwnd) / ack.srtt.as_secs_f64();
    Duration::from_secs_f64(ACK_DELAY_BYTES / rate).min(MAX_ACK_DELAY)
}
