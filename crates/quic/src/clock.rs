//! Virtual time as `quinn-proto` takes it.
//!
//! It wants [`std::time::Instant`], of which only a clock can make the first. Differences alone reach its decisions, so that the
//! moment of the first has no effect on them.

use hopline_core::Instant;
use std::sync::LazyLock;
use std::time::Duration;

/// Instant that stands for the beginning of virtual time.
#[expect(
    clippy::disallowed_methods,
    reason = "the standard library has no other way to make an `Instant`; see above"
)]
static ORIGIN: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);

/// Returns the instant for quinn that stands for `now`.
pub(crate) fn to_quinn(now: Instant) -> std::time::Instant {
    *ORIGIN + Duration::from_nanos(now.as_nanos())
}

/// Returns the virtual time of an instant of quinn.
pub(crate) fn from_quinn(at: std::time::Instant) -> Instant {
    let nanos = at.saturating_duration_since(*ORIGIN).as_nanos();
    Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_returns_unchanged() {
        for nanos in [0, 1, 999_999_999, 1_000_000_001, 10_000_000 * 1_000_000_000] {
            let now = Instant::from_nanos(nanos);
            assert_eq!(from_quinn(to_quinn(now)), now);
        }
    }
}
