//! The base station: what comes by the tunnel goes to the mobile hosts that it serves, and is kept for others.

use super::clock::{Clock, StatusWriter, WaitResult, wait_for};
use super::groups::Groups;
use super::messenger::Messenger;
use super::notifications::{Notification, NotifiedMiddlebox, Notifier, notified};
use super::radio_route::RadioRoute;
use super::tunnel::{Decapsulated, Decapsulator, decapsulate};
use super::visitors::{VisitorList, VisitorListWriter};
use super::{BATCH, MAX_PACKET};
use crate::nfqueue;
use crate::service::{Metric, Service, ServiceStatus};
use bytes::Bytes;
use hopline_core::{Duration, Instant, Purpose, RandomStream};
use hopline_linux::watched::WatchedInterfaces;
use hopline_linux::{Error, Interface, Tun};
use hopline_proxy::Pep;
use hopline_proxy::handoff::{
    BEACON_INTERVAL, BUFFER_PACKETS, Identity, Key, StartState, Station as Machine, StationAction,
    StationConfig as Behaviour, group_of,
};
use hopline_wire::handoff::{MessageBody, RequestAction, TaggedMessage};
use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};

/// Configuration of a [`BaseStation`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StationConfig {
    /// Its address: the home agent reaches it there, and mobile hosts do by the radio. This host must have it; no other station may.
    pub address: Ipv4Addr,
    /// Address of the home agent.
    pub home_agent: Ipv4Addr,
    /// The interface by which the home agent is reached, and the tunnel comes.
    pub wired: String,
    /// The interface with the radio.
    pub wireless: String,
    /// The network of the mobile hosts' home addresses, and how many bits of it are common, 0 to 32.
    pub network: (Ipv4Addr, u8),
    /// The network's key.
    pub key: Key,
    /// Time between two beacons, 1 ms or more. Default 1 s (§4).
    pub beacon_interval: Duration,
    /// Packets kept for a host. Default 12 (§4).
    pub buffer_packets: u16,
    /// Longest packet that is taken out of the tunnel, in bytes. With the two above and below it bounds the memory. Default 1500.
    pub longest_packet: u16,
    /// Most mobile hosts that it serves; any further host is refused. Default 1024.
    pub mobiles: u32,
    /// Treatment of buffered packets that the host has received already. Default [`StartState::Cold`]: they are discarded.
    pub cold: StartState,
    /// Receive buffer of the tunnel, in bytes. Default 1 MiB.
    pub receive_buffer: usize,
    /// Name of the TUN interface, 15 bytes at most; `%d` becomes a number. Default `cell%d`.
    pub tun: String,
    /// Mark of what a machine in the path sends ([`nfqueue::Config::mark`](crate::nfqueue::Config::mark)): with it, what is for mobile
    /// hosts goes to the radio. 0: there is no such machine. Default 0x686f.
    pub mark: u32,
    /// Number of the table of routes for what comes out of the tunnel, which leads to the radio alone. Default 1021.
    pub table: u32,
    /// Priority of the rules that lead to the table. Default 1021.
    pub rule_priority: u32,
}

impl StationConfig {
    /// The defaults.
    #[must_use]
    pub fn new(
        [address, home_agent]: [Ipv4Addr; 2],
        network: (Ipv4Addr, u8),
        [wired, wireless]: [&str; 2],
        key: Key,
    ) -> Self {
        Self {
            address,
            home_agent,
            network,
            wired: wired.into(),
            wireless: wireless.into(),
            key,
            beacon_interval: BEACON_INTERVAL,
            buffer_packets: BUFFER_PACKETS,
            longest_packet: 1500,
            mobiles: 1024,
            cold: StartState::Cold,
            receive_buffer: 1 << 20,
            tun: "cell%d".into(),
            mark: nfqueue::MARK,
            table: 1021,
            rule_priority: 1021,
        }
    }

    fn behaviour(&self, clock: Clock) -> Behaviour {
        let identity = Identity { address: self.address, key: Some(self.key), epoch_us: clock.epoch_us };
        Behaviour {
            beacon_interval: self.beacon_interval.max(Duration::from_millis(1)),
            buffer_packets: self.buffer_packets,
            start_state: self.cold,
            max_mobiles: self.mobiles,
            ..Behaviour::new(identity, self.home_agent)
        }
    }
}

/// A base station. What it takes out of the tunnel comes into the kernel by a TUN interface of its own, and is forwarded to the radio by a
/// rule and a table of routes for that interface alone; all three go with the value.
pub struct BaseStation {
    clock: Clock,
    machine: Machine<Vec<u8>>,
    config: StationConfig,
    decapsulator: Decapsulator,
    groups: Groups,
    to_home: Messenger,
    to_mobiles: Messenger,
    watched: WatchedInterfaces,
    tun: Tun,
    radio_route: RadioRoute,
    notifier: Option<Notifier>,
    visitors: Option<VisitorListWriter>,
    counts: Counts,
}

/// Counters of a [`BaseStation`] in addition to those of its state machine.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    tunnelled: u64,
    delivered: u64,
    undelivered: u64,
    foreign_tunnels: u64,
    foreign_messages: u64,
    malformed: u64,
    congested: u64,
    too_long: u64,
    not_joined: u64,
    not_notified: u64,
    unrouted: u64,
}

impl BaseStation {
    /// Makes the TUN interface, the rule and the route, opens the tunnel, and takes UDP port 1021 on both interfaces, in the calling
    /// thread's namespace.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_ADMIN`, `CAP_NET_RAW` and `CAP_NET_BIND_SERVICE`, or where there is no such interface;
    /// [`Error::System`] if this host does not have the address.
    pub fn open(config: &StationConfig) -> Result<Self, Error> {
        let clock = Clock::start();
        let seed =
            getrandom::u64().map_err(|e| Error::system("drawing a random number", io::Error::from(e)))?;
        let mut random = RandomStream::keyed(seed, 0, 0, Purpose::Handoff);
        let machine = Machine::new(config.behaviour(clock), clock.now(), &mut random);
        let (wired, wireless) = (&config.wired, &config.wireless);
        let groups = Groups::new(wired).map_err(|e| Error::of_interface(wired, e))?;
        let exit = Decapsulator::open(wired, config.receive_buffer)?;
        let to_home = Messenger::open(config.address, Some(wired))?;
        let to_mobiles = Messenger::open(config.address, Some(wireless))?;
        let tun = Tun::open(&config.tun)?;
        Interface::named(tun.name())?.up()?;
        let way = RadioRoute::open(tun.name(), config)?;
        let watched = WatchedInterfaces::new([wired.as_str(), wireless])?;
        let (config, counts) = (config.clone(), Counts::default());
        Ok(Self {
            clock,
            machine,
            config,
            decapsulator: exit,
            groups,
            to_home,
            to_mobiles,
            watched,
            tun,
            radio_route: way,
            notifier: None,
            visitors: None,
            counts,
        })
    }

    /// The machine that is to stand in the path from here to mobile hosts, which is told by the station what it is to know.
    #[must_use]
    pub fn notify_middlebox<M: Pep<Bytes>>(&mut self, machine: M) -> NotifiedMiddlebox<M> {
        let (teller, informed) = notified(machine);
        self.notifier = Some(teller);
        informed
    }

    /// Has the station write its visitors into a list. The list is empty while there is no station.
    pub fn write_visitors(&mut self, list: &VisitorList) {
        self.visitors = Some(VisitorListWriter(list.clone()));
    }

    /// Returns the name of the TUN interface.
    #[must_use]
    pub fn tun(&self) -> &str {
        self.tun.name()
    }

    fn handle_messages(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let mut heard = Vec::new();
        self.to_mobiles.receive(|from, tagged| heard.push((from, *tagged)))?;
        let Self { config, counts, .. } = self;
        self.to_home.receive(|from, tagged| {
            // Mobile hosts are heard by the radio alone.
            if from == config.home_agent {
                heard.push((from, *tagged));
            } else {
                counts.foreign_messages += 1;
            }
        })?;
        for (from, tagged) in heard {
            // What came before the host turned to another station goes on before.
            if self.is_dismissal(&tagged) {
                self.handle_packets(buffer)?;
            }
            let rejected = self.rejected_messages();
            self.machine.handle_message(self.clock.now(), from, &tagged);
            self.handle_outputs();
            // A forged or replayed message with the number of a host's last request is no arrival.
            if self.rejected_messages() == rejected {
                self.write_visitor(&tagged);
            }
        }
        Ok(())
    }

    /// Returns the number of messages that the machine has rejected.
    const fn rejected_messages(&self) -> u64 {
        let stats = self.machine.stats();
        stats.forged + stats.replayed + stats.unexpected + stats.refused
    }

    /// Writes the list anew for the host that a message is about. What the machine has refused changes nothing.
    fn write_visitor(&self, tagged: &TaggedMessage) {
        let Some(VisitorListWriter(list)) = &self.visitors else { return };
        let (MessageBody::Request { mobile, .. } | MessageBody::Reply { mobile, .. }) = tagged.message.body
        else {
            return;
        };
        // Another number is one of a request that was refused.
        let number =
            self.machine.forwarding_request(mobile).filter(|number| *number == tagged.message.number);
        if let Some(number) = number {
            list.record_visitor(mobile, number);
        }
    }

    /// Returns whether a message asks this station to stop forwarding to a host to which it forwards now.
    fn is_dismissal(&self, tagged: &TaggedMessage) -> bool {
        let MessageBody::Request { mobile, action: asks, .. } = tagged.message.body else { return false };
        matches!(asks, RequestAction::Buffer | RequestAction::Stop) && self.machine.forwards_to(mobile)
    }

    fn handle_packets(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        for _ in 0..BATCH {
            let Some(len) = self.decapsulator.receive(buffer)? else { break };
            self.counts.tunnelled += 1;
            match decapsulate(&mut buffer[..len], self.config.home_agent) {
                Decapsulated::Packet(_, packet) if packet.len() > usize::from(self.config.longest_packet) => {
                    self.counts.too_long += 1;
                }
                Decapsulated::Packet(what, packet) => {
                    self.machine.handle_packet(what.to, what.id, packet.to_vec());
                    self.handle_outputs();
                }
                Decapsulated::Congested => self.counts.congested += 1,
                Decapsulated::WrongSource => self.counts.foreign_tunnels += 1,
                Decapsulated::Malformed => self.counts.malformed += 1,
            }
        }
        Ok(())
    }

    /// With each beacon the way to the radio is looked after: an interface that goes down takes its routes with it.
    fn handle_timeout(&mut self, now: Instant) {
        let beacons = self.machine.stats().beacons;
        self.machine.handle_timeout(now);
        self.handle_outputs();
        if self.machine.stats().beacons > beacons {
            self.counts.unrouted += u64::from(self.radio_route.refresh().is_err());
        }
    }

    /// Does what the machine wants.
    fn handle_outputs(&mut self) {
        while let Some(does) = self.machine.poll_action() {
            match does {
                StationAction::Send(transmit) if transmit.to == self.config.home_agent => {
                    self.to_home.send(&transmit)
                }
                StationAction::Send(transmit) => self.to_mobiles.send(&transmit),
                StationAction::Deliver(packet) => match self.tun.send(&packet) {
                    Ok(()) => self.counts.delivered += 1,
                    Err(_) => self.counts.undelivered += 1,
                },
                StationAction::Release(_) | StationAction::Refuse(_) => {}
                StationAction::JoinGroup(mobile) => {
                    let joined = self.groups.join(group_of(mobile));
                    self.counts.not_joined += u64::from(joined.is_err());
                }
                StationAction::LeaveGroup(mobile) => self.groups.leave(group_of(mobile)),
                // What a machine in the path knows of connections it learns by itself.
                StationAction::HostArrived(..) => {}
                StationAction::HostLeft(mobile) => {
                    if let Some(VisitorListWriter(list)) = &self.visitors {
                        list.remove_visitor(mobile);
                    }
                    self.notify(Notification::Departed(mobile));
                }
                StationAction::ShowToMiddleboxes(packet) => self.notify(Notification::Delivered(packet)),
            }
        }
    }

    fn notify(&mut self, news: Notification) {
        let told = self.notifier.as_ref().is_none_or(|teller| teller.notify(news));
        self.counts.not_notified += u64::from(!told);
    }

    fn metrics(&self) -> Vec<Metric> {
        let mut figures = self.packet_metrics();
        figures.extend(self.message_metrics());
        figures
    }

    fn packet_metrics(&self) -> Vec<Metric> {
        let (counts, stats) = (&self.counts, self.machine.stats());
        vec![
            Metric::gauge(
                "mobile_hosts",
                "Mobile hosts that it forwards to or keeps packets for.",
                self.machine.mobiles() as u64,
            ),
            Metric::counter(
                "taken_over",
                "Times that a host was not forwarded to, and then was.",
                stats.taken_over,
            ),
            Metric::counter("tunnelled_packets", "Packets that came by the tunnel.", counts.tunnelled),
            Metric::counter("delivered_packets", "Packets forwarded to mobile hosts.", counts.delivered),
            Metric::counter(
                "buffer_sent_packets",
                "Of those, packets that had been kept.",
                stats.sent_from_buffer,
            ),
            Metric::counter(
                "buffer_overwritten_packets",
                "Kept packets that made room for others.",
                stats.overwritten,
            ),
            Metric::counter("unwanted_packets", "Packets for hosts that are not here.", stats.unwanted),
            Metric::counter(
                "undelivered_packets",
                "Packets that the system did not take.",
                counts.undelivered,
            ),
            Metric::counter(
                "congested_packets",
                "Packets marked on the way whose senders would not understand it.",
                counts.congested,
            ),
            Metric::counter(
                "too_long_packets",
                "Packets longer than is taken out of the tunnel.",
                counts.too_long,
            ),
            Metric::counter(
                "foreign_packets",
                "Packets in tunnels of somebody else.",
                counts.foreign_tunnels,
            ),
        ]
    }

    fn message_metrics(&self) -> Vec<Metric> {
        let (counts, stats) = (&self.counts, self.machine.stats());
        let [home, mobiles] = [&self.to_home.counts, &self.to_mobiles.counts];
        vec![
            Metric::counter("beacons", "Beacons sent.", stats.beacons),
            Metric::counter("expired", "Hosts that were silent for too long.", stats.expired),
            Metric::counter("refused", "Requests refused because there are too many hosts.", stats.refused),
            Metric::counter(
                "forged",
                "Messages without the right proof, or about another host than their sender.",
                stats.forged,
            ),
            Metric::counter(
                "replayed",
                "Messages with a number that is not above the last one.",
                stats.replayed,
            ),
            Metric::counter(
                "foreign",
                "Messages that are none of its concern, or came another way than they should.",
                stats.unexpected + counts.foreign_messages,
            ),
            Metric::counter(
                "malformed",
                "Packets and messages that were none.",
                counts.malformed + home.malformed + mobiles.malformed,
            ),
            Metric::counter(
                "unsent_messages",
                "Messages that the system did not take.",
                home.send_failures + mobiles.send_failures,
            ),
            Metric::counter("unjoined_groups", "Groups that could not be joined.", counts.not_joined),
            Metric::counter(
                "untold",
                "What a machine in the path was not told, as it took no notice.",
                counts.not_notified,
            ),
        ]
    }
}

impl Service for BaseStation {
    fn run(mut self: Box<Self>, stop: BorrowedFd<'_>, ledger: &ServiceStatus) -> io::Result<()> {
        let mut buffer = vec![0; MAX_PACKET];
        let mut books = StatusWriter::new(ledger);
        loop {
            let now = self.clock.now();
            self.handle_timeout(now);
            if books.write_if_due(now, || self.metrics()) {
                self.watched.check()?;
            }
            let sources = [self.decapsulator.as_fd(), self.to_mobiles.as_fd(), self.to_home.as_fd()];
            let longest = books.wait(now, Some(self.machine.poll_timeout()));
            if wait_for(sources, stop, longest)? == WaitResult::Stopped {
                ledger.set_metrics(self.metrics());
                return Ok(());
            }
            self.handle_messages(&mut buffer)?;
            self.handle_packets(&mut buffer)?;
        }
    }
}

impl fmt::Debug for BaseStation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BaseStation")
            .field("config", &self.config)
            .field("way", &self.radio_route)
            .finish_non_exhaustive()
    }
}
