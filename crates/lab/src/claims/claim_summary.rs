//! Summary of a paper: the numbers of its claims that are tested, and that hold in all readings, in some, in
//! none.

use super::ablation::Mechanism;
use super::evidence::Evidence;
use super::kind::Kind;
use super::reading::Reading;
use super::verdict::Verdict;
use serde::{Deserialize, Serialize};

/// Numbers of a paper's claims. Claims of one sentence count as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimSummary {
    /// Claims of the paper about its system, without fitted values and repetitions.
    pub claims: usize,
    /// Claims that have a verdict, and another outcome with the system switched off.
    pub tested: usize,
    /// Of those, claims that hold in every reading.
    pub in_all: usize,
    /// Claims that hold in some readings.
    pub in_some: usize,
    /// Claims that hold in no reading.
    pub in_none: usize,
    /// Claims with intervals too wide for a verdict.
    pub undecided: usize,
    /// Claims with the same outcome with the system switched off, or that cannot be measured here.
    pub not_testable: usize,
    /// Maximum number of readings of a claim; 1 if there is only one.
    pub readings: usize,
}

/// Verdicts on the claims of one sentence, reading by reading.
struct Sentence<'a> {
    name: &'a str,
    /// Readings in which all claims of the sentence are judged, the first one first; `true` if all hold.
    holds: Vec<(Reading, bool)>,
    state: State,
}

/// Decidability of a sentence by runs; of several claims the last of these states applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    NotTestable,
    Tested,
    Undecided,
}

impl ClaimSummary {
    /// Returns the summary of what was judged.
    #[must_use]
    pub fn of(evidence: &[Evidence<'_>]) -> Self {
        let mut sentences: Vec<Sentence<'_>> = Vec::new();
        let of_the_paper = evidence.iter().filter(|e| e.claim.kind == Kind::Paper);
        for e in of_the_paper.filter(|e| e.mechanism != Mechanism::Absent) {
            let new = Sentence::of(e);
            match sentences.iter_mut().find(|sentence| sentence.name == new.name) {
                Some(known) => known.join(&new),
                None => sentences.push(new),
            }
        }
        let count = |is: &dyn Fn(&&Sentence<'_>) -> bool| sentences.iter().filter(|s| is(s)).count();
        let tested = count(&|s| s.state == State::Tested);
        let undecided = count(&|s| s.state == State::Undecided);
        let in_all = count(&|s| s.state == State::Tested && s.holds.iter().all(|(_, holds)| *holds));
        let in_none = count(&|s| s.state == State::Tested && !s.holds.iter().any(|(_, holds)| *holds));
        Self {
            claims: sentences.len(),
            tested,
            in_all,
            in_some: tested - in_all - in_none,
            in_none,
            undecided,
            not_testable: sentences.len() - tested - undecided,
            readings: evidence.iter().map(|e| e.other_readings.len() + 1).max().unwrap_or_default(),
        }
    }

    /// Returns the summary in a sentence.
    #[must_use]
    pub fn headline(&self) -> String {
        let Self { claims, tested, in_all, in_some, in_none, undecided, not_testable, readings } = *self;
        let hold = if readings > 1 {
            format!("{in_all} hold in every reading, {in_some} in some, {in_none} in none")
        } else {
            format!("{in_all} of them hold")
        };
        format!(
            "Of the paper's {claims} claims about its system {tested} are tested: {hold}. Undecided: {undecided}. \
             Not testable, as they come out the same with the system switched off or cannot be measured: \
             {not_testable}."
        )
    }
}

impl<'a> Sentence<'a> {
    fn of(e: &Evidence<'a>) -> Self {
        let claim = e.claim;
        let name = if claim.sentence.is_empty() { &claim.id } else { &claim.sentence };
        // A part without a statement about the system does not affect its sentence.
        let is_neutral = e.verdict == Verdict::NotTested;
        let first = e.other_readings.first().map(|read| read.reading.first()).unwrap_or_default();
        let others = e.other_readings.iter().map(|read| (read.reading.clone(), read.verdict));
        let readings = std::iter::once((first, e.verdict)).chain(others);
        let holds = readings.map(|(reading, verdict)| (reading, is_neutral || verdict == Verdict::Agrees));
        let state = match e.verdict {
            Verdict::Agrees | Verdict::DirectionOnly | Verdict::Differs => State::Tested,
            Verdict::CannotBeJudged if e.measurement.is_some() => State::Undecided,
            Verdict::CannotBeJudged | Verdict::NotTested => State::NotTestable,
        };
        Self { name, holds: holds.collect(), state }
    }

    /// Joins two parts of a sentence. It holds where all of its claims do; it is tested if one of them is and
    /// none is undecided. Claims of figures with different axes combine where their answers to common axes
    /// are the same.
    fn join(&mut self, other: &Self) {
        self.state = self.state.max(other.state);
        let both = |(one, holds): &(Reading, bool)| {
            let (one, holds) = (one.clone(), *holds);
            let meet =
                move |(reading, also): &(Reading, bool)| Some((one.combined_with(reading)?, holds && *also));
            other.holds.iter().filter_map(meet).collect::<Vec<_>>()
        };
        self.holds = self.holds.iter().flat_map(both).collect();
    }
}
