//! Standard output, which may go away, and Ctrl-C, which may come.

use crate::problems::Failure;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

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
    if hopline_stdout::was_closed() {
        return Err(Failure::Stdout(io::Error::other("it is closed")));
    }
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::Stdout)
}
