//! State of the advertisement of a node's MPR selectors.

use hopline_core::{Instant, Seq16};

/// Advertisement of this node's MPR selectors.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TcState {
    /// ANSN.
    pub(super) ansn: Seq16,
    pub(super) last_sent: Option<Instant>,
    /// End of the period in which empty messages withdraw outdated entries of other nodes.
    pub(super) withdrawing_until: Instant,
}
