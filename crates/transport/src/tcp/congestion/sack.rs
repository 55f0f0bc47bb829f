//! Loss recovery with selective acknowledgments (RFC 6675).

use super::prr::{Prr, PrrBound, RecoveryAck, RecoveryReduction, SafeAck};
use super::{AckInput, BackoffAction, CongestionState, NewData, RecoveryPhase, Response};
use crate::tcp::config::Config;
use crate::tcp::scoreboard::Scoreboard;
use hopline_core::settings;

settings! {
    /// Parameters of [`Variant::Sack`](super::Variant::Sack). Start from [`Self::RFC6675`], [`Self::RFC9937`] or
    /// [`Self::NS2`] and use the setters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SackConfig {
        /// Rules of loss inference and pipe estimation. Default RFC 6675.
        rules, with_rules: SackRules,
        /// Reduction of the window during recovery. Default at once; [`Self::RFC9937`]: proportional.
        reduction, with_reduction: RecoveryReduction,
    }
}

/// Rules of loss inference and pipe estimation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SackRules {
    /// `IsLost`, `SetPipe` and `NextSeg` of RFC 6675 §4, with the rescue retransmission. Blocks that arrive after a
    /// time-out are honoured.
    Rfc6675,
    /// `Agent/TCP/Sack1` of ns-2: the pipe is counted (one segment less per ACK, two per partial ACK, one more per
    /// segment sent), every hole below a block is resent, blocks are kept during recovery only and ignored between a
    /// time-out and the next new ACK, and a partial ACK ends the back-off of the timer.
    Ns2,
}

impl SackConfig {
    /// As RFC 6675 writes it.
    pub const RFC6675: Self = Self { rules: SackRules::Rfc6675, reduction: RecoveryReduction::AtOnce };
    /// The same with proportional rate reduction as of RFC 9937.
    pub const RFC9937: Self =
        Self { rules: SackRules::Rfc6675, reduction: RecoveryReduction::Prr(PrrBound::SafeAck) };
    /// `Agent/TCP/Sack1` of ns-2.
    pub const NS2: Self = Self { rules: SackRules::Ns2, reduction: RecoveryReduction::AtOnce };
}

/// State of one recovery.
#[derive(Clone, Debug, Default)]
pub(super) struct SackRecovery {
    /// Estimate of the data in the network, bytes. ns-2's count may fall below zero.
    pipe: i64,
    /// Position after the highest that was resent ("HighRxt").
    high_rxt: u64,
    /// State of the rescue retransmission of this recovery ("RescueRxt").
    rescue: RescueRetransmission,
    /// "DupThresh" of this recovery.
    threshold: u32,
    pub(super) prr: Prr,
    /// Position below which data without a SACK block are known to be lost.
    lost_below: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RescueRetransmission {
    #[default]
    Available,
    Used,
}

impl SackRecovery {
    /// Records `len` sent bytes from `at`. `resent_below`: end of the SACK blocks, above which data are new or the rescue
    /// retransmission.
    pub(super) fn on_sent(&mut self, at: u64, len: u32, resent_below: u64) {
        self.pipe += i64::from(len); // RFC 6675 §5 (C.4)
        self.prr.on_sent(len);
        if at < resent_below {
            self.high_rxt = self.high_rxt.max(at + u64::from(len)); // (C.2); not for the rescue, §4 (4)
        }
    }
}

pub(super) fn on_duplicate(
    c: &mut CongestionState,
    sack: SackConfig,
    config: &Config,
    ack: &AckInput,
    board: &mut Scoreboard,
) -> Response {
    let mss = u64::from(c.window.mss);
    if c.phase == RecoveryPhase::Recovery {
        update_pipe(c, sack, config, ack, board, mss);
        return Response::default();
    }
    // RFC 6675 §5.1: no recovery before everything sent before the time-out is acknowledged. ns-2 wants more than that.
    let allowed = match sack.rules {
        SackRules::Rfc6675 => ack.una >= c.recover,
        SackRules::Ns2 => c.is_past_recover(ack.una),
    };
    let enough = match sack.rules {
        SackRules::Rfc6675 => {
            c.dup_acks >= config.dup_ack_threshold || board.is_lost(ack.una, config.dup_ack_threshold, mss)
        }
        SackRules::Ns2 => c.dup_acks == config.dup_ack_threshold,
    };
    if !(allowed && enough) {
        return Response::default();
    }
    c.enter_recovery(config, ack);
    c.sack_recovery = SackRecovery {
        pipe: 0,
        high_rxt: ack.una,
        rescue: RescueRetransmission::Available,
        threshold: config.dup_ack_threshold,
        prr: Prr::default(),
        lost_below: board.lost_below(config.dup_ack_threshold, mss),
    };
    c.sack_recovery.pipe = match sack.rules {
        SackRules::Rfc6675 => {
            board.pipe(ack.una, ack.nxt, c.sack_recovery.high_rxt, config.dup_ack_threshold, mss) as i64
        }
        // The threshold's worth has left the network; the first retransmission is not counted.
        SackRules::Ns2 => (ack.nxt - ack.una) as i64 - (i64::from(config.dup_ack_threshold) + 1) * mss as i64,
    };
    c.start_prr(ack.nxt - ack.una, board.sacked_below(u64::MAX), ack.delivered);
    c.update_prr(recovery_ack(c, ack, SafeAck::No));
    Response::ENTER_RECOVERY
}

pub(super) fn on_new_ack(
    c: &mut CongestionState,
    sack: SackConfig,
    config: &Config,
    ack: &AckInput,
    board: &mut Scoreboard,
) -> Response {
    if ack.una >= c.recover {
        // RFC 6675 §5 (A)
        c.leave_recovery();
        c.finish_prr();
        if sack.rules == SackRules::Ns2 {
            c.recover = 0;
            board.clear();
        }
        return Response::RESTART_TIMER;
    }
    c.sack_recovery.high_rxt = c.sack_recovery.high_rxt.max(ack.una);
    // ns-2 takes a second segment off for a partial ACK: the retransmission left the network too.
    let left = if sack.rules == SackRules::Ns2 { 2 } else { 1 };
    update_pipe(c, sack, config, ack, board, left * u64::from(c.window.mss));
    let back_off = match sack.rules {
        SackRules::Ns2 => BackoffAction::Reset,
        SackRules::Rfc6675 => BackoffAction::Keep,
    };
    Response { back_off, ..Response::RESTART_TIMER }
}

fn update_pipe(
    c: &mut CongestionState,
    sack: SackConfig,
    config: &Config,
    ack: &AckInput,
    board: &Scoreboard,
    left: u64,
) {
    c.sack_recovery.pipe = match sack.rules {
        SackRules::Rfc6675 => {
            let mss = u64::from(c.window.mss);
            board.pipe(ack.una, ack.nxt, c.sack_recovery.high_rxt, config.dup_ack_threshold, mss) as i64
        }
        SackRules::Ns2 => c.sack_recovery.pipe - left as i64,
    };
    if let RecoveryReduction::Prr(_) = sack.reduction {
        let lost_below = board.lost_below(c.sack_recovery.threshold, u64::from(c.window.mss));
        let safe = ack.acked > 0 && lost_below <= c.sack_recovery.lost_below;
        c.sack_recovery.lost_below = lost_below.max(c.sack_recovery.lost_below);
        c.update_prr(recovery_ack(c, ack, if safe { SafeAck::Yes } else { SafeAck::No }));
    }
}

fn recovery_ack(c: &CongestionState, ack: &AckInput, progress: SafeAck) -> RecoveryAck {
    RecoveryAck { delivered: ack.delivered, pipe: c.sack_recovery.pipe.max(0) as u64, safe_ack: progress }
}

/// RFC 6675 §4 `NextSeg()` under the pipe rule of §5 (C): the next position to send and the most bytes it may take.
pub(super) fn next_segment(
    c: &mut CongestionState,
    board: &Scoreboard,
    una: u64,
    nxt: u64,
    fresh: NewData,
) -> Option<(u64, u64)> {
    let mss = u64::from(c.window.mss);
    if c.sack_recovery.pipe + mss as i64 > i64::from(c.window.cwnd) {
        return None;
    }
    let rules = match c.variant {
        super::Variant::Sack(sack) => sack.rules,
        super::Variant::Reno(_) | super::Variant::NewReno(_) => return None,
    };
    let from = c.sack_recovery.high_rxt.max(una);
    let hole = board.next_hole(from);
    let fresh = (fresh == NewData::Ready).then_some((nxt, u64::MAX));
    match rules {
        SackRules::Ns2 => hole.or(fresh),
        SackRules::Rfc6675 => {
            let threshold = c.sack_recovery.threshold;
            hole.filter(|&(at, _)| board.is_lost(at, threshold, mss)) // (1)
                .or(fresh) // (2)
                .or(hole) // (3)
                .or_else(|| rescue_segment(c, board, from, nxt)) // (4)
        }
    }
}

/// RFC 6675 §4 `NextSeg()` (4): once per recovery, the last segment in flight, in case the tail was lost.
fn rescue_segment(c: &mut CongestionState, board: &Scoreboard, from: u64, nxt: u64) -> Option<(u64, u64)> {
    let mss = u64::from(c.window.mss);
    let tail = board.end().max(from);
    if c.sack_recovery.rescue == RescueRetransmission::Used || tail >= nxt {
        return None;
    }
    c.sack_recovery.rescue = RescueRetransmission::Used;
    let at = tail.max(nxt.saturating_sub(mss));
    Some((at, nxt - at))
}
