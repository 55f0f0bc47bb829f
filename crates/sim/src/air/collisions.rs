//! Counters of the frames sent to one neighbour and of those that collided: frames with data of flows, and
//! frames with their acknowledgments.

use crate::kernel::{Kernel, NodeCounters};
use crate::outcome::UnicastFrames;
use crate::packet::{Body, Handle, PacketAccount, PacketSlab};
use hopline_core::NodeId;
use hopline_wire::dot11::Frame;

/// Kind of flow content in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Data: bytes of a connection, or a datagram.
    Data,
    /// A segment without data.
    Ack,
}

impl NodeCounters {
    fn addressed(&mut self, kind: Kind) -> &mut UnicastFrames {
        match kind {
            Kind::Data => &mut self.data_frames,
            Kind::Ack => &mut self.ack_frames,
        }
    }
}

/// Counts a frame of `node` that goes out.
pub(super) fn count_sent<T>(kernel: &mut Kernel<T>, node: NodeId, frame: &Frame<Handle>) {
    if let Some(kind) = kind(&kernel.packets, frame) {
        kernel.counters[node.index()].addressed(kind).sent += 1;
    }
}

/// Counts a frame of `node` that another signal kept from the station that it was for.
pub(super) fn count_collided<T>(kernel: &mut Kernel<T>, node: NodeId, frame: &Frame<Handle>) {
    if let Some(kind) = kind(&kernel.packets, frame) {
        kernel.counters[node.index()].addressed(kind).collided += 1;
    }
}

fn kind(packets: &PacketSlab, frame: &Frame<Handle>) -> Option<Kind> {
    let (Frame::Data { body, ra, .. } | Frame::QosData { body, ra, .. }) = frame else { return None };
    let mut packet = packets.get(*body);
    while let Some(within) = packet.inner() {
        packet = packets.get(within);
    }
    match (&packet.body, packet.account) {
        _ if ra.is_group() => None,
        (Body::Segment(segment), PacketAccount::Flow(_)) if segment.data_len() == 0 => Some(Kind::Ack),
        (_, PacketAccount::Flow(_)) => Some(Kind::Data),
        _ => None,
    }
}
