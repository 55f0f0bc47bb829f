//! `hopline kernel-run`: a run of a sweep over Linux kernels, in a process of its own.

use super::results::{Cost, Emulated};
use super::virtual_time::{self, Asked, cpu_time, failed, failures, network_report, result};
use super::{check, programs};
use crate::console;
use crate::net::children::Children;
use crate::net::clock;
use crate::problems::Failure;
use hopline_core::{Instant, NodeId};
use hopline_emulate::{Observation, Observers as Tracer};
use hopline_lab::engine::{KernelOptions, Reply, Request};
use hopline_lab::plan::Keep;
use hopline_lab::record::CompletedRun;
use hopline_lab::{Scenario, Spec};
use hopline_scenario::Program;
use hopline_virtual_time::kernel::KernelImage;
use hopline_virtual_time::{Error, emulation};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::Duration;

/// Real time between two replies on how far the run is.
const INTERVAL: Duration = Duration::from_millis(100);

/// Answers the request on standard input.
pub(crate) fn execute() -> Result<(), Failure> {
    let request: Request = serde_json::from_reader(io::stdin().lock())
        .map_err(|e| Failure::Other(format!("standard input is no request of a sweep: {e}")))?;
    let remote = |e: hopline_lab::remote::RemoteError| Failure::Other(e.to_string());
    match request.run {
        None => {
            let mut version = String::new();
            for point in 0..request.scenarios.points() {
                let scenario = request.scenarios.scenario(point).map_err(remote)?;
                version = Prepared::of(&scenario, 1, &request.options)?.kernel.version().to_owned();
            }
            reply(&Reply::Checked(version)).map_err(Failure::Stdout)
        }
        Some(run) => {
            let scenario = request.scenarios.scenario(0).map_err(remote)?;
            console::catch_interrupts()?;
            let prepared = Prepared::of(&scenario, run, &request.options)?;
            let done = prepared.emulate(run, request.scenarios.keep(), &request.options)?;
            let done = done.map_or_else(Reply::Failed, |done| Reply::Done(Box::new(done)));
            reply(&done).map_err(Failure::Stdout)
        }
    }
}

/// A run that can be emulated.
struct Prepared {
    spec: Spec,
    programs: Vec<Program>,
    /// Nodes with kernels.
    at: BTreeSet<NodeId>,
    kernel: KernelImage,
}

impl Prepared {
    fn of(scenario: &Scenario, run: u64, options: &KernelOptions) -> Result<Self, Failure> {
        let spec = scenario.spec(run)?;
        let programs = scenario.programs(run)?;
        let at = check::network(&spec, &[], true, &programs)?;
        if programs.is_empty() {
            return Err(virtual_time::no_program("").into());
        }
        programs::check(&programs)?;
        virtual_time::check_programs(&programs)?;
        let kernel = virtual_time::find_kernel(options.kernel.as_deref())?;
        Ok(Self { spec, programs, at, kernel })
    }

    /// Returns the run, or the reason that it counts as failed.
    fn emulate(
        self,
        run: u64,
        keep: Keep,
        options: &KernelOptions,
    ) -> Result<Result<CompletedRun, String>, Failure> {
        let Self { spec, programs, at, kernel } = self;
        let asked = Asked { run, at, programs: &programs, command: None };
        let (_folder, settings) = virtual_time::settings(&spec, asked, kernel, options)?;
        // Kernels are killed when they are dropped, and their processes with them.
        let _children = Children::adopt();
        let tracer = Tracer::new(&spec, Observation::default()).map_err(failed("observing the network"))?;
        let began = clock::now();
        let progress = RefCell::new(Progress { next: began + INTERVAL });
        let proceed = |now| !console::interrupted() && progress.borrow_mut().tell(now).is_ok();
        let (report, tracer) = match emulation::run(&spec, &settings, tracer, &proceed) {
            Ok(ran) => ran,
            Err(Error::Interrupted) => return Err(Failure::Interrupted("interrupted")),
            Err(error) => return Ok(Err(error.to_string())),
        };
        let cost = Cost { cpu: cpu_time().into(), wall: began.elapsed().into() };
        let observed = tracer.finish(report.reached);
        let programs: Vec<_> = programs.into_iter().map(|program| result(program, &report)).collect();
        if let Some(failure) = failures(&programs, &report, true).next() {
            return Ok(Err(failure));
        }
        let (network, _no_capture) = network_report(&report, observed);
        Ok(Ok(Emulated::of(&spec, run, &network, cost).into_record(run, keep, spec.flows.len())))
    }
}

/// Replies on how far the run is.
struct Progress {
    next: std::time::Instant,
}

impl Progress {
    fn tell(&mut self, now: Instant) -> io::Result<()> {
        let real = clock::now();
        if real < self.next {
            return Ok(());
        }
        self.next = real + INTERVAL;
        reply(&Reply::Reached(now.as_nanos()))
    }
}

fn reply(reply: &Reply) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply).expect("a reply is made of strings and numbers");
    line.push(b'\n');
    io::stdout().write_all(&line).and_then(|()| io::stdout().flush())
}
