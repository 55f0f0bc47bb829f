//! Proof of receipt: an acknowledgment counts only with a value that only the receiver of the data can know.
//!
//! Each data segment of a connection with tags carries a nonce. Each acknowledgment carries the exclusive or of the
//! nonces of all segments that it covers. A peer therefore cannot acknowledge data that it has not received, to direct a
//! flood at a victim. (The cumulative nonce of Savage, Cardwell, Wetherall and Anderson, "TCP congestion control with a
//! misbehaving receiver", 1999, over a block in place of a stream.)

use super::secret::Secret;
use core::hash::Hasher;
use hopline_wire::tpa::{Bitmap, POSITIONS};

/// Number of nonces from one hash.
const NONCES_PER_HASH: usize = 4;

/// Nonces of a block's segments; all zero where tags are not in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Nonces([u16; POSITIONS as usize]);

impl Nonces {
    /// Computes the nonces of the block at stream offset `start`. A retransmission has the same nonce.
    pub(super) fn for_block(secret: Option<Secret>, start: u64) -> Self {
        let mut nonces = Self::default();
        let Some(secret) = secret else { return nonces };
        for (number, four) in (0u8..).zip(nonces.0.chunks_mut(NONCES_PER_HASH)) {
            let mut hasher = secret.hasher();
            hasher.write_u64(start);
            hasher.write_u8(number);
            for (nonce, bytes) in four.iter_mut().zip(hasher.finish().to_be_bytes().chunks_exact(2)) {
                *nonce = u16::from_be_bytes([bytes[0], bytes[1]]);
            }
        }
        nonces
    }

    /// Returns the nonce of the segment at `position`.
    pub(super) fn nonce(&self, position: u8) -> u16 {
        self.0[usize::from(position)]
    }

    /// Returns the proof of receipt of all segments in `received`.
    pub(super) fn proof(&self, received: Bitmap) -> u16 {
        received.positions().fold(0, |proof, position| proof ^ self.nonce(position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_differ_by_position_block_and_secret_and_are_the_same_again() {
        let secret = |n| Some(Secret([n; 16]));
        let nonces = Nonces::for_block(secret(1), 0);
        assert_eq!(nonces, Nonces::for_block(secret(1), 0));
        assert_ne!(nonces, Nonces::for_block(secret(1), 17_424));
        assert_ne!(nonces, Nonces::for_block(secret(2), 0));
        let mut distinct: Vec<_> = (0..POSITIONS).map(|position| nonces.nonce(position)).collect();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 12);
        assert_eq!(Nonces::for_block(None, 5), Nonces::default());
    }

    #[test]
    fn a_proof_covers_all_acknowledged_segments() {
        let nonces = Nonces::for_block(Some(Secret([1; 16])), 0);
        assert_eq!(nonces.proof(Bitmap::EMPTY), 0);
        assert_eq!(nonces.proof(Bitmap::first(2)), nonces.nonce(0) ^ nonces.nonce(1));
    }
}
