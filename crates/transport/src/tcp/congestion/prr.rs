//! Proportional rate reduction: how the window comes down during recovery (RFC 6937, RFC 9937).

use super::{Control, Variant};

/// Reduction of the window during recovery with selective acknowledgments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryWindow {
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

/// State of one recovery, bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prr {
    /// Data in flight when recovery began: "RecoverFS".
    flight: u64,
    /// "prr_delivered".
    delivered: u64,
    /// "prr_out".
    out: u64,
}

/// An acknowledgment in recovery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    /// Bytes reported for the first time: "DeliveredData".
    pub(crate) delivered: u64,
    /// Estimate of the data in the network after it.
    pub(crate) pipe: u64,
    pub(crate) progress: Progress,
}

/// Classification of an acknowledgment in recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Acknowledges new data, and shows no further loss.
    Safe,
    /// Acknowledges no new data, or shows further loss.
    Doubtful,
}

impl Prr {
    /// Starts a recovery with `flight` bytes between the acknowledged and the next position, of which the peer holds
    /// `sacked`. The current ACK delivered `delivered` bytes.
    pub(super) fn begin(bound: PrrBound, flight: u64, sacked: u64, delivered: u64) -> Self {
        let flight = match bound {
            PrrBound::Conservative | PrrBound::SlowStart => flight,
            // RFC 9937 §6.1: what was delivered before is not in flight; what this ACK delivers was, acknowledged or selectively.
            PrrBound::SafeAck => (flight + delivered).saturating_sub(sacked),
        };
        Self { flight: flight.max(1), delivered: 0, out: 0 }
    }

    /// Returns the number of bytes that may be sent now: "sndcnt".
    pub(super) fn allow(&mut self, bound: PrrBound, ssthresh: u64, mss: u64, ack: Delivery) -> u64 {
        self.delivered += ack.delivered;
        if ack.pipe > ssthresh {
            return (self.delivered * ssthresh).div_ceil(self.flight).saturating_sub(self.out);
        }
        let owed = self.delivered.saturating_sub(self.out);
        let limit = match (bound, ack.progress) {
            (PrrBound::Conservative, _) => owed,
            (PrrBound::SlowStart, _) | (PrrBound::SafeAck, Progress::Safe) => owed.max(ack.delivered) + mss,
            (PrrBound::SafeAck, Progress::Doubtful) => owed.max(ack.delivered),
        };
        limit.min(ssthresh - ack.pipe)
    }

    /// Records `len` sent bytes.
    pub(super) fn on_sent(&mut self, len: u32) {
        self.out += u64::from(len);
    }
}

impl Control {
    /// Starts PRR at the start of recovery, as [`Prr::begin`]. This and the following functions do nothing with
    /// [`RecoveryWindow::AtOnce`].
    pub(super) fn begin_in_proportion(&mut self, flight: u64, sacked: u64, delivered: u64) {
        if let Some(bound) = self.prr_bound() {
            self.sack.prr = Prr::begin(bound, flight, sacked, delivered);
        }
    }

    /// Sets `cwnd` to the pipe and the bytes that may be sent now, at least one segment (RFC 6937 §3).
    pub(super) fn reduce_in_proportion(&mut self, ack: Delivery) {
        if let Some(bound) = self.prr_bound() {
            let (ssthresh, mss) = (u64::from(self.window.ssthresh), u64::from(self.window.mss));
            let allowed = self.sack.prr.allow(bound, ssthresh, mss, ack);
            self.window.cwnd = (ack.pipe + allowed).clamp(mss, 1 << 30) as u32;
        }
    }

    /// As `reduce_in_proportion`, for an ACK with no other effect on recovery.
    pub(crate) fn on_delivery(&mut self, ack: Delivery) {
        self.react(|c| c.reduce_in_proportion(ack));
    }

    /// Sets the window at the end of recovery: the pipe should be at `ssthresh` by now (RFC 9937 §6).
    pub(super) fn end_in_proportion(&mut self) {
        if self.prr_bound().is_some() {
            self.settle();
        }
    }

    fn prr_bound(&self) -> Option<PrrBound> {
        match self.variant {
            Variant::Sack(_) if self.bbr.is_some() => None, // it has rules of its own
            Variant::Sack(sack) => match sack.window {
                RecoveryWindow::Prr(bound) => Some(bound),
                RecoveryWindow::AtOnce => None,
            },
            Variant::Reno(_) | Variant::NewReno(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(delivered: u64, pipe: u64, progress: Progress) -> Delivery {
        Delivery { delivered, pipe, progress }
    }

    #[test]
    fn above_ssthresh_what_leaves_is_in_proportion_to_what_arrives() {
        // 20 in flight, ssthresh 10: one leaves for two that arrive.
        let mut prr = Prr::begin(PrrBound::Conservative, 20_000, 0, 0);
        let mut pipe = 19_000;
        let sent: Vec<u64> = (0..8)
            .map(|_| {
                let sent =
                    prr.allow(PrrBound::Conservative, 10_000, 1000, ack(1000, pipe, Progress::Doubtful));
                let whole = sent / 1000 * 1000;
                prr.on_sent(whole as u32);
                pipe = pipe - 1000 + whole;
                whole
            })
            .collect();
        assert_eq!(sent, [0, 1000, 0, 1000, 0, 1000, 0, 1000]);
    }

    #[test]
    fn below_ssthresh_the_bounds_differ_by_a_segment_an_ack() {
        for (bound, progress, expected) in [
            (PrrBound::Conservative, Progress::Safe, 1000),
            (PrrBound::SlowStart, Progress::Doubtful, 2000),
            (PrrBound::SafeAck, Progress::Safe, 2000),
            (PrrBound::SafeAck, Progress::Doubtful, 1000),
        ] {
            let mut prr = Prr::begin(bound, 20_000, 0, 0);
            assert_eq!(prr.allow(bound, 10_000, 1000, ack(1000, 4000, progress)), expected, "{bound:?}");
        }
    }

    #[test]
    fn never_more_than_ssthresh_allows() {
        for bound in [PrrBound::Conservative, PrrBound::SlowStart, PrrBound::SafeAck] {
            let mut prr = Prr::begin(bound, 20_000, 0, 0);
            assert_eq!(prr.allow(bound, 10_000, 1000, ack(9000, 9500, Progress::Safe)), 500, "{bound:?}");
            assert_eq!(prr.allow(bound, 10_000, 1000, ack(1000, 10_000, Progress::Safe)), 0, "{bound:?}");
        }
    }

    #[test]
    fn what_was_reported_before_recovery_is_not_in_flight_to_rfc_9937() {
        let mut old = Prr::begin(PrrBound::SlowStart, 20_000, 11_000, 1000);
        let mut new = Prr::begin(PrrBound::SafeAck, 20_000, 11_000, 1000);
        let ack = ack(1000, 15_000, Progress::Doubtful);
        assert_eq!(old.allow(PrrBound::SlowStart, 10_000, 1000, ack), 500);
        assert_eq!(new.allow(PrrBound::SafeAck, 10_000, 1000, ack), 1000);
        assert_eq!(Prr::begin(PrrBound::SafeAck, 5, 9, 0).flight, 1, "never divides by zero");
    }
}
