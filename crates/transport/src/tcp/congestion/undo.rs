//! What a reduction did, and how it is undone.
//!
//! Whatever makes the sender slow down (a time-out, fast retransmit, a mark of the network) first notes what it is about to
//! change. A scheme that finds out later that the slowing down was wrong (Eifel, DSACK, F-RTO, TCP-DOOR) names the reduction
//! and has it undone, with everything that came after it: [`Endpoint::undo`]. Noting changes nothing by itself.
//!
//! | part | kept by | undone by |
//! |---|---|---|
//! | `cwnd`, `ssthresh`, CUBIC's variables, phase, "recover" | [`Control::note_reduction`] | [`Control::restore`] |
//! | back-off of the timer, the estimate it made the timer forget | [`Rto::back_off_state`] | [`Rto::undo_back_off`] |
//!
//! A strategy with more state adds it to [`Before`]. An own law keeps what it remembers itself, and is told.

use super::window::Window;
use super::{Control, Phase};
use crate::tcp::endpoint::Endpoint;
use crate::tcp::rto::BackOff;
use crate::tcp::timer::Timer;
use hopline_core::{Duration, Instant, Payload};
use std::collections::VecDeque;

/// Reductions remembered. When more happen, the oldest are forgotten and can no longer be undone.
const MOST: usize = 16;

/// What made the sender slow down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The retransmission timer expired.
    Timeout,
    /// Duplicate acknowledgments or SACK: fast retransmit.
    FastRetransmit,
    /// The network marked a segment (RFC 3168). Never remembered: there is nothing to doubt, and what came before is
    /// forgotten.
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
    /// When the sender slowed down.
    pub(crate) at: Instant,
    pub(crate) before: Before,
    pub(crate) back_off: BackOff,
}

/// The last reductions, oldest first. What was undone is not among them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reductions {
    recent: VecDeque<Reduction>,
}

/// Which reduction to undo; those after it are undone with it.
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

/// How sending goes on where a time-out is among what is undone. Of no effect on a fast retransmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    /// What follows the first unacknowledged segment is still resent: it may be lost, though not to congestion. Duplicates
    /// that the resending brings about start no fast retransmit (RFC 6582 §3.2 (4)).
    Resending,
    /// With new data: nothing was lost (RFC 4015 §3.2).
    NewData,
}

/// Reductions that are undone together.
#[derive(Clone, Debug)]
struct Undone {
    oldest: Reduction,
    went_back: WentBack,
}

/// Whether one of them was a time-out, which has the sender go back to what is not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WentBack {
    Yes,
    No,
}

impl Reductions {
    /// None of them can be undone any more.
    pub(in crate::tcp) fn forget(&mut self) {
        self.recent.clear();
    }

    fn push(&mut self, reduction: Reduction) {
        if self.recent.len() == MOST {
            self.recent.pop_front();
        }
        self.recent.push_back(reduction);
    }

    /// The reduction that `which` means.
    #[cfg_attr(not(test), allow(dead_code, reason = "for Eifel, DSACK and F-RTO"))]
    pub(crate) fn find(&self, which: Which) -> Option<&Reduction> {
        self.index(which).map(|i| &self.recent[i])
    }

    /// Takes out the reduction that `which` means, and those after it.
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
    /// Called first thing by whatever takes the window that ends at `max` to be congested. While the window is held, there is
    /// nothing to undo.
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

    /// The state before the reduction that just happened, once.
    pub(crate) fn take_before(&mut self) -> Option<Before> {
        self.before.take()
    }

    /// Goes back to the state before a reduction: no recovery under way, no duplicates counted, `ssthresh` as it was,
    /// `cwnd` as it was or what it has grown to since.
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
    /// Remembers the reduction that an acknowledgment or a timer brought about, if it did; `back_off`: as it was before.
    pub(in crate::tcp) fn remember_reduction(&mut self, now: Instant, back_off: BackOff) {
        if let Some(before) = self.control.take_before() {
            self.owe_cwr();
            self.reductions.push(Reduction { at: now, before, back_off });
        }
    }

    /// Undoes a reduction and those after it: congestion window, slow start threshold and back-off are again what they were,
    /// or better if they have become better since, and recovery ends. Returns the oldest; `None`: there is no such reduction.
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
