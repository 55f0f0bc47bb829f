//! `hopline emulate` and `hopline exec`.

mod check;
mod directory;
mod kernel_run;
mod live_line;
mod observation;
mod output_files;
mod programs;
mod record;
mod results;
mod summary;
mod virtual_time;
mod watch;

pub(crate) use kernel_run::execute as make_run;
pub(crate) use virtual_time::be_first_process;

use super::children::Children;
use super::main_command::{await_end, await_time, exit_code};
use crate::commands::{self, experiment, experiment::ReportFile};
use crate::console;
use crate::net::args::{Emulate as Args, Exec as ExecArgs};
use crate::problems::{Failure, INTERRUPTED, print_error_line};
use directory::{Directory, Entry};
use hopline_config::source::{Problem, nearest};
use hopline_core::NodeId;
use hopline_emulate::{Emulation, KernelRoutes, NetworkReport};
use hopline_lab::output::{self, Existing, OutputError};
use hopline_lab::{Interrupted, Scenario, Spec};
use hopline_linux::{Namespace, netns};
use hopline_scenario::Program;
use live_line::LiveLine;
use observation::Observers;
use output_files::Place;
use programs::{ProgramResult, Programs};
use results::{Cost, Emulated};
use rustix::process::{Signal, set_parent_process_death_signal};
use std::collections::BTreeSet;
use std::os::unix::process::{CommandExt, parent_id};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::{env, fs};

/// Advice if namespaces can be created but interfaces cannot.
const TUN_HELP: &str = "run it as root, or let its user open /dev/net/tun: `modprobe tun`, `chmod 666 /dev/net/tun`; a container needs \
                        --device /dev/net/tun";

/// Warning of a routing protocol that emulated nodes do not run.
pub(super) const NO_ROUTES: &str = "kernels have no routes over several hops, since emulated nodes run no simulated routing protocol\n\
                                    help: run a routing daemon at the nodes, or --set routing.protocol=static; --no-routes silences this";

/// Runs a command or the programs of the scenario at emulated nodes, and returns its exit code.
pub(crate) fn execute(args: &Args) -> Result<ExitCode, Failure> {
    let scenario = commands::load_network(&args.given)?;
    let spec = scenario.spec(args.run)?;
    let page = args.report.as_deref().map(|path| experiment::report_file(Some(path), &scenario.name()));
    let programs = scenario.programs(args.run)?;
    let at = check::network(&spec, &args.node, args.kernels.virtual_time, &programs)?;
    programs::check(&programs)?;
    warn_of_missing_routes(args, &spec);
    check_output_files(args, page.as_ref(), &programs)?;
    let kernel = args.kernels.virtual_time.then(|| virtual_time::check(args, &programs)).transpose()?;
    let network = Network { args, scenario, spec, programs, at, page };
    match kernel {
        Some(kernel) => virtual_time::execute(network, kernel),
        None => execute_in_real_time(network),
    }
}

/// Checks the files that options name.
fn check_output_files(args: &Args, page: Option<&ReportFile>, programs: &[Program]) -> Result<(), Failure> {
    let files = [
        ("--json", args.json.as_deref()),
        ("--record", args.record.as_deref()),
        ("--report", args.report.as_deref()),
    ];
    let [_, _, report] = output_files::check(args.output.as_deref(), files, programs)?;
    match report {
        Some(Place::Elsewhere) => Ok(page.map_or(Ok(()), ReportFile::check)?),
        Some(Place::InResults) | None => Ok(()),
    }
}

/// Warns that kernels have no routes over several hops although the scenario has a routing protocol.
fn warn_of_missing_routes(args: &Args, spec: &Spec) {
    if spec.routing.has_agents() && !args.no_routes {
        print_error_line(&format!("warning: {NO_ROUTES}"));
    }
}

/// A network to emulate, and the files that are written.
struct Network<'a> {
    args: &'a Args,
    scenario: Scenario,
    spec: Spec,
    programs: Vec<Program>,
    /// Nodes with hosts.
    at: BTreeSet<NodeId>,
    page: Option<ReportFile>,
}

/// Creates the directory of results.
fn create_results(args: &Args) -> Result<Option<output::Directory>, OutputError> {
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    args.output.as_deref().map(|path| output::Directory::create(path, existing)).transpose()
}

fn execute_in_real_time(network: Network<'_>) -> Result<ExitCode, Failure> {
    let Network { args, scenario, spec, programs, at, page } = network;
    check::raise_descriptor_limit(at.len(), spec.links.len(), programs.len())?;
    netns::enter_user_namespace().map_err(|e| Problem::new(e.to_string()))?;
    // Only now: a process with several threads cannot enter one. Ctrl-C at a terminal also reaches the command, which gets
    // time to end.
    console::catch_interrupts()?;
    let results = create_results(args)?;
    let (mut observers, observation) = Observers::start(args, &scenario, &spec, results.as_ref())?;
    let routes = match args.no_routes || spec.routing.has_agents() {
        true => KernelRoutes::Neighbours,
        false => KernelRoutes::Shortest,
    };
    let emulation = Emulation::start(&spec, args.run, &at, routes, observation).map_err(|e| {
        match e.is_unavailable() {
            true => Problem::new(e.to_string()).help(TUN_HELP).into(),
            false => Failure::Other(e.to_string()),
        }
    })?;
    let nodes = Directory::publish(&emulation).map_err(|e| Failure::Other(e.to_string()))?;
    if console::interrupted() {
        return Err(Interrupted.into());
    }
    let children = Children::adopt();
    let length = (args.command.is_empty() && !programs.is_empty()).then_some(spec.duration);
    let mut programs = Programs::new(programs, &spec, &nodes, results.as_ref());
    let mut line = LiveLine::new(args.command.is_empty() && length.is_none());
    let mut has_stopped = false;
    let check = || {
        line.show(&emulation);
        if !has_stopped && emulation.has_stopped() {
            has_stopped = true;
            print_error_line("error: the emulated network has stopped");
        }
        observers.check()?;
        programs.poll()
    };
    let end = match length {
        Some(length) => await_time(length.into(), check).map(|()| MainEnd::OfTime)?,
        None => MainEnd::OfCommand(run_command(args, &nodes, check)?),
    };
    line.end();
    let programs = programs.stop()?;
    // Before their output is complete: what they have started may hold it open.
    drop(children);
    let programs = programs.into_results();
    let report =
        emulation.finish().ok_or_else(|| Failure::Other("the emulated network has failed".into()))?;
    let cost = Cost { cpu: report.cpu_time, wall: report.network.outcome.sim_time };
    let emulated = Emulated::of(&spec, args.run, &report.network, cost);
    print_error_line(&summary::text(&report.network, &programs, &emulated, &report));
    let json = summary::json(&report.network, &programs, &emulated, summary::lateness(&report));
    write((args, &scenario), &report.network, &emulated, &json, observers, (results, page))?;
    let has_failed =
        !(report.is_valid() || args.best_effort) || programs.iter().any(ProgramResult::has_failed);
    Ok(end.exit_code(has_failed))
}

/// Writes what the options ask for, as far as it can be written, and reports each failure. `json`: the summary.
fn write(
    (args, scenario): (&Args, &Scenario),
    network: &NetworkReport,
    emulated: &Emulated,
    json: &str,
    observers: Observers,
    (results, page): (Option<output::Directory>, Option<ReportFile>),
) -> Result<(), Failure> {
    let (extras, recording) = observers.finish();
    let directory = extras.and_then(|extras| match results {
        Some(directory) => write_results(directory, (args, scenario), emulated, &extras),
        None => Ok(()),
    });
    // Only now: files that options name may be in the directory.
    let summary = args.json.as_deref().map_or(Ok(()), |place| write_text(place, json));
    let links = || record::json(&emulated.spec, &network.links);
    let links = args.record.as_deref().map_or(Ok(()), |place| write_text(place, &links()));
    let page = page.map_or(Ok(()), |file| {
        let animation = recording.and_then(|all| all.into_animation(&emulated.spec, args.run));
        file.write(&emulated.page(scenario, args.run, animation)?)?;
        print_error_line(&format!("report in {}", file.path().display()));
        Ok(())
    });
    report_all([directory, summary.map_err(Failure::from), links.map_err(Failure::from), page])
}

/// Writes the directory of results.
fn write_results(
    directory: output::Directory,
    (args, scenario): (&Args, &Scenario),
    emulated: &Emulated,
    extras: &[output::Extra],
) -> Result<(), Failure> {
    output::write(&directory, scenario, args.run, &emulated.done, extras)?;
    directory.finish()?;
    if let Some(path) = &args.output {
        print_error_line(&format!("results in {}", path.display()));
    }
    Ok(())
}

/// Reports all failures.
fn report_all<const N: usize>(done: [Result<(), Failure>; N]) -> Result<(), Failure> {
    let failures: Vec<Failure> = done.into_iter().filter_map(Result::err).collect();
    for failure in &failures {
        failure.report();
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::Reported) }
}

/// Writes a file, which replaces an earlier one when it is complete.
fn write_text(place: &Path, text: &str) -> Result<(), OutputError> {
    let is_file = fs::symlink_metadata(place).map_or(true, |found| found.is_file());
    if is_file {
        return output::write_file(place, Existing::Replace, |file| file.write_all(text.as_bytes()));
    }
    // A device or a pipe, or a link to one.
    fs::write(place, text).map_err(|error| OutputError::Io { path: place.to_owned(), error })
}

/// End of an emulation.
enum MainEnd {
    /// The command has ended.
    OfCommand(ExitStatus),
    /// The time of the emulation is over, or it was interrupted.
    OfTime,
}

impl MainEnd {
    fn exit_code(self, has_failed: bool) -> ExitCode {
        match self {
            Self::OfCommand(status) => exit_code(status, has_failed),
            Self::OfTime if console::interrupted() => ExitCode::from(INTERRUPTED),
            Self::OfTime => ExitCode::from(u8::from(has_failed)),
        }
    }
}

/// Runs the command of the command line, by default a shell.
fn run_command(
    args: &Args,
    nodes: &Directory,
    check: impl FnMut() -> Result<(), Failure>,
) -> Result<ExitStatus, Failure> {
    let mut command = main_command(args);
    nodes.set_environment(&mut command);
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = netns::spawn_here(command).map_err(|e| cannot_start(&program, &e))?;
    await_end(&mut child, check)
}

/// Runs a command at a node, in place of this program.
pub(crate) fn enter(args: &ExecArgs) -> Result<(), Failure> {
    if let Some(parent) = args.end_with {
        end_with(parent)?;
    }
    let directory = Directory::find()?;
    let entry = entry(&directory, &args.node)?;
    let namespace = Namespace::open(&entry.namespace).and_then(|namespace| namespace.enter());
    namespace.map_err(|e| {
        Problem::new(format!("node {} cannot be entered: {e}", args.node))
            .help("run it as root, or in the command that `hopline emulate` runs")
    })?;
    // Where mounts are not permitted, names do not resolve, and settings may be read-only.
    let _ = netns::replace_hosts_file(directory.hosts_file().as_bytes());
    let _ = netns::make_settings_writable();
    let mut command = with_arguments(&args.command).expect("a command is required");
    directory.set_environment(&mut command);
    Err(cannot_start(&args.command[0], &command.exec()))
}

/// Makes this process, and the program that replaces it, end with its parent.
fn end_with(parent: u32) -> Result<(), Problem> {
    // Ctrl-C alone does not reach programs, as each has a process group of its own.
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    // It may have ended before.
    match parent_id() == parent {
        true => Ok(()),
        false => Err(Problem::new("the emulation has ended")),
    }
}

fn entry<'a>(directory: &'a Directory, node: &str) -> Result<&'a Entry, Problem> {
    directory.get(node).ok_or_else(|| {
        let help = match nearest(node, directory.names()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("the nodes are {}", directory.names().collect::<Vec<_>>().join(", ")),
        };
        Problem::new(format!("there is no node `{node}`")).help(help)
    })
}

fn cannot_start(program: &str, error: &std::io::Error) -> Failure {
    Problem::new(format!("{program} cannot be started: {error}")).into()
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
