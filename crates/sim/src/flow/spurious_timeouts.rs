//! Spurious time-outs, as only a simulator can know them: nothing that they waited for was lost.

use hopline_core::Instant;

/// The time-outs of one end of a connection. Bytes are counted from the start of what that end sends.
#[derive(Debug, Default)]
pub(super) struct TimeoutClassifier {
    /// Time-outs that are not judged yet.
    unclassified: Vec<UnclassifiedTimeout>,
    /// Number of spurious time-outs: those after which the first byte that was not acknowledged came, or had
    /// come, by a segment that left before.
    spurious: u64,
}

#[derive(Debug)]
struct UnclassifiedTimeout {
    at: Instant,
    /// Bytes acknowledged.
    acked: u64,
}

impl TimeoutClassifier {
    pub(super) fn spurious(&self) -> u64 {
        self.spurious
    }

    /// Leaves those unjudged that are not judged yet.
    pub(super) fn discard_unclassified(&mut self) {
        self.unclassified.clear();
    }

    /// Returns whether some time-outs are not judged yet. This is rare, as segments come all the time.
    pub(super) fn has_unclassified(&self) -> bool {
        !self.unclassified.is_empty()
    }

    /// Records that the timer expired with `acked` bytes acknowledged, while the peer has `received` in
    /// order.
    pub(super) fn on_timeout(&mut self, at: Instant, acked: u64, received: u64) {
        if received > acked {
            self.spurious += 1;
        } else {
            self.unclassified.push(UnclassifiedTimeout { at, acked });
        }
    }

    /// Records that a segment that was `made` then has come to the peer, which now has `received` bytes in
    /// order.
    pub(super) fn on_arrival(&mut self, made: Instant, received: u64) {
        let needless = &mut self.spurious;
        self.unclassified.retain(|timeout| {
            let decided = received > timeout.acked;
            *needless += u64::from(decided && made < timeout.at);
            !decided
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: Instant = Instant::from_millis(10);
    const EXPIRED: Instant = Instant::from_millis(20);
    const RETRANSMITTED: Instant = EXPIRED;

    #[test]
    fn a_timeout_for_received_data_is_spurious() {
        let mut timeouts = TimeoutClassifier::default();
        timeouts.on_timeout(EXPIRED, 1000, 1001);
        assert_eq!(timeouts.spurious(), 1);
    }

    #[test]
    fn a_timeout_for_late_data_is_spurious() {
        let mut timeouts = TimeoutClassifier::default();
        timeouts.on_timeout(EXPIRED, 1000, 1000);
        assert_eq!(timeouts.spurious(), 0, "nobody knows yet");
        timeouts.on_arrival(SENT, 1500);
        assert_eq!(timeouts.spurious(), 1);
        timeouts.on_arrival(SENT, 2000);
        assert_eq!(timeouts.spurious(), 1, "each is judged once");
    }

    #[test]
    fn a_timeout_for_lost_data_is_not_spurious() {
        let mut timeouts = TimeoutClassifier::default();
        timeouts.on_timeout(EXPIRED, 1000, 1000);
        timeouts.on_arrival(RETRANSMITTED, 1500);
        assert_eq!(timeouts.spurious(), 0);
        timeouts.on_arrival(SENT, 1500);
        assert_eq!(timeouts.spurious(), 0, "the copy that is late changes nothing");
    }

    #[test]
    fn of_consecutive_timeouts_those_after_the_arriving_copy_are_spurious() {
        let mut timeouts = TimeoutClassifier::default();
        let (first, second) = (Instant::from_millis(20), Instant::from_millis(60));
        timeouts.on_timeout(first, 1000, 1000);
        timeouts.on_timeout(second, 1000, 1000);
        timeouts.on_arrival(first, 1500);
        assert_eq!(timeouts.spurious(), 1, "the first resend was needed and came");
    }

    #[test]
    fn out_of_order_arrivals_classify_nothing() {
        let mut timeouts = TimeoutClassifier::default();
        timeouts.on_timeout(EXPIRED, 1000, 1000);
        timeouts.on_arrival(SENT, 1000);
        assert_eq!(timeouts.spurious(), 0);
        timeouts.on_arrival(RETRANSMITTED, 3000);
        assert_eq!(timeouts.spurious(), 0);
    }
}
