//! Folder in which the examples of a page are run, one after the other.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Result of a command.
pub(crate) struct CommandResult {
    pub(crate) succeeded: bool,
    /// Standard output; if it fails, followed by standard error.
    pub(crate) text: String,
}

/// Temporary folder with the content of the repository's root that examples read.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for shared in ["scenarios", "papers", "docs"] {
            std::os::unix::fs::symlink(crate::docs::root().join(shared), folder.path().join(shared)).unwrap();
        }
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs `command` in the shell; `hopline` is the one under test.
    pub(crate) fn sh(&self, command: &str) -> CommandResult {
        let mut shell = Command::new("sh");
        shell.args(["-euc", command]);
        self.run(&mut shell)
    }

    pub(crate) fn run(&self, command: &mut Command) -> CommandResult {
        let hopline = Path::new(env!("CARGO_BIN_EXE_hopline")).parent().unwrap();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(hopline.to_owned()).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(paths).unwrap());
        command.env("NO_COLOR", "1").env("MPLBACKEND", "Agg").env("COLUMNS", "200");
        // Keys are made there, and not among those of the user.
        command.env("XDG_CONFIG_HOME", self.path().join(".config"));
        let Output { status, stdout, stderr } =
            command.current_dir(self.path()).stdin(Stdio::null()).output().unwrap();
        let mut text = String::from_utf8_lossy(&stdout).into_owned();
        if !status.success() {
            text.push_str(&String::from_utf8_lossy(&stderr));
        }
        CommandResult { succeeded: status.success(), text }
    }
}
