//! Output of commands that run beside the main one.

use crate::net::children::KILL_DELAY;
use crate::problems::print_error_line;
use std::io::{self, BufRead, BufReader, PipeReader, Read};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Longest line, bytes; longer ones are cut.
const MAX_LINE: u64 = 64 * 1024;
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Thread that passes the output of a command to stderr, so that only the main command writes to stdout.
pub(super) struct PrefixedOutput(JoinHandle<()>);

impl PrefixedOutput {
    /// Starts to pass on the output of `command`, with the prefix `name`. The command has no input: stdin belongs to the
    /// main command.
    pub(super) fn of(name: &str, command: &mut Command) -> io::Result<Self> {
        let (heard, said) = io::pipe()?;
        command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said);
        let prefix = name.to_owned();
        let listening =
            thread::Builder::new().name("output".into()).spawn(move || copy_lines(&prefix, heard));
        Ok(Self(listening?))
    }

    /// Waits until all output has been passed on, once no process is left that could write.
    pub(super) fn end(self) {
        Self::end_all(&[self]);
    }

    /// Does the same for several commands at once.
    pub(super) fn end_all(outputs: &[Self]) {
        // Processes that cannot even be killed are not waited for.
        for _ in 0..KILL_DELAY.as_millis() / POLL_INTERVAL.as_millis() {
            if outputs.iter().all(|output| output.0.is_finished()) {
                return;
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

fn copy_lines(name: &str, heard: PipeReader) {
    let mut heard = BufReader::new(heard);
    let mut line = Vec::new();
    while heard.by_ref().take(MAX_LINE).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        print_error_line(&format!("{name}: {}", String::from_utf8_lossy(&line)));
        line.clear();
    }
}
