//! `hopline emulate` and `hopline exec`.

mod directory;
mod summary;

use super::children::Children;
use super::main_command::{await_end, exit_code};
use crate::commands;
use crate::console;
use crate::net::args::{Emulate as Args, Exec as ExecArgs};
use crate::problems::{Failure, print_error_line};
use directory::{Directory, Entry};
use hopline_config::source::{Problem, nearest};
use hopline_emulate::{Emulation, KernelRoutes, MAX_NODES};
use hopline_lab::Spec;
use hopline_linux::{Namespace, netns};
use std::env;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Advice if namespaces can be created but interfaces cannot.
const TUN_HELP: &str = "run it as root, or let its user open /dev/net/tun: `modprobe tun`, `chmod 666 /dev/net/tun`; a container needs \
                        --device /dev/net/tun";

/// Runs a command beside emulated nodes, and returns its exit code.
pub(crate) fn execute(args: &Args) -> Result<ExitCode, Failure> {
    let scenario = commands::load_network(&args.given)?;
    let spec = scenario.spec(args.run)?;
    check(&spec)?;
    netns::enter_user_namespace().map_err(|e| Problem::new(e.to_string()))?;
    let routes = match args.no_routes || spec.routing.has_agents() {
        true => KernelRoutes::Neighbours,
        false => KernelRoutes::Shortest,
    };
    let emulation = Emulation::start(&spec, args.run, routes).map_err(|e| match e.is_unavailable() {
        true => Problem::new(e.to_string()).help(TUN_HELP).into(),
        false => Failure::Other(e.to_string()),
    })?;
    let directory = Directory::publish(&emulation).map_err(|e| Failure::Other(e.to_string()))?;
    // Ctrl-C at a terminal also reaches the command, which gets time to end.
    console::catch_interrupts()?;
    let children = Children::adopt();
    let mut command = main_command(args);
    directory.set_environment(&mut command);
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = netns::spawn_here(command).map_err(|e| cannot_start(&program, &e))?;
    let mut has_stopped = false;
    let status = await_end(&mut child, || {
        if !has_stopped && emulation.has_stopped() {
            has_stopped = true;
            print_error_line("error: the emulated network has stopped");
        }
    })?;
    drop(children);
    let report =
        emulation.finish().ok_or_else(|| Failure::Other("the emulated network has failed".into()))?;
    print_error_line(&report.to_string());
    if let Some(place) = &args.json {
        std::fs::write(place, summary::json(&report))
            .map_err(|e| Failure::Other(format!("writing {}: {e}", place.display())))?;
    }
    Ok(exit_code(status, !(report.is_valid() || args.best_effort)))
}

/// Runs a command at a node, in place of this program.
pub(crate) fn enter(args: &ExecArgs) -> Result<(), Failure> {
    let directory = Directory::find()?;
    let entry = entry(&directory, &args.node)?;
    let namespace = Namespace::open(&entry.namespace).and_then(|namespace| namespace.enter());
    namespace.map_err(|e| {
        Problem::new(format!("node {} cannot be entered: {e}", args.node))
            .help("run it as root, or in the command that `hopline emulate` runs")
    })?;
    // Where mounts are not permitted, names do not resolve.
    let _ = netns::replace_hosts_file(directory.hosts_file().as_bytes());
    let mut command = with_arguments(&args.command).expect("a command is required");
    directory.set_environment(&mut command);
    Err(cannot_start(&args.command[0], &command.exec()))
}

fn entry<'a>(directory: &'a Directory, node: &str) -> Result<&'a Entry, Problem> {
    directory.get(node).ok_or_else(|| {
        let help = match nearest(node, directory.names()) {
            Some(name) => format!("`{name}` is meant?"),
            None => format!("the nodes are {}", directory.names().collect::<Vec<_>>().join(", ")),
        };
        Problem::new(format!("there is no node `{node}`")).help(help)
    })
}

fn cannot_start(program: &str, error: &std::io::Error) -> Failure {
    Problem::new(format!("{program} cannot be started: {error}")).into()
}

/// Checks that the network can be emulated.
fn check(spec: &Spec) -> Result<(), Problem> {
    let nodes = spec.nodes.len();
    if nodes > MAX_NODES {
        return Err(Problem::new(format!("{nodes} nodes are too many to emulate: at most {MAX_NODES}"))
            .help("`hopline run` simulates networks of any size"));
    }
    if spec.cells.is_some() {
        return Err(Problem::new(
            "[cells] cannot be emulated: hosts that move between base stations are simulated alone",
        )
        .help("leave out [cells] and [[mobile]]"));
    }
    if spec.routing.has_agents() && !spec.flows.is_empty() {
        return Err(Problem::new(
            "simulated flows have no routes: emulated nodes run no simulated routing protocol",
        )
        .help("--set routing.protocol=static, or leave out [[flow]] and run a routing daemon at the nodes"));
    }
    Ok(())
}

fn main_command(args: &Args) -> Command {
    with_arguments(&args.command)
        .unwrap_or_else(|| Command::new(env::var_os("SHELL").unwrap_or_else(|| "sh".into())))
}

fn with_arguments(words: &[String]) -> Option<Command> {
    let (program, rest) = words.split_first()?;
    let mut command = Command::new(program);
    command.args(rest);
    Some(command)
}

/// Returns the search path of programs with that of this program in front, so that scripts find `hopline exec`.
fn search_path() -> Option<std::ffi::OsString> {
    let own = env::current_exe().ok()?.parent()?.to_owned();
    let others = env::var_os("PATH").unwrap_or_default();
    let others = env::split_paths(&others).collect::<Vec<PathBuf>>();
    if others.contains(&own) {
        return None;
    }
    env::join_paths([own].into_iter().chain(others)).ok()
}
