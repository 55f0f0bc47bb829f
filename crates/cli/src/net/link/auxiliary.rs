//! Commands beside the near one: of routers, and of the far host.

use super::POLL_INTERVAL;
use crate::net::prefixed_output::PrefixedOutput;
use crate::problems::{Failure, print_error_line};
use hopline_linux::Namespace;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};

/// Command that runs at the same time as the near one.
pub(super) struct AuxiliaryCommand {
    /// Option that gives it, without dashes.
    name: &'static str,
    words: String,
    child: Child,
    output: PrefixedOutput,
    state: CommandState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandState {
    Running,
    Succeeded,
    Failed,
}

impl AuxiliaryCommand {
    /// Starts `words` in a shell on `host`, by `start`.
    pub(super) fn start(
        name: &'static str,
        words: &str,
        host: &Namespace,
        start: impl FnOnce(&Namespace, Command) -> Result<Child, Failure>,
    ) -> Result<Self, Failure> {
        let mut shell = Command::new("sh");
        // Ctrl-C does not reach it: it is stopped when the near command has ended.
        shell.args(["-c", words]).process_group(0);
        let voice = PrefixedOutput::of(name, &mut shell)
            .map_err(|e| Failure::Other(format!("listening to the {name} command: {e}")))?;
        let child = start(host, shell)?;
        Ok(Self { name, words: words.to_owned(), child, output: voice, state: CommandState::Running })
    }

    /// Returns whether it has ended by itself with another exit code than 0, and reports that once.
    pub(super) fn has_failed(&mut self) -> bool {
        if self.state == CommandState::Running
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.state = if status.success() { CommandState::Succeeded } else { self.fail(status) };
        }
        self.is_reported_failed()
    }

    pub(super) fn is_reported_failed(&self) -> bool {
        self.state == CommandState::Failed
    }

    fn fail(&self, status: ExitStatus) -> CommandState {
        print_error_line(&format!("error: --{} '{}' ended with {status}", self.name, self.words));
        CommandState::Failed
    }

    /// Waits until all its output is passed on, after it was stopped.
    pub(super) fn end(self) {
        self.output.end();
    }
}

/// Returns whether one of them has failed. Each is checked, so that each failure is reported.
pub(super) fn any_failed(beside: &mut [AuxiliaryCommand]) -> bool {
    beside.iter_mut().filter_map(|one| one.has_failed().then_some(())).count() > 0
}

/// Waits for `head_start`, so that they can begin, unless one fails.
pub(super) fn await_start(beside: &mut [AuxiliaryCommand], head_start: std::time::Duration) {
    for _ in 0..head_start.as_millis() / POLL_INTERVAL.as_millis() {
        if beside.is_empty() || any_failed(beside) {
            return;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
