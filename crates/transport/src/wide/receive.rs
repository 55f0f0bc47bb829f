//! Receiving half: received packets, data for the user, ACK policy.

use super::config::AckConfig;
use super::ranges::RangeSet;
use super::stats::DropReason;
use crate::reassembly::{ReassemblyBuffer, Stored, slice_detached};
use hopline_core::{Duration, Instant, Payload};
use hopline_wire::ipv4::Ecn;
use hopline_wire::wide::{Ack, AckRange, AckUrgency, Data, MAX_ACK_RANGES, Packet, StreamEnd};
use std::collections::VecDeque;

/// Number of initial packets that are acknowledged one by one, since the sender has no estimate of the path yet.
const INITIAL_QUICK_ACKS: u16 = 10;
/// Growth of the window per byte that the user has read. A sender that doubles its rate each round trip needs a small
/// part of it. After losses, however, little is read for a round trip; with a factor of four the start of a transfer is a
/// tenth slower.
const WINDOW_GROWTH: u64 = 64;
/// Largest memory overhead of a piece of data, bytes.
const PIECE_OVERHEAD: u64 = 256;
/// Unit of arrival stamps and delays, nanoseconds.
const DELAY_UNIT_NS: u64 = 16_000;

/// Receiving half of an endpoint.
#[derive(Clone, Debug)]
pub(super) struct ReceiveHalf<P> {
    config: AckConfig,
    /// Largest window, bytes.
    buffer: u64,
    /// Initial window, bytes.
    initial_window: u64,
    /// Current memory limit of received data, bytes.
    memory_limit: u64,
    received: RangeSet,
    /// Largest number, and its time of arrival.
    largest: Option<(u64, Instant)>,
    marks: u32,
    /// Number of received packets that request an answer.
    ack_eliciting: u16,
    /// Start of the wait of unanswered packets, and their number.
    waiting_since: Option<Instant>,
    pending: u32,
    unordered: ReassemblyBuffer<P>,
    /// Offset of the first byte that has not arrived.
    next: u64,
    /// End of the stream, if known.
    end: Option<u64>,
    ready: VecDeque<P>,
    ready_bytes: u64,
    /// Last announced limit.
    announced_limit: u64,
}

/// Content of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketContent {
    /// New data. `in_order`: bytes for the user that are in order now.
    Data {
        in_order: u64,
    },
    /// Duplicate of a packet, made by the network.
    DuplicatePacket,
    /// Data that arrived in another packet before.
    DuplicateData,
    /// No data.
    Nothing,
    Dropped(DropReason),
}

/// Time of the acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckTime {
    None,
    Now,
    At(Instant),
}

impl<P: Payload> ReceiveHalf<P> {
    pub(super) fn new(config: AckConfig, (start, buffer): (u64, u64), most_parts: usize) -> Self {
        Self {
            config,
            buffer,
            initial_window: start.min(buffer),
            memory_limit: u64::MAX,
            received: RangeSet::default(),
            largest: None,
            marks: 0,
            ack_eliciting: 0,
            waiting_since: None,
            pending: 0,
            unordered: ReassemblyBuffer::new(most_parts),
            next: 0,
            end: None,
            ready: VecDeque::new(),
            ready_bytes: 0,
            announced_limit: 0,
        }
    }

    /// Processes a packet. Returns its content and the time of the acknowledgment.
    pub(super) fn handle_packet(&mut self, now: Instant, packet: Packet<P>) -> (PacketContent, AckTime) {
        let (number, asks, answer) = (packet.number, packet.is_ack_eliciting(), packet.ack_urgency);
        if self.received.contains(number) {
            return (PacketContent::DuplicatePacket, AckTime::None);
        }
        let ends = packet.data.as_ref().is_some_and(|data| data.end == StreamEnd::Yes);
        let brought = packet.data.map_or(PacketContent::Nothing, |data| self.handle_data(data));
        // What is not taken is not acknowledged.
        if matches!(brought, PacketContent::Dropped(_)) {
            return (brought, AckTime::Now);
        }
        self.received.insert(number..number + 1);
        self.received.keep_highest(MAX_ACK_RANGES);
        self.marks = self.marks.wrapping_add(u32::from(packet.ecn == Ecn::CongestionExperienced));
        let in_order = self.largest.is_none_or(|(largest, _)| number == largest + 1);
        if self.largest.is_none_or(|(largest, _)| number > largest) {
            self.largest = Some((number, now));
        }
        let answer = if in_order { answer } else { AckUrgency::Urgent };
        (brought, if asks { self.ack_time(now, ends, answer) } else { AckTime::None })
    }

    fn ack_time(&mut self, now: Instant, ends: bool, answer: AckUrgency) -> AckTime {
        self.ack_eliciting = self.ack_eliciting.wrapping_add(1);
        self.pending += 1;
        let since = *self.waiting_since.get_or_insert(now);
        let first = self.ack_eliciting <= INITIAL_QUICK_ACKS && self.next < 1 << 16;
        match answer {
            _ if first || ends => AckTime::Now,
            AckUrgency::Urgent if self.pending >= self.config.every => AckTime::Now,
            AckUrgency::Deferred if self.pending >= self.config.low_rate_every => AckTime::Now,
            AckUrgency::Urgent => AckTime::At(since + self.config.delay),
            AckUrgency::Deferred => AckTime::At(since + self.config.relaxed_delay),
        }
    }

    fn handle_data(&mut self, data: Data<P>) -> PacketContent {
        let end = data.offset + data.payload.len();
        if self.contradicts(data.end, end) {
            return PacketContent::Dropped(DropReason::Inconsistent);
        }
        if end > self.limit() || !self.has_memory_for(&data) {
            return PacketContent::Dropped(DropReason::NoRoom);
        }
        if data.end == StreamEnd::Yes {
            self.end = Some(end);
        }
        let new = self.store(data);
        let Some(new) = new else { return PacketContent::Dropped(DropReason::NoRoom) };
        if new == 0 {
            PacketContent::DuplicateData
        } else {
            PacketContent::Data { in_order: self.release_stored() }
        }
    }

    /// Returns whether there is memory for `data`. The next data in order are accepted as long as the user reads,
    /// whatever is stored behind them. Otherwise neither could ever be delivered.
    fn has_memory_for(&self, data: &Data<P>) -> bool {
        let is_missed = data.offset <= self.next;
        let held = if is_missed { self.ready_memory() } else { self.memory() };
        held + data.payload.len() + PIECE_OVERHEAD <= self.memory_limit
            || (is_missed && self.ready.is_empty())
    }

    /// Stores `data`. Returns the number of new bytes; `None` if there is no room for another piece.
    fn store(&mut self, data: Data<P>) -> Option<u64> {
        let (start, end) = (data.offset, data.offset + data.payload.len());
        if end <= self.next {
            return Some(0);
        }
        let known = self.next.saturating_sub(start);
        let payload =
            if known > 0 { slice_detached(&data.payload, known..end - start) } else { data.payload };
        // What is missed is taken however much waits behind it.
        if start <= self.next {
            let len = payload.len();
            self.deliver_in_order(payload);
            return Some(len);
        }
        match self.unordered.insert(start + known, payload) {
            Stored::New(new) => Some(new),
            Stored::Full => None,
        }
    }

    fn deliver_in_order(&mut self, payload: P) {
        self.next += payload.len();
        self.ready_bytes += payload.len();
        self.ready.push_back(payload);
    }

    /// Moves in-order data to the user. Returns the bytes that are ready for reading.
    fn release_stored(&mut self) -> u64 {
        let (ready, before) = (&mut self.ready, self.next);
        let mut bytes = 0;
        self.next = self.unordered.take_in_order(before, |part: P| {
            bytes += part.len();
            ready.push_back(part);
        });
        self.ready_bytes += bytes;
        self.ready_bytes
    }

    /// Returns whether data contradict the known end of the stream: two ends, or data after the end.
    fn contradicts(&self, ends: StreamEnd, end: u64) -> bool {
        let beyond = self.end.is_some_and(|known| end > known || (ends == StreamEnd::Yes && end != known));
        beyond || (ends == StreamEnd::Yes && end < self.highest())
    }

    fn highest(&self) -> u64 {
        self.unordered.end().unwrap_or(self.next).max(self.next)
    }

    /// Returns whether all of the stream has arrived.
    pub(super) fn is_finished(&self) -> bool {
        self.end == Some(self.next)
    }

    /// Returns the bytes received in order since the start of the connection.
    pub(super) fn in_order(&self) -> u64 {
        self.next
    }

    /// Returns the next piece for the user.
    pub(super) fn read(&mut self) -> Option<P> {
        let piece = self.ready.pop_front()?;
        self.ready_bytes -= piece.len();
        Some(piece)
    }

    /// Returns whether the limit has grown enough for an update to the sender, which may be waiting for it.
    pub(super) fn needs_limit_update(&self) -> bool {
        self.end.is_none() && self.limit() >= self.announced_limit + self.usable_window() / 4
    }

    /// Returns whether received packets wait for an acknowledgment.
    pub(super) fn has_pending(&self) -> bool {
        self.pending > 0
    }

    /// Returns the acknowledgment to send now, if anything has arrived.
    pub(super) fn acknowledge(&mut self, now: Instant) -> Option<Ack> {
        let (_, at) = self.largest?;
        (self.pending, self.waiting_since) = (0, None);
        self.announced_limit = self.limit();
        let spans = self.received.descending().map(|run| AckRange { first: run.start, last: run.end - 1 });
        Some(Ack {
            arrival_us: (at.as_nanos() / 1000) as u32,
            delay: (now.since(at).as_nanos() / DELAY_UNIT_NS).min(u16::MAX.into()) as u16,
            marks: self.marks,
            cumulative: self.next,
            max_data: self.announced_limit,
            ack_eliciting: self.ack_eliciting,
            ranges: spans.collect(),
        })
    }

    /// Returns the limit up to which the peer may send. It never moves back.
    fn limit(&self) -> u64 {
        let room = self.usable_window().saturating_sub(self.ready_bytes);
        (self.next + room).max(self.announced_limit)
    }

    /// Returns the bytes that may be kept now: the window, limited by the available memory.
    fn usable_window(&self) -> u64 {
        self.window().min(self.memory_limit)
    }

    /// Returns the window, bytes: the initial window and a multiple of the bytes that the user has read.
    fn window(&self) -> u64 {
        let read = self.next - self.ready_bytes;
        self.buffer.min(self.initial_window.saturating_add(read.saturating_mul(WINDOW_GROWTH)))
    }

    /// Returns the first limit, for the opening.
    pub(super) fn initial_limit(&self) -> u64 {
        self.initial_window
    }

    /// Limits the memory of received data from now on, in bytes as counted by [`memory`](Self::memory). Stored data stay.
    pub(super) fn set_memory_limit(&mut self, bytes: u64) {
        self.memory_limit = bytes;
    }

    /// Returns the memory of received data, bytes, with their overhead.
    pub(super) fn memory(&self) -> u64 {
        self.ready_memory() + self.unordered.len() + self.unordered.piece_count() as u64 * PIECE_OVERHEAD
    }

    fn ready_memory(&self) -> u64 {
        self.ready_bytes + self.ready.len() as u64 * PIECE_OVERHEAD
    }

    /// Returns the bytes kept for the user, in order or not.
    pub(super) fn unread(&self) -> u64 {
        self.ready_bytes + self.unordered.len()
    }

    /// Discards data that cannot become readable any more.
    pub(super) fn discard_unordered(&mut self) {
        self.unordered.clear();
    }
}

/// Returns the acknowledgment delay that `ack` reports.
pub(super) const fn delay_of(ack: &Ack) -> Duration {
    Duration::from_nanos(ack.delay as u64 * DELAY_UNIT_NS)
}
