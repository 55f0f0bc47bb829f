//! Spurious reductions: a time-out that came too early, or a fast retransmit after mere reordering.
//!
//! Each reduction opens a case. Three detectors examine the following ACKs: F-RTO (`frto`), the Eifel algorithm
//! (RFC 3522), and the count of reported duplicates (RFC 3708). The first positive result undoes the reduction, as in
//! RFC 4015.

use super::acknowledge::AckKind;
use super::congestion::undo::{Cause, Resume, Which};
use super::endpoint::Endpoint;
use super::frto::{Frto, Verdict};
use super::selective::Selective;
use core::ops::Range;
use hopline_core::{Instant, Payload};

/// Detectors of spurious reductions, each independent of the others. A detected reduction is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spurious {
    /// F-RTO: tells after a time-out if the next ACKs are for retransmissions or for original transmissions (RFC 5682).
    /// Default off.
    pub frto: Frto,
    /// Eifel: the first ACK after a reduction echoes a timestamp from before it (RFC 3522). Needs timestamps. Default
    /// off.
    pub eifel: Detector,
    /// D-SACK: the peer reports that all resent data arrived twice (RFC 3708). Needs SACK, and a peer that reports
    /// duplicates ([`Dsack::Report`](super::Dsack::Report)). Default off.
    pub dsack: Detector,
}

/// Use of a detector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detector {
    /// Not in use.
    Off,
    /// In use.
    On,
}

impl Spurious {
    /// No detectors: no reduction is undone.
    pub const UNDETECTED: Self = Self { frto: Frto::Off, eifel: Detector::Off, dsack: Detector::Off };
    /// All detectors, as in the RFCs.
    pub const ALL: Self = Self { frto: Frto::FirstTimeout, eifel: Detector::On, dsack: Detector::On };
}

/// A reduction that may be spurious. Positions are stream offsets.
#[derive(Clone, Debug)]
pub(super) struct Case {
    cause: Cause,
    /// Time of the first reduction of the case.
    at: Instant,
    /// Data that were in flight at that time.
    outstanding: Range<u64>,
    eifel: Eifel,
    dsack: Count,
}

/// State of the Eifel algorithm: the first ACK of resent data decides (RFC 3522).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Eifel {
    Waiting,
    Decided,
}

/// Bytes resent, and bytes that the peer reported to have twice (RFC 3708).
#[derive(Clone, Copy, Debug)]
struct Count {
    resent: u64,
    reported: u64,
    /// End of the time in which reports count.
    until: Until,
}

#[derive(Clone, Copy, Debug)]
enum Until {
    RecoveryIsOver,
    Position(u64),
}

/// Input of the detectors for an acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence<'a> {
    pub(super) kind: AckKind,
    /// Sequence space that it newly acknowledges.
    pub(super) acked: u64,
    /// Bytes newly reported by SACK blocks.
    pub(super) sacked: u64,
    pub(super) told: &'a Selective,
    /// Time of sending of the segment that the timestamp echo names, in whole milliseconds.
    pub(super) echoed: Option<Instant>,
}

impl<P: Payload> Endpoint<P> {
    /// Opens a case after a reduction of the window. A repeated time-out belongs to the case of the first one, so that
    /// the record of the first retransmission stays valid (RFC 3522 §3, step 2). No case is opened if the first segment
    /// was resent before the reduction, since an ACK then does not show its transmission.
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

    /// Closes the case of a reduction at `since` that was undone.
    pub(super) fn close_case(&mut self, since: Instant) {
        self.case.take_if(|case| case.at >= since);
        self.frto.stop();
    }

    /// Records the retransmission of `at..after`.
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

    /// Runs the detectors, after the reaction to an ACK.
    pub(super) fn judge(&mut self, now: Instant, evidence: Evidence<'_>) {
        let verdict = self.judge_by_frto(&evidence);
        if verdict == Verdict::Spurious || self.judge_by_echo(&evidence) || self.judge_by_reports(&evidence) {
            self.undo_spurious(now, evidence.acked);
        }
    }

    /// Runs the Eifel algorithm (RFC 3522 §3, steps 3 to 5).
    fn judge_by_echo(&mut self, evidence: &Evidence<'_>) -> bool {
        let Some(case) = self.case.as_mut().filter(|case| case.eifel == Eifel::Waiting) else { return false };
        if evidence.acked == 0 || self.config.spurious.eifel == Detector::Off {
            return false;
        }
        case.eifel = Eifel::Decided;
        let resent = Instant::from_millis(case.at.as_nanos() / 1_000_000);
        evidence.told.duplicate.is_none() && evidence.echoed.is_some_and(|echoed| echoed < resent)
    }

    /// Returns whether all data resent in this recovery arrived twice (RFC 3708 §3).
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

    /// Undoes a spurious reduction (RFC 4015 §3): restores the window, treats the rest as not lost, and lengthens the
    /// timeout.
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
