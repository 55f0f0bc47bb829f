//! Script with its verdict.

use hopline_packetdrill::Verdict;

/// Script with its verdict.
pub(super) struct Tried {
    pub(super) name: String,
    pub(super) verdict: Verdict,
}
