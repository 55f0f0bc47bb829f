//! Authentication of messages of the other end of the link, and replay protection.

use hopline_wire::dproxy::{Message, Sealed, TAG_LEN};
use std::net::IpAddr;

/// Secret shared by both ends of a link. Tags are the first 16 bytes of keyed BLAKE3 over the address of the
/// sender and the message. A message of one end therefore cannot be reflected to it as one of the other end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl Key {
    /// Creates a key from its bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the message of `sender` with its tag.
    #[must_use]
    pub fn seal(&self, sender: IpAddr, message: Message) -> Sealed {
        Sealed {
            message,
            tag: self.tag(sender, &message).as_bytes()[..TAG_LEN].try_into().expect("32 bytes"),
        }
    }

    pub(super) fn is_genuine(&self, sender: IpAddr, sealed: &Sealed) -> bool {
        let tag = self.tag(sender, &sealed.message);
        let differs = tag.as_bytes().iter().zip(&sealed.tag).fold(0, |all, (a, b)| all | (a ^ b));
        differs == 0
    }

    /// Derives a key from this key and these bytes. Inputs for different purposes must have different
    /// lengths.
    pub(crate) fn derive(&self, from: &[u8]) -> [u8; 32] {
        blake3::keyed_hash(&self.0, from).into()
    }

    fn tag(&self, sender: IpAddr, message: &Message) -> blake3::Hash {
        // The length of an address depends on the IP version alone: no two pairs yield the same bytes.
        let mut bytes = match sender {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        bytes.extend(message.to_bytes());
        blake3::keyed_hash(&self.0, &bytes)
    }
}

/// Hides the key.
impl core::fmt::Debug for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Key")
    }
}

/// Size of the replay window: distance below the highest number at which a message is still accepted.
pub const REPLAY_WINDOW: u64 = 1024;

/// Message numbers seen from the peer: a sliding window as in IPsec (RFC 4303 §3.4.3).
#[derive(Debug, Default)]
pub(crate) struct ReplayWindow {
    highest: Option<u64>,
    bitmap: [u64; (REPLAY_WINDOW / 64) as usize],
}

impl ReplayWindow {
    /// Returns whether a number is seen for the first time, and records it.
    pub(crate) fn check_and_record(&mut self, number: u64) -> bool {
        match self.highest {
            None => self.highest = Some(number),
            Some(highest) if number > highest => {
                if number - highest >= REPLAY_WINDOW {
                    self.bitmap = Default::default();
                } else {
                    (highest + 1..number).for_each(|skipped| self.set(skipped, false));
                }
                self.highest = Some(number);
            }
            Some(highest) if highest - number >= REPLAY_WINDOW || self.contains(number) => return false,
            Some(_) => {}
        }
        self.set(number, true);
        true
    }

    fn contains(&self, number: u64) -> bool {
        let bit = number % REPLAY_WINDOW;
        self.bitmap[(bit / 64) as usize] >> (bit % 64) & 1 == 1
    }

    fn set(&mut self, number: u64, has: bool) {
        let bit = number % REPLAY_WINDOW;
        let word = &mut self.bitmap[(bit / 64) as usize];
        *word = *word & !(1 << (bit % 64)) | u64::from(has) << (bit % 64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_number_is_accepted_once_and_old_ones_are_rejected() {
        let mut seen = ReplayWindow::default();
        assert!(seen.check_and_record(5_000), "the first may be any");
        assert!(!seen.check_and_record(5_000));
        assert!(
            seen.check_and_record(5_000 - REPLAY_WINDOW + 1) && !seen.check_and_record(5_000 - REPLAY_WINDOW)
        );
        assert!(
            seen.check_and_record(u64::MAX)
                && !seen.check_and_record(u64::MAX)
                && !seen.check_and_record(5_001)
        );
        assert!(seen.check_and_record(u64::MAX - 1));
    }

    proptest! {
        #[test]
        fn replay_window_matches_a_set(numbers in prop::collection::vec(0u64..5_000, 1..300)) {
            let (mut seen, mut come) = (ReplayWindow::default(), BTreeSet::new());
            for number in numbers {
                let highest = come.last().copied().unwrap_or(number).max(number);
                let expected = highest - number < REPLAY_WINDOW && !come.contains(&number);
                prop_assert_eq!(seen.check_and_record(number), expected);
                if expected { come.insert(number); }
            }
        }
    }
}
