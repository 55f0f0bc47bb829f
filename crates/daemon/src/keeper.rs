//! What removes the rules of a daemon that was killed: a process that does nothing until then.

use crate::RunError;
use crate::rules::{self, Leave};
use crate::state::{State, StateError};
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

/// How often it is seen whether the lock is free, and how often that is done: the kernel closes what a process had open in any order.
const INTERVAL: Duration = Duration::from_millis(20);
const LOOKS: u32 = 100;

/// A process that waits for the end of this one. Its standard input ends with us.
#[derive(Debug)]
pub(crate) struct Keeper {
    child: Child,
    until: Option<ChildStdin>,
}

impl Keeper {
    /// Starts it: this program with `words`, which make it call [`keep`].
    pub(crate) fn start(words: &[OsString]) -> io::Result<Self> {
        let mut child = Command::new("/proc/self/exe")
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // What ends us at a terminal is not for it.
            .process_group(0)
            .spawn()?;
        let until = child.stdin.take();
        Ok(Self { child, until })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.until = None;
        let _ = self.child.wait();
    }
}

/// Waits until standard input ends, then unmakes the rules of the daemon `name`, unless another one of that name is there already: that one
/// has seen to them.
///
/// # Errors
/// What could not be unmade.
pub fn keep(name: &str, folder: &Path) -> Result<(), RunError> {
    let _ = io::stdin().read(&mut [0]);
    for _ in 0..LOOKS {
        match State::hold(folder, name) {
            Ok(held) => return Ok(rules::undo(name, held.folder(), Leave::Tuns).map(drop)?),
            Err(StateError::Taken { .. }) => thread::sleep(INTERVAL),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
