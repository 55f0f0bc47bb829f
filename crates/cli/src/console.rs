//! Standard output, which may be closed by its reader, and Ctrl-C.

use crate::problems::Failure;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Installs a handler of Ctrl-C, SIGTERM and SIGHUP. It sets a flag that runs check, so that incomplete results are removed.
pub(crate) fn catch_interrupts() -> Result<(), Failure> {
    ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed))
        .map_err(|e| Failure::Other(format!("cannot catch Ctrl-C: {e}")))
}

/// Returns whether one of these signals arrived.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Prints `text` to stdout, completely.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    if hopline_stdout::was_closed() {
        return Err(Failure::Stdout(io::Error::other("it is closed")));
    }
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::Stdout)
}
