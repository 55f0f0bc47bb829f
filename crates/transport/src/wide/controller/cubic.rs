//! CUBIC of TCP (RFC 9438) as a controller.

use super::{AckSample, Controller, INITIAL_WINDOW, RoundOutcome, SendLimit};
use crate::tcp::CubicConfig;
use crate::tcp::congestion::cubic::{AckStep, Cubic};
use hopline_core::{Duration, Instant};

/// Pacing rate as a multiple of the window per round trip, in slow start and afterwards. Linux: `tcp_pacing_ss_ratio` and
/// `tcp_pacing_ca_ratio`.
const SLOW_START_PACING_GAIN: f64 = 2.0;
pub(in crate::wide) const PACING_GAIN: f64 = 1.2;
/// Least window, packets (RFC 5681 §3.1 (4)). Below two, an acknowledgment for every second packet would wait for its timer.
pub(in crate::wide) const MIN_WINDOW: f64 = 2.0;

/// Controller by CUBIC: every loss and every mark is congestion. Windows are in packets.
#[derive(Clone, Debug)]
pub struct CubicController {
    config: CubicConfig,
    cubic: Cubic,
    /// Length of a full packet, bytes.
    packet_bytes: f64,
    cwnd: f64,
    ssthresh: f64,
    /// Smoothed round-trip time; `None` before the first acknowledgment.
    srtt: Option<Duration>,
    /// Largest acknowledged number.
    highest_acked: u64,
    /// Number of the next packet at the last reduction. Losses below it belong to that reduction.
    recover: u64,
    /// Number of the first packet of the next round trip.
    round_end: u64,
    reductions: u64,
}

impl CubicController {
    /// Creates the controller. `packet`: bytes of a full packet, headers included.
    #[must_use]
    pub fn new(config: CubicConfig, packet: u32) -> Self {
        Self {
            config,
            cubic: Cubic::default(),
            packet_bytes: packet.into(),
            cwnd: INITIAL_WINDOW.into(),
            ssthresh: f64::INFINITY,
            srtt: None,
            highest_acked: 0,
            recover: 0,
            round_end: 0,
            reductions: 0,
        }
    }

    /// Reduces the window, once per round trip.
    fn reduce(&mut self, next_number: u64) {
        if self.highest_acked < self.recover {
            return;
        }
        self.recover = next_number;
        self.cubic.reduce(&self.config, self.cwnd);
        self.cwnd = (self.cwnd * self.config.beta).max(MIN_WINDOW);
        self.ssthresh = self.cwnd;
        self.reductions += 1;
    }

    fn grow(&mut self, ack: &AckSample) {
        let acked = ack.delivered as f64 / self.packet_bytes;
        if self.cwnd < self.ssthresh {
            self.cwnd += acked;
        } else {
            let step = AckStep { now: ack.now, srtt: ack.srtt, acked, ack_count: acked };
            self.cwnd = self.cubic.grow(&self.config, self.cwnd, step);
        }
    }
}

impl Controller for CubicController {
    fn pacing_rate(&self) -> Option<f64> {
        let gain = if self.cwnd < self.ssthresh { SLOW_START_PACING_GAIN } else { PACING_GAIN };
        self.srtt.map(|srtt| gain * self.cwnd * self.packet_bytes / srtt.as_secs_f64().max(1e-6))
    }

    fn window(&self, _least_rtt: Duration, _reordering: Duration, _together: u32) -> u64 {
        (self.cwnd * self.packet_bytes) as u64
    }

    fn sending_time(&self, packets: u32) -> Option<Duration> {
        self.srtt.map(|srtt| Duration::from_secs_f64(srtt.as_secs_f64() * f64::from(packets) / self.cwnd))
    }

    fn is_loss_below(&self, _share: f64) -> bool {
        false
    }

    fn saw_empty_queue(&self) -> bool {
        false
    }

    fn reductions(&self) -> u64 {
        self.reductions
    }

    fn on_established(&mut self) {}

    fn on_ack(&mut self, ack: &AckSample) -> RoundOutcome {
        self.srtt = Some(ack.srtt);
        if let Some((number, ..)) = ack.newest {
            self.highest_acked = self.highest_acked.max(number);
        }
        if ack.lost > 0 || ack.marks > 0 {
            self.reduce(ack.next_number);
        } else if ack.limit == SendLimit::Path && self.highest_acked >= self.recover {
            self.grow(ack);
        } else if ack.limit == SendLimit::Application {
            self.cubic.skip_idle(ack.now);
        }
        if self.highest_acked < self.round_end {
            return RoundOutcome::NotOver;
        }
        self.round_end = ack.next_number;
        RoundOutcome::Over
    }

    fn on_loss(&mut self, packets: u64) {
        if packets > 0 {
            self.reduce(self.round_end);
        }
    }

    fn discard_samples(&mut self) {}

    fn restart(&mut self, _now: Instant, next_number: u64) {
        self.cubic.restart();
        self.cwnd = INITIAL_WINDOW.into();
        (self.recover, self.round_end) = (next_number, next_number);
    }
}
