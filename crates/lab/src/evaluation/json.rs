//! JSON of an evaluation.

use super::plan::EvaluationPlan;
use super::verdict::{LawResult, NetworkResult, Verdict, count};
use serde_json::{Map, Value as Json, json};

/// Returns the JSON object of `hopline evaluate --json`. `results` has those of all networks, in their order.
#[must_use]
pub fn json(plan: &EvaluationPlan, results: &[NetworkResult]) -> Json {
    let laws = plan.laws.iter().enumerate().map(|(law, described)| {
        let count = count(results, law);
        let verdicts: Map<String, Json> =
            Verdict::ALL.into_iter().map(|v| (v.word().replace(' ', "_"), count.of(v).into())).collect();
        let settings: Map<String, Json> =
            described.settings.iter().map(|s| (s.path.clone(), s.json())).collect();
        json!({
            "law": described.name,
            "reference": law < plan.references.len(),
            "settings": settings,
            "networks": verdicts,
            "close": results.iter().filter(|network| network.is_close(law)).count(),
        })
    });
    let networks = plan.networks.iter().zip(results).map(|(network, result)| {
        let criteria = network.criteria.iter().zip(&result.criteria).map(|(criterion, judged)| {
            let laws = plan.laws.iter().zip(&judged.laws).map(|(law, r)| (law.name.clone(), law_json(r)));
            json!({
                "criterion": criterion.words(&plan.references),
                "metric": criterion.metric,
                "unit": criterion.metric.metric.unit,
                "laws": laws.collect::<Map<_, _>>(),
            })
        });
        let verdicts = plan.laws.iter().zip(&result.verdicts).map(|(law, v)| (law.name.clone(), json!(v)));
        let failed = plan.laws.iter().zip(&result.failed).flat_map(|(law, failed)| {
            failed.iter().map(|(run, why)| json!({"law": law.name, "run": run, "error": why}))
        });
        json!({
            "id": network.id,
            "clause": network.clause,
            "title": network.title,
            "criteria": criteria.collect::<Vec<_>>(),
            "verdicts": verdicts.collect::<Map<_, _>>(),
            "failed": failed.collect::<Vec<_>>(),
        })
    });
    let not_covered =
        plan.not_covered.iter().map(|part| json!({"clause": part.clause, "reason": part.reason}));
    json!({
        "title": plan.title,
        "references": plan.references,
        "laws": laws.collect::<Vec<_>>(),
        "networks": networks.collect::<Vec<_>>(),
        "not_covered": not_covered.collect::<Vec<_>>(),
    })
}

fn law_json(result: &LawResult) -> Json {
    let finite = |values: &[f64]| -> Vec<Option<f64>> {
        values.iter().map(|value| value.is_finite().then_some(*value)).collect()
    };
    json!({
        "verdict": result.verdict,
        "mean": result.mean(),
        "runs": finite(&result.runs),
        "limits": finite(&result.limits),
        "margin": result.margin(),
        "close": result.is_close(),
        "is_reference": result.is_reference,
    })
}
