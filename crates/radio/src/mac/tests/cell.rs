//! Several stations and the air between them, in virtual time. Reception fails where signals overlap, and only there.

use super::airtime::sum;
use super::*;
use crate::phy::propagation::RadioParams;
use crate::phy::reception::{Arrival, Receiver, ReceptionModel, ReceptionResult, Thresholds};
use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// Next event of the simulation, and its station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CellEvent {
    Wake(usize),
    Begin { flight: usize, at: usize },
    End { flight: usize, at: usize },
    TransmitEnd(usize),
}

struct InFlight {
    transmission: Transmission<u32>,
    end: Instant,
}

/// Station with its radio and a source that always has a packet for `peer`.
struct Node {
    mac: Mac<u32>,
    receiver: Receiver,
    carrier: RadioState,
    wake_at: Instant,
    /// Nodes that receive from this node.
    neighbours: Vec<usize>,
    peer: Option<usize>,
    next_body: u32,
    /// Bodies in the order in which they were delivered.
    received: Vec<u32>,
    delivered: u64,
    failed: u64,
}

/// The cell.
pub(super) struct Cell {
    now: Instant,
    delay: Duration,
    payload_bytes: u32,
    thresholds: Thresholds,
    nodes: Vec<Node>,
    events: BinaryHeap<Reverse<(Instant, u64, CellEvent)>>,
    insertions: u64,
    flights: Vec<InFlight>,
    /// Share of frames that arrive damaged.
    loss: f64,
    random: RandomStream,
}

impl Cell {
    /// `n` stations that all hear one another after `delay`; each always has a packet of `payload_bytes` for the next.
    pub(super) fn saturated(config: &Config, n: usize, delay: Duration, payload_bytes: u32) -> Self {
        let mut cell = Self::silent(config, n, delay, payload_bytes);
        for i in 0..n {
            cell.nodes[i].neighbours = (0..n).filter(|&j| j != i).collect();
            cell.nodes[i].peer = Some((i + 1) % n);
        }
        cell
    }

    fn silent(config: &Config, n: usize, delay: Duration, payload_bytes: u32) -> Self {
        let node = |i: usize| {
            let id = NodeId(i as u32);
            Node {
                mac: Mac::new(
                    config.clone(),
                    MacAddr::of_node(id),
                    RandomStream::new(1, 1, id, Purpose::Backoff),
                ),
                receiver: Receiver::default(),
                carrier: RadioState::Idle,
                wake_at: Instant::FAR_FUTURE,
                neighbours: Vec::new(),
                peer: None,
                next_body: 0,
                received: Vec::new(),
                delivered: 0,
                failed: 0,
            }
        };
        Self {
            now: Instant::ZERO,
            delay,
            payload_bytes,
            thresholds: Thresholds::new(ReceptionModel::LockOnDecodable, &RadioParams::ns2_wavelan()),
            nodes: (0..n).map(node).collect(),
            events: BinaryHeap::new(),
            insertions: 0,
            flights: Vec::new(),
            loss: 0.0,
            random: RandomStream::new(1, 1, NodeId(0), Purpose::Errors),
        }
    }

    /// Runs the cell until `end`.
    pub(super) fn run(&mut self, end: Instant) {
        for i in 0..self.nodes.len() {
            self.process_outputs(i);
        }
        while let Some(&Reverse((at, _, what))) = self.events.peek() {
            if at > end {
                break;
            }
            self.events.pop();
            self.now = at;
            self.process(what);
        }
        self.now = end;
    }

    /// Station 0 always has a packet for station 1; of all frames a share of `loss` arrives damaged.
    pub(super) fn one_way(config: &Config, payload_bytes: u32, loss: f64) -> Self {
        let mut cell = Self::silent(config, 2, Duration::ZERO, payload_bytes);
        (cell.nodes[0].neighbours, cell.nodes[1].neighbours) = (vec![1], vec![0]);
        cell.nodes[0].peer = Some(1);
        cell.loss = loss;
        cell
    }

    /// Returns the bodies that station `i` received, in order.
    pub(super) fn received(&self, i: usize) -> &[u32] {
        &self.nodes[i].received
    }

    /// MSDUs that reached their receivers so far.
    pub(super) fn delivered(&self) -> u64 {
        self.nodes.iter().map(|node| node.delivered).sum()
    }

    /// The sum of a counter over the stations.
    pub(super) fn total(&self, counter: impl Fn(&crate::mac::Stats) -> u64) -> u64 {
        self.nodes.iter().map(|node| counter(node.mac.stats())).sum()
    }

    fn schedule(&mut self, at: Instant, what: CellEvent) {
        self.insertions += 1;
        self.events.push(Reverse((at, self.insertions, what)));
    }

    fn process(&mut self, what: CellEvent) {
        let now = self.now;
        match what {
            CellEvent::Wake(i) => {
                if self.nodes[i].wake_at == now {
                    self.nodes[i].wake_at = Instant::FAR_FUTURE;
                    self.nodes[i].mac.handle_timeout(now);
                    self.process_outputs(i);
                }
            }
            CellEvent::Begin { flight, at } => self.begin_signal(flight, at),
            CellEvent::End { flight, at } => self.end_signal(flight, at),
            CellEvent::TransmitEnd(i) => {
                self.nodes[i].receiver.transmit_end();
                self.nodes[i].mac.handle_signal(now, Signal::TransmitEnd);
                self.nodes[i].report_carrier(now);
                self.process_outputs(i);
            }
        }
    }

    fn begin_signal(&mut self, flight: usize, at: usize) {
        let InFlight { transmission, end } = &self.flights[flight];
        let arrival = Arrival {
            id: flight as u32,
            power_w: 1e-9,
            end: *end + self.delay,
            rate: transmission.rate,
            bits: 8 * transmission.len_bytes,
        };
        let node = &mut self.nodes[at];
        node.receiver.signal_begin(&self.thresholds, self.now, arrival);
        node.report_carrier(self.now);
        self.process_outputs(at);
    }

    fn end_signal(&mut self, flight: usize, at: usize) {
        let (now, frame) = (self.now, self.flights[flight].transmission.frame);
        let node = &mut self.nodes[at];
        let is_damaged = self.loss > 0.0 && self.random.bernoulli(self.loss);
        match node.receiver.signal_end(&self.thresholds, now, flight as u32) {
            ReceptionResult::NotLocked => {}
            ReceptionResult::Damaged => node.mac.handle_packet(now, LinkId::ONLY, Reception::Errored),
            ReceptionResult::Decodable { .. } if is_damaged => {
                node.mac.handle_packet(now, LinkId::ONLY, Reception::Errored);
            }
            ReceptionResult::Decodable { .. } => {
                node.mac.handle_packet(now, LinkId::ONLY, Reception::Frame(frame))
            }
        }
        node.report_carrier(now);
        self.process_outputs(at);
    }

    /// Takes the outputs of the station, and gives it the next packet.
    fn process_outputs(&mut self, i: usize) {
        let now = self.now;
        loop {
            let node = &mut self.nodes[i];
            if let Some(transmission) = node.mac.poll_transmit(now) {
                self.start_transmission(i, transmission);
            } else if let Some(event) = node.mac.poll_event() {
                if let Event::Deliver { body, .. } | Event::DeliverBuffered { body, .. } = event {
                    node.delivered += 1;
                    node.received.push(body);
                }
                node.failed += u64::from(matches!(event, Event::Failed(_)));
            } else if let (true, Some(peer)) = (node.mac.is_ready(), node.peer) {
                let to = MacAddr::of_node(NodeId(peer as u32));
                node.mac.send(now, Msdu { body: node.next_body, len_bytes: self.payload_bytes, to });
                node.next_body += 1;
            } else {
                break;
            }
        }
        if let Some((at, _)) = self.nodes[i].mac.poll_timeout()
            && at < self.nodes[i].wake_at
        {
            self.nodes[i].wake_at = at;
            self.schedule(at, CellEvent::Wake(i));
        }
    }

    fn start_transmission(&mut self, from: usize, transmission: Transmission<u32>) {
        let (flight, end) = (self.flights.len(), self.now + transmission.airtime);
        self.flights.push(InFlight { transmission, end });
        self.nodes[from].receiver.transmit_begin();
        self.nodes[from].report_carrier(self.now);
        for at in self.nodes[from].neighbours.clone() {
            self.schedule(self.now + self.delay, CellEvent::Begin { flight, at });
            self.schedule(end + self.delay, CellEvent::End { flight, at });
        }
        self.schedule(end, CellEvent::TransmitEnd(from));
    }
}

impl Node {
    fn report_carrier(&mut self, now: Instant) {
        let carrier = self.receiver.activity();
        if carrier != self.carrier {
            self.carrier = carrier;
            self.mac.handle_signal(now, Signal::Carrier(carrier));
        }
    }
}

/// Stations 0 and 2 send to station 1 and do not hear each other.
fn hidden_pair(config: &Config) -> Cell {
    let mut cell = Cell::silent(config, 3, micros(1), 1000);
    cell.nodes[0].neighbours = vec![1];
    cell.nodes[1].neighbours = vec![0, 2];
    cell.nodes[2].neighbours = vec![1];
    (cell.nodes[0].peer, cell.nodes[2].peer) = (Some(1), Some(1));
    cell
}

#[test]
fn a_lone_sender_fills_the_medium_with_exchanges_and_backoffs() {
    let mut cell = Cell::silent(&dot11b(), 2, Duration::ZERO, 464);
    cell.nodes[0].neighbours = vec![1];
    cell.nodes[1].neighbours = vec![0];
    cell.nodes[0].peer = Some(1);
    cell.run(Instant::from_secs(30));
    // DIFS, 15.5 slots in the mean, data, SIFS, ACK.
    let expected = 30e6 / (50.0 + 15.5 * 20.0 + 2192.0 + 10.0 + 304.0);
    let measured = cell.delivered() as f64;
    assert!((measured / expected - 1.0).abs() < 0.01, "{measured} {expected}");
    assert_eq!(cell.total(|s| s.ack_timeouts + s.duplicates + s.undecodable), 0);
}

#[test]
fn two_stations_in_sight_share_the_medium_evenly() {
    let mut cell = Cell::saturated(&dot11b(), 2, micros(1), 1000);
    cell.run(Instant::from_secs(60));
    let (a, b) = (cell.nodes[0].delivered as f64, cell.nodes[1].delivered as f64);
    assert!((a / b - 1.0).abs() < 0.05, "{a} {b}");
    assert_eq!(cell.total(|s| s.failed), 0);
}

#[test]
fn hidden_stations_destroy_each_others_data_and_rts_protects_them() {
    let run = |config: &Config| {
        let mut cell = hidden_pair(config);
        cell.run(Instant::from_secs(20));
        let lost = cell.total(|s| s.ack_timeouts) as f64 / cell.total(|s| s.data_sent) as f64;
        (cell.delivered(), lost)
    };
    let (basic, basic_lost) = run(&dot11b());
    let (protected, protected_lost) = run(&dot11b_with_rts());
    assert!(basic_lost > 0.3, "{basic_lost}");
    // What is left: a CTS missed by a station that was just sending an RTS itself.
    assert!(protected_lost < 0.02, "{protected_lost}");
    assert!(protected > basic, "{protected} {basic}");
}

#[test]
fn airtimes_of_every_station_add_up() {
    for config in [dot11b(), dot11b_with_rts(), Config::ns2_wavelan()] {
        let mut cell = Cell::saturated(&config, 7, micros(1), 1000);
        cell.run(Instant::from_secs(3));
        for node in &cell.nodes {
            assert_eq!(sum(&node.mac.airtime(cell.now)), Duration::from_secs(3));
        }
    }
}

#[test]
fn a_cell_is_deterministic() {
    let run = || {
        let mut cell = Cell::saturated(&dot11b(), 5, micros(1), 1000);
        cell.run(Instant::from_secs(5));
        (cell.insertions, cell.delivered(), cell.nodes.iter().map(|n| *n.mac.stats()).collect::<Vec<_>>())
    };
    assert_eq!(run(), run());
}
