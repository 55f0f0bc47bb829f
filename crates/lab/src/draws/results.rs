//! Results of a comparison on random networks.

use super::kind::Kind;
use super::outcome::Outcome;
use super::sketch::Draw;
use super::summary::Summary;
use serde_json::{Map, Value as Json, json};

/// Results of a comparison on random networks.
#[derive(Clone, Copy, Debug)]
pub struct Results<'a> {
    /// Seed of the networks.
    pub seed: u64,
    /// Names of the algorithms, the one of interest first.
    pub laws: &'a [String],
    /// The networks.
    pub draws: &'a [Draw],
    /// Number of files with traces of link rates; 0 without any.
    pub trace_files: usize,
    /// Outcomes by network, of all algorithms.
    pub outcomes: &'a [Vec<Outcome>],
}

impl Results<'_> {
    /// Returns the summary of each algorithm.
    #[must_use]
    pub fn summaries(&self) -> Vec<Summary> {
        (0..self.laws.len()).map(|law| Summary::of(self, law)).collect()
    }

    /// Returns the number of networks with the rates of a trace.
    #[must_use]
    pub fn traced(&self) -> usize {
        self.draws.iter().filter(|draw| draw.stretch.is_some()).count()
    }

    /// Returns the JSON object.
    #[must_use]
    pub fn json(&self) -> Json {
        let kinds = |summary: &Summary| -> Map<String, Json> {
            let named = Kind::ALL.iter().zip(&summary.by_kind);
            named.map(|(kind, ratio)| (kind.name().to_owned(), json!(ratio))).collect()
        };
        let summaries = self.laws.iter().zip(self.summaries()).map(|(name, summary)| {
            let mut object = json!(summary);
            object["by_kind"] = kinds(&summary).into();
            (name.clone(), object)
        });
        let networks = self.draws.iter().zip(self.outcomes).map(|(draw, all)| self.network(draw, all));
        json!({
            "seed": self.seed,
            "traces": (self.trace_files > 0).then(|| json!({"files": self.trace_files, "networks": self.traced()})),
            "laws": summaries.collect::<Map<_, _>>(),
            "networks": networks.collect::<Vec<_>>(),
        })
    }

    fn network(&self, draw: &Draw, all: &[Outcome]) -> Json {
        let laws: Map<String, Json> =
            self.laws.iter().cloned().zip(all.iter().map(|one| json!(one))).collect();
        let trace = draw.stretch.as_ref().map(
            |stretch| json!({"file": stretch.trace.file_name(), "offset_s": stretch.offset.as_secs_f64()}),
        );
        json!({"id": draw.id, "kind": draw.kind.name(), "loss": draw.loss, "trace": trace, "laws": laws})
    }
}
