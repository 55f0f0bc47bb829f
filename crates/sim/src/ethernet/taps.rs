//! The Ethernet taps of a world: what each has learnt and counted, and the frames that wait to be fetched.

use super::address_table::{AddressTable, Place};
use super::{EgressFrame, TapCounts};
use hopline_core::{Instant, NodeId};
use hopline_wire::dot11::MacAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Largest number of frames that wait to be fetched. If the caller never fetches, later ones are dropped.
const EGRESS_LIMIT: usize = 65_536;

/// All taps.
#[derive(Debug)]
pub(crate) struct Taps {
    taps: BTreeMap<NodeId, Tap>,
    egress: VecDeque<EgressFrame>,
}

/// State of a tap.
#[derive(Debug, Default)]
pub(super) struct Tap {
    addresses: AddressTable,
    /// `dropped` and `held` are with the packets.
    pub(super) counts: TapCounts,
}

/// Destination of a frame that came in at a tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// A host behind the same tap.
    Local,
    /// The node with this tap.
    Node(NodeId),
    /// All neighbours.
    Group,
    /// All neighbours, for want of knowledge.
    Unknown,
}

impl Taps {
    pub(crate) fn new(nodes: &BTreeSet<NodeId>) -> Self {
        let taps = nodes.iter().map(|&node| (node, Tap::default())).collect();
        Self { taps, egress: VecDeque::new() }
    }

    /// Returns the nodes that have a tap.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.taps.keys().copied()
    }

    pub(super) fn get(&self, node: NodeId) -> Option<&Tap> {
        self.taps.get(&node)
    }

    pub(super) fn get_mut(&mut self, node: NodeId) -> Option<&mut Tap> {
        self.taps.get_mut(&node)
    }

    pub(super) fn is_full(&self) -> bool {
        self.egress.len() >= EGRESS_LIMIT
    }

    /// Hands out a frame at a tap.
    pub(super) fn emit(&mut self, frame: EgressFrame) {
        if let Some(tap) = self.taps.get_mut(&frame.node) {
            tap.counts.emitted += 1;
        }
        self.egress.push_back(frame);
    }

    pub(super) fn poll_frame(&mut self) -> Option<EgressFrame> {
        self.egress.pop_front()
    }
}

impl Tap {
    /// Records that a frame from `source` came from a place. `owner`: the node with a radio of this address, the place of
    /// which is known.
    pub(super) fn learn(&mut self, now: Instant, source: MacAddr, owner: Option<NodeId>, place: Place) {
        if owner.is_none() {
            self.addresses.learn(now, source, place);
        }
    }

    /// Returns the destination of a frame that came in at this tap, which is that of `node`. `owner`: the node with a
    /// radio of the address.
    pub(super) fn destination(
        &self,
        now: Instant,
        node: NodeId,
        address: MacAddr,
        owner: Option<NodeId>,
    ) -> Destination {
        if address.is_group() {
            return Destination::Group;
        }
        let place = owner.map(Place::Behind).or_else(|| self.addresses.look_up(now, address));
        match place {
            Some(Place::Local) => Destination::Local,
            Some(Place::Behind(owner)) if owner == node => Destination::Local,
            Some(Place::Behind(owner)) => Destination::Node(owner),
            None => Destination::Unknown,
        }
    }
}
