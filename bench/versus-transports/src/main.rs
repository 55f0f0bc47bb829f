//! Measures transports over the same links, in real time between two network namespaces: over emulated links,
//! and over a fast one. Needs root.

mod cable;
mod peers;
mod plan;
mod run;
mod table;

use cable::Fast;
use clap::{Parser, ValueEnum};
use peer::Failure;
use plan::{Bottleneck, Effort, FAST, Plan, SLOW};
use serde::Serialize;
use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use versus::{cpu, output, peer, talk};

/// Goodput, cost and delay of transports over emulated links, and what they cost where nothing holds them back.
#[derive(Parser)]
struct Arguments {
    /// Few links, few seeds, five seconds each.
    #[arg(long)]
    quick: bool,
    /// Seconds of each run.
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Runs of each transport over each link [default: 2 at 2 Mb/s, 8 at 20 Mb/s]. BBR at 10 % loss and more gets eight at least.
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// Runs at once [default: 12 at 2 Mb/s, 6 at 20 Mb/s].
    #[arg(long, value_name = "N")]
    parallel: Option<NonZeroUsize>,
    /// Only transports with this in their name.
    #[arg(long, value_name = "TEXT")]
    peer: Option<String>,
    /// Only links with this in their name, such as "loss 5" or "20 Mb/s, 25 ms".
    #[arg(long, value_name = "TEXT")]
    link: Option<String>,
    /// Only one part.
    #[arg(long)]
    part: Option<Part>,
    /// Folder for runs.csv, runs.json, cable.csv and cable.json.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Also write the tables, with how they were made, to this file.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Emulated links.
    Links,
    /// No loss, no limit: goodput, and processor time.
    Cable,
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
        (false, seconds) => {
            let effort = arguments.seeds.map_or(Effort::AsPlanned, Effort::Seeds);
            Plan::full(seconds.unwrap_or(12.0), effort)
        }
    };
    if let Some(text) = &arguments.link {
        let names = |text: &str, name: String| name.contains(text);
        plan.conditions.retain(|c| names(text, c.name()) || names(text, c.link_name()));
    }
    let mut peers = peers::all();
    if let Some(text) = &arguments.peer {
        peers.retain(|peer| peer.name().contains(text.as_str()));
    }
    let mut text = String::new();
    if arguments.part != Some(Part::Cable) {
        let runs = run::all(&peers, &plan, arguments.parallel)?;
        text +=
            &format!("{}\n{}\n{}\n", about(&plan, arguments)?, table::lateness(&runs), table::tables(&runs));
        write_runs(arguments, "runs", &runs)?;
    }
    if arguments.part != Some(Part::Links) {
        let (seconds, rounds) = if arguments.quick { (1.0, 1) } else { (3.0, 5) };
        let runs = cable::all(&peers, seconds, rounds)?;
        text += &format!("{}\n{}\n", about_cable(seconds, rounds, &runs), table::cable(&runs));
        write_runs(arguments, "cable", &runs)?;
    }
    let text = text.trim_end();
    println!("{text}");
    if let Some(file) = &arguments.write {
        fs::write(
            file,
            format!(
                "# Transports over one link: the tables\n\nMade by `make versus-transports`.\n\n{text}\n"
            ),
        )
        .map_err(|e| format!("{}: {e}", file.display()))?;
    }
    Ok(())
}

fn about(plan: &Plan, arguments: &Arguments) -> Result<String, Failure> {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let bottleneck = |bottleneck: &Bottleneck| {
        let parallel = arguments.parallel.map_or(bottleneck.parallel, NonZeroUsize::get);
        let seeds = arguments.seeds.unwrap_or(bottleneck.seeds);
        let rate = bottleneck.rate / 1_000_000;
        format!("{rate} Mb/s, queue {} packets, {seeds} seeds, {parallel} at once", bottleneck.queue)
    };
    let erratic = if arguments.quick { "one seed" } else { "eight seeds at least" };
    Ok(format!(
        "Links: the same rate both ways, MTU 1500 ({}; {}). Losses, bursts (mean 4 packets) and reordering (+30 ms) \
         affect data only, unless ACKs are named. Runs of {} s from connect; {erratic} of erratic transports at 10 % loss and \
         more; medians, and the range where it exceeds a tenth. Kernel {}; its TCP uses {} by default, and each socket here \
         sets its own.\n",
        bottleneck(&SLOW),
        bottleneck(&FAST),
        plan.seconds,
        kernel.trim(),
        peers::default_congestion_control()?,
    ))
}

fn about_cable(seconds: f64, rounds: u32, runs: &[Fast]) -> String {
    let loads = || runs.iter().map(|run| run.load);
    let [low, high] = [loads().reduce(f64::min), loads().reduce(f64::max)].map(Option::unwrap_or_default);
    format!(
        "Cable: two hosts joined by a pair of veth interfaces, MTU 1500, no loss, no limit. {rounds} runs of {seconds} s \
         from connect, one at a time. Medians, and the range where it exceeds a tenth. GSO bursts: a veth as the kernel sets it \
         up, with segmentation offload. Up to 64 KiB of TCP, or of a UDP sender with UDP_SEGMENT, cross as one. Single packets: \
         each crosses alone. Processor time: of all threads of a host, user and system, from begin to end. The kernel's work \
         on a packet in transit is charged to its sender, or to ksoftirqd. Load average during the measurement: {low} to \
         {high}, on {} processors.\n",
        std::thread::available_parallelism().map_or(0, usize::from),
    )
}

/// Writes all runs, if there is an output folder.
fn write_runs<T: Serialize>(arguments: &Arguments, name: &str, runs: &[T]) -> Result<(), Failure> {
    arguments.out.as_deref().map_or(Ok(()), |folder| output::write(folder, name, runs))
}
