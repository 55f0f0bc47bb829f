//! Rate, trains and window of version 3.

use super::super::parts::{NOMINAL_ROUND_TRIP, PacedBy};
use super::super::{Orders, Seen};
use super::{Full, LEAST_WINDOW, PROBE_RTT_CWND_GAIN, STARTUP_GAIN, State, V3};
use hopline_core::Duration;

/// A train takes a millisecond and has at least two segments and at most so many bytes (§5.6.3).
const TRAIN_SECS: f64 = 0.001;
const LONGEST_TRAIN: f64 = 65_536.0;
/// Trains for which there is room beside what the path holds (§5.5.8.1).
const TRAINS_UNDER_WAY: u64 = 3;

impl V3 {
    /// "InitPacingRate".
    pub(super) fn pace_by(&mut self, round_trip: Option<Duration>, orders: &mut Orders) {
        if round_trip.is_some() {
            self.paced_by = PacedBy::RoundTrip;
        }
        let round_trip = round_trip.unwrap_or(NOMINAL_ROUND_TRIP).max(Duration::from_micros(1));
        self.order_rate(STARTUP_GAIN * self.initial_window as f64 / round_trip.as_secs_f64(), orders);
    }

    /// "SetPacingRateWithGain".
    pub(super) fn set_rate(&mut self, gain: f64, orders: &mut Orders) {
        let rate = gain * self.bandwidth() * (1.0 - self.config.pacing_margin);
        if self.full_once == Full::Yes || rate > orders.rate {
            self.order_rate(rate, orders);
        }
    }

    /// "SetSendQuantum".
    fn order_rate(&self, rate: f64, orders: &mut Orders) {
        orders.rate = rate.max(1.0);
        orders.train = ((orders.rate * TRAIN_SECS).min(LONGEST_TRAIN) as u64).max(2 * self.mss);
    }

    /// "SetCwnd".
    pub(super) fn set_window(&mut self, seen: &Seen, orders: &mut Orders) {
        let most = self.product(self.cwnd_gain()) + self.extra.most.max() as u64;
        let most = self.with_room(most, orders);
        if self.full_once == Full::Yes {
            orders.cwnd = (orders.cwnd + seen.acked).min(most);
        } else if orders.cwnd < most || seen.delivered < self.initial_window {
            orders.cwnd += seen.acked;
        }
        let least = LEAST_WINDOW * self.mss;
        orders.cwnd = orders.cwnd.max(least);
        if matches!(self.state, State::ProbeRtt(_)) {
            orders.cwnd = orders.cwnd.min(self.small_window());
        }
        orders.cwnd = orders.cwnd.min(self.bound().max(least));
    }

    /// "ProbeRTTCwnd".
    pub(super) fn small_window(&self) -> u64 {
        self.product(PROBE_RTT_CWND_GAIN).max(LEAST_WINDOW * self.mss)
    }

    /// "BoundCwndForModel".
    fn bound(&self) -> u64 {
        let long = match self.state {
            State::Down | State::Refill | State::Up => self.bounds.long_volume,
            State::Cruise | State::ProbeRtt(_) => self.with_headroom(),
            State::Startup | State::Drain(_) => None,
        };
        [long, self.bounds.short_volume].into_iter().flatten().min().unwrap_or(u64::MAX)
    }

    /// "BDPMultiple", bytes.
    pub(in super::super) fn product(&self, gain: f64) -> u64 {
        self.product_of(self.bandwidth(), gain)
    }

    fn product_of(&self, bandwidth: f64, gain: f64) -> u64 {
        let Some(least) = self.least.round_trip else { return self.initial_window };
        (gain * bandwidth * least.as_secs_f64()).min(f64::from(1 << 30)) as u64
    }

    /// "TargetInflight": the product of the path, unless the window is smaller.
    pub(in super::super) fn own_volume(&self, cwnd: u64) -> u64 {
        self.product(1.0).min(cwnd)
    }

    /// "Inflight" at the most bandwidth there was.
    pub(in super::super) fn full_volume(&self, orders: &Orders) -> u64 {
        self.with_room(self.product_of(self.most_bandwidth(), 1.0), orders)
    }

    /// "QuantizationBudget".
    pub(super) fn with_room(&self, bytes: u64, orders: &Orders) -> u64 {
        let more = if self.state == State::Up { 2 * self.mss } else { 0 };
        bytes.max(TRAINS_UNDER_WAY * orders.train).max(LEAST_WINDOW * self.mss) + more
    }
}
