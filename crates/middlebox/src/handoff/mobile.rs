//! The mobile host: it hears stations, decides, asks, and sends by the one that it has chosen.

use super::ack_repeater::AckRepeater;
use super::clock::{Clock, StatusWriter, WaitResult, wait_for};
use super::messenger::Messenger;
use super::signals::{SignalReader, SignalSource};
use super::tap::{Tap, packet_id};
use crate::service::{Metric, Notice, Service, ServiceStatus, Severity};
use hopline_core::{Duration, Instant};
use hopline_linux::Error;
use hopline_linux::route_config::{DefaultRoute, MAIN, NextHop, Routes};
use hopline_linux::watched::WatchedInterfaces;
use hopline_proxy::handoff::{
    Event, HandoffRule, Identity, Key, Mobile as Machine, MobileConfig as Behaviour, Scheme, Transmit,
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
    /// Rule by which it changes its station. Default [`HandoffRule::default`].
    pub decide: HandoffRule,
    /// Source of the signal strengths of stations. Default [`SignalSource::Unknown`].
    pub signals: SignalSource,
    /// Stations beside the current one that keep packets for it: the strongest. Default 1.
    pub buffering_stations: u8,
    /// Time for which a station goes on serving this host without hearing it, and for which this host takes a station to be
    /// in reach without hearing it. At most 65.535 s. Default 3 s: three beacons.
    pub lifetime: Duration,
    /// Time that it waits for the first answer. It doubles with each further request. Default 50 ms.
    pub request_timeout: Duration,
    /// Number of requests without an answer after which it takes a station to be gone. Default 5.
    pub max_requests: u8,
    /// Most stations that it remembers. Default 16.
    pub max_stations: u8,
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
        let Behaviour {
            buffering_stations: buffering,
            lifetime,
            initial_timeout: patience,
            max_attempts: tries,
            max_stations: stations,
            handoff_rule: decide,
            scheme,
            ..
        } = Behaviour::new(Identity::new(home), Scheme::Multicast);
        let (interfaces, signals, metric) = (Vec::new(), SignalSource::Unknown, 10);
        Self {
            home,
            interfaces,
            key,
            scheme,
            decide,
            signals,
            buffering_stations: buffering,
            lifetime,
            request_timeout: patience,
            max_requests: tries,
            max_stations: stations,
            metric,
            fast_retransmit: None,
        }
    }

    fn behaviour(&self, clock: Clock) -> Behaviour {
        let Self {
            scheme,
            decide,
            buffering_stations: buffering,
            lifetime,
            request_timeout: patience,
            max_requests: tries,
            max_stations: stations,
            ..
        } = *self;
        let identity = Identity { address: self.home, key: Some(self.key), epoch_us: clock.epoch_us };
        Behaviour {
            identity,
            scheme,
            handoff_rule: decide,
            buffering_stations: buffering,
            lifetime,
            initial_timeout: patience,
            max_attempts: tries,
            max_stations: stations,
        }
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
    meter: SignalReader,
    /// Stations with an accepted message, until they are silent for two lifetimes. At most as many as have the key.
    stations: BTreeMap<Ipv4Addr, StationRecord>,
    routes: Routes,
    route: Option<Route>,
    ack_repeater: Option<AckRepeater>,
    /// Time at which the route was last set again.
    route_set_at: Instant,
    /// `true` if a radio has ever gone.
    has_lost_radio: bool,
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
    watched: WatchedInterfaces,
    /// Hears beacons.
    beacons: Messenger,
    /// Asks, from the home address, and hears answers.
    requests: Messenger,
    /// Packets that come for the host.
    incoming: Tap,
    /// Segments that the host sends, if its ACKs are repeated.
    outgoing: Option<Tap>,
}

/// Of a station.
#[derive(Clone, Copy, Debug)]
struct StationRecord {
    /// The number of the radio.
    radio: usize,
    last_heard: Instant,
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
    send_failures: u64,
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
            meter: SignalReader::new(config.signals.clone()),
            stations: BTreeMap::new(),
            routes: Routes::open()?,
            route: None,
            ack_repeater: config.fast_retransmit.map(AckRepeater::open).transpose()?,
            route_set_at: Instant::ZERO,
            has_lost_radio: false,
            counts: Counts::default(),
        })
    }

    fn handle_received(&mut self) -> io::Result<()> {
        let Self { machine, counts, radios, .. } = self;
        for sockets in radios.iter_mut().filter_map(|radio| radio.sockets.as_mut()) {
            sockets.incoming.receive(|header| {
                if let Some(packet) = packet_id(header) {
                    counts.received += 1;
                    machine.record_received(packet);
                }
            })?;
        }
        Ok(())
    }

    /// Takes the segments that this host has sent: its last ACKs must be known before they are repeated.
    fn handle_sent(&mut self) -> io::Result<()> {
        let Self { clock, radios, ack_repeater: Some(repeats), .. } = self else { return Ok(()) };
        for sockets in radios.iter_mut().filter_map(|radio| radio.sockets.as_mut()) {
            sockets
                .outgoing
                .iter_mut()
                .try_for_each(|tap| tap.receive(|packet| repeats.handle_sent(clock.now(), packet)))?;
        }
        Ok(())
    }

    fn handle_messages(&mut self) -> io::Result<()> {
        let Self { clock, machine, stations: heard, meter, radios, .. } = self;
        for (number, radio) in radios.iter_mut().enumerate() {
            let mut take = |from, tagged: &_| {
                let (now, before) = (clock.now(), refused(machine));
                machine.handle_message(now, from, tagged, meter.strength_of(now, from));
                if refused(machine) == before {
                    heard.insert(from, StationRecord { radio: number, last_heard: now });
                }
            };
            let Some(sockets) = &mut radio.sockets else { continue };
            sockets.beacons.receive(&mut take)?;
            sockets.requests.receive(&mut take)?;
        }
        Ok(())
    }

    /// Does what the machine wants: the route first, so that what is sent next goes the new way.
    fn handle_outputs(&mut self) {
        while let Some(event) = self.machine.poll_event() {
            match event {
                Event::Attached { station } => self.switch_to(station),
                Event::Served { latency: took, handoff, .. } => {
                    self.counts.served += u64::from(handoff);
                    self.counts.last_handoff = if handoff { took } else { self.counts.last_handoff };
                    let now = self.clock.now();
                    self.ack_repeater
                        .iter_mut()
                        .filter(|_| handoff)
                        .for_each(|repeats| repeats.handle_handoff(now));
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
        self.stations.retain(|_, heard| heard.last_heard + lifetime + lifetime > now);
    }

    fn send(&mut self, transmit: &Transmit) {
        if let Some(heard) = self.stations.get(&transmit.to) {
            let sockets = self.radios[heard.radio].sockets.as_mut();
            sockets.into_iter().for_each(|sockets| sockets.requests.send(transmit));
        }
    }

    /// A radio that vanishes leaves the others as they are, and is taken again when it returns.
    fn refresh_radios(&mut self, books: &StatusWriter<'_>) {
        let (config, counts) = (&self.config, &mut self.counts);
        let mut has_returned = false;
        for radio in &mut self.radios {
            if let Some(gone) = radio.sockets.take_if(|sockets| sockets.watched.check().is_err()) {
                counts.malformed += gone.beacons.counts.malformed + gone.requests.counts.malformed;
                counts.send_failures += gone.requests.counts.send_failures;
            }
            if radio.sockets.is_none() {
                radio.sockets = Sockets::open(&radio.interface, config).ok();
                has_returned |= radio.sockets.is_some();
            }
        }
        let gone: Vec<_> = self.radios.iter().filter(|radio| radio.sockets.is_none()).collect();
        self.has_lost_radio |= !gone.is_empty();
        if !self.has_lost_radio {
            return;
        }
        let names = gone.iter().map(|radio| radio.interface.as_str()).collect::<Vec<_>>().join(", ");
        let (tone, text) = if gone.is_empty() {
            (Severity::Normal, "all radios are there again".to_owned())
        } else {
            (Severity::Warning, format!("radios have gone and are waited for: {names}"))
        };
        books.report(Notice { subject: "interface".into(), severity: tone, text });
        if has_returned {
            // What went with the interface is made anew with the next beacon.
            self.route_set_at = Instant::ZERO;
        }
    }

    /// Interfaces that go down take their routes with them: while its station is heard, there is one to it.
    fn refresh_route(&mut self) {
        if let Some(station) = self.machine.station()
            && self.stations.get(&station).is_some_and(|heard| heard.last_heard > self.route_set_at)
        {
            self.route_set_at = self.clock.now();
            self.switch_to(station);
        }
    }

    fn switch_to(&mut self, station: Ipv4Addr) {
        let Some(&StationRecord { radio, .. }) = self.stations.get(&station) else { return };
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

    fn metrics(&self) -> Vec<Metric> {
        let (counts, stats) = (&self.counts, self.machine.stats());
        let sockets = || self.radios.iter().filter_map(|radio| radio.sockets.as_ref());
        let malformed = counts.malformed
            + sockets().map(|s| s.beacons.counts.malformed + s.requests.counts.malformed).sum::<u64>();
        let unsent = counts.send_failures + sockets().map(|s| s.requests.counts.send_failures).sum::<u64>();
        let [repeated, unsent_acks] = self.ack_repeater.as_ref().map_or([0; 2], AckRepeater::counts);
        vec![
            Metric::gauge("attached", "1 while it has a station.", self.machine.station().is_some().into()),
            Metric::counter("handoffs", "Changes from one station to another.", stats.handoffs),
            Metric::counter(
                "handoffs_served",
                "Of those, handoffs that the station confirmed.",
                counts.served,
            ),
            Metric::gauge(
                "last_handoff_microseconds",
                "Time from the request of the last one to its confirmation.",
                counts.last_handoff.as_micros(),
            ),
            Metric::counter("detached", "Times that it heard no station any more.", counts.detached),
            Metric::counter("received_packets", "Packets that came for it by its radios.", counts.received),
            Metric::counter("requests", "Requests, those repeated included.", stats.requests),
            Metric::counter("unanswered", "Requests to which no answer came.", stats.unanswered),
            Metric::counter(
                "forged",
                "Messages without the right proof, and beacons from another address than they say.",
                stats.forged,
            ),
            Metric::counter(
                "replayed",
                "Beacons with a number that is not above the last one.",
                stats.replayed,
            ),
            Metric::counter("foreign", "Messages that are none of its concern.", stats.unexpected),
            Metric::counter("malformed", "Messages that were none.", malformed),
            Metric::counter("unsent_messages", "Messages that the system did not take.", unsent),
            Metric::counter("repeated_acks", "ACKs repeated after handoffs (fast_retransmit).", repeated),
            Metric::counter("unsent_acks", "Of those, ACKs that the system did not take.", unsent_acks),
            Metric::counter("unrouted", "Stations to which the system made no route.", counts.unrouted),
        ]
    }
}

impl Route {
    fn leading<'a>(&self, config: &MobileConfig, radios: &'a [Radio]) -> DefaultRoute<'a> {
        let interface = &radios[self.radio].interface;
        let to = NextHop::Router { interface, router: self.station, source: config.home };
        DefaultRoute { to, metric: config.metric, table: MAIN }
    }
}

/// Messages that changed nothing.
const fn refused(machine: &Machine) -> u64 {
    let stats = machine.stats();
    stats.forged + stats.replayed + stats.unexpected
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
            watched: WatchedInterfaces::new([interface])?,
            beacons: Messenger::open(Ipv4Addr::UNSPECIFIED, Some(interface))?,
            requests: Messenger::open(home, Some(interface))?,
            incoming: Tap::incoming(interface, home)?,
            outgoing: config.fast_retransmit.map(|_| Tap::outgoing_tcp(interface, home)).transpose()?,
        })
    }
}

impl Service for MobileHost {
    fn run(mut self: Box<Self>, stop: BorrowedFd<'_>, ledger: &ServiceStatus) -> io::Result<()> {
        let mut books = StatusWriter::new(ledger);
        loop {
            // What has been received is known before a station is told of it.
            self.handle_received()?;
            self.handle_sent()?;
            let now = self.clock.now();
            self.machine.handle_timeout(now);
            self.handle_outputs();
            if books.write_if_due(now, || self.metrics()) {
                self.refresh_radios(&books);
            }
            let longest = books.wait(now, self.machine.poll_timeout());
            let sockets = self.radios.iter().filter_map(|radio| radio.sockets.as_ref());
            let sources = sockets.flat_map(|s| {
                let leaving = s.outgoing.as_ref().map(AsFd::as_fd);
                [s.beacons.as_fd(), s.requests.as_fd(), s.incoming.as_fd()].into_iter().chain(leaving)
            });
            if wait_for(sources, stop, longest)? == WaitResult::Stopped {
                ledger.set_metrics(self.metrics());
                return Ok(());
            }
            self.handle_received()?;
            self.handle_sent()?;
            self.handle_messages()?;
            self.handle_outputs();
            self.refresh_route();
        }
    }
}

impl Drop for MobileHost {
    fn drop(&mut self) {
        self.drop_route();
    }
}
