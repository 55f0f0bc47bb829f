//! The `hopline` command.

mod args;
mod commands;
mod console;
mod doctor;
mod follow;
mod forecast;
mod keys;
mod problems;
mod progress;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
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
        args::Command::Reproduce(reproduce) => commands::reproduce::execute(&reproduce),
        args::Command::Send(send) => commands::send::execute(&send),
        args::Command::Recv(recv) => commands::recv::execute(&recv),
        args::Command::Bench(bench) => commands::bench::execute(&bench),
        args::Command::Proxy(proxy) => commands::proxy::execute(&proxy),
        args::Command::Key(key) => commands::key::execute(&key),
        args::Command::Link(link) => {
            return commands::link::execute(&link).unwrap_or_else(|failure| failure.report());
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
