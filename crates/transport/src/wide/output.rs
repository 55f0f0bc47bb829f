//! Choice of the next packet to send.

use super::controller::{Controller, SentPacket};
use super::endpoint::{Closing, Endpoint, NETWORK_OVERHEAD, Path};
use super::expire::FROZEN;
use super::sent::{Chunk, Fate, Sent};
use super::timer::Timer;
use crate::connection::State;
use hopline_core::{Duration, Instant, Payload};
use hopline_wire::ipv4::Ecn;
use hopline_wire::wide::{Answer, Control, DATA_OVERHEAD, Data, End, Packet};

/// Room in a packet, in bytes, that lets an acknowledgment travel with data.
const ROOM_FOR_ACK: u64 = 200;

impl<P: Payload, C: Controller> Endpoint<P, C> {
    pub(super) fn next_packet(&mut self, now: Instant) -> Option<Packet<P>> {
        if core::mem::take(&mut self.owed.reset) {
            return Some(self.bare(Control::Reset));
        }
        if core::mem::take(&mut self.owed.opening) {
            let opening = Some(self.opening());
            let ack = self.rcv.acknowledge(now).map(Box::new);
            self.owed.ack = false;
            let packet = Packet { opening, ack, ..self.bare(Control::None) };
            return Some(self.noted(now, packet, Chunk::NOTHING));
        }
        if self.may_ask() && core::mem::take(&mut self.owed.probe) {
            let chunk = self.choose_probe();
            return Some(self.with_chunk(now, chunk));
        }
        if !self.state().may_transmit() {
            return self.pure_ack(now);
        }
        if let Some(chunk) = self.choose(now) {
            if self.owed.ack && u64::from(chunk.len) + ROOM_FOR_ACK > self.snd.mss.into() {
                return self.pure_ack(now);
            }
            self.take(chunk);
            return Some(self.with_chunk(now, chunk));
        }
        self.pure_ack(now)
    }

    /// Returns whether an answer of the peer may be requested, also while only its end of the stream is awaited.
    pub(super) fn may_ask(&self) -> bool {
        self.state().may_transmit() || self.state() == State::FinWait2
    }

    fn pure_ack(&mut self, now: Instant) -> Option<Packet<P>> {
        if !core::mem::take(&mut self.owed.ack) || matches!(self.state(), State::Closed | State::Listen) {
            return None;
        }
        let ack = self.rcv.acknowledge(now)?;
        self.timers.stop(Timer::Ack);
        self.stats.acks_sent += 1;
        let mut packet = self.bare(Control::None);
        packet.ack = Some(Box::new(ack));
        self.snd.left += (packet.sealed_len() as u64) + u64::from(NETWORK_OVERHEAD);
        Some(packet)
    }

    /// Returns the data that may be sent now. If they have to wait for their release time, a timer is set.
    fn choose(&mut self, now: Instant) -> Option<Chunk> {
        if matches!(self.path, Path::Silent { probes: FROZEN.., .. }) {
            return None;
        }
        let Some(chunk) = self.next_chunk() else {
            self.snd.starved = self.snd.outstanding.upcoming();
            if self.waits_for_room() && !self.timers.is_set(Timer::Probe) {
                self.watch_path(now);
            }
            return None;
        };
        let len = u64::from(packet_len(chunk));
        let under_way = self.snd.outstanding.bytes();
        if under_way > 0 && under_way + len > self.window() {
            return None;
        }
        if self.control.pacing_rate().is_some() && !self.is_time(now) {
            self.timers.set(Timer::Release, self.snd.release);
            return None;
        }
        Some(chunk)
    }

    /// Returns whether the rate allows the next packet. After one has to wait, all wait for its release time. A burst is
    /// sent then, and not single packets at every other event.
    fn is_time(&mut self, now: Instant) -> bool {
        let ahead = self.config.pace_ahead;
        if ahead > Duration::ZERO && self.snd.release <= now {
            self.timers.stop(Timer::Release);
        }
        let waits = self.timers.is_set(Timer::Release);
        self.snd.release <= if waits { now } else { now + ahead }
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
        let ends = snd.closing == Closing::Due && snd.next + u64::from(len) == snd.queue.end();
        let end = if ends { End::Yes } else { End::No };
        (len > 0 || ends).then_some(Chunk { offset: snd.next, len, end })
    }

    /// Returns whether the peer has no room for the data to send.
    pub(super) fn waits_for_room(&self) -> bool {
        self.snd.queue.end() > self.snd.next && self.snd.limit <= self.snd.next
    }

    /// Removes `chunk`, as chosen by [`next_chunk`](Self::next_chunk), from the data to send.
    fn take(&mut self, chunk: Chunk) {
        if self.snd.lost.get(&chunk.offset) == Some(&chunk) {
            self.snd.lost.remove(&chunk.offset);
            return;
        }
        self.snd.next += u64::from(chunk.len);
        if chunk.end == End::Yes {
            self.snd.closing = Closing::Sent;
        }
    }

    /// Chooses the content of a probe: the first data that the peer has not received, lost or in flight; otherwise new
    /// data, or no data.
    fn choose_probe(&mut self) -> Chunk {
        let next = self.next_chunk();
        let under_way = self.snd.outstanding.under_way().filter_map(|chunk| self.snd.missing(chunk));
        let first = under_way.min_by_key(|chunk| chunk.offset);
        match (first, next) {
            (Some(first), Some(next)) if first.offset < next.offset => first,
            (_, Some(next)) => {
                self.take(next);
                next
            }
            (Some(first), None) => first,
            (None, None) => Chunk::NOTHING,
        }
    }

    fn with_chunk(&mut self, now: Instant, chunk: Chunk) -> Packet<P> {
        let mut packet = self.bare(if chunk.is_nothing() { Control::Ping } else { Control::None });
        if self.owed.ack && u64::from(chunk.len) + ROOM_FOR_ACK <= self.snd.mss.into() {
            packet.ack = self.rcv.acknowledge(now).map(Box::new);
            self.owed.ack = false;
            self.timers.stop(Timer::Ack);
        }
        if !chunk.is_nothing() {
            let payload = self.snd.queue.slice(chunk.offset, chunk.len.into());
            packet.answer = self.answer(chunk);
            packet.data = Some(Data { offset: chunk.offset, end: chunk.end, payload });
            self.count_data(chunk);
        }
        self.noted(now, packet, chunk)
    }

    /// Returns whether data may be acknowledged several at once, at the cost of a delay.
    pub(super) fn is_calm(&self) -> bool {
        let ack = &self.config.ack;
        self.control.is_loss_below(ack.calm) && self.takes_longer(ack.every, ack.delay.saturating_mul(2))
    }

    /// Returns the number of packets per acknowledgment.
    pub(super) fn together(&self) -> u32 {
        let ack = &self.config.ack;
        if self.is_calm() && self.takes_longer(1, ack.rare) { ack.rare_every } else { ack.every }
    }

    fn takes_longer(&self, packets: u32, than: Duration) -> bool {
        self.control.sending_time(packets).is_some_and(|time| time > than)
    }

    /// Returns the urgency of the acknowledgment for the packet with `chunk` that is sent now. The peer counts packets
    /// that are not urgent up to the number for rare packets. To get acknowledgments for fewer packets, or for no more
    /// than fit into the window, the last of them is urgent.
    fn answer(&mut self, chunk: Chunk) -> Answer {
        let in_window = self.window() / u64::from(packet_len(chunk));
        let together = u64::from(self.together()).min(in_window);
        self.snd.not_urgent += 1;
        let counted = together == u64::from(self.config.ack.rare_every);
        if self.is_calm() && (counted || u64::from(self.snd.not_urgent) < together) {
            return Answer::Late;
        }
        self.snd.not_urgent = 0;
        Answer::Soon
    }

    fn count_data(&mut self, chunk: Chunk) {
        let again = chunk.range().end <= self.snd.furthest && (chunk.len > 0 || self.snd.end_sent);
        self.stats.segments_sent += 1;
        self.stats.retransmissions += u64::from(again);
        self.stats.bytes_sent += u64::from(chunk.len);
        self.snd.furthest = self.snd.furthest.max(chunk.range().end);
        self.snd.end_sent |= chunk.end == End::Yes;
    }

    /// Records a packet that requests an answer.
    fn noted(&mut self, now: Instant, packet: Packet<P>, chunk: Chunk) -> Packet<P> {
        let len = packet.sealed_len() as u32 + NETWORK_OVERHEAD;
        self.snd.left += u64::from(len);
        if self.snd.outstanding.packets() == 0 {
            self.owing_since = now;
            if let Some(limit) = self.config.silence.limit {
                self.timers.set(Timer::Silence, now + limit);
            }
        }
        let in_flight = self.snd.outstanding.bytes();
        self.control.on_sent(&SentPacket { now, number: packet.number, bytes: len, in_flight });
        let sent = Sent { at: now, chunk, upto: self.snd.left, len, fate: Fate::InFlight };
        self.snd.outstanding.add(packet.number, sent);
        if let Some(rate) = self.control.pacing_rate() {
            let late = now.as_nanos().saturating_sub(self.config.catch_up.as_nanos());
            let begin = self.snd.release.max(Instant::from_nanos(late));
            self.snd.release = begin + Duration::from_secs_f64((f64::from(len) / rate.max(1.0)).min(10.0));
        }
        self.watch_path(now);
        packet
    }

    fn bare(&mut self, control: Control) -> Packet<P> {
        Packet {
            number: self.snd.outstanding.next_number(),
            ecn: Ecn::Capable0,
            opening: None,
            ack: None,
            control,
            answer: Answer::Soon,
            data: None,
        }
    }
}

/// Returns the length of a packet with only `chunk`, bytes.
fn packet_len(chunk: Chunk) -> u32 {
    chunk.len + DATA_OVERHEAD as u32 + NETWORK_OVERHEAD
}
