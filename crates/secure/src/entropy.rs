//! Randomness that is handed in: a seed of 32 bytes, and all that is derived from it.

use core::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Context that separates this use of a seed from all others (`blake3::derive_key`).
const CONTEXT: &str = "hopline 2026-11-25 encryption layer, randomness";

/// The same of seeds that follow from a seed.
const CHILD_CONTEXT: &str = "hopline 2026-11-25 encryption layer, seed of a seed";

/// 32 unpredictable bytes, each seed used once: equal seeds give equal keys. Wiped when dropped, not shown.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Seed([u8; 32]);

impl Seed {
    /// Creates a seed of these bytes, which come from the operating system's generator.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the seed number `number` of those that follow from this one. This one is then used for nothing
    /// else.
    #[must_use]
    pub fn child(&self, number: u64) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(CHILD_CONTEXT);
        let child = Self(*hasher.update(&self.0).update(&number.to_be_bytes()).finalize().as_bytes());
        hasher.zeroize();
        child
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(…)")
    }
}

/// Bytes that follow from a seed, as many as are wanted: BLAKE3 as an extendable output.
#[derive(Clone)]
pub(crate) struct Entropy(blake3::OutputReader);

impl Entropy {
    pub(crate) fn new(seed: &Seed) -> Self {
        Self(blake3::Hasher::new_derive_key(CONTEXT).update(&seed.0).finalize_xof())
    }

    /// Fills `bytes` with the next bytes.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill(bytes);
    }

    /// Returns the next `N` bytes.
    pub(crate) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    /// Creates a seed for something else.
    pub(crate) fn seed(&mut self) -> Seed {
        Seed(self.bytes())
    }
}

impl Drop for Entropy {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_bytes_that_do_not_repeat() {
        let draw = |seed: u8| {
            let mut entropy = Entropy::new(&Seed::new([seed; 32]));
            [entropy.bytes::<32>(), entropy.bytes::<32>(), entropy.seed().0]
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let [a, b, c] = draw(1);
        assert!(a != b && b != c && a != c);
    }

    #[test]
    fn child_seeds_differ_from_their_parent_and_each_other() {
        let seed = Seed::new([1; 32]);
        assert_eq!(seed.child(3).0, seed.child(3).0);
        assert!(seed.child(3).0 != seed.child(4).0 && seed.child(3).0 != seed.0);
        assert_ne!(seed.child(3).0, Seed::new([2; 32]).child(3).0);
    }

    #[test]
    fn a_seed_is_not_printed() {
        let seed = Seed::new([0xab; 32]);
        assert_eq!(format!("{seed:?} {:?}", Entropy::new(&seed)), "Seed(…) Entropy(…)");
    }
}
