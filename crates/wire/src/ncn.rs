//! Congestion notices of Neighborhood RED: share of packets that each neighbour must drop, and its lifetime (K. Xu et al.,
//! MobiCom 2003, §5.2). The paper has three fields and no widths; the encoding is hopline's.
//!
//! The payload of a UDP datagram, eight bytes, or twelve if a neighbour relays the notice:
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |  packetType   |   reserved    |       lifeTime [ms]           |
//! +---------------+---------------+-------------------------------+
//! |               normalizedPb, in units of 1 / (2³² - 1)         |
//! +---------------------------------------------------------------+
//! |     address of the node that suffers (packetType 2 only)      |
//! +---------------------------------------------------------------+
//! ```

use crate::emit::{address, be16, be32};
use crate::error::{ParseError, require};
use core::fmt;
use hopline_core::Duration;
use std::net::Ipv4Addr;

/// UDP port of notices, source and destination, reserved for experiments by RFC 4727 §6.
pub const PORT: u16 = 1022;
/// Length of a notice.
pub const LEN: usize = 8;
/// Length of a relayed notice.
pub const RELAYED_LEN: usize = 12;

/// packetType of a notice, and of a relayed one.
const NOTICE: u8 = 1;
const RELAYED: u8 = 2;

/// Congestion notice: a node that suffers from contention asks its neighbours to drop packets.
///
/// # Example
///
/// ```
/// use hopline_core::Duration;
/// use hopline_wire::ncn::{StarvedNode, NormalizedPb, Notice};
///
/// let notice = Notice {
///     normalized_pb: NormalizedPb::of(0.25),
///     lifetime: Duration::from_millis(500),
///     starved_node: StarvedNode::Sender,
/// };
/// let mut bytes = Vec::new();
/// notice.emit(&mut bytes);
/// assert_eq!(Notice::parse(&bytes), Ok(notice));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Notice {
    /// Drop share.
    pub normalized_pb: NormalizedPb,
    /// Lifetime of the notice, in whole milliseconds, up to 65.535 s.
    pub lifetime: Duration,
    /// Node that suffers.
    pub starved_node: StarvedNode,
}

/// Node that suffers from congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StarvedNode {
    /// The sender of the notice.
    Sender,
    /// A neighbour of the sender, which relays the notice.
    Neighbour(Ipv4Addr),
}

/// Share of a packet's weight in the neighbourhood's queue that is to be dropped: `normalizedPb`, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NormalizedPb(u32);

impl NormalizedPb {
    /// Zero: no packet is dropped.
    pub const ZERO: Self = Self(0);
    /// One: all packets are dropped.
    pub const ONE: Self = Self(u32::MAX);

    /// Returns the value nearest to `share`. NaN gives zero, and values out of range are clamped.
    #[must_use]
    pub fn of(share: f64) -> Self {
        Self((share.clamp(0.0, 1.0) * f64::from(u32::MAX)).round_ties_even() as u32)
    }

    /// Returns the share as a number from 0 to 1.
    #[must_use]
    pub fn get(self) -> f64 {
        f64::from(self.0) / f64::from(u32::MAX)
    }
}

impl fmt::Display for NormalizedPb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}", self.get())
    }
}

impl Notice {
    /// Parses the payload of a datagram. Bytes after it are ignored.
    ///
    /// # Errors
    /// `Truncated`; `Unsupported` for another packetType.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        require(bytes, LEN)?;
        let about = match bytes[0] {
            NOTICE => StarvedNode::Sender,
            RELAYED => {
                require(bytes, RELAYED_LEN)?;
                StarvedNode::Neighbour(address(bytes, 8))
            }
            other => return Err(ParseError::Unsupported { what: "notice type", value: u32::from(other) }),
        };
        Ok(Self {
            normalized_pb: NormalizedPb(be32(bytes, 4)),
            lifetime: Duration::from_millis(be16(bytes, 2).into()),
            starved_node: about,
        })
    }

    /// Appends the notice, to follow a UDP header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let kind = match self.starved_node {
            StarvedNode::Sender => NOTICE,
            StarvedNode::Neighbour(_) => RELAYED,
        };
        out.extend_from_slice(&[kind, 0]);
        out.extend_from_slice(&self.lifetime_ms().to_be_bytes());
        out.extend_from_slice(&self.normalized_pb.0.to_be_bytes());
        if let StarvedNode::Neighbour(address) = self.starved_node {
            out.extend_from_slice(&address.octets());
        }
    }

    /// Length in bytes.
    #[must_use]
    pub const fn wire_len(&self) -> usize {
        match self.starved_node {
            StarvedNode::Sender => LEN,
            StarvedNode::Neighbour(_) => RELAYED_LEN,
        }
    }

    fn lifetime_ms(&self) -> u16 {
        u16::try_from(self.lifetime.as_millis()).unwrap_or(u16::MAX)
    }
}

#[cfg(test)]
mod tests;
