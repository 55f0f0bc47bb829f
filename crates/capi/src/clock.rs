//! Real time, in which callers are.

use rustix::event::Timespec;
use std::time::Duration;

#[expect(clippy::disallowed_methods, reason = "callers are in real time")]
pub(crate) fn now() -> std::time::Instant {
    std::time::Instant::now()
}

pub(crate) fn timespec(duration: Duration) -> Timespec {
    let tv_sec = duration.as_secs().try_into().unwrap_or(i64::MAX);
    Timespec { tv_sec, tv_nsec: duration.subsec_nanos().into() }
}
