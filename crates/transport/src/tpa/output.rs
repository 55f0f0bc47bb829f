//! Choice of the next segment to send.

use super::block::{Block, BlockEnd, Transmission, TransmissionPurpose};
use super::endpoint::Endpoint;
use super::nonces::Nonces;
use super::state::{CloseState, FlushState};
use super::timer::Timer;
use super::window::PathState;
use crate::connection::State;
use hopline_core::{Instant, Payload};
use hopline_wire::tpa::{Control, Segment, SegmentPosition};

impl<P: Payload> Endpoint<P> {
    pub(super) fn next_segment(&mut self, now: Instant) -> Option<Segment<P>> {
        if core::mem::take(&mut self.pending_segments.reset) {
            return Some(self.bare_segment(Control::Rst));
        }
        if core::mem::take(&mut self.pending_segments.syn) {
            return Some(self.syn());
        }
        if core::mem::take(&mut self.pending_segments.syn_without_tag) {
            return Some(Segment { tag: None, ..self.bare_segment(Control::Syn) });
        }
        if self.state().may_transmit()
            && let Some(segment) = self.next_data(now)
        {
            return Some(segment);
        }
        if core::mem::take(&mut self.pending_segments.ack) {
            return Some(self.pure_ack());
        }
        core::mem::take(&mut self.pending_segments.probe).then(|| self.probe_segment())
    }

    fn syn(&mut self) -> Segment<P> {
        let mut syn = self.bare_segment(Control::Syn);
        if self.state() == State::SynReceived {
            syn.ack = Some(self.rcv.acknowledge());
        }
        syn
    }

    fn pure_ack(&mut self) -> Segment<P> {
        self.stats.acks_sent += 1;
        let mut segment = self.bare_segment(Control::None);
        self.add_ack(&mut segment);
        segment
    }

    /// Builds a segment of the previous block without data. The peer answers it with its state.
    fn probe_segment(&mut self) -> Segment<P> {
        let mut segment = self.pure_ack();
        segment.block = segment.block.wrapping_sub(1) & self.config.block_numbers.mask();
        segment.position = Some(SegmentPosition { position: 0, is_last: false });
        segment
    }

    fn add_ack(&mut self, segment: &mut Segment<P>) {
        segment.ack = Some(self.rcv.acknowledge());
        segment.receipt.proof = self.rcv.proof();
        self.pending_segments.ack = false;
        self.timers.stop(Timer::DelayedAck);
    }

    fn next_data(&mut self, now: Instant) -> Option<Segment<P>> {
        if self.waits_for_release(now) {
            return None;
        }
        let cwnd = self.window.cwnd();
        let block = self.snd.block.as_mut().filter(|block| block.in_flight() < cwnd)?;
        let piece = block.next(self.config.rounds)?;
        if block.bytes_in_flight() + u64::from(piece.len) > self.snd.peer_window && piece.len > 0 {
            if block.in_flight() == 0 {
                self.arm_window_probe(now);
            }
            return None;
        }
        let purpose = if self.window.path() == PathState::Normal {
            TransmissionPurpose::Data
        } else {
            TransmissionPurpose::Probe
        };
        let (tx, time) = block.transmit(now, piece.position, purpose, self.rto.timeout());
        let nonce = block.nonces.nonce(piece.position);
        let control = if piece.is_last && block.end == BlockEnd::Fin { Control::Fin } else { Control::None };
        if let Some(pacing) = &mut self.pacing {
            pacing.on_released(now);
        }
        self.timers.stop(Timer::Probe);
        self.snd.probes = 0;
        self.arm_retransmit();
        self.count_data(piece.len, time);
        let mut segment = self.bare_segment(control);
        segment.position = Some(SegmentPosition { position: piece.position, is_last: piece.is_last });
        segment.tx = tx;
        segment.receipt.nonce = nonce;
        segment.payload = self.snd.queue.slice(piece.start, piece.len.into());
        self.add_ack(&mut segment);
        Some(segment)
    }

    /// Returns whether the next data segment has to wait for its release time (TPA §5.2); if so, sets the release timer.
    fn waits_for_release(&mut self, now: Instant) -> bool {
        let Some(at) = self.pacing.as_ref().map(|pacing| pacing.release_time(now)) else { return false };
        if at <= now || self.snd.block.is_none() {
            return false;
        }
        self.timers.set(Timer::Release, at);
        true
    }

    fn count_data(&mut self, len: u16, time: Transmission) {
        self.stats.segments_sent += 1;
        self.stats.bytes_sent += u64::from(len);
        if time == Transmission::Retransmission {
            self.stats.retransmissions += 1;
        }
    }

    pub(super) fn arm_retransmit(&mut self) {
        match self.snd.block.as_ref().and_then(Block::next_timeout) {
            Some(at) => self.timers.set(Timer::Retransmit, at),
            None => self.timers.stop(Timer::Retransmit),
        }
    }

    /// Sets the timer of a window probe, with exponential back-off (RFC 9293 §3.8.6.1).
    fn arm_window_probe(&mut self, now: Instant) {
        if !self.timers.is_set(Timer::Probe) {
            let wait = self.rto.timeout().saturating_mul(1 << self.snd.probes.min(16));
            self.timers.set(Timer::Probe, now + wait.min(self.config.rto.max));
        }
    }

    /// Forms the next block from the waiting data, if it is due (§3.2).
    pub(super) fn form_block(&mut self, now: Instant) {
        if self.snd.block.is_some() || !self.state().may_transmit() {
            return;
        }
        let waiting = self.snd.queue.end() - self.snd.next_block_start;
        let fin_due = self.snd.closing == CloseState::FinDue;
        if waiting == 0 && !fin_due {
            self.timers.stop(Timer::BlockFill);
            self.snd.waiting_since = None;
            return;
        }
        let full = u64::from(self.snd.mss) * u64::from(self.snd.block_segments);
        let since = *self.snd.waiting_since.get_or_insert(now);
        if waiting >= full || fin_due || self.wants_flush() || now >= since + self.config.block_fill {
            self.start_block(now, waiting.min(full), waiting <= full && fin_due);
        } else {
            self.timers.set(Timer::BlockFill, since + self.config.block_fill);
        }
    }

    fn wants_flush(&self) -> bool {
        matches!(self.snd.flush, FlushState::UpTo(end) if end > self.snd.next_block_start)
    }

    fn start_block(&mut self, now: Instant, bytes: u64, ends_stream: bool) {
        let end = if ends_stream { BlockEnd::Fin } else { BlockEnd::Open };
        if ends_stream {
            self.snd.closing = CloseState::FinSent;
        }
        self.start_waiting_for_peer(now);
        let nonces = Nonces::for_block(self.tags.secret, self.snd.next_block_start);
        self.snd.block = Some(Block::new(self.snd.next_block_start, bytes, self.snd.mss, end, nonces));
        self.snd.next_block_start += bytes;
        let more = self.snd.queue.end() > self.snd.next_block_start;
        self.snd.waiting_since = more.then_some(now);
        self.timers.stop(Timer::BlockFill);
        self.set_silence_timer();
    }
}
