//! A process of the command that makes a run.

use super::protocol::{Reply, Request, SUBCOMMAND};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// Exit code of the command after Ctrl-C.
const INTERRUPTED: i32 = 130;

/// A process of the command. It is killed when it is dropped before its end.
pub(super) struct Process {
    child: Child,
    /// `None` once the end is awaited: then the process can no longer write.
    output: Option<BufReader<ChildStdout>>,
    /// A file: a process that writes many errors must not wait for a reader.
    errors: File,
}

/// End of a process.
pub(super) struct ProcessEnd {
    /// `true` after Ctrl-C.
    pub(super) was_interrupted: bool,
    /// Message of its error, or its end.
    pub(super) message: String,
}

impl Process {
    /// Starts the command at a path, and sends it a request.
    pub(super) fn start(command: &Path, request: &Request) -> Result<Self, String> {
        if command.as_os_str().is_empty() {
            return Err("there is no command `hopline` in PATH".into());
        }
        let request = serde_json::to_vec(request).map_err(|e| format!("a path or text of the plan: {e}"))?;
        Self::spawn(command, &request).map_err(|e| format!("{} cannot be started: {e}", command.display()))
    }

    fn spawn(command: &Path, request: &[u8]) -> io::Result<Self> {
        let errors = tempfile::tempfile()?;
        let mut child = Command::new(command)
            .arg(SUBCOMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors.try_clone()?)
            .env("NO_COLOR", "1")
            .spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().map(BufReader::new);
        let process = Self { child, output, errors };
        if let Some(mut input) = input {
            // A process that ends before it has read says why.
            let _ = input.write_all(request);
        }
        Ok(process)
    }

    /// Returns the replies up to the end of the output.
    pub(super) fn replies(&mut self) -> impl Iterator<Item = Result<Reply, String>> {
        self.output.iter_mut().flat_map(|output| output.lines()).map(|line| {
            let line = line.map_err(|error| format!("reading from the command: {error}"))?;
            serde_json::from_str(&line)
                .map_err(|error| format!("the command gave no reply of a sweep: {error}: {line}"))
        })
    }

    /// Waits for the end of the process, which can no longer write.
    pub(super) fn end(mut self) -> ProcessEnd {
        self.output = None;
        let status = self.child.wait();
        let mut text = Vec::new();
        let _ = self.errors.rewind().and_then(|()| self.errors.read_to_end(&mut text));
        let text = String::from_utf8_lossy(&text);
        let text = text.trim().trim_start_matches("× ");
        match status {
            Ok(status) => ProcessEnd {
                was_interrupted: status.code() == Some(INTERRUPTED),
                message: if text.is_empty() {
                    format!("the emulation ended with {status}")
                } else {
                    text.to_owned()
                },
            },
            Err(error) => ProcessEnd { was_interrupted: false, message: format!("{error}: {text}") },
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // After its end this does nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
