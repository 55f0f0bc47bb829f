//! F-RTO: detection of spurious time-outs (RFC 5682).
//!
//! After a time-out only the first segment is resent. Two segments of new data follow in place of further
//! retransmissions. If ACKs then cover more than the resent segment, they are for the original transmissions, and nothing
//! was lost.

use super::acknowledge::AckKind;
use super::endpoint::Endpoint;
use super::spurious::Evidence;
use hopline_core::Payload;

/// Use of F-RTO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frto {
    /// Not in use.
    Off,
    /// Used after the first time-out of a series (RFC 5682 §2.1, §3.1, step 1).
    FirstTimeout,
    /// Used after every time-out, as long as only the first segment was resent (as Linux): for long outages.
    EveryTimeout,
}

/// Segments of new data that are sent for the test (RFC 5682 §2.1, step 2 b).
const NEW_SEGMENTS: u8 = 2;

/// Progress of the algorithm. Positions are stream offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Steps {
    /// Not running.
    Idle,
    /// Step 2: waits for the ACK of the resent segment.
    Resent(Sent),
    /// Step 3: waits for the next ACK; the number of segments of new data that may be sent.
    Forward(Sent, u8),
}

/// Data sent before and after the time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    /// Position after the highest that was sent before the time-out ("recover", "RecoveryPoint").
    recover: u64,
    /// Position after the highest that was resent.
    again: u64,
}

/// Result of the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Undecided, or not running.
    None,
    /// The time-out was spurious.
    Spurious,
}

impl Steps {
    pub(super) fn stop(&mut self) {
        *self = Self::Idle;
    }

    pub(super) fn note_resent(&mut self, at: u64, after: u64) {
        if let Self::Resent(sent) | Self::Forward(sent, _) = self
            && at < sent.recover
        {
            sent.again = sent.again.max(after);
        }
    }
}

impl<P: Payload> Endpoint<P> {
    /// Starts the algorithm at a time-out (step 1).
    pub(super) fn start_frto(&mut self, series: Series) {
        let (una, max) = (self.snd.una, self.snd.max);
        let new = Steps::Resent(Sent { recover: max, again: self.snd.resent_end.max(una) });
        self.frto = match (self.config.spurious.frto, series, self.frto) {
            (Frto::FirstTimeout | Frto::EveryTimeout, Series::New, _) => new,
            // Still no ACK of what the first time-out of the series resent.
            (Frto::EveryTimeout, Series::Continued, waiting @ Steps::Resent(_)) => waiting,
            (Frto::Off | Frto::FirstTimeout | Frto::EveryTimeout, ..) => Steps::Idle,
        };
    }

    /// Runs steps 2 and 3, after the reaction to an ACK.
    pub(super) fn judge_by_frto(&mut self, evidence: &Evidence<'_>) -> Verdict {
        match self.frto {
            Steps::Idle => Verdict::None,
            Steps::Resent(sent) => {
                self.take_first_ack(sent, evidence);
                Verdict::None
            }
            Steps::Forward(sent, _) => self.take_second_ack(sent, evidence),
        }
    }

    /// Runs step 2. With SACK, duplicates before the first new ACK are ignored (RFC 5682 §3.1).
    fn take_first_ack(&mut self, sent: Sent, evidence: &Evidence<'_>) {
        let una = self.snd.una;
        let goes_on = match evidence.kind {
            AckKind::New => una < sent.recover && una >= sent.again,
            AckKind::Duplicate if self.hears_sack() => return,
            AckKind::Duplicate => false,
            AckKind::Other => return,
        };
        self.frto.stop();
        if !goes_on {
            return;
        }
        let back = self.snd.nxt;
        self.snd.nxt = self.snd.max;
        if self.next_length().is_some() {
            self.frto = Steps::Forward(sent, NEW_SEGMENTS);
            self.snd.resend_first = false;
        } else {
            self.snd.nxt = back; // step 2 b: without new data it cannot be found out
        }
    }

    /// Runs step 3.
    fn take_second_ack(&mut self, sent: Sent, evidence: &Evidence<'_>) -> Verdict {
        let una = self.snd.una;
        let beyond = evidence.told.blocks().last().map_or(0, |&(_, right)| right).max(una) > sent.recover;
        let spurious = match evidence.kind {
            AckKind::Other => return Verdict::None,
            _ if self.hears_sack() && beyond => false,
            AckKind::New => una > sent.again,
            AckKind::Duplicate => self.hears_sack() && evidence.sacked > 0,
        };
        self.frto.stop();
        if spurious {
            return Verdict::Spurious;
        }
        // Step 3 a: the rest is resent in slow start, from three segments at most.
        self.control.limit_cwnd(3);
        if self.rack.is_none() && una < sent.recover {
            self.snd.nxt = una;
        }
        Verdict::None
    }

    /// Chooses a segment of new data in step 3, regardless of `cwnd`. Nothing else is sent.
    pub(super) fn choose_forward(&mut self, left: u8) -> Option<(u64, u64)> {
        let Steps::Forward(sent, _) = self.frto else { return None };
        let len = self.next_length().filter(|_| left > 0)?;
        self.frto = Steps::Forward(sent, left - 1);
        Some((self.snd.nxt, len))
    }

    /// Returns whether SACK blocks show which data the peer holds, as in RFC 6675.
    fn hears_sack(&self) -> bool {
        self.options.sack && self.control.keeps_blocks()
    }
}

/// Position of a time-out in its series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Series {
    /// The first one: all data sent before the previous time-out are acknowledged.
    New,
    /// A later one (RFC 5682 §2.1, step 1).
    Continued,
}
