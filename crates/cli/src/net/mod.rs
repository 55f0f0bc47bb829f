//! Commands that use real sockets, in a build with the feature `net`.

mod args;
mod bench;
mod children;
mod clock;
mod emulate;
mod identity;
mod key;
mod keys;
mod link;
mod main_command;
mod prefixed_output;
mod progress;
mod proxy;
mod recv;
mod refusals;
mod send;
mod state;
mod tcp;
mod transfer_printer;

pub(crate) use args::{Command, SweepOverKernels};
pub(crate) use emulate::be_first_process;

use crate::problems::{Failure, print_error_line};
use emulate::NO_ROUTES;
use hopline_config::json_schema::FileKind;
use hopline_daemon::config::keys::PROXIES;
use hopline_lab::Plan;
use std::env;
use std::process::ExitCode;

/// Message after Ctrl-C in a transfer.
const RESUMABLE_MESSAGE: &str = "interrupted; what has arrived is kept, and the same command goes on";

/// Names of the kinds of file that only these commands read.
pub(crate) const FILE_KINDS: [&str; 1] = [PROXIES.name];

/// Returns the kind of file called `name`.
///
/// # Errors
/// Never in this build.
pub(crate) fn file_kind(_name: &str) -> Result<FileKind, Failure> {
    Ok(PROXIES)
}

/// Returns `plan` with runs over Linux kernels, if they are asked for.
pub(crate) fn with_kernels(plan: Plan, over: &SweepOverKernels) -> Result<Plan, Failure> {
    if !over.virtual_time() {
        return Ok(plan);
    }
    let command = env::current_exe().map_err(|e| Failure::Other(format!("finding this program: {e}")))?;
    let plan = plan.with_kernels(&command, over.kernels.options(over.no_routes))?;
    if let Some(point) = plan.without_routes() {
        print_error_line(&format!("warning: {point}: {NO_ROUTES}"));
    }
    Ok(plan)
}

/// Executes a command.
pub(crate) fn execute(command: &Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Send(args) => send::execute(args),
        Command::Recv(args) => recv::execute(args),
        Command::Bench(args) => bench::execute(args),
        Command::Proxy(args) => proxy::execute(args),
        Command::Tcp(args) => tcp::execute(args),
        Command::Key(args) => key::execute(args),
        Command::Link(args) => return link::execute(args),
        Command::Emulate(args) => return emulate::execute(args),
        Command::Exec(args) => emulate::enter(args),
        Command::KernelRun => emulate::make_run(),
    }
    .map(|()| ExitCode::SUCCESS)
}
