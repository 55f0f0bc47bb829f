//! What the kernel says about a queue. Nothing is believed: a length that does not fit ends the datagram, an attribute that is not as it
//! must be spoils its message alone.

use super::message::{GENERAL, kind};
use crate::netlink::{self, BadLength, attributes, ne32};

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// A packet waits.
    Packet(Queued<'a>),
    /// The answer to the request with this number, or what is wrong with a verdict, whose number is 0.
    Answer {
        /// Of the request.
        sequence: u32,
        /// 0: done; else as errno(3) has them.
        error: i32,
    },
    /// Something else.
    Other,
}

/// A packet that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued<'a> {
    /// In this queue.
    pub queue: u16,
    /// What the kernel knows it by.
    pub id: u32,
    /// Number of the interface through which it came.
    pub came_by: Option<u32>,
    /// Number of the interface through which it will leave.
    pub leaves_by: Option<u32>,
    /// Its mark (`SO_MARK`, rules of the firewall); 0: none.
    pub mark: u32,
    /// The packet.
    pub packet: &'a [u8],
    /// Whether that is all of it, and as it will be on the wire.
    pub shape: Shape,
}

/// How a packet stands in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// As it will be on the wire.
    Whole,
    /// Its end is missing.
    Cut,
    /// Its checksums have not been written yet, or it will be cut up into several.
    Unfinished,
}

/// Why something is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// A message longer than what is left, or shorter than its header.
    Length,
    /// An attribute longer than what is left, or shorter than its header.
    AttributeLength,
    /// An attribute whose value has another length than its kind demands.
    Value,
    /// The same attribute twice.
    Twice,
    /// Another version of nfnetlink.
    Version,
    /// A packet without a header.
    NoHeader,
}

/// The messages of a datagram, up to the first that has no end.
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
            // The kernel has them negative; the least number has no opposite.
            Ok(Message::Answer { sequence, error: error.saturating_neg() })
        }
        PACKET => queued(body).map(Message::Packet),
        _ => Ok(Message::Other),
    }
}

fn queued(body: &[u8]) -> Result<Queued<'_>, Malformed> {
    let (&[_family, version, high, low], rest) =
        body.split_first_chunk::<GENERAL>().ok_or(Malformed::Length)?;
    if i32::from(version) != libc::NFNETLINK_V0 {
        return Err(Malformed::Version);
    }
    let mut said = Said::default();
    for attribute in attributes(rest) {
        said.take(attribute.map_err(|BadLength| Malformed::AttributeLength)?)?;
    }
    let id = said.id.ok_or(Malformed::NoHeader)?;
    let unfinished = (libc::NFQA_SKB_CSUMNOTREADY | libc::NFQA_SKB_GSO) as u32;
    let shape = if said.whole_len.is_some() {
        Shape::Cut
    } else if said.state.unwrap_or(0) & unfinished != 0 {
        Shape::Unfinished
    } else {
        Shape::Whole
    };
    Ok(Queued {
        queue: u16::from_be_bytes([high, low]),
        id,
        came_by: said.came_by,
        leaves_by: said.leaves_by,
        mark: said.mark.unwrap_or(0),
        packet: said.packet.unwrap_or(&[]),
        shape,
    })
}

/// The attributes of a packet that matter here.
#[derive(Clone, Copy, Debug, Default)]
struct Said<'a> {
    id: Option<u32>,
    came_by: Option<u32>,
    leaves_by: Option<u32>,
    mark: Option<u32>,
    packet: Option<&'a [u8]>,
    /// Only where the packet was cut.
    whole_len: Option<u32>,
    state: Option<u32>,
}

impl<'a> Said<'a> {
    fn take(&mut self, (kind, value): (u16, &'a [u8])) -> Result<(), Malformed> {
        match i32::from(kind) {
            // The number, the protocol of the link layer (16 bits), the hook.
            libc::NFQA_PACKET_HDR => match *value {
                [a, b, c, d, _, _, _hook] => once(&mut self.id, u32::from_be_bytes([a, b, c, d])),
                _ => Err(Malformed::Value),
            },
            libc::NFQA_IFINDEX_INDEV => once(&mut self.came_by, number(value)?),
            libc::NFQA_IFINDEX_OUTDEV => once(&mut self.leaves_by, number(value)?),
            libc::NFQA_MARK => once(&mut self.mark, number(value)?),
            libc::NFQA_CAP_LEN => once(&mut self.whole_len, number(value)?),
            libc::NFQA_SKB_INFO => once(&mut self.state, number(value)?),
            libc::NFQA_PAYLOAD => once(&mut self.packet, value),
            _ => Ok(()),
        }
    }
}

fn once<T>(place: &mut Option<T>, value: T) -> Result<(), Malformed> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Malformed::Twice),
    }
}

fn number(value: &[u8]) -> Result<u32, Malformed> {
    value.try_into().map(u32::from_be_bytes).map_err(|_| Malformed::Value)
}
