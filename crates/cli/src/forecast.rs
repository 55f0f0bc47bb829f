//! Progress of an experiment, and estimate of the remaining time.
//!
//! Virtual time alone is not sufficient: a second of a network of fifty nodes costs more than one of three. So each point is
//! weighted by the rate of its own runs; a point without finished runs, by the mean rate of the other points.

/// Estimate of the costs of an experiment.
#[derive(Debug, Default)]
pub(crate) struct Forecast {
    points: Vec<Point>,
    /// Virtual time of unfinished runs so far, s.
    running_s: f64,
}

#[derive(Clone, Debug, Default)]
struct Point {
    /// Virtual time of the unfinished runs, s.
    left_s: f64,
    /// Virtual time and CPU time of the finished runs, s.
    finished_s: f64,
    cpu_s: f64,
}

impl Point {
    fn rate(&self) -> Option<f64> {
        (self.finished_s > 0.0).then(|| self.cpu_s / self.finished_s)
    }
}

impl Forecast {
    /// Sets the remaining virtual time of each point.
    pub(crate) fn planned(&mut self, left_s: &[f64]) {
        self.points.resize(left_s.len(), Point::default());
        for (point, &left_s) in self.points.iter_mut().zip(left_s) {
            point.left_s = left_s;
        }
    }

    /// Counts the progress of a run.
    pub(crate) fn advanced(&mut self, by_s: f64) {
        self.running_s += by_s;
    }

    /// Counts a finished run of `point`.
    pub(crate) fn ended(&mut self, point: usize, virtual_s: f64, cpu_s: f64) {
        self.running_s = (self.running_s - virtual_s).max(0.0);
        let Some(point) = self.points.get_mut(point) else { return };
        point.left_s = (point.left_s - virtual_s).max(0.0);
        point.finished_s += virtual_s;
        point.cpu_s += cpu_s;
    }

    /// Returns whether each point with remaining runs has a finished run.
    pub(crate) fn has_rate_of_all_points(&self) -> bool {
        self.points.iter().all(|point| point.left_s == 0.0 || point.finished_s > 0.0)
    }

    /// Returns the remaining CPU time; before any run has finished, the remaining virtual time.
    pub(crate) fn left_s(&self) -> f64 {
        let left: f64 = self.points.iter().map(|p| p.left_s * p.rate().unwrap_or(self.mean_rate())).sum();
        (left - self.running_s * self.mean_rate()).max(0.0)
    }

    /// Returns the remaining time after `elapsed_s` of work; `None` before any progress.
    pub(crate) fn eta_s(&self, elapsed_s: f64) -> Option<f64> {
        let ended_s: f64 = self.points.iter().map(|point| point.cpu_s).sum();
        let done_s = ended_s + self.running_s * self.mean_rate();
        (done_s > 0.0).then(|| elapsed_s * self.left_s() / done_s)
    }

    fn mean_rate(&self) -> f64 {
        let [gone_s, cpu_s] =
            self.points.iter().fold([0.0; 2], |[gone, cpu], p| [gone + p.finished_s, cpu + p.cpu_s]);
        if gone_s > 0.0 { cpu_s / gone_s } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forecast of ten runs of 100 s for each point, of `costs` CPU seconds each.
    fn forecast(costs: &[f64]) -> Forecast {
        let mut forecast = Forecast::default();
        forecast.planned(&vec![1000.0; costs.len()]);
        forecast
    }

    fn run(forecast: &mut Forecast, point: usize, cpu_s: f64) {
        forecast.advanced(100.0);
        forecast.ended(point, 100.0, cpu_s);
    }

    #[test]
    fn each_point_has_its_own_rate() {
        let costs = [1.0, 1.0, 1.0, 17.0];
        let mut forecast = forecast(&costs);
        // One thread: 20 s of work for one run of each point, 200 s in all.
        let mut elapsed_s = 0.0;
        for run_number in 1..=10 {
            for (point, cost) in costs.into_iter().enumerate() {
                run(&mut forecast, point, cost);
                elapsed_s += cost;
                let eta_s = forecast.eta_s(elapsed_s).unwrap();
                if run_number > 1 {
                    assert!((elapsed_s + eta_s - 200.0).abs() < 1e-6, "{elapsed_s} {eta_s}");
                }
            }
        }
        assert_eq!(forecast.left_s(), 0.0);
    }

    #[test]
    fn unfinished_runs_count_in_proportion() {
        let mut forecast = forecast(&[2.0, 2.0]);
        assert_eq!(forecast.eta_s(0.0), None, "nothing has happened");
        forecast.advanced(500.0);
        assert_eq!(forecast.eta_s(10.0), Some(30.0), "a quarter of the virtual time");
        assert!(!forecast.has_rate_of_all_points());
        for _ in 0..4 {
            forecast.ended(0, 100.0, 2.0);
        }
        assert_eq!(forecast.eta_s(10.0), Some(30.0), "as before: the rates are alike");
        forecast.ended(1, 100.0, 2.0);
        assert!(forecast.has_rate_of_all_points());
        assert_eq!(forecast.left_s(), 30.0);
    }

    #[test]
    fn runs_added_later_are_estimated_at_the_known_rates() {
        let mut forecast = forecast(&[1.0, 3.0]);
        for _ in 0..10 {
            run(&mut forecast, 0, 1.0);
            run(&mut forecast, 1, 3.0);
        }
        forecast.planned(&[0.0, 500.0]);
        assert_eq!(forecast.left_s(), 15.0);
        assert_eq!(forecast.eta_s(40.0), Some(15.0));
    }

    #[test]
    fn hostile_numbers_give_finite_estimates() {
        let mut forecast = Forecast::default();
        forecast.ended(7, 100.0, 1.0);
        forecast.planned(&[0.0]);
        forecast.advanced(1e9);
        forecast.ended(0, 0.0, 0.0);
        assert_eq!(forecast.left_s(), 0.0);
        assert_eq!(forecast.eta_s(1.0), Some(0.0));
    }
}
