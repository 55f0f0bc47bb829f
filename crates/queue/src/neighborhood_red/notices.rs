//! The receiver's half of NCN: the notice in force, and its expiry (§5.2).

use super::types::Ignored;
use hopline_core::Instant;
use hopline_wire::ncn::NormalizedPb;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Notices in force at a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Notices {
    own: Option<Held>,
    /// Relayed notices, by the neighbour that relayed them: limits on packets to that neighbour.
    relayed: BTreeMap<Ipv4Addr, Held>,
}

/// Notice in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    /// Starved node.
    pub(super) from: Ipv4Addr,
    pub(super) normalized_pb: NormalizedPb,
    /// Expiry time.
    pub(super) until: Instant,
}

impl Held {
    fn holds(&self, now: Instant) -> bool {
        now < self.until
    }
}

impl Notices {
    /// Handles a notice of a neighbour. The largest notice of several neighbours and the latest of one neighbour are in
    /// force.
    pub(super) fn take(&mut self, now: Instant, held: Held) -> Result<(), Ignored> {
        let other = self.own.filter(|own| own.holds(now) && own.from != held.from);
        if other.is_some_and(|other| other.normalized_pb >= held.normalized_pb) {
            return Err(Ignored::Smaller);
        }
        self.own = Some(held);
        Ok(())
    }

    /// Handles a notice relayed by `relay`. At most `limit` relays are stored.
    pub(super) fn take_relayed(
        &mut self,
        now: Instant,
        relay: Ipv4Addr,
        held: Held,
        limit: usize,
    ) -> Result<(), Ignored> {
        let other = self.relayed.get(&relay).filter(|other| other.holds(now) && other.from != held.from);
        if other.is_some_and(|other| other.normalized_pb >= held.normalized_pb) {
            return Err(Ignored::Smaller);
        }
        if self.relayed.len() >= limit && !self.relayed.contains_key(&relay) {
            self.relayed.retain(|_, held| held.holds(now));
        }
        if self.relayed.len() >= limit && !self.relayed.contains_key(&relay) {
            return Err(Ignored::NoRoom);
        }
        self.relayed.insert(relay, held);
        Ok(())
    }

    /// Returns the number of stored relayed notices.
    pub(super) fn relayed_len(&self) -> usize {
        self.relayed.len()
    }

    /// Returns the drop share for this node's packets.
    pub(super) fn normalized_pb(&self, now: Instant) -> NormalizedPb {
        self.own.filter(|own| own.holds(now)).map_or(NormalizedPb::ZERO, |own| own.normalized_pb)
    }

    /// Returns the drop share for packets to `next_hop`.
    pub(super) fn normalized_pb_to(&self, now: Instant, next_hop: Ipv4Addr) -> NormalizedPb {
        let relayed = self.relayed.get(&next_hop).filter(|held| held.holds(now));
        self.normalized_pb(now).max(relayed.map_or(NormalizedPb::ZERO, |held| held.normalized_pb))
    }
}
