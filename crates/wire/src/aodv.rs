//! AODV messages (RFC 3561 §5).

use hopline_core::{Duration, Seq32};
use std::net::Ipv4Addr;

/// UDP port of AODV.
pub const PORT: u16 = 654;

/// Route request (RFC 3561 §5.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rreq {
    /// J: join, reserved for multicast.
    pub join: bool,
    /// R: repair, reserved for multicast.
    pub repair: bool,
    /// G: a relay that answers also tells the destination.
    pub gratuitous: bool,
    /// D: only the destination may answer.
    pub destination_only: bool,
    /// Hops from the originator to the node handling the request.
    pub hop_count: u8,
    /// Identifies the request together with the originator.
    pub id: u32,
    /// Destination looked for.
    pub destination: Ipv4Addr,
    /// Latest sequence number known for the destination; `None` is the U flag.
    pub destination_seq: Option<Seq32>,
    /// Who asks.
    pub originator: Ipv4Addr,
    /// The originator's own sequence number.
    pub originator_seq: Seq32,
}

/// Route reply (RFC 3561 §5.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rrep {
    /// R: repair, reserved for multicast.
    pub repair: bool,
    /// A: the receiver confirms with RREP-ACK.
    pub ack_required: bool,
    /// Prefix size, 0–31.
    pub prefix_size: u8,
    /// Hops from the originator of the reply to the destination.
    pub hop_count: u8,
    /// Destination of the route.
    pub destination: Ipv4Addr,
    /// The destination's sequence number.
    pub destination_seq: Seq32,
    /// Who asked for the route.
    pub originator: Ipv4Addr,
    /// How long the route is valid; whole milliseconds on the wire.
    pub lifetime: Duration,
}

/// Route error (RFC 3561 §5.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rerr {
    /// N: a node repaired the link, upstream nodes keep the route.
    pub no_delete: bool,
    /// Destinations that became unreachable, with their sequence numbers. 1 to 255.
    pub unreachable: Vec<(Ipv4Addr, Seq32)>,
}

/// Any AODV message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Type 1.
    Rreq(Rreq),
    /// Type 2; a HELLO is an RREP about its own sender with TTL 1 (§6.9).
    Rrep(Rrep),
    /// Type 3.
    Rerr(Rerr),
    /// Type 4.
    RrepAck,
}

impl Message {
    /// Length on the wire, in bytes.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        match self {
            Self::Rreq(_) => 24,
            Self::Rrep(_) => 20,
            Self::Rerr(rerr) => 4 + 8 * rerr.unreachable.len(),
            Self::RrepAck => 2,
        }
    }
}
