//! The `hopline` command.

mod args;
mod commands;
mod console;
mod doctor;
mod file_kinds;
mod forecast;
#[cfg(feature = "net")]
mod net;
#[cfg(not(feature = "net"))]
#[path = "without_net.rs"]
mod net;
mod problems;
mod progress;
#[cfg(all(test, feature = "net"))]
mod without_net;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(feature = "net")]
    if let Some(end) = net::be_first_process() {
        return end;
    }
    let args = args::Args::parse();
    let done = match args.command {
        args::Command::Run(run) => commands::run::execute(&run),
        args::Command::Compare(compare) => commands::compare::execute(&compare),
        args::Command::Schema(schema) => commands::schema::execute(&schema),
        args::Command::Doctor(doctor) => commands::doctor::execute(&doctor),
        args::Command::Completions(completions) => commands::completions::execute(&completions),
        args::Command::Man(man) => commands::man::execute(&man),
        args::Command::Movements(movements) => commands::movements::execute(&movements),
        args::Command::Sweep(sweep) => commands::sweep::execute(&sweep),
        args::Command::Report(report) => commands::report::execute(&report),
        args::Command::Packetdrill(scripts) => commands::packetdrill::execute(&scripts),
        args::Command::Evaluate(evaluate) => commands::evaluate::execute(&evaluate),
        args::Command::Reproduce(reproduce) => commands::reproduce::execute(&reproduce),
        args::Command::Net(command) => {
            return net::execute(&command).unwrap_or_else(|failure| failure.report());
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
