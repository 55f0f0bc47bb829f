//! Rule by which a measurement agrees with a claim.

use super::keys;
use crate::metrics::{self, Level};
use hopline_config::schema::Section;
use hopline_config::source::Problem;

/// Rule by which a measurement agrees with a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Tolerance of a claimed value, in percent of it.
    pub tolerance_pct: f64,
    /// Largest half-width of a confidence interval that can still confirm a claim, in percent of the claimed value; a wider
    /// one is inconclusive.
    pub max_half_width_pct: f64,
    /// Metrics with gains that are judged as logarithms of ratios.
    pub log_ratios: Vec<&'static str>,
}

impl Rule {
    pub(super) fn of(section: &Section<'_>) -> Result<Self, Problem> {
        let metric = |name: &str| match metrics::find(Level::Flow, name) {
            Some(metric) => Ok(metric.name),
            None => metrics::find_at(Level::Run, name, section.origin_of("log_ratios")).map(|m| m.name),
        };
        let log_ratios = section.texts("log_ratios").into_iter().map(metric).collect::<Result<_, _>>()?;
        let (tolerance_pct, max_half_width_pct) =
            (section.get(keys::rule::TOLERANCE_PCT), section.get(keys::rule::WIDEST_PCT));
        Ok(Self { tolerance_pct, max_half_width_pct, log_ratios })
    }
}
