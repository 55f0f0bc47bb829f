//! The mobile host: it hears stations, decides, asks, and sends by the one that it has chosen.

use super::clock::{Bookkeeping, Clock, Woken, wait_for};
use super::messenger::Messenger;
use super::repeats::Repeats;
use super::signals::{Meter, Signals};
use super::tap::{Tap, packet_id};
use crate::service::{Figure, Ledger, Notice, Service, Tone};
use hopline_core::{Duration, Instant};
use hopline_linux::Error;
use hopline_linux::routing::{DefaultRoute, MAIN, Routes, To};
use hopline_linux::watched::Watched;
use hopline_proxy::handoff::{
    Decide, Event, Identity, Key, Mobile as Machine, MobileConfig as Behaviour, Scheme, Transmit,
};
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::num::NonZeroU8;
use std::os::fd::{AsFd, BorrowedFd};

/// Configuration of a [`MobileHost`].
#[derive(Clone, Debug, PartialEq)]
pub struct MobileConfig {
    /// Its home address. This host must have it, on whatever interface, as one of 32 bits.
    pub home: Ipv4Addr,
    /// The interfaces with radios: one or more.
    pub interfaces: Vec<String>,
    /// The network's key.
    pub key: Key,
    /// Scheme by which packets reach this host. Default [`Scheme::Multicast`].
    pub scheme: Scheme,
    /// Rule by which it changes its station. Default [`Decide::default`].
    pub decide: Decide,
    /// Source of the signal strengths of stations. Default [`Signals::Unknown`].
    pub signals: Signals,
    /// Stations beside the current one that keep packets for it: the strongest. Default 1.
    pub buffering: u8,
    /// Time for which a station goes on serving this host without hearing it, and for which this host takes a station to be
    /// in reach without hearing it. At most 65.535 s. Default 3 s: three beacons.
    pub lifetime: Duration,
    /// Time that it waits for the first answer. It doubles with each further request. Default 50 ms.
    pub patience: Duration,
    /// Number of requests without an answer after which it takes a station to be gone. Default 5.
    pub tries: u8,
    /// Most stations that it remembers. Default 16.
    pub stations: u8,
    /// Metric of the default route that leads to the current station. Default 10.
    pub metric: u32,
    /// Number of times that it repeats the last ACK of each connection when a handoff is over, so that senders without SACK send again what
    /// was lost. Default none.
    pub fast_retransmit: Option<NonZeroU8>,
}

impl MobileConfig {
    /// The defaults.
    #[must_use]
    pub fn new(home: Ipv4Addr, key: Key) -> Self {
        let Behaviour { buffering, lifetime, patience, tries, stations, decide, scheme, .. } =
            Behaviour::new(Identity::new(home), Scheme::Multicast);
        let (interfaces, signals, metric) = (Vec::new(), Signals::Unknown, 10);
        Self {
            home,
            interfaces,
            key,
            scheme,
            decide,
            signals,
            buffering,
            lifetime,
            patience,
            tries,
            stations,
            metric,
            fast_retransmit: None,
        }
    }

    fn behaviour(&self, clock: Clock) -> Behaviour {
        let Self { scheme, decide, buffering, lifetime, patience, tries, stations, .. } = *self;
        let identity = Identity { address: self.home, key: Some(self.key), epoch_us: clock.epoch_us };
        Behaviour { identity, scheme, decide, buffering, lifetime, patience, tries, stations }
    }
}

/// A mobile host. Its default route goes with the value.
///
/// Unlike other services it needs a privilege while it runs: `CAP_NET_ADMIN`, to change the route.
#[derive(Debug)]
pub struct MobileHost {
    config: MobileConfig,
    clock: Clock,
    machine: Machine,
    radios: Vec<Radio>,
    meter: Meter,
    /// Stations with an accepted message, until they are silent for two lifetimes. At most as many as have the key.
    heard: BTreeMap<Ipv4Addr, Heard>,
    routes: Routes,
    route: Option<Route>,
    repeats: Option<Repeats>,
    /// Time at which the route was last set again.
    looked: Instant,
    /// `true` if a radio has ever gone.
    has_gone: bool,
    counts: Counts,
}

/// An interface with a radio.
#[derive(Debug)]
struct Radio {
    interface: String,
    /// While the interface is there.
    sockets: Option<Sockets>,
}

/// Sockets of one radio.
#[derive(Debug)]
struct Sockets {
    watched: Watched,
    /// Hears beacons.
    ears: Messenger,
    /// Asks, from the home address, and hears answers.
    mouth: Messenger,
    /// Packets that come for the host.
    arriving: Tap,
    /// Segments that the host sends, if its ACKs are repeated.
    leaving: Option<Tap>,
}

/// Of a station.
#[derive(Clone, Copy, Debug)]
struct Heard {
    /// The number of the radio.
    by: usize,
    at: Instant,
}

/// Next hop of the default route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Route {
    station: Ipv4Addr,
    radio: usize,
}

/// Counters of a [`MobileHost`] in addition to those of its state machine.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    served: u64,
    last_handoff: Duration,
    received: u64,
    detached: u64,
    unrouted: u64,
    /// Of messengers of radios that have gone.
    malformed: u64,
    unsent: u64,
}

impl MobileHost {
    /// Takes UDP port 1021 on each of the interfaces, and begins to look at what comes by them, in the calling thread's namespace.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_ADMIN`, `CAP_NET_RAW` and `CAP_NET_BIND_SERVICE`, or where there is no such interface;
    /// [`Error::System`] if this host does not have the home address, or no interface is named.
    pub fn open(config: &MobileConfig) -> Result<Self, Error> {
        if config.interfaces.is_empty() {
            let doing = "opening a mobile host: it has no interface with a radio";
            return Err(Error::system(doing, io::ErrorKind::InvalidInput));
        }
        let clock = Clock::start();
        let radios = config.interfaces.iter().map(|interface| Radio::open(interface, config));
        Ok(Self {
            machine: Machine::new(config.behaviour(clock)),
            radios: radios.collect::<Result<_, _>>()?,
            config: config.clone(),
            clock,
            meter: Meter::new(config.signals.clone()),
            heard: BTreeMap::new(),
            routes: Routes::open()?,
            route: None,
            repeats: config.fast_retransmit.map(Repeats::open).transpose()?,
            looked: Instant::ZERO,
            has_gone: false,
            counts: Counts::default(),
        })
    }

    fn take_received(&mut self) -> io::Result<()> {
        let Self { machine, counts, radios, .. } = self;
        for sockets in radios.iter_mut().filter_map(|radio| radio.sockets.as_mut()) {
            sockets.arriving.receive(|header| {
                if let Some(packet) = packet_id(header) {
                    counts.received += 1;
                    machine.received(packet);
                }
            })?;
        }
        Ok(())
    }

    /// Takes the segments that this host has sent: its last ACKs must be known before they are repeated.
    fn take_sent(&mut self) -> io::Result<()> {
        let Self { clock, radios, repeats: Some(repeats), .. } = self else { return Ok(()) };
        for sockets in radios.iter_mut().filter_map(|radio| radio.sockets.as_mut()) {
            sockets
                .leaving
                .iter_mut()
                .try_for_each(|tap| tap.receive(|packet| repeats.take(clock.now(), packet)))?;
        }
        Ok(())
    }

    fn take_messages(&mut self) -> io::Result<()> {
        let Self { clock, machine, heard, meter, radios, .. } = self;
        for (number, radio) in radios.iter_mut().enumerate() {
            let mut take = |from, tagged: &_| {
                let (now, before) = (clock.now(), refused(machine));
                machine.handle_message(now, from, tagged, meter.of(now, from));
                if refused(machine) == before {
                    heard.insert(from, Heard { by: number, at: now });
                }
            };
            let Some(sockets) = &mut radio.sockets else { continue };
            sockets.ears.receive(&mut take)?;
            sockets.mouth.receive(&mut take)?;
        }
        Ok(())
    }

    /// Does what the machine wants: the route first, so that what is sent next goes the new way.
    fn act(&mut self) {
        while let Some(event) = self.machine.poll_event() {
            match event {
                Event::Attached { station } => self.turn_to(station),
                Event::Served { took, handoff, .. } => {
                    self.counts.served += u64::from(handoff);
                    self.counts.last_handoff = if handoff { took } else { self.counts.last_handoff };
                    let now = self.clock.now();
                    self.repeats.iter_mut().filter(|_| handoff).for_each(|repeats| repeats.moved(now));
                }
                Event::Detached => {
                    self.counts.detached += 1;
                    self.drop_route();
                }
            }
        }
        while let Some(transmit) = self.machine.poll_transmit() {
            self.send(&transmit);
        }
        let (now, lifetime) = (self.clock.now(), self.config.lifetime);
        self.heard.retain(|_, heard| heard.at + lifetime + lifetime > now);
    }

    fn send(&mut self, transmit: &Transmit) {
        if let Some(heard) = self.heard.get(&transmit.to) {
            let sockets = self.radios[heard.by].sockets.as_mut();
            sockets.into_iter().for_each(|sockets| sockets.mouth.send(transmit));
        }
    }

    /// A radio that vanishes leaves the others as they are, and is taken again when it returns.
    fn look_for_radios(&mut self, books: &Bookkeeping<'_>) {
        let (config, counts) = (&self.config, &mut self.counts);
        let mut has_returned = false;
        for radio in &mut self.radios {
            if let Some(gone) = radio.sockets.take_if(|sockets| sockets.watched.check().is_err()) {
                counts.malformed += gone.ears.counts.malformed + gone.mouth.counts.malformed;
                counts.unsent += gone.mouth.counts.unsent;
            }
            if radio.sockets.is_none() {
                radio.sockets = Sockets::open(&radio.interface, config).ok();
                has_returned |= radio.sockets.is_some();
            }
        }
        let gone: Vec<_> = self.radios.iter().filter(|radio| radio.sockets.is_none()).collect();
        self.has_gone |= !gone.is_empty();
        if !self.has_gone {
            return;
        }
        let names = gone.iter().map(|radio| radio.interface.as_str()).collect::<Vec<_>>().join(", ");
        let (tone, text) = if gone.is_empty() {
            (Tone::Good, "all radios are there again".to_owned())
        } else {
            (Tone::Bad, format!("radios have gone and are waited for: {names}"))
        };
        books.say(Notice { about: "interface".into(), tone, text });
        if has_returned {
            // What went with the interface is made anew with the next beacon.
            self.looked = Instant::ZERO;
        }
    }

    /// Interfaces that go down take their routes with them: while its station is heard, there is one to it.
    fn keep_route(&mut self) {
        if let Some(station) = self.machine.station()
            && self.heard.get(&station).is_some_and(|heard| heard.at > self.looked)
        {
            self.looked = self.clock.now();
            self.turn_to(station);
        }
    }

    fn turn_to(&mut self, station: Ipv4Addr) {
        let Some(&Heard { by: radio, .. }) = self.heard.get(&station) else { return };
        let route = Route { station, radio };
        match self.routes.replace(&route.leading(&self.config, &self.radios)) {
            Ok(()) => self.route = Some(route),
            Err(_) => self.counts.unrouted += 1,
        }
    }

    fn drop_route(&mut self) {
        if let Some(route) = self.route.take() {
            // If its interface has gone, it has gone already.
            let _ = self.routes.remove(&route.leading(&self.config, &self.radios));
        }
    }

    fn figures(&self) -> Vec<Figure> {
        let (counts, stats) = (&self.counts, self.machine.stats());
        let sockets = || self.radios.iter().filter_map(|radio| radio.sockets.as_ref());
        let malformed = counts.malformed
            + sockets().map(|s| s.ears.counts.malformed + s.mouth.counts.malformed).sum::<u64>();
        let unsent = counts.unsent + sockets().map(|s| s.mouth.counts.unsent).sum::<u64>();
        let [repeated, unsent_acks] = self.repeats.as_ref().map_or([0; 2], Repeats::counts);
        vec![
            Figure::gauge("attached", "1 while it has a station.", self.machine.station().is_some().into()),
            Figure::counter("handoffs", "Changes from one station to another.", stats.handoffs),
            Figure::counter(
                "handoffs_served",
                "Of those, handoffs that the station confirmed.",
                counts.served,
            ),
            Figure::gauge(
                "last_handoff_microseconds",
                "Time from the request of the last one to its confirmation.",
                counts.last_handoff.as_micros(),
            ),
            Figure::counter("detached", "Times that it heard no station any more.", counts.detached),
            Figure::counter("received_packets", "Packets that came for it by its radios.", counts.received),
            Figure::counter("requests", "Requests, those repeated included.", stats.requests),
            Figure::counter("unanswered", "Requests to which no answer came.", stats.unanswered),
            Figure::counter(
                "forged",
                "Messages without the right proof, and beacons from another address than they say.",
                stats.forged,
            ),
            Figure::counter(
                "replayed",
                "Beacons with a number that is not above the last one.",
                stats.replayed,
            ),
            Figure::counter("foreign", "Messages that are none of its concern.", stats.foreign),
            Figure::counter("malformed", "Messages that were none.", malformed),
            Figure::counter("unsent_messages", "Messages that the system did not take.", unsent),
            Figure::counter("repeated_acks", "ACKs repeated after handoffs (fast_retransmit).", repeated),
            Figure::counter("unsent_acks", "Of those, ACKs that the system did not take.", unsent_acks),
            Figure::counter("unrouted", "Stations to which the system made no route.", counts.unrouted),
        ]
    }
}

impl Route {
    fn leading<'a>(&self, config: &MobileConfig, radios: &'a [Radio]) -> DefaultRoute<'a> {
        let interface = &radios[self.radio].interface;
        let to = To::Router { interface, router: self.station, source: config.home };
        DefaultRoute { to, metric: config.metric, table: MAIN }
    }
}

/// Messages that changed nothing.
const fn refused(machine: &Machine) -> u64 {
    let stats = machine.stats();
    stats.forged + stats.replayed + stats.foreign
}

impl Radio {
    fn open(interface: &str, config: &MobileConfig) -> Result<Self, Error> {
        Ok(Self { interface: interface.into(), sockets: Some(Sockets::open(interface, config)?) })
    }
}

impl Sockets {
    fn open(interface: &str, config: &MobileConfig) -> Result<Self, Error> {
        let home = config.home;
        Ok(Self {
            watched: Watched::new([interface])?,
            ears: Messenger::open(Ipv4Addr::UNSPECIFIED, Some(interface))?,
            mouth: Messenger::open(home, Some(interface))?,
            arriving: Tap::of_arriving(interface, home)?,
            leaving: config.fast_retransmit.map(|_| Tap::of_leaving_tcp(interface, home)).transpose()?,
        })
    }
}

impl Service for MobileHost {
    fn run(mut self: Box<Self>, stop: BorrowedFd<'_>, ledger: &Ledger) -> io::Result<()> {
        let mut books = Bookkeeping::new(ledger);
        loop {
            // What has been received is known before a station is told of it.
            self.take_received()?;
            self.take_sent()?;
            let now = self.clock.now();
            self.machine.handle_timeout(now);
            self.act();
            if books.keep(now, || self.figures()) {
                self.look_for_radios(&books);
            }
            let longest = books.wait(now, self.machine.poll_timeout());
            let sockets = self.radios.iter().filter_map(|radio| radio.sockets.as_ref());
            let sources = sockets.flat_map(|s| {
                let leaving = s.leaving.as_ref().map(AsFd::as_fd);
                [s.ears.as_fd(), s.mouth.as_fd(), s.arriving.as_fd()].into_iter().chain(leaving)
            });
            if wait_for(sources, stop, longest)? == Woken::ToStop {
                ledger.write(self.figures());
                return Ok(());
            }
            self.take_received()?;
            self.take_sent()?;
            self.take_messages()?;
            self.act();
            self.keep_route();
        }
    }
}

impl Drop for MobileHost {
    fn drop(&mut self) {
        self.drop_route();
    }
}
