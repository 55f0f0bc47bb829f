//! Options of `hopline emulate` and `hopline exec`.

use crate::args::ScenarioArgs;
use crate::args::number::{MAX_INTEGER, whole};
use clap::Args as Arguments;
use hopline_lab::animation::Window;
use hopline_lab::engine::KernelOptions;
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Examples:
  hopline emulate scenarios/chain/scenario.toml -- hopline exec n0 -- ping -c 5 n4
  hopline emulate mesh.toml --no-routes -- ./test-my-mesh-daemon.sh
  hopline emulate mesh.toml   # a shell
  hopline emulate programs.toml -o results   # [[program]] tables, for duration_s
  hopline emulate --virtual-time programs.toml   # the same each time, without root
  hopline emulate --virtual-time mesh.toml -- ping -c 5 n4   # at the first node

COMMAND, by default a shell, runs beside the nodes. Without it, a scenario with [[program]] runs for its duration_s. `hopline exec NODE -- PROGRAM` runs a program at a node. Each node is \
a network namespace with the interface air0. The first has the address 10.0.0.1, the second 10.0.0.2, and so on. \
HOPLINE_<NAME> has the address of each node, such as HOPLINE_N0, and at nodes their names resolve. All programs are stopped at the end. Needs /dev/net/tun, and root or user namespaces.
Exit codes: that of COMMAND, or 128 plus the number of the signal that ended it; 1 if a program of the scenario failed, or the emulation was \
late, unless --best-effort is given; 2 wrong input.";

pub(super) const EXEC_EXAMPLES: &str = "\
Examples, in a script that `hopline emulate` runs:
  hopline exec n4 -- iperf3 -s -1 &
  hopline exec n0 -- iperf3 -c n4

Elsewhere it finds the emulation if there is only one, as root.
Exit codes: that of COMMAND; 2 wrong input.";

#[derive(Debug, Arguments)]
pub(crate) struct Emulate {
    #[command(flatten)]
    pub(crate) given: ScenarioArgs,
    /// Number of the run: it selects placement, movement and losses
    #[arg(long, value_name = "N", value_parser = whole::<u64>(0..=MAX_INTEGER), default_value = "1")]
    pub(crate) run: u64,
    /// Nodes that programs can enter; other nodes are simulated alone [default: all]; may be repeated
    #[arg(long, value_name = "NODE,…", value_delimiter = ',')]
    pub(crate) node: Vec<String>,
    /// Give the kernels no routes over several hops: a routing daemon finds them
    #[arg(long)]
    pub(crate) no_routes: bool,
    /// Write results into this directory: the output of programs, manifest.json, flows.csv and series.csv
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the directory of an earlier run
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Write run.pcapng too: every frame of every node
    #[arg(long, requires = "output")]
    pub(crate) pcap: bool,
    /// Write run.pcapng with the frames of these nodes only; may be repeated
    #[arg(long, value_name = "NODE,…", value_delimiter = ',', requires = "output")]
    pub(crate) pcap_node: Vec<String>,
    /// Write an HTML report with the animated map into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Animate this part on the map of the report, instead of the beginning: 20s..40s
    #[arg(long, value_name = "FROM..TO", requires = "report")]
    pub(crate) animate: Option<Window>,
    /// Show the network on its map while it runs, on a page of this machine
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true, default_missing_value = "0")]
    pub(crate) watch: Option<u16>,
    /// Write delay and loss of each link over time to this file, for `hopline link --replay`
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) kernels: VirtualTimeArgs,
    /// Do not fail if the emulation was late
    #[arg(long)]
    pub(crate) best_effort: bool,
    /// Write the counters of each node, the programs, the lateness and the verdict to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Command, with its arguments; in virtual time it runs at the first node [default: a shell, or nothing if the scenario has programs]
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Arguments)]
pub(crate) struct Exec {
    /// Name of the node
    #[arg(value_name = "NODE")]
    pub(crate) node: String,
    /// Process that starts this one: when it ends, COMMAND is terminated
    #[arg(long, value_name = "PID", hide = true)]
    pub(crate) end_with: Option<u32>,
    /// Command, with its arguments
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub(crate) command: Vec<String>,
}

/// Options of Linux kernels in virtual time.
#[derive(Debug, Arguments)]
pub(crate) struct VirtualTimeArgs {
    /// Run a Linux kernel at each node in virtual time: without root, and with the same results each time
    #[arg(long)]
    pub(crate) virtual_time: bool,
    /// In virtual time: folder with the kernel that `make uml` has built [default: hopline/uml in the user's cache]
    #[arg(long, value_name = "FOLDER", requires = "virtual_time")]
    pub(crate) kernel: Option<PathBuf>,
    /// In virtual time: microseconds that a system call takes; other processing takes none [default: 5]
    #[arg(long, value_name = "N", value_parser = whole::<u64>(0..=1_000_000), requires = "virtual_time")]
    pub(crate) syscall_cost_us: Option<u64>,
    /// In virtual time: seconds of real time for which a program may compute without a system call [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = whole::<u64>(1..=86_400), requires = "virtual_time")]
    pub(crate) patience: Option<u64>,
}

impl VirtualTimeArgs {
    /// Returns the options. `no_routes`: kernels get no routes over several hops.
    pub(crate) fn options(&self, no_routes: bool) -> KernelOptions {
        KernelOptions {
            kernel: self.kernel.clone(),
            syscall_cost_us: self.syscall_cost_us,
            patience_s: self.patience,
            no_routes,
        }
    }
}

/// Options of a sweep over Linux kernels.
#[derive(Debug, Arguments)]
pub(crate) struct SweepOverKernels {
    #[command(flatten)]
    pub(crate) kernels: VirtualTimeArgs,
    /// In virtual time: give the kernels no routes over several hops, since a routing daemon finds them
    #[arg(long, requires = "virtual_time")]
    pub(crate) no_routes: bool,
}

impl SweepOverKernels {
    /// Returns whether runs over Linux kernels are asked for.
    pub(crate) fn virtual_time(&self) -> bool {
        self.kernels.virtual_time
    }
}
