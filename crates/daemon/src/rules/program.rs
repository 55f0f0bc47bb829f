//! Programs that change the rules of the kernel.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::process::{Command, Stdio};

/// Program, and its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Program {
    pub(super) name: String,
    pub(super) arguments: Vec<String>,
    /// Standard input.
    pub(super) input: String,
}

/// Reason why a rule was not made.
#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    /// A program is missing.
    #[error("there is no program `{0}`: on Debian, apt-get install {1}")]
    Absent(String, &'static str),
    /// A program could not be started, or its input could not be written.
    #[error("running `{0}`: {1}")]
    Failed(String, io::Error),
    /// A program failed.
    #[error("`{program}` refuses: {why}")]
    Refused {
        /// Command line.
        program: String,
        /// Its error message.
        why: String,
    },
    /// An object of this name exists, and the daemon has not made it.
    #[error(
        "{what} is there already, and this daemon did not make it: give the daemon {instead}, or remove it"
    )]
    Conflict {
        /// Existing object.
        what: String,
        /// Advice on a valid setting.
        instead: &'static str,
    },
    /// The journal cannot be written or read.
    #[error("the list of rules {0}: {1}")]
    Journal(String, io::Error),
}

impl Program {
    /// Returns the program `name` with these arguments.
    pub(crate) fn new(name: &str, arguments: &str) -> Self {
        Self {
            name: name.to_owned(),
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
            input: String::new(),
        }
    }

    /// Returns the program with the standard input `input`.
    pub(super) fn with_input(self, input: String) -> Self {
        Self { input, ..self }
    }

    /// Runs the program, and returns its output.
    pub(crate) fn run(&self) -> Result<String, RuleError> {
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::NotFound => RuleError::Absent(self.name.clone(), self.package()),
            _ => RuleError::Failed(self.name.clone(), error),
        };
        let mut child = Command::new(&self.name)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let mut stdin = child.stdin.take().expect("asked for above");
        // A program that does not read its input reports the reason below.
        let _ = stdin.write_all(self.input.as_bytes());
        drop(stdin);
        let output = child.wait_with_output().map_err(failed)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let why = said.lines().map(str::trim).find(|line| !line.is_empty());
        Err(RuleError::Refused {
            program: self.line(),
            why: why.map_or_else(|| output.status.to_string(), str::to_owned),
        })
    }

    /// Returns the Debian package of the program.
    fn package(&self) -> &'static str {
        match self.name.as_str() {
            "nft" => "nftables",
            "ip" | "tc" => "iproute2",
            _ => "iptables",
        }
    }

    fn line(&self) -> String {
        std::iter::once(&self.name).chain(&self.arguments).map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line())?;
        if !self.input.is_empty() {
            write!(f, " <<'END'\n{}END", self.input)?;
        }
        Ok(())
    }
}
