//! Metrics that runs over kernels do not have.

use crate::metrics::Level;
use crate::objective::MetricSelection;
use crate::record::PROGRAM_KIND;
use hopline_config::source::Problem;

/// Metrics of several flows that only endpoints know, and packets do not show.
pub const ENDPOINT_METRICS: [&str; 5] =
    ["timeouts", "spurious_timeouts", "spurious_recoveries", "rack_losses", "tail_probes"];

/// Metrics that compare flows with each other. The control connections of programs would count as starved flows.
pub const FAIRNESS_METRICS: [&str; 3] = ["jain", "jain_2s", "goodput_min_bps"];

/// Checks that runs over kernels have a metric. `has_simulated`: they have simulated flows as well.
///
/// # Errors
///
/// If they do not have it.
pub fn check_metric(asked: &MetricSelection, has_simulated: bool) -> Result<(), Problem> {
    let (level, subject, name) = asked.key();
    let of_programs = match level {
        Level::Run => !has_simulated,
        _ => subject == PROGRAM_KIND,
    };
    let is_absent = FAIRNESS_METRICS.contains(&name) && matches!(level, Level::Run | Level::Group)
        || ENDPOINT_METRICS.contains(&name) && of_programs;
    if !is_absent {
        return Ok(());
    }
    Err(Problem::new(format!("runs over kernels have no `{name}`: packets of programs do not show it"))
        .help("ask for one that they show, such as goodput, delay_p95 or rtx_index_pct"))
}
