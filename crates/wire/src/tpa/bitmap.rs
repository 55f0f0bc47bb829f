//! Set of segments of a block, one bit each.

/// Maximum number of segments in a block.
pub const POSITIONS: u8 = 12;

/// A set of positions in a block, 0 to 11.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Bitmap(u16);

impl Bitmap {
    /// No position.
    pub const EMPTY: Self = Self(0);

    /// The set with the lowest twelve of `bits`.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits & ((1 << POSITIONS) - 1))
    }

    /// Returns the set of one position; positions above 11 give the empty set.
    #[must_use]
    pub const fn single(position: u8) -> Self {
        Self::from_bits(if position < 16 { 1 << position } else { 0 })
    }

    /// The first `count` positions.
    #[must_use]
    pub const fn first(count: u8) -> Self {
        Self::from_bits(if count < 16 { (1 << count) - 1 } else { u16::MAX })
    }

    /// Returns the bits; bit 0 is position 0.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Number of positions in the set.
    #[must_use]
    pub const fn count(self) -> u8 {
        self.0.count_ones() as u8
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether `position` is in the set.
    #[must_use]
    pub const fn contains(self, position: u8) -> bool {
        !self.and(Self::single(position)).is_empty()
    }

    /// Adds a position.
    pub const fn insert(&mut self, position: u8) {
        self.0 |= Self::single(position).0;
    }

    /// Removes a position.
    pub const fn remove(&mut self, position: u8) {
        self.0 &= !Self::single(position).0;
    }

    /// The lowest position.
    #[must_use]
    pub const fn lowest(self) -> Option<u8> {
        if self.0 == 0 { None } else { Some(self.0.trailing_zeros() as u8) }
    }

    /// Returns the intersection of both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the union of both sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the positions that are here and not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The positions in rising order.
    pub fn positions(self) -> impl Iterator<Item = u8> {
        let mut rest = self;
        core::iter::from_fn(move || {
            let position = rest.lowest()?;
            rest.remove(position);
            Some(position)
        })
    }
}
