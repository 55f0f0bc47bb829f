//! Arriving packets: opening, acknowledgment, data, closing.

use super::controller::{AckSample, Arrival, Controller, RoundOutcome, SendLimit};
use super::endpoint::{CloseState, Endpoint, PathState};
use super::outstanding::{OutstandingPacket, TransmissionState};
use super::receive::{AckTime, PacketContent, delay_of};
use super::stats::DropReason;
use super::timer::Timer;
use crate::Signal;
use crate::connection::{CloseReason, Event, State};
use crate::lifecycle::Role;
use hopline_core::{Duration, Instant, Payload};
use hopline_wire::wide::{Ack, Control, Opening, Packet, StreamEnd};

/// Data bytes that every end accepts in a packet, whatever its announced maximum. A smaller limit would let a peer force
/// a packet per byte.
const MIN_MSS: u16 = 512;

/// Lifetime of the base delay.
const BASE_DELAY_LIFETIME: Duration = Duration::from_secs(30);

/// Packets that an acknowledgment covers for the first time.
#[derive(Clone, Copy, Debug, Default)]
struct NewlyAcked {
    bytes: u64,
    packets: u64,
    spurious_losses: u64,
    largest: Option<LargestAcked>,
}

/// Largest newly acknowledged number of an acknowledgment.
#[derive(Clone, Copy, Debug)]
struct LargestAcked {
    number: u64,
    sent_at: Instant,
    sent_bytes: u64,
    /// Number of data bytes.
    data: u32,
}

/// Number of GSO bursts from which a rate can be measured.
const RATE_SAMPLE_BURSTS: u64 = 4;

impl<P: Payload, C: Controller> Endpoint<P, C> {
    pub(super) fn handle_packet_inner(&mut self, now: Instant, packet: Packet<P>) {
        self.stats.packets_received += 1;
        match self.state() {
            State::Closed => self.drop_packet(DropReason::Closed),
            State::Listen => self.on_packet_in_listen(now, packet),
            State::SynSent => self.on_packet_in_syn_sent(now, packet),
            _ => self.on_packet_in_connection(now, packet),
        }
    }

    fn on_packet_in_listen(&mut self, now: Instant, packet: Packet<P>) {
        let Some(opening) = packet.opening.filter(|_| packet.ack.is_none() && packet.data.is_none()) else {
            return self.drop_packet(DropReason::Unexpected);
        };
        self.last_heard = now;
        self.apply_opening(opening);
        self.lifecycle.enter(State::SynReceived);
        self.rcv.handle_packet(now, packet);
        self.send_opening(now);
    }

    fn on_packet_in_syn_sent(&mut self, now: Instant, packet: Packet<P>) {
        if packet.control == Control::Reset {
            return self.terminate(CloseReason::Refused);
        }
        let Some(opening) = packet.opening else { return self.drop_packet(DropReason::Unexpected) };
        self.last_heard = now;
        self.apply_opening(opening);
        if packet.ack.is_none() {
            // Simultaneous open.
            self.lifecycle.enter(State::SynReceived);
            self.rcv.handle_packet(now, packet);
            return self.send_opening(now);
        }
        self.on_packet_in_connection(now, packet);
    }

    pub(super) fn apply_opening(&mut self, opening: Opening) {
        self.snd.mss = self.config.mss.min(opening.mss.max(MIN_MSS));
        self.snd.limit = self.snd.limit.max(opening.max_data.into());
    }

    pub(super) fn establish(&mut self, now: Instant) {
        self.lifecycle.enter(State::Established);
        self.timers.stop(Timer::Open);
        self.control.on_established();
        self.event(Event::Connected);
        self.set_keep_alive_timer(now);
        // An end that was confirmed by data has an unacknowledged opening, and could not probe before the connection was
        // open.
        self.set_probe_timer(now);
    }

    fn on_packet_in_connection(&mut self, now: Instant, packet: Packet<P>) {
        if packet.control == Control::Reset {
            return self.terminate(CloseReason::Reset);
        }
        if let Some(ack) = &packet.ack
            && !self.handle_ack(now, ack)
        {
            return self.drop_packet(DropReason::BadAck);
        }
        self.last_heard = now;
        // An end sends data only after the answer to its opening.
        let confirms =
            packet.ack.is_some() || (packet.data.is_some() && self.lifecycle.role() == Role::Passive);
        if matches!(self.state(), State::SynSent | State::SynReceived) && confirms {
            self.establish(now);
        }
        if packet.opening.is_some() {
            // A peer that sends an opening has not received ours.
            self.pending.opening |=
                self.state() == State::SynReceived && self.lifecycle.role() == Role::Passive;
            self.pending.ack = true;
        }
        if self.state() != State::Closed {
            self.handle_content(now, packet);
        }
    }

    fn handle_content(&mut self, now: Instant, packet: Packet<P>) {
        if self.state() == State::TimeWait {
            self.pending.ack |= packet.is_ack_eliciting();
            self.rcv.handle_packet(now, packet);
            return;
        }
        if packet.data.is_some() && !self.state().is_synchronized() {
            return self.drop_packet(DropReason::Unexpected);
        }
        let had_all = self.rcv.is_finished();
        let before = self.rcv.in_order();
        let (brought, reply) = self.rcv.handle_packet(now, packet);
        self.stats.bytes_received += self.rcv.in_order() - before;
        match brought {
            PacketContent::Data { in_order } if in_order > 0 => self.event(Event::Readable),
            PacketContent::DuplicatePacket | PacketContent::DuplicateData => {
                self.stats.duplicates_received += 1
            }
            PacketContent::Dropped(reason) => self.drop_packet(reason),
            PacketContent::Data { .. } | PacketContent::Nothing => {}
        }
        match reply {
            AckTime::Now => self.pending.ack = true,
            AckTime::At(at) => {
                let due = self.timers.get(Timer::Ack).map_or(at, |set| set.min(at));
                self.timers.set(Timer::Ack, due.max(now));
            }
            AckTime::None => {}
        }
        if !had_all && self.rcv.is_finished() {
            self.event(Event::PeerClosed);
            self.enter_state(now, self.state().after_peer_fin());
        }
    }

    /// Processes an acknowledgment. Returns `false` if it covers packets that were never sent.
    fn handle_ack(&mut self, now: Instant, ack: &Ack) -> bool {
        if !self.snd.outstanding.were_sent(&ack.ranges) || ack.cumulative > self.snd.next {
            return false;
        }
        self.snd.limit = self.snd.limit.max(ack.max_data);
        let acknowledged = self.handle_ack_ranges(now, ack);
        if self.path == PathState::Alive {
            self.snd.acked_at_once.sample(acknowledged.packets as f64);
        }
        self.handle_cumulative_ack(ack.cumulative);
        if let Some(largest) = acknowledged.largest {
            self.delays.sample(now, now.since(largest.sent_at), delay_of(ack));
        }
        let lost = self.detect_losses(now);
        self.update_controller(now, ack, acknowledged, lost);
        if acknowledged.packets > 0 {
            self.on_path_alive(now);
            self.set_probe_timer(now);
        }
        // The end of the stream may arrive before earlier data.
        if self.snd.closing == CloseState::FinAcked && self.snd.queue.len() == 0 {
            self.snd.outstanding.clear();
            self.snd.lost.clear();
            self.timers.stop(Timer::LossDetection);
            self.timers.stop(Timer::Probe);
            self.enter_state(now, self.state().after_fin_acked());
        }
        true
    }

    fn handle_ack_ranges(&mut self, now: Instant, ack: &Ack) -> NewlyAcked {
        let snd = &mut self.snd;
        let before = snd.detection.newest();
        let mut acknowledged = NewlyAcked::default();
        let (detection, arrived, lost, closing) =
            (&mut snd.detection, &mut snd.acked, &mut snd.lost, &mut snd.closing);
        snd.outstanding.acknowledge(&ack.ranges, |number, sent: &OutstandingPacket| {
            acknowledged.bytes += u64::from(sent.len);
            acknowledged.packets += 1;
            acknowledged.spurious_losses += u64::from(sent.state != TransmissionState::InFlight);
            if number == ack.largest() {
                acknowledged.largest = Some(LargestAcked {
                    number,
                    sent_at: sent.sent_at,
                    sent_bytes: sent.sent_bytes,
                    data: sent.chunk.len,
                });
            }
            detection.on_ack(now, number, sent.sent_at, before);
            arrived.insert(sent.chunk.range());
            if sent.chunk.end == StreamEnd::Yes {
                *closing = CloseState::FinAcked;
            }
            if lost.get(&sent.chunk.offset) == Some(&sent.chunk) {
                lost.remove(&sent.chunk.offset);
            }
        });
        self.stats.spurious_losses += acknowledged.spurious_losses;
        acknowledged
    }

    fn handle_cumulative_ack(&mut self, cumulative: u64) {
        let snd = &mut self.snd;
        snd.acked.insert(snd.una..cumulative);
        snd.una = snd.acked.end_of_run(snd.una);
        snd.acked.remove_below(snd.una);
        while let Some((&offset, chunk)) = snd.lost.first_key_value()
            && chunk.range().end <= snd.una
            && chunk.end == StreamEnd::No
        {
            snd.lost.remove(&offset);
        }
        let advanced = snd.queue.advance(snd.una);
        self.stats.bytes_acked += advanced;
        if advanced > 0 && self.snd.queue.take_refused() {
            self.event(Event::Writable);
        }
    }

    /// Marks overdue packets as lost. Returns their number.
    pub(super) fn detect_losses(&mut self, now: Instant) -> u64 {
        let window = self.reordering_window();
        let snd = &mut self.snd;
        let Some(newest) = snd.detection.newest() else { return 0 };
        let patience = newest.rtt + window;
        let before = Instant::from_nanos(now.as_nanos().saturating_sub(patience.as_nanos()));
        let mut count = 0;
        let (lost, control) = (&mut snd.lost, &mut self.control);
        let waits = snd.outstanding.mark_lost(now, newest.packet_number, before, |number, sent| {
            count += 1;
            control.on_packet_lost(now, number, sent.len);
            if !sent.chunk.is_empty() {
                lost.insert(sent.chunk.offset, sent.chunk);
            }
        });
        snd.outstanding.remove_lost(now, self.delays.srtt().unwrap_or(Duration::ZERO).saturating_mul(4));
        self.stats.lost += count;
        match waits {
            Some(at) => self.timers.set(Timer::LossDetection, at + patience),
            None => self.timers.stop(Timer::LossDetection),
        }
        count
    }

    fn update_controller(&mut self, now: Instant, ack: &Ack, acknowledged: NewlyAcked, lost: u64) {
        // A short packet takes less time on a slow link than a full one: its delay would not compare.
        let full = acknowledged.largest.filter(|largest| 2 * largest.data >= self.snd.mss.into());
        let newest = full.map(|LargestAcked { number, sent_at: sent, sent_bytes: upto, .. }| {
            let (at_us, queue) = self.delays.arrival(now, sent, ack.arrival_us);
            (number, Arrival { sent, at_us, sent_bytes: upto }, queue)
        });
        let limit = match acknowledged.largest {
            Some(largest) if largest.number < self.snd.app_limited_until => SendLimit::Application,
            _ => SendLimit::Path,
        };
        let marks = ack.marks.wrapping_sub(self.snd.marks);
        // An older acknowledgment that comes late has fewer.
        let marks = if marks < 1 << 31 { marks } else { 0 };
        self.snd.marks = self.snd.marks.wrapping_add(marks);
        // Arrivals within a shorter time show the spacing of bursts, and not the path.
        let round = self.config.pace_ahead.saturating_mul(RATE_SAMPLE_BURSTS);
        let outcome = self.control.on_ack(&AckSample {
            now,
            newest,
            delivered: acknowledged.bytes,
            packets: acknowledged.packets,
            spurious_losses: acknowledged.spurious_losses,
            lost,
            marks,
            limit,
            next_number: self.snd.outstanding.peek_number(),
            in_flight: self.snd.outstanding.bytes(),
            srtt: self.delays.srtt().unwrap_or(self.config.silence.initial).max(round),
            min_round: round,
            base_age: self.delays.base_age(now),
        });
        if outcome != RoundOutcome::NotOver {
            self.snd.detection.on_round();
            self.snd.acked_at_once.on_round();
            if self.control.saw_empty_queue() {
                self.delays.record_no_queue(now);
            }
        }
        match outcome {
            RoundOutcome::NotOver | RoundOutcome::Over => {}
            // No packet without queueing delay for so long, despite the measurement: the path has changed.
            RoundOutcome::ProbeRtt if self.delays.base_age(now) > BASE_DELAY_LIFETIME => {
                self.delays.clear_base();
                self.control.on_base_delay_reset();
            }
            RoundOutcome::ProbeRtt => {}
            RoundOutcome::PathChanged => {
                self.delays.clear();
                self.control.on_base_delay_reset();
            }
        }
    }

    /// Ends the silence of the path after an answer.
    fn on_path_alive(&mut self, now: Instant) {
        let PathState::Silent { since, probes } = core::mem::replace(&mut self.path, PathState::Alive) else {
            return;
        };
        if probes < super::timeouts::FROZEN_PROBES {
            return;
        }
        let outage = now.since(since);
        self.stats.frozen += outage;
        self.snd.next_release = now;
        self.control.discard_samples();
        if outage > self.config.silence.keep_estimates {
            self.delays.clear();
            self.control.restart(now, self.snd.outstanding.peek_number());
        }
    }

    pub(super) fn on_signal(&mut self, now: Instant, signal: Signal) {
        match (signal, self.path) {
            (Signal::RouteLost, PathState::Alive) => self.freeze(now),
            (Signal::RouteLost, PathState::Silent { .. }) | (Signal::RouteFound, PathState::Alive) => {}
            (Signal::RouteFound, PathState::Silent { .. }) => {
                self.pending.probe = self.state().may_transmit()
            }
            (Signal::PathLength { .. }, _) => {}
        }
    }
}
