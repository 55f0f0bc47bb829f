//! What is kept of a connection: the packets that the mobile host has not acknowledged.

use hopline_core::{Instant, Seq32};
use hopline_wire::tcp::SackBlock;
use std::collections::VecDeque;

/// Packets by sequence number. `K`: a packet as who drives the machine keeps it.
#[derive(Debug)]
pub(crate) struct Cache<K> {
    packets: VecDeque<Cached<K>>,
    /// Bytes of the packets themselves.
    held: u64,
}

/// Longest headers of a packet (IPv4 and TCP with all their options), and what the allocator and whoever shares it add.
const HEADERS: u64 = 60 + 60 + 40;

/// A packet that was sent over the last hop, and what is known of it.
#[derive(Debug)]
pub(crate) struct Cached<K> {
    pub(crate) seq: Seq32,
    /// The number after its last.
    pub(crate) end: Seq32,
    /// When it was sent last.
    pub(crate) sent: Instant,
    /// Which transmission of the connection that was, from 0.
    pub(crate) order: u32,
    /// Which the sender's was.
    pub(crate) from_sender: u32,
    /// The sender's clock when he sent it, if he says so (RFC 7323), or what it is to show.
    pub(crate) clock: u32,
    /// How often it was sent again from here since the sender sent it.
    pub(crate) local: u8,
    pub(crate) by: Origin,
    pub(crate) state: State,
    pub(crate) dated: Dated,
    pub(crate) kept: K,
}

/// Whose transmission a packet was last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The sender's first.
    First,
    /// The sender's second, or later: it took it for lost.
    Sender,
}

/// Which clock a packet shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dated {
    /// The one with which it came.
    AsSent,
    /// [`Cached::clock`]: the mobile host would take its own for old.
    Anew,
}

/// What is to be done about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It has not left yet.
    Waiting,
    /// It is under way, as far as is known.
    Sent,
    /// The mobile host has it and has said so selectively.
    Sacked,
    /// It is lost, and nobody here sends it again.
    LeftToSender,
}

/// State beside the packet itself.
const _: () = assert!(size_of::<Cached<()>>() == 32);

impl<K> Default for Cache<K> {
    fn default() -> Self {
        Self { packets: VecDeque::new(), held: 0 }
    }
}

impl<K> Cache<K> {
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Memory that it takes, in bytes; room that it has had need of stays its own.
    pub(crate) fn bytes(&self) -> u64 {
        self.held + (self.packets.capacity() * size_of::<Cached<K>>()) as u64
    }

    pub(crate) fn first(&self) -> Option<&Cached<K>> {
        self.packets.front()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Cached<K>> {
        self.packets.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Cached<K>> {
        self.packets.iter_mut()
    }

    /// The packet that begins at `seq`.
    pub(crate) fn at(&mut self, seq: Seq32) -> Option<&mut Cached<K>> {
        let index = self.position(seq);
        self.packets.get_mut(index).filter(|cached| cached.seq == seq)
    }

    /// The first packet that begins at `seq` or later: its number.
    pub(crate) fn position(&self, seq: Seq32) -> usize {
        self.packets.partition_point(|cached| cached.seq.before(seq))
    }

    /// The packets from number `index` on.
    pub(crate) fn range_mut(&mut self, index: usize) -> impl Iterator<Item = &mut Cached<K>> {
        self.packets.range_mut(index.min(self.packets.len())..)
    }

    /// A block of what the mobile host has said selectively that it has, with all that it has said of what is next to it.
    pub(crate) fn sacked_around(&self, block: SackBlock) -> SackBlock {
        let first = self.position(block.left);
        let SackBlock { mut left, mut right } = block;
        let before = self.packets.range(..first).rev();
        for cached in before.take_while(|cached| cached.state == State::Sacked) {
            if cached.end != left {
                break;
            }
            left = cached.seq;
        }
        let after = self.packets.range(self.position(block.right)..);
        for cached in after.take_while(|cached| cached.state == State::Sacked) {
            if cached.seq != right {
                break;
            }
            right = cached.end;
        }
        SackBlock { left, right }
    }

    /// Keeps a packet, in place of one with the same number.
    pub(crate) fn insert(&mut self, cached: Cached<K>) {
        let index = self.position(cached.seq);
        self.held += cached.bytes();
        match self.packets.get_mut(index) {
            Some(known) if known.seq == cached.seq => {
                self.held -= known.bytes();
                *known = cached;
            }
            Some(_) => self.packets.insert(index, cached),
            None => self.packets.push_back(cached),
        }
    }

    /// Lets go of the packet that begins at `seq`, if there is one.
    pub(crate) fn remove(&mut self, seq: Seq32) -> bool {
        let index = self.position(seq);
        let found = self.packets.get(index).is_some_and(|cached| cached.seq == seq);
        if let Some(removed) = found.then(|| self.packets.remove(index)).flatten() {
            self.held -= removed.bytes();
        }
        found
    }

    /// Lets go of everything before `ack`, and hands each to `sink`.
    pub(crate) fn acknowledge(&mut self, ack: Seq32, mut sink: impl FnMut(&Cached<K>)) {
        while let Some(first) = self.packets.front().filter(|first| !first.end.after(ack)) {
            sink(first);
            self.held -= first.bytes();
            self.packets.pop_front();
        }
    }
}

impl<K> Cached<K> {
    /// Of the packet itself, at most.
    fn bytes(&self) -> u64 {
        u64::from(self.end.distance_from(self.seq).unsigned_abs()) + HEADERS
    }
}
