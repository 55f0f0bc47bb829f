//! Parser of the kernel's messages about a queue. It trusts no input. An invalid length ends the datagram; an invalid
//! attribute invalidates its message only.

use super::message::{NFNL_HEADER_LEN, kind};
use hopline_linux::netlink::{self, BadLength, attributes, ne32};

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// A queued packet.
    Packet(Queued<'a>),
    /// Acknowledgement of a request, or an error about a verdict, which has the number 0.
    Answer {
        /// Number of the request.
        sequence: u32,
        /// 0 for success, otherwise an error number as in errno(3).
        error: i32,
    },
    /// Another message.
    Other,
}

/// A packet that waits for a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued<'a> {
    /// Number of the queue.
    pub queue: u16,
    /// Identifier of the packet.
    pub id: u32,
    /// Index of the interface by which it came.
    pub in_interface: Option<u32>,
    /// Index of the interface by which it will leave.
    pub out_interface: Option<u32>,
    /// Firewall mark (`SO_MARK`); 0: none.
    pub mark: u32,
    /// The packet.
    pub packet: &'a [u8],
    /// Completeness of the packet.
    pub completeness: Completeness,
}

/// Completeness of a packet in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// It is as it will be on the wire.
    Whole,
    /// It is truncated.
    Truncated,
    /// Its checksums are incomplete, or it will be segmented.
    Incomplete,
}

/// Reason that a message is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The message exceeds the datagram, or is shorter than its header.
    Length,
    /// An attribute exceeds the message, or is shorter than its header.
    AttributeLength,
    /// The length of an attribute's value does not match its type.
    Value,
    /// An attribute occurs twice.
    Duplicate,
    /// Unsupported version of nfnetlink.
    Version,
    /// A packet has no header.
    NoHeader,
}

/// Returns the messages of a datagram, up to the first with an invalid length.
pub fn messages(datagram: &[u8]) -> impl Iterator<Item = Result<Message<'_>, Malformed>> {
    netlink::messages(datagram).map(|message| message_of(message.map_err(|BadLength| Malformed::Length)?))
}

fn message_of(message: netlink::Message<'_>) -> Result<Message<'_>, Malformed> {
    const PACKET: u16 = kind(libc::NFQNL_MSG_PACKET);
    const ANSWER: u16 = libc::NLMSG_ERROR as u16;
    let netlink::Message { kind, sequence, body } = message;
    match kind {
        ANSWER => {
            let error = ne32(body, 0).ok_or(Malformed::Length)? as i32;
            // The kernel negates error numbers. The minimum has no opposite.
            Ok(Message::Answer { sequence, error: error.saturating_neg() })
        }
        PACKET => queued(body).map(Message::Packet),
        _ => Ok(Message::Other),
    }
}

fn queued(body: &[u8]) -> Result<Queued<'_>, Malformed> {
    let (&[_family, version, high, low], rest) =
        body.split_first_chunk::<NFNL_HEADER_LEN>().ok_or(Malformed::Length)?;
    if i32::from(version) != libc::NFNETLINK_V0 {
        return Err(Malformed::Version);
    }
    let mut said = PacketAttributes::default();
    for attribute in attributes(rest) {
        said.set(attribute.map_err(|BadLength| Malformed::AttributeLength)?)?;
    }
    let id = said.id.ok_or(Malformed::NoHeader)?;
    let unfinished = (libc::NFQA_SKB_CSUMNOTREADY | libc::NFQA_SKB_GSO) as u32;
    let shape = if said.whole_len.is_some() {
        Completeness::Truncated
    } else if said.state.unwrap_or(0) & unfinished != 0 {
        Completeness::Incomplete
    } else {
        Completeness::Whole
    };
    Ok(Queued {
        queue: u16::from_be_bytes([high, low]),
        id,
        in_interface: said.in_interface,
        out_interface: said.out_interface,
        mark: said.mark.unwrap_or(0),
        packet: said.packet.unwrap_or(&[]),
        completeness: shape,
    })
}

/// Relevant attributes of a packet.
#[derive(Clone, Copy, Debug, Default)]
struct PacketAttributes<'a> {
    id: Option<u32>,
    in_interface: Option<u32>,
    out_interface: Option<u32>,
    mark: Option<u32>,
    packet: Option<&'a [u8]>,
    /// Original length; present only if the packet was truncated.
    whole_len: Option<u32>,
    state: Option<u32>,
}

impl<'a> PacketAttributes<'a> {
    fn set(&mut self, (kind, value): (u16, &'a [u8])) -> Result<(), Malformed> {
        match i32::from(kind) {
            // Identifier, link-layer protocol (16 bits), hook.
            libc::NFQA_PACKET_HDR => match *value {
                [a, b, c, d, _, _, _hook] => set_once(&mut self.id, u32::from_be_bytes([a, b, c, d])),
                _ => Err(Malformed::Value),
            },
            libc::NFQA_IFINDEX_INDEV => set_once(&mut self.in_interface, number(value)?),
            libc::NFQA_IFINDEX_OUTDEV => set_once(&mut self.out_interface, number(value)?),
            libc::NFQA_MARK => set_once(&mut self.mark, number(value)?),
            libc::NFQA_CAP_LEN => set_once(&mut self.whole_len, number(value)?),
            libc::NFQA_SKB_INFO => set_once(&mut self.state, number(value)?),
            libc::NFQA_PAYLOAD => set_once(&mut self.packet, value),
            _ => Ok(()),
        }
    }
}

fn set_once<T>(place: &mut Option<T>, value: T) -> Result<(), Malformed> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Malformed::Duplicate),
    }
}

fn number(value: &[u8]) -> Result<u32, Malformed> {
    value.try_into().map(u32::from_be_bytes).map_err(|_| Malformed::Value)
}
