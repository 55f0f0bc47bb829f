//! Prague: a scalable congestion control algorithm for L4S (draft-briscoe-iccrg-prague-congestion-control, derived from
//! DCTCP, RFC 8257).
//!
//! The sender averages the fraction of marked bytes over round trips (`alpha`). A mark reduces the window by `alpha/2`, once
//! per round trip. Bytes that are acknowledged without a mark increase it. Losses are answered as by Reno. Without accurate
//! feedback the sender is Reno.

use super::undo::Cause;
use super::window::{CongestionControl, CongestionWindow};
use super::{AckInput, CongestionState, ControlEvent, EcnEffect, Response};
use crate::ConfigError;
use crate::pacing::Pacing;
use crate::tcp::config::{Config, EcnMode, LossDetection};
use crate::tcp::feedback::RouteFeedback;
use hopline_core::{Duration, Instant, settings};

settings! {
    /// Parameters of [`CongestionControl::Prague`]. Start from [`Self::DRAFT`] and use the setters. Sections are those of
    /// version 00 of draft-briscoe-iccrg-prague-congestion-control.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct PragueConfig {
        /// Gain of the moving average of the marked fraction. Above 0 and at most 1, default 1/16 (§2.3.2).
        gain, with_gain: f64,
        /// Reference round-trip time: flows with shorter round trips behave as if theirs were as long. At most 1 s, default
        /// 25 ms (§2.4.4). Zero: round trips are used as they are.
        rtt_reference, with_rtt_reference: Duration as into,
        /// Round trips before the reference round-trip time is used. Default 500 (§2.4.4).
        rtt_dependent_rounds, with_rtt_dependent_rounds: u32,
        /// Factor of the window after a loss. Above 0 and below 1, default 0.5, as Reno (§2.4.1).
        loss_beta, with_loss_beta: f64,
        /// Largest burst, as time at the pacing rate. At most 10 ms, default 0.25 ms (§2.5.2).
        max_burst, with_max_burst: Duration as into,
    }
}

impl PragueConfig {
    /// Parameters of the draft.
    pub const DRAFT: Self = Self {
        gain: 1.0 / 16.0,
        rtt_reference: Duration::from_millis(25),
        rtt_dependent_rounds: 500,
        loss_beta: 0.5,
        max_burst: Duration::from_micros(250),
    };

    /// Checks every field against its range.
    fn validate(&self) -> Result<(), ConfigError> {
        let rules: [(bool, &'static str, &'static str); 4] = [
            (self.gain > 0.0 && self.gain <= 1.0, "prague.gain", "above 0 and at most 1"),
            (self.rtt_reference <= Duration::from_secs(1), "prague.rtt_reference", "at most 1 s"),
            (self.loss_beta > 0.0 && self.loss_beta < 1.0, "prague.loss_beta", "above 0 and below 1"),
            (self.max_burst <= Duration::from_millis(10), "prague.max_burst", "at most 10 ms"),
        ];
        match rules.iter().find(|(ok, ..)| !ok) {
            Some(&(_, field, requirement)) => Err(ConfigError { field, requirement }),
            None => Ok(()),
        }
    }
}

impl Config {
    /// Checks that Prague has accurate feedback and the RACK records that it needs, and that nothing else sets the window or
    /// the pacing rate.
    pub(crate) fn validate_prague(&self) -> Result<(), ConfigError> {
        let CongestionControl::Prague(prague) = self.congestion_control else { return Ok(()) };
        let rules: [(bool, &'static str, &'static str); 5] = [
            (
                self.ecn == EcnMode::AccEcn,
                "ecn",
                "accurate ECN with Prague, which needs the extent of congestion",
            ),
            (
                self.loss_detection != LossDetection::DupAcks,
                "loss_detection",
                "RACK with Prague, which detects losses by time",
            ),
            (self.pacing == Pacing::None, "pacing", "none with Prague, which paces its window"),
            (self.door.is_none(), "door", "none with Prague"),
            (self.feedback == RouteFeedback::None, "feedback", "none with Prague"),
        ];
        match rules.iter().find(|(ok, ..)| !ok) {
            Some(&(_, field, must)) => Err(ConfigError { field, requirement: must }),
            None => prague.validate(),
        }
    }
}

/// Response to marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum MarkResponse {
    /// Reno's reduction, used without accurate feedback.
    #[default]
    Classic,
    /// By the marked fraction.
    Scalable,
}

/// State of the algorithm. Positions are stream offsets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prague {
    response: MarkResponse,
    /// Moving average of the marked fraction.
    alpha: f64,
    /// Bytes acknowledged in this period of the average, and those of them that were marked.
    acked: u64,
    marked: u64,
    /// Position that ends the period, and its start.
    period: (u64, Instant),
    /// `true` after the first mark. Before it, `alpha` is not updated, so that the first mark halves the window.
    saw_mark: bool,
    /// Round trips so far.
    rounds: u32,
    /// Window reduction of the last round trip ("CWR state").
    reduced: Option<Reduced>,
    /// Smoothed round-trip time, seconds; 0 before the first sample.
    srtt: f64,
}

/// Reduction by a mark.
#[derive(Clone, Copy, Debug)]
struct Reduced {
    /// Position that has to be acknowledged before the next one.
    until: u64,
    /// Time of the reduction.
    at: Instant,
    /// Factor of the window.
    factor: f64,
}

impl Default for Prague {
    fn default() -> Self {
        Self {
            response: MarkResponse::Classic,
            alpha: 1.0, // as DCTCP (RFC 8257)
            acked: 0,
            marked: 0,
            period: (0, Instant::ZERO),
            saw_mark: false,
            rounds: 0,
            reduced: None,
            srtt: 0.0,
        }
    }
}

impl Prague {
    pub(super) fn is_scalable(&self) -> bool {
        self.response == MarkResponse::Scalable
    }

    /// Adds a round-trip time sample.
    fn on_rtt_sample(&mut self, sample: Duration) {
        let sample = sample.as_secs_f64();
        self.srtt = if self.srtt > 0.0 { self.srtt + (sample - self.srtt) / 8.0 } else { sample };
    }

    /// Returns the reference round-trip time in use, seconds (§2.4.4).
    fn reference_rtt(&self, config: &PragueConfig) -> f64 {
        let applies = self.rounds >= config.rtt_dependent_rounds;
        self.srtt.max(if applies { config.rtt_reference.as_secs_f64() } else { 0.0 })
    }

    /// Counts an acknowledgment, and updates the average at the end of a period.
    fn on_ack(&mut self, config: &PragueConfig, ack: &AckInput) {
        self.acked += ack.delivered;
        self.marked += ack.marked_bytes.min(ack.delivered);
        self.saw_mark |= ack.marked;
        let reference = self.reference_rtt(config);
        let lasted = |since: Instant| ack.now.since(since).as_secs_f64() >= reference;
        let uses_reference = reference > self.srtt;
        if self.reduced.is_some_and(|r| ack.una >= r.until && (!uses_reference || lasted(r.at))) {
            self.reduced = None;
        }
        let (end, started) = self.period;
        if ack.una < end || (uses_reference && !lasted(started)) {
            return;
        }
        if self.saw_mark && self.acked > 0 {
            let fraction = self.marked as f64 / self.acked as f64;
            self.alpha += config.gain * (fraction - self.alpha); // §2.3.2
        }
        (self.acked, self.marked) = (0, 0);
        self.period = (ack.max, ack.now);
        self.rounds = self.rounds.saturating_add(1);
    }

    /// Returns the bytes that an acknowledgment adds to the window `cwnd` (§2.4.3): one segment per round trip, or less if
    /// the reference round-trip time is longer.
    pub(super) fn increase(&self, config: &PragueConfig, cwnd: f64, mss: u32, ack: &AckInput) -> f64 {
        let unmarked = ack.delivered.saturating_sub(ack.marked_bytes) as f64;
        let reference = self.reference_rtt(config);
        let ratio = if self.srtt > 0.0 { reference / self.srtt } else { 1.0 };
        unmarked * f64::from(mss) / (ratio * ratio * cwnd)
    }

    /// Returns the factor of the window after a loss. With a reduction by a mark in the same round trip, the product is that
    /// of a loss alone (§2.4.1, §3.2.1).
    pub(super) fn loss_factor(&self, config: &PragueConfig) -> f64 {
        let reduced = self.reduced.map_or(1.0, |reduced| reduced.factor);
        (config.loss_beta / reduced).min(1.0)
    }
}

impl CongestionWindow {
    /// Reduces the window by half of the average of the marked fraction (§2.4.2), to two segments at least.
    fn reduce_by_alpha(&mut self, ack: &AckInput) {
        let factor = 1.0 - self.prague.alpha / 2.0;
        let least = f64::from(2 * self.mss);
        self.set_cwnd_with_fraction((self.cwnd_with_fraction() * factor).max(least));
        self.ssthresh = self.cwnd;
        self.prague.reduced = Some(Reduced { until: ack.max, at: ack.now, factor });
    }
}

impl CongestionState {
    /// Enables the scalable response of Prague, on an open connection with accurate feedback.
    pub(crate) fn use_scalable_response(&mut self, config: &Config) {
        if let CongestionControl::Prague(_) = config.congestion_control {
            self.window.prague.response = MarkResponse::Scalable;
        }
    }

    /// Disables the scalable response, since the feedback is unreliable.
    pub(crate) fn use_classic_response(&mut self) {
        self.window.prague.response = MarkResponse::Classic;
    }

    /// Returns whether the response to marks is scalable, so that packets are sent as ECT(1) (RFC 9331 §4.1).
    pub(crate) fn is_scalable(&self) -> bool {
        self.window.prague.is_scalable()
    }

    /// Returns the moving average of the marked fraction; `None` if the response is not scalable.
    pub(crate) fn prague_alpha(&self) -> Option<f64> {
        self.is_scalable().then_some(self.window.prague.alpha)
    }

    /// Adds a round-trip time sample of Prague.
    pub(crate) fn add_prague_sample(&mut self, sample: Duration) {
        self.window.prague.on_rtt_sample(sample);
    }

    /// Updates the moving average with an acknowledgment, before the reaction to it.
    pub(crate) fn on_accurate_feedback(&mut self, config: &Config, ack: &AckInput) {
        if let (CongestionControl::Prague(prague), true) = (&config.congestion_control, self.is_scalable()) {
            self.window.prague.on_ack(prague, ack);
        }
    }

    /// Processes a mark with the scalable response. Marks of a round trip in which the window was reduced, by a mark or a
    /// loss, do not reduce it again.
    pub(super) fn on_scalable_mark(&mut self, ack: &AckInput) -> Response {
        if ack.una <= self.reduced_below || self.window.prague.reduced.is_some() {
            return Response::NOTHING;
        }
        self.window.reduce_by_alpha(ack);
        Response { event: ControlEvent::EcnReaction(EcnEffect::Reduced), ..Response::NOTHING }
    }

    /// Returns the pacing rate of Prague, data bytes per second, and its largest burst, bytes (§2.5.1, §2.5.2). `None` before
    /// the first round-trip time sample.
    pub(crate) fn prague_pacing(&self, config: &Config, flight: u64) -> Option<(f64, u64)> {
        let CongestionControl::Prague(prague) = config.congestion_control else { return None };
        let srtt = self.window.prague.srtt;
        if srtt <= 0.0 {
            return None;
        }
        let is_slow_start = self.window.cwnd < self.window.ssthresh / 2;
        let factor = if is_slow_start { 2.0 } else { 1.0 };
        let rate = factor * u64::from(self.cwnd()).max(flight) as f64 / srtt;
        Some((rate, (rate * prague.max_burst.as_secs_f64()) as u64))
    }
}

/// Returns the part of `bytes` that a loss or a classic mark leaves.
pub(super) fn left_after(state: &Prague, config: &PragueConfig, bytes: u32, cause: Cause) -> u32 {
    let factor = match cause {
        Cause::Mark => config.loss_beta,
        Cause::Timeout | Cause::FastRetransmit => state.loss_factor(config),
    };
    (f64::from(bytes) * factor) as u32
}
