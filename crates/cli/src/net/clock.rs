//! Clocks.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Returns the time since 1970-01-01 00:00 UTC.
#[expect(clippy::disallowed_methods, reason = "to be shown, and for nothing else")]
pub(crate) fn time_of_day() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Returns the monotonic time.
#[expect(clippy::disallowed_methods, reason = "the command line is where a clock is read")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
