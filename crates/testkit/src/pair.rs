//! Two machines in virtual time over an emulated link.

use crate::packet::Packet;
use hopline_core::{Instant, LinkId, Machine};
use hopline_link::{Counts, Direction, Emulation, Fate, Side};
use std::collections::BTreeMap;

/// What happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
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
    /// When.
    pub at: Instant,
    /// Who sent it.
    pub from: Side,
    /// What happened to it.
    pub happened: Happened,
    /// The packet.
    pub packet: T,
}

/// Whether packets and their fate are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recording {
    /// They are.
    On,
    /// They are not.
    Off,
}

/// Two machines of a kind, a link, and a clock. Same machines, emulation and seed: same run.
#[derive(Debug)]
pub struct Pair<M: Machine> {
    /// The first machine. Call it freely, then [`settle`](Self::settle) or run on.
    pub a: M,
    /// The second machine.
    pub b: M,
    now: Instant,
    directions: [Direction; 2],
    /// Packets under way, by time of arrival and order of sending.
    under_way: BTreeMap<(Instant, u64), (Side, M::Packet)>,
    sent: u64,
    events: Vec<(Instant, Side, M::Event)>,
    recording: Recording,
    record: Vec<Entry<M::Packet>>,
}

impl<M> Pair<M>
where
    M: Machine<Transmit = <M as Machine>::Packet>,
    M::Packet: Packet,
{
    /// Two machines over a link that does the same in both directions.
    #[must_use]
    pub fn new(a: M, b: M, emulation: &Emulation, seed: u64) -> Self {
        Self::asymmetric(a, b, [emulation.clone(), emulation.clone()], seed)
    }

    /// Two machines over a link with its own emulation from A to B and from B to A.
    #[must_use]
    pub fn asymmetric(a: M, b: M, emulation: [Emulation; 2], seed: u64) -> Self {
        let [forth, back] = emulation;
        Self {
            a,
            b,
            now: Instant::ZERO,
            directions: [Direction::new(forth, seed, 0), Direction::new(back, seed, 1)],
            under_way: BTreeMap::new(),
            sent: 0,
            events: Vec::new(),
            recording: Recording::Off,
            record: Vec::new(),
        }
    }

    /// From now on the link does this to what A and to what B sends. What is under way arrives as it would have.
    pub fn change_link(&mut self, emulation: [Emulation; 2]) {
        for (direction, emulation) in self.directions.iter_mut().zip(emulation) {
            direction.change(emulation);
        }
    }

    /// Keeps packets and their fate from now on, or stops.
    pub fn record(&mut self, recording: Recording) {
        self.recording = recording;
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// One of the machines.
    pub fn side(&mut self, side: Side) -> &mut M {
        match side {
            Side::A => &mut self.a,
            Side::B => &mut self.b,
        }
    }

    /// What the link did to what `from` sent.
    #[must_use]
    pub fn counts(&self, from: Side) -> Counts {
        self.directions[from as usize].counts()
    }

    /// What the record holds.
    #[must_use]
    pub fn entries(&self) -> &[Entry<M::Packet>] {
        &self.record
    }

    /// The record as a dialogue, a line for each packet that was sent or lost.
    #[must_use]
    pub fn dialogue(&self) -> String {
        let mut text = String::new();
        for e in self.record.iter().filter(|e| e.happened != Happened::Arrived) {
            let arrow = if e.from == Side::A { "A ->" } else { "  <- B" };
            let lost = if e.happened == Happened::Lost { "  lost" } else { "" };
            text.push_str(&format!(
                "{:>12.6} {arrow:<6} {}{lost}\n",
                e.at.as_secs_f64(),
                e.packet.describe()
            ));
        }
        text
    }

    /// Takes the events so far, with time and machine.
    pub fn take_events(&mut self) -> Vec<(Instant, Side, M::Event)> {
        std::mem::take(&mut self.events)
    }

    /// Takes what the machines have to say, now.
    pub fn settle(&mut self) {
        for side in [Side::A, Side::B] {
            let now = self.now;
            while let Some(packet) = self.side(side).poll_transmit(now) {
                self.carry(side, packet);
            }
            while let Some(event) = self.side(side).poll_event() {
                self.events.push((now, side, event));
            }
        }
    }

    fn carry(&mut self, from: Side, packet: M::Packet) {
        let packet = packet.through_bytes();
        self.note(from, Happened::Sent, &packet);
        let direction = &mut self.directions[from as usize];
        let packet = if direction.marks() { packet.marked() } else { packet };
        let copies = direction.carry(self.now, packet.link_len());
        let mut arrivals = 0;
        for (at, fate) in copies.into_iter().flatten() {
            let copy = match fate {
                Fate::Whole => Some(packet.clone()),
                Fate::Corrupt => packet.corrupted(&mut self.directions[from as usize].random),
            };
            if let Some(copy) = copy {
                self.under_way.insert((at, self.sent), (from, copy));
                self.sent += 1;
                arrivals += 1;
            }
        }
        if arrivals == 0 {
            self.note(from, Happened::Lost, &packet);
        }
    }

    fn note(&mut self, from: Side, happened: Happened, packet: &M::Packet) {
        if self.recording == Recording::On {
            self.record.push(Entry { at: self.now, from, happened, packet: packet.clone() });
        }
    }

    /// When something happens next: an arrival or a timer.
    #[must_use]
    pub fn next_time(&self) -> Option<Instant> {
        let timer = |m: &M| m.poll_timeout().map(|(at, _)| at);
        let arrival = self.under_way.keys().next().map(|&(at, _)| at);
        [arrival, timer(&self.a), timer(&self.b)].into_iter().flatten().min()
    }

    /// Moves on to what happens next, if it happens by `limit`, and does it: one arrival, or the timers due. Returns
    /// whether there was anything; if not, the clock stands at `limit`.
    pub fn step(&mut self, limit: Instant) -> bool {
        self.settle();
        let Some(at) = self.next_time().filter(|&at| at <= limit) else {
            self.now = self.now.max(limit);
            return false;
        };
        self.now = self.now.max(at);
        let now = self.now;
        match self.under_way.first_key_value() {
            Some((&(arrival, _), _)) if arrival <= now => {
                let ((..), (from, packet)) = self.under_way.pop_first().expect("just seen");
                self.note(from, Happened::Arrived, &packet);
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

    /// Runs while `busy` says so, asking before each step, at most until `limit`. Returns whether it stopped in time.
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
