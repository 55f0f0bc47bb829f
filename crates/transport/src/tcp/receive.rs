//! Received data: reassembly, ACK policy, and window announcements.

use super::config::{AckPolicy, Config, DsackReports, OptionOffer};
use super::endpoint::{Endpoint, FIRST_DATA};
use super::quick_ack::QuickAck;
use super::receiver_rules::ReceiverRules;
use super::stats::DropReason;
use super::timer::Timer;
use crate::connection::{Event, State};
use crate::reassembly::{ReassemblyBuffer, Stored};
use hopline_core::{Duration, Instant, Payload, Seq32};
use hopline_wire::tcp::{Flags, SackBlock, SackBlocks, Segment};
use std::collections::VecDeque;

/// Largest shift (RFC 7323 §2.3).
const MAX_WINDOW_SHIFT: u8 = 14;
/// Bytes of receive buffer per out-of-order piece that may be kept, and the number of pieces beyond that.
const BYTES_PER_PIECE: usize = 256;
const MIN_PIECES: usize = 64;
const MAX_PIECES: usize = 65_536;
/// Time after which a timestamp is no longer valid (RFC 7323 §5.5).
const TIMESTAMP_LIFETIME: Duration = Duration::from_secs(24 * 24 * 3600);

/// Receiving half. Positions are stream offsets of the peer.
#[derive(Clone, Debug)]
pub(super) struct ReceiveHalf<P> {
    pub(super) irs: Seq32,
    /// Next position expected ("RCV.NXT").
    pub(super) nxt: u64,
    /// End of the announced window; never moves back.
    pub(super) right_edge: u64,
    pub(super) scale: u8,
    /// `true` if both sides offered window scaling.
    pub(super) scale_agreed: bool,
    pub(super) ready: VecDeque<P>,
    pub(super) ready_bytes: u64,
    pub(super) reassembly: ReassemblyBuffer<P>,
    /// Duplicate data to report in the next acknowledgment (RFC 2883).
    duplicate: Option<(u64, u64)>,
    /// Bytes of receive buffer in use: those of the configuration, or fewer where the host says so.
    pub(super) buffer: u64,
    /// Pieces that `ready` may hold before data are dropped.
    pub(super) max_ready_pieces: usize,
    /// Position of the peer's FIN, if known.
    pub(super) fin: Option<u64>,
    pub(super) pending_ack: PendingAck,
    /// Position in the last acknowledgment sent ("Last.ACK.sent").
    pub(super) last_ack_sent: u64,
    /// Timestamp to echo ("TS.Recent") and the time of its arrival.
    pub(super) ts_recent: Option<(u32, Instant)>,
    /// Timestamp of the segment that arrived last.
    pub(super) ts_latest: u32,
    /// Immediate acknowledgments.
    pub(super) quick: QuickAck,
    /// Last arrival of data, or the opening of the connection.
    pub(super) last_data: Option<Instant>,
}

/// Acknowledgment to be sent to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PendingAck {
    /// None.
    None,
    /// Delayed: `segments` segments wait for further ones, or for the timer.
    Delayed { segments: u8 },
    /// At once.
    Now,
}

impl<P: Payload> ReceiveHalf<P> {
    pub(super) fn new(config: &Config) -> Self {
        let pieces = (config.receive_buffer as usize / BYTES_PER_PIECE + MIN_PIECES).min(MAX_PIECES);
        Self {
            irs: Seq32(0),
            nxt: 0,
            right_edge: 0,
            scale: 0,
            scale_agreed: false,
            ready: VecDeque::new(),
            ready_bytes: 0,
            reassembly: ReassemblyBuffer::new(pieces),
            buffer: config.receive_buffer.into(),
            max_ready_pieces: usize::MAX,
            duplicate: None,
            fin: None,
            pending_ack: PendingAck::None,
            last_ack_sent: 0,
            ts_recent: None,
            ts_latest: 0,
            quick: QuickAck::default(),
            last_data: None,
        }
    }

    pub(super) fn seq(&self, position: u64) -> Seq32 {
        self.irs + position as u32
    }

    /// Returns the shift that can express the whole buffer.
    pub(super) fn shift_for(config: &Config) -> Option<u8> {
        (config.window_scale == OptionOffer::Offered).then(|| {
            (0..MAX_WINDOW_SHIFT).find(|&s| config.receive_buffer >> s <= 0xffff).unwrap_or(MAX_WINDOW_SHIFT)
        })
    }

    /// Returns the window for a SYN, which is never scaled (RFC 7323 §2.2).
    pub(super) fn syn_window(&mut self, config: &Config) -> u16 {
        let (buffer, mss) = (self.buffer, u64::from(config.mss));
        let window = match config.receiver_rules {
            ReceiverRules::Linux if buffer > mss => buffer - buffer % mss,
            ReceiverRules::Linux | ReceiverRules::Rfc9293 => buffer,
        };
        let window = window.min(0xffff) as u16;
        self.right_edge = self.right_edge.max(self.nxt + u64::from(window));
        window
    }

    /// Returns the window field to announce, and moves the edge.
    pub(super) fn announce_window(&mut self, config: &Config) -> u16 {
        let offered = self.right_edge - self.nxt;
        let free = self.free();
        // RFC 9293 §3.8.6.2.2: the edge moves by a segment or half the buffer at least.
        let window = if free >= offered + self.min_window_update(config) { free } else { offered };
        // Rounding down may retract the edge seen by the peer by less than one unit (RFC 7323 §2.4); what was announced
        // before is still accepted.
        let field = (window >> self.scale).min(0xffff) as u16;
        self.right_edge = self.right_edge.max(self.nxt + (u64::from(field) << self.scale));
        field
    }

    fn free(&self) -> u64 {
        self.buffer.saturating_sub(self.ready_bytes)
    }

    fn min_window_update(&self, config: &Config) -> u64 {
        (self.buffer / 2).min(config.mss.into()).max(1)
    }

    /// Requests a window update after the user has read data, if it at least doubles the peer's window (as Linux does).
    pub(super) fn request_window_update(&mut self, config: &Config) {
        let offered = self.right_edge - self.nxt;
        let free = self.free().min(0xffff << self.scale);
        if free >= 2 * offered && free >= offered + self.min_window_update(config) {
            self.pending_ack = PendingAck::Now;
        }
    }

    pub(super) fn discard_unordered(&mut self) {
        self.reassembly.clear();
        self.pending_ack = PendingAck::None;
    }

    /// Returns the number of blocks of the next SACK option, at most `most`.
    pub(super) fn count_sack_blocks(&self, most: usize) -> usize {
        let none = self.reassembly.is_empty() && self.duplicate.is_none();
        if none { 0 } else { self.blocks_to_report().take(most).count() }
    }

    /// Returns the blocks of the next SACK option.
    pub(super) fn sack_blocks(&mut self, most: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        for (left, right) in self.blocks_to_report().take(most) {
            blocks.push(SackBlock { left: self.seq(left), right: self.seq(right) });
        }
        self.duplicate = None; // RFC 2883 §4: each duplicate is reported once
        blocks
    }

    /// Returns the blocks to report: a duplicate first, then the blocks of the data (RFC 2883 §4).
    fn blocks_to_report(&self) -> impl Iterator<Item = (u64, u64)> {
        self.duplicate.into_iter().chain(self.reassembly.blocks())
    }
}

impl<P: Payload> Endpoint<P> {
    /// Returns whether the segment is older than received ones (PAWS, RFC 7323 §5.3 R1).
    pub(super) fn is_old_timestamp(&self, now: Instant, segment: &Segment<P>) -> bool {
        match (segment.options.timestamps, self.rcv.ts_recent) {
            (Some(ts), Some((recent, at))) => {
                (ts.value.wrapping_sub(recent) as i32) < 0 && now.since(at) <= TIMESTAMP_LIFETIME
            }
            _ => false,
        }
    }

    /// Records the timestamp to echo, if the segment covers the last acknowledgment sent (RFC 7323 §4.3 (2)).
    pub(super) fn update_ts_recent(&mut self, now: Instant, position: i64, segment: &Segment<P>) {
        let (true, Some(ts)) = (self.options.timestamps, segment.options.timestamps) else { return };
        self.rcv.ts_latest = ts.value;
        if position <= self.rcv.last_ack_sent as i64 && !self.is_old_timestamp(now, segment) {
            self.rcv.ts_recent = Some((ts.value, now));
        }
    }

    /// As `update_ts_recent`, for data that were all received before. RFC 7323 §5.3 R2 would ignore them, and the ACK for
    /// them would echo a timestamp from before the ACKs that were lost. The peer would then take its own timeouts for a
    /// round-trip time. Only positions within one receive buffer count, and only segments with an acceptable ACK, so that
    /// a blind attacker gains nothing.
    pub(super) fn update_ts_recent_on_duplicate(
        &mut self,
        now: Instant,
        position: i64,
        segment: &Segment<P>,
    ) {
        let earliest = self.rcv.last_ack_sent as i64 - i64::from(self.config.receive_buffer);
        if position >= earliest {
            self.update_ts_recent(now, position, segment);
        }
    }

    /// Records that data from `left` to `right` arrived again. One ACK reports the first duplicate only.
    pub(super) fn record_duplicate_range(&mut self, left: i64, right: u64) {
        let left = left.max(FIRST_DATA as i64) as u64;
        if self.options.sack && self.config.dsack == DsackReports::On && left < right {
            self.stats.dsacks_sent += u64::from(self.rcv.duplicate.is_none());
            self.rcv.duplicate.get_or_insert((left, right));
        }
    }

    /// Processes the data and the FIN of a segment that was cut to the window and starts at `position`.
    pub(super) fn handle_data(&mut self, now: Instant, position: u64, segment: Segment<P>) {
        let len = segment.payload.len();
        let fin = segment.flags.contains(Flags::FIN);
        if len == 0 && !fin {
            return;
        }
        if !self.state().may_receive() {
            // RFC 9293 §3.10.7.4: "this should not occur, since a FIN has been received".
            self.drop_segment(DropReason::AfterClose);
            return;
        }
        if len > 0 {
            self.rcv.last_data = Some(now);
        }
        let in_order = position == self.rcv.nxt;
        if len > 0 && self.rcv.ready.len() >= self.rcv.max_ready_pieces {
            // What the segment acknowledges was taken. The data come again, as if they had been lost.
            self.drop_segment(DropReason::UnreadLimit);
            self.rcv.pending_ack = PendingAck::Now;
            return;
        }
        if fin {
            // The first FIN counts; a peer that moves it is broken.
            self.rcv.fin.get_or_insert(position + len);
        }
        let filled_gap = !self.rcv.reassembly.is_empty();
        let ends_beyond_window = position + len > self.rcv.right_edge;
        if len > 0 {
            if filled_gap
                && let Some((left, right)) = self.rcv.reassembly.first_overlap(position, position + len)
            {
                self.record_duplicate_range(left as i64, right);
            }
            if in_order {
                self.deliver_in_order(segment.payload)
            } else {
                self.store_out_of_order(position, segment.payload)
            }
        }
        self.handle_fin(now);
        if fin && in_order && len == 0 && self.lets_ack_of_fin_wait() {
            return self.delay_ack(now);
        }
        let may_wait = self.config.ack_policy != AckPolicy::EverySegment;
        if ends_beyond_window && in_order && may_wait && self.rcv.pending_ack == PendingAck::None {
            return self.delay_ack(now);
        }
        // A segment that repeats data is reported at once (RFC 2883 §4).
        if in_order && !filled_gap && !fin && self.rcv.duplicate.is_none() {
            self.schedule_ack(now)
        } else {
            self.rcv.pending_ack = PendingAck::Now
        }
    }

    /// Passes data that came with the SYN of a simultaneous open to the user.
    pub(super) fn deliver_data_of_syn(&mut self, now: Instant) {
        let waits = !self.rcv.reassembly.is_empty() || self.rcv.fin.is_some();
        if waits && self.state() == State::Established {
            self.deliver_in_order(P::default());
            self.handle_fin(now);
            self.schedule_ack(now);
        }
    }

    /// Passes in-order data to the user, with the stored data that follow.
    fn deliver_in_order(&mut self, data: P) {
        let rcv = &mut self.rcv;
        let before = rcv.nxt;
        rcv.nxt += data.len();
        rcv.ready_bytes += data.len();
        if !data.is_empty() {
            rcv.ready.push_back(data);
        }
        if !rcv.reassembly.is_empty() {
            let (ready, bytes) = (&mut rcv.ready, &mut rcv.ready_bytes);
            rcv.nxt = rcv.reassembly.take_in_order(rcv.nxt, |part| {
                *bytes += part.len();
                ready.push_back(part);
            });
        }
        rcv.right_edge = rcv.right_edge.max(rcv.nxt); // data from beyond the window were taken
        self.stats.bytes_received += rcv.nxt - before;
        self.event(Event::Readable);
    }

    /// Stores out-of-order data.
    pub(super) fn store_out_of_order(&mut self, position: u64, data: P) {
        match self.rcv.reassembly.insert(position, data) {
            Stored::New(0) => self.stats.duplicates_received += 1,
            Stored::New(_) => self.stats.out_of_order += 1,
            Stored::Full => self.drop_segment(DropReason::ReassemblyFull),
        }
    }

    /// Processes the peer's FIN after all data before it have arrived (RFC 9293 §3.10.7.4, "eighth, check the FIN bit").
    fn handle_fin(&mut self, now: Instant) {
        if self.rcv.fin != Some(self.rcv.nxt) {
            return;
        }
        self.rcv.nxt += 1;
        self.rcv.right_edge = self.rcv.right_edge.max(self.rcv.nxt);
        self.rcv.reassembly.clear();
        if self.config.receiver_rules == ReceiverRules::Linux {
            self.rcv.duplicate = None;
        }
        self.event(Event::PeerClosed);
        self.enter_state(now, self.state().after_peer_fin());
    }

    /// Returns whether the receiver takes a segment that ends beyond the window whole: there is a window, and no data wait.
    pub(super) fn takes_beyond_window(&self) -> bool {
        self.config.receiver_rules == ReceiverRules::Linux
            && self.rcv.right_edge > self.rcv.nxt
            && self.rcv.ready_bytes == 0
    }

    /// Returns whether the receiver drops a segment at `position` whole, since its data end beyond an open window. A probe of a
    /// closed window is cut, so that its acknowledgment counts.
    pub(super) fn drops_beyond_window(&self, position: i64, segment: &Segment<P>) -> bool {
        let end = position + segment.payload.len() as i64;
        self.config.receiver_rules == ReceiverRules::Linux
            && !segment.flags.contains(Flags::RST)
            && self.rcv.right_edge > self.rcv.nxt
            && end > self.rcv.right_edge as i64
            && !self.takes_beyond_window()
    }

    /// Returns whether the ACK of a FIN waits for the FIN of this host. As Linux does (`tcp_fin`): after data of the peer, and with
    /// room for more.
    fn lets_ack_of_fin_wait(&self) -> bool {
        let is_linux = self.config.quick_acks > 0 && self.config.ack_policy != AckPolicy::EverySegment;
        let is_first = self.state() == State::CloseWait && self.rcv.pending_ack == PendingAck::None;
        is_linux && is_first && self.rcv.quick.has_seen_data() && self.rcv.free() > 0
    }

    /// Lets an acknowledgment wait for data of this host, or for the timer of delayed acknowledgments.
    fn delay_ack(&mut self, now: Instant) {
        if let AckPolicy::Delayed { timer } = self.config.ack_policy {
            self.timers.set(Timer::DelayedAck, now + timer);
            self.rcv.pending_ack = PendingAck::Delayed { segments: 1 };
        }
    }

    /// Requests an acknowledgment of an in-order segment, by the ACK policy (RFC 1122 §4.2.3.2).
    fn schedule_ack(&mut self, now: Instant) {
        self.rcv.quick.on_data(now, self.config.quick_acks, self.rto.timeout());
        if self.rcv.quick.is_active() {
            self.rcv.pending_ack = PendingAck::Now;
            return;
        }
        let every = self.config.ack_every;
        self.rcv.pending_ack = match (self.config.ack_policy, self.rcv.pending_ack) {
            (AckPolicy::Delayed { timer }, PendingAck::None) if every > 1 => {
                self.timers.set(Timer::DelayedAck, now + timer);
                PendingAck::Delayed { segments: 1 }
            }
            (AckPolicy::Delayed { .. }, PendingAck::Delayed { segments }) if segments + 1 < every => {
                PendingAck::Delayed { segments: segments + 1 }
            }
            _ => PendingAck::Now,
        };
    }
}
