//! Report of an evaluation.

use super::{NameForm, failures, sections};
use crate::comparison::Comparison;
use crate::evaluation::{EvaluationPlan, LawResult, NetworkResult, Verdict, count};
use crate::metrics::MetricInfo;
use crate::plan::Effort;
use crate::report::{
    Evaluation, EvaluationCell, EvaluationCriterion, EvaluationNetwork, EvaluationRow, Experiment, Report,
};
use crate::text::evaluation::{measured, short, symbol};
use serde_json::Value as Json;

/// Maximum number of flows of a network that are drawn over time.
const MAX_FLOWS_OVER_TIME: usize = 4;

/// Returns the report of an evaluation: a table of verdicts, then a section for each network. `made` and `results` have those
/// of all networks, in their order.
#[must_use]
pub fn report(
    plan: &EvaluationPlan,
    made: &[Comparison],
    results: &[NetworkResult],
    effort: Effort,
) -> Report {
    let mut experiments = Vec::new();
    let mut networks = Vec::new();
    for ((network, comparison), result) in plan.networks.iter().zip(made).zip(results) {
        let criteria = network.criteria.iter().zip(&result.criteria);
        let criterion = criteria.map(|(criterion, judged)| EvaluationCriterion {
            words: criterion.words(&plan.references),
            cells: judged.laws.iter().map(|law| cell(law, criterion.metric.metric)).collect(),
        });
        networks.push(EvaluationNetwork {
            id: network.id.clone(),
            clause: network.clause.clone(),
            experiment: experiments.len(),
            verdicts: result.verdicts.clone(),
            criteria: criterion.collect(),
        });
        let requirements = network.criteria.iter().map(|criterion| criterion.words(&plan.references));
        let required = requirements.collect::<Vec<_>>().join("; ");
        experiments.extend(sections(comparison, NameForm::Full).into_iter().map(|section| Experiment {
            name: format!("{}: {}", network.id, network.title),
            intro: format!("Section {}. Required: {required}. {}", network.clause, verdicts(plan, result)),
            // Details of every network and algorithm would be tens of megabytes.
            map: None,
            distributions: Vec::new(),
            flow_rows: Vec::new(),
            parameters: Json::Null,
            series: section.series.into_iter().filter(|run| run.flows.len() <= MAX_FLOWS_OVER_TIME).collect(),
            ..section
        }));
    }
    let quick = match effort {
        Effort::Quick => {
            Some("QUICK: fewer runs than the file says; verdicts may change with all of them.".to_owned())
        }
        Effort::Full => None,
    };
    Report {
        title: plan.title.clone(),
        intro: quick.into_iter().chain(made.iter().filter_map(failures)).collect(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        claims: None,
        evaluation: Some(Evaluation {
            laws: plan.laws.iter().map(|law| law.name.clone()).collect(),
            references: plan.references.len(),
            counts: (0..plan.laws.len()).map(|law| row(plan, results, law)).collect(),
            networks,
            not_covered: plan
                .not_covered
                .iter()
                .map(|part| (part.clause.clone(), part.reason.clone()))
                .collect(),
        }),
        experiments,
    }
}

/// Returns the verdicts in words: `Meets: cubic, bbr3. Misses: bbr.`
fn verdicts(plan: &EvaluationPlan, result: &NetworkResult) -> String {
    let sentence = |verdict: Verdict| {
        let laws = plan.laws.iter().zip(&result.verdicts).filter(|(_, of_law)| **of_law == verdict);
        let names: Vec<&str> = laws.map(|(law, _)| law.name.as_str()).collect();
        let mut word = verdict.word().to_owned();
        word[..1].make_ascii_uppercase();
        (!names.is_empty()).then(|| format!("{word}: {}.", names.join(", ")))
    };
    Verdict::ALL.into_iter().filter_map(sentence).collect::<Vec<_>>().join(" ")
}

fn cell(result: &LawResult, metric: &MetricInfo) -> EvaluationCell {
    EvaluationCell {
        verdict: result.verdict,
        symbol: symbol(result),
        short: short(result, metric),
        measured: measured(result, metric),
    }
}

fn row(plan: &EvaluationPlan, results: &[NetworkResult], law: usize) -> EvaluationRow {
    let count = count(results, law);
    EvaluationRow {
        law: plan.laws[law].name.clone(),
        counts: Verdict::ALL.map(|verdict| count.of(verdict)),
        close: results.iter().filter(|network| network.is_close(law)).count(),
    }
}
