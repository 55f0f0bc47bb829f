//! State of a connection at an end of a link.

use super::cache::Kept;
use super::detect::Detect;
use hopline_core::{Instant, Seq32};

/// State of a connection: of its outgoing flow over the link, and of its incoming flow.
#[derive(Debug)]
pub(super) struct Tracked<K> {
    pub(super) kept: Kept,
    /// Sequence number of the outgoing SYN, if it passed.
    pub(super) initial: Option<Seq32>,
    /// Time of the last new outgoing data, and number of tail probes since.
    pub(super) new_at: Instant,
    pub(super) told: u8,
    pub(super) detect: Option<Detect<K>>,
}

impl<K> Tracked<K> {
    pub(super) const fn new(now: Instant) -> Self {
        Self { kept: Kept::new(), initial: None, new_at: now, told: 0, detect: None }
    }
}
