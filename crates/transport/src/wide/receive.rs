//! Receiving half: received packets, data for the user, ACK policy.

use super::config::AckConfig;
use super::ranges::Ranges;
use super::stats::DropReason;
use crate::reassembly::{Reassembly, Stored, cut};
use hopline_core::{Duration, Instant, Payload};
use hopline_wire::ipv4::Ecn;
use hopline_wire::wide::{Ack, Answer, Data, End, MOST_SPANS, Packet, Span};
use std::collections::VecDeque;

/// Number of initial packets that are acknowledged one by one, since the sender has no estimate of the path yet.
const ANSWERED_AT_ONCE: u16 = 10;
/// Growth of the window per byte that the user has read. A sender that doubles its rate each round trip needs a small
/// part of it. After losses, however, little is read for a round trip; with a factor of four the start of a transfer is a
/// tenth slower.
const EARNED: u64 = 64;
/// Largest memory overhead of a piece of data, bytes.
const PART_OVERHEAD: u64 = 256;
/// Unit of arrival stamps and delays, nanoseconds.
const DELAY_UNIT_NS: u64 = 16_000;

/// Receiving half of an endpoint.
#[derive(Clone, Debug)]
pub(super) struct Receiver<P> {
    config: AckConfig,
    /// Largest window, bytes.
    buffer: u64,
    /// Initial window, bytes.
    start: u64,
    /// Current memory limit of received data, bytes.
    allowance: u64,
    numbers: Ranges,
    /// Largest number, and its time of arrival.
    largest: Option<(u64, Instant)>,
    marks: u32,
    /// Number of received packets that request an answer.
    arrived: u16,
    /// Start of the wait of unanswered packets, and their number.
    waiting: Option<Instant>,
    pending: u32,
    unordered: Reassembly<P>,
    /// Offset of the first byte that has not arrived.
    next: u64,
    /// End of the stream, if known.
    end: Option<u64>,
    ready: VecDeque<P>,
    ready_bytes: u64,
    /// Last announced limit.
    told: u64,
}

/// Content of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Brought {
    /// New data. `in_order`: bytes for the user that are in order now.
    Data {
        in_order: u64,
    },
    /// Duplicate of a packet, made by the network.
    Copy,
    /// Data that arrived in another packet before.
    Known,
    /// No data.
    Nothing,
    Dropped(DropReason),
}

/// Time of the acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    None,
    Now,
    At(Instant),
}

impl<P: Payload> Receiver<P> {
    pub(super) fn new(config: AckConfig, (start, buffer): (u64, u64), most_parts: usize) -> Self {
        Self {
            config,
            buffer,
            start: start.min(buffer),
            allowance: u64::MAX,
            numbers: Ranges::default(),
            largest: None,
            marks: 0,
            arrived: 0,
            waiting: None,
            pending: 0,
            unordered: Reassembly::new(most_parts),
            next: 0,
            end: None,
            ready: VecDeque::new(),
            ready_bytes: 0,
            told: 0,
        }
    }

    /// Processes a packet. Returns its content and the time of the acknowledgment.
    pub(super) fn take(&mut self, now: Instant, packet: Packet<P>) -> (Brought, Reply) {
        let (number, asks, answer) = (packet.number, packet.asks_for_answer(), packet.answer);
        if self.numbers.contains(number) {
            return (Brought::Copy, Reply::None);
        }
        let ends = packet.data.as_ref().is_some_and(|data| data.end == End::Yes);
        let brought = packet.data.map_or(Brought::Nothing, |data| self.take_data(data));
        // What is not taken is not acknowledged.
        if matches!(brought, Brought::Dropped(_)) {
            return (brought, Reply::Now);
        }
        self.numbers.insert(number..number + 1);
        self.numbers.keep_highest(MOST_SPANS);
        self.marks = self.marks.wrapping_add(u32::from(packet.ecn == Ecn::CongestionExperienced));
        let in_order = self.largest.is_none_or(|(largest, _)| number == largest + 1);
        if self.largest.is_none_or(|(largest, _)| number > largest) {
            self.largest = Some((number, now));
        }
        let answer = if in_order { answer } else { Answer::Soon };
        (brought, if asks { self.reply(now, ends, answer) } else { Reply::None })
    }

    fn reply(&mut self, now: Instant, ends: bool, answer: Answer) -> Reply {
        self.arrived = self.arrived.wrapping_add(1);
        self.pending += 1;
        let since = *self.waiting.get_or_insert(now);
        let first = self.arrived <= ANSWERED_AT_ONCE && self.next < 1 << 16;
        match answer {
            _ if first || ends => Reply::Now,
            Answer::Soon if self.pending >= self.config.every => Reply::Now,
            Answer::Late if self.pending >= self.config.rare_every => Reply::Now,
            Answer::Soon => Reply::At(since + self.config.delay),
            Answer::Late => Reply::At(since + self.config.late),
        }
    }

    fn take_data(&mut self, data: Data<P>) -> Brought {
        let end = data.offset + data.payload.len();
        if self.contradicts(data.end, end) {
            return Brought::Dropped(DropReason::Inconsistent);
        }
        if end > self.limit() || !self.may_keep(&data) {
            return Brought::Dropped(DropReason::NoRoom);
        }
        if data.end == End::Yes {
            self.end = Some(end);
        }
        let new = self.store(data);
        let Some(new) = new else { return Brought::Dropped(DropReason::NoRoom) };
        if new == 0 { Brought::Known } else { Brought::Data { in_order: self.release() } }
    }

    /// Returns whether there is memory for `data`. The next data in order are accepted as long as the user reads,
    /// whatever is stored behind them. Otherwise neither could ever be delivered.
    fn may_keep(&self, data: &Data<P>) -> bool {
        let is_missed = data.offset <= self.next;
        let held = if is_missed { self.ready_memory() } else { self.held() };
        held + data.payload.len() + PART_OVERHEAD <= self.allowance || (is_missed && self.ready.is_empty())
    }

    /// Stores `data`. Returns the number of new bytes; `None` if there is no room for another piece.
    fn store(&mut self, data: Data<P>) -> Option<u64> {
        let (start, end) = (data.offset, data.offset + data.payload.len());
        if end <= self.next {
            return Some(0);
        }
        let known = self.next.saturating_sub(start);
        let payload = if known > 0 { cut(&data.payload, known..end - start) } else { data.payload };
        // What is missed is taken however much waits behind it.
        if start <= self.next {
            let len = payload.len();
            self.hand_over(payload);
            return Some(len);
        }
        match self.unordered.insert(start + known, payload) {
            Stored::New(new) => Some(new),
            Stored::Full => None,
        }
    }

    fn hand_over(&mut self, payload: P) {
        self.next += payload.len();
        self.ready_bytes += payload.len();
        self.ready.push_back(payload);
    }

    /// Moves in-order data to the user. Returns the bytes that are ready for reading.
    fn release(&mut self) -> u64 {
        let (ready, before) = (&mut self.ready, self.next);
        let mut bytes = 0;
        self.next = self.unordered.take(before, |part: P| {
            bytes += part.len();
            ready.push_back(part);
        });
        self.ready_bytes += bytes;
        self.ready_bytes
    }

    /// Returns whether data contradict the known end of the stream: two ends, or data after the end.
    fn contradicts(&self, ends: End, end: u64) -> bool {
        let beyond = self.end.is_some_and(|known| end > known || (ends == End::Yes && end != known));
        beyond || (ends == End::Yes && end < self.highest())
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
    pub(super) fn has_news_of_limit(&self) -> bool {
        self.end.is_none() && self.limit() >= self.told + self.share() / 4
    }

    /// Returns whether received packets wait for an acknowledgment.
    pub(super) fn has_pending(&self) -> bool {
        self.pending > 0
    }

    /// Returns the acknowledgment to send now, if anything has arrived.
    pub(super) fn acknowledge(&mut self, now: Instant) -> Option<Ack> {
        let (_, at) = self.largest?;
        (self.pending, self.waiting) = (0, None);
        self.told = self.limit();
        let spans = self.numbers.descending().map(|run| Span { first: run.start, last: run.end - 1 });
        Some(Ack {
            arrival_us: (at.as_nanos() / 1000) as u32,
            delay: (now.since(at).as_nanos() / DELAY_UNIT_NS).min(u16::MAX.into()) as u16,
            marks: self.marks,
            cumulative: self.next,
            limit: self.told,
            arrived: self.arrived,
            spans: spans.collect(),
        })
    }

    /// Returns the limit up to which the peer may send. It never moves back.
    fn limit(&self) -> u64 {
        let room = self.share().saturating_sub(self.ready_bytes);
        (self.next + room).max(self.told)
    }

    /// Returns the bytes that may be kept now: the window, limited by the available memory.
    fn share(&self) -> u64 {
        self.window().min(self.allowance)
    }

    /// Returns the window, bytes: the initial window and a multiple of the bytes that the user has read.
    fn window(&self) -> u64 {
        let read = self.next - self.ready_bytes;
        self.buffer.min(self.start.saturating_add(read.saturating_mul(EARNED)))
    }

    /// Returns the first limit, for the opening.
    pub(super) fn first_limit(&self) -> u64 {
        self.start
    }

    /// Limits the memory of received data from now on, in bytes as counted by [`held`](Self::held). Stored data stay.
    pub(super) fn allow(&mut self, bytes: u64) {
        self.allowance = bytes;
    }

    /// Returns the memory of received data, bytes, with their overhead.
    pub(super) fn held(&self) -> u64 {
        self.ready_memory() + self.unordered.len() + self.unordered.parts() as u64 * PART_OVERHEAD
    }

    fn ready_memory(&self) -> u64 {
        self.ready_bytes + self.ready.len() as u64 * PART_OVERHEAD
    }

    /// Returns the bytes kept for the user, in order or not.
    pub(super) fn unread(&self) -> u64 {
        self.ready_bytes + self.unordered.len()
    }

    /// Discards data that cannot become readable any more.
    pub(super) fn forget_unordered(&mut self) {
        self.unordered.clear();
    }
}

/// Returns the acknowledgment delay that `ack` reports.
pub(super) const fn delay_of(ack: &Ack) -> Duration {
    Duration::from_nanos(ack.delay as u64 * DELAY_UNIT_NS)
}
