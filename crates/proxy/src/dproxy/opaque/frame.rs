//! What one end of a link sends to the other, and its bytes.

use bytes::Bytes;
use hopline_wire::dproxy::frame::{self as wire, Body, HEADER_LEN, MOST_NUMBERS, Numbers, Sending};

/// What one end sends to the other. Each frame names the life of the end whose packets it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<K> {
    /// A packet.
    Data {
        /// Which life of its sender.
        epoch: u16,
        /// Which packet it is.
        number: u32,
        /// Whether it was sent before.
        sending: Sending,
        /// The packet.
        packet: K,
    },
    /// Any one of these packets, which have successive numbers, can be made from it if the others are there.
    Parity {
        /// Which life of its sender.
        epoch: u16,
        /// The number of the first.
        first: u32,
        /// The packets.
        of: Vec<K>,
    },
    /// The last packet that was sent.
    Tail {
        /// Which life of its sender.
        epoch: u16,
        /// Its number.
        last: u32,
    },
    /// These packets are not kept any more.
    Gone {
        /// Which life of its sender.
        epoch: u16,
        /// Their numbers.
        numbers: Vec<u32>,
    },
    /// These packets are missing.
    Request {
        /// Of which life of the other end.
        epoch: u16,
        /// Their numbers.
        numbers: Vec<u32>,
    },
    /// The answer to a tail: how far everything has arrived, or is not waited for.
    Report {
        /// Of which life of the other end.
        epoch: u16,
        /// The first number that is missing, or the next.
        next: u32,
    },
}

impl<K> Frame<K> {
    /// The packets in it.
    pub fn packets(&self) -> impl Iterator<Item = &K> {
        let (one, many) = match self {
            Self::Data { packet, .. } => (Some(packet), &[][..]),
            Self::Parity { of, .. } => (None, &of[..]),
            _ => (None, &[][..]),
        };
        one.into_iter().chain(many)
    }

    /// The same with something else for each packet.
    pub fn map<T>(&self, of: impl Fn(&K) -> T) -> Frame<T> {
        match self {
            Self::Data { epoch, number, sending, packet } => {
                Frame::Data { epoch: *epoch, number: *number, sending: *sending, packet: of(packet) }
            }
            Self::Parity { epoch, first, of: packets } => {
                Frame::Parity { epoch: *epoch, first: *first, of: packets.iter().map(of).collect() }
            }
            Self::Tail { epoch, last } => Frame::Tail { epoch: *epoch, last: *last },
            Self::Gone { epoch, numbers } => Frame::Gone { epoch: *epoch, numbers: numbers.clone() },
            Self::Request { epoch, numbers } => Frame::Request { epoch: *epoch, numbers: numbers.clone() },
            Self::Report { epoch, next } => Frame::Report { epoch: *epoch, next: *next },
        }
    }

    /// Its length where the packets in it are so long: eight bytes beside a packet, twelve beside the longest of those that parity covers,
    /// four for each number beside the first.
    #[must_use]
    pub fn len_bytes(&self, len_of: impl Fn(&K) -> u32) -> u32 {
        let longest = self.packets().map(len_of).max().unwrap_or(0);
        HEADER_LEN as u32
            + match self {
                Self::Data { .. } => longest,
                Self::Parity { .. } => 4 + longest,
                Self::Gone { numbers, .. } | Self::Request { numbers, .. } => {
                    4 * numbers.len().saturating_sub(1) as u32
                }
                Self::Tail { .. } | Self::Report { .. } => 0,
            }
    }
}

/// These numbers, so many to a frame.
pub(super) fn in_frames(numbers: &[u32]) -> impl Iterator<Item = Vec<u32>> {
    numbers.chunks(MOST_NUMBERS).map(<[u32]>::to_vec)
}

impl Frame<Bytes> {
    /// The frame as it is on the link. `None` if it has no numbers or too many of them, or packets longer than parity can cover.
    #[must_use]
    pub fn to_wire(&self) -> Option<wire::Frame> {
        let (epoch, body) = match self {
            Self::Data { epoch, number, sending, packet } => {
                (epoch, Body::Data { number: *number, sending: *sending, packet: packet.clone() })
            }
            Self::Parity { epoch, first, of } => {
                (epoch, Body::Parity(wire::Parity::over(*first, of.iter().map(|packet| &packet[..]))?))
            }
            Self::Tail { epoch, last } => (epoch, Body::Tail(*last)),
            Self::Gone { epoch, numbers } => (epoch, Body::Gone(Numbers::new(numbers.clone())?)),
            Self::Request { epoch, numbers } => (epoch, Body::Request(Numbers::new(numbers.clone())?)),
            Self::Report { epoch, next } => (epoch, Body::Report(*next)),
        };
        Some(wire::Frame { epoch: *epoch, body })
    }

    /// The frame that came over the link as these. `arrived`: the packets of this life of the other end that have arrived lately, by
    /// number; from them and parity the one that is missing is made. `None` if it cannot be.
    #[must_use]
    pub fn from_wire(frame: wire::Frame, arrived: impl Fn(u32) -> Option<Bytes>) -> Option<Self> {
        let epoch = frame.epoch;
        Some(match frame.body {
            Body::Data { number, sending, packet } => Self::Data { epoch, number, sending, packet },
            Body::Parity(parity) => {
                Self::Parity { epoch, first: parity.first, of: complete(&parity, arrived)? }
            }
            Body::Tail(last) => Self::Tail { epoch, last },
            Body::Gone(numbers) => Self::Gone { epoch, numbers: numbers.as_slice().to_vec() },
            Body::Request(numbers) => Self::Request { epoch, numbers: numbers.as_slice().to_vec() },
            Body::Report(next) => Self::Report { epoch, next },
        })
    }
}

/// All packets that parity covers, if at most one of them is not there.
fn complete(parity: &wire::Parity, arrived: impl Fn(u32) -> Option<Bytes>) -> Option<Vec<Bytes>> {
    let packets: Vec<_> = (0..parity.count).map(|n| arrived(parity.first.wrapping_add(n.into()))).collect();
    let missing = packets.iter().filter(|packet| packet.is_none()).count();
    let others = packets.iter().flatten().map(|packet| &packet[..]);
    let made = match missing {
        0 => None,
        1 => Some(parity.missing(others)?),
        _ => return None,
    };
    packets.into_iter().map(|packet| packet.or_else(|| made.clone())).collect()
}
