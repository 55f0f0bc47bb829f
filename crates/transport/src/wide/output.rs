//! Choice of the next packet to send.

use super::controller::{Controller, SentPacket};
use super::endpoint::{CloseState, Endpoint, NETWORK_OVERHEAD, PathState};
use super::outstanding::{Chunk, OutstandingPacket, TransmissionState};
use super::timeouts::FROZEN_PROBES;
use super::timer::Timer;
use crate::connection::State;
use hopline_core::{Duration, Instant, Payload};
use hopline_wire::ipv4::Ecn;
use hopline_wire::wide::{AckUrgency, Control, DATA_OVERHEAD, Data, Packet, StreamEnd};

/// Room in a packet, in bytes, that lets an acknowledgment travel with data.
const ACK_RESERVE: u64 = 200;

impl<P: Payload, C: Controller> Endpoint<P, C> {
    pub(super) fn next_packet(&mut self, now: Instant) -> Option<Packet<P>> {
        if core::mem::take(&mut self.pending.reset) {
            return Some(self.empty_packet(Control::Reset));
        }
        if core::mem::take(&mut self.pending.opening) {
            let opening = Some(self.opening_parameters());
            let ack = self.rcv.acknowledge(now).map(Box::new);
            self.pending.ack = false;
            let packet = Packet { opening, ack, ..self.empty_packet(Control::None) };
            return Some(self.record_sent(now, packet, Chunk::EMPTY));
        }
        if self.may_request_answer() && core::mem::take(&mut self.pending.probe) {
            let chunk = self.choose_probe();
            return Some(self.data_packet(now, chunk));
        }
        if !self.state().may_transmit() {
            return self.pure_ack(now);
        }
        if let Some(chunk) = self.choose_chunk(now) {
            if self.pending.ack && u64::from(chunk.len) + ACK_RESERVE > self.snd.mss.into() {
                return self.pure_ack(now);
            }
            self.take_chunk(chunk);
            return Some(self.data_packet(now, chunk));
        }
        self.pure_ack(now)
    }

    /// Returns whether an answer of the peer may be requested, also while only its end of the stream is awaited.
    pub(super) fn may_request_answer(&self) -> bool {
        self.state().may_transmit() || self.state() == State::FinWait2
    }

    fn pure_ack(&mut self, now: Instant) -> Option<Packet<P>> {
        if !core::mem::take(&mut self.pending.ack) || matches!(self.state(), State::Closed | State::Listen) {
            return None;
        }
        let ack = self.rcv.acknowledge(now)?;
        self.timers.stop(Timer::Ack);
        self.stats.acks_sent += 1;
        let mut packet = self.empty_packet(Control::None);
        packet.ack = Some(Box::new(ack));
        self.snd.sent_bytes += (packet.sealed_len() as u64) + u64::from(NETWORK_OVERHEAD);
        Some(packet)
    }

    /// Returns the data that may be sent now. If they have to wait for their release time, a timer is set.
    fn choose_chunk(&mut self, now: Instant) -> Option<Chunk> {
        if matches!(self.path, PathState::Silent { probes: FROZEN_PROBES.., .. }) {
            return None;
        }
        let Some(chunk) = self.next_chunk() else {
            self.snd.app_limited_until = self.snd.outstanding.peek_number();
            if self.is_window_blocked() && !self.timers.is_set(Timer::Probe) {
                self.set_probe_timer(now);
            }
            return None;
        };
        let len = u64::from(packet_len(chunk));
        let under_way = self.snd.outstanding.bytes();
        if under_way > 0 && under_way + len > self.window() {
            return None;
        }
        if self.control.pacing_rate().is_some() && !self.is_released(now) {
            self.timers.set(Timer::PacingRelease, self.snd.next_release);
            return None;
        }
        Some(chunk)
    }

    /// Returns whether the rate allows the next packet. After one has to wait, all wait for its release time. A burst is
    /// sent then, and not single packets at every other event.
    fn is_released(&mut self, now: Instant) -> bool {
        let ahead = self.config.pace_ahead;
        if ahead > Duration::ZERO && self.snd.next_release <= now {
            self.timers.stop(Timer::PacingRelease);
        }
        let waits = self.timers.is_set(Timer::PacingRelease);
        self.snd.next_release <= if waits { now } else { now + ahead }
    }

    /// Returns the next data to send: lost data first, from the lowest offset.
    fn next_chunk(&mut self) -> Option<Chunk> {
        let snd = &mut self.snd;
        while let Some((_, &chunk)) = snd.lost.first_key_value() {
            match snd.missing(chunk) {
                Some(missing) if missing == chunk => return Some(chunk),
                missing => {
                    snd.lost.pop_first();
                    snd.lost.extend(missing.map(|missing| (missing.offset, missing)));
                }
            }
        }
        let until = snd.queue.end().min(snd.limit);
        let len = until.saturating_sub(snd.next).min(snd.mss.into()) as u32;
        let ends = snd.closing == CloseState::FinDue && snd.next + u64::from(len) == snd.queue.end();
        let end = if ends { StreamEnd::Yes } else { StreamEnd::No };
        (len > 0 || ends).then_some(Chunk { offset: snd.next, len, end })
    }

    /// Returns whether the peer has no room for the data to send.
    pub(super) fn is_window_blocked(&self) -> bool {
        self.snd.queue.end() > self.snd.next && self.snd.limit <= self.snd.next
    }

    /// Removes `chunk`, as chosen by [`next_chunk`](Self::next_chunk), from the data to send.
    fn take_chunk(&mut self, chunk: Chunk) {
        if self.snd.lost.get(&chunk.offset) == Some(&chunk) {
            self.snd.lost.remove(&chunk.offset);
            return;
        }
        self.snd.next += u64::from(chunk.len);
        if chunk.end == StreamEnd::Yes {
            self.snd.closing = CloseState::FinSent;
        }
    }

    /// Chooses the content of a probe: the first data that the peer has not received, lost or in flight; otherwise new
    /// data, or no data.
    fn choose_probe(&mut self) -> Chunk {
        let next = self.next_chunk();
        let under_way = self.snd.outstanding.in_flight_chunks().filter_map(|chunk| self.snd.missing(chunk));
        let first = under_way.min_by_key(|chunk| chunk.offset);
        match (first, next) {
            (Some(first), Some(next)) if first.offset < next.offset => first,
            (_, Some(next)) => {
                self.take_chunk(next);
                next
            }
            (Some(first), None) => first,
            (None, None) => Chunk::EMPTY,
        }
    }

    fn data_packet(&mut self, now: Instant, chunk: Chunk) -> Packet<P> {
        let mut packet = self.empty_packet(if chunk.is_empty() { Control::Ping } else { Control::None });
        if self.pending.ack && u64::from(chunk.len) + ACK_RESERVE <= self.snd.mss.into() {
            packet.ack = self.rcv.acknowledge(now).map(Box::new);
            self.pending.ack = false;
            self.timers.stop(Timer::Ack);
        }
        if !chunk.is_empty() {
            let payload = self.snd.queue.slice(chunk.offset, chunk.len.into());
            packet.ack_urgency = self.ack_urgency(chunk);
            packet.data = Some(Data { offset: chunk.offset, end: chunk.end, payload });
            self.count_data(chunk);
        }
        self.record_sent(now, packet, chunk)
    }

    /// Returns whether data may be acknowledged several at once, at the cost of a delay.
    pub(super) fn may_batch_acks(&self) -> bool {
        let ack = &self.config.ack;
        self.control.is_loss_below(ack.relaxed_max_loss)
            && self.sending_takes_longer(ack.every, ack.delay.saturating_mul(2))
    }

    /// Returns the number of packets per acknowledgment.
    pub(super) fn packets_per_ack(&self) -> u32 {
        let ack = &self.config.ack;
        if self.may_batch_acks() && self.sending_takes_longer(1, ack.low_rate_interval) {
            ack.low_rate_every
        } else {
            ack.every
        }
    }

    fn sending_takes_longer(&self, packets: u32, than: Duration) -> bool {
        self.control.sending_time(packets).is_some_and(|time| time > than)
    }

    /// Returns the urgency of the acknowledgment for the packet with `chunk` that is sent now. The peer counts packets
    /// that are not urgent up to the number for rare packets. To get acknowledgments for fewer packets, or for no more
    /// than fit into the window, the last of them is urgent.
    fn ack_urgency(&mut self, chunk: Chunk) -> AckUrgency {
        let in_window = self.window() / u64::from(packet_len(chunk));
        let together = u64::from(self.packets_per_ack()).min(in_window);
        self.snd.consecutive_not_urgent += 1;
        let counted = together == u64::from(self.config.ack.low_rate_every);
        if self.may_batch_acks() && (counted || u64::from(self.snd.consecutive_not_urgent) < together) {
            return AckUrgency::Deferred;
        }
        self.snd.consecutive_not_urgent = 0;
        AckUrgency::Urgent
    }

    fn count_data(&mut self, chunk: Chunk) {
        let again = chunk.range().end <= self.snd.highest_sent && (chunk.len > 0 || self.snd.end_sent);
        self.stats.segments_sent += 1;
        self.stats.retransmissions += u64::from(again);
        self.stats.bytes_sent += u64::from(chunk.len);
        self.snd.highest_sent = self.snd.highest_sent.max(chunk.range().end);
        self.snd.end_sent |= chunk.end == StreamEnd::Yes;
    }

    /// Records a packet that requests an answer.
    fn record_sent(&mut self, now: Instant, packet: Packet<P>, chunk: Chunk) -> Packet<P> {
        let len = packet.sealed_len() as u32 + NETWORK_OVERHEAD;
        self.snd.sent_bytes += u64::from(len);
        if self.snd.outstanding.packets() == 0 {
            self.waiting_since = now;
            if let Some(limit) = self.config.silence.limit {
                self.timers.set(Timer::Silence, now + limit);
            }
        }
        let in_flight = self.snd.outstanding.bytes();
        self.control.on_sent(&SentPacket { now, number: packet.number, bytes: len, in_flight });
        let sent = OutstandingPacket {
            sent_at: now,
            chunk,
            sent_bytes: self.snd.sent_bytes,
            len,
            state: TransmissionState::InFlight,
        };
        self.snd.outstanding.add(packet.number, sent);
        if let Some(rate) = self.control.pacing_rate() {
            let late = now.as_nanos().saturating_sub(self.config.catch_up.as_nanos());
            let begin = self.snd.next_release.max(Instant::from_nanos(late));
            self.snd.next_release =
                begin + Duration::from_secs_f64((f64::from(len) / rate.max(1.0)).min(10.0));
        }
        self.set_probe_timer(now);
        packet
    }

    fn empty_packet(&mut self, control: Control) -> Packet<P> {
        Packet {
            number: self.snd.outstanding.take_number(),
            ecn: Ecn::Capable0,
            opening: None,
            ack: None,
            control,
            ack_urgency: AckUrgency::Urgent,
            data: None,
        }
    }
}

/// Returns the length of a packet with only `chunk`, bytes.
fn packet_len(chunk: Chunk) -> u32 {
    chunk.len + DATA_OVERHEAD as u32 + NETWORK_OVERHEAD
}
