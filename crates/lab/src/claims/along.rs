//! What becomes of claims elsewhere: at the other values of a key that plans vary.

use super::evaluate::{Evidence, Measurement};
use super::{Claim, Test, Verdict};
use crate::comparison::Comparison;
use hopline_scenario::schema::Section;
use hopline_scenario::source::{Problem, nearest};
use serde_json::{Value as Json, json};

/// A claim as it is judged at one value of the key that the [register](super::Register::along) names.
#[derive(Clone, Debug)]
pub struct Along {
    /// The value.
    pub value: Json,
    /// What was measured there; `None` if it could not be.
    pub measurement: Option<Measurement>,
    /// How it stands to the claim.
    pub verdict: Verdict,
}

impl Along {
    pub(super) fn of(value: Json, evidence: Evidence<'_>) -> Self {
        Self { value, measurement: evidence.measurement, verdict: evidence.verdict }
    }

    /// The value as it is written in a plan, text without quotes.
    #[must_use]
    pub fn label(&self) -> String {
        self.value.as_str().map_or_else(|| self.value.to_string(), str::to_owned)
    }

    /// As `--json` prints it.
    #[must_use]
    pub fn json(&self) -> Json {
        let measured = self.measurement.as_ref();
        json!({
            "value": self.value,
            "mean": measured.map(|m| m.value),
            "interval": measured.and_then(|m| m.interval).map(|i| [i.low, i.high]),
            "verdict": self.verdict,
        })
    }
}

/// The values of `key` in the plan of a comparison, in its order.
pub(super) fn values(comparison: &Comparison, key: &str) -> Vec<Json> {
    let mut values = Vec::new();
    for value in comparison.description.points.iter().filter_map(|point| point.settings.get(key)) {
        if !values.contains(value) {
            values.push(value.clone());
        }
    }
    values
}

/// Some claim has to say where on the key it is.
pub(super) fn check(file: &Section<'_>, claims: &[Claim]) -> Result<(), Problem> {
    let Some(key) = file.word("along") else { return Ok(()) };
    let points = claims.iter().filter_map(|claim| match &claim.test {
        Test::Measure(measure) => Some(&measure.point.settings),
        Test::Needs(_) => None,
    });
    let named: Vec<&str> = points.flatten().map(|setting| setting.path.as_str()).collect();
    if named.contains(&key) {
        return Ok(());
    }
    let help = match nearest(key, named.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => "it is a key that plans vary and the `point` of a claim gives a value".to_owned(),
    };
    Err(Problem::new(format!("no `point` of a claim has \"{key}\"")).at(file.origin_of("along")).help(help))
}
