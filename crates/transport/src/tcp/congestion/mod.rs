//! Congestion control (RFC 5681) and its recovery strategies.
//!
//! `CongestionState` holds the state that all strategies share: the window, the duplicate count, the phase. The files are:
//!
//! - `reno`, `newreno`, `sack`: the strategies, each with its configuration; `rack`: SACK recovery with time-based loss
//!   detection;
//! - `undo`: undoing of reductions; `route_change`: restart of the window;
//! - `window`: growth and reduction of the window; `cubic`: the cubic function;
//! - `slow_start`: end of slow start before the first loss, by `hystart` or `hystart_pp`;
//! - `prague`: scalable response to marks; `cwr`: gradual reduction after a mark;
//! - `custom`: user-defined algorithms, which `custom_calls` calls; `bbr`: rate-based control.
//!
//! Positions are stream offsets (`u64`, SYN at 0), so nothing here wraps around.

pub(crate) mod bbr;
pub(crate) mod cubic;
mod cubic_linux;
mod custom;
mod custom_calls;
mod cwr;
mod hystart;
mod hystart_pp;
mod newreno;
mod prague;
mod prr;
mod rack;
mod reno;
mod response;
mod route_change;
mod sack;
mod slow_start;
mod slow_start_input;
mod spurious_timeout;
pub(crate) mod undo;
mod window;
pub(crate) mod window_hold;

pub use bbr::{BbrConfig, BbrModel, BbrState, BbrVersion, PolicerDetection, PolicerState};
pub use cubic::{CubicArithmetic, CubicConfig, FastConvergence};
pub(crate) use custom::CustomState;
pub use custom::{
    CongestionSignal, CustomCcAck, CustomCcLoss, CustomCcState, CustomCcTimeout, CustomCongestionControl,
    CustomCongestionControlId, TimeoutResultUse,
};
pub use hystart::{HyStartConfig, HyStartDetection};
pub use hystart_pp::{HyStartPlusPlusConfig, HyStartScope};
pub use newreno::{NewRenoConfig, NewRenoExit, NewRenoTimer, PartialAck};
pub use prague::PragueConfig;
use prr::Cwr;
pub use prr::{MarkReduction, PrrBound, RecoveryReduction};
pub(crate) use prr::{RecoveryAck, SafeAck};
pub use reno::{FastRetransmitGuard, RenoConfig, RenoExit};
pub(crate) use response::{
    BackoffAction, ControlEvent, EcnEffect, ImmediateRetransmission, Response, TimerAction,
};
pub use sack::{SackConfig, SackRules};
pub use slow_start::SlowStart;
pub use window::CongestionControl;

use super::config::{Config, LimitedTransmit, LossDetection, RecoveryTimeout, Reduction, RepeatedTimeout};
use super::scoreboard::Scoreboard;
use bbr::Bbr;
use custom_calls::RttContext;
use hopline_core::{Duration, Instant, Seq32};
use sack::SackRecovery;
use undo::{Cause, SavedState};
use window::{CongestionWindow, GrowthStep};
use window_hold::WindowHold;

/// Recovery strategy, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Fast retransmit and fast recovery, left on the first new ACK (RFC 5681).
    Reno(RenoConfig),
    /// Recovery until everything in flight at its start is acknowledged (RFC 6582).
    NewReno(NewRenoConfig),
    /// Selective acknowledgments (RFC 2018, RFC 6675). Falls back to NewReno if the peer does not offer SACK.
    Sack(SackConfig),
}

/// State of loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecoveryPhase {
    /// No loss is known.
    Open,
    /// Fast recovery.
    Recovery,
    /// After a time-out, until everything sent before it is acknowledged.
    Loss,
}

/// Input of congestion control for an acknowledgment. Positions are stream offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckInput {
    /// Bytes newly acknowledged; 0 for a duplicate.
    pub(crate) acked: u64,
    /// Bytes reported for the first time, cumulatively or selectively.
    pub(crate) delivered: u64,
    /// First unacknowledged position, after this ACK.
    pub(crate) una: u64,
    /// Next position to send.
    pub(crate) nxt: u64,
    /// Position after the highest ever sent.
    pub(crate) max: u64,
    /// `true` if it reports an ECN mark on our data.
    pub(crate) marked: bool,
    /// Bytes that it reports as marked, with accurate feedback (RFC 9768).
    pub(crate) marked_bytes: u64,
    /// `true` if the window was full before this ACK.
    pub(crate) window_was_full: bool,
    /// Time of arrival.
    pub(crate) now: Instant,
    /// Smoothed round-trip time; zero before the first sample.
    pub(crate) round_trip: Duration,
    /// Round-trip time sample of this ACK, if there is one.
    pub(crate) sample: Option<Duration>,
    /// Round-trip time of the data that it acknowledges, as exact as it is known.
    pub(crate) segment_rtt: Option<Duration>,
}

/// Unacknowledged data at an expiry of the retransmission timer. Positions are stream offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outstanding {
    /// First unacknowledged position.
    pub(crate) una: u64,
    /// Next position to send.
    pub(crate) nxt: u64,
    /// Position after the highest ever sent.
    pub(crate) max: u64,
    /// Bytes below `nxt` that SACK blocks report.
    pub(crate) sacked: u64,
    /// Time of the expiry.
    pub(crate) now: Instant,
    /// Smoothed round-trip time; zero before the first sample.
    pub(crate) round_trip: Duration,
}

/// Congestion state of one connection.
#[derive(Clone, Debug)]
pub(crate) struct CongestionState {
    variant: Variant,
    detection: LossDetection,
    window: CongestionWindow,
    phase: RecoveryPhase,
    dup_acks: u32,
    /// Position after the highest sent when recovery began or the timer expired ("recover" of RFC 6582, "RecoveryPoint"
    /// of RFC 6675).
    recover: u64,
    /// Partial ACKs seen in this recovery.
    partial_acks: u32,
    /// First unacknowledged position at the last time-out.
    timed_out_at: u64,
    /// `true` if new data were acknowledged since the last time-out.
    acked_since_timeout: bool,
    /// Position after the highest sent when the window was last reduced. Marks on data below it belong to the reduced
    /// window and cause no further reduction.
    reduced_below: u64,
    /// As `reduced_below`, for a reduction by a mark. Losses below it cause no further reduction either.
    marked_below: u64,
    cwr: Cwr,
    /// Bytes sent by limited transmit since the last new ACK; not part of FlightSize (RFC 5681 §3.2 (2)).
    limited_transmit_bytes: u32,
    sack_recovery: SackRecovery,
    /// State before a reduction, until it is stored.
    saved_before: Option<SavedState>,
    hold: WindowHold,
    /// `true` if the window was held at the last recovery or time-out.
    reduction_was_held: bool,
    /// User-defined congestion control algorithm, if there is one.
    custom: Option<Box<CustomState>>,
    /// State of BBR, if it is the algorithm.
    bbr: Option<Box<Bbr>>,
}

impl CongestionState {
    /// Creates the state before the handshake. `law`: algorithm for [`CongestionControl::Custom`]; `iss`: initial sequence number.
    pub(crate) fn new(config: &Config, law: Option<Box<dyn CustomCongestionControl>>, iss: Seq32) -> Self {
        Self {
            bbr: Bbr::from_config(config, iss),
            custom: law.map(|law| Box::new(CustomState::new(law))),
            variant: config.variant,
            detection: config.loss_detection,
            window: CongestionWindow::new(config, config.mss),
            phase: RecoveryPhase::Open,
            dup_acks: 0,
            recover: 0,
            partial_acks: 0,
            timed_out_at: u64::MAX,
            acked_since_timeout: true,
            reduced_below: 0,
            marked_below: 0,
            cwr: Cwr::Idle,
            limited_transmit_bytes: 0,
            sack_recovery: SackRecovery::default(),
            saved_before: None,
            hold: WindowHold::None,
            reduction_was_held: false,
        }
    }

    /// Sets the results of the handshake: the segment size `mss` in bytes, the use of SACK, and a loss of the SYN.
    pub(crate) fn on_established(
        &mut self,
        config: &Config,
        mss: u32,
        sack: SackNegotiation,
        syn: SynOutcome,
    ) {
        self.window = CongestionWindow::new(config, mss);
        if syn == SynOutcome::Retransmitted {
            self.window.collapse(); // RFC 5681 §3.1: IW is one segment if the SYN or SYN-ACK was lost
        }
        if let (Variant::Sack(_), SackNegotiation::Refused) = (self.variant, sack) {
            self.variant = Variant::NewReno(NewRenoConfig::RFC6582);
            self.detection = LossDetection::DupAcks;
            self.bbr = None; // it takes its samples of what RACK records
        }
    }

    pub(crate) fn cwnd(&self) -> u32 {
        self.window.cwnd + self.window.inflation
    }

    pub(crate) fn ssthresh(&self) -> u32 {
        self.window.ssthresh
    }

    pub(crate) fn phase(&self) -> RecoveryPhase {
        self.phase
    }

    /// Returns the number of duplicate acknowledgments since the last that acknowledged new data.
    pub(crate) fn dup_acks(&self) -> u32 {
        self.dup_acks
    }

    /// Returns whether the window was reduced for an ECN mark within the last round trip.
    pub(crate) fn is_reducing_for_mark(&self, una: u64) -> bool {
        una < self.marked_below
    }

    /// Returns whether SACK blocks decide what to send next.
    pub(crate) fn in_sack_recovery(&self) -> bool {
        self.phase == RecoveryPhase::Recovery && matches!(self.variant, Variant::Sack(_))
    }

    /// Returns whether retransmissions skip data that were selectively acknowledged since the time-out, also after the
    /// time-out was undone. `resending`: the next data have been sent before.
    pub(crate) fn skips_sacked(&self, resending: bool) -> bool {
        let after_timeout =
            self.phase == RecoveryPhase::Loss || (self.phase == RecoveryPhase::Open && resending);
        after_timeout && matches!(self.variant, Variant::Sack(s) if s.rules == SackRules::Rfc6675)
    }

    /// Returns whether an ACK that reports nothing new still counts as a segment that left the network.
    pub(crate) fn counts_pipe_by_acks(&self) -> bool {
        self.phase == RecoveryPhase::Recovery
            && matches!(self.variant, Variant::Sack(s) if s.rules == SackRules::Ns2)
    }

    /// Returns whether arriving SACK blocks are recorded.
    pub(crate) fn records_sack(&self) -> bool {
        match self.variant {
            Variant::Sack(s) => s.rules == SackRules::Rfc6675 || self.acked_since_timeout,
            Variant::Reno(_) | Variant::NewReno(_) => false,
        }
    }

    /// Returns the bytes that may be in flight outside SACK recovery, limited transmit included.
    pub(crate) fn send_allowance(&self, config: &Config, nxt: u64, max: u64) -> u64 {
        u64::from(self.cwnd()) + self.limited_transmit_allowance(config, nxt, max)
    }

    /// Returns the allowance of limited transmit: one segment for each duplicate below the threshold (RFC 3042).
    fn limited_transmit_allowance(&self, config: &Config, nxt: u64, max: u64) -> u64 {
        let open = match config.limited_transmit {
            LimitedTransmit::Off => false,
            LimitedTransmit::NewData => nxt == max,
            LimitedTransmit::NextData => true,
        };
        if open && self.phase != RecoveryPhase::Recovery && self.dup_acks < config.dup_ack_threshold {
            u64::from(self.dup_acks.min(2)) * u64::from(self.window.mss)
        } else {
            0
        }
    }

    /// Processes an acknowledgment of new data.
    pub(crate) fn on_new_ack(&mut self, config: &Config, ack: &AckInput, board: &mut Scoreboard) -> Response {
        self.react_under_hold(|c| c.handle_new_ack(config, ack, board))
    }

    fn handle_new_ack(&mut self, config: &Config, ack: &AckInput, board: &mut Scoreboard) -> Response {
        self.limited_transmit_bytes = 0;
        if self.phase == RecoveryPhase::Recovery {
            return match self.variant {
                Variant::Reno(reno) => reno::on_new_ack(self, reno, config, ack),
                Variant::NewReno(newreno) => newreno::on_new_ack(self, newreno, config, ack),
                Variant::Sack(_) if self.detection != LossDetection::DupAcks => rack::on_new_ack(self, ack),
                Variant::Sack(sack) => sack::on_new_ack(self, sack, config, ack, board),
            };
        }
        self.dup_acks = 0;
        self.acked_since_timeout = true;
        self.end_mark_reduction_at(ack.una);
        if matches!(self.variant, Variant::Sack(s) if s.rules == SackRules::Ns2) {
            board.clear(); // ns-2 keeps blocks during recovery only
        }
        // RFC 3168 §6.1.2. After a time-out what tells the peer that the window was reduced has to wait for new data.
        if self.bbr.is_some() {
            // It is told of the ACK when losses were looked for.
        } else if self.custom.is_some() {
            self.grow_by_custom(config, ack);
        } else if (!ack.marked && !self.is_in_cwr())
            || self.phase == RecoveryPhase::Loss
            || self.is_scalable()
        {
            self.grow(config, ack);
        }
        if self.phase == RecoveryPhase::Loss && ack.una >= self.recover {
            self.phase = RecoveryPhase::Open;
        }
        Response::RESTART_TIMER
    }

    /// Processes the ECN mark that an acknowledgment reports, unless its window was reduced already. Losses and marks of
    /// one window count once (RFC 3168 §6.1.2), and the peer repeats the echo until it has data from after the reduction
    /// (§6.1.3). A mark reduces the window even while it is held, since only congestion causes marks. It also ends the
    /// exemption of a recovery that began under a hold.
    pub(crate) fn on_mark(&mut self, config: &Config, ack: &AckInput) -> Response {
        if self.is_scalable() {
            return self.on_scalable_mark(ack);
        }
        if ack.una <= self.reduced_below {
            return Response::NOTHING;
        }
        self.end_mark_reduction_at(ack.una);
        self.reduced_below = ack.max;
        self.marked_below = ack.max;
        self.reduction_was_held = false;
        let window = if self.window.cwnd <= self.window.mss {
            EcnEffect::OneSegment
        } else {
            let flight = match ack.nxt - ack.una + ack.acked {
                // A mark of the handshake, with accurate feedback: nothing has been sent.
                0 if ack.marked_bytes > 0 => self.window.cwnd.into(),
                flight => flight,
            };
            // An ACK that ends recovery covers data that left the path long ago.
            let flight = flight.min(u64::from(self.window.cwnd) + u64::from(self.window.inflation));
            let target = self.reduce(config, flight, Cause::Mark, RttContext::from_ack(ack));
            self.start_mark_reduction(config, ack, target);
            EcnEffect::Reduced
        };
        Response { event: ControlEvent::EcnReaction(window), ..Response::NOTHING }
    }

    /// Processes a duplicate acknowledgment.
    pub(crate) fn on_duplicate(
        &mut self,
        config: &Config,
        ack: &AckInput,
        board: &mut Scoreboard,
    ) -> Response {
        self.dup_acks = self.dup_acks.saturating_add(1);
        self.react_under_hold(|c| match c.variant {
            Variant::Reno(reno) => reno::on_duplicate(c, reno, config, ack),
            Variant::NewReno(_) => newreno::on_duplicate(c, config, ack),
            Variant::Sack(_) if c.detection != LossDetection::DupAcks => Response::default(),
            Variant::Sack(sack) => sack::on_duplicate(c, sack, config, ack, board),
        })
    }

    /// Processes an expiry of the retransmission timer. The caller goes back to the first unacknowledged position.
    pub(crate) fn on_timeout(&mut self, config: &Config, outstanding: Outstanding) {
        self.react_to_timeout(|c| c.handle_timeout(config, outstanding));
    }

    fn handle_timeout(&mut self, config: &Config, outstanding: Outstanding) {
        let max = outstanding.max;
        self.abandon_mark_reduction();
        self.save_before_reduction(Cause::Timeout, max);
        self.window.inflation = 0;
        if self.bbr.is_none() {
            self.reduce_or_collapse(config, outstanding);
        }
        self.phase = RecoveryPhase::Loss;
        self.acked_since_timeout = false;
        self.recover = max; // RFC 6582 §3.2 (4), RFC 6675 §5.1
        self.dup_acks = 0;
        self.limited_transmit_bytes = 0;
    }

    fn reduce_or_collapse(&mut self, config: &Config, outstanding: Outstanding) {
        let una = outstanding.una;
        // RFC 5681 §3.1: ssthresh stays if this very segment was already resent by the timer.
        if self.timed_out_at != una || config.repeated_timeout == RepeatedTimeout::Reduce {
            self.reduce_on_timeout(config, outstanding);
        } else {
            self.notify_custom_of_timeout(config, outstanding);
        }
        if self.is_not_held() {
            self.timed_out_at = una;
        }
        self.window.on_timeout();
    }

    /// Reduces the window for a time-out. In recovery the window was reduced for a known loss before. A time-out is then
    /// a second indication of congestion: `ssthresh` is lowered again (RFC 5681 §4.3) and never raised. FlightSize is
    /// then limited to the reduced window, without data that the peer holds already.
    fn reduce_on_timeout(&mut self, config: &Config, outstanding: Outstanding) {
        let Outstanding { una, nxt, sacked, .. } = outstanding;
        let moment = outstanding.rtt_context();
        match (self.phase, config.recovery_timeout) {
            (RecoveryPhase::Recovery, RecoveryTimeout::Keep) => {
                self.notify_custom_of_timeout(config, outstanding)
            }
            (RecoveryPhase::Recovery | RecoveryPhase::Loss, _) => {
                let ssthresh = self.window.ssthresh;
                let flight = (nxt - una).saturating_sub(sacked).min(u64::from(self.window.cwnd));
                let told = self.reduce_by_custom(config, flight, Cause::Timeout, moment);
                self.window.reduce(config, flight, Cause::Timeout, told);
                if config.reduction == Reduction::FlightSize {
                    self.window.ssthresh = self.window.ssthresh.min(ssthresh);
                }
            }
            (RecoveryPhase::Open, _) => {
                self.reduce(config, nxt - una, Cause::Timeout, moment);
            }
        }
    }

    /// Restarts the window after one RTO without sending (RFC 5681 §4.1).
    pub(crate) fn on_idle(&mut self, config: &Config) {
        self.abandon_mark_reduction();
        if self.bbr.is_none() {
            self.window.restart(config);
        }
    }

    /// Processes a transmission after nothing was in flight.
    pub(crate) fn on_resume(&mut self, now: Instant) {
        self.window.skip_idle(now);
    }

    /// Records a transmission of `len` data bytes from position `at`; `flight` bytes are now in flight.
    pub(crate) fn on_sent(&mut self, at: u64, len: u32, flight: u64, board: &Scoreboard) {
        if self.phase == RecoveryPhase::Recovery {
            self.sack_recovery.on_sent(at, len, board.end());
        } else if self.is_in_cwr() {
            self.sack_recovery.prr.on_sent(len);
        } else if self.dup_acks > 0 && flight > u64::from(self.window.cwnd) {
            self.limited_transmit_bytes = self.limited_transmit_bytes.saturating_add(len);
        }
    }

    /// Returns the next position to send in SACK recovery, and the most bytes to send. `fresh`: availability of new data.
    pub(crate) fn next_in_recovery(
        &mut self,
        board: &Scoreboard,
        una: u64,
        nxt: u64,
        fresh: NewData,
    ) -> Option<(u64, u64)> {
        sack::next_segment(self, board, una, nxt, fresh)
    }

    fn grow(&mut self, config: &Config, ack: &AckInput) {
        use super::config::GrowthCondition;
        self.window.detect_end_of_slow_start(config, ack, GrowthStep::Before);
        if config.growth_condition == GrowthCondition::Always || ack.window_was_full {
            self.window.grow(config, ack, self.phase);
        } else {
            self.window.skip_idle(ack.now);
        }
        self.window.detect_end_of_slow_start(config, ack, GrowthStep::After);
    }

    fn reduce(&mut self, config: &Config, flight: u64, cause: Cause, moment: RttContext) -> u32 {
        if let Some(bbr) = &mut self.bbr {
            bbr.on_recovery();
            return self.window.cwnd;
        }
        let flight = flight.saturating_sub(u64::from(self.limited_transmit_bytes));
        let told = self.reduce_by_custom(config, flight, cause, moment);
        self.window.reduce(config, flight, cause, told)
    }

    /// Starts fast recovery: halves the window and records the recovery point (RFC 5681 §3.2 (2), (3)).
    fn enter_recovery(&mut self, config: &Config, ack: &AckInput) {
        if ack.una >= self.marked_below {
            self.save_before_reduction(Cause::FastRetransmit, ack.max);
            self.window.cwnd =
                self.reduce(config, ack.nxt - ack.una, Cause::FastRetransmit, RttContext::from_ack(ack));
        } else {
            self.reduction_was_held = !self.is_not_held();
            if self.is_not_held() {
                self.reduced_below = ack.max; // marks of this recovery are of the window that it repairs
            }
        }
        self.abandon_mark_reduction();
        self.recover = ack.max;
        self.phase = RecoveryPhase::Recovery;
        self.partial_acks = 0;
    }

    fn leave_recovery(&mut self) {
        self.phase = RecoveryPhase::Open;
        self.window.inflation = 0;
        self.dup_acks = 0;
    }

    /// Returns whether an ACK covers more than everything sent before the last recovery or time-out (RFC 6582 §3.2 (2):
    /// "covers more than recover").
    fn is_past_recover(&self, una: u64) -> bool {
        una > self.recover
    }
}

/// Outcome of the SACK-permitted negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SackNegotiation {
    /// Both sides offered it.
    Agreed,
    /// One side did not.
    Refused,
}

/// Fate of the SYN or SYN-ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SynOutcome {
    /// Delivered at the first attempt.
    Delivered,
    /// Retransmitted.
    Retransmitted,
}

/// Availability of new data within the peer's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NewData {
    /// New data can be sent.
    Ready,
    /// No new data, or no window for them.
    None,
}
