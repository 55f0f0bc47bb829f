//! Reductions that turn out to be wrong: a time-out that only waited too short, a fast retransmit of what was only reordered.
//!
//! Each reduction opens a case. Three detectors look at the ACKs that follow: F-RTO (`frto`), the Eifel algorithm (RFC 3522)
//! and the count of duplicates that the peer reports (RFC 3708). The first one that is sure has the reduction undone, as
//! RFC 4015 describes.

use super::acknowledge::AckKind;
use super::congestion::undo::{Cause, Resume, Which};
use super::endpoint::Endpoint;
use super::frto::{Frto, Verdict};
use super::selective::Selective;
use core::ops::Range;
use hopline_core::{Instant, Payload};

/// Which detectors of spurious reductions are at work, each on its own. What they find is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spurious {
    /// After a time-out, whether the next ACKs are for what was resent or for what was sent before (RFC 5682). Default off.
    pub frto: Frto,
    /// Whether the first ACK after a reduction echoes a timestamp from before it (RFC 3522). Needs timestamps. Default off.
    pub eifel: Detector,
    /// Whether the peer reports that everything that was resent arrived twice (RFC 3708). Needs SACK, and a peer that reports
    /// ([`Dsack::Report`](super::Dsack::Report)). Default off.
    pub dsack: Detector,
}

/// Whether a detector is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detector {
    /// It is not.
    Off,
    /// It is.
    On,
}

impl Spurious {
    /// No detectors: every reduction stands.
    pub const UNDETECTED: Self = Self { frto: Frto::Off, eifel: Detector::Off, dsack: Detector::Off };
    /// All detectors, as the RFCs write them.
    pub const ALL: Self = Self { frto: Frto::FirstTimeout, eifel: Detector::On, dsack: Detector::On };
}

/// A reduction that may be spurious. Positions are stream offsets.
#[derive(Clone, Debug)]
pub(super) struct Case {
    cause: Cause,
    /// When the window was first reduced for this.
    at: Instant,
    /// What was in flight.
    outstanding: Range<u64>,
    eifel: Eifel,
    dsack: Count,
}

/// RFC 3522: the first ACK of what was resent decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Eifel {
    Waiting,
    Decided,
}

/// RFC 3708: what was resent, and how much of it the peer reported to have twice.
#[derive(Clone, Copy, Debug)]
struct Count {
    resent: u64,
    reported: u64,
    /// Reports count until this position is acknowledged.
    until: Until,
}

#[derive(Clone, Copy, Debug)]
enum Until {
    RecoveryIsOver,
    Position(u64),
}

/// An acknowledgment that was taken, as the detectors see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence<'a> {
    pub(super) kind: AckKind,
    /// Sequence space that it newly acknowledges.
    pub(super) acked: u64,
    /// Bytes that it newly reports to be held.
    pub(super) sacked: u64,
    pub(super) told: &'a Selective,
    /// When what it echoes was sent, to a millisecond.
    pub(super) echoed: Option<Instant>,
}

impl<P: Payload> Endpoint<P> {
    /// The window was just reduced: a case is opened. A time-out in a row belongs to the first one's case, so that what was
    /// noted of the first retransmission stands (RFC 3522 §3, step 2). Where the first segment was resent before that, nobody
    /// can tell which transmission an ACK is for.
    pub(super) fn suspect(&mut self, now: Instant, cause: Cause) {
        if self.config.spurious == Spurious::UNDETECTED {
            return;
        }
        let una = self.snd.una;
        let again =
            |case: &Case| cause == Cause::Timeout && case.cause == cause && case.outstanding.start == una;
        if !self.case.as_ref().is_some_and(again) {
            self.case = (una >= self.snd.resent_end).then_some(Case {
                cause,
                at: now,
                outstanding: una..self.snd.max,
                eifel: Eifel::Waiting,
                dsack: Count { resent: 0, reported: 0, until: Until::RecoveryIsOver },
            });
        }
    }

    /// What reduced the window at `since` and later was undone: nothing is left to be found out about it.
    pub(super) fn close_case(&mut self, since: Instant) {
        self.case.take_if(|case| case.at >= since);
        self.frto.stop();
    }

    /// `at..after` was sent again.
    pub(super) fn note_resent(&mut self, at: u64, after: u64) {
        let probe = self.rack.as_mut().and_then(|rack| rack.tlp.take_repeated());
        if probe == Some(at) && at > self.snd.una {
            return; // it does not blur whose the next ACKs are
        }
        self.snd.resent_end = self.snd.resent_end.max(after);
        if let Some(case) = self.case.as_mut().filter(|case| case.outstanding.contains(&at)) {
            case.dsack.resent += after - at;
        }
        self.frto.note_resent(at, after);
    }

    /// Asks the detectors, after an ACK was taken.
    pub(super) fn judge(&mut self, now: Instant, evidence: Evidence<'_>) {
        let verdict = self.judge_by_frto(&evidence);
        if verdict == Verdict::Spurious || self.judge_by_echo(&evidence) || self.judge_by_reports(&evidence) {
            self.undo_spurious(now, evidence.acked);
        }
    }

    /// RFC 3522 §3, steps 3 to 5.
    fn judge_by_echo(&mut self, evidence: &Evidence<'_>) -> bool {
        let Some(case) = self.case.as_mut().filter(|case| case.eifel == Eifel::Waiting) else { return false };
        if evidence.acked == 0 || self.config.spurious.eifel == Detector::Off {
            return false;
        }
        case.eifel = Eifel::Decided;
        let resent = Instant::from_millis(case.at.as_nanos() / 1_000_000);
        evidence.told.duplicate.is_none() && evidence.echoed.is_some_and(|echoed| echoed < resent)
    }

    /// RFC 3708 §3: all that was resent in this recovery arrived twice.
    fn judge_by_reports(&mut self, evidence: &Evidence<'_>) -> bool {
        if self.config.spurious.dsack == Detector::Off {
            return false;
        }
        let Some(case) = &mut self.case else { return false };
        if let Some((left, right)) = evidence.told.duplicate {
            let (from, to) = (left.max(case.outstanding.start), right.min(case.outstanding.end));
            case.dsack.reported += to.saturating_sub(from);
        }
        if case.dsack.resent > 0 && case.dsack.reported >= case.dsack.resent {
            return true;
        }
        // A report is at most a round trip behind what it reports.
        let una = self.snd.una;
        match case.dsack.until {
            Until::RecoveryIsOver if una >= case.outstanding.end => {
                case.dsack.until = Until::Position(self.snd.nxt);
            }
            Until::Position(end) if una >= end && evidence.acked > 0 => self.case = None,
            Until::RecoveryIsOver | Until::Position(_) => {}
        }
        false
    }

    /// RFC 4015 §3: the window is what it was, the rest was not lost, and the timer will be more patient.
    fn undo_spurious(&mut self, now: Instant, acked: u64) {
        let Some(case) = self.case.take() else { return };
        self.frto.stop();
        if self.undo(now, Which::OldestSince(case.at), Resume::NewData).is_none() {
            return;
        }
        self.snd.resend_first = false;
        if let Some(rack) = &mut self.rack {
            rack.forgive(case.at);
        }
        match case.cause {
            Cause::Timeout => {
                self.stats.spurious_timeouts += 1;
                let flight_before = case.outstanding.end - case.outstanding.start;
                let flight = self.snd.nxt - self.snd.una;
                self.control.on_spurious_timeout(&self.config, flight_before, flight, acked);
                self.rto.be_patient();
            }
            Cause::FastRetransmit | Cause::Mark => self.stats.spurious_recoveries += 1,
        }
    }
}
