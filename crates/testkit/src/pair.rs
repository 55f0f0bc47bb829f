//! Two machines in virtual time over an emulated link.

use crate::packet::Packet;
use hopline_core::{Instant, LinkId, StateMachine};
use hopline_link::{CopyState, Direction, DirectionStats, Emulation, Side};
use std::collections::BTreeMap;

/// Event in the life of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketEvent {
    /// Sent.
    Sent,
    /// Lost, or damaged so that the far end dropped it.
    Lost,
    /// Handed to the far end.
    Arrived,
}

/// One line of the record.
#[derive(Clone, Debug)]
pub struct Entry<T> {
    /// Time of the event.
    pub at: Instant,
    /// Sender of the packet.
    pub from: Side,
    /// Event.
    pub event: PacketEvent,
    /// The packet.
    pub packet: T,
}

/// Recording of packets and their fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recording {
    /// Events are recorded.
    On,
    /// Events are not recorded.
    Off,
}

/// Two machines of a kind, a link, and a clock. The same machines, emulation and seed give the same run.
#[derive(Debug)]
pub struct Pair<M: StateMachine> {
    /// First machine. After a direct call, call [`settle`](Self::settle) or run on.
    pub a: M,
    /// Second machine.
    pub b: M,
    now: Instant,
    directions: [Direction; 2],
    /// Packets in flight, by time of arrival and order of sending.
    in_flight: BTreeMap<(Instant, u64), (Side, M::Packet)>,
    sent: u64,
    events: Vec<(Instant, Side, M::Event)>,
    recording: Recording,
    record: Vec<Entry<M::Packet>>,
}

impl<M> Pair<M>
where
    M: StateMachine<Transmit = <M as StateMachine>::Packet>,
    M::Packet: Packet,
{
    /// Creates two machines over a link with the same emulation in both directions.
    #[must_use]
    pub fn new(a: M, b: M, emulation: &Emulation, seed: u64) -> Self {
        Self::asymmetric(a, b, [emulation.clone(), emulation.clone()], seed)
    }

    /// Creates two machines over a link with its own emulation from A to B and from B to A.
    #[must_use]
    pub fn asymmetric(a: M, b: M, emulation: [Emulation; 2], seed: u64) -> Self {
        let [forth, back] = emulation;
        Self {
            a,
            b,
            now: Instant::ZERO,
            directions: [Direction::new(forth, seed, 0), Direction::new(back, seed, 1)],
            in_flight: BTreeMap::new(),
            sent: 0,
            events: Vec::new(),
            recording: Recording::Off,
            record: Vec::new(),
        }
    }

    /// Changes the emulation from A to B and from B to A. Packets in flight arrive as before.
    pub fn change_link(&mut self, emulation: [Emulation; 2]) {
        for (direction, emulation) in self.directions.iter_mut().zip(emulation) {
            direction.set_emulation(emulation);
        }
    }

    /// Starts or stops the recording of packets and their fate.
    pub fn record(&mut self, recording: Recording) {
        self.recording = recording;
    }

    /// Returns the time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns one of the machines.
    pub fn side(&mut self, side: Side) -> &mut M {
        match side {
            Side::A => &mut self.a,
            Side::B => &mut self.b,
        }
    }

    /// Returns the counters of the link for packets from `from`.
    #[must_use]
    pub fn counts(&self, from: Side) -> DirectionStats {
        self.directions[from as usize].stats()
    }

    /// Returns the recorded events.
    #[must_use]
    pub fn entries(&self) -> &[Entry<M::Packet>] {
        &self.record
    }

    /// Returns the record as a dialogue, a line for each packet that was sent or lost.
    #[must_use]
    pub fn dialogue(&self) -> String {
        let mut text = String::new();
        for e in self.record.iter().filter(|e| e.event != PacketEvent::Arrived) {
            let arrow = if e.from == Side::A { "A ->" } else { "  <- B" };
            let lost = if e.event == PacketEvent::Lost { "  lost" } else { "" };
            text.push_str(&format!(
                "{:>12.6} {arrow:<6} {}{lost}\n",
                e.at.as_secs_f64(),
                e.packet.describe()
            ));
        }
        text
    }

    /// Takes the events so far, with their time and machine.
    pub fn take_events(&mut self) -> Vec<(Instant, Side, M::Event)> {
        std::mem::take(&mut self.events)
    }

    /// Sends the packets and takes the events that the machines have ready at the present time.
    pub fn settle(&mut self) {
        for side in [Side::A, Side::B] {
            let now = self.now;
            while let Some(packet) = self.side(side).poll_transmit(now) {
                self.transmit(side, packet);
            }
            while let Some(event) = self.side(side).poll_event() {
                self.events.push((now, side, event));
            }
        }
    }

    fn transmit(&mut self, from: Side, packet: M::Packet) {
        let packet = packet.through_bytes();
        self.record_event(from, PacketEvent::Sent, &packet);
        let direction = &mut self.directions[from as usize];
        let packet = if direction.draw_mark() { packet.marked() } else { packet };
        let copies = direction.transmit(self.now, packet.link_len());
        let mut arrivals = 0;
        for (at, fate) in copies.into_iter().flatten() {
            let copy = match fate {
                CopyState::Intact => Some(packet.clone()),
                CopyState::Corrupted => packet.corrupted(&mut self.directions[from as usize].random),
            };
            if let Some(copy) = copy {
                self.in_flight.insert((at, self.sent), (from, copy));
                self.sent += 1;
                arrivals += 1;
            }
        }
        if arrivals == 0 {
            self.record_event(from, PacketEvent::Lost, &packet);
        }
    }

    fn record_event(&mut self, from: Side, happened: PacketEvent, packet: &M::Packet) {
        if self.recording == Recording::On {
            self.record.push(Entry { at: self.now, from, event: happened, packet: packet.clone() });
        }
    }

    /// Returns the time of the next event: an arrival or a timer.
    #[must_use]
    pub fn next_time(&self) -> Option<Instant> {
        let timer = |m: &M| m.poll_timeout().map(|(at, _)| at);
        let arrival = self.in_flight.keys().next().map(|&(at, _)| at);
        [arrival, timer(&self.a), timer(&self.b)].into_iter().flatten().min()
    }

    /// Advances to the next event, if it is not after `limit`, and processes it: one arrival, or the timers due. Returns
    /// whether there was an event; if not, the clock stands at `limit`.
    pub fn step(&mut self, limit: Instant) -> bool {
        self.settle();
        let Some(at) = self.next_time().filter(|&at| at <= limit) else {
            self.now = self.now.max(limit);
            return false;
        };
        self.now = self.now.max(at);
        let now = self.now;
        match self.in_flight.first_key_value() {
            Some((&(arrival, _), _)) if arrival <= now => {
                let ((..), (from, packet)) = self.in_flight.pop_first().expect("just seen");
                self.record_event(from, PacketEvent::Arrived, &packet);
                self.side(from.other()).handle_packet(now, LinkId::ONLY, packet);
            }
            _ => {
                self.a.handle_timeout(now);
                self.b.handle_timeout(now);
            }
        }
        self.settle();
        true
    }

    /// Runs until `limit`.
    pub fn run_until(&mut self, limit: Instant) {
        while self.step(limit) {}
    }

    /// Runs while `busy` returns `true`, at most until `limit`. `busy` is called before each step. Returns whether it
    /// stopped in time.
    pub fn run_while(&mut self, limit: Instant, mut busy: impl FnMut(&mut Self) -> bool) -> bool {
        self.settle();
        while busy(self) {
            if !self.step(limit) {
                return false;
            }
        }
        true
    }
}
