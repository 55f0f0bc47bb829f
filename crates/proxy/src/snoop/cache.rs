//! Snoop cache: packets of a connection that the mobile host has not acknowledged.

use hopline_core::{Instant, Seq32};
use hopline_wire::tcp::SackBlock;
use std::collections::VecDeque;

/// Packets by sequence number. `K`: a packet as the caller stores it.
#[derive(Debug)]
pub(crate) struct Cache<K> {
    packets: VecDeque<CachedPacket<K>>,
    /// Bytes of the packets, headers included.
    bytes_held: u64,
}

/// Longest headers of a packet (IPv4 and TCP with all options), and overhead of allocation and reference
/// counting.
const MAX_OVERHEAD: u64 = 60 + 60 + 40;

/// A packet that was sent over the last hop, and its state.
#[derive(Debug)]
pub(crate) struct CachedPacket<K> {
    pub(crate) seq: Seq32,
    /// End of its sequence range.
    pub(crate) end: Seq32,
    /// Time of the last transmission.
    pub(crate) sent_at: Instant,
    /// Number of the last transmission in the connection, from 0.
    pub(crate) last_transmission: u32,
    /// Number of the sender's last transmission.
    pub(crate) last_sender_transmission: u32,
    /// TSval of the sender, if present (RFC 7323), or the one for a local retransmission.
    pub(crate) tsval: u32,
    /// Local retransmissions since the sender's last transmission.
    pub(crate) local_retransmissions: u8,
    pub(crate) origin: Origin,
    pub(crate) state: State,
    pub(crate) timestamp_source: TimestampSource,
    pub(crate) packet: K,
}

/// Sender's transmission that a packet is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The first.
    First,
    /// A retransmission: the sender took the packet for lost.
    Retransmission,
}

/// TSval of local retransmissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimestampSource {
    /// The original one.
    Original,
    /// [`CachedPacket::tsval`]: the mobile host would take the original one for old.
    Rewritten,
}

/// State of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It waits before the last hop.
    Waiting,
    /// It is in flight, as far as known.
    Sent,
    /// The mobile host has acknowledged it selectively.
    Sacked,
    /// It is lost, and not retransmitted locally.
    LeftToSender,
}

/// Size of the state of a packet.
const _: () = assert!(size_of::<CachedPacket<()>>() == 32);

impl<K> Default for Cache<K> {
    fn default() -> Self {
        Self { packets: VecDeque::new(), bytes_held: 0 }
    }
}

impl<K> Cache<K> {
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Returns the memory in use, bytes; spare capacity counts.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes_held + (self.packets.capacity() * size_of::<CachedPacket<K>>()) as u64
    }

    pub(crate) fn first(&self) -> Option<&CachedPacket<K>> {
        self.packets.front()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &CachedPacket<K>> {
        self.packets.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut CachedPacket<K>> {
        self.packets.iter_mut()
    }

    /// Returns the packet that begins at `seq`.
    pub(crate) fn get_mut(&mut self, seq: Seq32) -> Option<&mut CachedPacket<K>> {
        let index = self.position(seq);
        self.packets.get_mut(index).filter(|cached| cached.seq == seq)
    }

    /// Returns the index of the first packet that begins at `seq` or later.
    pub(crate) fn position(&self, seq: Seq32) -> usize {
        self.packets.partition_point(|cached| cached.seq.before(seq))
    }

    /// Returns the packets from `index` on.
    pub(crate) fn range_mut(&mut self, index: usize) -> impl Iterator<Item = &mut CachedPacket<K>> {
        self.packets.range_mut(index.min(self.packets.len())..)
    }

    /// Extends a SACK block by adjacent packets that the mobile host has acknowledged selectively.
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

    /// Stores a packet; it replaces one with the same sequence number.
    pub(crate) fn insert(&mut self, cached: CachedPacket<K>) {
        let index = self.position(cached.seq);
        self.bytes_held += cached.bytes();
        match self.packets.get_mut(index) {
            Some(known) if known.seq == cached.seq => {
                self.bytes_held -= known.bytes();
                *known = cached;
            }
            Some(_) => self.packets.insert(index, cached),
            None => self.packets.push_back(cached),
        }
    }

    /// Removes the packet that begins at `seq`. Returns whether there was one.
    pub(crate) fn remove(&mut self, seq: Seq32) -> bool {
        let index = self.position(seq);
        let found = self.packets.get(index).is_some_and(|cached| cached.seq == seq);
        if let Some(removed) = found.then(|| self.packets.remove(index)).flatten() {
            self.bytes_held -= removed.bytes();
        }
        found
    }

    /// Removes all packets before `ack`, and passes each to `sink`.
    pub(crate) fn acknowledge(&mut self, ack: Seq32, mut sink: impl FnMut(&CachedPacket<K>)) {
        while let Some(first) = self.packets.front().filter(|first| !first.end.after(ack)) {
            sink(first);
            self.bytes_held -= first.bytes();
            self.packets.pop_front();
        }
    }
}

impl<K> CachedPacket<K> {
    /// Returns the maximum size of the packet, bytes.
    fn bytes(&self) -> u64 {
        u64::from(self.end.distance_from(self.seq).unsigned_abs()) + MAX_OVERHEAD
    }
}
