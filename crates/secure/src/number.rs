//! Numbers of datagrams: 64 bits, of which 32 are sent.

/// Half of what 32 bits can tell apart.
const HALF_SPAN: u64 = 1 << 31;
const SPAN: u64 = 1 << 32;

/// Returns the number with the low half `low` that is nearest to the one expected after `highest` (RFC 9000,
/// appendix A.3).
pub(crate) fn rebuild(low: u32, highest: Option<u64>) -> u64 {
    let expected = highest.map_or(0, |highest| highest.saturating_add(1));
    let candidate = (expected & !(SPAN - 1)) | u64::from(low);
    if candidate.saturating_add(HALF_SPAN) <= expected && candidate < u64::MAX - SPAN {
        candidate + SPAN
    } else if candidate > expected.saturating_add(HALF_SPAN) && candidate >= SPAN {
        candidate - SPAN
    } else {
        candidate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_low_half_wraps_around() {
        assert_eq!(rebuild(0, None), 0);
        assert_eq!(rebuild(7, None), 7);
        assert_eq!(rebuild(0, Some(0xffff_ffff)), 1 << 32);
        assert_eq!(rebuild(5, Some(0xffff_fff0)), (1 << 32) + 5);
        assert_eq!(rebuild(0xffff_fff0, Some((1 << 32) + 5)), 0xffff_fff0);
        assert_eq!(rebuild(0xffff_ffff, Some(3 << 32)), (3 << 32) - 1);
        // Half of the span ahead is ahead, and what is one further is behind.
        assert_eq!(rebuild(0x7fff_ffff, Some((5 << 32) - 2)), (5 << 32) + 0x7fff_ffff);
        assert_eq!(rebuild(0x8000_0000, Some((5 << 32) - 2)), (4 << 32) + 0x8000_0000);
    }

    #[test]
    fn the_highest_numbers_are_rebuilt_correctly() {
        assert_eq!(rebuild(u32::MAX, Some(u64::MAX)), u64::MAX);
        assert_eq!(rebuild(0, Some(u64::MAX)), u64::MAX - (SPAN - 1));
        assert_eq!(rebuild(u32::MAX, Some(u64::MAX - 1)), u64::MAX);
    }

    proptest! {
        #[test]
        fn any_number_within_half_the_span_is_rebuilt(highest in 0..1u64 << 62, ahead in 0..=HALF_SPAN, behind in 0..HALF_SPAN - 1) {
            let later = highest + 1 + ahead;
            prop_assert_eq!(rebuild(later as u32, Some(highest)), later);
            let earlier = highest.saturating_sub(behind);
            prop_assert_eq!(rebuild(earlier as u32, Some(highest)), earlier);
        }
    }
}
