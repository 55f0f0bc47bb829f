//! Bounds that losses set (BBRv3): short-term bounds of bandwidth and bytes in flight, and a long-term bound of bytes in
//! flight (draft-ietf-ccwg-bbr §5.5.10).

use super::v3::{LossParameters, State, UndoState, V3};
use super::{BbrAck, ControlOutput};
use crate::tcp::congestion::RecoveryPhase;
use crate::tcp::delivery_rate::{LostSegment, RateSample, SendLimit};
use hopline_core::Instant;

/// Number of discontiguous lost ranges in a round that ends STARTUP: BBRStartupFullLossCnt.
const STARTUP_FULL_LOSS_COUNT: u32 = 6;

/// Bounds of the model; `None`: no bound ("Infinity").
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ModelBounds {
    /// Bytes per second: BBR.bw_shortterm.
    pub(crate) bw_shortterm: Option<f64>,
    /// Bytes: BBR.inflight_shortterm.
    pub(crate) inflight_shortterm: Option<u64>,
    /// Bytes: BBR.inflight_longterm.
    pub(crate) inflight_longterm: Option<u64>,
}

impl ModelBounds {
    /// Removes the short-term bounds: "ResetShortTermModel".
    pub(super) fn reset_shortterm(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (None, None);
    }

    /// Returns bounds that are not lower than those of `other`.
    fn at_least(self, other: Self) -> Self {
        fn larger<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
            a.zip(b).map(|(a, b)| if a > b { a } else { b })
        }
        Self {
            bw_shortterm: larger(self.bw_shortterm, other.bw_shortterm),
            inflight_shortterm: larger(self.inflight_shortterm, other.inflight_shortterm),
            inflight_longterm: larger(self.inflight_longterm, other.inflight_longterm),
        }
    }
}

/// Delivery and losses of the current round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundSignals {
    /// Largest delivery rate, bytes per second, and most bytes delivered while one segment was in flight: BBR.bw_latest,
    /// BBR.inflight_latest.
    pub(super) bw_latest: f64,
    inflight_latest: u64,
    /// Losses in this round: BBR.is_loss_in_round.
    loss_in_round: LossInRound,
    /// Delivered bytes that end the round: an ACK ends it for a segment sent after so many were delivered:
    /// BBR.loss_round_delivered.
    loss_round_delivered: u64,
    /// `true` if this acknowledgment ends the round: BBR.loss_round_start.
    pub(super) loss_round_start: bool,
    /// Number of discontiguous lost ranges, and the end of the last one.
    loss_events: u32,
    last_loss_end: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LossInRound {
    #[default]
    No,
    Yes,
}

impl RoundSignals {
    /// "UpdateLatestDeliverySignals".
    pub(super) fn update(&mut self, sample: &RateSample, delivered: u64) {
        self.bw_latest = self.bw_latest.max(sample.rate.unwrap_or(0.0));
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        self.loss_round_start = sample.prior_delivered >= self.loss_round_delivered;
        if self.loss_round_start {
            self.loss_round_delivered = delivered;
        }
    }

    /// "AdvanceLatestDeliverySignals".
    pub(super) fn advance(&mut self, sample: &RateSample) {
        if self.loss_round_start {
            (self.bw_latest, self.inflight_latest) = (sample.rate.unwrap_or(0.0), sample.delivered);
            self.loss_events = 0;
        }
    }

    /// "ResetCongestionSignals".
    pub(super) fn reset(&mut self) {
        self.loss_in_round = LossInRound::No;
        (self.bw_latest, self.inflight_latest) = (0.0, 0);
    }
}

/// State to restore if all losses of a recovery turn out to be spurious: "SaveStateUponLoss".
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SpuriousLossUndo {
    pub(super) to: Option<UndoState>,
    pub(super) bounds: ModelBounds,
    saved: SavedState,
}

/// Presence of the state before the current recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SavedState {
    /// There is no recovery: the next loss saves the state.
    #[default]
    No,
    /// The first loss of the recovery saved the state.
    Yes,
}

impl SpuriousLossUndo {
    /// Starts a recovery with these bounds.
    pub(super) fn save(&mut self, bounds: ModelBounds) {
        *self = Self { to: None, bounds, saved: SavedState::Yes };
    }

    /// Ends the recovery: the next loss saves the state again.
    pub(super) fn end_recovery(&mut self) {
        self.saved = SavedState::No;
    }
}

impl LossParameters {
    /// "IsInflightTooHigh".
    fn is_inflight_too_high(&self, lost: u64, in_flight: u64) -> bool {
        lost as f64 > in_flight as f64 * self.loss_threshold
    }

    /// Returns the bytes in flight at the point within this segment where losses exceeded the threshold:
    /// "InflightAtLoss".
    fn inflight_at_loss(&self, loss: &LostSegment) -> u64 {
        let size = loss.segment.end - loss.segment.start;
        let before = loss.stamp.in_flight.saturating_sub(size) as f64;
        let lost_before = (loss.lost - loss.stamp.lost).saturating_sub(size) as f64;
        let part = (self.loss_threshold * before - lost_before) / (1.0 - self.loss_threshold);
        (before + part).max(0.0) as u64
    }
}

impl V3 {
    /// "HandleLostPacket".
    pub(super) fn on_loss(
        &mut self,
        loss: &LostSegment,
        delivered: u64,
        now: Instant,
        orders: &ControlOutput,
    ) {
        self.note_loss(delivered, orders.cwnd);
        if self.round_signals.last_loss_end != loss.segment.start {
            self.round_signals.loss_events += 1;
        }
        self.round_signals.last_loss_end = loss.segment.end;
        if self.is_bw_probe_sample()
            && self.loss_parameters.is_inflight_too_high(loss.lost - loss.stamp.lost, loss.stamp.in_flight)
        {
            self.handle_inflight_too_high(
                self.loss_parameters.inflight_at_loss(loss),
                loss.stamp.limit,
                delivered,
                now,
                orders,
            );
        }
    }

    /// "NoteLoss".
    pub(super) fn note_loss(&mut self, delivered: u64, cwnd: u64) {
        if self.round_signals.loss_in_round == LossInRound::No {
            self.round_signals.loss_round_delivered = delivered;
            self.save_cwnd(cwnd);
        }
        // §5.5.11.1: at the start of a recovery. Its later losses, and the reset of the round in "StartProbeBW_DOWN",
        // must not replace that by what the first losses have made of it.
        if self.undo.saved == SavedState::No {
            self.undo.save(self.bounds);
        }
        self.round_signals.loss_in_round = LossInRound::Yes;
    }

    /// "HandleInflightTooHigh".
    fn handle_inflight_too_high(
        &mut self,
        volume: u64,
        limit: SendLimit,
        delivered: u64,
        now: Instant,
        orders: &ControlOutput,
    ) {
        self.record_probe_too_high();
        if limit == SendLimit::Path {
            let least = self.target_inflight(orders.cwnd) as f64 * self.loss_parameters.beta;
            self.bounds.inflight_longterm = Some(volume.max(least as u64));
        }
        if self.state == State::Up {
            self.undo.to = Some(UndoState::Up);
            self.start_probe_bw_down(delivered, now);
        }
    }

    /// Returns whether losses are below the threshold: the loss part of "IsInflightTooHigh", negated.
    pub(super) fn is_loss_tolerable(&self, sample: &RateSample) -> bool {
        !self.loss_parameters.is_inflight_too_high(sample.lost, sample.in_flight)
    }

    /// "AdaptLowerBoundsFromCongestion", once in a round with losses.
    pub(super) fn adapt_lower_bounds(&mut self, cwnd: u64) {
        if !self.round_signals.loss_round_start {
            return;
        }
        let lossy = core::mem::take(&mut self.round_signals.loss_in_round);
        if self.is_probing_bw() || lossy == LossInRound::No {
            return;
        }
        let beta = self.loss_parameters.beta;
        let rate = self.bounds.bw_shortterm.unwrap_or_else(|| self.max_bw());
        let volume = self.bounds.inflight_shortterm.unwrap_or(cwnd);
        self.bounds.bw_shortterm = Some(self.round_signals.bw_latest.max(beta * rate));
        self.bounds.inflight_shortterm =
            Some(self.round_signals.inflight_latest.max((beta * volume as f64) as u64));
    }

    /// "CheckStartupHighLoss". A round in recovery has to be over.
    pub(super) fn check_startup_high_loss(&mut self, seen: &BbrAck, sample: &RateSample) -> bool {
        let for_a_round = self.recovery_round.is_some_and(|round| self.rounds.count > round);
        let too_much = self.state == State::Startup
            && self.round_signals.loss_round_start
            && seen.phase == RecoveryPhase::Recovery
            && for_a_round
            && self.round_signals.loss_events >= STARTUP_FULL_LOSS_COUNT
            && !self.is_loss_tolerable(sample);
        if too_much {
            self.undo.to = Some(UndoState::Startup);
            self.bounds.inflight_longterm =
                Some(self.bdp_multiple(1.0).max(self.round_signals.inflight_latest));
        }
        too_much
    }

    /// "HandleSpuriousLossDetection".
    pub(super) fn on_spurious_loss(&mut self, delivered: u64, orders: &mut ControlOutput) {
        orders.cwnd = self.prior_cwnd.restore(orders.cwnd);
        self.round_signals.loss_in_round = LossInRound::No;
        self.reset_full_bw(0.0);
        self.bounds = self.bounds.at_least(self.undo.bounds);
        self.undo.end_recovery();
        match (self.undo.to.take(), self.state) {
            (Some(UndoState::Startup), State::Startup) | (Some(UndoState::Up), State::Up) | (None, _) => {}
            (Some(UndoState::Startup), state) => self.return_to_startup(state),
            (Some(UndoState::Up), State::ProbeRtt(_)) => {}
            (Some(UndoState::Up), _) => {
                self.start_probe_bw_refill(delivered);
                // §5.3.3.3: REFILL lasts a whole round.
                self.rounds.restart_at_next_ack();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::congestion::bbr::{BbrConfig, ConnectionStart};
    use crate::tcp::delivery_rate::PacketState;
    use hopline_core::{Purpose, RandomStream};

    const LIMITS: LossParameters = LossParameters { loss_threshold: 0.02, beta: 0.7, headroom: 0.15 };

    /// A lost segment of 1000 bytes with 100,000 in flight before it, of which `lost_before` were lost before it.
    fn loss(lost_before: u64) -> LostSegment {
        let stamp = PacketState { in_flight: 101_000, lost: 5000, ..PacketState::default() };
        LostSegment { segment: 1..1001, stamp, lost: 5000 + lost_before + 1000 }
    }

    #[test]
    fn the_inflight_at_loss_lies_within_the_segment_that_exceeds_the_threshold() {
        // (1500 + x) / (100,000 + x) = 0.02 at x = 510.2
        assert_eq!(LIMITS.inflight_at_loss(&loss(1500)), 100_510);
        assert_eq!(LIMITS.inflight_at_loss(&loss(2000)), 100_000);
        // They had been too many before: (2000 − 3000) / 0.98
        assert_eq!(LIMITS.inflight_at_loss(&loss(3000)), 98_979);
        assert_eq!(LIMITS.inflight_at_loss(&loss(1 << 40)), 0, "and never below nothing");
    }

    #[test]
    fn losses_at_the_threshold_do_not_exceed_it() {
        assert!(!LIMITS.is_inflight_too_high(2000, 100_000));
        assert!(LIMITS.is_inflight_too_high(2001, 100_000));
    }

    #[test]
    fn beta_limits_how_far_a_lossy_probe_lowers_the_longterm_bound() {
        let mut v3 = V3::new(BbrConfig::V3, LIMITS, RandomStream::global(1, 0, Purpose::Probing));
        let mut orders = ControlOutput { cwnd: 100_000, pacing_rate: 1.0, send_quantum: 1 };
        let now = Instant::ZERO;
        // Without a round-trip time, the initial window stands for the bandwidth-delay product.
        let opening = ConnectionStart { now, mss: 1000, initial_window: 100_000, handshake_rtt: None };
        v3.start(&opening, &mut orders);
        for (volume, bound) in [(90_000, 90_000), (1000, 70_000)] {
            v3.handle_inflight_too_high(volume, SendLimit::Path, 0, now, &orders);
            assert_eq!(v3.bounds.inflight_longterm, Some(bound));
        }
    }

    #[test]
    fn the_first_timeout_of_a_recovery_saves_the_bounds_and_later_losses_do_not() {
        let mut v3 = V3::new(BbrConfig::V3, LIMITS, RandomStream::global(1, 0, Purpose::Probing));
        let bounds = |volume| ModelBounds { inflight_longterm: Some(volume), ..ModelBounds::default() };
        let mut steps = Vec::new();
        for (volume, expiry) in [(1, false), (2, false), (3, true), (4, false), (5, true)] {
            v3.bounds = bounds(volume);
            if expiry {
                v3.save_before_timeout(1000);
                v3.on_timeout();
            }
            v3.note_loss(0, 1000);
            steps.push(v3.undo.bounds);
        }
        assert_eq!(steps, [1, 1, 3, 3, 3].map(bounds));
    }

    #[test]
    fn an_undo_lowers_no_bound() {
        let now =
            ModelBounds { bw_shortterm: Some(10.0), inflight_shortterm: Some(7), inflight_longterm: Some(5) };
        let before =
            ModelBounds { bw_shortterm: Some(20.0), inflight_shortterm: None, inflight_longterm: Some(4) };
        let undone =
            ModelBounds { bw_shortterm: Some(20.0), inflight_shortterm: None, inflight_longterm: Some(5) };
        assert_eq!(now.at_least(before), undone);
    }
}
