//! TCP segments in packets, and the packets that are none.

use crate::packet::Packet;
use bytes::Bytes;
use hopline_wire::ParseError;
use hopline_wire::ip::{Header, IpHeader, Protocol};
use hopline_wire::tcp::Segment;
use std::ops::Range;

/// Reason for which a packet bypasses the middlebox.
#[derive(Clone, Copy, Debug)]
pub(super) enum BypassReason {
    OtherVersion,
    OtherProtocol,
    Fragment,
    BadChecksum,
    Malformed,
}

/// TCP segment in a packet.
#[derive(Debug)]
pub(super) struct ParsedSegment {
    pub(super) ip: Header,
    pub(super) segment: Segment<Bytes>,
    /// Place of the segment in the packet. The packet ends there; link-layer padding may follow.
    pub(super) segment_range: Range<usize>,
}

impl ParsedSegment {
    pub(super) fn parse(packet: &Bytes) -> Result<Self, BypassReason> {
        let (ip, place) = Header::parse(packet).map_err(|error| match error {
            ParseError::Unsupported { what: "ip fragment", .. } => BypassReason::Fragment,
            ParseError::Unsupported { what: "ip version", .. } => BypassReason::OtherVersion,
            other => BypassReason::from_parse_error(other),
        })?;
        if ip.protocol() != Protocol::Tcp {
            return Err(BypassReason::OtherProtocol);
        }
        let segment =
            Segment::parse(&ip, &packet.slice(place.clone())).map_err(BypassReason::from_parse_error)?;
        Ok(Self { ip, segment, segment_range: place })
    }

    pub(super) fn packet(&self) -> Packet<'_, Bytes> {
        Packet::new(&self.ip, &self.segment)
    }

    /// Returns the packet without link-layer padding, so that a retransmission does not include it.
    pub(super) fn without_padding(&self, packet: &Bytes) -> Bytes {
        packet.slice(..self.segment_range.end)
    }
}

impl BypassReason {
    const fn from_parse_error(error: ParseError) -> Self {
        match error {
            ParseError::BadChecksum => Self::BadChecksum,
            _ => Self::Malformed,
        }
    }
}
