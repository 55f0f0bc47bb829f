//! An initiator and a responder, each with a driver as it is to be, and a network between them.

use crate::{
    Accepted, Answerer, AnswererConfig, AnswererEvent, ConnectionId, Credentials, Established, Failure, Kind,
    Opener, OpenerConfig, OpenerEvent, Sealer, Seed, Session,
};
use bytes::Bytes;
use core::net::SocketAddr;
use hopline_core::{Duration, Instant};
use hopline_wire::secure::HEADER_LEN;
use std::collections::BTreeMap;

/// Fate of a datagram in the network.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    Arrives,
    Late { millis: u16 },
    Lost,
    Twice { millis: u16 },
    Damaged { at: u16, bit: u8 },
    Cut { by: u16 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum To {
    Opener,
    Answerer,
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

pub(super) const OPENER: ([u8; 4], u16) = ([10, 0, 0, 1], 4000);
/// Interval at which the initiator sends data until it is answered.
const PING: Duration = Duration::from_millis(200);
/// One-way delay of a datagram.
const DELAY: Duration = Duration::from_millis(30);

pub(super) struct World {
    pub(super) opener: Opener,
    pub(super) answerer: Answerer,
    pub(super) opened: Option<Established>,
    pub(super) accepted: BTreeMap<ConnectionId, Accepted>,
    /// Every datagram that was sent, whatever became of it.
    pub(super) log: Vec<Bytes>,
    now: Instant,
    flying: BTreeMap<(Instant, usize), (To, Bytes)>,
    fates: Vec<Fate>,
    ping_at: Instant,
    failure: Option<Failure>,
    works: bool,
    launched: usize,
}

pub(super) struct Ends {
    pub(super) opener: (OpenerConfig, Credentials),
    pub(super) answerer: (AnswererConfig, Credentials),
    pub(super) seed: u8,
}

impl Ends {
    pub(super) fn of(opener: Credentials, answerer: Credentials) -> Self {
        Self {
            opener: (OpenerConfig::default(), opener),
            answerer: (AnswererConfig::default(), answerer),
            seed: 1,
        }
    }
}

impl World {
    /// The first datagrams meet these fates, all others arrive.
    pub(super) fn new(ends: Ends, fates: &[Fate]) -> Self {
        let now = Instant::from_secs(1);
        let seed = |of: u8| Seed::new([ends.seed.wrapping_mul(2).wrapping_add(of); 32]);
        let parameters = |text: &'static str| Bytes::from_static(text.as_bytes());
        let (config, credentials) = ends.opener;
        let opener = Opener::open(now, config, credentials, parameters("of the opener"), &seed(0)).unwrap();
        let (config, credentials) = ends.answerer;
        let answerer = Answerer::new(config, credentials, parameters("of the answerer"), &seed(1)).unwrap();
        let mut fates = fates.to_vec();
        fates.reverse();
        Self {
            opener,
            answerer,
            opened: None,
            accepted: BTreeMap::new(),
            log: Vec::new(),
            now,
            flying: BTreeMap::new(),
            fates,
            ping_at: Instant::FAR_FUTURE,
            failure: None,
            works: false,
            launched: 0,
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
            let timers = [self.opener.poll_timeout(), self.answerer.poll_timeout(), Some(self.ping_at)];
            let flying = self.flying.keys().next().map(|(at, _)| *at);
            let next = timers.into_iter().chain([flying]).flatten().min().unwrap_or(end);
            self.now = self.now.max(next);
            if self.now >= end {
                return Outcome::Silence;
            }
            self.step();
        }
    }

    fn step(&mut self) {
        if let Some(due) = self.flying.first_entry()
            && due.key().0 <= self.now
        {
            let (to, datagram) = due.remove();
            return match to {
                To::Opener => self.at_opener(&datagram),
                To::Answerer => self.at_answerer(&datagram),
            };
        }
        self.opener.handle_timeout(self.now);
        self.answerer.handle_timeout(self.now);
        if self.ping_at <= self.now {
            self.ping_at = self.now + PING;
            let session = &mut self.opened.as_mut().unwrap().session;
            let ping = sealed(session, b"ping");
            self.send(To::Answerer, ping);
        }
    }

    fn at_opener(&mut self, datagram: &Bytes) {
        match Kind::of(datagram) {
            Some(Kind::Sealed(id)) if id == self.opener.local_id() => {
                let Some(established) = &mut self.opened else { return };
                let mut datagram = datagram.to_vec();
                if let Ok(opened) = established.session.unsealer.open(&mut datagram) {
                    assert!(matches!(&*opened.payload, b"" | b"pong"));
                    self.works |= opened.payload == b"pong";
                    self.opener.prove();
                }
            }
            Some(Kind::Sealed(_)) | None => {}
            Some(Kind::Handshake) => self.opener.handle(self.now, datagram),
        }
    }

    fn at_answerer(&mut self, datagram: &Bytes) {
        let mut bytes = datagram.to_vec();
        if let Some(Kind::Sealed(id)) = Kind::of(datagram)
            && let Some(accepted) = self.accepted.get_mut(&id)
        {
            let session = &mut accepted.established.session;
            if let Ok(opened) = session.unsealer.open(&mut bytes) {
                assert_eq!(opened.payload, b"ping");
                let pong = sealed(session, b"pong");
                self.send(To::Opener, pong);
            }
            return;
        }
        self.answerer.handle(self.now, SocketAddr::from(OPENER), &mut bytes);
    }

    fn drain(&mut self) {
        while let Some(datagram) = self.opener.poll_transmit() {
            self.send(To::Answerer, datagram);
        }
        while let Some((to, datagram)) = self.answerer.poll_transmit() {
            assert_eq!(to, SocketAddr::from(OPENER));
            self.send(To::Opener, datagram);
        }
        while let Some(event) = self.opener.poll_event() {
            match event {
                OpenerEvent::Completed(established) => {
                    assert!(self.opened.is_none(), "completed twice");
                    self.opened = Some(established);
                    self.ping_at = self.now;
                }
                OpenerEvent::Failed(failure) => self.failure = Some(failure),
            }
        }
        while let Some(event) = self.answerer.poll_event() {
            self.on_event(event);
        }
    }

    fn on_event(&mut self, event: AnswererEvent) {
        let id = match event {
            AnswererEvent::Accepted(accepted) => {
                assert!(accepted.first.as_ref().is_none_or(|first| first.payload == "ping"));
                let id = accepted.established.session.unsealer.local_id();
                assert!(self.accepted.insert(id, accepted).is_none(), "accepted twice");
                id
            }
            AnswererEvent::Unproven(id) => id,
            AnswererEvent::Stranger { .. } => return,
        };
        let session = &mut self.accepted.get_mut(&id).unwrap().established.session;
        let empty = sealed(session, b"");
        self.send(To::Opener, empty);
    }

    fn send(&mut self, to: To, datagram: Bytes) {
        self.log.push(datagram.clone());
        let at = self.now + DELAY;
        match self.fates.pop().unwrap_or(Fate::Arrives) {
            Fate::Arrives => self.fly(at, to, datagram),
            Fate::Late { millis } => self.fly(at + Duration::from_millis(millis.into()), to, datagram),
            Fate::Lost => {}
            Fate::Twice { millis } => {
                self.fly(at, to, datagram.clone());
                self.fly(at + Duration::from_millis(millis.into()), to, datagram);
            }
            Fate::Damaged { at: byte, bit } => {
                let mut damaged = datagram.to_vec();
                let byte = usize::from(byte) % damaged.len();
                damaged[byte] ^= 1 << (bit % 8);
                self.fly(at, to, damaged.into());
            }
            Fate::Cut { by } => {
                self.fly(at, to, datagram.slice(..datagram.len() - usize::from(by) % datagram.len()))
            }
        }
    }

    fn fly(&mut self, at: Instant, to: To, datagram: Bytes) {
        self.launched += 1;
        self.flying.insert((at, self.launched), (to, datagram));
    }
}

/// `payload` as a datagram.
pub(super) fn sealed(session: &mut Session, payload: &[u8]) -> Bytes {
    let mut datagram = vec![0; Sealer::OVERHEAD + payload.len()];
    datagram[HEADER_LEN..][..payload.len()].copy_from_slice(payload);
    session.sealer.seal(&mut datagram).unwrap();
    datagram.into()
}
