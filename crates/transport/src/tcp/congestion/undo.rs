//! Records of reductions, and their undoing.
//!
//! Each reaction that reduces the window (time-out, fast retransmit, ECN mark) first records the state that it changes. A
//! scheme that later finds the reduction to be spurious (Eifel, DSACK, F-RTO, TCP-DOOR) selects it and undoes it, with
//! all later ones: [`Endpoint::undo_reductions`]. Recording has no effect of its own.
//!
//! | part | kept by | undone by |
//! |---|---|---|
//! | `cwnd`, `ssthresh`, CUBIC's variables, phase, "recover" | [`CongestionState::save_before_reduction`] | [`CongestionState::restore`] |
//! | back-off of the timer, the estimate it made the timer forget | [`Rto::back_off_state`] | [`Rto::undo_back_off`] |
//!
//! A strategy with more state adds it to [`SavedState`]. A user-defined algorithm keeps its own state and is notified.

use super::window::CongestionWindow;
use super::{CongestionState, RecoveryPhase};
use crate::tcp::endpoint::Endpoint;
use crate::tcp::rto::BackoffState;
use crate::tcp::timer::Timer;
use hopline_core::{Duration, Instant, Payload};
use std::collections::VecDeque;

/// Number of reductions remembered. Older ones can no longer be undone.
const MAX_REDUCTIONS: usize = 16;

/// Cause of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The retransmission timer expired.
    Timeout,
    /// Duplicate acknowledgments or SACK: fast retransmit.
    FastRetransmit,
    /// ECN mark (RFC 3168). Never remembered, since it cannot be spurious; it also clears the earlier records.
    Mark,
}

/// The state of congestion control before a reduction.
#[derive(Clone, Debug)]
pub(crate) struct SavedState {
    pub(crate) cause: Cause,
    window: CongestionWindow,
    recover: u64,
    reduced_below: u64,
    timed_out_at: u64,
    acked_since_timeout: bool,
}

/// A reduction, with the state before it.
#[derive(Clone, Debug)]
pub(crate) struct SavedReduction {
    /// Time of the reduction.
    pub(crate) at: Instant,
    pub(crate) state: SavedState,
    pub(crate) back_off: BackoffState,
}

/// Last reductions, oldest first, without those that were undone.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReductionHistory {
    recent: VecDeque<SavedReduction>,
}

/// Selection of a reduction to undo; all later ones are undone with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UndoSelection {
    /// The last one.
    #[cfg_attr(not(test), allow(dead_code, reason = "for Eifel, DSACK and F-RTO"))]
    Latest,
    /// The last one, if it is not older than this.
    LatestSince(Instant),
    /// The oldest one that is not older than this.
    OldestSince(Instant),
}

/// Continuation of sending after an undo that includes a time-out. No effect on a fast retransmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterUndo {
    /// Data after the first unacknowledged segment are still resent, since they may be lost, though not to congestion.
    /// Duplicates that the retransmissions cause start no fast retransmit (RFC 6582 §3.2 (4)).
    Retransmissions,
    /// Sending continues with new data, since nothing was lost (RFC 4015 §3.2).
    NewData,
}

/// Reductions that are undone together.
#[derive(Clone, Debug)]
struct UndoneReductions {
    oldest: SavedReduction,
    go_back_n: GoBackN,
}

/// `Yes` if one of the reductions was a time-out, which makes the sender go back to the first unacknowledged byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GoBackN {
    Yes,
    No,
}

impl ReductionHistory {
    /// Clears the records, so that no reduction can be undone any more.
    pub(in crate::tcp) fn clear(&mut self) {
        self.recent.clear();
    }

    fn push(&mut self, reduction: SavedReduction) {
        if self.recent.len() == MAX_REDUCTIONS {
            self.recent.pop_front();
        }
        self.recent.push_back(reduction);
    }

    /// Returns the reduction that `which` selects.
    #[cfg_attr(not(test), allow(dead_code, reason = "for Eifel, DSACK and F-RTO"))]
    pub(crate) fn find(&self, which: UndoSelection) -> Option<&SavedReduction> {
        self.index(which).map(|i| &self.recent[i])
    }

    /// Removes and returns the reduction that `which` selects, and those after it.
    fn take_since(&mut self, which: UndoSelection) -> Option<UndoneReductions> {
        let i = self.index(which)?;
        let timed_out = self.recent.range(i..).any(|r| r.state.cause == Cause::Timeout);
        self.recent.truncate(i + 1);
        let oldest = self.recent.pop_back()?;
        Some(UndoneReductions { oldest, go_back_n: if timed_out { GoBackN::Yes } else { GoBackN::No } })
    }

    fn index(&self, which: UndoSelection) -> Option<usize> {
        let last = self.recent.len().checked_sub(1)?;
        match which {
            UndoSelection::Latest => Some(last),
            UndoSelection::LatestSince(earliest) => (self.recent[last].at >= earliest).then_some(last),
            UndoSelection::OldestSince(earliest) => {
                let i = self.recent.partition_point(|r| r.at < earliest);
                (i <= last).then_some(i)
            }
        }
    }
}

impl CongestionState {
    /// Records the state before a reduction of the window that ends at `max`. Every reduction calls this first. While the
    /// window is held, nothing is recorded.
    pub(super) fn save_before_reduction(&mut self, cause: Cause, max: u64) {
        self.reduction_was_held = !self.is_not_held();
        if self.reduction_was_held {
            return;
        }
        self.saved_before = Some(SavedState {
            cause,
            window: self.window.clone(),
            recover: self.recover,
            reduced_below: self.reduced_below,
            timed_out_at: self.timed_out_at,
            acked_since_timeout: self.acked_since_timeout,
        });
        self.reduced_below = max;
    }

    /// Returns the state before the reduction that just happened, once.
    pub(crate) fn take_saved(&mut self) -> Option<SavedState> {
        self.saved_before.take()
    }

    /// Restores the state before a reduction: no recovery in progress, no duplicates counted, the old `ssthresh`, and the
    /// larger of the old and the current `cwnd`.
    fn restore(&mut self, undone: &UndoneReductions, resume: AfterUndo) {
        let before = &undone.oldest.state;
        self.window.restore(&before.window);
        self.phase = RecoveryPhase::Open;
        self.dup_acks = 0;
        self.partial_acks = 0;
        self.limited_transmit_bytes = 0;
        self.reduced_below = before.reduced_below;
        self.timed_out_at = before.timed_out_at;
        self.acked_since_timeout = before.acked_since_timeout;
        if undone.go_back_n == GoBackN::No || resume == AfterUndo::NewData {
            self.recover = before.recover;
        }
    }
}

impl<P: Payload> Endpoint<P> {
    /// Stores the reduction that an acknowledgment or a timer caused, if any. `back_off`: state before it.
    pub(in crate::tcp) fn record_reduction(&mut self, now: Instant, back_off: BackoffState) {
        if let Some(before) = self.control.take_saved() {
            self.request_cwr();
            self.reductions.push(SavedReduction { at: now, state: before, back_off });
        }
    }

    /// Undoes a reduction and those after it. Congestion window, slow start threshold and back-off get their old values,
    /// or keep better ones, and recovery ends. Returns the oldest reduction; `None`: there is no such reduction.
    pub(in crate::tcp) fn undo_reductions(
        &mut self,
        now: Instant,
        which: UndoSelection,
        resume: AfterUndo,
    ) -> Option<SavedReduction> {
        let undone = self.reductions.take_since(which)?;
        self.close_suspect(undone.oldest.at);
        self.control.restore(&undone, resume);
        let round_trip = self.rto.srtt().unwrap_or(Duration::ZERO);
        self.control.notify_custom_of_undo(self.snd.nxt - self.snd.una, now, round_trip);
        self.rate_control_on_undo(now);
        self.rto.undo_back_off(undone.oldest.back_off);
        if resume == AfterUndo::NewData && undone.go_back_n == GoBackN::Yes {
            self.snd.nxt = self.snd.nxt.max(self.snd.max);
            self.snd.retransmit_first = false;
        }
        if self.timers.is_set(Timer::Retransmit) {
            self.arm_retransmit(now); // without the back-off
        }
        Some(undone.oldest)
    }
}
