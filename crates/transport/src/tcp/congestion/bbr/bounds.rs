//! Bounds that losses set (BBRv3): short-term bounds of bandwidth and bytes in flight, and a long-term bound of bytes in
//! flight (draft-ietf-ccwg-bbr §5.5.10).

use super::v3::{Limits, State, UndoTo, V3};
use super::{Orders, Seen};
use crate::tcp::congestion::Phase;
use crate::tcp::delivery_rate::{Limit, Loss, RateSample};
use hopline_core::Instant;

/// Number of discontiguous lost ranges in a round that ends STARTUP: BBRStartupFullLossCnt.
const STARTUP_LOSSES: u32 = 6;

/// Bounds of the model; `None`: no bound ("Infinity").
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Bounds {
    /// Bytes per second: BBR.bw_shortterm.
    pub(super) short_rate: Option<f64>,
    /// Bytes: BBR.inflight_shortterm.
    pub(super) short_volume: Option<u64>,
    /// Bytes: BBR.inflight_longterm.
    pub(super) long_volume: Option<u64>,
}

impl Bounds {
    /// Removes the short-term bounds: "ResetShortTermModel".
    pub(super) fn reset_short(&mut self) {
        (self.short_rate, self.short_volume) = (None, None);
    }

    /// Returns bounds that are not lower than those of `other`.
    fn at_least(self, other: Self) -> Self {
        fn larger<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
            a.zip(b).map(|(a, b)| if a > b { a } else { b })
        }
        Self {
            short_rate: larger(self.short_rate, other.short_rate),
            short_volume: larger(self.short_volume, other.short_volume),
            long_volume: larger(self.long_volume, other.long_volume),
        }
    }
}

/// Delivery and losses of the current round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recent {
    /// Largest delivery rate, bytes per second, and most bytes delivered while one segment was in flight: BBR.bw_latest,
    /// BBR.inflight_latest.
    rate: f64,
    volume: u64,
    /// Losses in this round: BBR.is_loss_in_round.
    lossy: Lossy,
    /// Delivered bytes that end the round: an ACK ends it for a segment sent after so many were delivered:
    /// BBR.loss_round_delivered.
    until: u64,
    /// `true` if this acknowledgment ends the round: BBR.loss_round_start.
    pub(super) ends: bool,
    /// Number of discontiguous lost ranges, and the end of the last one.
    stretches: u32,
    lost_to: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Lossy {
    #[default]
    No,
    Yes,
}

impl Recent {
    /// "UpdateLatestDeliverySignals".
    pub(super) fn update(&mut self, sample: &RateSample, delivered: u64) {
        self.rate = self.rate.max(sample.rate.unwrap_or(0.0));
        self.volume = self.volume.max(sample.delivered);
        self.ends = sample.prior_delivered >= self.until;
        if self.ends {
            self.until = delivered;
        }
    }

    /// "AdvanceLatestDeliverySignals".
    pub(super) fn advance(&mut self, sample: &RateSample) {
        if self.ends {
            (self.rate, self.volume) = (sample.rate.unwrap_or(0.0), sample.delivered);
            self.stretches = 0;
        }
    }

    /// "ResetCongestionSignals".
    pub(super) fn reset(&mut self) {
        self.lossy = Lossy::No;
        (self.rate, self.volume) = (0.0, 0);
    }
}

/// State to restore if a loss turns out to be spurious: "SaveStateUponLoss".
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    pub(super) to: Option<UndoTo>,
    bounds: Bounds,
}

impl Limits {
    /// "IsInflightTooHigh".
    fn exceeded(&self, lost: u64, in_flight: u64) -> bool {
        lost as f64 > in_flight as f64 * self.loss_threshold
    }

    /// Returns the bytes in flight at the point within this segment where losses exceeded the threshold:
    /// "InflightAtLoss".
    fn volume_at(&self, loss: &Loss) -> u64 {
        let size = loss.segment.end - loss.segment.start;
        let before = loss.stamp.in_flight.saturating_sub(size) as f64;
        let lost_before = (loss.lost - loss.stamp.lost).saturating_sub(size) as f64;
        let part = (self.loss_threshold * before - lost_before) / (1.0 - self.loss_threshold);
        (before + part).max(0.0) as u64
    }
}

impl V3 {
    /// "HandleLostPacket".
    pub(super) fn on_loss(&mut self, loss: &Loss, delivered: u64, now: Instant, orders: &Orders) {
        self.note_loss(delivered, orders.cwnd);
        if self.recent.lost_to != loss.segment.start {
            self.recent.stretches += 1;
        }
        self.recent.lost_to = loss.segment.end;
        if self.awaits_verdict() && self.limits.exceeded(loss.lost - loss.stamp.lost, loss.stamp.in_flight) {
            self.lower_volume(self.limits.volume_at(loss), loss.stamp.limit, delivered, now, orders);
        }
    }

    /// "NoteLoss".
    pub(super) fn note_loss(&mut self, delivered: u64, cwnd: u64) {
        if self.recent.lossy == Lossy::No {
            self.recent.until = delivered;
            self.remember_for_undo(cwnd);
        }
        self.recent.lossy = Lossy::Yes;
    }

    /// "SaveStateUponLoss".
    pub(super) fn remember_for_undo(&mut self, cwnd: u64) {
        self.save_window(cwnd);
        self.undo = Undo { to: None, bounds: self.bounds };
    }

    /// "HandleInflightTooHigh".
    fn lower_volume(&mut self, volume: u64, limit: Limit, delivered: u64, now: Instant, orders: &Orders) {
        self.note_too_high();
        if limit == Limit::Path {
            let least = self.own_volume(orders.cwnd) as f64 * self.limits.beta;
            self.bounds.long_volume = Some(volume.max(least as u64));
        }
        if self.state == State::Up {
            self.undo.to = Some(UndoTo::Up);
            self.start_down(delivered, now);
        }
    }

    /// Returns whether losses are below the threshold: the loss part of "IsInflightTooHigh", negated.
    pub(super) fn losses_are_tolerable(&self, sample: &RateSample) -> bool {
        !self.limits.exceeded(sample.lost, sample.in_flight)
    }

    /// "AdaptLowerBoundsFromCongestion", once in a round with losses.
    pub(super) fn adapt_short_bounds(&mut self, cwnd: u64) {
        if !self.recent.ends {
            return;
        }
        let lossy = core::mem::take(&mut self.recent.lossy);
        if self.is_probing() || lossy == Lossy::No {
            return;
        }
        let beta = self.limits.beta;
        let rate = self.bounds.short_rate.unwrap_or_else(|| self.most_bandwidth());
        let volume = self.bounds.short_volume.unwrap_or(cwnd);
        self.bounds.short_rate = Some(self.recent.rate.max(beta * rate));
        self.bounds.short_volume = Some(self.recent.volume.max((beta * volume as f64) as u64));
    }

    /// "CheckStartupHighLoss". A round in recovery has to be over.
    pub(super) fn startup_lost_too_much(&mut self, seen: &Seen, sample: &RateSample) -> bool {
        let for_a_round = self.recovery_round.is_some_and(|round| self.rounds.count > round);
        let too_much = self.state == State::Startup
            && self.recent.ends
            && seen.phase == Phase::Recovery
            && for_a_round
            && self.recent.stretches >= STARTUP_LOSSES
            && !self.losses_are_tolerable(sample);
        if too_much {
            self.undo.to = Some(UndoTo::Startup);
            self.bounds.long_volume = Some(self.product(1.0).max(self.recent.volume));
        }
        too_much
    }

    /// "HandleSpuriousLossDetection".
    pub(super) fn on_undo(&mut self, delivered: u64, orders: &mut Orders) {
        orders.cwnd = self.good.restore(orders.cwnd);
        self.recent.lossy = Lossy::No;
        self.look_for_growth_from(0.0);
        self.bounds = self.bounds.at_least(self.undo.bounds);
        match (self.undo.to.take(), self.state) {
            (Some(UndoTo::Startup), State::Startup) | (Some(UndoTo::Up), State::Up) | (None, _) => {}
            (Some(UndoTo::Startup), state) => self.return_to_startup(state),
            (Some(UndoTo::Up), State::ProbeRtt(_)) => {}
            (Some(UndoTo::Up), _) => self.start_refill(delivered),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::delivery_rate::Stamp;

    const LIMITS: Limits = Limits { loss_threshold: 0.02, beta: 0.7, headroom: 0.15 };

    /// A lost segment of 1000 bytes with 100,000 in flight before it, of which `lost_before` were lost before it.
    fn loss(lost_before: u64) -> Loss {
        let stamp = Stamp { in_flight: 101_000, lost: 5000, ..Stamp::default() };
        Loss { segment: 1..1001, stamp, lost: 5000 + lost_before + 1000 }
    }

    #[test]
    fn what_was_in_flight_when_losses_became_too_many_lies_within_the_segment_that_did_it() {
        // (1500 + x) / (100,000 + x) = 0.02 at x = 510.2
        assert_eq!(LIMITS.volume_at(&loss(1500)), 100_510);
        assert_eq!(LIMITS.volume_at(&loss(2000)), 100_000);
        // They had been too many before: (2000 − 3000) / 0.98
        assert_eq!(LIMITS.volume_at(&loss(3000)), 98_979);
        assert_eq!(LIMITS.volume_at(&loss(1 << 40)), 0, "and never below nothing");
    }

    #[test]
    fn a_fiftieth_is_not_yet_too_much() {
        assert!(!LIMITS.exceeded(2000, 100_000));
        assert!(LIMITS.exceeded(2001, 100_000));
    }

    #[test]
    fn undoing_lowers_no_bound_and_none_is_the_highest() {
        let now = Bounds { short_rate: Some(10.0), short_volume: Some(7), long_volume: Some(5) };
        let before = Bounds { short_rate: Some(20.0), short_volume: None, long_volume: Some(4) };
        let undone = Bounds { short_rate: Some(20.0), short_volume: None, long_volume: Some(5) };
        assert_eq!(now.at_least(before), undone);
    }
}
