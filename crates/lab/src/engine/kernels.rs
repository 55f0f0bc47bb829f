//! Runs over Linux kernels. A process of the command makes each of them.
//!
//! It reads a [`Request`] as JSON from its standard input, and writes [`Reply`]s, one on each line. A process that can no
//! longer write ends: so a run is interrupted.

use crate::plan::Keep;
use crate::record::CompletedRun;
use crate::remote::Scenarios;
use crate::run::{Observer, RunError};
use hopline_config::source::Problem;
use hopline_core::Duration;
use hopline_scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Word of the command line that makes the command read a [`Request`]. `hopline --help` does not show it.
pub const SUBCOMMAND: &str = "kernel-run";
/// Exit code of the command after Ctrl-C.
const INTERRUPTED: i32 = 130;

/// Options of emulations in virtual time, as of `hopline emulate`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelOptions {
    /// Folder with the kernel; `None`: that of `make uml`.
    pub kernel: Option<PathBuf>,
    /// Virtual time of a system call in microseconds; `None`: 5.
    pub syscall_cost_us: Option<u64>,
    /// Real time in seconds for which a program may compute; `None`: 30.
    pub patience_s: Option<u64>,
    /// `true` if kernels get no routes over several hops.
    pub no_routes: bool,
}

/// Linux kernels at the nodes of scenarios with `[[program]]` tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernels {
    /// Path of the command `hopline`; other machines have their own.
    #[serde(skip)]
    command: PathBuf,
    options: KernelOptions,
    version: String,
}

/// Order to a process of the command.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// The scenarios of points.
    pub scenarios: Scenarios,
    /// The options.
    pub options: KernelOptions,
    /// Run of point 0 to make; `None`: check that all points can be emulated.
    pub run: Option<u64>,
}

/// Answer of that process.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// All points can be emulated, with a kernel of this version.
    Checked(String),
    /// The run has reached this virtual time, in nanoseconds.
    Reached(u64),
    /// The run has ended.
    Done(Box<CompletedRun>),
    /// The run has failed, for this reason.
    Failed(String),
}

impl Kernels {
    /// Checks that the command `hopline` at `command` can make the runs of `scenarios`, which is not empty.
    ///
    /// # Errors
    ///
    /// If it cannot: there is no kernel or no program, or a scenario cannot be emulated.
    pub fn find(
        command: &Path,
        options: KernelOptions,
        scenarios: &[&Scenario],
        keep: Keep,
    ) -> Result<Self, Problem> {
        let kernels = Self { command: command.to_owned(), options, version: String::new() };
        let version = kernels.check(Scenarios::of(scenarios, keep)).map_err(Problem::new)?;
        Ok(Self { version, ..kernels })
    }

    /// Checks that this machine can make the run of `scenario`, with the same kernel.
    #[cfg(feature = "parquet")]
    pub(crate) fn check_here(&self, scenario: &Scenario, keep: Keep) -> Result<(), String> {
        let ours = self.check(Scenarios::of(&[scenario], keep))?;
        match ours == self.version {
            true => Ok(()),
            false => Err(format!("it has Linux {ours}, and the sweep was begun with {}", self.version)),
        }
    }

    /// Returns the version of the kernel here, if all of `scenarios` can be emulated.
    fn check(&self, scenarios: Scenarios) -> Result<String, String> {
        let mut process = self.ask(scenarios, None)?;
        let reply = process.find(|reply| matches!(reply, Reply::Checked(_) | Reply::Failed(_)));
        let end = process.end();
        match reply {
            Some(Reply::Checked(version)) => Ok(version),
            Some(Reply::Failed(why)) => Err(why),
            _ => Err(end.message),
        }
    }

    /// Sets the path of the command on this machine.
    #[must_use]
    pub fn with_command(self, command: PathBuf) -> Self {
        Self { command, ..self }
    }

    /// Returns the version of the kernel.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns everything on which results depend.
    pub(crate) fn identity(&self) -> String {
        let KernelOptions { syscall_cost_us, no_routes, kernel: _, patience_s: _ } = &self.options;
        format!("kernels {} {syscall_cost_us:?} {no_routes}", self.version)
    }

    /// Makes run `number` of `scenario`.
    pub(super) fn run(
        &self,
        scenario: &Scenario,
        number: u64,
        keep: Keep,
        watch: &dyn Observer,
    ) -> Result<CompletedRun, RunError> {
        let mut process =
            self.ask(Scenarios::of(&[scenario], keep), Some(number)).map_err(RunError::Failed)?;
        let mut reached = Duration::ZERO;
        let mut result = None;
        for reply in process.by_ref() {
            if watch.interrupted() {
                break;
            }
            let now = match reply {
                Reply::Checked(_) => continue,
                Reply::Reached(ns) => Duration::from_nanos(ns),
                Reply::Done(done) => {
                    let end = Duration::from_secs_f64(done.sim_s);
                    watch.advanced(Duration::ZERO, done.events);
                    result = Some(Ok(*done));
                    end
                }
                Reply::Failed(why) => {
                    result = Some(Err(RunError::Failed(why)));
                    continue;
                }
            };
            watch.advanced(now.saturating_sub(reached), 0);
            reached = reached.max(now);
        }
        let end = process.end();
        if watch.interrupted() || end.was_interrupted {
            return Err(RunError::Interrupted);
        }
        result.unwrap_or(Err(RunError::Failed(end.message)))
    }

    /// Starts a process, and asks it.
    fn ask(&self, scenarios: Scenarios, run: Option<u64>) -> Result<Process, String> {
        let request = Request { scenarios, options: self.options.clone(), run };
        let failed = |error: io::Error| format!("{} cannot be started: {error}", self.command.display());
        Process::start(&self.command, &request).map_err(failed)
    }
}

/// A process of the command, as the replies that it writes.
struct Process {
    child: Child,
    replies: io::Lines<BufReader<std::process::ChildStdout>>,
}

/// End of a process.
struct End {
    was_interrupted: bool,
    /// Its message of an error.
    message: String,
}

impl Process {
    fn start(command: &Path, request: &Request) -> io::Result<Self> {
        let mut child = Command::new(command)
            .arg(SUBCOMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .env("NO_COLOR", "1")
            .spawn()?;
        let request = serde_json::to_vec(request).expect("a request is made of strings and numbers");
        // A process that ends before it has read says why.
        let _ = child.stdin.take().expect("it is piped").write_all(&request);
        let replies = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        Ok(Self { child, replies })
    }

    /// Waits for the end of the process, which no longer can write.
    fn end(self) -> End {
        let Self { mut child, replies } = self;
        drop(replies);
        let mut errors = String::new();
        let mut stream = child.stderr.take().expect("it is piped");
        let _ = stream.read_to_string(&mut errors);
        let status = child.wait();
        let message = errors.trim().trim_start_matches("× ").to_owned();
        match status {
            Ok(status) => End {
                was_interrupted: status.code() == Some(INTERRUPTED),
                message: if message.is_empty() {
                    format!("the emulation ended with {status}")
                } else {
                    message
                },
            },
            Err(error) => End { was_interrupted: false, message: format!("{error}: {message}") },
        }
    }
}

impl Iterator for Process {
    type Item = Reply;

    fn next(&mut self) -> Option<Reply> {
        let line = self.replies.next()?.ok()?;
        let unknown = |error| Reply::Failed(format!("the command gave no reply of a sweep: {error}: {line}"));
        Some(serde_json::from_str(&line).unwrap_or_else(unknown))
    }
}
