//! Programs of `[[program]]`: start, end and output.

use super::directory::Directory as Nodes;
use super::search_path;
use crate::net::children::{KILL_DELAY, terminate_group};
use crate::net::clock;
use crate::net::prefixed_output::PrefixedOutput;
use crate::problems::{Failure, print_error_line};
use hopline_config::source::Problem;
use hopline_core::Instant as VirtualInstant;
use hopline_lab::Spec;
use hopline_lab::output::Directory;
use hopline_linux::netns;
use hopline_scenario::Program;
use rustix::process::Signal;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, io};

/// Interval between checks of whether stopped programs have ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Longest part of a program's last line that an error shows, bytes.
const MAX_SHOWN: usize = 300;

/// All programs of an emulation, in the order of the file.
pub(super) struct Programs<'a> {
    all: Vec<RunningProgram>,
    nodes: &'a Nodes,
    results: Option<&'a Directory>,
    /// Start of the emulation.
    since: Instant,
}

struct RunningProgram {
    program: Program,
    /// Name of its node.
    node: String,
    state: State,
    started: Option<Duration>,
    output: Option<PrefixedOutput>,
}

#[derive(Debug)]
enum State {
    Waiting,
    Running(Child),
    /// It was sent SIGTERM, at this time.
    Stopping(Child, Duration),
    Ended(Duration, End),
}

/// End of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// By itself.
    Exited(ExitStatus),
    /// At its time, or at the end of the emulation.
    Stopped(ExitStatus),
    /// The emulation ended before its time to start.
    NotStarted,
}

/// Result of a program.
#[derive(Debug)]
pub(super) struct ProgramResult {
    pub(super) program: Program,
    pub(super) node: String,
    /// Times since the start of the emulation.
    pub(super) started: Option<Duration>,
    pub(super) ended: Option<Duration>,
    pub(super) end: End,
}

impl ProgramResult {
    /// Returns whether it has ended by itself without success.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.end, End::Exited(status) if !status.success())
    }

    /// Returns the line of the summary.
    pub(super) fn line(&self) -> String {
        let lasted = self.started.zip(self.ended).map(|(from, to)| (to - from).as_secs_f64());
        let after = lasted.map(|s| format!(" after {s:.1} s")).unwrap_or_default();
        let how = match self.end {
            End::Exited(status) => how(status),
            End::Stopped(_) => "stopped".into(),
            End::NotStarted => format!("not started: its time is {} s", seconds(self.program.start)),
        };
        format!("program {} at {}: {how}{after}", self.program.name, self.node)
    }
}

/// Checks that all programs exist.
pub(super) fn check(programs: &[Program]) -> Result<(), Problem> {
    programs.iter().find(|program| find_program(&program.command[0]).is_none()).map_or(Ok(()), |program| {
        let word = &program.command[0];
        let problem = Problem::new(format!("there is no program `{word}`")).at(&program.origin);
        Err(problem.help(if word.contains(char::is_whitespace) {
            "each argument is a string of its own: [\"iperf3\", \"-s\"]; a shell takes a line: [\"sh\", \"-c\", \"…\"]"
        } else if word.contains('/') {
            "a path is relative to the current directory; the file must be executable"
        } else {
            "it is searched for in PATH: install it, or give its path"
        }))
    })
}

/// Returns the path of a program.
pub(super) fn find_program(word: &str) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    if word.contains('/') {
        return Some(PathBuf::from(word)).filter(is_program);
    }
    let path = search_path().or_else(|| env::var_os("PATH")).unwrap_or_default();
    env::split_paths(&path).map(|folder| folder.join(word)).find(is_program)
}

impl<'a> Programs<'a> {
    /// Prepares to run `programs` from now on. Their output goes into `results`, or else to stderr.
    pub(super) fn new(
        programs: Vec<Program>,
        spec: &Spec,
        nodes: &'a Nodes,
        results: Option<&'a Directory>,
    ) -> Self {
        let prepare = |program: Program| RunningProgram {
            node: spec.nodes[program.node.index()].name.clone(),
            program,
            state: State::Waiting,
            started: None,
            output: None,
        };
        Self { all: programs.into_iter().map(prepare).collect(), nodes, results, since: clock::now() }
    }

    /// Starts and stops the programs that are due, and reports failures.
    pub(super) fn poll(&mut self) -> Result<(), Failure> {
        let now = self.since.elapsed();
        for one in &mut self.all {
            one.poll(now, self.nodes, self.results)?;
        }
        Ok(())
    }

    /// Stops all, and returns the result of each.
    pub(super) fn finish(mut self) -> Result<Vec<ProgramResult>, Failure> {
        self.poll()?;
        let ending = self.since.elapsed();
        loop {
            let now = self.since.elapsed();
            for one in &mut self.all {
                one.stop(now)?;
            }
            let is_over =
                |one: &RunningProgram| !matches!(one.state, State::Stopping(..) | State::Running(_));
            // Those that cannot even be killed are not waited for.
            if self.all.iter().all(is_over) || now > ending + 2 * KILL_DELAY {
                break;
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(self.all.into_iter().map(RunningProgram::into_result).collect())
    }
}

impl RunningProgram {
    fn poll(&mut self, now: Duration, nodes: &Nodes, results: Option<&Directory>) -> Result<(), Failure> {
        let is_due = |at: VirtualInstant| now.as_nanos() >= u128::from(at.as_nanos());
        match &mut self.state {
            State::Waiting if is_due(self.program.start) => {
                let child = self.start(nodes, results)?;
                (self.started, self.state) = (Some(now), State::Running(child));
            }
            State::Running(child) => {
                if let Some(status) = child.try_wait().map_err(failed)? {
                    self.state = State::Ended(now, End::Exited(status));
                    if !status.success() {
                        self.report(now, status, results);
                    }
                } else if self.program.stop.is_some_and(is_due) {
                    self.stop(now)?;
                }
            }
            State::Stopping(..) => self.stop(now)?,
            State::Waiting | State::Ended(..) => {}
        }
        Ok(())
    }

    /// Stops it, unless it has ended: SIGTERM, later SIGKILL to it and to what it has started.
    fn stop(&mut self, now: Duration) -> Result<(), Failure> {
        self.state = match std::mem::replace(&mut self.state, State::Waiting) {
            State::Running(child) => {
                terminate_group(child.id(), Signal::TERM);
                State::Stopping(child, now)
            }
            State::Stopping(mut child, since) => match child.try_wait().map_err(failed)? {
                Some(status) => State::Ended(now, End::Stopped(status)),
                None => {
                    if now > since + KILL_DELAY {
                        terminate_group(child.id(), Signal::KILL);
                    }
                    State::Stopping(child, since)
                }
            },
            other @ (State::Waiting | State::Ended(..)) => other,
        };
        Ok(())
    }

    fn start(&mut self, nodes: &Nodes, results: Option<&Directory>) -> Result<Child, Failure> {
        let own = env::current_exe().map_err(failed)?;
        let mut command = Command::new(own);
        // A group of its own: Ctrl-C at a terminal does not reach it, and it is stopped with what it has started.
        command.args(["exec", &self.node, "--"]).args(&self.program.command).process_group(0);
        nodes.set_environment(&mut command);
        match results {
            Some(directory) => {
                let file = |kind: &str| -> Result<File, Failure> {
                    let file = directory.file(&format!("{}.{kind}", self.program.name))?;
                    file.into_inner().map_err(|e| failed(e.into_error()))
                };
                command.stdin(Stdio::null()).stdout(file("stdout")?).stderr(file("stderr")?);
            }
            None => self.output = Some(PrefixedOutput::of(&self.program.name, &mut command)?),
        }
        netns::spawn_here(command).map_err(failed)
    }

    fn report(&self, now: Duration, status: ExitStatus, results: Option<&Directory>) {
        let after = (now - self.started.unwrap_or(now)).as_secs_f64();
        let words = results.and_then(|directory| {
            last_line(&directory.draft().join(format!("{}.stderr", self.program.name)))
        });
        print_error_line(&failure(&self.program, &self.node, after, status, words));
    }

    fn into_result(self) -> ProgramResult {
        if let Some(output) = self.output {
            output.end();
        }
        let (ended, end) = match self.state {
            State::Ended(at, end) => (Some(at), end),
            // It cannot even be killed.
            State::Running(_) | State::Stopping(..) => (None, End::Stopped(ExitStatus::from_raw(9))),
            State::Waiting => (None, End::NotStarted),
        };
        ProgramResult { program: self.program, node: self.node, started: self.started, ended, end }
    }
}

/// Returns the line about a program that has failed. `words`: the last ones that it said.
pub(super) fn failure(
    program: &Program,
    node: &str,
    after_s: f64,
    status: ExitStatus,
    words: Option<String>,
) -> String {
    let words = words.map(|words| format!(": {words}")).unwrap_or_default();
    format!(
        "error: program {} at {node} ended after {after_s:.1} s with {}{words}",
        program.name,
        how(status)
    )
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, signal) => format!("signal {}", signal.unwrap_or(0)),
    }
}

fn seconds(at: VirtualInstant) -> f64 {
    at.as_secs_f64()
}

/// Returns the last line of a file that is not empty.
pub(super) fn last_line(path: &Path) -> Option<String> {
    let text = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&text[text.len().saturating_sub(64 * 1024)..]).into_owned();
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line[..line.floor_char_boundary(MAX_SHOWN)].to_owned())
}

fn failed(error: io::Error) -> Failure {
    Failure::Other(format!("running a program: {error}"))
}
