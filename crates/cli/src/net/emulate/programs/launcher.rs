//! Start of a program at a node.

use crate::net::emulate::directory::Directory as Nodes;
use crate::net::prefixed_output::PrefixedOutput;
use hopline_lab::output::Directory;
use hopline_scenario::Program;
use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{self, Child, Command, Stdio};

/// Starts programs at nodes.
pub(super) struct Launcher<'a> {
    /// Words in front of the name of a node: `hopline exec`.
    pub(super) words: Vec<OsString>,
    pub(super) nodes: &'a Nodes,
    /// Place of their output; `None`: stderr.
    pub(super) results: Option<&'a Directory>,
}

impl<'a> Launcher<'a> {
    /// Starts programs by `hopline exec`. Their output goes into `results`, or else to stderr.
    pub(super) fn new(nodes: &'a Nodes, results: Option<&'a Directory>) -> Self {
        let own = env::current_exe().unwrap_or_else(|_| "hopline".into());
        Self { words: vec![own.into(), "exec".into()], nodes, results }
    }

    /// Returns the process of a program and its output, if that goes to stderr; or the reason that it cannot be started.
    pub(super) fn start(
        &self,
        program: &Program,
        node: &str,
    ) -> Result<(Child, Option<PrefixedOutput>), String> {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).arg(node);
        // It asks for that itself: a command that does more than start a program is forked with all memory of this process.
        command.args(["--end-with", &process::id().to_string(), "--"]).args(&program.command);
        // A group of its own: Ctrl-C at a terminal does not reach it, and it is stopped with what it has started.
        command.process_group(0);
        self.nodes.set_environment(&mut command);
        let output = match self.results {
            Some(directory) => {
                let file = |kind: &str| -> Result<File, String> {
                    let file = directory.file(&format!("{}.{kind}", program.name));
                    let file = file.map_err(|error| error.to_string())?;
                    file.into_inner().map_err(|error| error.to_string())
                };
                command.stdin(Stdio::null()).stdout(file("stdout")?).stderr(file("stderr")?);
                None
            }
            None => Some(PrefixedOutput::of(&program.name, &mut command).map_err(|error| error.to_string())?),
        };
        Ok((command.spawn().map_err(|error| error.to_string())?, output))
    }
}
