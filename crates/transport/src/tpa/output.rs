//! Choice of the next segment to send.

use super::block::{Block, End, Purpose, Time};
use super::endpoint::Endpoint;
use super::parts::{Closing, Flush};
use super::receipts::Nonces;
use super::timer::Timer;
use super::window::Path;
use crate::connection::State;
use hopline_core::{Instant, Payload};
use hopline_wire::tpa::{Control, Place, Segment};

impl<P: Payload> Endpoint<P> {
    pub(super) fn next_segment(&mut self, now: Instant) -> Option<Segment<P>> {
        if core::mem::take(&mut self.owed.reset) {
            return Some(self.bare_segment(Control::Rst));
        }
        if core::mem::take(&mut self.owed.syn) {
            return Some(self.syn());
        }
        if core::mem::take(&mut self.owed.call) {
            return Some(Segment { tag: None, ..self.bare_segment(Control::Syn) });
        }
        if self.state().may_transmit()
            && let Some(segment) = self.next_data(now)
        {
            return Some(segment);
        }
        if core::mem::take(&mut self.owed.ack) {
            return Some(self.pure_ack());
        }
        core::mem::take(&mut self.owed.question).then(|| self.question())
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
        self.put_ack(&mut segment);
        segment
    }

    /// Builds a segment of the previous block without data. The peer answers it with its state.
    fn question(&mut self) -> Segment<P> {
        let mut segment = self.pure_ack();
        segment.block = segment.block.wrapping_sub(1) & self.config.block_numbers.mask();
        segment.place = Some(Place { position: 0, last: false });
        segment
    }

    fn put_ack(&mut self, segment: &mut Segment<P>) {
        segment.ack = Some(self.rcv.acknowledge());
        segment.receipt.proof = self.rcv.proof();
        self.owed.ack = false;
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
                self.await_window(now);
            }
            return None;
        }
        let purpose = if self.window.path() == Path::Normal { Purpose::Data } else { Purpose::Probe };
        let (tx, time) = block.transmit(now, piece.position, purpose, self.rto.timeout());
        let nonce = block.nonces.of(piece.position);
        let control = if piece.last && block.end == End::Fin { Control::Fin } else { Control::None };
        if let Some(pacing) = &mut self.pacing {
            pacing.released(now);
        }
        self.timers.stop(Timer::Probe);
        self.snd.questions = 0;
        self.arm_retransmit();
        self.count_data(piece.len, time);
        let mut segment = self.bare_segment(control);
        segment.place = Some(Place { position: piece.position, last: piece.last });
        segment.tx = tx;
        segment.receipt.nonce = nonce;
        segment.payload = self.snd.queue.slice(piece.start, piece.len.into());
        self.put_ack(&mut segment);
        Some(segment)
    }

    /// Returns whether the next data segment has to wait for its release time (TPA §5.2); if so, sets the release timer.
    fn waits_for_release(&mut self, now: Instant) -> bool {
        let Some(at) = self.pacing.as_ref().map(|pacing| pacing.next_release(now)) else { return false };
        if at <= now || self.snd.block.is_none() {
            return false;
        }
        self.timers.set(Timer::Release, at);
        true
    }

    fn count_data(&mut self, len: u16, time: Time) {
        self.stats.segments_sent += 1;
        self.stats.bytes_sent += u64::from(len);
        if time == Time::Again {
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
    fn await_window(&mut self, now: Instant) {
        if !self.timers.is_set(Timer::Probe) {
            let wait = self.rto.timeout().saturating_mul(1 << self.snd.questions.min(16));
            self.timers.set(Timer::Probe, now + wait.min(self.config.rto.max));
        }
    }

    /// Forms the next block from the waiting data, if it is due (§3.2).
    pub(super) fn form_block(&mut self, now: Instant) {
        if self.snd.block.is_some() || !self.state().may_transmit() {
            return;
        }
        let waiting = self.snd.queue.end() - self.snd.unblocked;
        let fin_due = self.snd.closing == Closing::FinDue;
        if waiting == 0 && !fin_due {
            self.timers.stop(Timer::BlockFill);
            self.snd.waiting = None;
            return;
        }
        let full = u64::from(self.snd.mss) * u64::from(self.snd.block_segments);
        let since = *self.snd.waiting.get_or_insert(now);
        if waiting >= full || fin_due || self.wants_flush() || now >= since + self.config.block_fill {
            self.begin_block(now, waiting.min(full), waiting <= full && fin_due);
        } else {
            self.timers.set(Timer::BlockFill, since + self.config.block_fill);
        }
    }

    fn wants_flush(&self) -> bool {
        matches!(self.snd.flush, Flush::UpTo(end) if end > self.snd.unblocked)
    }

    fn begin_block(&mut self, now: Instant, bytes: u64, ends_stream: bool) {
        let end = if ends_stream { End::Fin } else { End::Open };
        if ends_stream {
            self.snd.closing = Closing::FinSent;
        }
        self.owes_from(now);
        let nonces = Nonces::of_block(self.tags.secret, self.snd.unblocked);
        self.snd.block = Some(Block::new(self.snd.unblocked, bytes, self.snd.mss, end, nonces));
        self.snd.unblocked += bytes;
        let more = self.snd.queue.end() > self.snd.unblocked;
        self.snd.waiting = more.then_some(now);
        self.timers.stop(Timer::BlockFill);
        self.watch_silence();
    }
}
