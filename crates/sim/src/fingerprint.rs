//! The hash of an event trajectory.

use hopline_core::Instant;

/// Odd, with evenly mixed bits: the fraction of the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Grows by one word per observed event. Order matters; so does every bit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fingerprint(u64);

/// Kind of an observed event. The number is part of the hash: never renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ObservedEvent {
    TransmitRts = 1,
    TransmitCts = 2,
    TransmitAck = 3,
    TransmitData = 4,
    Decoded = 5,
    Damaged = 6,
    WiredSent = 7,
    WiredArrived = 8,
    Delivered = 9,
    Dropped = 10,
    TransmitBlockAckReq = 11,
    TransmitBlockAck = 12,
    Marked = 13,
    TransmitAction = 14,
}

impl Fingerprint {
    pub(crate) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Mixes in that `what` happened at `now` at `node`; `detail` is a length, a count or a flow.
    pub(crate) fn observe(&mut self, now: Instant, what: ObservedEvent, node: u32, detail: u32) {
        self.mix(now.as_nanos());
        self.mix(u64::from(detail) << 40 ^ u64::from(node) << 8 ^ what as u64);
    }

    pub(crate) const fn value(self) -> u64 {
        self.0
    }

    /// Multiplies, and folds the two halves of the product together: cheap, and every bit matters.
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * u128::from(MULTIPLIER);
        self.0 = (product as u64 ^ (product >> 64) as u64).wrapping_add(MULTIPLIER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint_of(events: &[(u64, ObservedEvent, u32, u32)]) -> u64 {
        let mut f = Fingerprint::new();
        for &(at, what, node, detail) in events {
            f.observe(Instant::from_nanos(at), what, node, detail);
        }
        f.value()
    }

    #[test]
    fn order_time_place_and_detail_matter() {
        let a = (5, ObservedEvent::Decoded, 1, 100);
        let b = (5, ObservedEvent::Decoded, 2, 100);
        let base = fingerprint_of(&[a, b]);
        assert_ne!(base, fingerprint_of(&[b, a]));
        assert_ne!(base, fingerprint_of(&[a, (6, ObservedEvent::Decoded, 2, 100)]));
        assert_ne!(base, fingerprint_of(&[a, (5, ObservedEvent::Decoded, 2, 101)]));
        assert_ne!(base, fingerprint_of(&[a, (5, ObservedEvent::Damaged, 2, 100)]));
        assert_ne!(base, fingerprint_of(&[a]));
        assert_eq!(base, fingerprint_of(&[a, b]));
    }
}
