//! Results of a comparison on random networks.

use super::outcome::Outcome;
use super::sketch::Draw;

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
    /// Returns the number of networks with the rates of a trace.
    #[must_use]
    pub fn traced(&self) -> usize {
        self.draws.iter().filter(|draw| draw.stretch.is_some()).count()
    }
}
