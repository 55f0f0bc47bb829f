//! Numbers of claims by verdict, with separate headings for claims that are harder and easier to meet.

use super::evidence::Evidence;
use super::heading::Heading;
use super::verdict::Verdict;
use serde_json::{Map, Value as Json, json};

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
pub struct ClaimTally {
    counts: [Count; Heading::ALL.len()],
}

impl ClaimTally {
    /// Counts judged claims.
    #[must_use]
    pub fn of(evidence: &[Evidence<'_>]) -> Self {
        let mut sentences: Vec<(Heading, &str, Verdict)> = Vec::new();
        for e in evidence {
            let Some(heading) = Heading::of(e.claim, &e.mechanism) else { continue };
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
