//! Arguments of the command line.

pub(crate) mod number;

use self::number::{MAX_INTEGER, count, whole};
use crate::{file_kinds, net};
use clap::builder::PossibleValuesParser;
use clap::{Args as Arguments, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use hopline_lab::animation::Window;
use hopline_lab::file_kinds::FILE_KINDS;
use std::num::NonZeroU16;
use std::path::PathBuf;

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 wrong usage or wrong input, 130 interrupted.";

const RUN_EXAMPLES: &str = "\
Examples:
  hopline run scenarios/chain/scenario.toml
  hopline run scenarios/chain/scenario.toml --set tcp.window=2 --set seed=7
  hopline run scenarios/walk/scenario.toml -o walk --pcap --ns2-trace --flowmon
  hopline run scenarios/walk/scenario.toml --report walk.html --animate 20s..40s
  hopline run scenarios/chain/scenario.toml --json | jq .aggregate_goodput_bps

Any key of the scenario can be set; a number picks an entry of a list: --set flow.0.start_s=2.
Exit codes: 0 done, 1 failed, 2 wrong usage or wrong input, 130 interrupted.";

const COMPARE_EXAMPLES: &str = "\
Examples:
  hopline compare scenarios/chain/scenario.toml
  hopline compare scenarios/chain/scenario.toml --vary tcp.window=2,8 --runs 20
  hopline compare S.toml --vary transport=tcp-newreno,tcp-sack \\
    --vary tcp.window=4,32 --json
  hopline compare scenarios/hidden/scenario.toml --animate 20s..22s

Several --vary give every combination; the first variant is the baseline. Without --vary the scenario's \
[sweep] is used. Run i of every variant meets the same world (seed, run i), so gains are taken within pairs. \
An HTML report with charts is written beside the table, into hopline-NAME.html unless --report or -o says \
otherwise.
Exit codes: 0 done, 1 failed, 2 wrong usage or wrong input, 130 interrupted.";

const SCHEMA_EXAMPLES: &str = "\
Example:
  hopline schema > scenario.schema.json

With the line `#:schema scenario.schema.json` at the top of a scenario, editors that know TOML schemas (taplo, \
Even Better TOML) complete its keys, explain them and mark mistakes as they are typed.";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  hopline completions bash > ~/.local/share/bash-completion/completions/hopline
  hopline completions zsh > ~/.zfunc/_hopline
  hopline completions fish > ~/.config/fish/completions/hopline.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  hopline man | man -l -
  hopline man -o ~/.local/share/man/man1";
const SWEEP_EXAMPLES: &str = "\
Examples:
  hopline sweep plan.toml -o results/plan
  hopline sweep papers/tpa/chain.toml -o results/chain --quick
  hopline sweep --virtual-time plan.toml -o results   # [[program]] tables over Linux kernels

Stopped at any moment, even by SIGKILL, the same command goes on where it was. A run that fails is recorded \
and does not stop the rest. The directory gets tables (CSV and Parquet), a manifest and report.html.
Exit codes: 0 done, 1 failed (a failed run included), 2 wrong usage or wrong input, 130 interrupted.";

const PACKETDRILL_EXAMPLES: &str = "\
Examples:
  hopline packetdrill crates/cli/tests/packetdrill
  hopline packetdrill ~/packetdrill/gtests/net/tcp --summary
  hopline packetdrill fast-retransmit.pkt --preset modern --json

A script is a timed dialogue: system calls, segments of the peer, segments that the endpoint has to send. \
A script that needs a feature the endpoint lacks is not applicable, and its feature is named.
Exit codes: 0 all that apply passed, 1 a script failed, 2 wrong usage or wrong input.";

const REPORT_EXAMPLES: &str = "\
Examples:
  hopline report results/plan
  hopline report results/plan --json | jq '.variants[].goodput_bps'

Works on what there is: a sweep that has not come to its end is reported as far as it is.
Exit codes: 0 done, 1 failed, 2 wrong usage or wrong input.";

const REPRODUCE_EXAMPLES: &str = "\
Examples:
  hopline reproduce --list
  hopline reproduce tpa chain --quick
  hopline reproduce tpa -o results/tpa

Runs the plans of a paper and puts what it claims beside what was measured. With -o it is kept and goes on \
after an interruption, a directory for each figure. --quick runs fewer runs, and says so wherever the numbers \
stand.
Exit codes: 0 done, whatever the verdicts; 1 failed, 2 wrong usage or wrong input, 130 interrupted.";

const EVALUATE_EXAMPLES: &str = "\
Examples:
  hopline evaluate tpa-wide
  hopline evaluate tpa-wide --section 5.1.2 --section crowd-32 --runs 10
  hopline evaluate cubic@tcp.initial_window=32 --json | jq '.laws[-1].networks'
  hopline evaluate --list

Runs each algorithm on the networks that RFC 9743 (BCP 133) asks for, beside CUBIC, BBR and BBRv3, and compares \
the runs with stated requirements. A name is that of a transport (tcp- may be left out), reno, or \
NAME@KEY=VALUE,… with keys of scenarios. Python and Rust programs can evaluate their own algorithms.
Exit codes: 0 done, whatever the verdicts; 1 failed, or with --strict a requirement missed; 2 wrong usage or wrong \
input; 130 interrupted.";

const MOVEMENTS_EXAMPLES: &str = "\
Examples:
  hopline movements scenarios/walk/scenario.toml -o walk.ns_movements
  hopline movements scenarios/random-400/scenario.toml --run 3 | head

Prints what ns-2, ns-3 (Ns2MobilityHelper) and BonnMotion read, and what mobility.model = \"ns2\" reads back. \
Node i of the file is the i-th wireless node; comments give other names.
Exit codes: 0 done, 1 failed, 2 wrong usage or wrong input.";

/// Reliable transfer over lossy, multi-hop wireless networks: simulate, compare, decide.
#[derive(Debug, Parser)]
#[command(name = "hopline", version, after_help = EXIT_CODES, max_term_width = 110)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a scenario once
    #[command(after_help = RUN_EXAMPLES)]
    Run(Run),
    /// Compare variants of a scenario over paired runs, on all cores
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(Compare),
    /// Print the JSON Schema of a kind of file, for editors
    #[command(after_help = SCHEMA_EXAMPLES)]
    Schema(Schema),
    /// Check this machine: available features, their purpose, and how to get missing ones
    Doctor(Doctor),
    /// Print the completion script of a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(Completions),
    /// Print the manual page, or write the pages of all commands
    #[command(after_help = MAN_EXAMPLES)]
    Man(Man),
    /// Write the movements of a run for ns-2, ns-3 and BonnMotion
    #[command(after_help = MOVEMENTS_EXAMPLES)]
    Movements(Movements),
    /// Run a plan over many parameters, resumable
    #[command(after_help = SWEEP_EXAMPLES)]
    Sweep(Sweep),
    /// Rebuild the tables and the HTML report of stored results
    #[command(after_help = REPORT_EXAMPLES)]
    Report(Report),
    /// Reproduce the figures of a paper: its claims beside our measurements
    #[command(after_help = REPRODUCE_EXAMPLES)]
    Reproduce(Reproduce),
    /// Evaluate congestion control algorithms by RFC 9743, beside CUBIC, BBR and BBRv3
    #[command(after_help = EVALUATE_EXAMPLES)]
    Evaluate(Evaluate),
    /// Run scripts of packetdrill against the TCP endpoint, in virtual time
    #[command(after_help = PACKETDRILL_EXAMPLES)]
    Packetdrill(Packetdrill),
    #[command(flatten)]
    Net(net::Command),
}

/// Scenario file, and settings that override it.
#[derive(Debug, Arguments)]
pub(crate) struct ScenarioArgs {
    /// The scenario file (TOML)
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: PathBuf,
    /// Override a key of the scenario; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seed of the experiment, instead of that in the file
    #[arg(long, value_name = "N", value_parser = whole::<u64>(0..=MAX_INTEGER), allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
}

/// Common arguments of `run` and `compare`.
#[derive(Debug, Arguments)]
pub(crate) struct CommonArgs {
    #[command(flatten)]
    pub(crate) given: ScenarioArgs,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress on stderr
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// More details: airtime and drops of each node (run), every run (compare)
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// Selection of a metric and a constraint.
#[derive(Debug, Arguments)]
pub(crate) struct ObjectiveArgs {
    /// Compare by this metric, instead of that in the file: goodput, "response_p95 of http", "delay_p95 of CLASS" …
    #[arg(long, value_name = "METRIC [of WHO]")]
    pub(crate) metric: Option<String>,
    /// Constraint that a variant must meet as well: "delay_p95 < 50 ms"
    #[arg(long, value_name = "METRIC < LIMIT")]
    pub(crate) bound: Option<String>,
}

impl ObjectiveArgs {
    /// Returns the selection as a question of the scenario.
    pub(crate) fn objective(&self) -> hopline_scenario::Objective {
        hopline_scenario::Objective::of_options(self.metric.as_deref(), self.bound.as_deref())
    }
}

#[derive(Debug, Arguments)]
#[command(group(clap::ArgGroup::new("directories").args(["output", "qlog"]).multiple(true)))]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Number of the run: equal seed and run give equal results
    #[arg(long, value_name = "N", default_value = "1")]
    #[arg(value_parser = whole::<u64>(1..=u64::MAX), allow_negative_numbers = true)]
    pub(crate) run: u64,
    /// Write manifest.json, flows.csv and series.csv into this directory
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the directory of an earlier run
    #[arg(long, requires = "directories")]
    pub(crate) force: bool,
    /// Write an HTML report of the run into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Animate this part of the run on the map of the report, instead of that in the file: 20s..40s
    #[arg(long, value_name = "FROM..TO", requires = "report")]
    pub(crate) animate: Option<Window>,
    /// Write run.pcapng too: every frame of every node
    #[arg(long, requires = "output")]
    pub(crate) pcap: bool,
    /// Write run.pcapng with the frames of these nodes only; may be repeated
    #[arg(long, value_name = "NODE,…", value_delimiter = ',', requires = "output")]
    pub(crate) pcap_node: Vec<String>,
    /// Write run.tr too: a trace in ns-2's wireless format
    #[arg(long, requires = "output")]
    pub(crate) ns2_trace: bool,
    /// Write flowmon.xml too: each flow's packets as ns-3's FlowMonitor has them
    #[arg(long, requires = "output")]
    pub(crate) flowmon: bool,
    /// Write qlog files for qvis into this directory: one for each end of each TCP, TPA or TPA-wide flow
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,
}

#[derive(Debug, Arguments)]
pub(crate) struct Movements {
    #[command(flatten)]
    pub(crate) given: ScenarioArgs,
    /// Number of the run; random movement differs between runs
    #[arg(long, value_name = "N", default_value = "1")]
    #[arg(value_parser = whole::<u64>(1..=u64::MAX), allow_negative_numbers = true)]
    pub(crate) run: u64,
    /// Write into this file [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

#[derive(Debug, Arguments)]
pub(crate) struct Compare {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    #[command(flatten)]
    pub(crate) asked: ObjectiveArgs,
    /// Vary a key over these values; may be repeated
    #[arg(long, value_name = "KEY=V1,V2,…")]
    pub(crate) vary: Vec<String>,
    /// Paired runs of each variant, instead of the number in the file
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..=1_000_000), allow_negative_numbers = true)]
    pub(crate) runs: Option<u64>,
    /// Number of threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub(crate) jobs: Option<NonZeroU16>,
    /// Keep records, tables and report in this directory; a stopped comparison is resumed from there
    #[arg(short, long, value_name = "DIR", conflicts_with_all = ["report", "no_report"])]
    pub(crate) output: Option<PathBuf>,
    /// Replace the results in the directory of an earlier comparison
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// File of the HTML report [default: hopline-NAME.html; none with --json]
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// No HTML report
    #[arg(long, conflicts_with = "report")]
    pub(crate) no_report: bool,
    /// Animate this part of run 1 of each variant on the map of the report, instead of that in the file: 20s..40s
    #[arg(long, value_name = "FROM..TO", conflicts_with = "no_report")]
    pub(crate) animate: Option<Window>,
}

#[derive(Debug, Arguments)]
pub(crate) struct Sweep {
    /// The plan file (TOML)
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    /// Directory of the results
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) asked: ObjectiveArgs,
    #[command(flatten)]
    pub(crate) effort: PlanArgs,
    #[command(flatten)]
    pub(crate) over: net::SweepOverKernels,
    /// Replace results of another plan or version in the directory
    #[arg(long)]
    pub(crate) force: bool,
}

/// Common arguments of commands that run plans.
#[derive(Debug, Arguments)]
pub(crate) struct PlanArgs {
    /// Override a key of the scenario at every point, also one in `[set]` of the plan, unless variants or axes set it;
    /// may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Few runs of each point, as the plan's quick_runs says
    #[arg(long)]
    pub(crate) quick: bool,
    /// Number of threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub(crate) jobs: Option<NonZeroU16>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress on stderr
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Arguments)]
pub(crate) struct Evaluate {
    /// Algorithms: names of transports, reno, or NAME@KEY=VALUE,…; CUBIC, BBR and BBRv3 run in any case
    #[arg(value_name = "LAW", required_unless_present = "list")]
    pub(crate) laws: Vec<String>,
    /// List the networks and the requirements, and run nothing
    #[arg(long, conflicts_with_all = ["json", "strict", "report"])]
    pub(crate) list: bool,
    /// Only this network, or the networks of this section, such as 5.1; may be repeated
    #[arg(long, value_name = "SECTION")]
    pub(crate) section: Vec<String>,
    /// Number of paired runs of each network [default: 3]
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true, conflicts_with = "quick")]
    pub(crate) runs: Option<NonZeroU16>,
    /// One run of each network
    #[arg(long)]
    pub(crate) quick: bool,
    /// Override a key of every network, such as seed; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Exit code 1 if a given algorithm misses a requirement in every run
    #[arg(long)]
    pub(crate) strict: bool,
    /// File of networks and requirements, instead of those in hopline
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
    /// File of the HTML report [default: hopline-evaluation.html; none with --json]
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Number of threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub(crate) jobs: Option<NonZeroU16>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress on stderr
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Arguments)]
pub(crate) struct Report {
    /// A directory that compare, sweep or reproduce wrote
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    #[command(flatten)]
    pub(crate) asked: ObjectiveArgs,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Arguments)]
pub(crate) struct Reproduce {
    /// The paper; see --list
    #[arg(value_name = "PAPER", required_unless_present = "list")]
    pub(crate) paper: Option<String>,
    /// One of its figures [default: all]
    #[arg(value_name = "FIGURE")]
    pub(crate) figure: Option<String>,
    /// List papers, figures and claims, and run nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// Evaluate only this claim, by its own points, and print the evidence of the verdict
    #[arg(long, value_name = "CLAIM", conflicts_with_all = ["list", "output", "report"])]
    pub(crate) explain: Option<String>,
    /// Evaluate every claim by all readings of details that the paper leaves open; `quick`: fewer runs of the other readings
    #[arg(long, value_name = "RUNS", conflicts_with = "list")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "full")]
    pub(crate) readings: Option<Readings>,
    /// Seed of the random networks of the figure `draws` [default: 1]
    #[arg(long, value_name = "N", requires = "figure")]
    pub(crate) seed: Option<u64>,
    /// Number of the random networks of the figure `draws`
    #[arg(long, value_name = "N", requires = "figure", value_parser = count, allow_negative_numbers = true)]
    pub(crate) networks: Option<NonZeroU16>,
    /// Another algorithm on the random networks of the figure `draws`, as of `hopline evaluate`; may be repeated
    #[arg(long, value_name = "LAW", requires = "figure")]
    pub(crate) law: Vec<String>,
    /// Folder of link rates for the networks of the figure `draws` that vary: traces of mahimahi, or CSV `time_s,rate_mbps`
    #[arg(long, value_name = "FOLDER", requires = "figure")]
    pub(crate) traces: Option<PathBuf>,
    /// Keep the results in this directory
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Replace results of another plan or version in the directory
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// File of the HTML report [default: hopline-PAPER.html, or report.html in the directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Folder of papers, instead of those in hopline
    #[arg(long, value_name = "DIR")]
    pub(crate) papers: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) effort: PlanArgs,
}

/// Number of runs of readings other than the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Readings {
    /// As many as of the first reading
    Full,
    /// As many as with --quick
    Quick,
}

#[derive(Debug, Arguments)]
pub(crate) struct Schema {
    /// The kind of file
    #[arg(value_name = "KIND", default_value = FILE_KINDS[0].name)]
    #[arg(value_parser = PossibleValuesParser::new(file_kinds::names()))]
    pub(crate) kind: String,
}

#[derive(Debug, Arguments)]
pub(crate) struct Packetdrill {
    /// Scripts, and folders that are searched for names ending in .pkt
    #[arg(value_name = "SCRIPT", required = true)]
    pub(crate) scripts: Vec<PathBuf>,
    /// Option of packetdrill, such as mtu=1520, which counts after those of the scripts; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = script_option)]
    pub(crate) option: Vec<(String, String)>,
    /// Parameters of the endpoint, before the commands of a script change them
    #[arg(long, value_enum, default_value_t = PacketdrillPreset::Linux)]
    pub(crate) preset: PacketdrillPreset,
    /// Print the numbers and the reasons only, without a line for each script
    #[arg(long)]
    pub(crate) summary: bool,
    /// Print one JSON object
    #[arg(long, conflicts_with = "summary")]
    pub(crate) json: bool,
}

/// Reads `NAME=VALUE`.
fn script_option(text: &str) -> Result<(String, String), String> {
    match text.trim_start_matches("--").split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("it has to be NAME=VALUE".to_owned()),
    }
}

/// Parameters of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PacketdrillPreset {
    /// A present-day Linux host
    Linux,
    /// The recommendations of the RFCs
    Modern,
    /// BSD/OS around 1995
    Bsd,
}

#[derive(Debug, Arguments)]
pub(crate) struct Doctor {
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Arguments)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: Shell,
}

#[derive(Debug, Arguments)]
pub(crate) struct Man {
    /// Write one page for each command into this directory
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}
