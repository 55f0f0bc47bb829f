//! `hopline kernel-run`: a run of a sweep over Linux kernels, in a process of its own.

use super::results::{Cost, Emulated};
use super::virtual_time::{self, Input, failed, failures};
use super::{check, programs};
use crate::console;
use crate::net::clock;
use crate::problems::Failure;
use hopline_core::{Duration as VirtualDuration, Instant, NodeId};
use hopline_emulate::{Observation, Observers as Tracer};
use hopline_lab::engine::{KernelOptions, Reply, Request};
use hopline_lab::plan::Keep;
use hopline_lab::record::CompletedRun;
use hopline_lab::remote::RemoteError;
use hopline_lab::{Scenario, Spec};
use hopline_scenario::Program;
use hopline_virtual_time::Error;
use hopline_virtual_time::kernel::KernelImage;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write};
use std::time::Duration;

/// Real time between two replies on how far the run is.
const INTERVAL: Duration = Duration::from_millis(100);

/// Answers the request on standard input.
pub(crate) fn execute() -> Result<(), Failure> {
    console::catch_interrupts()?;
    let mut bytes = Vec::new();
    let failed = |e: io::Error| Failure::Other(format!("reading a request of a sweep: {e}"));
    io::stdin().read_to_end(&mut bytes).map_err(failed)?;
    let Request { scenarios, options, run } = Request::from_bytes(&bytes).map_err(remote)?;
    let kernel = virtual_time::find_kernel(options.kernel.as_deref())?;
    let answer = match run {
        None => {
            for point in 0..scenarios.points() {
                Network::of(&scenarios.scenario(point).map_err(remote)?, 1)?;
            }
            Reply::Checked(kernel.version().to_owned())
        }
        Some(run) => {
            let network = Network::of(&scenarios.scenario(0).map_err(remote)?, run)?;
            let done = network.emulate(run, kernel, scenarios.keep(), &options)?;
            done.map_or_else(Reply::Failed, |done| Reply::Done(Box::new(done)))
        }
    };
    reply(&answer).map_err(Failure::Stdout)
}

fn remote(error: RemoteError) -> Failure {
    Failure::Other(error.to_string())
}

/// A network that can be emulated.
struct Network {
    spec: Spec,
    programs: Vec<Program>,
    /// Nodes with kernels.
    at: BTreeSet<NodeId>,
}

impl Network {
    fn of(scenario: &Scenario, run: u64) -> Result<Self, Failure> {
        let spec = scenario.spec(run)?;
        let programs = scenario.programs(run)?;
        let at = check::network(&spec, &[], true, &programs)?;
        if programs.is_empty() {
            return Err(virtual_time::no_program("").into());
        }
        programs::check(&programs)?;
        virtual_time::check_programs(&programs)?;
        Ok(Self { spec, programs, at })
    }

    /// Returns the run, or the reason that it counts as failed. Any other failure is one of this machine.
    fn emulate(
        self,
        run: u64,
        kernel: KernelImage,
        keep: Keep,
        options: &KernelOptions,
    ) -> Result<Result<CompletedRun, String>, Failure> {
        let Self { spec, programs, at } = self;
        let input = Input { run, at, programs: &programs, command: None };
        let (_folder, settings) = virtual_time::settings(&spec, input, kernel, options)?;
        let tracer = Tracer::new(&spec, Observation::default()).map_err(failed("observing the network"))?;
        let progress = RefCell::new(Progress { next: clock::now() + INTERVAL });
        let proceed = |now| !console::interrupted() && progress.borrow_mut().report(now).is_ok();
        let ended = match virtual_time::emulate(&spec, &settings, tracer, programs, &proceed) {
            Ok(ended) => ended,
            Err(Error::Interrupted) => return Err(Failure::Interrupted("interrupted")),
            Err(error @ Error::Network(_)) => return Ok(Err(error.to_string())),
            Err(error) => return Err(Failure::Other(error.to_string())),
        };
        if let Some(failure) = failures(&ended.programs, &ended.report, true).next() {
            return Ok(Err(failure));
        }
        let cost = Cost { cpu: ended.cost.cpu + children_cpu_time(), ..ended.cost };
        let emulated = Emulated::of(&spec, run, &ended.network, cost);
        Ok(Ok(emulated.into_record(run, keep, spec.flows.len())))
    }
}

/// Replies on how far the run is.
struct Progress {
    next: std::time::Instant,
}

impl Progress {
    fn report(&mut self, now: Instant) -> io::Result<()> {
        let real = clock::now();
        if real < self.next {
            return Ok(());
        }
        self.next = real + INTERVAL;
        reply(&Reply::Reached(now.as_nanos()))
    }
}

/// Returns the CPU time of all processes that have ended: of the kernels.
fn children_cpu_time() -> VirtualDuration {
    // Fields of proc(5), behind the name in parentheses: 14 and 15 from there are those of children, in ticks of 10 ms.
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    VirtualDuration::from_millis(10 * ticks)
}

fn reply(reply: &Reply) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply).expect("a reply is made of strings and numbers");
    line.push(b'\n');
    io::stdout().write_all(&line).and_then(|()| io::stdout().flush())
}
