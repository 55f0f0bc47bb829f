//! Mobile host: receives beacons, selects a base station, and sends requests.

use super::key::{self, is_genuine};
use super::{BEACON_INTERVAL, Identity, Scheme, Transmit};
use hopline_core::{Duration, Instant};
use hopline_wire::handoff::{
    Message, MessageBody, PacketId, RecentPackets, RequestAction, RequestKind, TaggedMessage,
};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Parameters of a mobile host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MobileConfig {
    /// Address and key.
    pub identity: Identity,
    /// Routing of packets to the host.
    pub scheme: Scheme,
    /// Handoff rule.
    pub handoff_rule: HandoffRule,
    /// Number of stations besides the current one that buffer packets: the strongest. Default 1. Unused with
    /// registration.
    pub buffering_stations: u8,
    /// Lifetime of a request at a station, and of a station without further beacons, up to
    /// 65.535 s. Default three beacons.
    pub lifetime: Duration,
    /// Initial time to wait for an answer; it doubles with each attempt. Default 50 ms.
    pub initial_timeout: Duration,
    /// Number of requests without an answer after which a station counts as gone. Default 5.
    pub max_attempts: u8,
    /// Maximum number of remembered stations. Default 16.
    pub max_stations: u8,
}

/// Handoff rule. A station without further beacons is always left at once, for the strongest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HandoffRule {
    /// Once the last beacons of another station were each stronger than those of the current one by a margin.
    Stronger {
        /// Margin, dB. Default 6.
        margin_db: f64,
        /// Number of beacons, 1 to 8. Default 2.
        beacons: u8,
    },
    /// Periodically, to the strongest other station (§4: "timer-driven").
    Periodic(Duration),
}

impl Default for HandoffRule {
    fn default() -> Self {
        Self::Stronger { margin_db: 6.0, beacons: 2 }
    }
}

impl MobileConfig {
    /// Creates parameters with the defaults.
    #[must_use]
    pub fn new(identity: Identity, scheme: Scheme) -> Self {
        Self {
            identity,
            scheme,
            handoff_rule: HandoffRule::default(),
            buffering_stations: 1,
            lifetime: BEACON_INTERVAL.saturating_mul(3),
            initial_timeout: Duration::from_millis(50),
            max_attempts: 5,
            max_stations: 16,
        }
    }
}

/// A mobile host.
#[derive(Debug)]
pub struct Mobile {
    config: MobileConfig,
    /// Known stations, in the order of their first beacon.
    stations: Vec<KnownStation>,
    current: Option<Ipv4Addr>,
    received_packets: RecentPackets,
    /// Time of the next change by [`HandoffRule::Periodic`].
    next_handoff: Instant,
    last_number: u64,
    outgoing: VecDeque<Transmit>,
    events: VecDeque<Event>,
    stats: MobileStats,
}

/// Event of a [`Mobile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The host sends through this station from now on.
    Attached {
        /// The station.
        station: Ipv4Addr,
    },
    /// Packets to the host arrive through this station.
    Served {
        /// The station.
        station: Ipv4Addr,
        /// Time since the request.
        latency: Duration,
        /// `true` if the host had another station before.
        handoff: bool,
    },
    /// The host has no station.
    Detached,
}

/// Counters of a [`Mobile`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MobileStats {
    /// Changes from one station to another.
    pub handoffs: u64,
    /// Requests, including repeated ones.
    pub requests: u64,
    /// Requests without an answer.
    pub unanswered: u64,
    /// Messages without a valid tag, and beacons from another address than theirs.
    pub forged: u64,
    /// Beacons with a number that is not above the last one.
    pub replayed: u64,
    /// Messages of a wrong kind, and answers without a request.
    pub unexpected: u64,
}

/// Maximum number of beacons that are compared.
const MAX_BEACONS: usize = 8;

/// A known station.
#[derive(Debug)]
struct KnownStation {
    station: Ipv4Addr,
    last_number: u64,
    last_beacon: Instant,
    /// Signal strengths of its last beacons, dBm, newest last.
    recent_signals: VecDeque<f64>,
    /// Its role as last requested.
    requested_role: Option<RequestKind>,
    pending_request: Option<PendingRequest>,
}

/// A request without an answer yet.
#[derive(Clone, Copy, Debug)]
struct PendingRequest {
    message: TaggedMessage,
    kind: RequestKind,
    sent_at: Instant,
    next_retry: Instant,
    attempts: u8,
    handoff: bool,
}

impl Mobile {
    /// Creates a host that knows of no station yet.
    #[must_use]
    pub fn new(config: MobileConfig) -> Self {
        Self {
            config,
            stations: Vec::new(),
            current: None,
            received_packets: RecentPackets::default(),
            next_handoff: Instant::FAR_FUTURE,
            last_number: 0,
            outgoing: VecDeque::new(),
            events: VecDeque::new(),
            stats: MobileStats::default(),
        }
    }

    /// Records a packet that arrived for the host.
    pub fn record_received(&mut self, packet: PacketId) {
        self.received_packets.push(packet);
    }

    /// Handles a message that came from the address `from`. `signal_dbm`: its signal strength, if known.
    pub fn handle_message(
        &mut self,
        now: Instant,
        from: Ipv4Addr,
        tagged: &TaggedMessage,
        signal_dbm: Option<f64>,
    ) {
        if !is_genuine(self.config.identity.key.as_ref(), tagged) {
            self.stats.forged += 1;
            return;
        }
        let Message { number, body: says } = tagged.message;
        match says {
            MessageBody::Beacon { station } if station != from => self.stats.forged += 1,
            MessageBody::Beacon { .. } => {
                self.handle_beacon(now, from, number, signal_dbm.unwrap_or(f64::MIN))
            }
            MessageBody::Reply { mobile, kind: to, .. } if mobile == self.config.identity.address => {
                self.handle_reply(now, from, number, to);
            }
            MessageBody::Stale { mobile, requested: asked } if mobile == self.config.identity.address => {
                self.resend_with_higher_number(now, from, number, asked);
            }
            MessageBody::Reply { .. } | MessageBody::Request { .. } | MessageBody::Stale { .. } => {
                self.stats.unexpected += 1
            }
        }
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.remove_silent_stations(now);
        for at in 0..self.stations.len() {
            self.retry_request(now, at);
        }
        let gives_up = |known: &KnownStation| {
            known
                .pending_request
                .is_some_and(|p| p.attempts >= self.config.max_attempts && p.next_retry <= now)
        };
        let mut unanswered = 0;
        self.stations.retain(|known| {
            let gone = gives_up(known);
            unanswered += u64::from(gone);
            !gone
        });
        self.stats.unanswered += unanswered;
        self.leave_lost_station(now);
        if self.next_handoff <= now {
            self.periodic_handoff(now);
        }
    }

    /// Returns the next message to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.outgoing.pop_front()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the time of the next call of [`Mobile::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let answers =
            self.stations.iter().filter_map(|known| known.pending_request.map(|pending| pending.next_retry));
        let silences = self.stations.iter().map(|known| known.last_beacon + self.config.lifetime);
        answers.chain(silences).chain([self.next_handoff]).min().filter(|&at| at != Instant::FAR_FUTURE)
    }

    /// Returns the station through which the host sends.
    #[must_use]
    pub const fn station(&self) -> Option<Ipv4Addr> {
        self.current
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> &MobileStats {
        &self.stats
    }

    fn handle_beacon(&mut self, now: Instant, station: Ipv4Addr, number: u64, signal_dbm: f64) {
        let Some(at) = self.station_index(now, station) else { return };
        let known = &mut self.stations[at];
        if number <= known.last_number {
            self.stats.replayed += 1;
            return;
        }
        (known.last_number, known.last_beacon) = (number, now);
        if known.recent_signals.len() == MAX_BEACONS {
            known.recent_signals.pop_front();
        }
        known.recent_signals.push_back(signal_dbm);
        self.apply_handoff_rule(now, at);
        self.renew_request(now, station);
    }

    /// Returns the index of a station in the list, which it is added to if new.
    fn station_index(&mut self, now: Instant, station: Ipv4Addr) -> Option<usize> {
        if let Some(at) = self.stations.iter().position(|known| known.station == station) {
            return Some(at);
        }
        if self.stations.len() >= usize::from(self.config.max_stations) {
            self.stats.unexpected += 1;
            return None;
        }
        let (signals, does, pending) = (VecDeque::new(), None, None);
        self.stations.push(KnownStation {
            station,
            last_number: 0,
            last_beacon: now,
            recent_signals: signals,
            requested_role: does,
            pending_request: pending,
        });
        Some(self.stations.len() - 1)
    }

    /// Applies the handoff rule after a beacon of station number `at`.
    fn apply_handoff_rule(&mut self, now: Instant, at: usize) {
        let other = self.stations[at].station;
        let Some(current) = self.current else { return self.change_station(now, other) };
        let HandoffRule::Stronger { margin_db: by_db, beacons } = self.config.handoff_rule else { return };
        let Some(present) = self.stations.iter().find(|known| known.station == current) else { return };
        let beacons = usize::from(beacons);
        let last = |known: &KnownStation| {
            known.recent_signals.iter().rev().take(beacons).copied().collect::<Vec<_>>()
        };
        let (theirs, ours) = (last(&self.stations[at]), last(present));
        let enough = theirs.len() == beacons && ours.len() == beacons;
        // Beacons of unknown signal strength are never stronger.
        let stronger = |(a, b): (&f64, &f64)| *a > f64::MIN && *a >= b + by_db;
        if enough && other != current && theirs.iter().zip(&ours).all(stronger) {
            self.change_station(now, other);
        }
    }

    /// Changes to this station.
    fn change_station(&mut self, now: Instant, to: Ipv4Addr) {
        let before = self.current.replace(to);
        self.stats.handoffs += u64::from(before.is_some());
        if let HandoffRule::Periodic(time) = self.config.handoff_rule {
            self.next_handoff = now + time;
        }
        self.events.push_back(Event::Attached { station: to });
        let first = match self.config.scheme {
            Scheme::Multicast => RequestKind::Forward,
            Scheme::Registration => RequestKind::Register,
        };
        self.send_request(now, to, first, before.is_some());
        self.request_roles(now);
    }

    /// Requests new roles from all other stations where they have changed.
    fn request_roles(&mut self, now: Instant) {
        for at in 0..self.stations.len() {
            let KnownStation { station, requested_role: does, .. } = self.stations[at];
            let wanted = self.wanted_role(station);
            if Some(station) != self.current && does.is_some() && wanted != does {
                self.send_request(now, station, wanted.unwrap_or(RequestKind::Stop), false);
            } else if Some(station) != self.current && wanted.is_some() && wanted != does {
                self.send_request(now, station, RequestKind::Buffer, false);
            }
        }
    }

    /// Returns the role that a station should have.
    fn wanted_role(&self, station: Ipv4Addr) -> Option<RequestKind> {
        match self.config.scheme {
            Scheme::Multicast if Some(station) == self.current => Some(RequestKind::Forward),
            Scheme::Registration if Some(station) == self.current => Some(RequestKind::Register),
            Scheme::Registration => None,
            Scheme::Multicast => {
                let own = self.signal_strength(station)?;
                let others = self.stations.iter().filter(|known| Some(known.station) != self.current);
                let stronger = others.filter(|known| {
                    let theirs = known.recent_signals.back().copied().unwrap_or(f64::MIN);
                    (theirs, known.station) > (own, station)
                });
                (stronger.count() < usize::from(self.config.buffering_stations))
                    .then_some(RequestKind::Buffer)
            }
        }
    }

    fn signal_strength(&self, station: Ipv4Addr) -> Option<f64> {
        self.stations.iter().find(|known| known.station == station)?.recent_signals.back().copied()
    }

    /// Renews the request to a station after its beacon. The relative strength of other stations may have
    /// changed.
    fn renew_request(&mut self, now: Instant, station: Ipv4Addr) {
        if let Some(wanted) = self.wanted_role(station)
            && self.stations.iter().any(|known| known.station == station && known.pending_request.is_none())
        {
            self.send_request(now, station, wanted, false);
        }
        self.request_roles(now);
    }

    fn send_request(&mut self, now: Instant, station: Ipv4Addr, kind: RequestKind, handoff: bool) {
        self.last_number = self.config.identity.number(now, self.last_number);
        let asks = match kind {
            RequestKind::Forward => RequestAction::Forward(self.received_packets),
            RequestKind::Buffer => RequestAction::Buffer,
            RequestKind::Stop => RequestAction::Stop,
            RequestKind::Register => RequestAction::Register {
                care_of: station,
                prior_reception: self.received_packets.prior_reception(),
            },
        };
        let (mobile, lifetime) = (self.config.identity.address, self.config.lifetime);
        let says = MessageBody::Request { mobile, lifetime, action: asks };
        let message =
            key::seal(self.config.identity.key.as_ref(), Message { number: self.last_number, body: says });
        let Some(known) = self.stations.iter_mut().find(|known| known.station == station) else { return };
        known.requested_role = if kind == RequestKind::Stop { None } else { Some(kind) };
        let due = now + self.config.initial_timeout;
        known.pending_request =
            Some(PendingRequest { message, kind, sent_at: now, next_retry: due, attempts: 1, handoff });
        self.stats.requests += 1;
        self.outgoing.push_back(Transmit { to: station, message });
    }

    fn retry_request(&mut self, now: Instant, at: usize) {
        let KnownStation { station, pending_request: ref mut pending, .. } = self.stations[at];
        let Some(pending) =
            pending.as_mut().filter(|p| p.next_retry <= now && p.attempts < self.config.max_attempts)
        else {
            return;
        };
        let wait = self.config.initial_timeout.saturating_mul(1 << pending.attempts.min(16));
        (pending.attempts, pending.next_retry) = (pending.attempts + 1, now + wait);
        self.stats.requests += 1;
        self.outgoing.push_back(Transmit { to: station, message: pending.message });
    }

    /// Repeats a request with a higher number. Its number was below one of an earlier incarnation, when the
    /// clock was ahead.
    fn resend_with_higher_number(&mut self, now: Instant, from: Ipv4Addr, latest: u64, asked: u64) {
        let refused = |known: &&KnownStation| {
            known.station == from && known.pending_request.is_some_and(|p| p.message.message.number == asked)
        };
        let Some(pending) = self.stations.iter().find(refused).and_then(|known| known.pending_request) else {
            self.stats.unexpected += 1;
            return;
        };
        self.last_number = self.last_number.max(latest);
        self.send_request(now, from, pending.kind, pending.handoff);
    }

    fn handle_reply(&mut self, now: Instant, from: Ipv4Addr, number: u64, to: RequestKind) {
        let asked = |known: &&mut KnownStation| {
            known.station == from
                && known.pending_request.is_some_and(|p| p.message.message.number == number && p.kind == to)
        };
        let Some(pending) =
            self.stations.iter_mut().find(asked).and_then(|known| known.pending_request.take())
        else {
            self.stats.unexpected += 1;
            return;
        };
        if matches!(to, RequestKind::Forward | RequestKind::Register) && self.current == Some(from) {
            let (took, handoff) = (now.since(pending.sent_at), pending.handoff);
            self.events.push_back(Event::Served { station: from, latency: took, handoff });
        }
    }

    fn remove_silent_stations(&mut self, now: Instant) {
        let lifetime = self.config.lifetime;
        self.stations.retain(|known| known.last_beacon + lifetime > now);
    }

    /// Changes to the strongest station if the current one is gone.
    fn leave_lost_station(&mut self, now: Instant) {
        let Some(current) = self.current else { return };
        if self.stations.iter().any(|known| known.station == current) {
            return;
        }
        match self.strongest_other_station() {
            Some(station) => self.change_station(now, station),
            None => {
                (self.current, self.next_handoff) = (None, Instant::FAR_FUTURE);
                self.events.push_back(Event::Detached);
            }
        }
    }

    fn periodic_handoff(&mut self, now: Instant) {
        let HandoffRule::Periodic(time) = self.config.handoff_rule else { return };
        self.next_handoff = now + time;
        if let Some(station) = self.strongest_other_station() {
            self.change_station(now, station);
        }
    }

    fn strongest_other_station(&self) -> Option<Ipv4Addr> {
        let others = self.stations.iter().filter(|known| Some(known.station) != self.current);
        let strength = |known: &&KnownStation| known.recent_signals.back().copied().unwrap_or(f64::MIN);
        let strongest =
            others.max_by(|a, b| strength(a).total_cmp(&strength(b)).then(a.station.cmp(&b.station)));
        strongest.map(|known| known.station)
    }
}
