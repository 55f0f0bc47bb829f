//! Nodes with Neighborhood RED: their radio times, notices, and what they drop for others.

mod delivery;
mod member;
mod observation;

use crate::engine::Engine;
use crate::ids::StationId;
use crate::middlebox_slot::MiddleboxKind;
use crate::node::Node;
use crate::packet::Handle;
use crate::trace::Tracer;
pub(crate) use delivery::NoticeDelivery;
use hopline_core::NodeId;
use hopline_queue::neighborhood_red::ChannelTime;
use hopline_radio::mac::Airtime;
pub(crate) use member::{Neighborhood, OBSERVATION_INTERVAL, notice_packet};

impl Node {
    /// Returns its Neighborhood RED.
    pub(crate) fn neighborhood(&self) -> Option<&Neighborhood> {
        self.middleboxes.iter().find_map(|seat| seat.middlebox.neighborhood())
    }

    /// Returns the same, mutably.
    pub(crate) fn neighborhood_mut(&mut self) -> Option<&mut Neighborhood> {
        self.middleboxes.iter_mut().find_map(|seat| seat.middlebox.neighborhood_mut())
    }
}

impl MiddleboxKind {
    const fn neighborhood(&self) -> Option<&Neighborhood> {
        match self {
            Self::NeighborhoodRed(machine) => Some(machine),
            _ => None,
        }
    }

    const fn neighborhood_mut(&mut self) -> Option<&mut Neighborhood> {
        match self {
            Self::NeighborhoodRed(machine) => Some(machine),
            _ => None,
        }
    }
}

impl<T: Tracer> Engine<T> {
    /// Records that a notice is handed to the radio of `node`, and the members that should receive it.
    pub(crate) fn on_notice_sent(&mut self, node: NodeId, at: StationId, handle: Handle) {
        let now = self.kernel.now;
        if self.nodes[node.index()].neighborhood().is_none() {
            return;
        }
        let Some(air) = &mut self.air else { return };
        let is_member = |other: &NodeId| self.nodes[other.index()].neighborhood().is_some();
        let to = air.in_range(now, at).filter(is_member).map(|other| other.0).collect();
        self.deliveries[node.index()].on_sent(self.kernel.packets.get(handle).serial, to);
    }

    /// Records that a notice was received or overheard at `node`.
    pub(crate) fn on_notice_received(&mut self, node: NodeId, handle: Handle, from: NodeId) {
        if self.nodes[node.index()].neighborhood().is_some() {
            let serial = self.kernel.packets.get(handle).serial;
            self.deliveries[from.index()].on_received(serial, node.0);
        }
    }
}

/// Converts the airtime of the radio to the channel time of Neighborhood RED.
pub(crate) fn channel_time(time: Airtime) -> ChannelTime {
    let busy = time.transmitting + time.receiving + time.sensing + time.nav;
    ChannelTime {
        elapsed: busy + time.idle,
        busy,
        transmitting: time.transmitting,
        receiving: time.addressed,
    }
}
