//! Single keys of a terminal while a table is shown.

use crate::console;
use crate::net::clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{self, IsTerminal};
use std::time::Duration;

/// Interval at which Ctrl-C is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Standard input without line editing and echo. Dropping it restores the terminal.
pub(super) struct Keyboard {
    saved_mode: Option<Termios>,
}

/// Result of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PauseResult {
    /// The time is over.
    TimedOut,
    /// The key q, or Ctrl-C.
    Quit,
}

impl Keyboard {
    /// Switches standard input to single keys, if it is a terminal.
    pub(super) fn new() -> Self {
        let stdin = io::stdin();
        let before = stdin.is_terminal().then(|| tcgetattr(&stdin).ok()).flatten();
        if let Some(before) = &before {
            let mut keys = before.clone();
            keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
            // If it fails, q needs the Enter key.
            let _ = tcsetattr(&stdin, OptionalActions::Now, &keys);
        }
        Self { saved_mode: before }
    }

    /// Waits until the time is over or the user wants to quit.
    pub(super) fn pause(&mut self, time: Duration) -> io::Result<PauseResult> {
        let until = clock::now() + time;
        loop {
            let left = until.saturating_duration_since(clock::now());
            if console::interrupted() {
                return Ok(PauseResult::Quit);
            }
            if left.is_zero() {
                return Ok(PauseResult::TimedOut);
            }
            let time = Timespec::try_from(left.min(POLL_INTERVAL)).expect("it is at most 100 ms");
            let stdin = io::stdin();
            let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
            let watched = if self.saved_mode.is_some() { &mut fds[..] } else { &mut [] };
            match poll(watched, Some(&time)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => {
                    let mut keys = [0; 64];
                    match rustix::io::read(&stdin, &mut keys) {
                        Ok(len) if keys[..len].contains(&b'q') => return Ok(PauseResult::Quit),
                        // The terminal is closed.
                        Ok(0) | Err(_) => return Ok(PauseResult::Quit),
                        Ok(_) => {}
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        if let Some(before) = &self.saved_mode {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}
