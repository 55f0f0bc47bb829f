//! Measures transports over the same emulated links, in real time between two network namespaces. Needs root.

mod peer;
mod peers;
mod plan;
mod run;
mod table;

use clap::Parser;
use peer::Failure;
use plan::{Plan, QUEUE, RATE};
use run::Measured;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Goodput, cost and delay of transports over one emulated link.
#[derive(Parser)]
struct Arguments {
    /// Few links, few seeds, five seconds each.
    #[arg(long)]
    quick: bool,
    /// Seconds of each run.
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Runs of each transport over each link. BBR at 10 % loss and more gets eight at least.
    #[arg(long, value_name = "N", default_value_t = 2)]
    seeds: u64,
    /// Runs at once.
    #[arg(long, value_name = "N", default_value_t = 8)]
    parallel: usize,
    /// Only transports with this in their name.
    #[arg(long, value_name = "TEXT")]
    peer: Option<String>,
    /// Only links with this in their name, such as "loss 5".
    #[arg(long, value_name = "TEXT")]
    link: Option<String>,
    /// Where runs.csv and runs.json go.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Also write the tables, with how they were made, to this file.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

fn main() -> ExitCode {
    match compare(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("versus-transports: {error}");
            ExitCode::FAILURE
        }
    }
}

fn compare(arguments: &Arguments) -> Result<(), Failure> {
    let mut plan = match (arguments.quick, arguments.seconds) {
        (true, seconds) => Plan::quick(seconds.unwrap_or(5.0)),
        (false, seconds) => Plan::full(seconds.unwrap_or(12.0), arguments.seeds),
    };
    if let Some(text) = &arguments.link {
        plan.conditions.retain(|condition| condition.name().contains(text.as_str()));
    }
    let mut peers = peers::all();
    if let Some(text) = &arguments.peer {
        peers.retain(|peer| peer.name().contains(text.as_str()));
    }
    let runs = run::all(&peers, &plan, arguments.parallel.max(1))?;
    let text = format!("{}\n{}\n{}", about(&plan, arguments)?, table::lateness(&runs), table::tables(&runs));
    println!("{text}");
    if let Some(directory) = &arguments.out {
        write_runs(directory, &runs)?;
    }
    if let Some(file) = &arguments.write {
        fs::write(
            file,
            format!("# Transports over one link: the tables\n\nMade by `make versus-transports`.\n\n{text}"),
        )
        .map_err(|e| format!("{}: {e}", file.display()))?;
    }
    Ok(())
}

fn about(plan: &Plan, arguments: &Arguments) -> Result<String, Failure> {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Ok(format!(
        "Link: {} Mb/s both ways, queue {QUEUE} packets, MTU 1500; losses, bursts (mean 4 packets) and reordering (+30 ms) \
         on data only. Runs of {} s from connect, {} seeds ({} of erratic transports at 10 % loss and more), {} at once; \
         medians, and the range where it exceeds a tenth. Kernel {}, whose TCP uses {} unless told otherwise; here it is \
         told, for each socket.\n",
        RATE / 1_000_000,
        plan.seconds,
        plan.seeds,
        plan.erratic_seeds,
        arguments.parallel,
        kernel.trim(),
        peers::default_congestion_control()?,
    ))
}

fn write_runs(directory: &Path, runs: &[Measured]) -> Result<(), Failure> {
    fs::create_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let mut csv = csv::Writer::from_path(directory.join("runs.csv"))?;
    for run in runs {
        csv.serialize(run)?;
    }
    csv.flush()?;
    fs::write(directory.join("runs.json"), serde_json::to_vec_pretty(runs)?)?;
    eprintln!("every run: {}", directory.join("runs.csv").display());
    Ok(())
}
