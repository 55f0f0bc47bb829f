//! HELLO messages (RFC 3626 §6.1).

use super::CodedTime;
use super::fields::{ADDRESS_LEN, addresses, emit_addresses, length_field};
use crate::emit::be16;
use crate::error::{ParseError, require};
use std::net::Ipv4Addr;

const HELLO_HEADER_LEN: usize = 4;
const LINK_HEADER_LEN: usize = 4;

/// The sender's links and neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Htime: the sender's HELLO interval.
    pub interval: CodedTime,
    /// Willingness of the sender to carry traffic for other nodes.
    pub willingness: Willingness,
    /// Neighbours, by link code.
    pub links: Vec<LinkMessage>,
}

/// Neighbours that share a link code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkMessage {
    /// State of the link and of the neighbours.
    pub code: LinkCode,
    /// Addresses of the neighbours' interfaces.
    pub neighbours: Vec<Ipv4Addr>,
}

/// State of a link and of the neighbour at its other end (RFC 3626 §6.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkCode {
    /// A code below 16 with two halves that are defined and go together.
    Valid {
        /// The link.
        link: LinkType,
        /// The neighbour.
        neighbour: NeighbourType,
    },
    /// Any other code: an undefined neighbour type, a symmetric link to no neighbour, or a code from 16 on. Addresses listed
    /// under it are ignored.
    Other(u8),
}

/// State of a link (RFC 3626 §6.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum LinkType {
    /// UNSPEC_LINK: no information about the link.
    Unspecified = 0,
    /// ASYM_LINK: the neighbour's messages are received.
    Asymmetric = 1,
    /// SYM_LINK: both ends receive each other's messages.
    Symmetric = 2,
    /// LOST_LINK: the link has been lost.
    Lost = 3,
}

/// State of a neighbour (RFC 3626 §6.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum NeighbourType {
    /// NOT_NEIGH: no symmetric link to it, or none any more.
    NotNeighbour = 0,
    /// SYM_NEIGH: there is a symmetric link to it.
    Symmetric = 1,
    /// MPR_NEIGH: the same, and the sender has selected it as a multipoint relay.
    Mpr = 2,
}

/// Willingness of a node to carry traffic for other nodes: 0 to 7 (RFC 3626 §18.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Willingness(u8);

impl Willingness {
    /// WILL_NEVER: never a multipoint relay.
    pub const NEVER: Self = Self(0);
    /// WILL_LOW.
    pub const LOW: Self = Self(1);
    /// WILL_DEFAULT.
    pub const DEFAULT: Self = Self(3);
    /// WILL_HIGH.
    pub const HIGH: Self = Self(6);
    /// WILL_ALWAYS: every neighbour selects it.
    pub const ALWAYS: Self = Self(7);

    /// Returns willingness `level`, at most 7.
    #[must_use]
    pub const fn new(level: u8) -> Self {
        if level > Self::ALWAYS.0 { Self::ALWAYS } else { Self(level) }
    }

    /// The level, 0 to 7.
    #[must_use]
    pub const fn level(self) -> u8 {
        self.0
    }
}

impl Hello {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        require(bytes, HELLO_HEADER_LEN)?;
        let mut links = Vec::new();
        let mut rest = &bytes[HELLO_HEADER_LEN..];
        while !rest.is_empty() {
            require(rest, LINK_HEADER_LEN)?;
            let len = usize::from(be16(rest, 2));
            if len < LINK_HEADER_LEN || len > rest.len() {
                return Err(ParseError::BadLength { what: "olsr link message", value: len });
            }
            let neighbours = addresses(&rest[LINK_HEADER_LEN..len], "olsr link message")?;
            links.push(LinkMessage { code: LinkCode::from_bits(rest[0]), neighbours });
            rest = &rest[len..];
        }
        Ok(Self { interval: CodedTime::from_bits(bytes[2]), willingness: Willingness::new(bytes[3]), links })
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        out.extend([0, 0, self.interval.bits(), self.willingness.0]);
        for link in &self.links {
            out.extend([link.code.bits(), 0]);
            out.extend(length_field(link.wire_len()));
            emit_addresses(&link.neighbours, out);
        }
    }

    pub(super) fn wire_len(&self) -> usize {
        HELLO_HEADER_LEN + self.links.iter().map(LinkMessage::wire_len).sum::<usize>()
    }
}

impl LinkMessage {
    fn wire_len(&self) -> usize {
        LINK_HEADER_LEN + ADDRESS_LEN * self.neighbours.len()
    }
}

impl LinkCode {
    /// Returns the link code with these bits.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        let link = match bits & 3 {
            0 => LinkType::Unspecified,
            1 => LinkType::Asymmetric,
            2 => LinkType::Symmetric,
            _ => LinkType::Lost,
        };
        let neighbour = match bits >> 2 {
            0 => NeighbourType::NotNeighbour,
            1 => NeighbourType::Symmetric,
            2 => NeighbourType::Mpr,
            _ => return Self::Other(bits),
        };
        match (link, neighbour) {
            // RFC 3626 §6.1.1: contradicts itself.
            (LinkType::Symmetric, NeighbourType::NotNeighbour) => Self::Other(bits),
            _ => Self::Valid { link, neighbour },
        }
    }

    /// The bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::Valid { link, neighbour } => (neighbour as u8) << 2 | link as u8,
            Self::Other(bits) => bits,
        }
    }
}
