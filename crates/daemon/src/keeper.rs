//! Keeper: a process that waits, and removes the rules of a daemon that was killed.

use crate::RunError;
use crate::rules::{self, Keep};
use crate::state::{State, StateError};
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

/// Interval between checks of whether the lock is free, and their number: the kernel closes the files of an ended process in
/// any order.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
const MAX_CHECKS: u32 = 100;

/// Process that waits for the end of this one. Its standard input closes with this process.
#[derive(Debug)]
pub(crate) struct Keeper {
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Keeper {
    /// Starts it: this program with the arguments `words`, which make it call [`keep`].
    pub(crate) fn start(words: &[OsString]) -> io::Result<Self> {
        let mut child = Command::new("/proc/self/exe")
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // A signal of the terminal to this process must not reach it.
            .process_group(0)
            .spawn()?;
        let until = child.stdin.take();
        Ok(Self { child, stdin: until })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.wait();
    }
}

/// Waits until standard input ends, then removes the rules of the daemon `name`, unless another one of that name runs
/// already, which has cleaned up.
///
/// # Errors
/// Rules that could not be removed.
pub fn keep(name: &str, folder: &Path) -> Result<(), RunError> {
    let _ = io::stdin().read(&mut [0]);
    for _ in 0..MAX_CHECKS {
        match State::acquire_for_cleanup(folder, name) {
            Ok(held) => return Ok(rules::undo(name, held.folder(), Keep::TunInterfaces).map(drop)?),
            Err(StateError::AlreadyRunning { .. }) => thread::sleep(CHECK_INTERVAL),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
