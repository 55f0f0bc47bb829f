//! Frames from one end of a link to the other, and their wire format.

use bytes::Bytes;
use hopline_wire::dproxy::frame::{
    self as wire, Body, HEADER_LEN, MAX_NUMBERS, PacketNumbers, TransmissionKind,
};

/// Frame from one end to the other. Each frame names the epoch of the end that sent the packets it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<K> {
    /// A packet.
    Data {
        /// Epoch of the sender.
        epoch: u16,
        /// Number of the packet.
        number: u32,
        /// First transmission or replay.
        sending: TransmissionKind,
        /// The packet.
        packet: K,
    },
    /// Parity over packets with consecutive numbers: any one of them can be restored from it if the other
    /// ones have arrived.
    Parity {
        /// Epoch of the sender.
        epoch: u16,
        /// Number of the first packet.
        first: u32,
        /// The covered packets.
        of: Vec<K>,
    },
    /// Tail probe: the last packet that was sent.
    Tail {
        /// Epoch of the sender.
        epoch: u16,
        /// Number of the packet.
        last: u32,
    },
    /// Packets that are no longer cached.
    Gone {
        /// Epoch of the sender.
        epoch: u16,
        /// Numbers of the packets.
        numbers: Vec<u32>,
    },
    /// Request for missing packets.
    Request {
        /// Epoch of the other end.
        epoch: u16,
        /// Numbers of the packets.
        numbers: Vec<u32>,
    },
    /// Answer to a tail probe: the end of what has arrived, or is no longer waited for.
    Report {
        /// Epoch of the other end.
        epoch: u16,
        /// Number of the first missing packet, or the next one.
        next: u32,
    },
}

impl<K> Frame<K> {
    /// Returns the packets in the frame.
    pub fn packets(&self) -> impl Iterator<Item = &K> {
        let (one, many) = match self {
            Self::Data { packet, .. } => (Some(packet), &[][..]),
            Self::Parity { of, .. } => (None, &of[..]),
            _ => (None, &[][..]),
        };
        one.into_iter().chain(many)
    }

    /// Returns the frame with each packet converted.
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

    /// Returns the length of the frame, bytes, given the length of its packets. Data: the packet and eight
    /// bytes. Parity: the longest covered packet and twelve bytes. Lists: four bytes for each number after
    /// the first.
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

/// Splits numbers into lists that fit a frame.
pub(super) fn split_into_frames(numbers: &[u32]) -> impl Iterator<Item = Vec<u32>> {
    numbers.chunks(MAX_NUMBERS).map(<[u32]>::to_vec)
}

impl Frame<Bytes> {
    /// Returns the frame in wire format. `None` if it has no numbers or too many, or packets longer than
    /// parity can cover.
    #[must_use]
    pub fn to_wire(&self) -> Option<wire::Frame> {
        let (epoch, body) = match self {
            Self::Data { epoch, number, sending, packet } => {
                (epoch, Body::Data { number: *number, transmission: *sending, packet: packet.clone() })
            }
            Self::Parity { epoch, first, of } => {
                (epoch, Body::Parity(wire::Parity::over(*first, of.iter().map(|packet| &packet[..]))?))
            }
            Self::Tail { epoch, last } => (epoch, Body::Tail(*last)),
            Self::Gone { epoch, numbers } => (epoch, Body::NotCached(PacketNumbers::new(numbers.clone())?)),
            Self::Request { epoch, numbers } => (epoch, Body::Request(PacketNumbers::new(numbers.clone())?)),
            Self::Report { epoch, next } => (epoch, Body::Report(*next)),
        };
        Some(wire::Frame { epoch: *epoch, body })
    }

    /// Converts a frame from wire format. `arrived` returns recently received packets of this epoch of the
    /// other end by number, from which parity restores a missing one. `None` if that fails.
    #[must_use]
    pub fn from_wire(frame: wire::Frame, arrived: impl Fn(u32) -> Option<Bytes>) -> Option<Self> {
        let epoch = frame.epoch;
        Some(match frame.body {
            Body::Data { number, transmission: sending, packet } => {
                Self::Data { epoch, number, sending, packet }
            }
            Body::Parity(parity) => {
                Self::Parity { epoch, first: parity.first, of: restore_parity(&parity, arrived)? }
            }
            Body::Tail(last) => Self::Tail { epoch, last },
            Body::NotCached(numbers) => Self::Gone { epoch, numbers: numbers.as_slice().to_vec() },
            Body::Request(numbers) => Self::Request { epoch, numbers: numbers.as_slice().to_vec() },
            Body::Report(next) => Self::Report { epoch, next },
        })
    }
}

/// Returns all packets that parity covers, if at most one of them is missing.
fn restore_parity(parity: &wire::Parity, arrived: impl Fn(u32) -> Option<Bytes>) -> Option<Vec<Bytes>> {
    let packets: Vec<_> = (0..parity.count).map(|n| arrived(parity.first.wrapping_add(n.into()))).collect();
    let missing = packets.iter().filter(|packet| packet.is_none()).count();
    let others = packets.iter().flatten().map(|packet| &packet[..]);
    let made = match missing {
        0 => None,
        1 => Some(parity.recover(others)?),
        _ => return None,
    };
    packets.into_iter().map(|packet| packet.or_else(|| made.clone())).collect()
}
