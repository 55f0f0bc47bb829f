//! All encrypted connections of a port: two hosts, with a network between them that follows a script.

use crate::machines::Choices;
use hopline_core::{Duration, Instant};
use hopline_sealed::{
    ConnectionKey, Credentials, Ecn, Host, HostConfig, HostEvent, Path, PreSharedKey, ResetKey, Seed, State,
    TransportConfig,
};
use std::collections::VecDeque;
use std::net::SocketAddr;

const MOST_STEPS: usize = 96;
/// Bytes that each end sends.
const BYTES: usize = 6000;
/// Datagrams that are kept for repetition.
const KEPT: usize = 16;

struct End {
    host: Host,
    address: SocketAddr,
    /// Datagrams in flight to this end, and earlier ones.
    coming: VecDeque<(SocketAddr, Vec<u8>)>,
    been: VecDeque<(SocketAddr, Vec<u8>)>,
    key: Option<ConnectionKey>,
    /// Keys of all its connections so far.
    keys: Vec<ConnectionKey>,
    received: usize,
}

/// Script of the fate of the datagrams of two hosts: delivered, lost, repeated, damaged, from another address, or arbitrary;
/// of time; and of restarts. The received data are a prefix of the sent data. All state is bounded, and expires.
pub fn sealed_host(data: &[u8]) {
    let mut choices = Choices(data);
    let mut now = Instant::ZERO;
    let mut ends = [0, 1].map(|at| End {
        host: host(at, 0),
        address: SocketAddr::from(([10, 0, 0, at], 4000)),
        coming: VecDeque::new(),
        been: VecDeque::new(),
        key: None,
        keys: Vec::new(),
        received: 0,
    });
    let to = Path::to(ends[1].address);
    let key = ends[0].host.connect(now, to, shared(), TransportConfig::DEFAULT).expect("there is room");
    ends[0].key = Some(key);
    ends[0].keys.push(key);
    talk(&mut ends, now);
    for _ in 0..MOST_STEPS {
        let at = usize::from(choices.byte() % 2);
        step(&mut ends, at, &mut now, &mut choices);
        talk(&mut ends, now);
        if choices.is_over() {
            break;
        }
    }
    ends.into_iter().for_each(|end| ends_some_time(end, now));
}

fn step(ends: &mut [End; 2], at: usize, now: &mut Instant, choices: &mut Choices<'_>) {
    let elsewhere = SocketAddr::from(([10, 9, 9, choices.byte() % 8], 9));
    let (end, what) = (&mut ends[at], choices.byte() % 16);
    match what {
        0..8 => {
            let Some((from, datagram)) = end.coming.pop_front() else { return };
            end.been.push_back((from, datagram.clone()));
            if end.been.len() > KEPT {
                end.been.pop_front();
            }
            let from = if what == 7 { elsewhere } else { from };
            end.take(*now, from, datagram);
        }
        8 => drop(end.coming.pop_front()),
        9 | 10 => {
            let chosen = usize::from(choices.byte()) % end.been.len().max(1);
            let Some((from, mut datagram)) = end.been.get(chosen).cloned() else { return };
            if what == 10 {
                let place = usize::from(choices.u16()) % datagram.len();
                datagram[place] ^= choices.byte();
                datagram.truncate(usize::from(choices.u16()));
            }
            end.take(*now, from, datagram);
        }
        11 => {
            let len = choices.byte() % 64;
            let datagram = (0..len).map(|_| choices.byte()).collect();
            end.take(*now, elsewhere, datagram);
        }
        12 => {
            end.host = host(at as u8, choices.byte().max(1));
            (end.key, end.received) = (None, 0);
            end.keys.clear();
            // The peer's connection is a new one from now on.
            ends[1 - at].key = None;
        }
        _ => {
            *now += Duration::from_millis(u64::from(choices.u16() % 4000));
            ends.iter_mut().for_each(|end| end.host.handle_timeout(*now));
        }
    }
}

impl End {
    fn take(&mut self, now: Instant, from: SocketAddr, mut datagram: Vec<u8>) {
        self.host.handle_datagram(now, Path::to(from), Ecn::NotCapable, &mut datagram);
    }
}

/// Lets the applications act, and puts the datagrams of the hosts in flight.
fn talk(ends: &mut [End; 2], now: Instant) {
    for at in [0, 1] {
        while let Some(event) = ends[at].host.poll_event() {
            if let HostEvent::Accepted(key) = event {
                (ends[at].key, ends[at].received) = (Some(key), 0);
                ends[at].keys.push(key);
            }
        }
        let End { host, key, received, .. } = &mut ends[at];
        if let Some(conn) = key.and_then(|key| host.connection_mut(key)) {
            while let Some(data) = conn.recv() {
                let right = data.iter().zip(*received..).all(|(byte, place)| *byte == at_place(place));
                assert!(right, "wrong bytes");
                *received += data.len();
                assert!(*received <= BYTES);
            }
            if conn.state() == State::Established
                && conn.stats().bytes_sent == 0
                && conn.unacknowledged() == 0
            {
                let data: Vec<u8> = (0..BYTES).map(at_place).collect();
                conn.send(now, data.into()).expect("it is open");
                conn.close(now).expect("it is open");
            }
        }
        let mut buffer = Vec::new();
        while let Some(transmit) = ends[at].host.poll_transmit(now, &mut buffer) {
            assert_eq!(transmit.len, buffer.len());
            let (from, datagram) = (ends[at].address, core::mem::take(&mut buffer));
            if let Some(to) = ends.iter_mut().find(|end| end.address == transmit.path.peer) {
                to.coming.push_back((from, datagram));
            }
        }
        assert!(ends[at].host.stats().connections <= 4 && ends[at].host.stats().half_open <= 256);
    }
}

const fn at_place(place: usize) -> u8 {
    (place % 251) as u8
}

/// Checks that an end without user and peer comes to rest and keeps no state.
fn ends_some_time(mut end: End, now: Instant) {
    let limit = now + Duration::from_secs(300);
    let mut buffer = Vec::new();
    for key in end.keys {
        end.host.remove(key);
    }
    while end.host.poll_transmit(now, &mut buffer).is_some() {}
    while let Some(due) = end.host.poll_timeout() {
        assert!(due <= limit, "it goes on");
        end.host.handle_timeout(due.max(now));
        buffer.clear();
        while end.host.poll_transmit(due.max(now), &mut buffer).is_some() {}
    }
    assert_eq!((end.host.stats().connections, end.host.stats().half_open), (0, 0));
}

fn host(at: u8, life: u8) -> Host {
    let resets = Some(ResetKey::new([at; 32]));
    let config = HostConfig::default().with_connections(4).with_reset_key(resets);
    let mut seed = [at; 32];
    seed[0] = life;
    let mut host = Host::new(config, Seed::new(seed)).expect("the settings are right");
    host.listen(shared(), TransportConfig::DEFAULT, 2).expect("new");
    host
}

fn shared() -> Credentials {
    Credentials::Shared(PreSharedKey::new([7; 32]))
}
