//! Spurious time-outs, as only a simulator can know them: nothing that they waited for was lost.

use hopline_core::Instant;

/// The time-outs of one end of a connection. Bytes are counted from the start of what that end sends.
#[derive(Debug, Default)]
pub(super) struct Timeouts {
    /// Time-outs that are not judged yet.
    open: Vec<Expired>,
    /// Number of spurious time-outs: those after which the first byte that was not acknowledged came, or had
    /// come, by a segment that left before.
    needless: u64,
}

#[derive(Debug)]
struct Expired {
    at: Instant,
    /// Bytes acknowledged.
    acked: u64,
}

impl Timeouts {
    pub(super) fn needless(&self) -> u64 {
        self.needless
    }

    /// Leaves those unjudged that are not judged yet.
    pub(super) fn forget_open(&mut self) {
        self.open.clear();
    }

    /// Returns whether some time-outs are not judged yet. This is rare, as segments come all the time.
    pub(super) fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Records that the timer expired with `acked` bytes acknowledged, while the peer has `received` in
    /// order.
    pub(super) fn expire(&mut self, at: Instant, acked: u64, received: u64) {
        if received > acked {
            self.needless += 1;
        } else {
            self.open.push(Expired { at, acked });
        }
    }

    /// Records that a segment that was `made` then has come to the peer, which now has `received` bytes in
    /// order.
    pub(super) fn arrive(&mut self, made: Instant, received: u64) {
        let needless = &mut self.needless;
        self.open.retain(|timeout| {
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
    const RESENT: Instant = EXPIRED;

    #[test]
    fn a_timeout_for_what_the_peer_has_is_needless() {
        let mut timeouts = Timeouts::default();
        timeouts.expire(EXPIRED, 1000, 1001);
        assert_eq!(timeouts.needless(), 1);
    }

    #[test]
    fn a_timeout_for_what_comes_after_all_is_needless() {
        let mut timeouts = Timeouts::default();
        timeouts.expire(EXPIRED, 1000, 1000);
        assert_eq!(timeouts.needless(), 0, "nobody knows yet");
        timeouts.arrive(SENT, 1500);
        assert_eq!(timeouts.needless(), 1);
        timeouts.arrive(SENT, 2000);
        assert_eq!(timeouts.needless(), 1, "each is judged once");
    }

    #[test]
    fn a_timeout_for_what_comes_only_by_being_resent_was_needed() {
        let mut timeouts = Timeouts::default();
        timeouts.expire(EXPIRED, 1000, 1000);
        timeouts.arrive(RESENT, 1500);
        assert_eq!(timeouts.needless(), 0);
        timeouts.arrive(SENT, 1500);
        assert_eq!(timeouts.needless(), 0, "the copy that is late changes nothing");
    }

    #[test]
    fn of_timeouts_in_a_row_those_after_the_copy_that_arrives_are_needless() {
        let mut timeouts = Timeouts::default();
        let (first, second) = (Instant::from_millis(20), Instant::from_millis(60));
        timeouts.expire(first, 1000, 1000);
        timeouts.expire(second, 1000, 1000);
        timeouts.arrive(first, 1500);
        assert_eq!(timeouts.needless(), 1, "the first resend was needed and came");
    }

    #[test]
    fn what_comes_out_of_order_decides_nothing() {
        let mut timeouts = Timeouts::default();
        timeouts.expire(EXPIRED, 1000, 1000);
        timeouts.arrive(SENT, 1000);
        assert_eq!(timeouts.needless(), 0);
        timeouts.arrive(RESENT, 3000);
        assert_eq!(timeouts.needless(), 0);
    }
}
