//! Arriving packets: opening, acknowledgment, data, closing.

use super::controller::{AckSample, Arrival, Controller, Limit, RoundOutcome};
use super::endpoint::{Closing, Endpoint, Path};
use super::receive::{Brought, Reply, delay_of};
use super::sent::{Fate, Sent};
use super::stats::DropReason;
use super::timer::Timer;
use crate::Signal;
use crate::connection::{CloseReason, Event, State};
use crate::lifecycle::Role;
use hopline_core::{Duration, Instant, Payload};
use hopline_wire::wide::{Ack, Control, End, Opening, Packet};

/// Data bytes that every end accepts in a packet, whatever its announced maximum. A smaller limit would let a peer force
/// a packet per byte.
const LEAST_MSS: u16 = 512;

/// Lifetime of the base delay.
const BASE_HOLDS: Duration = Duration::from_secs(30);

/// Packets that an acknowledgment covers for the first time.
#[derive(Clone, Copy, Debug, Default)]
struct Acknowledged {
    bytes: u64,
    packets: u64,
    late: u64,
    largest: Option<Largest>,
}

/// Largest newly acknowledged number of an acknowledgment.
#[derive(Clone, Copy, Debug)]
struct Largest {
    number: u64,
    sent: Instant,
    upto: u64,
    /// Number of data bytes.
    data: u32,
}

/// Number of GSO bursts from which a rate can be measured.
const TRAINS: u64 = 4;

impl<P: Payload, C: Controller> Endpoint<P, C> {
    pub(super) fn on_packet(&mut self, now: Instant, packet: Packet<P>) {
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
        self.heard = now;
        self.take_opening(opening);
        self.lifecycle.enter(State::SynReceived);
        self.rcv.take(now, packet);
        self.send_opening(now);
    }

    fn on_packet_in_syn_sent(&mut self, now: Instant, packet: Packet<P>) {
        if packet.control == Control::Reset {
            return self.finish(CloseReason::Refused);
        }
        let Some(opening) = packet.opening else { return self.drop_packet(DropReason::Unexpected) };
        self.heard = now;
        self.take_opening(opening);
        if packet.ack.is_none() {
            // Simultaneous open.
            self.lifecycle.enter(State::SynReceived);
            self.rcv.take(now, packet);
            return self.send_opening(now);
        }
        self.on_packet_in_connection(now, packet);
    }

    pub(super) fn take_opening(&mut self, opening: Opening) {
        self.snd.mss = self.config.mss.min(opening.mss.max(LEAST_MSS));
        self.snd.limit = self.snd.limit.max(opening.limit.into());
    }

    pub(super) fn establish(&mut self, now: Instant) {
        self.lifecycle.enter(State::Established);
        self.timers.stop(Timer::Open);
        self.control.on_established();
        self.event(Event::Connected);
        self.set_keep_alive(now);
        // An end that was confirmed by data has an unacknowledged opening, and could not probe before the connection was
        // open.
        self.watch_path(now);
    }

    fn on_packet_in_connection(&mut self, now: Instant, packet: Packet<P>) {
        if packet.control == Control::Reset {
            return self.finish(CloseReason::Reset);
        }
        if let Some(ack) = &packet.ack
            && !self.on_ack(now, ack)
        {
            return self.drop_packet(DropReason::BadAck);
        }
        self.heard = now;
        // An end sends data only after the answer to its opening.
        let confirms =
            packet.ack.is_some() || (packet.data.is_some() && self.lifecycle.role() == Role::Passive);
        if matches!(self.state(), State::SynSent | State::SynReceived) && confirms {
            self.establish(now);
        }
        if packet.opening.is_some() {
            // A peer that sends an opening has not received ours.
            self.owed.opening |= self.state() == State::SynReceived && self.lifecycle.role() == Role::Passive;
            self.owed.ack = true;
        }
        if self.state() != State::Closed {
            self.take_content(now, packet);
        }
    }

    fn take_content(&mut self, now: Instant, packet: Packet<P>) {
        if self.state() == State::TimeWait {
            self.owed.ack |= packet.asks_for_answer();
            self.rcv.take(now, packet);
            return;
        }
        if packet.data.is_some() && !self.state().is_synchronized() {
            return self.drop_packet(DropReason::Unexpected);
        }
        let had_all = self.rcv.is_finished();
        let before = self.rcv.in_order();
        let (brought, reply) = self.rcv.take(now, packet);
        self.stats.bytes_received += self.rcv.in_order() - before;
        match brought {
            Brought::Data { in_order } if in_order > 0 => self.event(Event::Readable),
            Brought::Copy | Brought::Known => self.stats.duplicates_received += 1,
            Brought::Dropped(reason) => self.drop_packet(reason),
            Brought::Data { .. } | Brought::Nothing => {}
        }
        match reply {
            Reply::Now => self.owed.ack = true,
            Reply::At(at) => {
                let due = self.timers.get(Timer::Ack).map_or(at, |set| set.min(at));
                self.timers.set(Timer::Ack, due.max(now));
            }
            Reply::None => {}
        }
        if !had_all && self.rcv.is_finished() {
            self.event(Event::PeerClosed);
            self.move_to(now, self.state().after_peer_fin());
        }
    }

    /// Processes an acknowledgment. Returns `false` if it covers packets that were never sent.
    fn on_ack(&mut self, now: Instant, ack: &Ack) -> bool {
        if !self.snd.outstanding.knows(&ack.spans) || ack.cumulative > self.snd.next {
            return false;
        }
        self.snd.limit = self.snd.limit.max(ack.limit);
        let acknowledged = self.take_spans(now, ack);
        self.take_cumulative(ack.cumulative);
        if let Some(largest) = acknowledged.largest {
            self.times.sample(now, now.since(largest.sent), delay_of(ack));
        }
        let lost = self.detect(now);
        self.update_control(now, ack, acknowledged, lost);
        if acknowledged.packets > 0 {
            self.thaw(now);
            self.watch_path(now);
        }
        // The end of the stream may arrive before earlier data.
        if self.snd.closing == Closing::Arrived && self.snd.queue.len() == 0 {
            self.snd.outstanding.clear();
            self.snd.lost.clear();
            self.timers.stop(Timer::Detect);
            self.timers.stop(Timer::Probe);
            self.move_to(now, self.state().after_fin_acked());
        }
        true
    }

    fn take_spans(&mut self, now: Instant, ack: &Ack) -> Acknowledged {
        let snd = &mut self.snd;
        let before = snd.detection.newest();
        let mut acknowledged = Acknowledged::default();
        let (detection, arrived, lost, closing) =
            (&mut snd.detection, &mut snd.arrived, &mut snd.lost, &mut snd.closing);
        snd.outstanding.acknowledge(&ack.spans, |number, sent: &Sent| {
            acknowledged.bytes += u64::from(sent.len);
            acknowledged.packets += 1;
            acknowledged.late += u64::from(sent.fate != Fate::InFlight);
            if number == ack.largest() {
                acknowledged.largest =
                    Some(Largest { number, sent: sent.at, upto: sent.upto, data: sent.chunk.len });
            }
            detection.acknowledged(now, number, sent.at, before);
            arrived.insert(sent.chunk.range());
            if sent.chunk.end == End::Yes {
                *closing = Closing::Arrived;
            }
            if lost.get(&sent.chunk.offset) == Some(&sent.chunk) {
                lost.remove(&sent.chunk.offset);
            }
        });
        self.stats.late += acknowledged.late;
        acknowledged
    }

    fn take_cumulative(&mut self, cumulative: u64) {
        let snd = &mut self.snd;
        snd.arrived.insert(snd.una..cumulative);
        snd.una = snd.arrived.end_of_run(snd.una);
        snd.arrived.forget_below(snd.una);
        while let Some((&offset, chunk)) = snd.lost.first_key_value()
            && chunk.range().end <= snd.una
            && chunk.end == End::No
        {
            snd.lost.remove(&offset);
        }
        let advanced = snd.queue.advance(snd.una);
        self.stats.bytes_acked += advanced;
        if advanced > 0 && self.snd.queue.take_refusal() {
            self.event(Event::Writable);
        }
    }

    /// Marks overdue packets as lost. Returns their number.
    pub(super) fn detect(&mut self, now: Instant) -> u64 {
        let window = self.reordering();
        let snd = &mut self.snd;
        let Some(newest) = snd.detection.newest() else { return 0 };
        let patience = newest.rtt + window;
        let before = Instant::from_nanos(now.as_nanos().saturating_sub(patience.as_nanos()));
        let mut count = 0;
        let (lost, control) = (&mut snd.lost, &mut self.control);
        let waits = snd.outstanding.lose(now, newest.number, before, |number, sent| {
            count += 1;
            control.on_packet_lost(now, number, sent.len);
            if !sent.chunk.is_nothing() {
                lost.insert(sent.chunk.offset, sent.chunk);
            }
        });
        snd.outstanding.forget(now, self.times.srtt().unwrap_or(Duration::ZERO).saturating_mul(4));
        self.stats.lost += count;
        match waits {
            Some(at) => self.timers.set(Timer::Detect, at + patience),
            None => self.timers.stop(Timer::Detect),
        }
        count
    }

    fn update_control(&mut self, now: Instant, ack: &Ack, acknowledged: Acknowledged, lost: u64) {
        // A short packet takes less time on a slow link than a full one: its delay would not compare.
        let full = acknowledged.largest.filter(|largest| 2 * largest.data >= self.snd.mss.into());
        let newest = full.map(|Largest { number, sent, upto, .. }| {
            let (at_us, queue) = self.times.arrival(now, sent, ack.arrival_us);
            (number, Arrival { sent, at_us, upto }, queue)
        });
        let limit = match acknowledged.largest {
            Some(largest) if largest.number < self.snd.starved => Limit::User,
            _ => Limit::Path,
        };
        let marks = ack.marks.wrapping_sub(self.snd.marks);
        // An older acknowledgment that comes late has fewer.
        let marks = if marks < 1 << 31 { marks } else { 0 };
        self.snd.marks = self.snd.marks.wrapping_add(marks);
        // Arrivals within a shorter time show the spacing of bursts, and not the path.
        let round = self.config.pace_ahead.saturating_mul(TRAINS);
        let outcome = self.control.on_ack(&AckSample {
            now,
            newest,
            delivered: acknowledged.bytes,
            packets: acknowledged.packets,
            late: acknowledged.late,
            lost,
            marks,
            limit,
            next_number: self.snd.outstanding.upcoming(),
            in_flight: self.snd.outstanding.bytes(),
            srtt: self.times.srtt().unwrap_or(self.config.silence.initial).max(round),
            round,
            base_age: self.times.base_age(now),
        });
        if outcome != RoundOutcome::NotOver {
            self.snd.detection.round();
            if self.control.saw_no_queue() {
                self.times.saw_base(now);
            }
        }
        // No packet without queueing delay for so long, despite the measurement: the path has changed.
        if outcome == RoundOutcome::ProbeRtt && self.times.base_age(now) > BASE_HOLDS {
            self.times.forget_base();
        }
    }

    /// Ends the silence of the path after an answer.
    fn thaw(&mut self, now: Instant) {
        let Path::Silent { since, probes } = core::mem::replace(&mut self.path, Path::Answers) else {
            return;
        };
        if probes < super::expire::FROZEN {
            return;
        }
        let outage = now.since(since);
        self.stats.frozen += outage;
        self.snd.release = now;
        self.control.discard_samples();
        if outage > self.config.silence.keeps {
            self.times.forget();
            self.control.restart(now, self.snd.outstanding.upcoming());
        }
    }

    pub(super) fn on_signal(&mut self, now: Instant, signal: Signal) {
        match (signal, self.path) {
            (Signal::RouteLost, Path::Answers) => self.freeze(now),
            (Signal::RouteLost, Path::Silent { .. }) | (Signal::RouteFound, Path::Answers) => {}
            (Signal::RouteFound, Path::Silent { .. }) => self.owed.probe = self.state().may_transmit(),
            (Signal::PathLength { .. }, _) => {}
        }
    }
}
