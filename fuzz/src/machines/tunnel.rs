//! Both ends of a tunnel.

use super::Choices;
use bytes::Bytes;
use hopline_core::{Duration, Instant};
use hopline_proxy::arq;
use hopline_proxy::dproxy::{Key, opaque};
use hopline_proxy::tunnel::{Config, RecoveryScheme, Tunnel, TunnelAction};
use hopline_wire::dproxy::tunnel::HANDSHAKE_LEN;
use std::collections::{BTreeSet, VecDeque};

const KEY: Key = Key::new([3; 32]);
/// Most datagrams in flight; more are lost.
const UNDER_WAY: usize = 300;

/// Both ends, the datagrams in flight to each, and all datagrams so far.
struct Pair {
    repair: RecoveryScheme,
    ends: [Tunnel; 2],
    now: Instant,
    under_way: [VecDeque<Bytes>; 2],
    said: Vec<Bytes>,
    /// Packets that each end is expected to receive.
    expected: [BTreeSet<u32>; 2],
    lives: u64,
}

/// Drives both ends with packets, with datagrams that arrive, are lost, are repeated or damaged, and with restarts. Checks
/// that no packet arrives that was not sent, or twice, that datagrams without authentication are not answered, and that the
/// ends recover afterwards.
pub fn tunnel(data: &[u8]) {
    let mut choices = Choices(data);
    let repair = if choices.byte() % 2 == 0 {
        RecoveryScheme::Nack(opaque::Config::default())
    } else {
        RecoveryScheme::Arq(arq::Config::default())
    };
    let end = |life| Tunnel::new(Config { key: KEY, recovery: repair }, life);
    let mut pair = Pair {
        repair,
        ends: [end(1), end(2)],
        now: Instant::from_secs(1),
        under_way: Default::default(),
        said: Vec::new(),
        expected: Default::default(),
        lives: 2,
    };
    let mut next = 0u32;
    while !choices.is_over() {
        let choice = choices.byte();
        let who = usize::from(choice % 2);
        match choice {
            0..40 => pair.pass(Duration::from_millis(u64::from(choice))),
            40..180 => {
                next += 1;
                pair.send(who, next);
            }
            180..200 => {
                pair.under_way[who].pop_front();
            }
            200..230 => {
                let again = pair.said.get(usize::from(choices.u16()) % pair.said.len().max(1)).cloned();
                again.into_iter().for_each(|datagram| pair.take(who, &datagram));
            }
            230..245 => {
                let at = usize::from(choices.byte());
                let bit = choices.byte();
                pair.take_damaged(who, at, bit);
            }
            _ => pair.begin_again(usize::from(choices.byte() % 2)),
        }
        assert!(pair.under_way.iter().all(|datagrams| datagrams.len() <= UNDER_WAY));
    }
    (0..400).for_each(|_| pair.pass(Duration::from_millis(50)));
    assert!(pair.ends.iter().all(Tunnel::is_ready), "they know each other");
}

impl Pair {
    fn send(&mut self, from: usize, packet: u32) {
        if self.ends[from].is_ready() {
            self.expected[1 - from].insert(packet);
        }
        self.ends[from].send(self.now, Bytes::copy_from_slice(&packet.to_be_bytes()));
        self.drain();
    }

    /// Delivers all datagrams in flight, then processes the timers.
    fn pass(&mut self, time: Duration) {
        for to in [0, 1] {
            for datagram in core::mem::take(&mut self.under_way[to]) {
                self.take(to, &datagram);
            }
        }
        self.now += time;
        let now = self.now;
        self.ends.iter_mut().for_each(|end| end.handle_timeout(now));
        self.drain();
    }

    fn take(&mut self, to: usize, datagram: &Bytes) {
        self.ends[to].handle_datagram(self.now, datagram);
        self.drain();
    }

    fn take_damaged(&mut self, to: usize, which: usize, bit: u8) {
        let Some(datagram) = self.said.get(which % self.said.len().max(1)) else { return };
        let mut bytes = datagram.to_vec();
        let at = usize::from(bit) % bytes.len();
        bytes[at] ^= 1 << (bit % 8);
        self.ends[to].handle_datagram(self.now, &bytes.into());
        assert_eq!(self.ends[to].poll_action(), None, "what proves nothing is not answered");
    }

    fn begin_again(&mut self, who: usize) {
        self.lives += 1;
        self.ends[who] = Tunnel::new(Config { key: KEY, recovery: self.repair }, self.lives);
    }

    fn drain(&mut self) {
        for from in [0, 1] {
            let mut answers = 0;
            while let Some(does) = self.ends[from].poll_action() {
                answers += 1;
                assert!(answers < 5_000, "it does not stop");
                match does {
                    TunnelAction::Deliver(packet) => {
                        let packet = u32::from_be_bytes(packet[..].try_into().expect("as it was sent"));
                        assert!(self.expected[from].remove(&packet), "{packet} was not sent, or came before");
                    }
                    TunnelAction::SendDatagram { datagram, packet, .. } => {
                        assert!(packet.is_none() || datagram.len() != HANDSHAKE_LEN);
                        self.said.push(datagram.clone().into());
                        if self.under_way[1 - from].len() < UNDER_WAY {
                            self.under_way[1 - from].push_back(datagram.into());
                        }
                    }
                }
            }
        }
    }
}
