//! One run with an observer.

use cpu_time::ThreadTime;
use hopline_core::{Duration, Instant};
use hopline_sim::outcome::Connected;
use hopline_sim::spec::FlowSpec;
use hopline_sim::{NoTrace, Outcome, Spec, Tracer, World};
use std::fmt;
use std::time;

/// Observer of runs. Shared by all threads.
pub trait Observer: Sync {
    /// Reports the planned work, as far as known; called again if it grows.
    fn planned(&self, work: Work) {
        let _ = work;
    }

    /// Reports the end of a run of point number `point`: `virtual_s` seconds of virtual time took `cpu_s`
    /// seconds of CPU time.
    fn ended(&self, point: usize, virtual_s: f64, cpu_s: f64) {
        let _ = (point, virtual_s, cpu_s);
    }

    /// Reports that a run advanced by `by` of virtual time and processed `events` events.
    fn advanced(&self, by: Duration, events: u64);

    /// Returns whether to interrupt.
    fn interrupted(&self) -> bool;
}

/// Amount of work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// Runs of all points together, including those stored already.
    pub runs: u64,
    /// Missing runs.
    pub missing: u64,
    /// Virtual time of all runs, in seconds.
    pub total_s: f64,
    /// Virtual time of stored runs, in seconds.
    pub there_s: f64,
    /// Virtual time of the missing runs of each point, in seconds.
    pub left_s: Vec<f64>,
    /// Number of threads.
    pub jobs: usize,
}

/// Observer that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn advanced(&self, _by: Duration, _events: u64) {}

    fn interrupted(&self) -> bool {
        false
    }
}

/// The watcher interrupted the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Reason for which a run was not completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The watcher interrupted it.
    Interrupted,
    /// The run failed, which is its result: a user-defined algorithm (its name, the time, and its message), or a program.
    Failed(String),
    /// This machine could not make the run, for this reason.
    Machine(String),
    /// User-defined algorithms are not deterministic: a repetition of the run had another result.
    NotRepeatable {
        /// Names of the algorithms.
        machines: Vec<String>,
        /// Fingerprints of the first and the second run.
        fingerprints: [u64; 2],
    },
}

impl From<Interrupted> for RunError {
    fn from(Interrupted: Interrupted) -> Self {
        Self::Interrupted
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => Interrupted.fmt(f),
            Self::Failed(story) | Self::Machine(story) => f.write_str(story),
            Self::NotRepeatable { machines, fingerprints: [first, second] } => write!(
                f,
                "the run came out differently when it was made once more (fingerprints {first:016x} and {second:016x}), so that \
                 it says nothing. Look into {} for random numbers that are not of a generator made from the seed that each \
                 instance is given, for what instances or runs share (globals, attributes of the class), for the time of \
                 day, and for the order of sets",
                machines.join(", ")
            ),
        }
    }
}

impl std::error::Error for RunError {}

/// Passes on interruptions, and no progress.
pub(crate) struct InterruptionsOnly<'a>(pub(crate) &'a dyn Observer);

impl Observer for InterruptionsOnly<'_> {
    fn advanced(&self, _by: Duration, _events: u64) {}

    fn interrupted(&self) -> bool {
        self.0.interrupted()
    }
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Outcome.
    pub outcome: Outcome,
    /// CPU time of the thread, in seconds.
    pub cpu_s: f64,
    /// Wall-clock time, in seconds.
    pub wall_s: f64,
}

impl Run {
    /// Returns the flows of `spec` that never delivered a byte, with the likely reason.
    pub fn never_connected<'a>(
        &'a self,
        spec: &'a Spec,
    ) -> impl Iterator<Item = (&'a FlowSpec, &'static str)> {
        let why = |flow: &FlowSpec| match flow.start < Instant::ZERO + spec.duration {
            true => "not one byte arrived",
            false => "it would have started after the end of the run",
        };
        let flows = spec.flows.iter().zip(&self.outcome.flows);
        let never = flows.filter(|(_, outcome)| outcome.connected == Connected::Never);
        never.map(move |(flow, _)| (flow, why(flow)))
    }
}

/// Virtual time until the watcher is asked again: a second, or less with many events.
struct CheckInterval(Duration);

impl CheckInterval {
    const MAX: Duration = Duration::from_secs(1);
    const MIN: Duration = Duration::from_millis(1);
    /// Target number of events: they take a few milliseconds, so that an interruption is prompt.
    const EVENTS: u64 = 16_384;

    /// Returns the next stride, after this one had so many events. It depends on the run alone.
    fn after(self, events: u64) -> Self {
        let aimed = self.0.as_nanos().saturating_mul(Self::EVENTS) / events.max(1);
        let longest = (self.0 * 2).min(Self::MAX);
        Self(Duration::from_nanos(aimed).clamp(Self::MIN, longest))
    }
}

/// Runs `spec` as run number `number`, traced by `tracer`, which is returned. With user-defined algorithms
/// the run is repeated, untraced, to check that its result is the same.
///
/// # Errors
///
/// [`RunError`]; [`RunError::Interrupted`] within milliseconds of the interruption.
pub fn traced<T: Tracer>(
    spec: &Spec,
    number: u64,
    tracer: T,
    watch: &dyn Observer,
) -> Result<(Run, T), RunError> {
    let (run, tracer) = run_once(spec, number, tracer, watch)?;
    let machines = spec.custom_algorithms();
    if !machines.is_empty() {
        let (again, NoTrace) = run_once(spec, number, NoTrace, &InterruptionsOnly(watch))?;
        let fingerprints = [&run, &again].map(|run| run.outcome.fingerprint);
        if fingerprints[0] != fingerprints[1] {
            let machines = machines.into_iter().map(|machine| machine.name).collect();
            return Err(RunError::NotRepeatable { machines, fingerprints });
        }
    }
    Ok((run, tracer))
}

fn run_once<T: Tracer>(
    spec: &Spec,
    number: u64,
    tracer: T,
    watch: &dyn Observer,
) -> Result<(Run, T), RunError> {
    let (cpu, wall) = (ThreadTime::now(), wall_clock());
    let mut world = World::new(spec, number, tracer);
    let end = Instant::ZERO + spec.duration;
    let (mut now, mut stride) = (Instant::ZERO, CheckInterval(CheckInterval::MIN));
    while now < end {
        if watch.interrupted() {
            return Err(RunError::Interrupted);
        }
        let next = (now + stride.0).min(end);
        let before = world.events();
        world.run_until(next);
        if let Some(failure) = world.failure() {
            return Err(RunError::Failed(failure.describe(spec)));
        }
        let events = world.events() - before;
        watch.advanced(next - now, events);
        (now, stride) = (next, stride.after(events));
    }
    let (outcome, tracer) = world.finish();
    let (cpu_s, wall_s) = (cpu.elapsed().as_secs_f64(), wall.elapsed().as_secs_f64());
    Ok((Run { outcome, cpu_s, wall_s }, tracer))
}

/// Runs `spec` as run number `number`.
///
/// # Errors
///
/// As [`traced`].
pub fn untraced(spec: &Spec, number: u64, watch: &dyn Observer) -> Result<Run, RunError> {
    let (run, NoTrace) = traced(spec, number, NoTrace, watch)?;
    Ok(run)
}

#[expect(clippy::disallowed_methods, reason = "how long a run took is reported, and never fed back into it")]
fn wall_clock() -> time::Instant {
    time::Instant::now()
}
