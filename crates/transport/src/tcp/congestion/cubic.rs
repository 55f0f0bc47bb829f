//! CUBIC: the window as a cubic function of the time since the last reduction (RFC 9438).
//!
//! Windows are in segments and times in seconds here, as in the RFC. What is saved to undo a reduction (§4.9) is the
//! whole of [`Cubic`].

use super::cubic_linux::{DecisionInput, LinuxGrowth, WMaxKnowledge};
use hopline_core::{Duration, Instant, settings};

settings! {
    /// Parameters of [`CongestionControl::Cubic`](super::CongestionControl::Cubic). Start from [`Self::RFC9438`] or
    /// [`Self::LINUX`] and use the setters.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct CubicConfig {
        /// Growth factor `C` of the cubic function, segments per second cubed. Above 0, at most 1000; default 0.4
        /// (RFC 9438 §5).
        c, with_c: f64,
        /// Multiplicative decrease factor `beta_cubic`: share of the window that remains after a loss. Above 0 and below 1;
        /// default 0.7 (§4.6).
        beta, with_beta: f64,
        /// Fast convergence: a flow that is reduced again below its last maximum leaves room for competing flows. Default on
        /// (§4.7).
        fast_convergence, with_fast_convergence: FastConvergence,
        /// Arithmetic of the window computation. Default real numbers; [`Self::LINUX`]: whole segments.
        arithmetic, with_arithmetic: CubicArithmetic,
    }
}

/// Arithmetic of the cubic function and of the Reno-friendly estimate (`W_est`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CubicArithmetic {
    /// Real numbers, with each acknowledgment. Above the window before the reduction, `W_est` grows by one segment per
    /// round trip (RFC 9438 §4.2 to §4.5).
    Real,
    /// Whole segments, as in Linux. The rate of growth is decided when the window changes, otherwise every 32nd of a
    /// second. A reduced window is rounded down to whole segments. `W_est` grows by 3(1 − β)/(1 + β) throughout.
    Linux,
}

/// Fast convergence: behaviour of a flow that is reduced again below its last maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastConvergence {
    /// `W_max` is lowered further (RFC 9438 §4.7).
    On,
    /// `W_max` is the window at the reduction.
    Off,
}

impl CubicConfig {
    /// Parameters of RFC 9438.
    pub const RFC9438: Self =
        Self { c: 0.4, beta: 0.7, fast_convergence: FastConvergence::On, arithmetic: CubicArithmetic::Real };
    /// Parameters of Linux, where the difference is measurable.
    pub const LINUX: Self = Self { arithmetic: CubicArithmetic::Linux, ..Self::RFC9438 };

    /// Returns `alpha_cubic`: a window that grows linearly by it and is cut to `beta` is as large, on average, as Reno's
    /// (§4.3).
    pub(crate) fn alpha(&self) -> f64 {
        3.0 * (1.0 - self.beta) / (1.0 + self.beta)
    }

    /// Returns `K`: the time in which the cubic function grows from `window` to `plateau`, seconds (§4.2).
    pub(crate) fn k(&self, plateau: f64, window: f64) -> f64 {
        libm::cbrt((plateau - window) / self.c)
    }

    /// Returns `W_cubic` at `t` seconds, if it reaches `plateau` at `k` seconds (§4.2).
    pub(crate) fn w_cubic(&self, plateau: f64, k: f64, t: f64) -> f64 {
        let from_plateau = t - k;
        self.c * from_plateau * from_plateau * from_plateau + plateau
    }

    /// Returns `W_max` after a reduction of the window `cwnd`, if it was `w_max` before (§4.7).
    pub(crate) fn w_max(&self, cwnd: f64, w_max: f64) -> f64 {
        let shrinks = cwnd < w_max && self.fast_convergence == FastConvergence::On;
        if shrinks { cwnd * (1.0 + self.beta) / 2.0 } else { cwnd }
    }
}

/// Variables of RFC 9438 §4.1.2.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cubic {
    /// Window before the last reduction, fast convergence applied: `W_max`. 0: none that counts.
    w_max: f64,
    /// Window before the last reduction: `cwnd_prior`.
    cwnd_prior: f64,
    /// Current congestion avoidance stage; it begins with the first ACK.
    epoch: Option<Epoch>,
}

/// One congestion avoidance stage.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Plateau of the function: `W_max` of this stage.
    w_max: f64,
    /// Time of the plateau, seconds from the beginning of the stage: `K`.
    k: f64,
    /// Duration of the stage, without the times at which the window was not in use: `t` (§5.8).
    elapsed: Duration,
    /// Time up to which `elapsed` counts.
    counted_until: Instant,
    /// Estimate of Reno's window: `W_est`.
    w_est: f64,
    /// Growth state of [`CubicArithmetic::Linux`].
    linux_growth: LinuxGrowth,
}

/// An acknowledgment in congestion avoidance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckStep {
    pub(crate) now: Instant,
    /// Smoothed round-trip time.
    pub(crate) srtt: Duration,
    /// Segments newly acknowledged: `segments_acked`.
    pub(crate) acked: f64,
    /// Number of acknowledgments that this one counts as in the cubic function.
    pub(crate) ack_count: f64,
}

impl Cubic {
    /// Returns the window after an acknowledgment that found the window `cwnd` in use.
    pub(crate) fn grow(&mut self, config: &CubicConfig, cwnd: f64, step: AckStep) -> f64 {
        let (prior, w_max) = (self.cwnd_prior, self.w_max);
        let stage = self.epoch_at(config, cwnd, step.now);
        stage.elapsed += step.now.since(stage.counted_until);
        stage.counted_until = step.now;
        let t = stage.elapsed.as_secs_f64();
        if config.arithmetic == CubicArithmetic::Linux {
            return stage.grow_linux(config, cwnd, w_max, step);
        }
        // §4.3: alpha is 1 from the window before the reduction on.
        let alpha = if stage.w_est >= prior { 1.0 } else { config.alpha() };
        stage.w_est += alpha * step.acked / cwnd;
        if stage.w_cubic(config, t) < stage.w_est {
            return cwnd.max(stage.w_est); // Reno-friendly region
        }
        // §4.2, §4.4, §4.5
        let target = stage.w_cubic(config, t + step.srtt.as_secs_f64()).clamp(cwnd, 1.5 * cwnd);
        cwnd + (target - cwnd) * (step.ack_count / cwnd).min(1.0)
    }

    /// Excludes the time up to `now` from the stage, since the window was not in use (§5.8).
    pub(crate) fn skip_idle(&mut self, now: Instant) {
        if let Some(stage) = &mut self.epoch {
            stage.counted_until = now;
        }
    }

    /// Returns the time since the current stage began, without the times at which the window was not in use.
    pub(crate) fn epoch_age(&self, now: Instant) -> Option<Duration> {
        self.epoch.map(|stage| stage.elapsed + now.since(stage.counted_until))
    }

    /// Processes a reduction of a window of `cwnd` for a loss or a mark (§4.6, §4.7).
    pub(crate) fn reduce(&mut self, config: &CubicConfig, cwnd: f64) {
        self.w_max = config.w_max(cwnd, self.w_max);
        self.cwnd_prior = cwnd;
        self.epoch = None;
    }

    /// Processes a time-out: the next stage begins at its plateau, with `K` = 0 (§4.8).
    pub(crate) fn on_timeout(&mut self) {
        self.w_max = 0.0;
        self.epoch = None;
    }

    /// Restarts after idle time: a new stage follows slow start.
    pub(crate) fn restart(&mut self) {
        self.epoch = None;
    }

    fn epoch_at(&mut self, config: &CubicConfig, cwnd: f64, now: Instant) -> &mut Epoch {
        let w_max = self.w_max;
        self.epoch.get_or_insert_with(|| {
            let plateau = w_max.max(cwnd);
            let k = config.k(plateau, cwnd);
            let pace = LinuxGrowth::new(libm::floor(cwnd));
            Epoch {
                w_max: plateau,
                k,
                elapsed: Duration::ZERO,
                counted_until: now,
                w_est: cwnd,
                linux_growth: pace,
            }
        })
    }
}

impl Epoch {
    fn grow_linux(&mut self, config: &CubicConfig, cwnd: f64, w_max: f64, step: AckStep) -> f64 {
        let whole = libm::floor(cwnd);
        let mut pace = self.linux_growth;
        let t = (self.elapsed + step.srtt).as_secs_f64();
        let grown = pace.grow(step.now, whole, step.acked, || DecisionInput {
            target: libm::floor(self.w_cubic(config, t)),
            alpha: config.alpha(),
            w_max: if w_max > 0.0 { WMaxKnowledge::Known } else { WMaxKnowledge::Unknown },
        });
        self.linux_growth = pace;
        cwnd + (grown - whole)
    }

    /// Returns `W_cubic` at `t` seconds (§4.2).
    fn w_cubic(&self, config: &CubicConfig, t: f64) -> f64 {
        config.w_cubic(self.w_max, self.k, t)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CUBIC: CubicConfig = CubicConfig::RFC9438;

    /// Acknowledges a full window once per round trip, `n` times, from `start` on; returns the windows.
    fn rounds(state: &mut Cubic, mut cwnd: f64, start_ms: u64, round_trip_ms: u64, n: u64) -> Vec<f64> {
        (0..n)
            .map(|round| {
                let step = AckStep {
                    now: Instant::from_millis(start_ms + round * round_trip_ms),
                    srtt: Duration::from_millis(round_trip_ms),
                    acked: cwnd,
                    ack_count: cwnd,
                };
                cwnd = state.grow(&CUBIC, cwnd, step);
                cwnd
            })
            .collect()
    }

    #[test]
    fn after_a_reduction_the_window_is_back_at_its_maximum_after_k() {
        // K = ∛(0.3 · 1000 / 0.4) = 9.0856 s (RFC 9438 §4.2).
        let mut state = Cubic::default();
        state.reduce(&CUBIC, 1000.0);
        let windows = rounds(&mut state, 700.0, 0, 100, 150);
        let concave = windows[45] - windows[44] < windows[5] - windows[4];
        assert!(concave, "fast at first, slow towards the plateau");
        // Round n is told the target of one round trip later: t + RTT = 9.1 s at n = 90.
        assert!((windows[90] - 1000.0).abs() < 0.01, "{}", windows[90]);
        assert!((windows[120] - (1000.0 + 0.4 * 3.0144_f64.powi(3))).abs() < 0.1, "{}", windows[120]);
    }

    #[test]
    fn a_small_window_grows_like_reno() {
        // §4.3: with a round trip of 10 ms the cubic function takes ∛(3/0.4) = 2 s, W_est 3/0.53 = 6 round trips.
        let mut state = Cubic::default();
        state.reduce(&CUBIC, 10.0);
        let windows = rounds(&mut state, 7.0, 0, 10, 10);
        let alpha = 3.0 * 0.3 / 1.7;
        assert!((windows[0] - (7.0 + alpha)).abs() < 1e-9, "{windows:?}");
        assert!((windows[4] - (7.0 + 5.0 * alpha)).abs() < 1e-9, "{windows:?}");
        // From the window before the reduction on, one segment a round trip.
        assert!((windows[9] - windows[8] - 1.0).abs() < 1e-9, "{windows:?}");
    }

    #[test]
    fn in_linux_a_small_window_grows_like_reno_above_w_max_too() {
        let mut state = Cubic::default();
        state.reduce(&CubicConfig::LINUX, 10.0);
        let mut cwnd = 7.0;
        for round in 0..40 {
            let step = AckStep {
                now: Instant::from_millis(100 * round),
                srtt: Duration::from_millis(10),
                acked: cwnd,
                ack_count: cwnd,
            };
            cwnd = state.grow(&CubicConfig::LINUX, cwnd, step);
        }
        let reno = 7.0 + 40.0 * 0.9 / 1.7;
        assert!((cwnd - reno).abs() < 3.0 && libm::floor(cwnd) == cwnd, "{cwnd} and {reno}");
    }

    #[test]
    fn one_round_trip_adds_at_most_half() {
        let mut state = Cubic::default();
        rounds(&mut state, 10.0, 0, 1000, 1);
        let windows = rounds(&mut state, 10.0, 100_000, 1000, 1);
        assert!((windows[0] - 15.0).abs() < 1e-9, "the function is at 400,000: {windows:?}");
    }

    #[test]
    fn a_second_reduction_below_the_maximum_applies_fast_convergence() {
        for (fast_convergence, expected) in [(FastConvergence::On, 80.0 * 0.85), (FastConvergence::Off, 80.0)]
        {
            let config = CubicConfig { fast_convergence, ..CUBIC };
            let mut state = Cubic::default();
            state.reduce(&config, 100.0);
            state.reduce(&config, 80.0);
            assert!((state.w_max - expected).abs() < 1e-9);
            state.reduce(&config, 90.0);
            assert!((state.w_max - 90.0).abs() < 1e-9, "above the last maximum nothing is given away");
        }
    }

    #[test]
    fn after_a_timeout_growth_begins_at_the_plateau() {
        let mut state = Cubic::default();
        state.reduce(&CUBIC, 1000.0);
        state.on_timeout();
        // Convex from 500 on: 0.4 · t³ with t = 10 s at the last, not the way back to 1000.
        let windows = rounds(&mut state, 500.0, 0, 1000, 10);
        assert!((windows[9] - 900.0).abs() < 1e-6, "{windows:?}");
        assert!((windows[0] - 500.5).abs() < 0.5, "{windows:?}");
    }

    #[test]
    fn idle_time_does_not_count() {
        let grow = |pause_ms: u64| {
            let mut state = Cubic::default();
            state.reduce(&CUBIC, 1000.0);
            let windows = rounds(&mut state, 700.0, 0, 100, 20);
            state.skip_idle(Instant::from_millis(1900 + pause_ms));
            *rounds(&mut state, windows[19], 2000 + pause_ms, 100, 20).last().expect("twenty rounds")
        };
        assert!((grow(0) - grow(60_000)).abs() < 1e-9);
    }
}
