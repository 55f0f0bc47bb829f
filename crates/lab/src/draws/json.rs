//! JSON of a comparison on random networks.

use super::kind::Kind;
use super::outcome::Outcome;
use super::results::Results;
use super::sketch::Draw;
use super::summary::Summary;
use serde_json::{Map, Value as Json, json};

/// Returns the JSON object of a comparison.
#[must_use]
pub fn json(results: &Results<'_>) -> Json {
    let summaries = results.laws.iter().zip(Summary::all(results)).map(|(name, summary)| {
        let mut object = json!(summary);
        object["by_kind"] = by_kind(&summary).into();
        (name.clone(), object)
    });
    let networks =
        results.draws.iter().zip(results.outcomes).map(|(draw, all)| network(results.laws, draw, all));
    let traces = || json!({"files": results.trace_files, "networks": results.traced()});
    json!({
        "seed": results.seed,
        "traces": (results.trace_files > 0).then(traces),
        "laws": summaries.collect::<Map<_, _>>(),
        "networks": networks.collect::<Vec<_>>(),
    })
}

fn by_kind(summary: &Summary) -> Map<String, Json> {
    let named = Kind::ALL.iter().zip(&summary.by_kind);
    named.map(|(kind, ratio)| (kind.name().to_owned(), json!(ratio))).collect()
}

fn network(laws: &[String], draw: &Draw, all: &[Outcome]) -> Json {
    let laws: Map<String, Json> = laws.iter().cloned().zip(all.iter().map(|one| json!(one))).collect();
    let trace = draw
        .stretch
        .as_ref()
        .map(|stretch| json!({"file": stretch.trace.file_name(), "offset_s": stretch.offset.as_secs_f64()}));
    json!({"id": draw.id, "kind": draw.kind.name(), "loss": draw.loss, "trace": trace, "laws": laws})
}
