//! Hosts, and a network with address translators between them, in virtual time.

use crate::{
    Conn, ConnectionKey, Credentials, Ecn, Event, Host, HostConfig, HostEvent, Path, Seed, State,
    TransportConfig,
};
use bytes::Bytes;
use core::net::SocketAddr;
use hopline_core::{Duration, Instant};
use hopline_link::{CopyState, Direction, DirectionStats, Emulation, NatPortPolicy};
use hopline_testkit::reference_stream::InOrder;
use std::collections::{BTreeMap, BTreeSet};

/// The initiator; the other node is the responder.
pub(super) const A: usize = 0;
pub(super) const B: usize = 1;
/// Start of the clock: nothing may depend on its being zero.
pub(super) const START: Duration = Duration::from_secs(1);
/// Overhead of every datagram, in bytes: headers below UDP's payload.
const NETWORK_OVERHEAD: usize = 28;

/// A host behind its address translator.
pub(super) struct Node {
    pub(super) host: Host,
    pub(super) public: SocketAddr,
    /// Former addresses, as long as they lead to it.
    former: Vec<SocketAddr>,
    link: Direction,
    config: HostConfig,
    incarnation: u8,
}

/// A datagram that was sent, whatever became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) at: Instant,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) ecn: Ecn,
    pub(super) bytes: Vec<u8>,
}

pub(super) struct Net {
    pub(super) nodes: Vec<Node>,
    pub(super) now: Instant,
    in_flight: BTreeMap<(Instant, u64), Sent>,
    /// Datagrams by number, all nodes together, that are lost.
    pub(super) lose: BTreeSet<usize>,
    /// Datagrams that nodes sent, if a log is kept.
    pub(super) log: Option<Vec<Sent>>,
    pub(super) count: usize,
    arrivals: u64,
    pub(super) events: Vec<(usize, HostEvent)>,
}

pub(super) fn address(node: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, (node >> 8) as u8, node as u8], if node == B { 7174 } else { 4000 }))
}

impl Net {
    /// `count` hosts, each with the same link before it.
    pub(super) fn new(count: usize, config: &HostConfig, emulation: &Emulation, seed: u64) -> Self {
        let node = |at: usize| Node {
            host: Host::new(config.clone(), host_seed(at, 0)).unwrap(),
            public: address(at),
            former: Vec::new(),
            link: Direction::new(emulation.clone(), seed, at as u64),
            config: config.clone(),
            incarnation: 0,
        };
        Self {
            nodes: (0..count).map(node).collect(),
            now: Instant::ZERO + START,
            in_flight: BTreeMap::new(),
            lose: BTreeSet::new(),
            log: None,
            count: 0,
            arrivals: 0,
            events: Vec::new(),
        }
    }

    /// Two hosts, 20 ms from each other; B listens.
    pub(super) fn pair(credentials: &[Credentials; 2], transport: TransportConfig) -> Self {
        let mut net = Self::new(2, &HostConfig::default(), &Emulation::delay(Duration::from_millis(20)), 1);
        net.nodes[B].host.listen(credentials[B].clone(), transport, 16).unwrap();
        net
    }

    /// A opens a connection to B.
    pub(super) fn connect(
        &mut self,
        credentials: &[Credentials; 2],
        transport: TransportConfig,
    ) -> ConnectionKey {
        let path = Path::to(address(B));
        self.nodes[A].host.connect(self.now, path, credentials[A].clone(), transport).unwrap()
    }

    /// Opens it, and waits for both ends to have it.
    pub(super) fn open(
        &mut self,
        credentials: &[Credentials; 2],
        transport: TransportConfig,
    ) -> [ConnectionKey; 2] {
        let at_a = self.connect(credentials, transport);
        self.run_for(Duration::from_millis(500));
        let at_b = self.accepted(B).expect("accepted");
        [at_a, at_b]
    }

    /// Returns the last connection that was reported to a node.
    pub(super) fn accepted(&self, node: usize) -> Option<ConnectionKey> {
        self.events.iter().rev().find_map(|(at, event)| match event {
            HostEvent::Accepted(key) if *at == node => Some(*key),
            _ => None,
        })
    }

    pub(super) fn conn(&mut self, node: usize, key: ConnectionKey) -> &mut Conn {
        self.nodes[node].host.connection_mut(key).expect("it is there")
    }

    /// Its address translator gives it another address.
    pub(super) fn rebind(&mut self, node: usize, old: NatPortPolicy) {
        let node = &mut self.nodes[node];
        let before = node.public;
        node.public.set_port(before.port() + 1);
        match old {
            NatPortPolicy::Kept => node.former.push(before),
            NatPortPolicy::Forgotten => node.former.clear(),
        }
    }

    /// Returns the fates of the datagrams that it sent.
    pub(super) fn counts(&self, node: usize) -> DirectionStats {
        self.nodes[node].link.stats()
    }

    /// It is made anew, otherwise.
    pub(super) fn configure(&mut self, node: usize, config: HostConfig) {
        self.nodes[node].config = config;
        self.restart(node);
    }

    /// Adds an address that leads to the node, too.
    pub(super) fn also(&mut self, node: usize, address: SocketAddr) {
        self.nodes[node].former.push(address);
    }

    /// It loses all that it knows, and has other random numbers.
    pub(super) fn restart(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        node.incarnation += 1;
        node.host = Host::new(node.config.clone(), host_seed(at, node.incarnation)).unwrap();
    }

    /// It draws the same random numbers as `of`, and so chooses the same ids.
    pub(super) fn twin(&mut self, at: usize, of: usize) {
        let config = self.nodes[at].config.clone();
        self.nodes[at].host = Host::new(config, host_seed(of, self.nodes[of].incarnation)).unwrap();
    }

    pub(super) fn change_link(&mut self, node: usize, emulation: Emulation) {
        self.nodes[node].link.set_emulation(emulation);
    }

    /// Puts all output of the nodes on the network, and collects their events.
    pub(super) fn settle(&mut self) {
        for at in 0..self.nodes.len() {
            let mut buffer = Vec::new();
            while let Some(transmit) = self.nodes[at].host.poll_transmit(self.now, &mut buffer) {
                assert_eq!(transmit.len, buffer.len());
                let sent = Sent {
                    at: self.now,
                    from: self.nodes[at].public,
                    to: transmit.path.peer,
                    ecn: transmit.ecn,
                    bytes: core::mem::take(&mut buffer),
                };
                self.transmit(at, sent);
            }
            while let Some(event) = self.nodes[at].host.poll_event() {
                self.events.push((at, event));
            }
        }
    }

    fn transmit(&mut self, from: usize, mut sent: Sent) {
        if let Some(log) = &mut self.log {
            log.push(sent.clone());
        }
        self.count += 1;
        let way = &mut self.nodes[from].link;
        if way.draw_mark() && sent.ecn != Ecn::NotCapable {
            sent.ecn = Ecn::CongestionExperienced;
        }
        let copies = way.transmit(self.now, sent.bytes.len() + NETWORK_OVERHEAD);
        if self.lose.contains(&(self.count - 1)) {
            return;
        }
        for (at, fate) in copies.into_iter().flatten() {
            let mut copy = sent.clone();
            if fate == CopyState::Corrupted {
                damage(&mut copy.bytes, &mut way.random);
            }
            self.in_flight.insert((at, self.arrivals), copy);
            self.arrivals += 1;
        }
    }

    /// Sends a datagram.
    pub(super) fn inject(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let sent = Sent { at: self.now, from, to, ecn: Ecn::NotCapable, bytes: bytes.to_vec() };
        self.in_flight.insert((self.now, self.arrivals), sent);
        self.arrivals += 1;
    }

    fn arrive(&mut self, mut sent: Sent) {
        let path = Path { peer: sent.from, local: Some(sent.to.ip()) };
        let to = |node: &&mut Node| node.public == sent.to || node.former.contains(&sent.to);
        if let Some(node) = self.nodes.iter_mut().find(to) {
            node.host.handle_datagram(self.now, path, sent.ecn, &mut sent.bytes);
        }
    }

    pub(super) fn next_time(&self) -> Option<Instant> {
        let timers = self.nodes.iter().filter_map(|node| node.host.poll_timeout());
        timers.chain(self.in_flight.keys().next().map(|(at, _)| *at)).min()
    }

    /// The next thing that happens, if it does by `limit`.
    pub(super) fn step(&mut self, limit: Instant) -> bool {
        self.settle();
        let Some(at) = self.next_time().filter(|at| *at <= limit) else {
            self.now = limit;
            return false;
        };
        self.now = self.now.max(at);
        if self.in_flight.first_key_value().is_some_and(|((at, _), _)| *at <= self.now) {
            let (_, sent) = self.in_flight.pop_first().expect("just seen");
            self.arrive(sent);
        } else {
            for node in &mut self.nodes {
                if node.host.poll_timeout().is_some_and(|at| at <= self.now) {
                    node.host.handle_timeout(self.now);
                }
            }
        }
        self.settle();
        true
    }

    pub(super) fn run_for(&mut self, time: Duration) {
        let limit = self.now + time;
        while self.step(limit) {}
    }

    /// Runs while `busy`, at most until `limit`; whether it stopped in time.
    pub(super) fn run_while(&mut self, limit: Instant, mut busy: impl FnMut(&mut Self) -> bool) -> bool {
        self.settle();
        while busy(self) {
            if !self.step(limit) {
                return false;
            }
        }
        true
    }

    /// Returns the last event of a connection, as reported to its user.
    pub(super) fn end_of(&self, node: usize, key: ConnectionKey) -> Option<HostEvent> {
        let of_it = |event: &HostEvent| match event {
            HostEvent::Connection(of, Event::Closed(_)) | HostEvent::Failed(of, _) => *of == key,
            _ => false,
        };
        self.events.iter().find(|(at, event)| *at == node && of_it(event)).map(|(_, event)| *event)
    }
}

fn host_seed(node: usize, life: u8) -> Seed {
    let mut bytes = [life; 32];
    bytes[..8].copy_from_slice(&(node as u64).to_be_bytes());
    Seed::new(bytes)
}

fn damage(bytes: &mut [u8], random: &mut hopline_core::RandomStream) {
    let bit = random.below(bytes.len() as u32 * 8) as usize;
    bytes[bit / 8] ^= 1 << (bit % 8);
}

/// An application that sends so many bytes of the reference stream, closes, and takes what comes.
#[derive(Debug)]
pub(super) struct App {
    pub(super) node: usize,
    pub(super) key: ConnectionKey,
    total: u64,
    handed: u64,
    pub(super) got: InOrder,
    pub(super) peer_ended: bool,
}

impl App {
    pub(super) fn new(node: usize, key: ConnectionKey, total: u64) -> Self {
        Self { node, key, total, handed: 0, got: InOrder::default(), peer_ended: false }
    }

    /// Does what it can. Panics at the first wrong byte.
    pub(super) fn step(&mut self, net: &mut Net) {
        let now = net.now;
        let Some(conn) = net.nodes[self.node].host.connection_mut(self.key) else { return };
        while let Some(data) = conn.recv() {
            self.got.check(&data);
        }
        self.peer_ended |=
            matches!(conn.state(), State::CloseWait | State::LastAck | State::Closing | State::TimeWait);
        if !conn.state().may_send() {
            return;
        }
        while self.handed < self.total {
            let len = (1 << 14).min(self.total - self.handed);
            match conn.send(now, InOrder::bytes(self.handed, len as usize)) {
                Ok(()) => self.handed += len,
                Err(_) => return,
            }
        }
        // A user that closes before anything was sent aborts the opening.
        if conn.state() != State::SynSent {
            conn.close(now).expect("an open connection can be closed once");
        }
    }

    pub(super) fn is_done(&self, net: &Net) -> bool {
        let unacknowledged = net.nodes[self.node].host.connection(self.key).map_or(0, Conn::unacknowledged);
        self.peer_ended && self.handed == self.total && unacknowledged == 0
    }
}

/// Both carry their bytes to each other; whether they did by `limit`.
pub(super) fn exchange(net: &mut Net, apps: &mut [App; 2], limit: Instant) -> bool {
    net.run_while(limit, |net| {
        apps.iter_mut().for_each(|app| app.step(net));
        !apps.iter().all(|app| app.is_done(net))
    })
}

/// Buffers that are small enough for tests.
pub(super) fn transport() -> TransportConfig {
    TransportConfig::DEFAULT.with_send_buffer(Some(1 << 22))
}

pub(super) fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}
