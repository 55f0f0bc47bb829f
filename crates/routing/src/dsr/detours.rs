//! Gratuitous replies of late.

use super::stats::IgnoredReason;
use hopline_core::Instant;
use std::net::Ipv4Addr;

/// Gratuitous reply table: pairs of a source and a transmitter of its packets for which a reply was sent.
#[derive(Clone, Debug)]
pub(super) struct GratuitousReplyTable {
    entries: Vec<GratuitousReplyEntry>,
    limit: usize,
}

#[derive(Clone, Copy, Debug)]
struct GratuitousReplyEntry {
    source: Ipv4Addr,
    transmitter: Ipv4Addr,
    until: Instant,
}

impl GratuitousReplyTable {
    pub(super) fn new(limit: u32) -> Self {
        Self { entries: Vec::new(), limit: limit as usize }
    }

    /// Records a gratuitous reply to `source` about its packet that `transmitter` sent.
    pub(super) fn record(
        &mut self,
        now: Instant,
        source: Ipv4Addr,
        transmitter: Ipv4Addr,
        until: Instant,
    ) -> Result<(), IgnoredReason> {
        self.entries.retain(|told| told.until > now);
        if self.entries.iter().any(|told| (told.source, told.transmitter) == (source, transmitter)) {
            return Err(IgnoredReason::HeldOff);
        }
        if self.entries.len() >= self.limit {
            return Err(IgnoredReason::TableFull);
        }
        self.entries.push(GratuitousReplyEntry { source, transmitter, until });
        Ok(())
    }
}
