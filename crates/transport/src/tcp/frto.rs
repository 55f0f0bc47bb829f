//! F-RTO: detection of spurious time-outs (RFC 5682).
//!
//! After a time-out only the first segment is resent. Two segments of new data follow in place of further
//! retransmissions. If ACKs then cover more than the resent segment, they are for the original transmissions, and nothing
//! was lost.

use super::acknowledge::AckKind;
use super::endpoint::Endpoint;
use super::spurious::DetectorInput;
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
pub(super) enum FrtoState {
    /// Not running.
    Idle,
    /// Step 2: waits for the ACK of the resent segment.
    AwaitFirstAck(FrtoData),
    /// Step 3: waits for the next ACK; the number of segments of new data that may be sent.
    AwaitSecondAck(FrtoData, u8),
}

/// Data sent before and after the time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrtoData {
    /// Position after the highest that was sent before the time-out ("recover", "RecoveryPoint").
    recover: u64,
    /// Position after the highest that was resent.
    retransmitted_end: u64,
}

/// Result of the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrtoVerdict {
    /// Undecided, or not running.
    Undecided,
    /// The time-out was spurious.
    Spurious,
}

impl FrtoState {
    pub(super) fn stop(&mut self) {
        *self = Self::Idle;
    }

    pub(super) fn on_retransmission(&mut self, at: u64, after: u64) {
        if let Self::AwaitFirstAck(sent) | Self::AwaitSecondAck(sent, _) = self
            && at < sent.recover
        {
            sent.retransmitted_end = sent.retransmitted_end.max(after);
        }
    }
}

impl<P: Payload> Endpoint<P> {
    /// Starts the algorithm at a time-out (step 1).
    pub(super) fn start_frto(&mut self, series: TimeoutSeries) {
        let (una, max) = (self.snd.una, self.snd.max);
        let new = FrtoState::AwaitFirstAck(FrtoData {
            recover: max,
            retransmitted_end: self.snd.retransmitted_end.max(una),
        });
        self.frto = match (self.config.spurious.frto, series, self.frto) {
            (Frto::FirstTimeout | Frto::EveryTimeout, TimeoutSeries::First, _) => new,
            // Still no ACK of what the first time-out of the series resent.
            (Frto::EveryTimeout, TimeoutSeries::Repeated, waiting @ FrtoState::AwaitFirstAck(_)) => waiting,
            (Frto::Off | Frto::FirstTimeout | Frto::EveryTimeout, ..) => FrtoState::Idle,
        };
    }

    /// Runs steps 2 and 3, after the reaction to an ACK.
    pub(super) fn run_frto(&mut self, evidence: &DetectorInput<'_>) -> FrtoVerdict {
        match self.frto {
            FrtoState::Idle => FrtoVerdict::Undecided,
            FrtoState::AwaitFirstAck(sent) => {
                self.frto_step_2(sent, evidence);
                FrtoVerdict::Undecided
            }
            FrtoState::AwaitSecondAck(sent, _) => self.frto_step_3(sent, evidence),
        }
    }

    /// Runs step 2. With SACK, duplicates before the first new ACK are ignored (RFC 5682 §3.1).
    fn frto_step_2(&mut self, sent: FrtoData, evidence: &DetectorInput<'_>) {
        let una = self.snd.una;
        let goes_on = match evidence.kind {
            AckKind::New => una < sent.recover && una >= sent.retransmitted_end,
            AckKind::Duplicate if self.has_rfc6675_sack() => return,
            AckKind::Duplicate => false,
            AckKind::Other => return,
        };
        self.frto.stop();
        if !goes_on {
            return;
        }
        let back = self.snd.nxt;
        self.snd.nxt = self.snd.max;
        if self.next_segment_len().is_some() {
            self.frto = FrtoState::AwaitSecondAck(sent, NEW_SEGMENTS);
            self.snd.retransmit_first = false;
        } else {
            self.snd.nxt = back; // step 2 b: without new data it cannot be found out
        }
    }

    /// Runs step 3.
    fn frto_step_3(&mut self, sent: FrtoData, evidence: &DetectorInput<'_>) -> FrtoVerdict {
        let una = self.snd.una;
        let beyond = evidence.sack.blocks().last().map_or(0, |&(_, right)| right).max(una) > sent.recover;
        let spurious = match evidence.kind {
            AckKind::Other => return FrtoVerdict::Undecided,
            _ if self.has_rfc6675_sack() && beyond => false,
            AckKind::New => una > sent.retransmitted_end,
            AckKind::Duplicate => self.has_rfc6675_sack() && evidence.sacked > 0,
        };
        self.frto.stop();
        if spurious {
            return FrtoVerdict::Spurious;
        }
        // Step 3 a: the rest is resent in slow start, from three segments at most.
        self.control.limit_cwnd(3);
        if self.rack.is_none() && una < sent.recover {
            self.snd.nxt = una;
        }
        FrtoVerdict::Undecided
    }

    /// Chooses a segment of new data in step 3, regardless of `cwnd`. Nothing else is sent.
    pub(super) fn choose_frto_segment(&mut self, left: u8) -> Option<(u64, u64)> {
        let FrtoState::AwaitSecondAck(sent, _) = self.frto else { return None };
        let len = self.next_segment_len().filter(|_| left > 0)?;
        self.frto = FrtoState::AwaitSecondAck(sent, left - 1);
        Some((self.snd.nxt, len))
    }

    /// Returns whether SACK blocks show which data the peer holds, as in RFC 6675.
    fn has_rfc6675_sack(&self) -> bool {
        self.options.sack && self.control.keeps_sack_blocks()
    }
}

/// Position of a time-out in its series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeoutSeries {
    /// The first one: all data sent before the previous time-out are acknowledged.
    First,
    /// A later one (RFC 5682 §2.1, step 1).
    Repeated,
}
