//! An initiator and a responder, each with a driver as it is to be, and a network between them.

use crate::{
    Accepted, ConnectionId, Credentials, DatagramKind, Established, Failure, Initiator, InitiatorConfig,
    InitiatorEvent, Responder, ResponderConfig, ResponderEvent, Sealer, Seed, Session,
};
use bytes::Bytes;
use core::net::SocketAddr;
use hopline_core::{Duration, Instant};
use hopline_wire::secure::HEADER_LEN;
use std::collections::BTreeMap;

/// Fate of a datagram in the network.
#[derive(Clone, Copy, Debug)]
pub(super) enum DatagramFate {
    Arrives,
    Late { millis: u16 },
    Lost,
    Twice { millis: u16 },
    Damaged { at: u16, bit: u8 },
    Cut { by: u16 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum To {
    Initiator,
    Responder,
}

/// Outcome for the initiator.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Data went there and back.
    Works,
    /// It says why not.
    Failed(Failure),
    /// It had keys, and no datagram sealed with them arrived.
    Silence,
}

pub(super) const INITIATOR: ([u8; 4], u16) = ([10, 0, 0, 1], 4000);
/// Interval at which the initiator sends data until it is answered.
const PING: Duration = Duration::from_millis(200);
/// One-way delay of a datagram.
const DELAY: Duration = Duration::from_millis(30);

pub(super) struct World {
    pub(super) initiator: Initiator,
    pub(super) responder: Responder,
    pub(super) opened: Option<Established>,
    pub(super) accepted: BTreeMap<ConnectionId, Accepted>,
    /// Every datagram that was sent, whatever became of it.
    pub(super) log: Vec<Bytes>,
    now: Instant,
    in_flight: BTreeMap<(Instant, usize), (To, Bytes)>,
    fates: Vec<DatagramFate>,
    ping_at: Instant,
    failure: Option<Failure>,
    works: bool,
    sent_count: usize,
}

pub(super) struct Ends {
    pub(super) initiator: (InitiatorConfig, Credentials),
    pub(super) responder: (ResponderConfig, Credentials),
    pub(super) seed: u8,
}

impl Ends {
    pub(super) fn of(initiator: Credentials, responder: Credentials) -> Self {
        Self {
            initiator: (InitiatorConfig::default(), initiator),
            responder: (ResponderConfig::default(), responder),
            seed: 1,
        }
    }
}

impl World {
    /// The first datagrams meet these fates, all others arrive.
    pub(super) fn new(ends: Ends, fates: &[DatagramFate]) -> Self {
        let now = Instant::from_secs(1);
        let seed = |of: u8| Seed::new([ends.seed.wrapping_mul(2).wrapping_add(of); 32]);
        let parameters = |text: &'static str| Bytes::from_static(text.as_bytes());
        let (config, credentials) = ends.initiator;
        let initiator =
            Initiator::open(now, config, credentials, parameters("of the initiator"), &seed(0)).unwrap();
        let (config, credentials) = ends.responder;
        let responder =
            Responder::new(config, credentials, parameters("of the responder"), &seed(1)).unwrap();
        let mut fates = fates.to_vec();
        fates.reverse();
        Self {
            initiator,
            responder,
            opened: None,
            accepted: BTreeMap::new(),
            log: Vec::new(),
            now,
            in_flight: BTreeMap::new(),
            fates,
            ping_at: Instant::FAR_FUTURE,
            failure: None,
            works: false,
            sent_count: 0,
        }
    }

    /// Until it works, or the initiator gives up, or nothing comes of it for two minutes.
    pub(super) fn run(&mut self) -> Outcome {
        let end = self.now + Duration::from_secs(120);
        loop {
            self.drain();
            if self.works {
                return Outcome::Works;
            }
            if let Some(failure) = self.failure {
                return Outcome::Failed(failure);
            }
            let timers = [self.initiator.poll_timeout(), self.responder.poll_timeout(), Some(self.ping_at)];
            let flying = self.in_flight.keys().next().map(|(at, _)| *at);
            let next = timers.into_iter().chain([flying]).flatten().min().unwrap_or(end);
            self.now = self.now.max(next);
            if self.now >= end {
                return Outcome::Silence;
            }
            self.step();
        }
    }

    fn step(&mut self) {
        if let Some(due) = self.in_flight.first_entry()
            && due.key().0 <= self.now
        {
            let (to, datagram) = due.remove();
            return match to {
                To::Initiator => self.deliver_to_initiator(&datagram),
                To::Responder => self.deliver_to_responder(&datagram),
            };
        }
        self.initiator.handle_timeout(self.now);
        self.responder.handle_timeout(self.now);
        if self.ping_at <= self.now {
            self.ping_at = self.now + PING;
            let session = &mut self.opened.as_mut().unwrap().session;
            let ping = sealed(session, b"ping");
            self.send(To::Responder, ping);
        }
    }

    fn deliver_to_initiator(&mut self, datagram: &Bytes) {
        match DatagramKind::of(datagram) {
            Some(DatagramKind::Sealed(id)) if id == self.initiator.local_id() => {
                let Some(established) = &mut self.opened else { return };
                let mut datagram = datagram.to_vec();
                if let Ok(opened) = established.session.unsealer.open(&mut datagram) {
                    assert!(matches!(&*opened.payload, b"" | b"pong"));
                    self.works |= opened.payload == b"pong";
                    self.initiator.confirm();
                }
            }
            Some(DatagramKind::Sealed(_)) | None => {}
            Some(DatagramKind::Handshake) => self.initiator.handle_datagram(self.now, datagram),
        }
    }

    fn deliver_to_responder(&mut self, datagram: &Bytes) {
        let mut bytes = datagram.to_vec();
        if let Some(DatagramKind::Sealed(id)) = DatagramKind::of(datagram)
            && let Some(accepted) = self.accepted.get_mut(&id)
        {
            let session = &mut accepted.established.session;
            if let Ok(opened) = session.unsealer.open(&mut bytes) {
                assert_eq!(opened.payload, b"ping");
                let pong = sealed(session, b"pong");
                self.send(To::Initiator, pong);
            }
            return;
        }
        self.responder.handle_datagram(self.now, SocketAddr::from(INITIATOR), &mut bytes);
    }

    fn drain(&mut self) {
        while let Some(datagram) = self.initiator.poll_transmit() {
            self.send(To::Responder, datagram);
        }
        while let Some((to, datagram)) = self.responder.poll_transmit() {
            assert_eq!(to, SocketAddr::from(INITIATOR));
            self.send(To::Initiator, datagram);
        }
        while let Some(event) = self.initiator.poll_event() {
            match event {
                InitiatorEvent::Completed(established) => {
                    assert!(self.opened.is_none(), "completed twice");
                    self.opened = Some(established);
                    self.ping_at = self.now;
                }
                InitiatorEvent::Failed(failure) => self.failure = Some(failure),
            }
        }
        while let Some(event) = self.responder.poll_event() {
            self.handle_event(event);
        }
    }

    fn handle_event(&mut self, event: ResponderEvent) {
        let id = match event {
            ResponderEvent::Accepted(accepted) => {
                assert!(accepted.initial.as_ref().is_none_or(|first| first.payload == "ping"));
                let id = accepted.established.session.unsealer.local_id();
                assert!(self.accepted.insert(id, accepted).is_none(), "accepted twice");
                id
            }
            ResponderEvent::Unconfirmed(id) => id,
            ResponderEvent::UntrustedKey { .. } => return,
        };
        let session = &mut self.accepted.get_mut(&id).unwrap().established.session;
        let empty = sealed(session, b"");
        self.send(To::Initiator, empty);
    }

    fn send(&mut self, to: To, datagram: Bytes) {
        self.log.push(datagram.clone());
        let at = self.now + DELAY;
        match self.fates.pop().unwrap_or(DatagramFate::Arrives) {
            DatagramFate::Arrives => self.schedule(at, to, datagram),
            DatagramFate::Late { millis } => {
                self.schedule(at + Duration::from_millis(millis.into()), to, datagram)
            }
            DatagramFate::Lost => {}
            DatagramFate::Twice { millis } => {
                self.schedule(at, to, datagram.clone());
                self.schedule(at + Duration::from_millis(millis.into()), to, datagram);
            }
            DatagramFate::Damaged { at: byte, bit } => {
                let mut damaged = datagram.to_vec();
                let byte = usize::from(byte) % damaged.len();
                damaged[byte] ^= 1 << (bit % 8);
                self.schedule(at, to, damaged.into());
            }
            DatagramFate::Cut { by } => {
                self.schedule(at, to, datagram.slice(..datagram.len() - usize::from(by) % datagram.len()))
            }
        }
    }

    fn schedule(&mut self, at: Instant, to: To, datagram: Bytes) {
        self.sent_count += 1;
        self.in_flight.insert((at, self.sent_count), (to, datagram));
    }
}

/// `payload` as a datagram.
pub(super) fn sealed(session: &mut Session, payload: &[u8]) -> Bytes {
    let mut datagram = vec![0; Sealer::OVERHEAD + payload.len()];
    datagram[HEADER_LEN..][..payload.len()].copy_from_slice(payload);
    session.sealer.seal(&mut datagram).unwrap();
    datagram.into()
}
