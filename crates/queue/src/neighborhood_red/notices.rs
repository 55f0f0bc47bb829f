//! The receiver's half of NCN: the notice in force, and its expiry (§5.2).

use super::types::IgnoredReason;
use hopline_core::Instant;
use hopline_wire::ncn::NormalizedPb;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Notices in force at a node.
#[derive(Clone, Debug, Default)]
pub(super) struct ActiveNotices {
    direct: Option<ActiveNotice>,
    /// Relayed notices, by the neighbour that relayed them: limits on packets to that neighbour.
    relayed: BTreeMap<Ipv4Addr, ActiveNotice>,
}

/// Notice in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ActiveNotice {
    /// Starved node.
    pub(super) starved_node: Ipv4Addr,
    pub(super) normalized_pb: NormalizedPb,
    /// Expiry time.
    pub(super) expires: Instant,
}

impl ActiveNotice {
    fn is_active(&self, now: Instant) -> bool {
        now < self.expires
    }
}

impl ActiveNotices {
    /// Handles a notice of a neighbour. The largest notice of several neighbours and the latest of one neighbour are in
    /// force.
    pub(super) fn insert(&mut self, now: Instant, held: ActiveNotice) -> Result<(), IgnoredReason> {
        let other = self.direct.filter(|own| own.is_active(now) && own.starved_node != held.starved_node);
        if other.is_some_and(|other| other.normalized_pb >= held.normalized_pb) {
            return Err(IgnoredReason::Smaller);
        }
        self.direct = Some(held);
        Ok(())
    }

    /// Handles a notice relayed by `relay`. At most `limit` relays are stored.
    pub(super) fn insert_relayed(
        &mut self,
        now: Instant,
        relay: Ipv4Addr,
        held: ActiveNotice,
        limit: usize,
    ) -> Result<(), IgnoredReason> {
        let other = self
            .relayed
            .get(&relay)
            .filter(|other| other.is_active(now) && other.starved_node != held.starved_node);
        if other.is_some_and(|other| other.normalized_pb >= held.normalized_pb) {
            return Err(IgnoredReason::Smaller);
        }
        if self.relayed.len() >= limit && !self.relayed.contains_key(&relay) {
            self.relayed.retain(|_, held| held.is_active(now));
        }
        if self.relayed.len() >= limit && !self.relayed.contains_key(&relay) {
            return Err(IgnoredReason::TableFull);
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
        self.direct.filter(|own| own.is_active(now)).map_or(NormalizedPb::ZERO, |own| own.normalized_pb)
    }

    /// Returns the drop share for packets to `next_hop`.
    pub(super) fn normalized_pb_to(&self, now: Instant, next_hop: Ipv4Addr) -> NormalizedPb {
        let relayed = self.relayed.get(&next_hop).filter(|held| held.is_active(now));
        self.normalized_pb(now).max(relayed.map_or(NormalizedPb::ZERO, |held| held.normalized_pb))
    }
}
