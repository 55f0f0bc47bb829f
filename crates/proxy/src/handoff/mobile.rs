//! Mobile host: receives beacons, selects a base station, and sends requests.

use super::key::{self, is_genuine};
use super::{BEACON_INTERVAL, Identity, Scheme, Transmit};
use hopline_core::{Duration, Instant};
use hopline_wire::handoff::{Asks, Kind, Latest, Message, PacketId, Says, Tagged};
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
    pub decide: Decide,
    /// Number of stations besides the current one that buffer packets: the strongest. Default 1. Unused with
    /// registration.
    pub buffering: u8,
    /// Lifetime of a request at a station, and of a station without further beacons, up to
    /// 65.535 s. Default three beacons.
    pub lifetime: Duration,
    /// Initial time to wait for an answer; it doubles with each attempt. Default 50 ms.
    pub patience: Duration,
    /// Number of requests without an answer after which a station counts as gone. Default 5.
    pub tries: u8,
    /// Maximum number of remembered stations. Default 16.
    pub stations: u8,
}

/// Handoff rule. A station without further beacons is always left at once, for the strongest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decide {
    /// Once the last beacons of another station were each stronger than those of the current one by a margin.
    Stronger {
        /// Margin, dB. Default 6.
        by_db: f64,
        /// Number of beacons, 1 to 8. Default 2.
        beacons: u8,
    },
    /// Periodically, to the strongest other station (§4: "timer-driven").
    Every(Duration),
}

impl Default for Decide {
    fn default() -> Self {
        Self::Stronger { by_db: 6.0, beacons: 2 }
    }
}

impl MobileConfig {
    /// Creates parameters with the defaults.
    #[must_use]
    pub fn new(identity: Identity, scheme: Scheme) -> Self {
        Self {
            identity,
            scheme,
            decide: Decide::default(),
            buffering: 1,
            lifetime: BEACON_INTERVAL.saturating_mul(3),
            patience: Duration::from_millis(50),
            tries: 5,
            stations: 16,
        }
    }
}

/// A mobile host.
#[derive(Debug)]
pub struct Mobile {
    config: MobileConfig,
    /// Known stations, in the order of their first beacon.
    stations: Vec<Known>,
    current: Option<Ipv4Addr>,
    latest: Latest,
    /// Time of the next change by [`Decide::Every`].
    next_change: Instant,
    number: u64,
    out: VecDeque<Transmit>,
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
        took: Duration,
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
    pub foreign: u64,
}

/// Maximum number of beacons that are compared.
const MOST_BEACONS: usize = 8;

/// A known station.
#[derive(Debug)]
struct Known {
    station: Ipv4Addr,
    number: u64,
    heard: Instant,
    /// Signal strengths of its last beacons, dBm, newest last.
    signals: VecDeque<f64>,
    /// Its role as last requested.
    does: Option<Kind>,
    pending: Option<Pending>,
}

/// A request without an answer yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    message: Tagged,
    kind: Kind,
    since: Instant,
    due: Instant,
    tries: u8,
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
            latest: Latest::default(),
            next_change: Instant::FAR_FUTURE,
            number: 0,
            out: VecDeque::new(),
            events: VecDeque::new(),
            stats: MobileStats::default(),
        }
    }

    /// Records a packet that arrived for the host.
    pub fn received(&mut self, packet: PacketId) {
        self.latest.push(packet);
    }

    /// Handles a message that came from the address `from`. `signal_dbm`: its signal strength, if known.
    pub fn handle_message(&mut self, now: Instant, from: Ipv4Addr, tagged: &Tagged, signal_dbm: Option<f64>) {
        if !is_genuine(self.config.identity.key.as_ref(), tagged) {
            self.stats.forged += 1;
            return;
        }
        let Message { number, says } = tagged.message;
        match says {
            Says::Beacon { station } if station != from => self.stats.forged += 1,
            Says::Beacon { .. } => self.hear(now, from, number, signal_dbm.unwrap_or(f64::MIN)),
            Says::Answer { mobile, to, .. } if mobile == self.config.identity.address => {
                self.take_answer(now, from, number, to);
            }
            Says::Behind { mobile, asked } if mobile == self.config.identity.address => {
                self.catch_up(now, from, number, asked);
            }
            Says::Answer { .. } | Says::Request { .. } | Says::Behind { .. } => self.stats.foreign += 1,
        }
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.forget_silent(now);
        for at in 0..self.stations.len() {
            self.ask_again(now, at);
        }
        let gives_up =
            |known: &Known| known.pending.is_some_and(|p| p.tries >= self.config.tries && p.due <= now);
        let mut unanswered = 0;
        self.stations.retain(|known| {
            let gone = gives_up(known);
            unanswered += u64::from(gone);
            !gone
        });
        self.stats.unanswered += unanswered;
        self.leave_lost(now);
        if self.next_change <= now {
            self.change_by_timer(now);
        }
    }

    /// Returns the next message to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.out.pop_front()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the time of the next call of [`Mobile::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let answers = self.stations.iter().filter_map(|known| known.pending.map(|pending| pending.due));
        let silences = self.stations.iter().map(|known| known.heard + self.config.lifetime);
        answers.chain(silences).chain([self.next_change]).min().filter(|&at| at != Instant::FAR_FUTURE)
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

    fn hear(&mut self, now: Instant, station: Ipv4Addr, number: u64, signal_dbm: f64) {
        let Some(at) = self.known(now, station) else { return };
        let known = &mut self.stations[at];
        if number <= known.number {
            self.stats.replayed += 1;
            return;
        }
        (known.number, known.heard) = (number, now);
        if known.signals.len() == MOST_BEACONS {
            known.signals.pop_front();
        }
        known.signals.push_back(signal_dbm);
        self.decide(now, at);
        self.refresh(now, station);
    }

    /// Returns the index of a station in the list, which it is added to if new.
    fn known(&mut self, now: Instant, station: Ipv4Addr) -> Option<usize> {
        if let Some(at) = self.stations.iter().position(|known| known.station == station) {
            return Some(at);
        }
        if self.stations.len() >= usize::from(self.config.stations) {
            self.stats.foreign += 1;
            return None;
        }
        let (signals, does, pending) = (VecDeque::new(), None, None);
        self.stations.push(Known { station, number: 0, heard: now, signals, does, pending });
        Some(self.stations.len() - 1)
    }

    /// Applies the handoff rule after a beacon of station number `at`.
    fn decide(&mut self, now: Instant, at: usize) {
        let other = self.stations[at].station;
        let Some(current) = self.current else { return self.change(now, other) };
        let Decide::Stronger { by_db, beacons } = self.config.decide else { return };
        let Some(present) = self.stations.iter().find(|known| known.station == current) else { return };
        let beacons = usize::from(beacons);
        let last = |known: &Known| known.signals.iter().rev().take(beacons).copied().collect::<Vec<_>>();
        let (theirs, ours) = (last(&self.stations[at]), last(present));
        let enough = theirs.len() == beacons && ours.len() == beacons;
        // Beacons of unknown signal strength are never stronger.
        let stronger = |(a, b): (&f64, &f64)| *a > f64::MIN && *a >= b + by_db;
        if enough && other != current && theirs.iter().zip(&ours).all(stronger) {
            self.change(now, other);
        }
    }

    /// Changes to this station.
    fn change(&mut self, now: Instant, to: Ipv4Addr) {
        let before = self.current.replace(to);
        self.stats.handoffs += u64::from(before.is_some());
        if let Decide::Every(time) = self.config.decide {
            self.next_change = now + time;
        }
        self.events.push_back(Event::Attached { station: to });
        let first = match self.config.scheme {
            Scheme::Multicast => Kind::Forward,
            Scheme::Registration => Kind::Register,
        };
        self.ask(now, to, first, before.is_some());
        self.assign(now);
    }

    /// Requests new roles from all other stations where they have changed.
    fn assign(&mut self, now: Instant) {
        for at in 0..self.stations.len() {
            let Known { station, does, .. } = self.stations[at];
            let wanted = self.wanted(station);
            if Some(station) != self.current && does.is_some() && wanted != does {
                self.ask(now, station, wanted.unwrap_or(Kind::Stop), false);
            } else if Some(station) != self.current && wanted.is_some() && wanted != does {
                self.ask(now, station, Kind::Buffer, false);
            }
        }
    }

    /// Returns the role that a station should have.
    fn wanted(&self, station: Ipv4Addr) -> Option<Kind> {
        match self.config.scheme {
            Scheme::Multicast if Some(station) == self.current => Some(Kind::Forward),
            Scheme::Registration if Some(station) == self.current => Some(Kind::Register),
            Scheme::Registration => None,
            Scheme::Multicast => {
                let own = self.strength(station)?;
                let others = self.stations.iter().filter(|known| Some(known.station) != self.current);
                let stronger = others.filter(|known| {
                    let theirs = known.signals.back().copied().unwrap_or(f64::MIN);
                    (theirs, known.station) > (own, station)
                });
                (stronger.count() < usize::from(self.config.buffering)).then_some(Kind::Buffer)
            }
        }
    }

    fn strength(&self, station: Ipv4Addr) -> Option<f64> {
        self.stations.iter().find(|known| known.station == station)?.signals.back().copied()
    }

    /// Renews the request to a station after its beacon. The relative strength of other stations may have
    /// changed.
    fn refresh(&mut self, now: Instant, station: Ipv4Addr) {
        if let Some(wanted) = self.wanted(station)
            && self.stations.iter().any(|known| known.station == station && known.pending.is_none())
        {
            self.ask(now, station, wanted, false);
        }
        self.assign(now);
    }

    fn ask(&mut self, now: Instant, station: Ipv4Addr, kind: Kind, handoff: bool) {
        self.number = self.config.identity.number(now, self.number);
        let asks = match kind {
            Kind::Forward => Asks::Forward(self.latest),
            Kind::Buffer => Asks::Buffer,
            Kind::Stop => Asks::Stop,
            Kind::Register => Asks::Register { care_of: station, past: self.latest.past() },
        };
        let (mobile, lifetime) = (self.config.identity.address, self.config.lifetime);
        let says = Says::Request { mobile, lifetime, asks };
        let message = key::seal(self.config.identity.key.as_ref(), Message { number: self.number, says });
        let Some(known) = self.stations.iter_mut().find(|known| known.station == station) else { return };
        known.does = if kind == Kind::Stop { None } else { Some(kind) };
        let due = now + self.config.patience;
        known.pending = Some(Pending { message, kind, since: now, due, tries: 1, handoff });
        self.stats.requests += 1;
        self.out.push_back(Transmit { to: station, message });
    }

    fn ask_again(&mut self, now: Instant, at: usize) {
        let Known { station, ref mut pending, .. } = self.stations[at];
        let Some(pending) = pending.as_mut().filter(|p| p.due <= now && p.tries < self.config.tries) else {
            return;
        };
        let wait = self.config.patience.saturating_mul(1 << pending.tries.min(16));
        (pending.tries, pending.due) = (pending.tries + 1, now + wait);
        self.stats.requests += 1;
        self.out.push_back(Transmit { to: station, message: pending.message });
    }

    /// Repeats a request with a higher number. Its number was below one of an earlier incarnation, when the
    /// clock was ahead.
    fn catch_up(&mut self, now: Instant, from: Ipv4Addr, latest: u64, asked: u64) {
        let refused = |known: &&Known| {
            known.station == from && known.pending.is_some_and(|p| p.message.message.number == asked)
        };
        let Some(pending) = self.stations.iter().find(refused).and_then(|known| known.pending) else {
            self.stats.foreign += 1;
            return;
        };
        self.number = self.number.max(latest);
        self.ask(now, from, pending.kind, pending.handoff);
    }

    fn take_answer(&mut self, now: Instant, from: Ipv4Addr, number: u64, to: Kind) {
        let asked = |known: &&mut Known| {
            known.station == from
                && known.pending.is_some_and(|p| p.message.message.number == number && p.kind == to)
        };
        let Some(pending) = self.stations.iter_mut().find(asked).and_then(|known| known.pending.take())
        else {
            self.stats.foreign += 1;
            return;
        };
        if matches!(to, Kind::Forward | Kind::Register) && self.current == Some(from) {
            let (took, handoff) = (now.since(pending.since), pending.handoff);
            self.events.push_back(Event::Served { station: from, took, handoff });
        }
    }

    fn forget_silent(&mut self, now: Instant) {
        let lifetime = self.config.lifetime;
        self.stations.retain(|known| known.heard + lifetime > now);
    }

    /// Changes to the strongest station if the current one is gone.
    fn leave_lost(&mut self, now: Instant) {
        let Some(current) = self.current else { return };
        if self.stations.iter().any(|known| known.station == current) {
            return;
        }
        match self.strongest_other() {
            Some(station) => self.change(now, station),
            None => {
                (self.current, self.next_change) = (None, Instant::FAR_FUTURE);
                self.events.push_back(Event::Detached);
            }
        }
    }

    fn change_by_timer(&mut self, now: Instant) {
        let Decide::Every(time) = self.config.decide else { return };
        self.next_change = now + time;
        if let Some(station) = self.strongest_other() {
            self.change(now, station);
        }
    }

    fn strongest_other(&self) -> Option<Ipv4Addr> {
        let others = self.stations.iter().filter(|known| Some(known.station) != self.current);
        let strength = |known: &&Known| known.signals.back().copied().unwrap_or(f64::MIN);
        let strongest =
            others.max_by(|a, b| strength(a).total_cmp(&strength(b)).then(a.station.cmp(&b.station)));
        strongest.map(|known| known.station)
    }
}
