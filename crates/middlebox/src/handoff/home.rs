//! The home agent: what comes for a mobile host goes into the tunnel to wherever that is.

use super::clock::{Clock, StatusWriter, WaitResult, wait_for};
use super::messenger::Messenger;
use super::tunnel::{Encapsulator, IdAllocator, InnerHeader, SendResult, encapsulate, parse_inner};
use super::{BATCH, MAX_PACKET};
use crate::service::{Metric, Service, ServiceStatus};
use hopline_linux::watched::WatchedInterfaces;
use hopline_linux::{Error, Interface, Tun};
use hopline_proxy::handoff::{HomeAgent as Machine, Identity, Key, Scheme};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};

/// Configuration of a [`HomeAgent`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeConfig {
    /// Its address, where tunnels begin and registrations come. This host must have it.
    pub address: Ipv4Addr,
    /// The network of the mobile hosts' home addresses, and how many bits of it are common, 0 to 32. It is routed to this host from
    /// elsewhere, and from here into the agent's TUN interface.
    pub network: (Ipv4Addr, u8),
    /// Home addresses of the mobile hosts. What is for others in the network is dropped.
    pub mobiles: Vec<Ipv4Addr>,
    /// The interfaces by which stations are reached: what is for a group goes out by each.
    pub interfaces: Vec<String>,
    /// The network's key.
    pub key: Key,
    /// Addresses of the stations at which hosts may register; empty: any. Default empty.
    pub stations: Vec<Ipv4Addr>,
    /// Scheme by which packets reach the station of a mobile host. Default [`Scheme::Multicast`].
    pub scheme: Scheme,
    /// Routers that tunnelled packets may pass, 1 to 255. Default 64.
    pub ttl: u8,
    /// Longest packet that goes into the tunnel, in bytes, 68 to 65,515; senders learn it by ICMP. Default 1480: an outer header, and
    /// it is 1500.
    pub mtu: u16,
    /// Name of the TUN interface, 15 bytes at most; `%d` becomes a number. Default `home%d`.
    pub tun: String,
}

impl HomeConfig {
    /// The defaults.
    #[must_use]
    pub fn new(address: Ipv4Addr, network: (Ipv4Addr, u8), key: Key) -> Self {
        Self {
            address,
            network,
            mobiles: Vec::new(),
            interfaces: Vec::new(),
            key,
            stations: Vec::new(),
            scheme: Scheme::Multicast,
            ttl: 64,
            mtu: 1480,
            tun: "home%d".into(),
        }
    }

    fn check(&self) -> Result<(), Error> {
        if self.scheme == Scheme::Multicast && self.interfaces.is_empty() {
            return Err(no_such_agent("it has no interface by which it could reach stations".into()));
        }
        let (network, prefix) = self.network;
        let common =
            |address: Ipv4Addr| address.to_bits().checked_shr(32 - u32::from(prefix.min(32))).unwrap_or(0);
        match self.mobiles.iter().find(|&&mobile| common(mobile) != common(network)) {
            Some(mobile) => Err(no_such_agent(format!("{mobile} is not in its network {network}/{prefix}"))),
            None => Ok(()),
        }
    }
}

fn no_such_agent(why: String) -> Error {
    Error::system(format!("opening a home agent: {why}"), io::ErrorKind::InvalidInput)
}

/// A home agent. Its TUN interface, and the route that leads there, go with the value.
///
/// It has no state that matters with [`Scheme::Multicast`]; with [`Scheme::Registration`] it has that of registrations, which mobile hosts
/// repeat at each beacon: that long it takes after a new start until packets are sent on again.
#[derive(Debug)]
pub struct HomeAgent {
    config: HomeConfig,
    clock: Clock,
    machine: Machine,
    watched: WatchedInterfaces,
    tun: Tun,
    messenger: Messenger,
    encapsulator: Encapsulator,
    identifications: IdAllocator,
    counts: Counts,
}

/// Counters of a [`HomeAgent`] in addition to those of its state machine.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    tunnelled: u64,
    unregistered: u64,
    too_long: u64,
    refused: u64,
    malformed: u64,
}

impl HomeAgent {
    /// Makes the TUN interface and the route, and takes UDP port 1021, in the calling thread's namespace.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_ADMIN`, `CAP_NET_RAW` and `CAP_NET_BIND_SERVICE`, or where there is no such interface;
    /// [`Error::System`] if this host does not have the address, the network has bits set beyond its prefix, a mobile host is in another
    /// one, or there is no interface to multicast by.
    pub fn open(config: &HomeConfig) -> Result<Self, Error> {
        config.check()?;
        let (clock, mobiles) = (Clock::start(), config.mobiles.iter().copied());
        let identity = Identity { address: config.address, key: Some(config.key), epoch_us: clock.epoch_us };
        let messenger = Messenger::open(config.address, None)?;
        let entrance = Encapsulator::open(&config.interfaces)?;
        let tun = Tun::open(&config.tun)?;
        let interface = Interface::named(tun.name())?;
        interface.set_mtu(config.mtu)?;
        interface.up()?;
        let (network, prefix) = config.network;
        interface.add_route(network, prefix)?;
        Ok(Self {
            machine: Machine::new(identity, config.scheme, mobiles.clone())
                .with_stations(config.stations.iter().copied()),
            // Numbers of a process before are not said again soon.
            identifications: IdAllocator::new(mobiles, clock.epoch_us as u16),
            config: config.clone(),
            clock,
            watched: WatchedInterfaces::new(config.interfaces.iter().map(String::as_str))?,
            tun,
            messenger,
            encapsulator: entrance,
            counts: Counts::default(),
        })
    }

    fn handle_messages(&mut self) -> io::Result<()> {
        let (clock, machine) = (self.clock, &mut self.machine);
        self.messenger.receive(|_, tagged| machine.handle_message(clock.now(), tagged))?;
        while let Some(transmit) = self.machine.poll_transmit() {
            self.messenger.send(&transmit);
        }
        Ok(())
    }

    fn handle_packets(&mut self, [packet, outer]: &mut [Vec<u8>; 2]) -> io::Result<()> {
        for _ in 0..BATCH {
            let Some(len) = self.tun.receive(packet)? else { break };
            // The kernel has IPv6 to say here as well.
            match parse_inner(&packet[..len]) {
                Some((InnerHeader { to, .. }, whole)) => {
                    let len = whole.len();
                    self.tunnel(to, &mut packet[..len], outer);
                }
                None => self.counts.malformed += u64::from(packet[0] >> 4 == 4),
            }
        }
        Ok(())
    }

    fn tunnel(&mut self, mobile: Ipv4Addr, packet: &mut [u8], outer: &mut Vec<u8>) {
        let Some(station) = self.machine.destination(self.clock.now(), mobile) else {
            self.counts.unregistered += 1;
            return;
        };
        if packet.len() > usize::from(self.config.mtu) {
            self.counts.too_long += 1;
            return;
        }
        self.identifications.assign(mobile, packet);
        encapsulate(self.config.address, station, self.config.ttl, packet, outer);
        let counted = match self.encapsulator.send(station, outer) {
            SendResult::Sent => &mut self.counts.tunnelled,
            SendResult::TooLong => &mut self.counts.too_long,
            SendResult::Failed => &mut self.counts.refused,
        };
        *counted += 1;
    }

    fn metrics(&self) -> Vec<Metric> {
        let (counts, stats, messages) = (&self.counts, self.machine.stats(), &self.messenger.counts);
        vec![
            Metric::counter(
                "tunnelled_packets",
                "Packets for mobile hosts that went into the tunnel.",
                counts.tunnelled,
            ),
            Metric::counter(
                "homeless_packets",
                "Packets for hosts whose home is not here, or of whom nobody knows where they are.",
                counts.unregistered,
            ),
            Metric::counter("too_long_packets", "Packets longer than the tunnel takes.", counts.too_long),
            Metric::counter(
                "refused_packets",
                "Packets that the system did not take into the tunnel.",
                counts.refused,
            ),
            Metric::counter(
                "malformed",
                "Packets and messages that were none.",
                counts.malformed + messages.malformed,
            ),
            Metric::counter("registrations", "Registrations, those repeated included.", stats.registrations),
            Metric::counter("forged", "Messages without the right proof.", stats.forged),
            Metric::counter(
                "replayed",
                "Messages with a number that is not above the last one.",
                stats.replayed,
            ),
            Metric::counter("foreign", "Messages that are none of its concern.", stats.unexpected),
            Metric::counter(
                "unsent_messages",
                "Messages that the system did not take.",
                messages.send_failures,
            ),
        ]
    }
}

impl Service for HomeAgent {
    fn run(mut self: Box<Self>, stop: BorrowedFd<'_>, ledger: &ServiceStatus) -> io::Result<()> {
        let mut buffers = [vec![0; MAX_PACKET], Vec::with_capacity(MAX_PACKET)];
        let mut books = StatusWriter::new(ledger);
        loop {
            let now = self.clock.now();
            if books.write_if_due(now, || self.metrics()) {
                self.watched.check()?;
            }
            let woken = wait_for([self.tun.as_fd(), self.messenger.as_fd()], stop, books.wait(now, None))?;
            if woken == WaitResult::Stopped {
                ledger.set_metrics(self.metrics());
                return Ok(());
            }
            self.handle_messages()?;
            self.handle_packets(&mut buffers)?;
        }
    }
}
