//! Programs of `[[program]]`: start, end and output.

mod launcher;

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
use hopline_scenario::Program;
use launcher::Launcher;
use rustix::process::Signal;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, io};

/// Interval between checks of whether stopped programs have ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time for which one call starts programs, before running programs are watched again.
const START_SLICE: Duration = Duration::from_millis(50);
/// Delay of a start of which a warning tells.
const LATE: Duration = Duration::from_millis(500);
/// Longest part of a program's last line that an error shows, bytes.
const MAX_SHOWN: usize = 300;

/// End of a file in which its last line is searched for, bytes.
const MAX_SEARCHED: u64 = 64 * 1024;

/// All programs of an emulation, in the order of the file.
pub(super) struct Programs<'a> {
    all: Vec<RunningProgram>,
    /// Indices of those that wait for their time, the earliest first.
    waiting: VecDeque<usize>,
    launcher: Launcher<'a>,
    /// Start of the emulation.
    since: Instant,
}

/// Programs that were stopped. Processes that they have started may still run.
pub(super) struct StoppedPrograms {
    all: Vec<RunningProgram>,
    /// Time at which the first was stopped.
    ending: Duration,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// By itself.
    Exited(ExitStatus),
    /// At its time, or at the end of the emulation.
    Stopped(ExitStatus),
    /// The emulation ended before its time to start.
    NotStarted,
    /// It could not be started, for this reason.
    CannotStart(String),
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
    /// Returns whether it has ended by itself without success, or could not be started.
    pub(super) fn has_failed(&self) -> bool {
        match &self.end {
            End::Exited(status) => !status.success(),
            End::CannotStart(_) => true,
            End::Stopped(_) | End::NotStarted => false,
        }
    }

    /// Returns the line of the summary.
    pub(super) fn line(&self) -> String {
        let lasted = self.started.zip(self.ended).map(|(from, to)| (to - from).as_secs_f64());
        let after = lasted.map(|s| format!(" after {s:.1} s")).unwrap_or_default();
        let how = match &self.end {
            End::Exited(status) => how(*status),
            End::CannotStart(reason) => format!("not started: {reason}"),
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
        Self::with_launcher(programs, spec, Launcher::new(nodes, results))
    }

    fn with_launcher(programs: Vec<Program>, spec: &Spec, launcher: Launcher<'a>) -> Self {
        let prepare = |program: Program| RunningProgram {
            node: spec.nodes[program.node.index()].name.clone(),
            program,
            state: State::Waiting,
            started: None,
            output: None,
        };
        let all: Vec<_> = programs.into_iter().map(prepare).collect();
        let mut waiting: Vec<usize> = (0..all.len()).collect();
        waiting.sort_by_key(|&index| all[index].program.start);
        Self { all, waiting: waiting.into(), launcher, since: clock::now() }
    }

    /// Starts and stops the programs that are due, and reports failures. Programs of which many are due at once start in
    /// several calls.
    pub(super) fn poll(&mut self) -> Result<(), Failure> {
        let began = self.since.elapsed();
        for one in &mut self.all {
            one.poll(began, self.launcher.results)?;
        }
        let mut now = began;
        while now < began + START_SLICE
            && let Some(&next) = self.waiting.front()
            && is_due(self.all[next].program.start, now)
        {
            self.waiting.pop_front();
            self.all[next].start(now, &self.launcher);
            now = self.since.elapsed();
        }
        Ok(())
    }

    /// Stops all.
    pub(super) fn stop(mut self) -> Result<StoppedPrograms, Failure> {
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
        Ok(StoppedPrograms { all: self.all, ending })
    }
}

impl StoppedPrograms {
    /// Waits until all output has been passed on, once no process is left that could write, and returns the result of each.
    pub(super) fn into_results(mut self) -> Vec<ProgramResult> {
        let outputs: Vec<_> = self.all.iter_mut().filter_map(|one| one.output.take()).collect();
        PrefixedOutput::end_all(&outputs);
        let results: Vec<_> = self.all.into_iter().map(|one| one.into_result(self.ending)).collect();
        if let Some(warning) = warning_of_late_starts(&results) {
            print_error_line(&warning);
        }
        results
    }
}

/// Returns whether the time `at` of the emulation has come.
fn is_due(at: VirtualInstant, now: Duration) -> bool {
    now >= since_start(at)
}

fn since_start(at: VirtualInstant) -> Duration {
    Duration::from_nanos(at.as_nanos())
}

/// Returns a warning if programs have started late.
fn warning_of_late_starts(results: &[ProgramResult]) -> Option<String> {
    let delay = |result: &ProgramResult| {
        result.started.unwrap_or_default().saturating_sub(since_start(result.program.start))
    };
    let late = || results.iter().filter(|result| delay(result) > LATE);
    let latest = late().max_by_key(|result| delay(result))?;
    let further = match late().count() - 1 {
        0 => String::new(),
        1 => ", and another one less late".into(),
        count => format!(", and {count} others less late"),
    };
    let late_s = delay(latest).as_secs_f64();
    Some(format!("warning: program {} started {late_s:.1} s late{further}", latest.program.name))
}

impl RunningProgram {
    fn poll(&mut self, now: Duration, results: Option<&Directory>) -> Result<(), Failure> {
        match &mut self.state {
            State::Running(child) => {
                if let Some(status) = child.try_wait().map_err(failed)? {
                    self.state = State::Ended(now, End::Exited(status));
                    if !status.success() {
                        self.report(now, status, results);
                    }
                } else if self.program.stop.is_some_and(|stop| is_due(stop, now)) {
                    self.stop(now)?;
                }
            }
            State::Stopping(..) => self.stop(now)?,
            State::Waiting | State::Ended(..) => {}
        }
        Ok(())
    }

    /// Starts it, or reports that this is impossible.
    fn start(&mut self, now: Duration, launcher: &Launcher<'_>) {
        match launcher.start(&self.program, &self.node) {
            Ok((child, output)) => {
                (self.started, self.state, self.output) = (Some(now), State::Running(child), output);
            }
            Err(reason) => {
                let (name, node) = (&self.program.name, &self.node);
                print_error_line(&format!("error: program {name} at {node} cannot be started: {reason}"));
                self.state = State::Ended(now, End::CannotStart(reason));
            }
        }
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

    fn report(&self, now: Duration, status: ExitStatus, results: Option<&Directory>) {
        let after = (now - self.started.unwrap_or(now)).as_secs_f64();
        let words = results.and_then(|directory| {
            last_line(&directory.draft().join(format!("{}.stderr", self.program.name)))
        });
        print_error_line(&failure(&self.program, &self.node, after, status, words));
    }

    /// Returns the result; programs were stopped at `ending`.
    fn into_result(self, ending: Duration) -> ProgramResult {
        let (ended, end) = match self.state {
            State::Ended(_, end @ End::CannotStart(_)) => (None, end),
            State::Ended(at, end) => (Some(at), end),
            // It cannot even be killed.
            State::Running(_) | State::Stopping(..) => (None, End::Stopped(ExitStatus::from_raw(9))),
            State::Waiting if is_due(self.program.start, ending.saturating_sub(LATE)) => {
                (None, End::CannotStart("it took too long to start the programs before it".into()))
            }
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

/// Returns the last line of a file that is not empty, if it is near the end.
pub(super) fn last_line(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let len = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(MAX_SEARCHED))).ok()?;
    let mut text = Vec::new();
    // It may grow meanwhile.
    file.take(MAX_SEARCHED).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line[..line.floor_char_boundary(MAX_SHOWN)].to_owned())
}

fn failed(error: io::Error) -> Failure {
    Failure::Other(format!("running a program: {error}"))
}

#[cfg(test)]
mod tests;
