//! Standard output, which may go away, Ctrl-C, which may come, and the clock.

use crate::problems::Failure;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From here on Ctrl-C, SIGTERM and SIGHUP set a flag that runs look at, so that half-written results are removed.
pub(crate) fn catch_interrupts() -> Result<(), Failure> {
    ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed))
        .map_err(|e| Failure::Other(format!("cannot catch Ctrl-C: {e}")))
}

/// Whether one of them came.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Prints `text` to stdout, whole.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    if hopline_net::stdout_was_closed() {
        return Err(Failure::Stdout(io::Error::other("it is closed")));
    }
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::Stdout)
}

/// The time of day, since 1970-01-01 00:00 UTC.
#[expect(clippy::disallowed_methods, reason = "to be shown, and for nothing else")]
pub(crate) fn time_of_day() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The time, for whoever talks to other machines.
#[expect(clippy::disallowed_methods, reason = "the command line is where a clock is read")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
