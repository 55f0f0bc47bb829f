//! Hostile nodes: notices of Neighborhood RED that no congestion asked for.

mod sending;

use crate::spec::NoticeFloodSpec;

/// One of them, in the middle of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoticeFlood {
    spec: NoticeFloodSpec,
    sent: u32,
}

impl NoticeFlood {
    pub(crate) const fn new(spec: NoticeFloodSpec) -> Self {
        Self { spec, sent: 0 }
    }
}
