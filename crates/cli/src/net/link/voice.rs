//! Output of the commands beside the near one.

use super::children::GRACE;
use crate::problems::{Failure, say};
use std::io::{BufRead, BufReader, PipeReader, Read};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Longer lines are cut.
const LINE: u64 = 64 * 1024;
const LOOK: Duration = Duration::from_millis(20);

/// Passes on to stderr what a command says, so that stdout is the near command's alone.
pub(super) struct Voice(JoinHandle<()>);

impl Voice {
    /// That of `command`, from its start on, behind `name`. It reads nothing: stdin is the near command's as well.
    pub(super) fn of(name: &'static str, command: &mut Command) -> Result<Self, Failure> {
        let failed = |e: std::io::Error| Failure::Other(format!("listening to the {name} command: {e}"));
        let (heard, said) = std::io::pipe().map_err(failed)?;
        command.stdin(Stdio::null()).stdout(said.try_clone().map_err(failed)?).stderr(said);
        let listening = thread::Builder::new().name(name.into()).spawn(move || pass_on(name, heard));
        Ok(Self(listening.map_err(failed)?))
    }

    /// Waits until everything has been passed on, once nobody is left who could say more.
    pub(super) fn end(self) {
        // Who cannot even be killed keeps nobody waiting.
        for _ in 0..GRACE.as_millis() / LOOK.as_millis() {
            if self.0.is_finished() {
                return;
            }
            thread::sleep(LOOK);
        }
    }
}

fn pass_on(name: &str, heard: PipeReader) {
    let mut heard = BufReader::new(heard);
    let mut line = Vec::new();
    while heard.by_ref().take(LINE).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        say(&format!("{name}: {}", String::from_utf8_lossy(&line)));
        line.clear();
    }
}
