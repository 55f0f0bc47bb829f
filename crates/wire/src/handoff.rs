//! Handoff of a mobile host between base stations: beacons, requests of the host, and answers (Balakrishnan, Seshan, Katz,
//! Wireless Networks 1(4), 1995, §4). The paper names the content; the encoding is hopline's.
//!
//! The payload of a UDP datagram:
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |     type      |     about     |         lifetime [ms]         |
//! +---------------+---------------+-------------------------------+
//! |     number: rises from one message of its sender to the       |
//! |     next; that of an answer is the number of what it answers  |
//! +---------------------------------------------------------------+
//! |  address of the station (beacon), of the mobile host (others) |
//! +---------------------------------------------------------------+
//! |  forward: of three packets, oldest first, the source and the  |
//! |  IP identification, 48 bits each, and 16 reserved bits;       |
//! |  register: the care-of address; behind: the number of the     |
//! |  request, 64 bits                                             |
//! +---------------------------------------------------------------+
//! |  tag, 16 bytes: proof that the sender knows the key: of       |
//! |  beacons, or of the mobile host that the message is about     |
//! +---------------------------------------------------------------+
//! ```
//!
//! The number of a behind-message is the one that the next request must exceed.
//!
//! An identification is unique only for its source (RFC 791 §3.2): two servers that send to one host use the same ones.
//!
//! The meaning of `about` depends on the type:
//!
//! - forward-request: number of packets;
//! - registration: 1 if the host has received packets before, else 0;
//! - answer: type of the request.

use crate::emit::{address, array, be16};
use crate::error::{ParseError, require};
use hopline_core::Duration;
use std::net::Ipv4Addr;

/// UDP port of base stations, home agents and mobile hosts, reserved for experiments by RFC 4727 §6.
pub const PORT: u16 = 1021;
/// Length of the common header.
pub const HEADER_LEN: usize = 16;
/// Length of the tag.
pub const TAG_LEN: usize = 16;
/// Packets that a mobile host reports: the last three (§4).
pub const RECENT_PACKETS: usize = 3;
/// Length of the source and the identification of each packet, and of the reserved bits.
const RECENT_PACKETS_LEN: usize = RECENT_PACKETS * PACKET_ID_LEN + 2;
const PACKET_ID_LEN: usize = 6;

const BEACON: u8 = 1;
const FORWARD: u8 = 2;
const BUFFER: u8 = 3;
const STOP: u8 = 4;
const REGISTER: u8 = 5;
const REPLY: u8 = 6;
const STALE: u8 = 7;

/// Message of a base station, a home agent or a mobile host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// Message number, which rises from one message of a sender to the next. An answer has the number of its request.
    pub number: u64,
    /// Content.
    pub body: MessageBody,
}

/// The content of a [`Message`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageBody {
    /// Beacon of a base station.
    Beacon {
        /// Address of the base station.
        station: Ipv4Addr,
    },
    /// Request of a mobile host.
    Request {
        /// Home address of the mobile host.
        mobile: Ipv4Addr,
        /// Requested lifetime, in whole milliseconds, up to 65.535 s.
        lifetime: Duration,
        /// Requested action.
        action: RequestAction,
    },
    /// Confirmation of a request.
    Reply {
        /// Home address of the requesting host.
        mobile: Ipv4Addr,
        /// Granted lifetime.
        lifetime: Duration,
        /// Kind of the request.
        kind: RequestKind,
    },
    /// Refusal of a request with a number that is not above an earlier one. The number of this message is that earlier
    /// number. The request may be a replay. A mobile host that restarted with an earlier clock repeats its request with a
    /// higher number.
    Stale {
        /// Home address of the requesting host.
        mobile: Ipv4Addr,
        /// Number of its request.
        requested: u64,
    },
}

/// Action that a mobile host requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestAction {
    /// To a base station: forward packets for the host, and of the buffered packets those after the last of these.
    Forward(RecentPackets),
    /// To a base station: buffer the last packets for the host.
    Buffer,
    /// To a base station: stop forwarding and buffering.
    Stop,
    /// To the home agent, through a base station: send all packets for the host to this address.
    Register {
        /// Address of the base station.
        care_of: Ipv4Addr,
        /// Earlier reception by the host, after which other base stations may know its connections.
        prior_reception: PriorReception,
    },
}

/// Earlier reception by a mobile host that registers with a base station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PriorReception {
    /// None yet: no base station knows its connections.
    None,
    /// Packets were received, at this base station or at another.
    Received,
}

/// Kind of a request, in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// [`RequestAction::Forward`].
    Forward,
    /// [`RequestAction::Buffer`].
    Buffer,
    /// [`RequestAction::Stop`].
    Stop,
    /// [`RequestAction::Register`].
    Register,
}

/// A packet that a mobile host has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketId {
    /// Address of the sender.
    pub source: Ipv4Addr,
    /// IP identification.
    pub id: u16,
}

/// The last packets that a mobile host has received: three at most, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecentPackets {
    packets: [PacketId; RECENT_PACKETS],
    count: u8,
}

impl Default for RecentPackets {
    fn default() -> Self {
        Self { packets: [PacketId { source: Ipv4Addr::UNSPECIFIED, id: 0 }; RECENT_PACKETS], count: 0 }
    }
}

/// A message with its tag.
///
/// # Example
///
/// ```
/// use hopline_core::Duration;
/// use hopline_wire::handoff::{Message, MessageBody, RequestAction, TAG_LEN, TaggedMessage};
///
/// let body = MessageBody::Request {
///     mobile: [192, 0, 2, 1].into(),
///     lifetime: Duration::from_secs(5),
///     action: RequestAction::Buffer,
/// };
/// let tagged = TaggedMessage { message: Message { number: 1, body }, tag: [0; TAG_LEN] };
/// let mut bytes = Vec::new();
/// tagged.emit(&mut bytes);
/// assert_eq!(TaggedMessage::parse(&bytes), Ok(tagged));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaggedMessage {
    /// The message.
    pub message: Message,
    /// Authentication tag: proves that the sender has the key; zero without a key.
    pub tag: [u8; TAG_LEN],
}

impl RecentPackets {
    /// Records a received packet, in place of the oldest of three.
    pub fn push(&mut self, packet: PacketId) {
        if usize::from(self.count) == RECENT_PACKETS {
            self.packets.rotate_left(1);
            self.packets[RECENT_PACKETS - 1] = packet;
        } else {
            self.packets[usize::from(self.count)] = packet;
            self.count += 1;
        }
    }

    /// Returns whether the host has received any packet.
    #[must_use]
    pub const fn prior_reception(&self) -> PriorReception {
        if self.count == 0 { PriorReception::None } else { PriorReception::Received }
    }

    /// Returns the packets, oldest first.
    #[must_use]
    pub fn as_slice(&self) -> &[PacketId] {
        &self.packets[..usize::from(self.count)]
    }
}

impl RequestAction {
    /// Returns the kind of the request.
    #[must_use]
    pub const fn kind(&self) -> RequestKind {
        match self {
            Self::Forward(_) => RequestKind::Forward,
            Self::Buffer => RequestKind::Buffer,
            Self::Stop => RequestKind::Stop,
            Self::Register { .. } => RequestKind::Register,
        }
    }
}

impl RequestKind {
    const fn code(self) -> u8 {
        match self {
            Self::Forward => FORWARD,
            Self::Buffer => BUFFER,
            Self::Stop => STOP,
            Self::Register => REGISTER,
        }
    }

    const fn of(code: u8) -> Option<Self> {
        match code {
            FORWARD => Some(Self::Forward),
            BUFFER => Some(Self::Buffer),
            STOP => Some(Self::Stop),
            REGISTER => Some(Self::Register),
            _ => None,
        }
    }
}

impl Message {
    /// Appends all bytes before the tag, over which the tag is computed.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let (code, about, lifetime, address) = match self.body {
            MessageBody::Beacon { station } => (BEACON, 0, Duration::ZERO, station),
            MessageBody::Request { mobile, lifetime, action: asks } => {
                let about = match asks {
                    RequestAction::Forward(latest) => latest.count,
                    RequestAction::Register { prior_reception: past, .. } => {
                        u8::from(past == PriorReception::Received)
                    }
                    RequestAction::Buffer | RequestAction::Stop => 0,
                };
                (asks.kind().code(), about, lifetime, mobile)
            }
            MessageBody::Reply { mobile, lifetime, kind: to } => (REPLY, to.code(), lifetime, mobile),
            MessageBody::Stale { mobile, .. } => (STALE, 0, Duration::ZERO, mobile),
        };
        let lifetime_ms = u16::try_from(lifetime.as_millis()).unwrap_or(u16::MAX);
        out.extend_from_slice(&[code, about]);
        out.extend_from_slice(&lifetime_ms.to_be_bytes());
        out.extend_from_slice(&self.number.to_be_bytes());
        out.extend_from_slice(&address.octets());
        match self.body {
            MessageBody::Request { action: RequestAction::Forward(latest), .. } => {
                for PacketId { source, id } in latest.packets {
                    out.extend_from_slice(&source.octets());
                    out.extend_from_slice(&id.to_be_bytes());
                }
                out.extend_from_slice(&[0, 0]);
            }
            MessageBody::Request { action: RequestAction::Register { care_of, .. }, .. } => {
                out.extend_from_slice(&care_of.octets());
            }
            MessageBody::Stale { requested: asked, .. } => out.extend_from_slice(&asked.to_be_bytes()),
            _ => {}
        }
    }

    /// Length in bytes, without the tag.
    #[must_use]
    pub const fn wire_len(&self) -> usize {
        HEADER_LEN
            + match self.body {
                MessageBody::Request { action: RequestAction::Forward(_), .. } => RECENT_PACKETS_LEN,
                MessageBody::Stale { .. } => 8,
                MessageBody::Request { action: RequestAction::Register { .. }, .. } => 4,
                _ => 0,
            }
    }

    fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        require(bytes, HEADER_LEN)?;
        let (code, about) = (bytes[0], bytes[1]);
        let lifetime = Duration::from_millis(be16(bytes, 2).into());
        let (number, whose) = (u64::from_be_bytes(array(bytes, 4)), address(bytes, 12));
        let request = |asks| MessageBody::Request { mobile: whose, lifetime, action: asks };
        let says = match code {
            BEACON => MessageBody::Beacon { station: whose },
            FORWARD => request(RequestAction::Forward(parse_recent_packets(bytes, about)?)),
            BUFFER => request(RequestAction::Buffer),
            STOP => request(RequestAction::Stop),
            REGISTER => {
                require(bytes, HEADER_LEN + 4)?;
                let past = if about == 0 { PriorReception::None } else { PriorReception::Received };
                request(RequestAction::Register {
                    care_of: address(bytes, HEADER_LEN),
                    prior_reception: past,
                })
            }
            REPLY => {
                let unknown = ParseError::Unsupported { what: "handoff answer", value: about.into() };
                MessageBody::Reply { mobile: whose, lifetime, kind: RequestKind::of(about).ok_or(unknown)? }
            }
            STALE => {
                require(bytes, HEADER_LEN + 8)?;
                MessageBody::Stale { mobile: whose, requested: u64::from_be_bytes(array(bytes, HEADER_LEN)) }
            }
            other => return Err(ParseError::Unsupported { what: "handoff type", value: other.into() }),
        };
        Ok(Self { number, body: says })
    }
}

/// Returns the packets of a forward-request; the unused ones are zero.
fn parse_recent_packets(bytes: &[u8], count: u8) -> Result<RecentPackets, ParseError> {
    require(bytes, HEADER_LEN + RECENT_PACKETS_LEN)?;
    if usize::from(count) > RECENT_PACKETS {
        return Err(ParseError::BadLength { what: "identifications", value: count.into() });
    }
    let mut latest = RecentPackets::default();
    for number in 0..usize::from(count) {
        let at = HEADER_LEN + number * PACKET_ID_LEN;
        latest.push(PacketId { source: address(bytes, at), id: be16(bytes, at + 4) });
    }
    Ok(latest)
}

impl TaggedMessage {
    /// Parses the payload of a datagram. Bytes after it and reserved bytes are ignored.
    ///
    /// # Errors
    /// `Truncated`; `Unsupported` for another type, and for an answer to one; `BadLength` of more than three
    /// identifications.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let message = Message::parse(bytes)?;
        let len = message.wire_len();
        require(bytes, len + TAG_LEN)?;
        Ok(Self { message, tag: array(bytes, len) })
    }

    /// Appends the message and its tag, to follow a UDP header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        self.message.emit(out);
        out.extend_from_slice(&self.tag);
    }

    /// Length in bytes.
    #[must_use]
    pub const fn wire_len(&self) -> usize {
        self.message.wire_len() + TAG_LEN
    }
}

#[cfg(test)]
mod tests;
