//! One run, watched from outside.

use cpu_time::ThreadTime;
use hopline_core::{Duration, Instant};
use hopline_sim::outcome::Connected;
use hopline_sim::spec::FlowSpec;
use hopline_sim::{NoTrace, Outcome, Spec, Tracer, World};
use std::fmt;
use std::time;

/// Someone who watches runs. Shared by all threads.
pub trait Watch: Sync {
    /// This is to be done, as far as is known now; called again when it turns out to be more.
    fn planned(&self, work: Work) {
        let _ = work;
    }

    /// A run of point number `point` ended: `virtual_s` seconds of virtual time took `cpu_s` seconds of CPU time.
    fn ended(&self, point: usize, virtual_s: f64, cpu_s: f64) {
        let _ = (point, virtual_s, cpu_s);
    }

    /// A run advanced by `by` of virtual time and processed `events` events.
    fn advanced(&self, by: Duration, events: u64);

    /// Whether to give up.
    fn interrupted(&self) -> bool;
}

/// How much there is to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// Runs of all points together, those included that are there already.
    pub runs: u64,
    /// Runs that are missing.
    pub missing: u64,
    /// Virtual time of all runs, in seconds.
    pub total_s: f64,
    /// Virtual time of those that are there already, in seconds.
    pub there_s: f64,
    /// Virtual time of the runs that are missing of each point, in seconds.
    pub left_s: Vec<f64>,
    /// Threads.
    pub jobs: usize,
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn advanced(&self, _by: Duration, _events: u64) {}

    fn interrupted(&self) -> bool {
        false
    }
}

/// The watcher asked to give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Why a run did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The watcher asked to give up.
    Interrupted,
    /// A machine of somebody's own failed: which, when, and all that it says.
    Failed(String),
    /// Machines of somebody's own: the same run came out differently when it was made once more.
    NotRepeatable {
        /// Their names.
        machines: Vec<String>,
        /// Fingerprints of the first and of the second time.
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
            Self::Failed(story) => f.write_str(story),
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

/// Passes on a wish to give up, and no progress.
pub(crate) struct Quietly<'a>(pub(crate) &'a dyn Watch);

impl Watch for Quietly<'_> {
    fn advanced(&self, _by: Duration, _events: u64) {}

    fn interrupted(&self) -> bool {
        self.0.interrupted()
    }
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct Run {
    /// What came of it.
    pub outcome: Outcome,
    /// CPU time of the thread, in seconds.
    pub cpu_s: f64,
    /// Time that passed, in seconds.
    pub wall_s: f64,
}

impl Run {
    /// The flows of `spec` that never delivered a byte, and why that may be.
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

/// How far a run goes before its watcher is asked again: a second of virtual time, or less where much happens in it.
struct Stride(Duration);

impl Stride {
    const LONGEST: Duration = Duration::from_secs(1);
    const SHORTEST: Duration = Duration::from_millis(1);
    /// So many events take some milliseconds: whoever wants to give up does not wait for more.
    const EVENTS: u64 = 16_384;

    /// The next one, after this one had so many events. It follows from the run alone.
    fn after(self, events: u64) -> Self {
        let aimed = self.0.as_nanos().saturating_mul(Self::EVENTS) / events.max(1);
        let longest = (self.0 * 2).min(Self::LONGEST);
        Self(Duration::from_nanos(aimed).clamp(Self::SHORTEST, longest))
    }
}

/// Runs `spec` as run number `number`, traced by `tracer`, which comes back. With machines of somebody's own it is run once more,
/// untraced, to see whether the same comes of it.
///
/// # Errors
///
/// [`RunError`]; [`RunError::Interrupted`] within milliseconds of being told so.
pub fn traced<T: Tracer>(
    spec: &Spec,
    number: u64,
    tracer: T,
    watch: &dyn Watch,
) -> Result<(Run, T), RunError> {
    let (run, tracer) = once(spec, number, tracer, watch)?;
    let machines = spec.own_machines();
    if !machines.is_empty() {
        let (again, NoTrace) = once(spec, number, NoTrace, &Quietly(watch))?;
        let fingerprints = [&run, &again].map(|run| run.outcome.fingerprint);
        if fingerprints[0] != fingerprints[1] {
            let machines = machines.into_iter().map(|machine| machine.name).collect();
            return Err(RunError::NotRepeatable { machines, fingerprints });
        }
    }
    Ok((run, tracer))
}

fn once<T: Tracer>(spec: &Spec, number: u64, tracer: T, watch: &dyn Watch) -> Result<(Run, T), RunError> {
    let (cpu, wall) = (ThreadTime::now(), wall_clock());
    let mut world = World::new(spec, number, tracer);
    let end = Instant::ZERO + spec.duration;
    let (mut now, mut stride) = (Instant::ZERO, Stride(Stride::SHORTEST));
    while now < end {
        if watch.interrupted() {
            return Err(RunError::Interrupted);
        }
        let next = (now + stride.0).min(end);
        let before = world.events();
        world.run_until(next);
        if let Some(failure) = world.failure() {
            return Err(RunError::Failed(failure.text(spec)));
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
pub fn untraced(spec: &Spec, number: u64, watch: &dyn Watch) -> Result<Run, RunError> {
    let (run, NoTrace) = traced(spec, number, NoTrace, watch)?;
    Ok(run)
}

#[expect(clippy::disallowed_methods, reason = "how long a run took is reported, and never fed back into it")]
fn wall_clock() -> time::Instant {
    time::Instant::now()
}
