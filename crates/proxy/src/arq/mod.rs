//! Retransmission by the link itself, with optional forward error correction: what TCP does not lose it need not repair (Paul, Ayanoglu,
//! La Porta, Chen, Sabnani, Gitlin, "An asymmetric protocol for digital cellular communications", INFOCOM 1995, in spirit; the text at
//! hand names link-level schemes and describes none).
//!
//! Both ends of a link have one [`Arq`] each. Packets travel in numbered frames. Each frame that arrives is acknowledged with everything
//! that has arrived; since a link keeps the order, what was sent before something that arrived and has not arrived itself is lost, and goes
//! again at once, ahead of all that waits. What a timer brings about is the last frame alone. A packet that was sent often enough is given
//! up, and so is one that the queue refuses: a frame without content goes in its place, so that nobody waits for it. That the queue is
//! full remains TCP's business.

mod bytes;
mod receiver;
mod sender;

use crate::filter::Turn;
use core::num::NonZeroU8;
use hopline_core::{Duration, Instant, Seq16};
use receiver::Receiver;
use sender::Sender;
use std::collections::VecDeque;

/// How a link repairs its losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Most transmissions of a packet, at least 1. Default 10.
    pub attempts: NonZeroU8,
    /// Whether packets wait for earlier ones. Default they do.
    pub order: Order,
    /// After so many packets a frame from which any one of them that was lost can be made again. Default none.
    pub parity_every: Option<NonZeroU8>,
    /// Least time in which an acknowledgment is waited for. Default 5 ms.
    pub min_timer: Duration,
}

impl Default for Config {
    fn default() -> Self {
        let attempts = NonZeroU8::new(10).expect("not zero");
        Self { attempts, order: Order::Kept, parity_every: None, min_timer: Duration::from_millis(5) }
    }
}

/// Whether packets leave the link in the order in which they came to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// They do: one that is repaired holds up the others.
    Kept,
    /// They leave as they arrive.
    Any,
}

/// Most frames under way: more packets are refused.
pub const WINDOW: usize = 256;

/// What one end sends to the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<K> {
    /// A packet, or none where one was given up.
    Data {
        /// Which life of its sender.
        epoch: u16,
        /// The first frame that the sender still remembers.
        first: Seq16,
        /// Which frame it is.
        number: Seq16,
        /// The packet.
        content: Option<K>,
    },
    /// Any one of these packets can be made from it, if the others are there.
    Parity {
        /// Which life of its sender.
        epoch: u16,
        /// The packets.
        of: Vec<(Seq16, K)>,
    },
    /// What has arrived.
    Ack {
        /// Of which life of the other end.
        epoch: u16,
        /// Everything before this.
        next: Seq16,
        /// And of the frames after that, from the lowest bit on, these.
        beyond: [u64; WINDOW / 64],
    },
}

impl<K> Frame<K> {
    /// The packets in it.
    pub fn packets(&self) -> impl Iterator<Item = &K> {
        let (one, many) = match self {
            Self::Data { content, .. } => (content.as_ref(), &[][..]),
            Self::Parity { of, .. } => (None, &of[..]),
            Self::Ack { .. } => (None, &[][..]),
        };
        one.into_iter().chain(many.iter().map(|(_, packet)| packet))
    }

    /// The same with something else for each packet.
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

    /// Its length where the packets in it are so long: eight bytes beside a packet, or beside the longest of those that parity covers and
    /// two for the number of each; an acknowledgment has as many words of eight bytes as there is something to say.
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

/// What an end does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Does<K> {
    /// It sends a frame.
    Sends(Turn, Frame<K>),
    /// A packet has crossed the link.
    Delivers(K),
    /// It has no room for a packet.
    Refuses(K),
    /// The queue had no room for a packet that it had taken.
    Loses(K),
    /// It lets go of a packet: the other end has it, or it is given up, or it is another copy.
    Discards(K),
}

/// One end of a link. `K`: a packet as whoever drives the machine keeps it; each that is sent again is a copy.
#[derive(Debug)]
pub struct Arq<K> {
    sender: Sender<K>,
    receiver: Receiver<K>,
    out: VecDeque<Does<K>>,
    stats: Stats,
}

/// What an end has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets taken.
    pub packets: u64,
    /// Frames sent again.
    pub sent_again: u64,
    /// Of those, the ones that a timer brought about.
    pub timeouts: u64,
    /// Packets given up after the last attempt.
    pub given_up: u64,
    /// Packets refused: by the queue, or because too many were under way.
    pub refused: u64,
    /// Packets made again from parity.
    pub restored: u64,
    /// Frames that made no sense: beyond the window, or for nothing that was sent.
    pub senseless: u64,
}

impl<K: Clone> Arq<K> {
    /// An end that has sent and received nothing. `epoch`: another one than in its last life.
    #[must_use]
    pub fn new(config: Config, epoch: u16) -> Self {
        let (out, stats) = (VecDeque::new(), Stats::default());
        Self { sender: Sender::new(config, epoch), receiver: Receiver::new(config.order), out, stats }
    }

    /// A packet is to cross the link.
    pub fn send(&mut self, now: Instant, packet: K) {
        self.sender.send(now, packet, &mut self.out, &mut self.stats);
    }

    /// A frame has come from the other end.
    pub fn handle_frame(&mut self, now: Instant, frame: Frame<K>) {
        let (out, stats) = (&mut self.out, &mut self.stats);
        match frame {
            Frame::Data { epoch, first, number, content } => {
                self.receiver.take(epoch, Some(first), number, content, out, stats);
                self.receiver.acknowledge(out);
            }
            Frame::Parity { epoch, of } => {
                self.receiver.take_parity(epoch, of, out, stats);
                self.receiver.acknowledge(out);
            }
            Frame::Ack { epoch, next, beyond } => {
                self.sender.take_ack(now, (epoch, next, beyond), out, stats);
            }
        }
    }

    /// The queue of the link has no room for the frame of this number.
    pub fn refused(&mut self, number: Seq16) {
        self.sender.refused(number, &mut self.out, &mut self.stats);
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.sender.handle_timeout(now, &mut self.out, &mut self.stats);
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Does<K>> {
        self.out.pop_front()
    }

    /// When to call [`Arq::handle_timeout`].
    #[must_use]
    pub const fn poll_timeout(&self) -> Option<Instant> {
        self.sender.due()
    }

    /// Number of packets that it holds: those of the sending half, and received ones that wait for earlier ones.
    #[must_use]
    pub fn held(&self) -> usize {
        self.sender.held() + self.receiver.held()
    }

    /// What it has done.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }
}

#[cfg(test)]
mod tests;
