//! Congestion window: growth and reduction (RFC 5681 §3.1) by the configured algorithm.

use super::cubic::{AckStep, Cubic};
use super::custom::CustomCongestionControlId;
use super::prague::{Prague, left_after};
use super::slow_start::{SlowStart, SlowStartState};
use super::slow_start_input::{PacingUse, SlowStartAck, SlowStartVerdict};
use super::undo::Cause;
use super::{AckInput, BbrConfig, CubicArithmetic, CubicConfig, PragueConfig, RecoveryPhase};
use crate::pacing::Pacing;
use crate::tcp::config::{Config, Growth, IdleRestart, InitialSsthresh, Reduction};
use hopline_core::Instant;

/// Congestion control algorithm: growth of the window above the slow start threshold, and its reduction by a loss.
/// Independent of loss recovery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CongestionControl {
    /// One segment more per round trip; a loss halves (RFC 5681 §3.1).
    Reno,
    /// A cubic function of time; a loss leaves `beta` (RFC 9438).
    Cubic(CubicConfig),
    /// BBR: estimates the bandwidth and the minimum round-trip time, and sets the window and the pacing rate from them.
    /// Needs SACK and RACK; falls back to [`Self::Reno`] if the peer does not offer SACK.
    Bbr(BbrConfig),
    /// Prague: answers the extent of marks, as a sender in L4S (draft-briscoe-iccrg-prague-congestion-control). Needs
    /// accurate ECN and RACK; is [`Self::Reno`], paced, if the peer has no accurate ECN.
    Prague(PragueConfig),
    /// User-defined algorithm: [`CustomCongestionControl`](super::CustomCongestionControl).
    Custom(CustomCongestionControlId),
}

/// Largest window that window scaling can express (RFC 7323 §2.3).
const MAX_WINDOW: u32 = 1 << 30;

/// `cwnd` and `ssthresh`, bytes.
#[derive(Clone, Debug)]
pub(super) struct CongestionWindow {
    pub(super) mss: u32,
    pub(super) cwnd: u32,
    pub(super) ssthresh: u32,
    /// Inflation of `cwnd` by duplicate ACKs in recovery, bytes; separate, so that the end of recovery removes it.
    pub(super) inflation: u32,
    max_cwnd: u32,
    /// Bytes acknowledged towards the next segment of linear growth (RFC 3465 §2.1).
    bytes_acked: u32,
    /// Fraction of a byte that cubic growth has added to `cwnd`.
    fraction: f64,
    cubic: Cubic,
    /// Boxed, since few connections use it.
    pub(super) prague: Box<Prague>,
    slow_start: SlowStartState,
}

/// Time of the detection of the end of slow start, relative to the growth by the same acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GrowthStep {
    Before,
    After,
}

impl CongestionWindow {
    pub(super) fn new(config: &Config, mss: u32) -> Self {
        let limit = config.window_clamp.map_or(MAX_WINDOW, |n| n.saturating_mul(mss).min(MAX_WINDOW));
        let ssthresh = match config.initial_ssthresh {
            InitialSsthresh::Unlimited => MAX_WINDOW,
            InitialSsthresh::Segments(n) => n.saturating_mul(mss).min(MAX_WINDOW),
            InitialSsthresh::WindowClamp => limit,
        };
        let cwnd = config.initial_window.bytes(mss).min(limit);
        Self {
            mss,
            cwnd,
            ssthresh,
            inflation: 0,
            max_cwnd: limit,
            bytes_acked: 0,
            fraction: 0.0,
            cubic: Cubic::default(),
            prague: Box::default(),
            slow_start: SlowStartState::new(match config.congestion_control {
                CongestionControl::Reno | CongestionControl::Cubic(_) => config.slow_start,
                CongestionControl::Bbr(_) | CongestionControl::Custom(_) | CongestionControl::Prague(_) => {
                    SlowStart::Rfc5681
                }
            }),
        }
    }

    /// Ends slow start at the present window, if the configured algorithm says so.
    pub(super) fn detect_end_of_slow_start(&mut self, config: &Config, ack: &AckInput, step: GrowthStep) {
        let input = SlowStartAck {
            now: ack.now,
            una: ack.una,
            nxt: ack.nxt,
            rtt: ack.segment_rtt,
            srtt: ack.round_trip,
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            mss: self.mss,
            pacing: pacing_use(config),
            cubic_epoch_age: self.cubic.epoch_age(ack.now),
        };
        let verdict = match step {
            GrowthStep::Before => self.slow_start.before_growth(&input),
            GrowthStep::After => self.slow_start.after_growth(&input),
        };
        if verdict == SlowStartVerdict::Exit {
            self.ssthresh = self.cwnd;
        }
    }

    /// Opens the window for an ACK of new data.
    pub(super) fn grow(&mut self, config: &Config, ack: &AckInput, phase: RecoveryPhase) {
        let bytes = if config.growth == Growth::Delivered { ack.delivered } else { ack.acked };
        let acked = bytes.min(u64::from(MAX_WINDOW)) as u32;
        if self.cwnd < self.ssthresh {
            self.cwnd += self.slow_start_step(config, acked, phase);
        } else {
            match config.congestion_control {
                // An own law is asked by `Control`, and this is where it has failed. BBR is not at work here either.
                CongestionControl::Reno | CongestionControl::Custom(_) | CongestionControl::Bbr(_) => {
                    self.grow_linearly(config.growth, acked)
                }
                CongestionControl::Prague(prague) if self.prague.is_scalable() => {
                    let cwnd = self.cwnd_with_fraction();
                    self.set_cwnd_with_fraction(cwnd + self.prague.increase(&prague, cwnd, self.mss, ack));
                }
                CongestionControl::Prague(_) => self.grow_linearly(config.growth, acked),
                CongestionControl::Cubic(cubic) => self.grow_cubic(&cubic, config.growth, acked, ack),
            }
        }
        self.cwnd = self.cwnd.min(self.max_cwnd());
    }

    /// Returns the largest window, bytes.
    pub(super) fn max_cwnd(&self) -> u32 {
        self.max_cwnd.max(self.mss)
    }

    /// Returns the window with its fraction, as user-defined algorithms see it.
    pub(super) fn cwnd_with_fraction(&self) -> f64 {
        f64::from(self.cwnd) + self.fraction
    }

    /// Sets the window that a user-defined algorithm has returned.
    pub(super) fn set_cwnd_with_fraction(&mut self, bytes: f64) {
        let bytes = bytes.clamp(f64::from(self.mss), f64::from(self.max_cwnd()));
        self.cwnd = bytes as u32;
        self.fraction = bytes - f64::from(self.cwnd);
    }

    /// Returns the window after a slow start step, bytes.
    pub(super) fn after_slow_start(&self, config: &Config, acked: u64, phase: RecoveryPhase) -> f64 {
        let acked = acked.min(u64::from(MAX_WINDOW)) as u32;
        (self.cwnd_with_fraction() + f64::from(self.slow_start_step(config, acked, phase)))
            .min(self.max_cwnd().into())
    }

    fn slow_start_step(&self, config: &Config, acked: u32, phase: RecoveryPhase) -> u32 {
        if phase != RecoveryPhase::Loss
            && let Some(step) = self.slow_start.growth(acked, self.mss, pacing_use(config))
        {
            return step;
        }
        match config.growth {
            Growth::PerAck => self.mss, // RFC 5681 §3.1 (2)
            Growth::Delivered => acked,
            // RFC 3465 §2.3: after a time-out L is 1
            Growth::Bytes { limit } => {
                acked.min(self.mss * if phase == RecoveryPhase::Loss { 1 } else { limit })
            }
        }
    }

    fn grow_linearly(&mut self, growth: Growth, acked: u32) {
        match growth {
            // RFC 5681 §3.1 (3)
            Growth::PerAck => {
                self.cwnd += (u64::from(self.mss) * u64::from(self.mss) / u64::from(self.cwnd)).max(1) as u32;
            }
            Growth::Bytes { .. } | Growth::Delivered => {
                self.bytes_acked = self.bytes_acked.saturating_add(acked);
                if self.bytes_acked >= self.cwnd {
                    self.bytes_acked -= self.cwnd;
                    self.cwnd += self.mss;
                }
            }
        }
    }

    /// RFC 9438 §4.4 counts ACKs, and so does [`Growth::PerAck`]; Linux counts segments, so that receivers that delay their
    /// ACKs do not slow the sender down.
    fn grow_cubic(&mut self, cubic: &CubicConfig, growth: Growth, acked: u32, ack: &AckInput) {
        let mss = f64::from(self.mss);
        let acked = f64::from(acked) / mss;
        let weight = match growth {
            Growth::PerAck => 1.0,
            Growth::Bytes { .. } | Growth::Delivered => acked,
        };
        let step = AckStep { now: ack.now, srtt: ack.round_trip, acked, ack_count: weight };
        let cwnd = (f64::from(self.cwnd) + self.fraction) / mss;
        let bytes = (self.cubic.grow(cubic, cwnd, step) * mss).min(f64::from(MAX_WINDOW));
        self.cwnd = self.cwnd.max(bytes as u32);
        self.fraction = (bytes - f64::from(self.cwnd)).clamp(0.0, 1.0);
    }

    /// Excludes the time up to `now` from cubic growth, since the window is not in use.
    pub(super) fn skip_idle(&mut self, now: Instant) {
        self.cubic.skip_idle(now);
    }

    /// Returns the quantity to reduce with `flight` bytes in flight: FlightSize or the window.
    pub(super) fn reduction_base(&self, reduction: Reduction, flight: u64) -> u32 {
        match reduction {
            Reduction::FlightSize => flight.min(u64::from(MAX_WINDOW)) as u32,
            Reduction::Window | Reduction::WholeWindow => (self.cwnd + self.inflation).min(self.max_cwnd),
        }
    }

    /// Sets `ssthresh` for a loss or a mark with `flight` bytes in flight. Returns the new `cwnd`. `told`: result of a
    /// user-defined algorithm.
    pub(super) fn reduce(&mut self, config: &Config, flight: u64, cause: Cause, told: Option<f64>) -> u32 {
        self.slow_start.on_reduction();
        self.bytes_acked = 0;
        self.fraction = 0.0;
        let window = (self.cwnd + self.inflation).min(self.max_cwnd);
        let whole = |bytes: u32| bytes / self.mss * self.mss;
        let left = |bytes: u32| match config.congestion_control {
            CongestionControl::Reno | CongestionControl::Bbr(_) => bytes / 2,
            CongestionControl::Prague(prague) => left_after(&self.prague, &prague, bytes.min(window), cause),
            CongestionControl::Custom(_) => {
                told.map_or(bytes / 2, |bytes| bytes.min(f64::from(self.max_cwnd)) as u32)
            }
            CongestionControl::Cubic(cubic) => {
                let left = (f64::from(bytes) * cubic.beta) as u32;
                if cubic.arithmetic == CubicArithmetic::Linux { whole(left) } else { left }
            }
        };
        if let CongestionControl::Cubic(cubic) = &config.congestion_control {
            self.cubic.reduce(cubic, f64::from(window) / f64::from(self.mss));
        }
        match config.reduction {
            // RFC 5681 §3.1 (4), RFC 9438 §4.6
            Reduction::FlightSize => {
                let left = left(flight.min(u64::from(MAX_WINDOW)) as u32);
                self.ssthresh = left.max(2 * self.mss);
                // RFC 3168 §6.1.2, RFC 9438 §4.6: a mark may leave a single segment
                if cause == Cause::Mark { left.max(self.mss) } else { self.ssthresh }
            }
            Reduction::Window => {
                self.ssthresh = whole(left(window)).max(2 * self.mss);
                left(window).max(self.mss)
            }
            Reduction::WholeWindow => {
                self.ssthresh = whole(left(window)).max(2 * self.mss);
                whole(left(window)).max(self.mss)
            }
        }
    }

    /// Sets the loss window, after a time-out.
    pub(super) fn on_timeout(&mut self) {
        self.collapse();
        self.cubic.on_timeout();
        self.slow_start.on_timeout();
    }

    /// Sets the window to one segment.
    pub(super) fn collapse(&mut self) {
        self.cwnd = self.mss;
        self.bytes_acked = 0;
        self.fraction = 0.0;
    }

    /// Restores the values before a reduction; a larger current window stays.
    pub(super) fn restore(&mut self, before: &Self) {
        if self.cwnd < before.cwnd {
            (self.cwnd, self.fraction, self.cubic) = (before.cwnd, before.fraction, before.cubic); // RFC 9438 §4.9.2
        }
        self.ssthresh = before.ssthresh;
        self.slow_start.clone_from(&before.slow_start);
        self.inflation = 0;
        self.bytes_acked = before.bytes_acked;
    }

    /// Restores `cwnd` and `ssthresh`, but not the inflation.
    pub(super) fn restore_cwnd(&mut self, before: &Self) {
        self.cwnd = before.cwnd;
        self.ssthresh = before.ssthresh;
        self.slow_start.clone_from(&before.slow_start);
        self.bytes_acked = before.bytes_acked;
        (self.fraction, self.cubic) = (before.fraction, before.cubic);
    }

    /// Raises `cwnd` and `ssthresh` to the values before, if they are lower.
    pub(super) fn raise_to(&mut self, before: &Self) {
        if self.cwnd < before.cwnd {
            (self.cwnd, self.fraction, self.cubic) = (before.cwnd, before.fraction, before.cubic);
        }
        if self.ssthresh < before.ssthresh {
            self.ssthresh = before.ssthresh;
            self.slow_start.clone_from(&before.slow_start);
        }
    }

    /// Restarts the window after idle time (RFC 5681 §4.1).
    pub(super) fn restart(&mut self, config: &Config) {
        if config.idle_restart != IdleRestart::Never {
            self.cubic.restart();
        }
        match config.idle_restart {
            IdleRestart::Never => {}
            IdleRestart::InitialWindow => self.cwnd = self.cwnd.min(config.initial_window.bytes(self.mss)),
            IdleRestart::OneSegment => self.collapse(),
        }
    }
}

fn pacing_use(config: &Config) -> PacingUse {
    if config.pacing == Pacing::None { PacingUse::Unpaced } else { PacingUse::Paced }
}
