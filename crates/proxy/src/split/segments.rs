//! Segments that begin a connection, and resets.

use hopline_core::{Payload, Seq32};
use hopline_transport::any::Segment;
use hopline_wire::tcp::{self, Flags};

/// Returns the reset that answers a segment (RFC 9293 §3.10.7.1).
pub(super) fn reset_for<P: Payload>(segment: &tcp::Segment<P>) -> tcp::Segment<P> {
    let acks = segment.flags.contains(Flags::ACK);
    tcp::Segment {
        src_port: segment.dst_port,
        dst_port: segment.src_port,
        seq: if acks { segment.ack } else { Seq32(0) },
        ack: if acks { Seq32(0) } else { segment.seq_end() },
        flags: if acks { Flags::RST } else { Flags::RST | Flags::ACK },
        ..tcp::Segment::default()
    }
}

/// Returns whether a segment may begin a connection. For TPA its header says so.
pub(super) fn is_connection_request<P: Payload>(segment: &Segment<P>) -> bool {
    match segment {
        Segment::Tcp(segment) => segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK),
        Segment::Tpa { segment, .. } => segment.control == hopline_wire::tpa::Control::Syn,
        Segment::Wide { packet, .. } => packet.opening.is_some() && packet.ack.is_none(),
        Segment::Quic { datagram, .. } => datagram.is_initial(),
    }
}
