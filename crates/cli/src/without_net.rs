//! Stand-ins for the commands that use real sockets, in a build without the feature `net`.

use crate::problems::Failure;
use clap::{Args, Subcommand};
use hopline_config::json_schema::FileKind;
use hopline_lab::{Plan, Problem};
use std::ffi::OsString;
use std::process::ExitCode;

/// Names of the kinds of file that only these commands read.
pub(crate) const FILE_KINDS: [&str; 1] = ["proxy"];

/// Command that uses real sockets. This build has none of them.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send files over lossy links (not in this build: `make build`)
    Send(IgnoredArguments),
    /// Receive files (not in this build: `make build`)
    Recv(IgnoredArguments),
    /// Measure a path with TPA, TCP or UDP (not in this build: `make build`)
    Bench(IgnoredArguments),
    /// Run a command over an emulated link (not in this build: `make build`)
    Link(IgnoredArguments),
    /// Run programs over simulated radios (not in this build: `make build`)
    Emulate(IgnoredArguments),
    /// Run a command at a node of `hopline emulate` (not in this build: `make build`)
    Exec(IgnoredArguments),
    /// Run proxies and gateways on a router (not in this build: `make build`)
    Proxy(IgnoredArguments),
    /// Run a TCP host stack (not in this build: `make build`)
    Tcp(IgnoredArguments),
    /// Create and show keys (not in this build: `make build`)
    Key(IgnoredArguments),
}

/// Arguments of an absent command, options and `--help` among them.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct IgnoredArguments {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _arguments: Vec<OsString>,
}

/// Options of a sweep over Linux kernels. This build has none of them.
#[derive(Debug, Args)]
pub(crate) struct SweepOverKernels {
    /// Run a Linux kernel at each node (not in this build: `make build`)
    #[arg(long)]
    virtual_time: bool,
}

impl SweepOverKernels {
    /// Returns whether runs over Linux kernels are asked for.
    pub(crate) fn virtual_time(&self) -> bool {
        self.virtual_time
    }
}

/// Returns `plan`.
///
/// # Errors
/// If runs over Linux kernels are asked for: this build makes none.
pub(crate) fn with_kernels(plan: Plan, over: &SweepOverKernels) -> Result<Plan, Failure> {
    if over.virtual_time { Err(absent("`--virtual-time`")) } else { Ok(plan) }
}

/// Returns the kind of file called `name`.
///
/// # Errors
/// Always: this build reads none of them.
pub(crate) fn file_kind(name: &str) -> Result<FileKind, Failure> {
    Err(absent(&format!("the schema of {name} files")))
}

/// Executes a command.
///
/// # Errors
/// Always: this build has none of them.
pub(crate) fn execute(command: &Command) -> Result<ExitCode, Failure> {
    let name = match command {
        Command::Send(_) => "send",
        Command::Recv(_) => "recv",
        Command::Bench(_) => "bench",
        Command::Link(_) => "link",
        Command::Emulate(_) => "emulate",
        Command::Exec(_) => "exec",
        Command::Proxy(_) => "proxy",
        Command::Tcp(_) => "tcp",
        Command::Key(_) => "key",
    };
    Err(absent(&format!("`hopline {name}`")))
}

fn absent(what: &str) -> Failure {
    Problem::new(format!("{what} is not in this build, which was made without real sockets"))
        .help("`make build`, `cargo install --locked --path crates/cli` and every package make or bring a hopline with all commands")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(subcommand)]
        command: Command,
    }

    fn answer(line: &str) -> String {
        let line = Line::try_parse_from(line.split(' ')).expect("any arguments are taken");
        match execute(&line.command) {
            Err(Failure::Input(problems)) => format!("{:?}", problems.0),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_absent_command_names_the_builds_that_have_it_whatever_its_arguments() {
        for (line, name) in [
            ("hopline send", "send"),
            ("hopline recv -o incoming --quota 10G", "recv"),
            ("hopline bench --help", "bench"),
            ("hopline link --loss 5% -- ping -c 1 10.80.0.2", "link"),
            ("hopline emulate chain.toml -- ./test.sh", "emulate"),
            ("hopline exec n0 -- ping -c 1 10.0.0.2", "exec"),
            ("hopline proxy run proxy.toml", "proxy"),
            ("hopline key new", "key"),
        ] {
            let answer = answer(line);
            assert!(answer.contains(&format!("`hopline {name}` is not in this build")), "{answer}");
            assert!(answer.contains("make build"), "{answer}");
        }
    }

    #[test]
    fn a_sweep_over_kernels_names_the_builds_that_have_it() {
        let text = "duration_s = 1\nradio.preset = \"ns2-wavelan\"\nnodes = { layout = \"chain\", count = 2, spacing_m = 9 }\nflow = [{ src = \"n0\", dst = \"n1\" }]";
        let source = hopline_config::source::Source { name: "a.toml".into(), text: text.into() };
        let scenario =
            hopline_lab::Scenario::parse(source.into(), std::path::PathBuf::new(), &[]).expect("valid");
        let plan = || Plan::new(&scenario, &[]).expect("valid");
        with_kernels(plan(), &SweepOverKernels { virtual_time: false }).expect("nothing is absent");
        let over = SweepOverKernels { virtual_time: true };
        assert!(over.virtual_time());
        let refused = with_kernels(plan(), &over);
        let Err(Failure::Input(problems)) = refused else { panic!("{refused:?}") };
        assert!(problems.0[0].message.starts_with("`--virtual-time` is not in this build"));
    }

    #[test]
    fn the_schema_of_an_absent_kind_of_file_names_the_builds_that_have_it() {
        let Err(Failure::Input(problems)) = file_kind(FILE_KINDS[0]) else { panic!("it is absent") };
        assert!(problems.0[0].message.starts_with("the schema of proxy files is not in this build"));
    }
}
