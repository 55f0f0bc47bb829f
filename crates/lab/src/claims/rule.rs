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
    /// Maximum half-width of a conclusive interval that meets the claim, in percent of the claimed value.
    pub max_half_width_pct: f64,
    /// Metrics with gains that are judged by the logarithm of the ratio.
    pub log_ratios: Vec<&'static str>,
}

impl Rule {
    pub(super) fn of(section: &Section<'_>) -> Result<Self, Problem> {
        let metric = |name: &str| match metrics::find(Level::Flow, name) {
            Some(metric) => Ok(metric.name),
            None => metrics::find_at(Level::Run, name, section.origin_of("log_ratios")).map(|m| m.name),
        };
        let log_ratios = section.texts("log_ratios").into_iter().map(metric).collect::<Result<_, _>>()?;
        let (tolerance_pct, widest_pct) =
            (section.get(keys::rule::TOLERANCE_PCT), section.get(keys::rule::WIDEST_PCT));
        Ok(Self { tolerance_pct, max_half_width_pct: widest_pct, log_ratios })
    }
}
