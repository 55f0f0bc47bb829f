//! Cost estimates of runs, from those that have ended.

use crate::plan::Plan;
use crate::record::CompletedRun;

/// CPU time of the runs of each point, and the number of waiting runs.
#[derive(Debug)]
pub(super) struct Costs {
    points: Vec<Cost>,
    cpu_s: f64,
    virtual_s: f64,
}

#[derive(Clone, Copy, Debug)]
struct Cost {
    /// Virtual time of a run.
    duration_s: f64,
    ended: u64,
    cpu_s: f64,
    waiting: u64,
}

impl Costs {
    pub(super) fn of(plan: &Plan) -> Self {
        let durations = plan.points.iter().map(|point| point.scenario.duration().as_secs_f64());
        let cost = |duration_s| Cost { duration_s, ended: 0, cpu_s: 0.0, waiting: 0 };
        Self { points: durations.map(cost).collect(), cpu_s: 0.0, virtual_s: 0.0 }
    }

    pub(super) fn record(&mut self, point: usize, done: &CompletedRun) {
        let cost = &mut self.points[point];
        (cost.ended, cost.cpu_s) = (cost.ended + 1, cost.cpu_s + done.cpu_s);
        (self.cpu_s, self.virtual_s) = (self.cpu_s + done.cpu_s, self.virtual_s + done.sim_s);
    }

    pub(super) fn add_waiting(&mut self, point: usize) {
        self.points[point].waiting += 1;
    }

    pub(super) fn remove_waiting(&mut self, point: usize) {
        self.points[point].waiting -= 1;
    }

    /// Returns the estimated CPU time of a run of a point: the mean of its earlier runs, or else by the mean
    /// cost of virtual time. `None` if no run has ended.
    pub(super) fn estimate_s(&self, point: usize) -> Option<f64> {
        let cost = self.points[point];
        if cost.ended > 0 {
            return Some(cost.cpu_s / cost.ended as f64);
        }
        (self.virtual_s > 0.0).then(|| cost.duration_s * self.cpu_s / self.virtual_s)
    }

    /// Returns the estimated CPU time of all waiting runs, as far as known.
    pub(super) fn waiting_s(&self) -> f64 {
        let of_point = |(number, cost): (usize, &Cost)| {
            cost.waiting as f64 * self.estimate_s(number).unwrap_or_default()
        };
        self.points.iter().enumerate().map(of_point).sum()
    }
}
