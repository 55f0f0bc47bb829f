//! `hopline emulate --virtual-time`: Linux kernels at nodes, with the simulated network as their scheduler.

use super::programs::{End, ProgramResult, failure, find_program, last_line};
use super::results::{Cost, Emulated};
use super::{
    Network, Observers, create_results, directory, live_line, report_all, search_path, summary, write,
};
use crate::commands::run::find_node;
use crate::console;
use crate::net::args::Emulate as Args;
use crate::net::children::Children;
use crate::net::clock;
use crate::net::main_command::exit_code;
use crate::problems::{Failure, print_error_line};
use hopline_config::source::{Origin, Problem};
use hopline_core::{Duration as VirtualDuration, Instant, NodeId};
use hopline_emulate::{HostReport, NetworkReport, Observed, Observers as Tracer};
use hopline_lab::Spec;
use hopline_lab::engine::KernelOptions;
use hopline_lab::output::{CAPTURE, Directory, LockedFolder};
use hopline_linux::sched;
use hopline_scenario::Program;
use hopline_virtual_time::emulation::{self, Settings};
use hopline_virtual_time::guest::init::{self, TEMPORARY};
use hopline_virtual_time::guest::plan::{ProgramEnd, errors_file, output_file};
use hopline_virtual_time::kernel::{KernelImage, Machine, PREPARING};
use hopline_virtual_time::report::Report;
use hopline_virtual_time::{Error, guest, report};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

/// Beginning of the names of folders for the files of kernels.
const FOLDER: &str = "hopline-kernels-";
/// Seconds of real time for which a program may compute, unless the user gives others.
const PATIENCE_S: u64 = 30;
/// Longest line of a program that is printed whole, bytes.
const MAX_LINE: u64 = 64 * 1024;
/// Exit code of a program that does not start, as that of `hopline exec`.
const NOT_STARTED: i32 = 2;
/// Name of the command after `--` among the programs. Names in scenarios do not begin with a full stop.
const COMMAND: &str = ".command";

/// Prepares a host and runs its programs, if this process is the first one of a kernel. Returns only after an error.
pub(crate) fn be_first_process() -> Option<ExitCode> {
    let is_first = std::process::id() == 1 && env::args_os().next()? == init::PATH;
    is_first.then(|| {
        let error = guest::init::run().err();
        let error = error.map_or_else(|| "it was not switched off".into(), |error| error.to_string());
        print_error_line(&format!("{PREPARING}: {error}"));
        ExitCode::FAILURE
    })
}

/// Checks what the options and the scenario ask for, and finds the kernel.
pub(super) fn check(args: &Args, programs: &[Program]) -> Result<KernelImage, Problem> {
    let unsupported = [
        (args.watch.is_some(), "--watch shows a network in real time"),
        (args.best_effort, "--best-effort is about real time: in virtual time nothing is late"),
    ];
    if let Some((_, reason)) = unsupported.iter().find(|(is_asked, _)| *is_asked) {
        return Err(Problem::new(format!("--virtual-time: {reason}"))
            .help("start programs by [[program]] tables of the scenario; --report FILE has the map"));
    }
    if programs.is_empty() && args.command.is_empty() {
        return Err(no_program(", or a command after `--`"));
    }
    check_programs(programs)?;
    if let Some(word) = args.command.first() {
        find_program(word).ok_or_else(|| Problem::new(format!("there is no program `{word}`")))?;
        is_visible(word, None)?;
    }
    find_kernel(args.kernels.kernel.as_deref())
}

/// Returns the error of a scenario without programs. `or`: what else there could be.
pub(super) fn no_program(or: &str) -> Problem {
    Problem::new("--virtual-time: the scenario has no program to run").help(format!(
        "add a table: [[program]], name = \"ping\", node = \"n0\", command = [\"ping\", \"n1\"]{or}"
    ))
}

/// Checks that programs are not in folders that are empty at nodes.
pub(super) fn check_programs(programs: &[Program]) -> Result<(), Problem> {
    programs.iter().try_for_each(|program| is_visible(&program.command[0], Some(&program.origin)))
}

/// Finds the kernel, in `folder` or where `make uml` puts it.
pub(super) fn find_kernel(folder: Option<&Path>) -> Result<KernelImage, Problem> {
    let folder = folder.map_or_else(KernelImage::default_folder, Path::to_owned);
    KernelImage::find(&folder).map_err(|e| Problem::new(e.to_string()))
}

/// Checks that a program is not in a folder that is empty at nodes. The current directory is shown there.
fn is_visible(word: &str, origin: Option<&Origin>) -> Result<(), Problem> {
    let Some(path) = find_program(word).and_then(|path| fs::canonicalize(path).ok()) else {
        return Ok(());
    };
    let is_shown = env::current_dir().is_ok_and(|here| path.starts_with(&here) && !is_temporary(&here));
    let Some(place) = TEMPORARY.into_iter().find(|place| !is_shown && path.starts_with(place)) else {
        return Ok(());
    };
    let problem =
        Problem::new(format!("`{}` is in {place}, which is empty at nodes in virtual time", path.display()))
            .help("move it to another folder");
    Err(match origin {
        Some(origin) => problem.at(origin),
        None => problem,
    })
}

/// Emulates the network with kernels at nodes.
pub(super) fn execute(network: Network<'_>, kernel: KernelImage) -> Result<ExitCode, Failure> {
    let Network { args, scenario, spec, programs, at, page } = network;
    console::catch_interrupts()?;
    let results = create_results(args)?;
    let (observers, observation) = Observers::start(args, &scenario, &spec, results.as_ref())?;
    let tracer = Tracer::new(&spec, observation).map_err(failed(format!("writing {CAPTURE}")))?;
    let command = command(args, &spec, &at)?;
    let input = Input { run: args.run, at, programs: &programs, command };
    let (_folder, settings) = settings(&spec, input, kernel, &args.kernels.options(args.no_routes))?;
    let line = RefCell::new(live_line::VirtualLine::new(args.command.is_empty().then_some(spec.duration)));
    let proceed = |now| {
        line.borrow_mut().show(now);
        !console::interrupted()
    };
    let emulation = emulate(&spec, &settings, tracer, programs, &proceed);
    line.into_inner().end();
    let Emulation { report, network, captured, programs, cost } = emulation.map_err(|error| match error {
        Error::Interrupted => Failure::Interrupted("interrupted; nothing was written"),
        other => Failure::Other(other.to_string()),
    })?;
    let stored = keep_output(&report, results.as_ref());
    let captured = captured.map_err(failed(format!("writing {CAPTURE}")));
    let emulated = Emulated::of(&spec, args.run, &network, cost);
    let fingerprint = json!({ "fingerprint": format!("{:016x}", network.outcome.fingerprint) });
    let json = summary::json(&network, &programs, &emulated, fingerprint);
    // A reader of the output that goes away, or a full disk, must not cost the results.
    let kept = results.is_some();
    let written = write((args, &scenario), &network, &emulated, &json, observers, (results, page));
    let printed = print_output(&report, kept);
    print_failures(&programs, &report, kept);
    print_error_line(&summary::text(&network, &programs, &emulated, &last_lines(&network, cost)));
    report_all([stored, captured, written, printed])?;
    let has_failed = programs.iter().any(ProgramResult::has_failed);
    Ok(match command_end(&report) {
        Some(end) => exit_code(status(end), has_failed),
        None => ExitCode::from(u8::from(has_failed)),
    })
}

/// Input of an emulation.
pub(super) struct Input<'a> {
    pub(super) run: u64,
    /// Nodes with kernels.
    pub(super) at: BTreeSet<NodeId>,
    pub(super) programs: &'a [Program],
    /// Command with which the emulation ends; `None`: it ends at its time.
    pub(super) command: Option<emulation::Program>,
}

/// Returns the settings of an emulation, and a folder for the files of its kernels. This thread is to run it.
pub(super) fn settings(
    spec: &Spec,
    input: Input<'_>,
    kernel: KernelImage,
    options: &KernelOptions,
) -> Result<(LockedFolder, Settings), Failure> {
    let Input { run, at, programs, command } = input;
    let folder = LockedFolder::create_in(&env::temp_dir(), FOLDER)
        .map_err(failed("making a folder for the kernels"))?;
    let syscall_cost = options.syscall_cost_us.map(VirtualDuration::from_micros);
    let machine = Machine::default();
    let settings = Settings {
        nodes: at,
        run,
        end: match &command {
            Some(command) => emulation::End::WithProgram(command.name.clone()),
            None => emulation::End::At(Instant::ZERO + spec.duration),
        },
        has_routes: !(options.no_routes || spec.routing.has_agents()),
        programs: programs.iter().map(planned).chain(command).collect(),
        environment: environment(spec),
        working_directory: env::current_dir().map_err(failed("finding the current directory"))?,
        kernel,
        machine: Machine { syscall_cost: syscall_cost.unwrap_or(machine.syscall_cost), ..machine },
        init: env::current_exe().map_err(failed("finding this program"))?,
        init_arguments: Vec::new(),
        folder: folder.path().to_owned(),
        patience: Duration::from_secs(options.patience_s.unwrap_or(PATIENCE_S)),
    };
    // Kernels inherit it: they and this thread wake each other up thousands of times a second.
    sched::request_prompt_wakeups();
    Ok((folder, settings))
}

/// An emulation that has ended.
pub(super) struct Emulation {
    pub(super) report: Report,
    pub(super) network: NetworkReport,
    /// Error of the capture, if it could not be written.
    pub(super) captured: io::Result<()>,
    pub(super) programs: Vec<ProgramResult>,
    pub(super) cost: Cost,
}

/// Runs an emulation to its end, while `proceed` returns `true`.
pub(super) fn emulate(
    spec: &Spec,
    settings: &Settings,
    tracer: Tracer,
    programs: Vec<Program>,
    proceed: &dyn Fn(Instant) -> bool,
) -> Result<Emulation, Error> {
    // Kernels are killed when they are dropped, and their processes with them.
    let _children = Children::adopt();
    let began = clock::now();
    let (report, tracer) = emulation::run(spec, settings, tracer, proceed)?;
    let cost = Cost { cpu: cpu_time().into(), wall: began.elapsed().into() };
    let programs = programs.into_iter().map(|program| result(program, &report)).collect();
    let (network, captured) = network_report(&report, tracer.finish(report.reached));
    Ok(Emulation { report, network, captured, programs, cost })
}

/// Returns the command after `--`: it runs at the first node that `--node` names, else at the first one.
fn command(args: &Args, spec: &Spec, at: &BTreeSet<NodeId>) -> Result<Option<emulation::Program>, Problem> {
    let Some(word) = args.command.first() else { return Ok(None) };
    let named = args.node.first().map(|name| find_node("--node", name, spec)).transpose()?;
    Ok(Some(emulation::Program {
        name: COMMAND.to_owned(),
        node: named.or(at.first().copied()).expect("a network has a node"),
        path: path_of(word),
        command: args.command.clone(),
        start: Instant::ZERO,
        stop: None,
    }))
}

/// Returns the end of the command after `--`.
fn command_end(report: &Report) -> Option<&ProgramEnd> {
    let mut programs = report.hosts.iter().flat_map(|host| &host.programs);
    programs.find(|program| program.name == COMMAND)?.end.as_ref()
}

/// Returns whether a folder is there at nodes, but empty.
fn is_temporary(folder: &Path) -> bool {
    TEMPORARY.iter().any(|place| folder == Path::new(place))
}

pub(super) fn failed(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Failure {
    move |error| Failure::Other(format!("{}: {error}", doing.into()))
}

fn planned(program: &Program) -> emulation::Program {
    emulation::Program {
        name: program.name.clone(),
        node: program.node,
        path: path_of(&program.command[0]),
        command: program.command.clone(),
        start: program.start,
        stop: program.stop,
    }
}

/// Returns the path of a program. It is found here: a longer PATH would delay it at the node.
fn path_of(word: &str) -> PathBuf {
    find_program(word).unwrap_or_else(|| PathBuf::from(word))
}

/// Returns the environment of programs: little of that of this process, so that runs repeat.
fn environment(spec: &Spec) -> Vec<(String, String)> {
    let path = search_path().or_else(|| env::var_os("PATH")).unwrap_or_default();
    let fixed = [
        ("PATH", path.to_string_lossy().into_owned()),
        ("HOME", "/tmp".into()),
        ("LC_ALL", "C.UTF-8".into()),
    ];
    let nodes = (0..).map(NodeId).zip(&spec.nodes);
    let addresses = nodes.map(|(id, node)| (directory::variable(&node.name), id.ipv4().to_string()));
    fixed.map(|(name, value)| (name.to_owned(), value)).into_iter().chain(addresses).collect()
}

/// Returns the result of a program in the form of real time.
fn result(program: Program, report: &Report) -> ProgramResult {
    let host = report.hosts.iter().find(|host| host.node == program.node);
    let host = host.expect("programs are at nodes with kernels");
    let ended = host.programs.iter().find(|one| one.name == program.name).and_then(|one| one.end.as_ref());
    let end = ended.map_or(End::NotStarted, |end| match end.was_stopped {
        true => End::Stopped(status(end)),
        false => End::Exited(status(end)),
    });
    let started = ended.map(|_| Duration::from_nanos(program.start.as_nanos()));
    let ended = ended.map(|end| Duration::from_nanos(end.ended_ns));
    ProgramResult { program, node: host.name.clone(), started, ended, end }
}

fn status(end: &ProgramEnd) -> ExitStatus {
    // A wait status has the signal below the exit code.
    let of_code = |code: i32| ExitStatus::from_raw(code << 8);
    end.signal.map_or_else(|| of_code(end.code.unwrap_or(NOT_STARTED)), ExitStatus::from_raw)
}

/// Returns the output of all programs: of each the name, whether it is that of errors, and the file.
fn outputs(report: &Report) -> impl Iterator<Item = (&str, bool, PathBuf)> {
    let programs = report.hosts.iter().flat_map(|host| host.programs.iter().map(move |p| (host, &*p.name)));
    programs.flat_map(|(host, name)| {
        let place = |file: String| host.folder.join(file);
        [(name, false, place(output_file(name))), (name, true, place(errors_file(name)))]
    })
}

/// Stores the output of the programs of the scenario.
fn keep_output(report: &Report, results: Option<&Directory>) -> Result<(), Failure> {
    let Some(directory) = results else { return Ok(()) };
    for (_, _, place) in outputs(report).filter(|(program, ..)| *program != COMMAND) {
        let name = place.file_name().expect("it is that of a file").to_string_lossy();
        let Ok(mut file) = File::open(&place) else { continue };
        io::copy(&mut file, &mut directory.file(&name)?).map_err(failed(format!("writing {name}")))?;
    }
    Ok(())
}

/// Prints the output of the command, and that of programs unless it was `kept`.
fn print_output(report: &Report, kept: bool) -> Result<(), Failure> {
    for (program, is_errors, place) in outputs(report) {
        let Ok(mut file) = File::open(&place) else { continue };
        let printed = match (program == COMMAND, is_errors) {
            (true, false) => io::copy(&mut file, &mut io::stdout()).and_then(|_| io::stdout().flush()),
            (true, true) => io::copy(&mut file, &mut io::stderr()).map(drop),
            (false, _) if kept => Ok(()),
            (false, _) => print_prefixed(program, file),
        };
        printed.map_err(failed(format!("printing what {} has printed", described(program))))?;
    }
    Ok(())
}

fn described(program: &str) -> String {
    if program == COMMAND { "the command".into() } else { format!("program {program}") }
}

/// Prints which programs have failed, with their last words if all they wrote was `kept`.
fn print_failures(programs: &[ProgramResult], report: &Report, kept: bool) {
    if let Some(reason) = command_end(report).and_then(|end| end.error.as_ref()) {
        print_error_line(&format!("error: the command cannot be started: {reason}"));
    }
    failures(programs, report, kept).for_each(|failure| print_error_line(&failure));
}

/// Returns a message for each program that has failed, with its last words if all it wrote was `kept`.
pub(super) fn failures(
    programs: &[ProgramResult],
    report: &Report,
    kept: bool,
) -> impl Iterator<Item = String> {
    programs.iter().filter_map(move |result| match result.end {
        End::Exited(status) if !status.success() => {
            let times = result.started.zip(result.ended);
            let after_s = times.map_or(0.0, |(from, to)| to.saturating_sub(from).as_secs_f64());
            let words = words(result, report, kept);
            Some(failure(&result.program, &result.node, after_s, status, words))
        }
        _ => None,
    })
}

/// Prints a file line by line, in constant memory.
fn print_prefixed(name: &str, file: File) -> io::Result<()> {
    let (mut file, mut line) = (BufReader::new(file), Vec::new());
    while file.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? > 0 {
        print_error_line(&format!(
            "{name}: {}",
            String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r'])
        ));
        line.clear();
    }
    Ok(())
}

/// Returns the reason that a program did not start, or the last line of its errors if that was not printed.
fn words(result: &ProgramResult, report: &Report, kept: bool) -> Option<String> {
    let host = report.hosts.iter().find(|host| host.node == result.program.node)?;
    let program = host.programs.iter().find(|one| one.name == result.program.name)?;
    let not_started = program.end.as_ref()?.error.clone();
    let errors = || last_line(&host.folder.join(errors_file(&program.name)));
    not_started.or_else(|| kept.then(errors).flatten())
}

fn network_report(report: &report::Report, observed: Observed) -> (NetworkReport, io::Result<()>) {
    let host = |host: &report::HostReport| HostReport {
        name: host.name.clone(),
        tap: host.tap,
        refused: host.overflow,
    };
    let network = NetworkReport {
        outcome: report.outcome.clone(),
        hosts: report.hosts.iter().map(host).collect(),
        flows: observed.flows,
        links: observed.links,
        failure: None,
    };
    (network, observed.capture)
}

fn last_lines(network: &NetworkReport, cost: Cost) -> String {
    let (real, fingerprint) = (cost.wall.as_secs_f64(), network.outcome.fingerprint);
    let speed = network.outcome.sim_time.as_secs_f64() / real.max(1e-3);
    format!(
        "{network}\nvirtual time: {speed:.2} s a second of real time, {real:.1} s in all\nfingerprint {fingerprint:016x}"
    )
}

/// Returns the CPU time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
