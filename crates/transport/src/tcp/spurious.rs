//! Spurious reductions: a time-out that came too early, or a fast retransmit after mere reordering.
//!
//! Each reduction opens a case. Three detectors examine the following ACKs: F-RTO (`frto`), the Eifel algorithm
//! (RFC 3522), and the count of reported duplicates (RFC 3708). The first positive result undoes the reduction, as in
//! RFC 4015.

use super::acknowledge::AckKind;
use super::congestion::undo::{AfterUndo, Cause, UndoSelection};
use super::endpoint::Endpoint;
use super::frto::{Frto, FrtoVerdict};
use super::sack_option::SackInfo;
use core::ops::Range;
use hopline_core::{Instant, Payload, settings};

settings! {
    /// Detectors of spurious reductions, each independent of the others. A detected reduction is undone.
    /// Start from [`Self::NONE`] or [`Self::ALL`] and use the setters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SpuriousDetection {
        /// F-RTO: tells after a time-out if the next ACKs are for retransmissions or for original transmissions (RFC 5682).
        /// Default off.
        frto, with_frto: Frto,
        /// Eifel: the first ACK after a reduction echoes a timestamp from before it (RFC 3522). Needs timestamps. Default
        /// off.
        eifel, with_eifel: SpuriousDetector,
        /// D-SACK: the peer reports that all resent data arrived twice (RFC 3708). Needs SACK, and a peer that reports
        /// duplicates ([`DsackReports::On`](super::DsackReports::On)). Default off.
        dsack, with_dsack: SpuriousDetector,
    }
}

/// Use of a detector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpuriousDetector {
    /// Not in use.
    Off,
    /// In use.
    On,
}

impl SpuriousDetection {
    /// No detectors: no reduction is undone.
    pub const NONE: Self =
        Self { frto: Frto::Off, eifel: SpuriousDetector::Off, dsack: SpuriousDetector::Off };
    /// All detectors, as in the RFCs.
    pub const ALL: Self =
        Self { frto: Frto::FirstTimeout, eifel: SpuriousDetector::On, dsack: SpuriousDetector::On };
}

/// A reduction that may be spurious. Positions are stream offsets.
#[derive(Clone, Debug)]
pub(super) struct SuspectReduction {
    cause: Cause,
    /// Time of the first reduction of the case.
    at: Instant,
    /// Data that were in flight at that time.
    outstanding: Range<u64>,
    eifel: EifelState,
    dsack: DsackCount,
}

/// State of the Eifel algorithm: the first ACK of resent data decides (RFC 3522).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EifelState {
    Waiting,
    Decided,
}

/// Bytes resent, and bytes that the peer reported to have twice (RFC 3708).
#[derive(Clone, Copy, Debug)]
struct DsackCount {
    retransmitted: u64,
    reported: u64,
    /// End of the time in which reports count.
    until: DsackDeadline,
}

#[derive(Clone, Copy, Debug)]
enum DsackDeadline {
    EndOfRecovery,
    Position(u64),
}

/// Input of the detectors for an acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(super) struct DetectorInput<'a> {
    pub(super) kind: AckKind,
    /// Sequence space that it newly acknowledges.
    pub(super) acked: u64,
    /// Bytes newly reported by SACK blocks.
    pub(super) sacked: u64,
    pub(super) sack: &'a SackInfo,
    /// Time of sending of the segment that the timestamp echo names, in whole milliseconds.
    pub(super) echoed_send_time: Option<Instant>,
}

impl<P: Payload> Endpoint<P> {
    /// Opens a case after a reduction of the window. A repeated time-out belongs to the case of the first one, so that
    /// the record of the first retransmission stays valid (RFC 3522 §3, step 2). No case is opened if the first segment
    /// was resent before the reduction, since an ACK then does not show its transmission.
    pub(super) fn open_suspect(&mut self, now: Instant, cause: Cause) {
        if self.config.spurious == SpuriousDetection::NONE {
            return;
        }
        let una = self.snd.una;
        let again = |case: &SuspectReduction| {
            cause == Cause::Timeout && case.cause == cause && case.outstanding.start == una
        };
        if !self.suspect.as_ref().is_some_and(again) {
            self.suspect = (una >= self.snd.retransmitted_end).then_some(SuspectReduction {
                cause,
                at: now,
                outstanding: una..self.snd.max,
                eifel: EifelState::Waiting,
                dsack: DsackCount { retransmitted: 0, reported: 0, until: DsackDeadline::EndOfRecovery },
            });
        }
    }

    /// Closes the case of a reduction at `since` that was undone.
    pub(super) fn close_suspect(&mut self, since: Instant) {
        self.suspect.take_if(|case| case.at >= since);
        self.frto.stop();
    }

    /// Records the retransmission of `at..after`.
    pub(super) fn on_retransmission(&mut self, at: u64, after: u64) {
        let probe = self.rack.as_mut().and_then(|rack| rack.tlp.take_retransmission());
        if probe == Some(at) && at > self.snd.una {
            return; // it does not blur whose the next ACKs are
        }
        self.snd.retransmitted_end = self.snd.retransmitted_end.max(after);
        if let Some(case) = self.suspect.as_mut().filter(|case| case.outstanding.contains(&at)) {
            case.dsack.retransmitted += after - at;
        }
        self.frto.on_retransmission(at, after);
    }

    /// Runs the detectors, after the reaction to an ACK.
    pub(super) fn run_spurious_detectors(&mut self, now: Instant, evidence: DetectorInput<'_>) {
        let verdict = self.run_frto(&evidence);
        if verdict == FrtoVerdict::Spurious
            || self.is_spurious_by_eifel(&evidence)
            || self.is_spurious_by_dsack(&evidence)
        {
            self.undo_spurious(now, evidence.acked);
        }
    }

    /// Runs the Eifel algorithm (RFC 3522 §3, steps 3 to 5).
    fn is_spurious_by_eifel(&mut self, evidence: &DetectorInput<'_>) -> bool {
        let Some(case) = self.suspect.as_mut().filter(|case| case.eifel == EifelState::Waiting) else {
            return false;
        };
        if evidence.acked == 0 || self.config.spurious.eifel == SpuriousDetector::Off {
            return false;
        }
        case.eifel = EifelState::Decided;
        let resent = Instant::from_millis(case.at.as_nanos() / 1_000_000);
        evidence.sack.dsack.is_none() && evidence.echoed_send_time.is_some_and(|echoed| echoed < resent)
    }

    /// Returns whether all data resent in this recovery arrived twice (RFC 3708 §3).
    fn is_spurious_by_dsack(&mut self, evidence: &DetectorInput<'_>) -> bool {
        if self.config.spurious.dsack == SpuriousDetector::Off {
            return false;
        }
        let Some(case) = &mut self.suspect else { return false };
        if let Some((left, right)) = evidence.sack.dsack {
            let (from, to) = (left.max(case.outstanding.start), right.min(case.outstanding.end));
            case.dsack.reported += to.saturating_sub(from);
        }
        if case.dsack.retransmitted > 0 && case.dsack.reported >= case.dsack.retransmitted {
            return true;
        }
        // A report is at most a round trip behind what it reports.
        let una = self.snd.una;
        match case.dsack.until {
            DsackDeadline::EndOfRecovery if una >= case.outstanding.end => {
                case.dsack.until = DsackDeadline::Position(self.snd.nxt);
            }
            DsackDeadline::Position(end) if una >= end && evidence.acked > 0 => self.suspect = None,
            DsackDeadline::EndOfRecovery | DsackDeadline::Position(_) => {}
        }
        false
    }

    /// Undoes a spurious reduction (RFC 4015 §3): restores the window, treats the rest as not lost, and lengthens the
    /// timeout.
    fn undo_spurious(&mut self, now: Instant, acked: u64) {
        let Some(case) = self.suspect.take() else { return };
        self.frto.stop();
        if self.undo_reductions(now, UndoSelection::OldestSince(case.at), AfterUndo::NewData).is_none() {
            return;
        }
        self.snd.retransmit_first = false;
        if let Some(rack) = &mut self.rack {
            rack.undo_losses(case.at);
        }
        match case.cause {
            Cause::Timeout => {
                self.stats.spurious_timeouts += 1;
                let flight_before = case.outstanding.end - case.outstanding.start;
                let flight = self.snd.nxt - self.snd.una;
                self.control.on_spurious_timeout(&self.config, flight_before, flight, acked);
                self.rto.weight_next_long_sample();
            }
            Cause::FastRetransmit | Cause::Mark => self.stats.spurious_recoveries += 1,
        }
    }
}
