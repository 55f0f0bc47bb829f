//! Progress of a plan with remote execution.

use super::costs::Costs;
use super::records;
use super::{Batch, RemoteError};
use crate::execute::{PointRun, Rounds, Sink};
use crate::plan::Plan;
use crate::record::Record;
use std::collections::{BTreeMap, VecDeque};

/// Target cost of a batch, CPU time in seconds, if there is enough work: transfer is negligible then.
const TARGET_BATCH_S: f64 = 2.0;
/// Maximum number of runs of a batch: its records are held in memory.
const MAX_RUNS: usize = 500;

/// Issues batches, and receives their results.
#[derive(Debug)]
pub struct Scheduler<S> {
    plan: Plan,
    sink: S,
    rounds: Rounds,
    waiting: VecDeque<PointRun>,
    issued: BTreeMap<u64, Vec<PointRun>>,
    batches_issued: u64,
    costs: Costs,
}

/// Next step of the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Make this batch.
    Batch(Batch),
    /// Wait for the results of issued batches.
    Wait,
    /// Nothing is left: each point has this number of runs.
    Done(u64),
}

/// Error of a course.
#[derive(Debug)]
pub enum SchedulerError<E> {
    /// A result does not belong to its batch.
    Remote(RemoteError),
    /// A record could not be stored or read.
    Sink(E),
}

impl<S: Sink> Scheduler<S> {
    /// Creates the course of the runs of `plan` that `sink` does not have.
    pub fn new(plan: Plan, sink: S) -> Self {
        let rounds = Rounds::of(&plan);
        let costs = Costs::of(&plan);
        let waiting = VecDeque::new();
        let mut new = Self { plan, sink, rounds, waiting, issued: BTreeMap::new(), batches_issued: 0, costs };
        new.queue_missing();
        new
    }

    /// Returns the plan.
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the number of stored runs of all points.
    #[must_use]
    pub fn stored_runs(&self) -> u64 {
        let away: usize = self.issued.values().map(Vec::len).sum();
        self.rounds.runs() * self.plan.points.len() as u64 - (self.waiting.len() + away) as u64
    }

    /// Returns the number of runs of each point, as far as known.
    pub const fn runs(&self) -> u64 {
        self.rounds.runs()
    }

    /// Returns the next step for one of `workers` workers.
    ///
    /// # Errors
    ///
    /// If records can no longer be read.
    pub fn next(&mut self, workers: usize) -> Result<Next, S::Error> {
        if self.waiting.is_empty() && self.issued.is_empty() {
            if !self.rounds.next(&self.plan, &mut self.sink)? {
                return Ok(Next::Done(self.rounds.runs()));
            }
            self.queue_missing();
        }
        if self.waiting.is_empty() {
            return Ok(Next::Wait);
        }
        let batch = Batch { id: self.batches_issued, runs: self.take_batch(workers) };
        self.batches_issued += 1;
        self.issued.insert(batch.id, batch.runs.clone());
        Ok(Next::Batch(batch))
    }

    /// Stores the result of batch `id`. Returns its new records: a duplicate counts once.
    ///
    /// # Errors
    ///
    /// [`SchedulerError`]; the batch is issued again then.
    pub fn handle_result(&mut self, id: u64, result: &[u8]) -> Result<Vec<Record>, SchedulerError<S::Error>> {
        let Some(asked) = self.issued.get(&id) else { return Ok(Vec::new()) };
        let records = match records::read(result).and_then(|records| check_records(asked, records)) {
            Ok(records) => records,
            Err(error) => {
                self.requeue(id);
                return Err(SchedulerError::Remote(error));
            }
        };
        self.issued.remove(&id);
        let mut new = Vec::new();
        for record in records {
            if self.sink.has(record.point, record.run) {
                continue;
            }
            if let Ok(done) = &record.result {
                self.costs.record(record.point, done);
            }
            self.sink.store(record.clone()).map_err(SchedulerError::Sink)?;
            new.push(record);
        }
        Ok(new)
    }

    /// Records that batch `id` was lost with its worker: its runs are issued first.
    pub fn requeue(&mut self, id: u64) {
        for run in self.issued.remove(&id).into_iter().flatten().rev() {
            self.costs.add_waiting(run.0);
            self.waiting.push_front(run);
        }
    }

    /// Returns the sink.
    pub fn into_sink(self) -> S {
        self.sink
    }

    /// Queues the missing runs of this round.
    fn queue_missing(&mut self) {
        self.waiting = self.rounds.missing(&self.plan, &self.sink).into();
        for &(point, _) in &self.waiting {
            self.costs.add_waiting(point);
        }
    }

    /// Takes the next runs: enough to reach the target cost, but leaving some for other workers. A single run
    /// while costs are unknown.
    fn take_batch(&mut self, workers: usize) -> Vec<PointRun> {
        let aim_s = TARGET_BATCH_S.min(self.costs.waiting_s() / (2 * workers.max(1)) as f64);
        let (mut batch, mut cost_s) = (Vec::new(), 0.0);
        while let Some(&(point, run)) = self.waiting.front() {
            let one_s = self.costs.estimate_s(point).unwrap_or(f64::INFINITY);
            let full = batch.len() == MAX_RUNS || cost_s + one_s / 2.0 > aim_s;
            if full && !batch.is_empty() {
                break;
            }
            self.waiting.pop_front();
            self.costs.remove_waiting(point);
            batch.push((point, run));
            cost_s += one_s;
        }
        batch
    }
}

/// Returns `records` if they are those of the batch.
fn check_records(asked: &[PointRun], records: Vec<Record>) -> Result<Vec<Record>, RemoteError> {
    let there: Vec<PointRun> = records.iter().map(|record| (record.point, record.run)).collect();
    if there == asked {
        Ok(records)
    } else {
        Err(RemoteError::Damaged(format!("runs {there:?} came back where {asked:?} were asked for")))
    }
}
