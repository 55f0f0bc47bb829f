//! A claim with its measurement and its verdict.

use super::ablation::Mechanism;
use super::claim::{Claim, Test};
use super::heading::Heading;
use super::measurement::Measurement;
use super::reading::AlternativeReading;
use super::verdict::{SignMeaning, Verdict};
use crate::metrics;
use crate::stats::SignTest;
use serde_json::{Value as Json, json};

/// A claim and its measurement.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    /// The claim.
    pub claim: &'a Claim,
    /// Measurement; `None` if there is none.
    pub measurement: Option<Measurement>,
    /// Verdict on the claim.
    pub verdict: Verdict,
    /// Reason of the verdict; empty if there is nothing to say.
    pub why: String,
    /// Outcome with the mechanism under test switched off.
    pub mechanism: Mechanism,
    /// Outcomes in other readings of the paper, as far as they were run.
    pub other_readings: Vec<AlternativeReading>,
}

impl Evidence<'_> {
    /// Returns the JSON object of `--json`.
    #[must_use]
    pub fn json(&self) -> Json {
        json!({
            "claim": self.claim.id,
            "kind": self.claim.kind.word(),
            "sentence": self.claim.sentence,
            "counted": Heading::of(self.claim, &self.mechanism).map(Heading::key),
            "statement": self.claim.statement,
            "where": self.claim.place,
            "claimed": self.claimed(),
            "measured": self.measurement.as_ref().map(Measurement::json),
            "mechanism_off": self.mechanism.json(),
            "verdict": self.verdict,
            "why": self.why,
            "note": self.claim.note,
            "readings": self.other_readings.iter().map(AlternativeReading::json).collect::<Vec<_>>(),
        })
    }

    /// Returns the claim in words, with its unit.
    #[must_use]
    pub fn claimed(&self) -> String {
        match &self.claim.test {
            Test::Missing(_) => self.claim.statement.clone(),
            Test::Measure(measure) => {
                let (factor, unit) = metrics::display_unit(measure.unit());
                measure.claimed.scaled(factor).describe(unit, measure.sign_meaning() == SignMeaning::Signed)
            }
        }
    }

    /// Returns remarks on the runs of the measurement; empty if there are none.
    #[must_use]
    pub fn runs(&self) -> String {
        let Some(m) = &self.measurement else { return String::new() };
        let left_out = (m.excluded > 0).then(|| {
            let runs = if m.excluded == 1 { "run" } else { "runs" };
            format!("{} {runs} left out, in which what it is compared with is zero", m.excluded)
        });
        let signs = m.sign_test.map(|test| {
            let SignTest { positive, negative, ties, p } = test;
            format!("{positive} gains, {negative} losses, {ties} ties, sign test p = {p:.2e}")
        });
        signs.into_iter().chain(left_out).collect::<Vec<_>>().join("; ")
    }

    /// Returns the scenario of the measurement.
    #[must_use]
    pub fn scenario(&self) -> String {
        match (&self.measurement, self.claim.scenario.as_str()) {
            (_, scenario) if !scenario.is_empty() => scenario.to_owned(),
            (Some(m), _) => match &m.against {
                Some(against) => format!("{} against {against}", m.point),
                None => m.point.clone(),
            },
            (None, _) => String::new(),
        }
    }
}
