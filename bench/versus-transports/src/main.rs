//! Measures transports over the same links, in real time between two network namespaces: over emulated links that are
//! constant or change, alone or in crowds, and over a fast one. Needs root.

mod cable;
mod peers;
mod plan;
mod run;
mod table;
mod variation;

use cable::Fast;
use clap::Parser;
use hopline_link::Opportunities;
use peer::{Failure, Peer};
use plan::{Condition, Effort, Part, Plan};
use serde::Serialize;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use versus::{cpu, output, peer, talk};

/// Goodput, cost and delay of transports over emulated links, and what they cost where nothing holds them back.
#[derive(Parser)]
struct Arguments {
    /// Few links, one seed, five to eight seconds each.
    #[arg(long)]
    quick: bool,
    /// Seconds of each run.
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Runs of each transport over each link [default: 2 at 2 Mb/s, 8 at 20 Mb/s, 5 over varying links, 3 of crowds].
    /// BBR at 10 % loss and more gets eight at least.
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// Runs at once [default: 12 at 2 Mb/s, 6 at 20 Mb/s, 3 crowds].
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
    /// Trace of mahimahi for a varying link [default: a synthetic one, which --out writes as cellular.trace].
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Folder for the runs of each part: {runs,varying,crowds,cable}.{csv,json}.
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
    let mut plan = if arguments.quick {
        Plan::quick(arguments.seconds)
    } else {
        Plan::full(arguments.seconds, arguments.seeds.map_or(Effort::AsPlanned, Effort::Seeds))
    };
    if let Some(text) = &arguments.link {
        let names = |text: &str, name: String| name.contains(text);
        plan.conditions.retain(|c| names(text, c.name()) || names(text, c.link_name()));
    }
    let mut peers = peers::all();
    if let Some(text) = &arguments.peer {
        peers.retain(|peer| peer.name().contains(text.as_str()));
    }
    let is_measured = |part| arguments.part.is_none_or(|only| only == part);
    let mut text = String::new();
    for part in [Part::Links, Part::Varying, Part::Crowds].into_iter().filter(|&part| is_measured(part)) {
        text += &emulated(part, &plan, &peers, arguments)?;
    }
    if is_measured(Part::Cable) {
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

/// Measures a part over emulated links. Returns its tables and how they were made.
fn emulated(
    part: Part,
    plan: &Plan,
    peers: &[Box<dyn Peer>],
    arguments: &Arguments,
) -> Result<String, Failure> {
    let conditions = plan.links_of(part);
    if conditions.is_empty() {
        return Ok(String::new());
    }
    let trace = trace(arguments)?;
    let runs = run::all(peers, plan, &conditions, &trace, arguments.parallel)?;
    let (name, about) = match part {
        Part::Varying => ("varying", about_varying(plan, &conditions, &trace, arguments)?),
        Part::Crowds => ("crowds", about_crowds(plan, &conditions, arguments)?),
        Part::Links | Part::Cable => ("runs", about_links(plan, &conditions, arguments)?),
    };
    write_runs(arguments, name, &runs)?;
    Ok(format!("{about}\n{}\n{}\n", table::lateness(&runs), table::tables(part, &runs)))
}

/// Returns the trace of the varying link that has one. Writes the synthetic one, if there is an output folder.
fn trace(arguments: &Arguments) -> Result<Arc<Opportunities>, Failure> {
    let (name, text) = match (&arguments.trace, &arguments.out) {
        (Some(file), _) => {
            let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
            (file.display().to_string(), text)
        }
        (None, folder) => {
            let text = variation::cellular_trace();
            if let Some(folder) = folder {
                fs::create_dir_all(folder)
                    .and_then(|()| fs::write(folder.join("cellular.trace"), &text))
                    .map_err(|e| format!("{}: {e}", folder.display()))?;
            }
            ("the synthetic trace".to_owned(), text)
        }
    };
    Ok(Arc::new(text.parse().map_err(|e| format!("{name}: {e}"))?))
}

/// Returns rate, queue, seeds and concurrency of the bottlenecks.
fn about_bottlenecks(plan: &Plan, conditions: &[Condition], arguments: &Arguments) -> String {
    let bottleneck = |group: &[Condition]| {
        let bottleneck = group[0].bottleneck;
        let parallel = arguments.parallel.map_or(bottleneck.parallel, NonZeroUsize::get);
        let (rate, seeds) = (bottleneck.rate / 1_000_000, plan.seeds(bottleneck));
        format!("{rate} Mb/s, queue {} packets, {seeds} seeds, {parallel} at once", bottleneck.queue)
    };
    let groups = conditions.chunk_by(|a, b| a.bottleneck == b.bottleneck).map(bottleneck);
    groups.collect::<Vec<_>>().join("; ")
}

fn about_links(plan: &Plan, conditions: &[Condition], arguments: &Arguments) -> Result<String, Failure> {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let erratic = if arguments.quick { "three seeds" } else { "eight seeds at least" };
    Ok(format!(
        "Links: the same rate both ways, MTU 1500 ({}). Losses, bursts (mean 4 packets) and reordering (+30 ms) \
         affect data only, unless ACKs are named. Runs of {} s from connect; {erratic} of erratic transports at 10 % loss and \
         more; medians, and the range where it exceeds a tenth. Kernel {}; its TCP uses {} by default, and each socket here \
         sets its own.\n",
        about_bottlenecks(plan, conditions, arguments),
        plan.seconds(conditions[0].bottleneck),
        kernel.trim(),
        peers::default_congestion_control()?,
    ))
}

fn about_varying(
    plan: &Plan,
    conditions: &[Condition],
    trace: &Opportunities,
    arguments: &Arguments,
) -> Result<String, Failure> {
    let name = arguments.trace.as_deref().and_then(Path::file_name);
    let name = name.map_or("a synthetic cellular one".into(), |name| name.to_string_lossy());
    Ok(format!(
        "Varying links: MTU 1500, no losses ({}). 25 ms one way, unless named. Steps: every 2 s. Random walk: between 2 and \
         20 Mb/s, a step each 200 ms, the same in all runs. Trace: {name}, {:.1} Mb/s in the mean. Outages lose all packets: \
         0.5 s at 4, 8, 12 s and so on, or 3 s at 6 s. Delay: one step at 8 s. Rates change in the direction of data, the rest \
         both ways. Runs of {} s from connect; medians, and the range where it exceeds a tenth. Load average at the end: \
         {}, on {} processors.\n",
        about_bottlenecks(plan, conditions, arguments),
        trace.mean_rate() / 1e6,
        plan.seconds(conditions[0].bottleneck),
        load()?,
        processors(),
    ))
}

fn about_crowds(plan: &Plan, conditions: &[Condition], arguments: &Arguments) -> Result<String, Failure> {
    Ok(format!(
        "Crowds: flows of one transport that begin together, 25 ms one way, MTU 1500, no losses. Bottlenecks: {}. Runs of {} s from connect; \
         medians, and the range where it exceeds a tenth. Load average at the end: {}, on {} processors.\n",
        about_bottlenecks(plan, conditions, arguments),
        plan.seconds(conditions[0].bottleneck),
        load()?,
        processors(),
    ))
}

/// Returns the load average of the last minute.
fn load() -> Result<String, Failure> {
    let load = fs::read_to_string("/proc/loadavg")?;
    Ok(load.split_whitespace().next().unwrap_or_default().to_owned())
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(0, usize::from)
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
        processors(),
    )
}

/// Writes all runs, if there is an output folder.
fn write_runs<T: Serialize>(arguments: &Arguments, name: &str, runs: &[T]) -> Result<(), Failure> {
    arguments.out.as_deref().map_or(Ok(()), |folder| output::write(folder, name, runs))
}
