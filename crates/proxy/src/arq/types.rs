//! Parameters, frames, actions and counters of an end of a link.

use crate::pep::QueuePosition;
use core::num::NonZeroU8;
use hopline_core::{Duration, Seq16};

/// Parameters of a link's retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Maximum number of transmissions of a packet, at least 1. Default 10.
    pub max_transmissions: NonZeroU8,
    /// Order of delivery. Default in order.
    pub order: DeliveryMode,
    /// Number of packets after which a parity frame follows; any one lost packet among them can be restored
    /// from it. Default none.
    pub parity_interval: Option<NonZeroU8>,
    /// Minimum retransmission timeout. Default 5 ms.
    pub min_timer: Duration,
}

impl Config {
    /// The defaults.
    pub const DEFAULT: Self = {
        let attempts = NonZeroU8::new(10).expect("not zero");
        Self {
            max_transmissions: attempts,
            order: DeliveryMode::InOrder,
            parity_interval: None,
            min_timer: Duration::from_millis(5),
        }
    };
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Order in which packets leave the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryMode {
    /// In order: a retransmitted packet delays later ones.
    InOrder,
    /// As they arrive.
    Any,
}

/// Maximum number of frames in flight; further packets are refused.
pub const WINDOW_FRAMES: usize = 256;

/// Frame from one end to the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<K> {
    /// A packet, or an empty frame in place of a packet that was given up.
    Data {
        /// Epoch of the sender: one for each restart.
        epoch: u16,
        /// First frame that the sender still remembers.
        first: Seq16,
        /// Number of this frame.
        number: Seq16,
        /// The packet.
        content: Option<K>,
    },
    /// Parity over several packets: any one of them can be restored from it if the other ones have arrived.
    Parity {
        /// Epoch of the sender.
        epoch: u16,
        /// The covered packets, with their numbers.
        of: Vec<(Seq16, K)>,
    },
    /// An acknowledgment.
    Ack {
        /// Epoch of the other end.
        epoch: u16,
        /// All frames before this number have arrived.
        next: Seq16,
        /// Bit map of later frames that have arrived, from the lowest bit on.
        beyond: [u64; WINDOW_FRAMES / 64],
    },
}

impl<K> Frame<K> {
    /// Returns the packets in the frame.
    pub fn packets(&self) -> impl Iterator<Item = &K> {
        let (one, many) = match self {
            Self::Data { content, .. } => (content.as_ref(), &[][..]),
            Self::Parity { of, .. } => (None, &of[..]),
            Self::Ack { .. } => (None, &[][..]),
        };
        one.into_iter().chain(many.iter().map(|(_, packet)| packet))
    }

    /// Returns the frame with each packet converted.
    pub fn map<T>(&self, of: impl Fn(&K) -> T) -> Frame<T> {
        match self {
            Self::Data { epoch, first, number, content } => Frame::Data {
                epoch: *epoch,
                first: *first,
                number: *number,
                content: content.as_ref().map(of),
            },
            Self::Parity { epoch, of: packets } => {
                let of = packets.iter().map(|(number, packet)| (*number, of(packet))).collect();
                Frame::Parity { epoch: *epoch, of }
            }
            Self::Ack { epoch, next, beyond } => Frame::Ack { epoch: *epoch, next: *next, beyond: *beyond },
        }
    }

    /// Returns the length of the frame, bytes, given the length of its packets. Data: the packet and eight
    /// bytes. Parity: the longest covered packet, eight bytes, and two for each packet number.
    /// Acknowledgment: eight bytes, and the words of the bit map up to the last one in use.
    #[must_use]
    pub fn len_bytes(&self, len_of: impl Fn(&K) -> u32) -> u32 {
        const HEADER: u32 = 8;
        let longest = self.packets().map(len_of).max().unwrap_or(0);
        HEADER
            + match self {
                Self::Data { .. } => longest,
                Self::Parity { of, .. } => longest + 2 * of.len() as u32,
                Self::Ack { beyond, .. } => {
                    8 * beyond.iter().rposition(|word| *word != 0).map_or(0, |last| last as u32 + 1)
                }
            }
    }
}

/// Action of an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArqAction<K> {
    /// Send a frame.
    Send(QueuePosition, Frame<K>),
    /// Deliver a packet that has crossed the link.
    Deliver(K),
    /// Refuse a packet: there is no room.
    Refuse(K),
    /// Report an accepted packet as dropped: the queue had no room for it.
    ReportDrop(K),
    /// Release a packet: the other end has it, it was given up, or it is a duplicate.
    Release(K),
}

/// Counters of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets accepted.
    pub packets: u64,
    /// Frames retransmitted.
    pub retransmitted: u64,
    /// Of those, the ones sent by a timeout.
    pub timeouts: u64,
    /// Packets given up after the last attempt.
    pub given_up: u64,
    /// Packets refused: by the queue, or because too many frames were in flight.
    pub refused: u64,
    /// Packets restored from parity.
    pub restored: u64,
    /// Invalid frames: beyond the window, or about frames that were never sent.
    pub invalid: u64,
}
