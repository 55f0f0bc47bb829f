//! Minimal protocol with the structure of an encrypted one:
//!
//! - One state machine has all connections.
//! - Datagrams are altered in place.
//! - Datagrams of several connections leave together.
//! - Datagrams with data carry an ECN mark, and those that arrive without it do not count.
//! - A failed connection has no endpoint.
//!
//! It does not retransmit.

use bytes::Bytes;
use hopline_core::{Duration, Instant};
use hopline_streams::{Endpoint, Fragments, GsoGrouping, Path, Protocol, ProtocolEvent, Traffic, Transmit};
use hopline_transport::connection::{CloseError, CloseReason, Event, SendError, State};
use hopline_wire::ipv4::Ecn;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};

/// Timeout of a connection attempt.
const PATIENCE: Duration = Duration::from_millis(200);
/// Data bytes of a datagram.
const PIECE: usize = 1000;
/// Maximum bytes sent and not acknowledged.
pub(crate) const WINDOW: u64 = 32 * 1024;
const MASK: u8 = 0x5a;
const HEADER: usize = 9;

pub(crate) const CALL: u8 = 0;
pub(crate) const ANSWER: u8 = 1;
const REFUSAL: u8 = 2;
pub(crate) const DATA: u8 = 3;
/// All data have been received.
const RECEIVED: u8 = 4;
const END: u8 = 5;
const END_RECEIVED: u8 = 6;

#[derive(Debug, Default)]
pub(crate) struct Toy {
    connections: BTreeMap<u32, Connection>,
    last_key: u32,
    /// Maximum and current number of connections that wait to be accepted.
    backlog: Option<(usize, usize)>,
    news: VecDeque<ProtocolEvent<u32>>,
    out: VecDeque<(Path, Option<u32>, Ecn, Vec<u8>)>,
}

#[derive(Debug)]
struct Connection {
    path: Path,
    peer: u32,
    state: State,
    unacknowledged: u64,
    unread: VecDeque<Bytes>,
    /// Datagrams to be sent.
    out: VecDeque<(u8, Bytes)>,
    deadline: Option<Instant>,
}

pub(crate) struct View<'a>(&'a mut Connection);

/// Returns the ECN field of a datagram.
fn mark(kind: u8) -> Ecn {
    if kind == DATA { Ecn::Capable0 } else { Ecn::NotCapable }
}

/// Returns a datagram to the receiver's connection `to`.
pub(crate) fn datagram(to: u32, from: u32, kind: u8, payload: &[u8]) -> Vec<u8> {
    let plain = [&to.to_be_bytes()[..], &from.to_be_bytes(), &[kind], payload].concat();
    plain.into_iter().map(|byte| byte ^ MASK).collect()
}

/// Decrypts a datagram in place. Returns destination, source, kind and payload.
pub(crate) fn open(datagram: &mut [u8]) -> Option<(u32, u32, u8, &[u8])> {
    datagram.iter_mut().for_each(|byte| *byte ^= MASK);
    let (header, payload) = datagram.split_at_checked(HEADER)?;
    let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    Some((number(0), number(4), header[8], payload))
}

impl Toy {
    fn insert(&mut self, path: Path, peer: u32, state: State, gives_up: Option<Instant>) -> u32 {
        self.last_key += 1;
        let (unread, out) = (VecDeque::new(), VecDeque::new());
        self.connections.insert(
            self.last_key,
            Connection { path, peer, state, unacknowledged: 0, unread, out, deadline: gives_up },
        );
        self.last_key
    }

    fn send(&mut self, path: Path, key: Option<u32>, to: u32, kind: u8, payload: &[u8]) {
        self.out.push_back((path, key, mark(kind), datagram(to, key.unwrap_or(0), kind, payload)));
    }

    fn fail(&mut self, key: u32, why: ErrorKind) {
        if let Some(connection) = self.connections.get_mut(&key) {
            (connection.state, connection.deadline) = (State::Closed, None);
            self.news.push_back(ProtocolEvent::Failed(key, why.into()));
        }
    }

    fn handle_call(&mut self, path: Path, caller: u32) {
        match &mut self.backlog {
            Some((limit, waiting)) if *waiting < *limit => {
                *waiting += 1;
                let key = self.insert(path, caller, State::Established, None);
                self.send(path, Some(key), caller, ANSWER, &[]);
                self.news.push_back(ProtocolEvent::Accepted(key));
            }
            _ => self.send(path, None, caller, REFUSAL, &[]),
        }
    }

    fn handle_datagram(&mut self, key: u32, from: u32, kind: u8, payload: &[u8]) {
        let Some(connection) = self.connections.get_mut(&key) else { return };
        let (path, before) = (connection.path, connection.state);
        match kind {
            ANSWER => {
                (connection.peer, connection.state, connection.deadline) = (from, State::Established, None)
            }
            REFUSAL => return self.fail(key, ErrorKind::ConnectionRefused),
            DATA => {
                connection.unread.push_back(Bytes::copy_from_slice(payload));
                self.send(path, Some(key), from, RECEIVED, payload);
                return self.news.push_back(ProtocolEvent::Event(key, Event::Readable));
            }
            RECEIVED => connection.unacknowledged -= payload.len() as u64,
            END => {
                connection.state = match before {
                    State::FinWait2 => State::Closed,
                    State::FinWait1 => State::Closing,
                    _ => State::CloseWait,
                };
                self.send(path, Some(key), from, END_RECEIVED, &[]);
            }
            _ => {
                connection.state = match before {
                    State::FinWait1 => State::FinWait2,
                    _ => State::Closed,
                }
            }
        }
        if before != State::Closed && self.connections[&key].state == State::Closed {
            self.news.push_back(ProtocolEvent::Event(key, Event::Closed(CloseReason::Finished)));
        }
        self.news.push_back(ProtocolEvent::Touched(key));
    }
}

impl Protocol for Toy {
    type Key = u32;
    type Config = ();
    type Endpoint<'a> = View<'a>;
    type Info = State;
    type HostStats = Traffic;

    const NAME: &'static str = "toy";

    fn new() -> io::Result<Self> {
        Ok(Self::default())
    }

    fn connect(&mut self, now: Instant, path: Path, (): &()) -> io::Result<u32> {
        let key = self.insert(path, 0, State::SynSent, Some(now + PATIENCE));
        self.send(path, Some(key), 0, CALL, &[]);
        Ok(key)
    }

    fn listen(&mut self, _local: SocketAddr, (): &(), backlog: usize) -> io::Result<()> {
        self.backlog = Some((backlog, 0));
        Ok(())
    }

    fn unlisten(&mut self) {
        self.backlog = None;
    }

    fn mark_accepted(&mut self, _key: u32) {
        self.backlog.iter_mut().for_each(|(_, waiting)| *waiting -= 1);
    }

    fn reject(&mut self, key: u32) {
        self.mark_accepted(key);
        self.connections.remove(&key);
    }

    fn remove(&mut self, _now: Instant, key: u32) {
        self.connections.remove(&key);
    }

    fn endpoint(&mut self, key: u32) -> Option<View<'_>> {
        let is_there = |c: &&mut Connection| c.state != State::Closed || !c.unread.is_empty();
        self.connections.get_mut(&key).filter(is_there).map(View)
    }

    fn handle_user_call(&mut self, key: u32) {
        let Some(connection) = self.connections.get_mut(&key) else { return };
        let (path, peer) = (connection.path, connection.peer);
        for (kind, payload) in std::mem::take(&mut connection.out) {
            self.send(path, Some(key), peer, kind, &payload);
        }
    }

    fn path(&self, key: u32) -> Path {
        self.connections[&key].path
    }

    fn info(&self, key: u32) -> State {
        self.connections[&key].state
    }

    fn unreachable_connection(&self, _address: IpAddr) -> Option<u32> {
        None
    }

    fn handle_datagram(&mut self, _now: Instant, path: Path, ecn: Ecn, datagram: &mut [u8]) {
        let Some((to, from, kind, payload)) = open(datagram) else { return };
        if ecn != mark(kind) {
            return;
        }
        match (to, from, kind) {
            (0, caller, CALL) => self.handle_call(path, caller),
            (key, from, kind) => self.handle_datagram(key, from, kind, payload),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        let late = |connection: &Connection| connection.deadline.is_some_and(|at| at <= now);
        let keys: Vec<_> = self.connections.iter().filter(|(_, c)| late(c)).map(|(&key, _)| key).collect();
        keys.into_iter().for_each(|key| self.fail(key, ErrorKind::TimedOut));
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.connections.values().filter_map(|connection| connection.deadline).min()
    }

    fn poll_event(&mut self, _now: Instant) -> Option<ProtocolEvent<u32>> {
        self.news.pop_front()
    }

    fn poll_transmit(&mut self, _now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit<u32>> {
        let (path, key, ecn, datagram) = self.out.pop_front()?;
        buffer.extend(&datagram);
        let (company, fragments) = (GsoGrouping::SamePath, Fragments::Allowed);
        Some(Transmit { path, len: datagram.len(), ecn, key, gso_grouping: company, fragments })
    }

    fn handle_drained(&mut self, _now: Instant) {}

    fn handle_gso_group(&mut self, _key: u32) {}

    fn handle_mtu_exceeded(&mut self, _now: Instant, _key: u32, _len: usize) {}

    fn stats(&self, traffic: &Traffic) -> Traffic {
        *traffic
    }
}

impl Endpoint for View<'_> {
    fn state(&self) -> State {
        self.0.state
    }

    fn send(&mut self, _now: Instant, data: Bytes) -> Result<(), SendError> {
        if !self.0.state.may_send() {
            return Err(SendError::NotOpen);
        }
        let free = self.send_capacity();
        if free < data.len() as u64 {
            return Err(SendError::Full { free });
        }
        self.0.unacknowledged += data.len() as u64;
        self.0.out.extend(data.chunks(PIECE).map(|piece| (DATA, Bytes::copy_from_slice(piece))));
        Ok(())
    }

    fn flush(&mut self, _now: Instant) {}

    fn recv(&mut self) -> Option<Bytes> {
        self.0.unread.pop_front()
    }

    fn close(&mut self, _now: Instant) -> Result<(), CloseError> {
        self.0.state = match self.0.state {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            _ => return Err(CloseError::NotOpen),
        };
        self.0.out.push_back((END, Bytes::new()));
        Ok(())
    }

    fn abort(&mut self, _now: Instant) {
        self.0.state = State::Closed;
    }

    fn send_capacity(&self) -> u64 {
        WINDOW - self.0.unacknowledged
    }

    fn send_buffer(&self) -> Option<u64> {
        Some(WINDOW)
    }

    fn unacknowledged(&self) -> u64 {
        self.0.unacknowledged
    }

    fn silence_limit(&self) -> Option<Duration> {
        None
    }
}
