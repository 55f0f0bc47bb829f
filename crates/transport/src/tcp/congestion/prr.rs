//! Proportional rate reduction: how the window comes down during recovery (RFC 6937, RFC 9937).

use super::{CongestionState, Variant};

/// Reduction of the window during recovery with selective acknowledgments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryReduction {
    /// At once: only the first retransmission is sent until the pipe is below `ssthresh` (RFC 6675 §5 (4.2)).
    AtOnce,
    /// In proportion to the delivered data (PRR). The pipe is at `ssthresh` when recovery ends, and ACKs keep the clock
    /// running.
    Prr(PrrBound),
}

/// Growth of the pipe in recovery if more was lost than the window had to shrink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrrBound {
    /// As much is sent as is delivered: PRR-CRB of RFC 6937 §3.
    Conservative,
    /// One segment more for each ACK, as in slow start: PRR-SSRB of RFC 6937 §3.
    SlowStart,
    /// Slow start on ACKs that acknowledge new data and show no further loss ("SafeACK"), otherwise conservative:
    /// RFC 9937, Linux.
    SafeAck,
}

/// Reduction of the window for an ECN mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkReduction {
    /// At once (RFC 3168 §6.1.2).
    AtOnce,
    /// By PRR over a round trip, where PRR and RACK are in use (Linux). Without a loss, PRR does not slow-start: below `ssthresh`
    /// as much is sent as is delivered.
    Proportional,
}

/// Reduction for a mark that is in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Cwr {
    /// None.
    #[default]
    Idle,
    /// The window falls.
    Reducing,
}

/// State of one recovery, bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prr {
    /// Data in flight when recovery began: "RecoverFS".
    recover_fs: u64,
    /// "prr_delivered".
    prr_delivered: u64,
    /// "prr_out".
    prr_out: u64,
}

/// An acknowledgment in recovery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecoveryAck {
    /// Bytes reported for the first time: "DeliveredData".
    pub(crate) delivered: u64,
    /// Estimate of the data in the network after it.
    pub(crate) pipe: u64,
    pub(crate) safe_ack: SafeAck,
}

/// Classification of an acknowledgment in recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SafeAck {
    /// Acknowledges new data, and shows no further loss.
    Yes,
    /// Acknowledges no new data, or shows further loss.
    No,
}

impl Prr {
    /// Starts a recovery with `flight` bytes between the acknowledged and the next position, of which the peer holds
    /// `sacked`. The current ACK delivered `delivered` bytes.
    pub(super) fn start(bound: PrrBound, flight: u64, sacked: u64, delivered: u64) -> Self {
        let flight = match bound {
            PrrBound::Conservative | PrrBound::SlowStart => flight,
            // RFC 9937 §6.1: what was delivered before is not in flight; what this ACK delivers was, acknowledged or selectively.
            PrrBound::SafeAck => (flight + delivered).saturating_sub(sacked),
        };
        Self { recover_fs: flight.max(1), prr_delivered: 0, prr_out: 0 }
    }

    /// Returns the number of bytes that may be sent now: "sndcnt".
    pub(super) fn sndcnt(&mut self, bound: PrrBound, ssthresh: u64, mss: u64, ack: RecoveryAck) -> u64 {
        self.prr_delivered += ack.delivered;
        if ack.pipe > ssthresh {
            return (self.prr_delivered * ssthresh).div_ceil(self.recover_fs).saturating_sub(self.prr_out);
        }
        let owed = self.prr_delivered.saturating_sub(self.prr_out);
        let limit = match (bound, ack.safe_ack) {
            (PrrBound::Conservative, _) => owed,
            (PrrBound::SlowStart, _) | (PrrBound::SafeAck, SafeAck::Yes) => owed.max(ack.delivered) + mss,
            (PrrBound::SafeAck, SafeAck::No) => owed.max(ack.delivered),
        };
        limit.min(ssthresh - ack.pipe)
    }

    /// Records `len` sent bytes.
    pub(super) fn on_sent(&mut self, len: u32) {
        self.prr_out += u64::from(len);
    }
}

impl CongestionState {
    /// Starts PRR at the start of recovery, as [`Prr::start`]. This and the following functions do nothing with
    /// [`RecoveryReduction::AtOnce`].
    pub(super) fn start_prr(&mut self, flight: u64, sacked: u64, delivered: u64) {
        if let Some(bound) = self.prr_bound() {
            self.sack_recovery.prr = Prr::start(bound, flight, sacked, delivered);
        }
    }

    /// Sets `cwnd` to the pipe and the bytes that may be sent now, at least one segment (RFC 6937 §3).
    pub(super) fn update_prr(&mut self, ack: RecoveryAck) {
        if let Some(bound) = self.prr_bound() {
            self.update_prr_with(bound, ack);
        }
    }

    /// As `update_prr`, with `bound`.
    pub(super) fn update_prr_with(&mut self, bound: PrrBound, ack: RecoveryAck) {
        let (ssthresh, mss) = (u64::from(self.window.ssthresh), u64::from(self.window.mss));
        let allowed = self.sack_recovery.prr.sndcnt(bound, ssthresh, mss, ack);
        self.window.cwnd = (ack.pipe + allowed).clamp(mss, 1 << 30) as u32;
    }

    /// As `update_prr`, for an ACK with no other effect on recovery.
    pub(crate) fn on_recovery_ack(&mut self, ack: RecoveryAck) {
        self.react_under_hold(|c| c.update_prr(ack));
    }

    /// Sets the window at the end of recovery: the pipe should be at `ssthresh` by now (RFC 9937 §6).
    pub(super) fn finish_prr(&mut self) {
        if self.prr_bound().is_some() {
            self.set_window_after_recovery();
        }
    }

    pub(super) fn prr_bound(&self) -> Option<PrrBound> {
        match self.variant {
            Variant::Sack(_) if self.bbr.is_some() => None, // it has rules of its own
            Variant::Sack(sack) => match sack.reduction {
                RecoveryReduction::Prr(bound) => Some(bound),
                RecoveryReduction::AtOnce => None,
            },
            Variant::Reno(_) | Variant::NewReno(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(delivered: u64, pipe: u64, progress: SafeAck) -> RecoveryAck {
        RecoveryAck { delivered, pipe, safe_ack: progress }
    }

    #[test]
    fn above_ssthresh_sending_is_proportional_to_delivery() {
        // 20 in flight, ssthresh 10: one leaves for two that arrive.
        let mut prr = Prr::start(PrrBound::Conservative, 20_000, 0, 0);
        let mut pipe = 19_000;
        let sent: Vec<u64> = (0..8)
            .map(|_| {
                let sent = prr.sndcnt(PrrBound::Conservative, 10_000, 1000, ack(1000, pipe, SafeAck::No));
                let whole = sent / 1000 * 1000;
                prr.on_sent(whole as u32);
                pipe = pipe - 1000 + whole;
                whole
            })
            .collect();
        assert_eq!(sent, [0, 1000, 0, 1000, 0, 1000, 0, 1000]);
    }

    #[test]
    fn below_ssthresh_the_bounds_differ_by_one_segment_per_ack() {
        for (bound, progress, expected) in [
            (PrrBound::Conservative, SafeAck::Yes, 1000),
            (PrrBound::SlowStart, SafeAck::No, 2000),
            (PrrBound::SafeAck, SafeAck::Yes, 2000),
            (PrrBound::SafeAck, SafeAck::No, 1000),
        ] {
            let mut prr = Prr::start(bound, 20_000, 0, 0);
            assert_eq!(prr.sndcnt(bound, 10_000, 1000, ack(1000, 4000, progress)), expected, "{bound:?}");
        }
    }

    #[test]
    fn never_more_than_ssthresh_allows() {
        for bound in [PrrBound::Conservative, PrrBound::SlowStart, PrrBound::SafeAck] {
            let mut prr = Prr::start(bound, 20_000, 0, 0);
            assert_eq!(prr.sndcnt(bound, 10_000, 1000, ack(9000, 9500, SafeAck::Yes)), 500, "{bound:?}");
            assert_eq!(prr.sndcnt(bound, 10_000, 1000, ack(1000, 10_000, SafeAck::Yes)), 0, "{bound:?}");
        }
    }

    #[test]
    fn data_sacked_before_recovery_are_not_in_flight_for_rfc_9937() {
        let mut old = Prr::start(PrrBound::SlowStart, 20_000, 11_000, 1000);
        let mut new = Prr::start(PrrBound::SafeAck, 20_000, 11_000, 1000);
        let ack = ack(1000, 15_000, SafeAck::No);
        assert_eq!(old.sndcnt(PrrBound::SlowStart, 10_000, 1000, ack), 500);
        assert_eq!(new.sndcnt(PrrBound::SafeAck, 10_000, 1000, ack), 1000);
        assert_eq!(Prr::start(PrrBound::SafeAck, 5, 9, 0).recover_fs, 1, "never divides by zero");
    }
}
