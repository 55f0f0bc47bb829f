//! Rate, trains and window of version 3.

use super::super::common::{NOMINAL_RTT, PacingBasis};
use super::super::{BbrAck, ControlOutput};
use super::{FullBw, MIN_PIPE_CWND, PROBE_RTT_CWND_GAIN, STARTUP_GAIN, State, V3};
use hopline_core::Duration;

/// A train takes a millisecond and has at least two segments and at most so many bytes (§5.6.3).
const BURST_SECS: f64 = 0.001;
const MAX_BURST: f64 = 65_536.0;
/// Trains for which there is room beside what the path holds (§5.5.8.1).
const OFFLOAD_BURSTS: u64 = 3;

impl V3 {
    /// "InitPacingRate".
    pub(super) fn init_pacing_rate(&mut self, round_trip: Option<Duration>, orders: &mut ControlOutput) {
        if round_trip.is_some() {
            self.paced_by = PacingBasis::MeasuredRtt;
        }
        let round_trip = round_trip.unwrap_or(NOMINAL_RTT).max(Duration::from_micros(1));
        self.set_send_quantum(STARTUP_GAIN * self.initial_window as f64 / round_trip.as_secs_f64(), orders);
    }

    /// "SetPacingRateWithGain".
    pub(super) fn set_pacing_rate_with_gain(&mut self, gain: f64, orders: &mut ControlOutput) {
        let rate = gain * self.bw() * (1.0 - self.config.pacing_margin);
        if self.full_bw_reached == FullBw::Yes || rate > orders.pacing_rate {
            self.set_send_quantum(rate, orders);
        }
    }

    /// "SetSendQuantum".
    fn set_send_quantum(&self, rate: f64, orders: &mut ControlOutput) {
        orders.pacing_rate = rate.max(1.0);
        orders.send_quantum = ((orders.pacing_rate * BURST_SECS).min(MAX_BURST) as u64).max(2 * self.mss);
    }

    /// "SetCwnd".
    pub(super) fn set_cwnd(&mut self, seen: &BbrAck, orders: &mut ControlOutput) {
        let most = self.bdp_multiple(self.cwnd_gain()) + self.extra_acked.max.max() as u64;
        let most = self.quantization_budget(most, orders);
        if self.full_bw_reached == FullBw::Yes {
            orders.cwnd = (orders.cwnd + seen.acked).min(most);
        } else if orders.cwnd < most || seen.delivered < self.initial_window {
            orders.cwnd += seen.acked;
        }
        let least = MIN_PIPE_CWND * self.mss;
        orders.cwnd = orders.cwnd.max(least);
        if matches!(self.state, State::ProbeRtt(_)) {
            orders.cwnd = orders.cwnd.min(self.probe_rtt_cwnd());
        }
        orders.cwnd = orders.cwnd.min(self.bound_cwnd_for_model().max(least));
    }

    /// "ProbeRTTCwnd".
    pub(super) fn probe_rtt_cwnd(&self) -> u64 {
        self.bdp_multiple(PROBE_RTT_CWND_GAIN).max(MIN_PIPE_CWND * self.mss)
    }

    /// "BoundCwndForModel".
    fn bound_cwnd_for_model(&self) -> u64 {
        let long = match self.state {
            State::Down | State::Refill | State::Up => self.bounds.inflight_longterm,
            State::Cruise | State::ProbeRtt(_) => self.inflight_with_headroom(),
            State::Startup | State::Drain(_) => None,
        };
        [long, self.bounds.inflight_shortterm].into_iter().flatten().min().unwrap_or(u64::MAX)
    }

    /// "BDPMultiple", bytes.
    pub(in super::super) fn bdp_multiple(&self, gain: f64) -> u64 {
        self.bdp_of(self.bw(), gain)
    }

    fn bdp_of(&self, bandwidth: f64, gain: f64) -> u64 {
        let Some(least) = self.min_rtt.min_rtt else { return self.initial_window };
        (gain * bandwidth * least.as_secs_f64()).min(f64::from(1 << 30)) as u64
    }

    /// "TargetInflight": the product of the path, unless the window is smaller.
    pub(in super::super) fn target_inflight(&self, cwnd: u64) -> u64 {
        self.bdp_multiple(1.0).min(cwnd)
    }

    /// "Inflight" at the most bandwidth there was.
    pub(in super::super) fn max_inflight(&self, orders: &ControlOutput) -> u64 {
        self.quantization_budget(self.bdp_of(self.max_bw(), 1.0), orders)
    }

    /// "QuantizationBudget".
    pub(super) fn quantization_budget(&self, bytes: u64, orders: &ControlOutput) -> u64 {
        let more = if self.state == State::Up { 2 * self.mss } else { 0 };
        bytes.max(OFFLOAD_BURSTS * orders.send_quantum).max(MIN_PIPE_CWND * self.mss) + more
    }
}
