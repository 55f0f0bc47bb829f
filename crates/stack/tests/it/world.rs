//! Two stacks, a link between them, and the time.

use hopline_core::{Duration, Instant, Seq32};
use hopline_link::{Direction, Emulation};
use hopline_stack::{ConnectionId, EndReason, Event, InitialSequence, Secret, Stack, StackConfig, Status};
use hopline_transport::tcp::{self, DoorConfig};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Port at which the second stack listens.
pub(crate) const PORT: u16 = 80;
pub(crate) const ADDRESSES: [&str; 2] = ["10.0.0.1", "10.0.0.2"];
pub(crate) const V6_ADDRESSES: [&str; 2] = ["fd00::1", "fd00::2"];

pub(crate) fn config(of: usize, tcp: tcp::Config) -> StackConfig {
    let addresses = [ADDRESSES[of], V6_ADDRESSES[of]].map(|ip| ip.parse().unwrap()).to_vec();
    StackConfig::new(tcp, addresses, Secret([of as u8; 16]))
}

/// TCP as it is used by default, but TIME-WAIT is short.
pub(crate) fn modern() -> tcp::Config {
    tcp::Config::linux().with_time_wait(Duration::from_secs(1))
}

pub(crate) fn door() -> tcp::Config {
    modern().with_sack().with_door(Some(DoorConfig::all(2.0, 2.0)))
}

pub(crate) fn wrapping(config: StackConfig) -> StackConfig {
    StackConfig { initial_sequence: InitialSequence::Fixed(Seq32(u32::MAX - 20_000)), ..config }
}

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) stacks: [Stack; 2],
    pub(crate) accepted: Vec<ConnectionId>,
    directions: [Direction; 2],
    /// Packets under way, by time of arrival and number.
    in_flight: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    number: u64,
}

impl World {
    pub(crate) fn new(configs: [StackConfig; 2], emulation: &Emulation) -> Self {
        let [mut a, mut b] = configs.map(|config| Stack::new(config).unwrap());
        b.listen(PORT);
        a.listen(PORT);
        Self {
            now: Instant::ZERO,
            stacks: [a, b],
            accepted: Vec::new(),
            directions: [0, 1].map(|owner| Direction::new(emulation.clone(), 7, owner)),
            in_flight: BTreeMap::new(),
            number: 0,
        }
    }

    pub(crate) fn with_tcp(tcp: tcp::Config, emulation: &Emulation) -> Self {
        Self::new([0, 1].map(|of| config(of, tcp)), emulation)
    }

    pub(crate) fn connect(&mut self, to: &str) -> ConnectionId {
        let remote = SocketAddr::new(to.parse().unwrap(), PORT);
        let id = self.stacks[0].connect(self.now, remote).unwrap();
        self.flush();
        id
    }

    /// A pair of ends that are open, of the first and the second stack.
    pub(crate) fn open(&mut self) -> [ConnectionId; 2] {
        let near = self.connect(ADDRESSES[1]);
        assert!(self.run_until(|world| !world.accepted.is_empty()), "no connection");
        [near, self.accepted.remove(0)]
    }

    pub(crate) fn status(&self, of: usize, id: ConnectionId) -> Status {
        self.stacks[of].status(id).unwrap()
    }

    pub(crate) fn end(&self, of: usize, id: ConnectionId) -> Option<EndReason> {
        self.stacks[of].status(id).and_then(|status| status.end)
    }

    /// Sends what the stacks have for each other, and takes their news.
    pub(crate) fn flush(&mut self) {
        for from in 0..2 {
            let mut packet = Vec::new();
            while self.stacks[from].poll_transmit(self.now, &mut packet) {
                let copies = self.directions[from].transmit(self.now, packet.len());
                for (at, _) in copies.into_iter().flatten() {
                    self.number += 1;
                    self.in_flight.insert((at, self.number), (1 - from, packet.clone()));
                }
            }
            while let Some(event) = self.stacks[from].poll_event() {
                if let Event::Accepted(id) = event {
                    self.accepted.push(id);
                }
            }
        }
    }

    /// Goes on to the next arrival or timer. Returns whether there is one.
    pub(crate) fn step(&mut self) -> bool {
        let arrival = self.in_flight.keys().next().copied();
        let timer = self.stacks.iter().filter_map(Stack::poll_timeout).min();
        match (arrival, timer) {
            (Some(key), timer) if timer.is_none_or(|timer| key.0 <= timer) => {
                self.now = self.now.max(key.0);
                let (to, packet) = self.in_flight.remove(&key).unwrap();
                self.stacks[to].handle_packet(self.now, &packet);
            }
            (_, Some(timer)) => {
                self.now = self.now.max(timer);
                self.stacks.iter_mut().for_each(|stack| stack.handle_timeout(self.now));
            }
            (_, None) => return false,
        }
        self.flush();
        true
    }

    /// Goes on until something is so, at most for an hour. Returns whether it is.
    pub(crate) fn run_until(&mut self, is_so: impl Fn(&Self) -> bool) -> bool {
        let limit = self.now + Duration::from_secs(3600);
        while !is_so(self) {
            if self.now > limit || !self.step() {
                return is_so(self);
            }
        }
        true
    }

    /// Sends `there` and `back` at the same time, and closes both ways. Returns what arrived.
    pub(crate) fn exchange(&mut self, ids: [ConnectionId; 2], data: [&[u8]; 2]) -> [Vec<u8>; 2] {
        let mut sent = [0, 0];
        let mut got = [Vec::new(), Vec::new()];
        loop {
            for side in 0..2 {
                let (stack, id) = (&mut self.stacks[side], ids[side]);
                if sent[side] < data[side].len() {
                    sent[side] += stack.send(self.now, id, &data[side][sent[side]..]);
                    if sent[side] == data[side].len() {
                        stack.close(self.now, id);
                    }
                }
                while let Some(piece) = stack.receive(self.now, id, 1000) {
                    got[side].extend_from_slice(&piece);
                }
            }
            self.flush();
            let is_over = |side: usize| self.status(side, ids[side]).end.is_some();
            if (is_over(0) && is_over(1)) || !self.step() {
                return got;
            }
        }
    }
}

/// Bytes that tell where they belong.
pub(crate) fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| ((i * 31 + i / 251) ^ seed.wrapping_mul(97)) as u8).collect()
}
