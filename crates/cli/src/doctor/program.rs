//! Programs that hopline and its tests use.

use super::finding::{Availability, Finding, State};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// Time limit of a program that prints its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between checks of whether it has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Most bytes that are read of its output.
const MAX_OUTPUT: u64 = 1 << 20;

/// Program, and how to query its version.
struct Program {
    what: &'static str,
    /// Possible names.
    names: &'static [&'static str],
    arguments: &'static [&'static str],
    /// Standard input of the program.
    input: &'static str,
    purpose: &'static str,
    remedy: &'static str,
}

const PROGRAMS: &[Program] = &[
    Program {
        what: "ns-2",
        names: &["ns"],
        arguments: &["-"],
        input: "puts [ns-version]\nexit 0\n",
        purpose: "runs the same networks beside hopline: make versus-ns2",
        remedy: "apt-get install ns2",
    },
    Program {
        what: "tshark",
        names: &["tshark"],
        arguments: &["--version"],
        input: "",
        purpose: "reads captures (run --pcap); some tests check them with it",
        remedy: "apt-get install tshark",
    },
    Program {
        what: "Chromium",
        names: &["chromium", "chromium-browser", "google-chrome"],
        arguments: &["--version"],
        input: "",
        purpose: "shows reports, as any browser does; tests take screenshots with it",
        remedy: "apt-get install chromium",
    },
    Program {
        what: "iproute2",
        names: &["ip"],
        arguments: &["-V"],
        input: "",
        purpose: "routes that lead connections to hopline proxy; tests",
        remedy: "apt-get install iproute2",
    },
    Program {
        what: "iptables",
        names: &["iptables"],
        arguments: &["--version"],
        input: "",
        purpose: "leads packets to the machines of hopline proxy, and to tests",
        remedy: "apt-get install iptables",
    },
    Program {
        what: "nftables",
        names: &["nft"],
        arguments: &["--version"],
        input: "",
        purpose: "leads connections to hopline proxy, where they are split or go through a gateway",
        remedy: "apt-get install nftables",
    },
];

/// Returns the findings about installed programs.
pub(super) fn findings() -> Vec<Finding> {
    let finding = |p: &Program| Finding::new(p.what, check(p), p.purpose, p.remedy);
    PROGRAMS.iter().map(finding).collect()
}

fn check(program: &Program) -> Availability {
    let answers = program.names.iter().map(|name| run_program(name, program.arguments, program.input));
    let mut last = ProgramResult::NotFound;
    for answer in answers {
        match answer {
            ProgramResult::Text(status, text) if status.success() => {
                return (State::Present, first_line(&text));
            }
            ProgramResult::NotFound => {}
            other => last = other,
        }
    }
    match last {
        ProgramResult::TimedOut => (State::Unknown, format!("no answer in {} s", VERSION_TIMEOUT.as_secs())),
        ProgramResult::Text(status, _) => (State::Unknown, format!("it fails: {status}")),
        ProgramResult::NotFound => (State::Missing, "not found".into()),
    }
}

/// Returns the first line with a number.
fn first_line(text: &str) -> String {
    let says = |line: &&str| line.chars().any(char::is_numeric);
    text.lines().map(str::trim).find(says).unwrap_or("there, but it does not say its version").to_owned()
}

/// Result of running a program.
#[derive(Debug, PartialEq)]
pub(super) enum ProgramResult {
    /// Exit status and output.
    Text(ExitStatus, String),
    /// It exceeded the time limit, and was killed.
    TimedOut,
    /// It cannot be run.
    NotFound,
}

/// Runs `name` without a terminal, and waits for a few seconds at most.
pub(super) fn run_program(name: &str, arguments: &[&str], input: &str) -> ProgramResult {
    run_program_within(VERSION_TIMEOUT, name, arguments, input).unwrap_or(ProgramResult::NotFound)
}

fn run_program_within(
    patience: Duration,
    name: &str,
    arguments: &[&str],
    input: &str,
) -> std::io::Result<ProgramResult> {
    // Files instead of pipes: a child that the program leaves running could hold a pipe open for ever.
    let mut given = tempfile::tempfile()?;
    given.write_all(input.as_bytes())?;
    given.rewind()?;
    let printed = tempfile::tempfile()?;
    let mut child = Command::new(name)
        .args(arguments)
        .stdin(Stdio::from(given))
        .stdout(Stdio::from(printed.try_clone()?))
        .stderr(Stdio::null())
        .spawn()?;
    let looks = patience.as_millis() / POLL_INTERVAL.as_millis();
    for _ in 0..looks {
        if let Some(status) = child.try_wait()? {
            return Ok(ProgramResult::Text(status, read_output(printed)?));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    child.kill()?;
    child.wait()?;
    Ok(ProgramResult::TimedOut)
}

fn read_output(mut printed: File) -> std::io::Result<String> {
    printed.rewind()?;
    let mut bytes = Vec::new();
    printed.take(MAX_OUTPUT).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_reads_its_input_and_prints_its_version() {
        let ProgramResult::Text(status, text) = run_program("sh", &["-c", "cat; echo; echo v 2"], "v 1")
        else {
            panic!("sh is there")
        };
        assert!(status.success());
        assert_eq!(text, "v 1\nv 2\n");
        assert_eq!(first_line(&text), "v 1");
    }

    #[test]
    fn a_program_that_does_not_end_is_killed() {
        let answer = run_program_within(POLL_INTERVAL * 5, "sh", &["-c", "exec sleep 1000"], "").unwrap();
        assert_eq!(answer, ProgramResult::TimedOut);
    }

    #[test]
    fn a_missing_program_is_not_found() {
        assert_eq!(run_program("no-such-program-of-that-name", &[], ""), ProgramResult::NotFound);
    }

    #[test]
    fn endless_output_is_truncated() {
        let command = format!("head -c {} /dev/zero | tr '\\0' 7", 4 * MAX_OUTPUT);
        let ProgramResult::Text(_, text) = run_program("sh", &["-c", &command], "") else {
            panic!("sh is there")
        };
        assert_eq!(text.len() as u64, MAX_OUTPUT);
    }

    #[test]
    fn lines_without_a_number_contain_no_version() {
        assert_eq!(first_line("Running as root.\n\nTShark 4.0.17\n"), "TShark 4.0.17");
        assert_eq!(first_line(""), "there, but it does not say its version");
    }
}
