//! Whole numbers, with error messages of this program.

use std::num::NonZeroU16;
use std::ops::RangeInclusive;

/// Largest whole number of a scenario.
pub(crate) const MAX_INTEGER: u64 = i64::MAX as u64;

/// Parses a whole number of `range`, which lies in that of `T`.
pub(crate) fn whole<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| range_text(&range))
    }
}

/// Parses a maximum number of simultaneous items.
pub(crate) fn count(text: &str) -> Result<NonZeroU16, String> {
    let range = 1..=u16::MAX.into();
    let number = whole::<u16>(range.clone())(text)?;
    NonZeroU16::new(number).ok_or_else(|| range_text(&range))
}

fn range_text(range: &RangeInclusive<u64>) -> String {
    match (range.start(), range.end()) {
        (least, &(MAX_INTEGER..)) => format!("a whole number from {least}"),
        (least, most) => format!("a whole number from {least} to {most}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_out_of_range_is_rejected_with_the_range() {
        assert_eq!(whole::<u8>(1..=12)("12"), Ok(12));
        assert_eq!(whole::<u64>(0..=MAX_INTEGER)("9223372036854775807"), Ok(MAX_INTEGER));
        for wrong in ["", "0", "13", "-1", "1.0", " 1", "ten", "99999999999999999999"] {
            assert_eq!(whole::<u8>(1..=12)(wrong), Err("a whole number from 1 to 12".into()), "{wrong}");
        }
        assert_eq!(whole::<u64>(1..=MAX_INTEGER)("0"), Err("a whole number from 1".into()));
        assert_eq!((count("65535").map(u16::from), count("0").is_err()), (Ok(65_535), true));
    }
}
