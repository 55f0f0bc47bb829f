//! Numbers of claims by verdict, with separate headings for claims that are harder and easier to meet.

use super::{Claimed, Evidence, Mechanism, Test, Verdict};
use serde_json::{Map, Value as Json, json};

/// Origin of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// The paper makes it, and its scenario is read as everywhere.
    #[default]
    Paper,
    /// The paper makes it, and a parameter here was fitted to it.
    Fitted,
    /// The paper makes it; another claim counts the same measurement.
    Repeated,
    /// The paper makes it; an open question is answered differently than elsewhere.
    Reading,
    /// The paper does not make it.
    Ours,
}

impl Kind {
    /// The words of the key `kind`.
    pub(super) const WORDS: [&str; 5] = ["paper", "fitted", "repeated", "reading", "ours"];

    /// Returns the kind of this key's value.
    pub(super) fn of(word: Option<&str>) -> Self {
        match word {
            Some("fitted") => Self::Fitted,
            Some("repeated") => Self::Repeated,
            Some("reading") => Self::Reading,
            Some("ours") => Self::Ours,
            _ => Self::Paper,
        }
    }

    /// Returns the value as the key is written.
    #[must_use]
    pub const fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

/// A heading under which claims are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heading {
    /// Claims of the paper with a value of their own.
    Values,
    /// Claims of the paper about a sign, a bound or a range.
    Bounds,
    /// Claims of the paper about points without the mechanism under test.
    Baselines,
    /// Claims of the paper to which a parameter was fitted.
    Fitted,
    /// Claims in other readings.
    Readings,
    /// Claims of this project.
    Ours,
}

impl Heading {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Values, Self::Bounds, Self::Baselines, Self::Fitted, Self::Readings, Self::Ours];

    /// Returns the heading in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Values => "exact values of the paper",
            Self::Bounds => "signs and ranges of the paper",
            Self::Baselines => "the paper's on what its system is compared with",
            Self::Fitted => "values that parameters were fitted to",
            Self::Readings => "the same, read otherwise",
            Self::Ours => "not the paper's",
        }
    }

    /// Returns its key in JSON.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Values => "values",
            Self::Bounds => "bounds",
            Self::Baselines => "baselines",
            Self::Fitted => "fitted",
            Self::Readings => "readings",
            Self::Ours => "ours",
        }
    }

    /// Returns the heading under which a claim is counted; `None` if it is not judged yet, or repeats a
    /// measurement that another claim counts.
    pub(super) fn of(evidence: &Evidence<'_>) -> Option<Self> {
        let Test::Measure(measure) = &evidence.claim.test else { return None };
        Some(match (evidence.claim.kind, measure.claimed) {
            (Kind::Repeated, _) => return None,
            (Kind::Ours, _) => Self::Ours,
            (Kind::Reading, _) => Self::Readings,
            (Kind::Fitted, _) => Self::Fitted,
            (Kind::Paper, _) if evidence.mechanism == Mechanism::Absent => Self::Baselines,
            (Kind::Paper, Claimed::Value { .. } | Claimed::Ratio { .. }) => Self::Values,
            (Kind::Paper, _) => Self::Bounds,
        })
    }
}

/// Numbers of claims under a heading, by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    of_verdicts: [usize; Verdict::ALL.len()],
}

impl Count {
    /// Returns the number of claims, without those that are not tested.
    #[must_use]
    pub fn all(&self) -> usize {
        self.of_verdicts.iter().sum::<usize>() - self.of(Verdict::NotTested)
    }

    /// Returns the number of claims with a verdict.
    #[must_use]
    pub fn of(&self, verdict: Verdict) -> usize {
        Verdict::ALL.iter().zip(self.of_verdicts).find(|(v, _)| **v == verdict).map_or(0, |(_, n)| n)
    }

    fn json(&self) -> Json {
        let verdicts = Verdict::ALL.map(|verdict| {
            let key = serde_json::to_value(verdict).expect("a word").as_str().expect("a word").to_owned();
            (key, json!(self.of(verdict)))
        });
        let all = std::iter::once(("all".to_owned(), json!(self.all())));
        Json::Object(verdicts.into_iter().chain(all).collect::<Map<_, _>>())
    }
}

/// Numbers of judged claims. Claims of one sentence count once under a heading, with the worst of their
/// verdicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    counts: [Count; Heading::ALL.len()],
}

impl Tally {
    /// Counts judged claims.
    #[must_use]
    pub fn of(evidence: &[Evidence<'_>]) -> Self {
        let mut sentences: Vec<(Heading, &str, Verdict)> = Vec::new();
        for e in evidence {
            let Some(heading) = Heading::of(e) else { continue };
            let sentence = if e.claim.sentence.is_empty() { &e.claim.id } else { &e.claim.sentence };
            match sentences.iter_mut().find(|(h, s, _)| (*h, *s) == (heading, sentence)) {
                Some((.., verdict)) => *verdict = worse(*verdict, e.verdict),
                None => sentences.push((heading, sentence, e.verdict)),
            }
        }
        let mut tally = Self::default();
        for (heading, _, verdict) in sentences {
            let at = Verdict::ALL.iter().position(|v| *v == verdict).expect("one of all");
            tally.counts[heading as usize].of_verdicts[at] += 1;
        }
        tally
    }

    /// Returns the numbers under a heading.
    #[must_use]
    pub const fn under(&self, heading: Heading) -> Count {
        self.counts[heading as usize]
    }

    /// Returns a line for each heading with claims: "exact values of the paper: 12 of 65 agree (20 direction
    /// only, 33 differ), 4 not tested".
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let line = |heading: Heading| {
            let count = self.under(heading);
            let others = [Verdict::DirectionOnly, Verdict::Differs, Verdict::CannotBeJudged];
            let others = others.map(|verdict| format!("{} {}", count.of(verdict), verdict.word())).join(", ");
            let not_tested = match count.of(Verdict::NotTested) {
                0 => String::new(),
                n => format!(", {n} {}", Verdict::NotTested.word()),
            };
            let (agree, all) = (count.of(Verdict::Agrees), count.all());
            format!("{}: {agree} of {all} agree ({others}){not_tested}", heading.words())
        };
        Heading::ALL
            .into_iter()
            .filter(|heading| self.under(*heading) != Count::default())
            .map(line)
            .collect()
    }

    /// Returns the JSON object of `--json`.
    #[must_use]
    pub fn json(&self) -> Json {
        let counts = Heading::ALL.map(|heading| (heading.key().to_owned(), self.under(heading).json()));
        Json::Object(counts.into_iter().collect::<Map<_, _>>())
    }
}

/// Returns the worse verdict, for a sentence with several statements: refuted weighs most, then undecidable.
fn worse(a: Verdict, b: Verdict) -> Verdict {
    let weight = |verdict| match verdict {
        Verdict::Agrees => 0,
        Verdict::DirectionOnly => 1,
        Verdict::NotTested => 2,
        Verdict::CannotBeJudged => 3,
        Verdict::Differs => 4,
    };
    if weight(b) > weight(a) { b } else { a }
}
