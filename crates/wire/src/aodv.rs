//! AODV messages (RFC 3561 §5).

use crate::emit::{address, be32};
use crate::error::{ParseError, require};
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
    /// G: a relay that answers also informs the destination.
    pub gratuitous: bool,
    /// D: only the destination may answer.
    pub destination_only: bool,
    /// Hops from the originator to the node handling the request.
    pub hop_count: u8,
    /// Request id; unique together with the originator.
    pub id: u32,
    /// Destination of the discovery.
    pub destination: Ipv4Addr,
    /// Latest sequence number known for the destination; `None` is the U flag.
    pub destination_seq: Option<Seq32>,
    /// Originator of the request.
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
    /// Originator of the request for the route.
    pub originator: Ipv4Addr,
    /// Lifetime of the route; whole milliseconds on the wire, rounded down, at most 2³² − 1.
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
///
/// # Example
///
/// ```
/// use hopline_core::Seq32;
/// use hopline_wire::aodv::{Message, Rreq};
///
/// let request = Message::Rreq(Rreq {
///     join: false,
///     repair: false,
///     gratuitous: false,
///     destination_only: true,
///     hop_count: 0,
///     id: 1,
///     destination: [10, 0, 0, 9].into(),
///     destination_seq: None,
///     originator: [10, 0, 0, 1].into(),
///     originator_seq: Seq32(4),
/// });
/// let mut bytes = Vec::new();
/// request.emit(&mut bytes);
/// assert_eq!(bytes.len(), 24);
/// assert_eq!(Message::parse(&bytes), Ok(request));
/// ```
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

const RREQ: u8 = 1;
const RREP: u8 = 2;
const RERR: u8 = 3;
const RREP_ACK: u8 = 4;

const RREQ_LEN: usize = 24;
const RREP_LEN: usize = 20;
const RERR_HEADER_LEN: usize = 4;
const UNREACHABLE_LEN: usize = 8;
const RREP_ACK_LEN: usize = 2;

/// Bits of the second byte: J, R, G, D, U of an RREQ; R, A of an RREP; N of an RERR.
const JOIN: u8 = 0x80;
const REPAIR: u8 = 0x40;
const GRATUITOUS: u8 = 0x20;
const DESTINATION_ONLY: u8 = 0x10;
const UNKNOWN_SEQ: u8 = 0x08;
const RREP_REPAIR: u8 = 0x80;
const ACK_REQUIRED: u8 = 0x40;
const NO_DELETE: u8 = 0x80;
const PREFIX_SIZE: u8 = 0x1f;

impl Message {
    /// Parses the payload of a datagram to [`PORT`]. Reserved bits are ignored; extensions are skipped, Hello Interval
    /// (§9.1) among them.
    ///
    /// # Errors
    /// `Truncated` message or extension; `BadLength` of an RERR without destinations; `Unsupported` for another type of
    /// message, and for an extension that may not be skipped (§9).
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        require(bytes, RREP_ACK_LEN)?;
        let message = match bytes[0] {
            RREQ => Self::Rreq(Rreq::parse(bytes)?),
            RREP => Self::Rrep(Rrep::parse(bytes)?),
            RERR => Self::Rerr(Rerr::parse(bytes)?),
            RREP_ACK => Self::RrepAck,
            other => return Err(ParseError::Unsupported { what: "aodv type", value: u32::from(other) }),
        };
        skip_extensions(&bytes[message.wire_len()..])?;
        Ok(message)
    }

    /// Appends the message.
    ///
    /// # Panics
    /// If an RERR names no destination or more than 255.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Rreq(rreq) => rreq.emit(out),
            Self::Rrep(rrep) => rrep.emit(out),
            Self::Rerr(rerr) => rerr.emit(out),
            Self::RrepAck => out.extend([RREP_ACK, 0]),
        }
    }

    /// Length on the wire, in bytes.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        match self {
            Self::Rreq(_) => RREQ_LEN,
            Self::Rrep(_) => RREP_LEN,
            Self::Rerr(rerr) => RERR_HEADER_LEN + UNREACHABLE_LEN * rerr.unreachable.len(),
            Self::RrepAck => RREP_ACK_LEN,
        }
    }
}

impl Rreq {
    fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        require(bytes, RREQ_LEN)?;
        let flags = bytes[1];
        Ok(Self {
            join: flags & JOIN != 0,
            repair: flags & REPAIR != 0,
            gratuitous: flags & GRATUITOUS != 0,
            destination_only: flags & DESTINATION_ONLY != 0,
            hop_count: bytes[3],
            id: be32(bytes, 4),
            destination: address(bytes, 8),
            destination_seq: (flags & UNKNOWN_SEQ == 0).then(|| Seq32(be32(bytes, 12))),
            originator: address(bytes, 16),
            originator_seq: Seq32(be32(bytes, 20)),
        })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        let flags = flag(self.join, JOIN)
            | flag(self.repair, REPAIR)
            | flag(self.gratuitous, GRATUITOUS)
            | flag(self.destination_only, DESTINATION_ONLY)
            | flag(self.destination_seq.is_none(), UNKNOWN_SEQ);
        out.extend([RREQ, flags, 0, self.hop_count]);
        out.extend(self.id.to_be_bytes());
        out.extend(self.destination.octets());
        out.extend(self.destination_seq.unwrap_or_default().0.to_be_bytes());
        out.extend(self.originator.octets());
        out.extend(self.originator_seq.0.to_be_bytes());
    }
}

impl Rrep {
    fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        require(bytes, RREP_LEN)?;
        Ok(Self {
            repair: bytes[1] & RREP_REPAIR != 0,
            ack_required: bytes[1] & ACK_REQUIRED != 0,
            prefix_size: bytes[2] & PREFIX_SIZE,
            hop_count: bytes[3],
            destination: address(bytes, 4),
            destination_seq: Seq32(be32(bytes, 8)),
            originator: address(bytes, 12),
            lifetime: Duration::from_millis(u64::from(be32(bytes, 16))),
        })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        let flags = flag(self.repair, RREP_REPAIR) | flag(self.ack_required, ACK_REQUIRED);
        let lifetime = u32::try_from(self.lifetime.as_millis()).unwrap_or(u32::MAX);
        out.extend([RREP, flags, self.prefix_size & PREFIX_SIZE, self.hop_count]);
        out.extend(self.destination.octets());
        out.extend(self.destination_seq.0.to_be_bytes());
        out.extend(self.originator.octets());
        out.extend(lifetime.to_be_bytes());
    }
}

impl Rerr {
    fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        require(bytes, RERR_HEADER_LEN)?;
        // RFC 3561 §5.3: at least one destination.
        let count = usize::from(bytes[3]);
        if count == 0 {
            return Err(ParseError::BadLength { what: "rerr destinations", value: 0 });
        }
        require(bytes, RERR_HEADER_LEN + UNREACHABLE_LEN * count)?;
        let entries = bytes[RERR_HEADER_LEN..].chunks_exact(UNREACHABLE_LEN).take(count);
        let unreachable = entries.map(|entry| (address(entry, 0), Seq32(be32(entry, 4)))).collect();
        Ok(Self { no_delete: bytes[1] & NO_DELETE != 0, unreachable })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        assert!(!self.unreachable.is_empty(), "an RERR names a destination");
        let count = u8::try_from(self.unreachable.len()).expect("an RERR names at most 255 destinations");
        out.extend([RERR, flag(self.no_delete, NO_DELETE), 0, count]);
        for (destination, seq) in &self.unreachable {
            out.extend(destination.octets());
            out.extend(seq.0.to_be_bytes());
        }
    }
}

/// Walks over the extensions: type, length of the data, data.
fn skip_extensions(mut bytes: &[u8]) -> Result<(), ParseError> {
    while !bytes.is_empty() {
        require(bytes, 2)?;
        // RFC 3561 §9: types from 128 on may not be skipped.
        if bytes[0] >= 128 {
            return Err(ParseError::Unsupported { what: "aodv extension", value: u32::from(bytes[0]) });
        }
        let len = 2 + usize::from(bytes[1]);
        require(bytes, len)?;
        bytes = &bytes[len..];
    }
    Ok(())
}

const fn flag(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}

#[cfg(test)]
mod tests;
