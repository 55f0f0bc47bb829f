//! TCP segments in packets, and the packets that are none.

use crate::packet::Packet;
use bytes::Bytes;
use hopline_wire::ParseError;
use hopline_wire::ip::{Header, IpHeader, Protocol};
use hopline_wire::tcp::Segment;
use std::ops::Range;

/// Reason for which a packet bypasses the middlebox.
#[derive(Clone, Copy, Debug)]
pub(super) enum Why {
    OtherVersion,
    OtherProtocol,
    Fragment,
    BadChecksum,
    Malformed,
}

/// TCP segment in a packet.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) ip: Header,
    pub(super) segment: Segment<Bytes>,
    /// Place of the segment in the packet. The packet ends there; link-layer padding may follow.
    pub(super) place: Range<usize>,
}

impl Parsed {
    pub(super) fn of(packet: &Bytes) -> Result<Self, Why> {
        let (ip, place) = Header::parse(packet).map_err(|error| match error {
            ParseError::Unsupported { what: "ip fragment", .. } => Why::Fragment,
            ParseError::Unsupported { what: "ip version", .. } => Why::OtherVersion,
            other => Why::of(other),
        })?;
        if ip.protocol() != Protocol::Tcp {
            return Err(Why::OtherProtocol);
        }
        let segment = Segment::parse(&ip, &packet.slice(place.clone())).map_err(Why::of)?;
        Ok(Self { ip, segment, place })
    }

    pub(super) fn packet(&self) -> Packet<'_, Bytes> {
        Packet::new(&self.ip, &self.segment)
    }

    /// Returns the packet without link-layer padding, so that a retransmission does not include it.
    pub(super) fn whole(&self, packet: &Bytes) -> Bytes {
        packet.slice(..self.place.end)
    }
}

impl Why {
    const fn of(error: ParseError) -> Self {
        match error {
            ParseError::BadChecksum => Self::BadChecksum,
            _ => Self::Malformed,
        }
    }
}
