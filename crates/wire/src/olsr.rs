//! OLSR packets and messages (RFC 3626 §3.3, §5, §6.1, §9.1, §12.1), IPv4.

mod fields;
mod hello;
mod time;

use fields::{ADDRESS_LEN, addresses, emit_addresses, length_field};
pub use hello::{Hello, LinkCode, LinkMessage, LinkType, NeighbourType, Willingness};
pub use time::CodedTime;

use crate::emit::{address, be16};
use crate::error::{ParseError, require};
use hopline_core::Seq16;
use std::net::Ipv4Addr;

/// UDP port of OLSR.
pub const PORT: u16 = 698;
/// Length of the packet header in bytes.
pub const PACKET_HEADER_LEN: usize = 4;
/// Length of a message header in bytes.
pub const MESSAGE_HEADER_LEN: usize = 12;

const HELLO: u8 = 1;
const TC: u8 = 2;
const MID: u8 = 3;
const HNA: u8 = 4;

const NETWORK_LEN: usize = 8;
const TC_HEADER_LEN: usize = 4;

/// Packet in one datagram to [`PORT`] (RFC 3626 §3.3).
///
/// # Example
///
/// ```
/// use hopline_core::{Duration, Seq16};
/// use hopline_wire::olsr::{Body, CodedTime, Message, Packet, Tc};
///
/// let tc = Tc { ansn: Seq16(7), neighbours: vec![[10, 0, 0, 2].into()] };
/// let message = Message {
///     validity: CodedTime::at_least(Duration::from_secs(15)),
///     originator: [10, 0, 0, 1].into(),
///     ttl: 255,
///     hop_count: 0,
///     seq: Seq16(1),
///     body: Body::Tc(tc),
/// };
/// let packet = Packet { seq: Seq16(1), messages: vec![message] };
/// let mut bytes = Vec::new();
/// packet.emit(&mut bytes);
/// assert_eq!(Packet::parse(&bytes), Ok(packet));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Packet sequence number, incremented for each packet that the interface sends (§3.3.1).
    pub seq: Seq16,
    /// One message or more.
    pub messages: Vec<Message>,
}

/// OLSR message with its header (RFC 3626 §3.3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Vtime: validity time of the content after its reception.
    pub validity: CodedTime,
    /// Main address of the originator; the same at every hop.
    pub originator: Ipv4Addr,
    /// Time to live: remaining transmissions of the message, including this one.
    pub ttl: u8,
    /// Hop count; 0 at the originator.
    pub hop_count: u8,
    /// Message sequence number, incremented for each message of the originator.
    pub seq: Seq16,
    /// The content.
    pub body: Body,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Type 1: the sender's links and neighbours. Never forwarded.
    Hello(Hello),
    /// Type 2: links of the originator to its MPR selectors.
    Tc(Tc),
    /// Type 3: the originator's other interfaces (§5.1).
    Mid(Vec<Ipv4Addr>),
    /// Type 4: networks reached through the originator (§12.1).
    Hna(Vec<Network>),
    /// Another type: forwarded unchanged (§3.4).
    Unknown {
        /// The message type.
        kind: u8,
        /// Bytes behind the message header.
        bytes: Vec<u8>,
    },
}

/// Topology control (RFC 3626 §9.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tc {
    /// ANSN: incremented whenever the advertised neighbours change.
    pub ansn: Seq16,
    /// Main addresses of the advertised neighbours. An empty list withdraws earlier advertisements.
    pub neighbours: Vec<Ipv4Addr>,
}

/// A network outside of OLSR (RFC 3626 §12.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Network address.
    pub address: Ipv4Addr,
    /// Netmask as received, not necessarily contiguous.
    pub mask: Ipv4Addr,
}

impl Packet {
    /// Parses the payload of a datagram to [`PORT`]. Reserved fields are ignored.
    ///
    /// # Errors
    /// `Truncated` packet header or first message header; `BadLength` of a packet length that differs from the datagram's,
    /// and of message and link message sizes that do not match their container or content.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        // A packet without a message is invalid (RFC 3626 §3.4).
        require(bytes, PACKET_HEADER_LEN + MESSAGE_HEADER_LEN)?;
        let len = usize::from(be16(bytes, 0));
        if len > bytes.len() {
            return Err(ParseError::Truncated { needed: len, got: bytes.len() });
        }
        if len < bytes.len() {
            return Err(ParseError::BadLength { what: "olsr packet", value: len });
        }
        let mut messages = Vec::new();
        let mut rest = &bytes[PACKET_HEADER_LEN..];
        while !rest.is_empty() {
            let (message, len) = Message::parse(rest)?;
            messages.push(message);
            rest = &rest[len..];
        }
        Ok(Self { seq: Seq16(be16(bytes, 2)), messages })
    }

    /// Appends the packet.
    ///
    /// # Panics
    /// If it holds no message, or is longer than 65,535 bytes.
    pub fn emit(&self, out: &mut Vec<u8>) {
        assert!(!self.messages.is_empty(), "an OLSR packet holds a message");
        out.extend(length_field(self.wire_len()));
        out.extend(self.seq.0.to_be_bytes());
        for message in &self.messages {
            message.emit(out);
        }
    }

    /// Length on the wire, in bytes.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        PACKET_HEADER_LEN + self.messages.iter().map(Message::wire_len).sum::<usize>()
    }
}

impl Message {
    /// The message at the start of `bytes`, and its length.
    fn parse(bytes: &[u8]) -> Result<(Self, usize), ParseError> {
        require(bytes, MESSAGE_HEADER_LEN)?;
        let len = usize::from(be16(bytes, 2));
        if len < MESSAGE_HEADER_LEN || len > bytes.len() {
            return Err(ParseError::BadLength { what: "olsr message", value: len });
        }
        let message = Self {
            validity: CodedTime::from_bits(bytes[1]),
            originator: address(bytes, 4),
            ttl: bytes[8],
            hop_count: bytes[9],
            seq: Seq16(be16(bytes, 10)),
            body: Body::parse(bytes[0], &bytes[MESSAGE_HEADER_LEN..len])?,
        };
        Ok((message, len))
    }

    fn emit(&self, out: &mut Vec<u8>) {
        out.extend([self.body.kind(), self.validity.bits()]);
        out.extend(length_field(self.wire_len()));
        out.extend(self.originator.octets());
        out.extend([self.ttl, self.hop_count]);
        out.extend(self.seq.0.to_be_bytes());
        self.body.emit(out);
    }

    /// Length on the wire, in bytes, header included.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        MESSAGE_HEADER_LEN + self.body.wire_len()
    }
}

impl Body {
    fn parse(kind: u8, bytes: &[u8]) -> Result<Self, ParseError> {
        Ok(match kind {
            HELLO => Self::Hello(Hello::parse(bytes)?),
            TC => Self::Tc(Tc::parse(bytes)?),
            MID => Self::Mid(addresses(bytes, "olsr mid")?),
            HNA => Self::Hna(networks(bytes)?),
            kind => Self::Unknown { kind, bytes: bytes.to_vec() },
        })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello(hello) => hello.emit(out),
            Self::Tc(tc) => tc.emit(out),
            Self::Mid(interfaces) => emit_addresses(interfaces, out),
            Self::Hna(networks) => {
                for network in networks {
                    out.extend(network.address.octets());
                    out.extend(network.mask.octets());
                }
            }
            Self::Unknown { bytes, .. } => out.extend(bytes),
        }
    }

    fn wire_len(&self) -> usize {
        match self {
            Self::Hello(hello) => hello.wire_len(),
            Self::Tc(tc) => TC_HEADER_LEN + ADDRESS_LEN * tc.neighbours.len(),
            Self::Mid(interfaces) => ADDRESS_LEN * interfaces.len(),
            Self::Hna(networks) => NETWORK_LEN * networks.len(),
            Self::Unknown { bytes, .. } => bytes.len(),
        }
    }

    /// The message type.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        match self {
            Self::Hello(_) => HELLO,
            Self::Tc(_) => TC,
            Self::Mid(_) => MID,
            Self::Hna(_) => HNA,
            Self::Unknown { kind, .. } => *kind,
        }
    }
}

impl Tc {
    fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        require(bytes, TC_HEADER_LEN)?;
        let neighbours = addresses(&bytes[TC_HEADER_LEN..], "olsr tc")?;
        Ok(Self { ansn: Seq16(be16(bytes, 0)), neighbours })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        out.extend(self.ansn.0.to_be_bytes());
        out.extend([0, 0]);
        emit_addresses(&self.neighbours, out);
    }
}

fn networks(bytes: &[u8]) -> Result<Vec<Network>, ParseError> {
    if !bytes.len().is_multiple_of(NETWORK_LEN) {
        return Err(ParseError::BadLength { what: "olsr hna", value: bytes.len() });
    }
    let entries = bytes.chunks_exact(NETWORK_LEN);
    Ok(entries.map(|entry| Network { address: address(entry, 0), mask: address(entry, 4) }).collect())
}

#[cfg(test)]
mod tests;
