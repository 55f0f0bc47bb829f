//! Kinds of frames that the map of a report distinguishes.

use hopline_core::Length;
use hopline_sim::trace::{Body, Packet, PacketView};
use hopline_transport::any::Segment;
use hopline_wire::dot11::Frame;
use hopline_wire::tcp::Flags;
use hopline_wire::tpa::Control;

/// A kind of frame or packet. Numbered as in templates/network/read.js.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// Request to send.
    Rts = 0,
    /// Clear to send.
    Cts = 1,
    /// Acknowledgment of the MAC, alone or of a block, or the request for one.
    MacAck = 2,
    /// Data of a flow.
    Data = 3,
    /// An acknowledgment of a transport, without data, or the end of a connection.
    TransportAck = 4,
    /// Packets of routing protocols.
    Routing = 5,
    /// Anything else: address resolution, notices, reports, handoffs.
    Other = 6,
}

/// Added to the kind of a packet on a wire.
pub(super) const WIRED: i64 = 8;

impl Kind {
    pub(super) fn of_frame(frame: &Frame<PacketView<'_>>) -> Self {
        match frame {
            Frame::Rts { .. } => Self::Rts,
            Frame::Cts { .. } => Self::Cts,
            Frame::Ack { .. } | Frame::BlockAck { .. } | Frame::BlockAckReq { .. } => Self::MacAck,
            Frame::Action { .. } => Self::Other,
            Frame::Data { body, .. } | Frame::QosData { body, .. } => Self::of_packet(*body),
        }
    }

    /// Returns the kind of a packet; of a packet that carries another one, the kind of that.
    pub(super) fn of_packet(view: PacketView<'_>) -> Self {
        match (&inner(view).body, inner(view).account.flow()) {
            (Body::Segment(segment), _) if !carries_data(segment) => Self::TransportAck,
            (Body::Segment(_) | Body::Udp { .. } | Body::External(_) | Body::Ethernet(_), _) => Self::Data,
            (Body::Routing { .. }, _) => Self::Routing,
            (_, Some(_)) => Self::Data,
            (_, None) => Self::Other,
        }
    }
}

/// Returns the packet within, if there is one, else the packet itself.
pub(super) fn inner(view: PacketView<'_>) -> &Packet {
    view.inner.unwrap_or(view.packet)
}

/// Returns whether a segment carries data, or requests a connection, with which a flow begins.
fn carries_data(segment: &Segment<Length>) -> bool {
    let requests = match segment {
        Segment::Tcp(segment) => segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK),
        Segment::Tpa { segment, .. } => segment.control == Control::Syn && segment.ack.is_none(),
        Segment::Wide { packet, .. } => packet.opening.is_some() && packet.ack.is_none(),
        Segment::Quic { datagram, .. } => datagram.is_initial(),
    };
    requests || segment.data_len() > 0
}
