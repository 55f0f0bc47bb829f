//! The command that `hopline link` and `hopline emulate` run: waiting for its end, and its exit code.

use super::children;
use super::clock;
use crate::console;
use crate::problems::Failure;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitCode, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// Interval between checks of whether the command has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time between Ctrl-C, which also reaches the command, and SIGTERM.
const TERM_DELAY: Duration = Duration::from_secs(2);

/// Signals that the awaited command has received.
#[derive(Clone, Copy)]
enum SignalSent {
    None,
    /// SIGINT from the terminal by Ctrl-C, at this time.
    Interrupted(Instant),
    /// SIGTERM from this process; SIGINT at this time.
    Terminated(Instant),
}

/// Waits for the command, and calls `check` meanwhile. A command that continues after Ctrl-C receives SIGTERM, and then
/// SIGKILL.
pub(super) fn await_end(
    child: &mut Child,
    mut check: impl FnMut() -> Result<(), Failure>,
) -> Result<ExitStatus, Failure> {
    let failed = |e: std::io::Error| Failure::Other(format!("waiting for the command: {e}"));
    let mut told = SignalSent::None;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(status);
        }
        check()?;
        match told {
            SignalSent::None if console::interrupted() => told = SignalSent::Interrupted(clock::now()),
            SignalSent::Interrupted(since) if since.elapsed() > TERM_DELAY => {
                children::terminate(child.id());
                told = SignalSent::Terminated(since);
            }
            SignalSent::Terminated(since) if since.elapsed() > 2 * TERM_DELAY => {
                child.kill().map_err(failed)?
            }
            SignalSent::None | SignalSent::Interrupted(_) | SignalSent::Terminated(_) => {}
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Waits for this long, or until Ctrl-C, and calls `check` meanwhile.
pub(super) fn await_time(
    length: Duration,
    mut check: impl FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let since = clock::now();
    while !console::interrupted() && since.elapsed() < length {
        check()?;
        thread::sleep(POLL_INTERVAL.min(length.saturating_sub(since.elapsed())));
    }
    Ok(())
}

/// Returns the exit code as shells do, or failure if the command succeeded and the run has failed.
pub(super) fn exit_code(status: ExitStatus, has_failed: bool) -> ExitCode {
    match (status.code(), status.signal()) {
        (Some(0), _) if has_failed => ExitCode::FAILURE,
        (Some(code), _) => ExitCode::from(code as u8),
        (None, signal) => ExitCode::from(128_u8.saturating_add(signal.unwrap_or(0) as u8)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_run_changes_only_a_successful_exit_code() {
        let of = |raw, has_failed| format!("{:?}", exit_code(ExitStatus::from_raw(raw), has_failed));
        let code = |code: u8| format!("{:?}", ExitCode::from(code));
        assert_eq!((of(0, false), of(0, true)), (code(0), code(1)));
        assert_eq!((of(7 << 8, true), of(9, true)), (code(7), code(128 + 9)));
    }
}
