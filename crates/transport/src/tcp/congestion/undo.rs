//! Records of reductions, and their undoing.
//!
//! Each reaction that reduces the window (time-out, fast retransmit, ECN mark) first records the state that it changes. A
//! scheme that later finds the reduction to be spurious (Eifel, DSACK, F-RTO, TCP-DOOR) selects it and undoes it, with
//! all later ones: [`Endpoint::undo`]. Recording has no effect of its own.
//!
//! | part | kept by | undone by |
//! |---|---|---|
//! | `cwnd`, `ssthresh`, CUBIC's variables, phase, "recover" | [`Control::note_reduction`] | [`Control::restore`] |
//! | back-off of the timer, the estimate it made the timer forget | [`Rto::back_off_state`] | [`Rto::undo_back_off`] |
//!
//! A strategy with more state adds it to [`Before`]. A user-defined algorithm keeps its own state and is notified.

use super::window::Window;
use super::{Control, Phase};
use crate::tcp::endpoint::Endpoint;
use crate::tcp::rto::BackOff;
use crate::tcp::timer::Timer;
use hopline_core::{Duration, Instant, Payload};
use std::collections::VecDeque;

/// Number of reductions remembered. Older ones can no longer be undone.
const MOST: usize = 16;

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
pub(crate) struct Before {
    pub(crate) cause: Cause,
    window: Window,
    recover: u64,
    reduced_below: u64,
    timed_out_at: u64,
    moved_since_timeout: bool,
}

/// A reduction, with the state before it.
#[derive(Clone, Debug)]
pub(crate) struct Reduction {
    /// Time of the reduction.
    pub(crate) at: Instant,
    pub(crate) before: Before,
    pub(crate) back_off: BackOff,
}

/// Last reductions, oldest first, without those that were undone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reductions {
    recent: VecDeque<Reduction>,
}

/// Selection of a reduction to undo; all later ones are undone with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
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
pub(crate) enum Resume {
    /// Data after the first unacknowledged segment are still resent, since they may be lost, though not to congestion.
    /// Duplicates that the retransmissions cause start no fast retransmit (RFC 6582 §3.2 (4)).
    Resending,
    /// Sending continues with new data, since nothing was lost (RFC 4015 §3.2).
    NewData,
}

/// Reductions that are undone together.
#[derive(Clone, Debug)]
struct Undone {
    oldest: Reduction,
    went_back: WentBack,
}

/// `Yes` if one of the reductions was a time-out, which makes the sender go back to the first unacknowledged byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WentBack {
    Yes,
    No,
}

impl Reductions {
    /// Clears the records, so that no reduction can be undone any more.
    pub(in crate::tcp) fn forget(&mut self) {
        self.recent.clear();
    }

    fn push(&mut self, reduction: Reduction) {
        if self.recent.len() == MOST {
            self.recent.pop_front();
        }
        self.recent.push_back(reduction);
    }

    /// Returns the reduction that `which` selects.
    #[cfg_attr(not(test), allow(dead_code, reason = "for Eifel, DSACK and F-RTO"))]
    pub(crate) fn find(&self, which: Which) -> Option<&Reduction> {
        self.index(which).map(|i| &self.recent[i])
    }

    /// Removes and returns the reduction that `which` selects, and those after it.
    fn take(&mut self, which: Which) -> Option<Undone> {
        let i = self.index(which)?;
        let timed_out = self.recent.range(i..).any(|r| r.before.cause == Cause::Timeout);
        self.recent.truncate(i + 1);
        let oldest = self.recent.pop_back()?;
        Some(Undone { oldest, went_back: if timed_out { WentBack::Yes } else { WentBack::No } })
    }

    fn index(&self, which: Which) -> Option<usize> {
        let last = self.recent.len().checked_sub(1)?;
        match which {
            Which::Latest => Some(last),
            Which::LatestSince(earliest) => (self.recent[last].at >= earliest).then_some(last),
            Which::OldestSince(earliest) => {
                let i = self.recent.partition_point(|r| r.at < earliest);
                (i <= last).then_some(i)
            }
        }
    }
}

impl Control {
    /// Records the state before a reduction of the window that ends at `max`. Every reduction calls this first. While the
    /// window is held, nothing is recorded.
    pub(super) fn note_reduction(&mut self, cause: Cause, max: u64) {
        self.spared = !self.is_free();
        if self.spared {
            return;
        }
        self.before = Some(Before {
            cause,
            window: self.window.clone(),
            recover: self.recover,
            reduced_below: self.reduced_below,
            timed_out_at: self.timed_out_at,
            moved_since_timeout: self.moved_since_timeout,
        });
        self.reduced_below = max;
    }

    /// Returns the state before the reduction that just happened, once.
    pub(crate) fn take_before(&mut self) -> Option<Before> {
        self.before.take()
    }

    /// Restores the state before a reduction: no recovery in progress, no duplicates counted, the old `ssthresh`, and the
    /// larger of the old and the current `cwnd`.
    fn restore(&mut self, undone: &Undone, resume: Resume) {
        let before = &undone.oldest.before;
        self.window.restore(&before.window);
        self.phase = Phase::Open;
        self.dup_acks = 0;
        self.partial_acks = 0;
        self.limited = 0;
        self.reduced_below = before.reduced_below;
        self.timed_out_at = before.timed_out_at;
        self.moved_since_timeout = before.moved_since_timeout;
        if undone.went_back == WentBack::No || resume == Resume::NewData {
            self.recover = before.recover;
        }
    }
}

impl<P: Payload> Endpoint<P> {
    /// Stores the reduction that an acknowledgment or a timer caused, if any. `back_off`: state before it.
    pub(in crate::tcp) fn remember_reduction(&mut self, now: Instant, back_off: BackOff) {
        if let Some(before) = self.control.take_before() {
            self.owe_cwr();
            self.reductions.push(Reduction { at: now, before, back_off });
        }
    }

    /// Undoes a reduction and those after it. Congestion window, slow start threshold and back-off get their old values,
    /// or keep better ones, and recovery ends. Returns the oldest reduction; `None`: there is no such reduction.
    pub(in crate::tcp) fn undo(&mut self, now: Instant, which: Which, resume: Resume) -> Option<Reduction> {
        let undone = self.reductions.take(which)?;
        self.close_case(undone.oldest.at);
        self.control.restore(&undone, resume);
        let round_trip = self.rto.srtt().unwrap_or(Duration::ZERO);
        self.control.tell_own_of_undo(self.snd.nxt - self.snd.una, now, round_trip);
        self.steer_on_undo(now);
        self.rto.undo_back_off(undone.oldest.back_off);
        if resume == Resume::NewData && undone.went_back == WentBack::Yes {
            self.snd.nxt = self.snd.nxt.max(self.snd.max);
            self.snd.resend_first = false;
        }
        if self.timers.is_set(Timer::Retransmit) {
            self.arm_retransmit(now); // without the back-off
        }
        Some(undone.oldest)
    }
}
