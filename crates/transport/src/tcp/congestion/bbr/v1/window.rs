//! Rate, trains and window of version 1.

use super::super::parts::{NOMINAL_ROUND_TRIP, PacedBy};
use super::super::{Orders, Seen};
use super::{Conservation, HIGH_GAIN, LEAST_WINDOW, Mode, Pipe, V1};
use crate::tcp::congestion::Phase;
use hopline_core::Duration;

/// Segments of the initial window: with fewer delivered, nothing is known.
const INITIAL_WINDOW: u64 = 10;
/// Seconds of bandwidth that aggregation adds at most.
const MOST_AGGREGATION: f64 = 0.1;
/// Rate from which on trains have two segments at least: 1.2 Mb/s.
const TRAIN_RATE: f64 = 150_000.0;
/// Part of a second that a train takes, and bytes that it has at most: the kernel's largest packet.
const TRAINS_PER_SEC: f64 = 1024.0;
const LONGEST_TRAIN: f64 = 65_536.0 - 1.0 - 320.0;

impl V1 {
    /// `bbr_init_pacing_rate_from_rtt`.
    pub(super) fn pace_by(&mut self, round_trip: Option<Duration>, orders: &mut Orders) {
        if round_trip.is_some() {
            self.paced_by = PacedBy::RoundTrip;
        }
        let round_trip = round_trip.unwrap_or(NOMINAL_ROUND_TRIP).max(Duration::from_micros(1));
        let bandwidth = orders.cwnd as f64 / round_trip.as_secs_f64();
        self.order_rate(bandwidth * HIGH_GAIN, orders);
    }

    /// `bbr_set_pacing_rate`: until the pipe has been full, the rate only grows.
    pub(super) fn set_rate(&mut self, smoothed: Option<Duration>, gain: f64, orders: &mut Orders) {
        if self.paced_by == PacedBy::NominalRoundTrip && smoothed.is_some() {
            self.pace_by(smoothed, orders);
        }
        let rate = self.bandwidth() * gain;
        if self.filled == Pipe::BeenFull || rate * (1.0 - self.config.pacing_margin) > orders.rate {
            self.order_rate(rate, orders);
        }
    }

    /// Trains as `bbr_tso_segs_goal` has them.
    fn order_rate(&self, rate: f64, orders: &mut Orders) {
        orders.rate = (rate * (1.0 - self.config.pacing_margin)).max(1.0);
        let least = if orders.rate < TRAIN_RATE { 1 } else { 2 };
        let bytes = (orders.rate / TRAINS_PER_SEC).min(LONGEST_TRAIN) as u64;
        orders.train = (bytes / self.mss).clamp(least, 127) * self.mss;
    }

    /// `bbr_bdp`, bytes of whole segments.
    fn product(&self, bandwidth: f64, gain: f64) -> u64 {
        let Some(least) = self.least.round_trip else { return INITIAL_WINDOW * self.mss };
        let bytes = (bandwidth * least.as_secs_f64() * gain).min(f64::from(1 << 30));
        (bytes as u64).div_ceil(self.mss) * self.mss
    }

    /// `bbr_quantization_budget`: room for trains at both ends, an even number of segments, and in the turn that probes two more.
    fn with_room(&self, bytes: u64, orders: &Orders) -> u64 {
        let segments = ((bytes + 3 * orders.train) / self.mss).next_multiple_of(2);
        let probe = if matches!(self.mode, Mode::ProbeBw { turn: 0, .. }) { 2 } else { 0 };
        (segments + probe) * self.mss
    }

    /// `bbr_inflight`.
    pub(super) fn target(&self, bandwidth: f64, gain: f64, orders: &Orders) -> u64 {
        self.with_room(self.product(bandwidth, gain), orders)
    }

    /// `bbr_packets_in_net_at_edt`: what will be in the network when the next train leaves.
    pub(super) fn in_network(&self, seen: &Seen, in_flight: u64, orders: &Orders) -> u64 {
        let arrives = self.bandwidth() * seen.due.since(seen.now).as_secs_f64();
        let train = if self.pacing_gain() > 1.0 { orders.train } else { 0 };
        (in_flight + train).saturating_sub(arrives as u64)
    }

    /// `bbr_ack_aggregation_cwnd`.
    fn for_aggregation(&self) -> u64 {
        let most = self.aggregation.most[0].max(self.aggregation.most[1]);
        match self.filled {
            Pipe::BeenFull => most.min((self.bandwidth() * MOST_AGGREGATION) as u64),
            Pipe::NotYetFull => 0,
        }
    }

    /// `bbr_set_cwnd`.
    pub(super) fn set_window(&mut self, seen: &Seen, orders: &mut Orders) {
        if seen.acked > 0 && self.recover(seen, orders) == Conservation::Off {
            let wanted = self.product(self.bandwidth(), self.cwnd_gain()) + self.for_aggregation();
            let target = self.with_room(wanted, orders);
            if self.filled == Pipe::BeenFull {
                orders.cwnd = (orders.cwnd + seen.acked).min(target);
            } else if orders.cwnd < target || seen.delivered < INITIAL_WINDOW * self.mss {
                orders.cwnd += seen.acked;
            }
            orders.cwnd = orders.cwnd.max(LEAST_WINDOW * self.mss);
        }
        if matches!(self.mode, Mode::ProbeRtt(_)) {
            orders.cwnd = orders.cwnd.min(LEAST_WINDOW * self.mss);
        }
    }

    /// `bbr_set_cwnd_to_recover_or_restore`: what is lost makes room for as much; in the first round of recovery what leaves is
    /// what arrives; afterwards the window is what it was.
    fn recover(&mut self, seen: &Seen, orders: &mut Orders) -> Conservation {
        let before = core::mem::replace(&mut self.phase, seen.phase);
        orders.cwnd = orders.cwnd.saturating_sub(seen.lost).max(self.mss);
        let arrives = seen.in_flight + seen.acked;
        if seen.phase == Phase::Recovery && before != Phase::Recovery {
            self.conservation = Conservation::On;
            self.rounds.restart(seen.delivered);
            orders.cwnd = arrives;
        } else if seen.phase == Phase::Open && before != Phase::Open {
            orders.cwnd = self.good.restore(orders.cwnd);
            self.conservation = Conservation::Off;
        }
        if self.conservation == Conservation::On {
            orders.cwnd = orders.cwnd.max(arrives);
        }
        self.conservation
    }
}
