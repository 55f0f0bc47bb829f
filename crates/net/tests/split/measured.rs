//! What it costs and gains, beside its peers: by hand (`--ignored`), as minutes and a quiet machine are needed.

pub(crate) fn throughput() {}
pub(crate) fn latency() {}
pub(crate) fn connections() {}
pub(crate) fn lossy_link() {}
