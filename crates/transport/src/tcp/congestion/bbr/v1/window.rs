//! Rate, trains and window of version 1.

use super::super::common::{NOMINAL_RTT, PacingBasis};
use super::super::{BbrAck, ControlOutput};
use super::{HIGH_GAIN, MIN_CWND, Mode, PacketConservation, PipeState, V1};
use crate::tcp::congestion::RecoveryPhase;
use hopline_core::Duration;

/// Segments of the initial window: with fewer delivered, nothing is known.
const INITIAL_WINDOW: u64 = 10;
/// Seconds of bandwidth that aggregation adds at most.
const MAX_AGGREGATION: f64 = 0.1;
/// Rate from which on trains have two segments at least: 1.2 Mb/s.
const MIN_TWO_SEGMENT_RATE: f64 = 150_000.0;
/// Part of a second that a train takes, and bytes that it has at most: the kernel's largest packet.
const BURSTS_PER_SEC: f64 = 1024.0;
const MAX_BURST: f64 = 65_536.0 - 1.0 - 320.0;

impl V1 {
    /// `bbr_init_pacing_rate_from_rtt`.
    pub(super) fn init_pacing_rate(&mut self, round_trip: Option<Duration>, orders: &mut ControlOutput) {
        if round_trip.is_some() {
            self.paced_by = PacingBasis::MeasuredRtt;
        }
        let round_trip = round_trip.unwrap_or(NOMINAL_RTT).max(Duration::from_micros(1));
        let bandwidth = orders.cwnd as f64 / round_trip.as_secs_f64();
        self.set_send_quantum(bandwidth * HIGH_GAIN, orders);
    }

    /// `bbr_set_pacing_rate`: until the pipe has been full, the rate only grows.
    pub(super) fn set_pacing_rate(
        &mut self,
        smoothed: Option<Duration>,
        gain: f64,
        orders: &mut ControlOutput,
    ) {
        if self.paced_by == PacingBasis::NominalRtt && smoothed.is_some() {
            self.init_pacing_rate(smoothed, orders);
        }
        let rate = self.bandwidth() * gain;
        if self.pipe == PipeState::Full || rate * (1.0 - self.config.pacing_margin) > orders.pacing_rate {
            self.set_send_quantum(rate, orders);
        }
    }

    /// Trains as `bbr_tso_segs_goal` has them.
    fn set_send_quantum(&self, rate: f64, orders: &mut ControlOutput) {
        orders.pacing_rate = (rate * (1.0 - self.config.pacing_margin)).max(1.0);
        let least = if orders.pacing_rate < MIN_TWO_SEGMENT_RATE { 1 } else { 2 };
        let bytes = (orders.pacing_rate / BURSTS_PER_SEC).min(MAX_BURST) as u64;
        orders.send_quantum = (bytes / self.mss).clamp(least, 127) * self.mss;
    }

    /// `bbr_bdp`, bytes of whole segments.
    fn bdp(&self, bandwidth: f64, gain: f64) -> u64 {
        let Some(least) = self.min_rtt.min_rtt else { return INITIAL_WINDOW * self.mss };
        let bytes = (bandwidth * least.as_secs_f64() * gain).min(f64::from(1 << 30));
        (bytes as u64).div_ceil(self.mss) * self.mss
    }

    /// `bbr_quantization_budget`: room for trains at both ends, an even number of segments, and in the turn that probes two more.
    fn quantization_budget(&self, bytes: u64, orders: &ControlOutput) -> u64 {
        let segments = ((bytes + 3 * orders.send_quantum) / self.mss).next_multiple_of(2);
        let probe = if matches!(self.mode, Mode::ProbeBw { turn: 0, .. }) { 2 } else { 0 };
        (segments + probe) * self.mss
    }

    /// `bbr_inflight`.
    pub(super) fn inflight(&self, bandwidth: f64, gain: f64, orders: &ControlOutput) -> u64 {
        self.quantization_budget(self.bdp(bandwidth, gain), orders)
    }

    /// `bbr_packets_in_net_at_edt`: what will be in the network when the next train leaves.
    pub(super) fn packets_in_network(&self, seen: &BbrAck, in_flight: u64, orders: &ControlOutput) -> u64 {
        let arrives = self.bandwidth() * seen.next_burst.since(seen.now).as_secs_f64();
        let train = if self.pacing_gain() > 1.0 { orders.send_quantum } else { 0 };
        (in_flight + train).saturating_sub(arrives as u64)
    }

    /// `bbr_ack_aggregation_cwnd`.
    fn ack_aggregation_cwnd(&self) -> u64 {
        let most = self.aggregation.extra_acked[0].max(self.aggregation.extra_acked[1]);
        match self.pipe {
            PipeState::Full => most.min((self.bandwidth() * MAX_AGGREGATION) as u64),
            PipeState::NotFull => 0,
        }
    }

    /// `bbr_set_cwnd`.
    pub(super) fn set_cwnd(&mut self, seen: &BbrAck, orders: &mut ControlOutput) {
        if seen.acked > 0 && self.set_cwnd_to_recover_or_restore(seen, orders) == PacketConservation::Off {
            let wanted = self.bdp(self.bandwidth(), self.cwnd_gain()) + self.ack_aggregation_cwnd();
            let target = self.quantization_budget(wanted, orders);
            if self.pipe == PipeState::Full {
                orders.cwnd = (orders.cwnd + seen.acked).min(target);
            } else if orders.cwnd < target || seen.delivered < INITIAL_WINDOW * self.mss {
                orders.cwnd += seen.acked;
            }
            orders.cwnd = orders.cwnd.max(MIN_CWND * self.mss);
        }
        if matches!(self.mode, Mode::ProbeRtt(_)) {
            orders.cwnd = orders.cwnd.min(MIN_CWND * self.mss);
        }
    }

    /// `bbr_set_cwnd_to_recover_or_restore`: what is lost makes room for as much; in the first round of recovery what leaves is
    /// what arrives; afterwards the window is what it was.
    fn set_cwnd_to_recover_or_restore(
        &mut self,
        seen: &BbrAck,
        orders: &mut ControlOutput,
    ) -> PacketConservation {
        let before = core::mem::replace(&mut self.phase, seen.phase);
        orders.cwnd = orders.cwnd.saturating_sub(seen.newly_lost).max(self.mss);
        let arrives = seen.in_flight + seen.acked;
        if seen.phase == RecoveryPhase::Recovery && before != RecoveryPhase::Recovery {
            self.packet_conservation = PacketConservation::On;
            self.rounds.restart(seen.delivered);
            orders.cwnd = arrives;
        } else if seen.phase == RecoveryPhase::Open && before != RecoveryPhase::Open {
            orders.cwnd = self.prior_cwnd.restore(orders.cwnd);
            self.packet_conservation = PacketConservation::Off;
        }
        if self.packet_conservation == PacketConservation::On {
            orders.cwnd = orders.cwnd.max(arrives);
        }
        self.packet_conservation
    }
}
