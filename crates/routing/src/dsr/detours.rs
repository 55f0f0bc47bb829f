//! Gratuitous replies of late.

use super::stats::Ignored;
use hopline_core::Instant;
use std::net::Ipv4Addr;

/// Gratuitous reply table: pairs of a source and a transmitter of its packets for which a reply was sent.
#[derive(Clone, Debug)]
pub(super) struct Detours {
    told: Vec<Told>,
    limit: usize,
}

#[derive(Clone, Copy, Debug)]
struct Told {
    source: Ipv4Addr,
    transmitter: Ipv4Addr,
    until: Instant,
}

impl Detours {
    pub(super) fn new(limit: u32) -> Self {
        Self { told: Vec::new(), limit: limit as usize }
    }

    /// Records a gratuitous reply to `source` about its packet that `transmitter` sent.
    pub(super) fn note(
        &mut self,
        now: Instant,
        source: Ipv4Addr,
        transmitter: Ipv4Addr,
        until: Instant,
    ) -> Result<(), Ignored> {
        self.told.retain(|told| told.until > now);
        if self.told.iter().any(|told| (told.source, told.transmitter) == (source, transmitter)) {
            return Err(Ignored::HeldOff);
        }
        if self.told.len() >= self.limit {
            return Err(Ignored::TableFull);
        }
        self.told.push(Told { source, transmitter, until });
        Ok(())
    }
}
