//! Commands beside the near one: of routers, and of the far host.

use super::LOOK;
use super::voice::Voice;
use crate::problems::{Failure, say};
use hopline_linux::Namespace;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};

/// Command that runs at the same time as the near one.
pub(super) struct Beside {
    /// Option that gives it, without dashes.
    name: &'static str,
    words: String,
    child: Child,
    voice: Voice,
    course: Course,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    Running,
    Succeeded,
    Failed,
}

impl Beside {
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
        let voice = Voice::of(name, &mut shell)?;
        let child = start(host, shell)?;
        Ok(Self { name, words: words.to_owned(), child, voice, course: Course::Running })
    }

    /// Returns whether it has ended by itself with another exit code than 0, and reports that once.
    pub(super) fn has_failed(&mut self) -> bool {
        if self.course == Course::Running
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.course = if status.success() { Course::Succeeded } else { self.fail(status) };
        }
        self.was_seen_to_fail()
    }

    pub(super) fn was_seen_to_fail(&self) -> bool {
        self.course == Course::Failed
    }

    fn fail(&self, status: ExitStatus) -> Course {
        say(&format!("error: --{} '{}' ended with {status}", self.name, self.words));
        Course::Failed
    }

    /// Waits until all its output is passed on, after it was stopped.
    pub(super) fn end(self) {
        self.voice.end();
    }
}

/// Returns whether one of them has failed. Each is checked, so that each failure is reported.
pub(super) fn any_has_failed(beside: &mut [Beside]) -> bool {
    beside.iter_mut().filter_map(|one| one.has_failed().then_some(())).count() > 0
}

/// Waits for `head_start`, so that they can begin, unless one fails.
pub(super) fn begin(beside: &mut [Beside], head_start: std::time::Duration) {
    for _ in 0..head_start.as_millis() / LOOK.as_millis() {
        if beside.is_empty() || any_has_failed(beside) {
            return;
        }
        std::thread::sleep(LOOK);
    }
}
