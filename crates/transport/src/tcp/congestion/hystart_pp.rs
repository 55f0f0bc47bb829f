//! HyStart++: end of slow start by a rise of the round-trip time (RFC 9406).
//!
//! A round lasts until what was sent before it is acknowledged. If the least round-trip time of a round is clearly above that
//! of the round before, Conservative Slow Start (CSS) begins: the window grows by a quarter. A lower round-trip time in CSS
//! shows that the rise was not a queue, and slow start resumes. After five rounds of CSS, congestion avoidance begins.
//!
//! ```text
//!            delay rises                        CSS_ROUNDS rounds
//! SlowStart ─────────────▶ ConservativeSlowStart ────────────────▶ CongestionAvoidance
//!     ▲                        │                                            ▲
//!     └────────────────────────┘                                            │
//!       delay below the baseline          loss, mark or ssthresh, in any state
//! ```

use super::slow_start_input::{PacingUse, SlowStartAck, SlowStartVerdict};
use hopline_core::{Duration, settings};

settings! {
    /// Parameters of [`SlowStart::HyStartPlusPlus`](super::SlowStart::HyStartPlusPlus). Start from [`Self::RFC9406`] and use
    /// the setters. "Default" is the value of RFC 9406 §4.3.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct HyStartPlusPlusConfig {
        /// Least rise of the round-trip time that counts: `MIN_RTT_THRESH`. Default 4 ms.
        min_rtt_thresh, with_min_rtt_thresh: Duration as into,
        /// Rise that counts in any case: `MAX_RTT_THRESH`. At least `min_rtt_thresh`, default 16 ms.
        max_rtt_thresh, with_max_rtt_thresh: Duration as into,
        /// Divisor of the round-trip time that gives the rise between these bounds: `MIN_RTT_DIVISOR`. 1–255, default 8.
        min_rtt_divisor, with_min_rtt_divisor: u8,
        /// Samples of a round before it is compared: `N_RTT_SAMPLE`. 1–255, default 8.
        n_rtt_sample, with_n_rtt_sample: u8,
        /// Divisor of the growth in CSS: `CSS_GROWTH_DIVISOR`. 1–255, default 4.
        css_growth_divisor, with_css_growth_divisor: u8,
        /// Rounds of CSS: `CSS_ROUNDS`. 1–255, default 5.
        css_rounds, with_css_rounds: u8,
        /// Most segments that one ACK adds to the window: `L`. 1–255, default 8. Unlimited for a paced sender.
        limit, with_limit: u8,
        /// Slow starts to which it applies. Default the initial one.
        scope, with_scope: HyStartScope,
    }
}

/// Slow starts to which HyStart++ applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HyStartScope {
    /// The initial one; later ones end at the `ssthresh` that it has found (RFC 9406 §4.3: SHOULD).
    Initial,
    /// Every one, also after a time-out and after idle time.
    Every,
}

impl HyStartPlusPlusConfig {
    /// Parameters of RFC 9406 §4.3.
    pub const RFC9406: Self = Self {
        min_rtt_thresh: Duration::from_millis(4),
        max_rtt_thresh: Duration::from_millis(16),
        min_rtt_divisor: 8,
        n_rtt_sample: 8,
        css_growth_divisor: 4,
        css_rounds: 5,
        limit: 8,
        scope: HyStartScope::Initial,
    };

    pub(super) fn validate(&self) -> Result<(), (&'static str, &'static str)> {
        let counts =
            [self.min_rtt_divisor, self.n_rtt_sample, self.css_growth_divisor, self.css_rounds, self.limit];
        if counts.contains(&0) {
            return Err(("slow_start", "counts and divisors of at least 1"));
        }
        if self.min_rtt_thresh > self.max_rtt_thresh {
            return Err(("slow_start.max_rtt_thresh", "at least min_rtt_thresh"));
        }
        Ok(())
    }

    /// Returns the rise above `rtt` that counts: "RttThresh".
    fn rtt_thresh(&self, rtt: Duration) -> Duration {
        (rtt / u64::from(self.min_rtt_divisor)).min(self.max_rtt_thresh).max(self.min_rtt_thresh)
    }
}

/// State of the algorithm (RFC 9406 §4.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct HyStartPlusPlus {
    config: HyStartPlusPlusConfig,
    phase: HyStartPhase,
    /// Position after the data of the round, at which it ends: "windowEnd". `None` before the first ACK.
    window_end: Option<u64>,
    /// Least round-trip time of the last round: "lastRoundMinRTT".
    last_round_min_rtt: Option<Duration>,
    /// The same of this round: "currentRoundMinRTT".
    current_round_min_rtt: Option<Duration>,
    /// Samples of this round: "rttSampleCount".
    rtt_sample_count: u8,
}

/// Phase of slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HyStartPhase {
    /// Standard slow start.
    SlowStart,
    /// Conservative Slow Start.
    ConservativeSlowStart {
        /// Least round-trip time of the round in which it began: "cssBaselineMinRtt".
        baseline_min_rtt: Duration,
        /// Rounds so far, the first partial one included.
        rounds: u8,
    },
    /// Slow start has ended.
    CongestionAvoidance,
}

impl HyStartPlusPlus {
    pub(super) fn new(config: HyStartPlusPlusConfig) -> Self {
        Self {
            config,
            phase: HyStartPhase::SlowStart,
            window_end: None,
            last_round_min_rtt: None,
            current_round_min_rtt: None,
            rtt_sample_count: 0,
        }
    }

    /// Processes an acknowledgment after the window has grown by it.
    pub(super) fn on_ack(&mut self, ack: &SlowStartAck) -> SlowStartVerdict {
        if !ack.is_slow_start() {
            self.enter(HyStartPhase::CongestionAvoidance);
            return SlowStartVerdict::Continue;
        }
        if self.phase == HyStartPhase::CongestionAvoidance {
            if self.config.scope == HyStartScope::Initial {
                return SlowStartVerdict::Continue;
            }
            *self = Self::new(self.config);
        }
        if let Some(rtt) = ack.rtt {
            let least = self.current_round_min_rtt.map_or(rtt, |least| least.min(rtt));
            self.current_round_min_rtt = Some(least);
            self.rtt_sample_count = self.rtt_sample_count.saturating_add(1);
        }
        self.compare_rounds();
        let end = *self.window_end.get_or_insert(ack.nxt);
        if ack.una >= end { self.start_round(ack.nxt) } else { SlowStartVerdict::Continue }
    }

    /// Returns the growth of the window for `acked` bytes; `None` after slow start.
    pub(super) fn growth(&self, acked: u32, mss: u32, pacing: PacingUse) -> Option<u32> {
        let bytes = match pacing {
            PacingUse::Paced => acked,
            PacingUse::Unpaced => acked.min(u32::from(self.config.limit) * mss),
        };
        match self.phase {
            HyStartPhase::SlowStart => Some(bytes),
            HyStartPhase::ConservativeSlowStart { .. } => {
                Some(bytes / u32::from(self.config.css_growth_divisor))
            }
            HyStartPhase::CongestionAvoidance => None,
        }
    }

    /// Processes a loss or a mark: congestion avoidance begins.
    pub(super) fn on_reduction(&mut self) {
        self.enter(HyStartPhase::CongestionAvoidance);
    }

    /// Processes a time-out: the slow start that follows is not the initial one.
    pub(super) fn on_timeout(&mut self) {
        self.enter(HyStartPhase::CongestionAvoidance);
    }

    /// Compares the round-trip times of this round and the last, or of this round and the baseline.
    fn compare_rounds(&mut self) {
        if self.rtt_sample_count < self.config.n_rtt_sample {
            return;
        }
        let Some(current) = self.current_round_min_rtt else { return };
        match (self.phase, self.last_round_min_rtt) {
            (HyStartPhase::SlowStart, Some(last)) if current >= last + self.config.rtt_thresh(last) => {
                self.enter(HyStartPhase::ConservativeSlowStart { baseline_min_rtt: current, rounds: 0 });
            }
            (HyStartPhase::ConservativeSlowStart { baseline_min_rtt, .. }, _)
                if current < baseline_min_rtt =>
            {
                self.enter(HyStartPhase::SlowStart);
            }
            _ => {}
        }
    }

    /// Ends a round, and starts one that lasts until `window_end` is acknowledged.
    fn start_round(&mut self, window_end: u64) -> SlowStartVerdict {
        self.window_end = Some(window_end);
        self.last_round_min_rtt = self.current_round_min_rtt.take();
        self.rtt_sample_count = 0;
        let HyStartPhase::ConservativeSlowStart { baseline_min_rtt, rounds } = self.phase else {
            return SlowStartVerdict::Continue;
        };
        let rounds = rounds + 1;
        if rounds < self.config.css_rounds {
            self.enter(HyStartPhase::ConservativeSlowStart { baseline_min_rtt, rounds });
            return SlowStartVerdict::Continue;
        }
        self.enter(HyStartPhase::CongestionAvoidance);
        SlowStartVerdict::Exit
    }

    /// Changes the phase; nothing else does.
    fn enter(&mut self, phase: HyStartPhase) {
        self.phase = phase;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rise_that_counts_is_an_eighth_between_4_and_16_ms() {
        let config = HyStartPlusPlusConfig::RFC9406;
        for (rtt, rise) in [(1, 4), (32, 4), (80, 10), (128, 16), (600, 16)] {
            let rise = Duration::from_millis(rise);
            assert_eq!(config.rtt_thresh(Duration::from_millis(rtt)), rise, "{rtt} ms");
        }
    }

    #[test]
    fn a_paced_sender_adds_all_that_is_acknowledged() {
        // RFC 9406 §4.3: L is infinite.
        let state = HyStartPlusPlus::new(HyStartPlusPlusConfig::RFC9406);
        assert_eq!(state.growth(20_000, 1000, PacingUse::Paced), Some(20_000));
        assert_eq!(state.growth(20_000, 1000, PacingUse::Unpaced), Some(8000));
    }
}
