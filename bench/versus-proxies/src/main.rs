//! Measures proxies in front of a lossy last hop, in real time between network namespaces. Needs root.

mod condition;
mod memory;
mod middle;
mod nat;
mod ping;
mod plan;
mod run;
mod standing;
mod table;
mod targets;
mod world;

use clap::{Parser, Subcommand, ValueEnum};
use condition::{AIR_MS, QUEUE, WIRED_MS, WIRED_RATE};
use hopline_linux::sched::request_real_time;
use middle::Middle;
use plan::{BURST, Plan, SENDERS};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use versus::kernel::default_congestion_control;
use versus::{Failure, output};

/// Goodput, delay and cost of proxies in front of a lossy last hop.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    role: Option<Role>,
    /// Two last hops, one of them behind NAT as well, one seed, five seconds each.
    #[arg(long)]
    quick: bool,
    /// Seconds of each run.
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Runs of each proxy and sender over each last hop.
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// Runs at once over a fast last hop; over a slow one twice as many.
    #[arg(long, value_name = "N", default_value_t = 8)]
    parallel: usize,
    /// Only proxies with this in their name.
    #[arg(long, value_name = "TEXT")]
    proxy: Option<String>,
    /// Only this sender: cubic, reno or bbr.
    #[arg(long, value_name = "NAME")]
    sender: Option<String>,
    /// Only last hops with this in their name, such as "loss 5".
    #[arg(long, value_name = "TEXT")]
    link: Option<String>,
    /// Only this rate of the last hop.
    #[arg(long, value_name = "MBPS")]
    rate: Option<u64>,
    /// Only one part.
    #[arg(long)]
    part: Option<Part>,
    /// PEPsal, as bench/pepsal/build.sh has built it; without it PEPsal is left out.
    #[arg(long, value_name = "FILE")]
    pepsal: Option<PathBuf>,
    /// Folder for runs.csv, runs.json, memory.csv and memory.json.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Also write the tables, with how they were made, to this file.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Goodput, delay and cost over last hops.
    Hops,
    /// Memory of many flows.
    Memory,
}

/// Internal roles in which this program starts itself.
#[derive(Subcommand)]
enum Role {
    /// Daemon, like `hopline proxy run`.
    #[command(hide = true)]
    Proxy { file: PathBuf },
    /// Keeper, like `hopline proxy keep`.
    #[command(hide = true)]
    Keep { name: String, folder: PathBuf },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.role {
        Some(Role::Proxy { file }) => proxy(file),
        Some(Role::Keep { name, folder }) => hopline_daemon::keep(name, folder).map_err(Failure::from),
        None => compare(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("versus-proxies: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the daemon, with priority over the emulated links: a router has its processors for itself.
fn proxy(file: &Path) -> Result<(), Failure> {
    // Without the permission it is delayed by other load.
    let _ = request_real_time();
    Ok(hopline_daemon::run(file, standing::keeper)?)
}

fn compare(arguments: &Arguments) -> Result<(), Failure> {
    let mut plan = if arguments.quick {
        Plan::quick(arguments.seconds.unwrap_or(5.0), arguments.seeds.unwrap_or(1))
    } else {
        Plan::full(arguments.seconds.unwrap_or(10.0), arguments.seeds.unwrap_or(2))
    };
    plan.conditions.retain(|condition| {
        arguments.rate.is_none_or(|mbps| condition.mbps == mbps)
            && arguments.link.as_deref().is_none_or(|text| condition.name().contains(text))
    });
    let pepsal = arguments.pepsal.as_deref();
    let is_wanted =
        |middle: &Middle| arguments.proxy.as_deref().is_none_or(|text| middle.name().contains(text));
    let is_there = |middle: &Middle| *middle != Middle::PepSal || pepsal.is_some();
    let middles: Vec<Middle> = Middle::ALL.into_iter().filter(is_wanted).filter(is_there).collect();
    let senders: Vec<&str> = SENDERS
        .into_iter()
        .filter(|name| arguments.sender.as_deref().is_none_or(|only| only == *name))
        .collect();
    let parallel = arguments.parallel.max(1);
    let mut text = String::new();
    if arguments.part != Some(Part::Memory) {
        let runs = run::all(&plan.cells(&middles, &senders), plan.seconds, parallel, pepsal)?;
        keep(arguments, "runs", &runs)?;
        let about = about(&plan, arguments, pepsal)?;
        let (lateness, targets, tables) =
            (table::lateness(&runs), targets::table(&runs), table::tables(&runs));
        let behind_nat = nat::table(&runs);
        text += &format!("{about}\n{lateness}\n{targets}{behind_nat}{tables}");
    }
    if arguments.part != Some(Part::Hops) {
        let kept = memory::all(&middles, parallel, pepsal)?;
        keep(arguments, "memory", &kept)?;
        text += &memory::table(&kept);
    }
    let text = text.trim_end();
    println!("{text}");
    arguments.write.as_deref().map_or(Ok(()), |file| write(file, text))
}

/// Writes all runs, if there is an output folder.
fn keep<T: Serialize>(arguments: &Arguments, name: &str, runs: &[T]) -> Result<(), Failure> {
    arguments.out.as_deref().map_or(Ok(()), |folder| output::write(folder, name, runs))
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let page = format!(
        "# Proxies in front of one last hop: the tables\n\nMade by `make versus-proxies`.\n\n{text}\n"
    );
    Ok(fs::write(file, page).map_err(|e| format!("{}: {e}", file.display()))?)
}

fn about(plan: &Plan, arguments: &Arguments, pepsal: Option<&Path>) -> Result<String, Failure> {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let default = default_congestion_control()?;
    let pepsal = match pepsal {
        Some(_) => {
            format!("PEPsal cannot be told a congestion control and uses the kernel's default, {default}.")
        }
        None => "PEPsal was not there, and is not counted.".to_owned(),
    };
    Ok(format!(
        "Sender, {} Mb/s and {WIRED_MS} ms, router, last hop of {AIR_MS} ms, mobile host; MTU 1500; {QUEUE} packets wait for the \
         last hop, at the router's interface (tbf over pfifo_fast) or in the link. Losses, alone or in bursts (mean {BURST} \
         packets), on what goes to the mobile host only. The sender calls; behind NAT the mobile host does, which the router masquerades, with \
         a firewall that lets nothing in but what belongs to a connection. Links and proxies go before everything else on the machine (SCHED_FIFO). Runs of {} s from connect, {} seeds, {} at once at 20 Mb/s, twice as many at 2; medians, and the \
         range where it exceeds a tenth. Kernel {}; load average at the end {}, on {} processors. {pepsal}\n",
        WIRED_RATE / 1_000_000,
        plan.seconds,
        plan.seeds,
        arguments.parallel,
        kernel.trim(),
        load.split_whitespace().take(3).collect::<Vec<_>>().join(", "),
        std::thread::available_parallelism().map_or(0, usize::from),
    ))
}
