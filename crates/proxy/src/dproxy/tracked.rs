//! State of a connection at an end of a link.

use super::cache::FlowIndex;
use super::loss_detection::LossDetector;
use hopline_core::{Instant, Seq32};

/// State of a connection: of its outgoing flow over the link, and of its incoming flow.
#[derive(Debug)]
pub(super) struct ConnectionState<K> {
    pub(super) cached: FlowIndex,
    /// Sequence number of the outgoing SYN, if it passed.
    pub(super) initial_seq: Option<Seq32>,
    /// Time of the last new outgoing data, and number of tail probes since.
    pub(super) last_new_data: Instant,
    pub(super) tail_probes: u8,
    pub(super) loss_detector: Option<LossDetector<K>>,
}

impl<K> ConnectionState<K> {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            cached: FlowIndex::new(),
            initial_seq: None,
            last_new_data: now,
            tail_probes: 0,
            loss_detector: None,
        }
    }
}
