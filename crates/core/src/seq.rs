//! Serial numbers that wrap around (RFC 1982), as TCP (RFC 9293 §3.4), AODV (RFC 3561 §6.1) and others compare them.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

macro_rules! serial {
    ($(#[$doc:meta])* $name:ident, $raw:ty, $signed:ty) => {
        $(#[$doc])*
        ///
        /// Deliberately not `Ord`: "before" is not transitive on a circle. Numbers half the circle apart have no
        /// order, so callers keep their windows shorter than that.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
        pub struct $name(pub $raw);

        impl $name {
            /// Returns whether `self` comes strictly before `other` on the circle.
            #[must_use]
            pub const fn before(self, other: Self) -> bool {
                (self.0.wrapping_sub(other.0) as $signed) < 0
            }

            /// Returns whether `self` comes strictly after `other` on the circle.
            #[must_use]
            pub const fn after(self, other: Self) -> bool {
                other.before(self)
            }

            /// Returns whether `self` is `other` or comes after it.
            #[must_use]
            pub const fn at_or_after(self, other: Self) -> bool {
                !self.before(other)
            }

            /// Signed distance from `other` to `self`: positive if `self` comes after.
            #[must_use]
            pub const fn distance_from(self, other: Self) -> $signed {
                self.0.wrapping_sub(other.0) as $signed
            }

            /// The later of the two.
            #[must_use]
            pub const fn max(self, other: Self) -> Self {
                if self.before(other) { other } else { self }
            }

            /// The earlier of the two.
            #[must_use]
            pub const fn min(self, other: Self) -> Self {
                if other.before(self) { other } else { self }
            }
        }

        impl Add<$raw> for $name {
            type Output = Self;
            fn add(self, rhs: $raw) -> Self {
                Self(self.0.wrapping_add(rhs))
            }
        }

        impl AddAssign<$raw> for $name {
            fn add_assign(&mut self, rhs: $raw) {
                *self = *self + rhs;
            }
        }

        impl Sub<$raw> for $name {
            type Output = Self;
            fn sub(self, rhs: $raw) -> Self {
                Self(self.0.wrapping_sub(rhs))
            }
        }

        /// Length of the arc from `rhs` forward to `self`.
        impl Sub for $name {
            type Output = $raw;
            fn sub(self, rhs: Self) -> $raw {
                self.0.wrapping_sub(rhs.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

serial!(
    /// A 32-bit serial number.
    ///
    /// # Example
    ///
    /// ```
    /// use hopline_core::Seq32;
    ///
    /// let last = Seq32(u32::MAX);
    /// assert!(last.before(last + 1));
    /// assert_eq!(last + 1, Seq32(0));
    /// assert_eq!(Seq32(4) - last, 5);
    /// ```
    Seq32, u32, i32
);
serial!(
    /// A 16-bit serial number.
    ///
    /// # Example
    ///
    /// ```
    /// use hopline_core::Seq16;
    ///
    /// assert!(Seq16(2).after(Seq16(u16::MAX)));
    /// ```
    Seq16, u16, i16
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_wrap_around() {
        let last = Seq32(u32::MAX);
        assert!(last.before(last + 1));
        assert!((last + 1).after(last));
        assert_eq!((last + 10) - last, 10);
        assert_eq!(last.distance_from(last + 10), -10);
        assert_eq!(last.max(last + 1), Seq32(0));
        assert_eq!(last.min(last + 1), last);
    }

    #[test]
    fn equal_numbers_are_neither_before_nor_after() {
        let s = Seq16(7);
        assert!(!s.before(s) && !s.after(s) && s.at_or_after(s));
    }

    #[test]
    fn half_the_circle_is_the_limit() {
        let s = Seq16(100);
        assert!(s.before(s + 0x7fff));
        assert!(!s.before(s + 0x8001));
    }
}
