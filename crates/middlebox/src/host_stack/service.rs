//! Connections from programs of this host to the stack, and from the stack to them.

use super::config::HostStackConfig;
use super::driver::Driver;
use super::leg::StackLeg;
use super::shared::Shared;
use crate::diversion::Unaccepted;
use crate::gateway::destination::{Allowed, Destination};
use crate::gateway::handshake::Denial;
use crate::gateway::leg::TcpLeg;
use crate::gateway::listeners::{AcceptedConnection, GatewayListener};
use crate::gateway::onward::{self, BindAddress};
use crate::gateway::relay::{Moved, relay, run_until};
use crate::gateway::service::{self, Notices};
use crate::gateway::{Error, ListenerConfig};
use crate::service::{Metric, Service, ServiceStatus};
use hopline_linux::route_lookup::{Route, RouteQuery, Routes};
use hopline_linux::transparent::LegOptions;
use hopline_linux::{Interface, Network, Tun, descriptors};
use hopline_stack::{ConnectionId, Stack};
use hopline_streams::admission::{Admission, AdmissionSlot};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;

/// A TCP host behind a TUN interface, which programs of this host reach by local ports.
#[derive(Debug)]
pub struct HostStack {
    config: HostStackConfig,
    tun: Tun,
    listeners: Vec<GatewayListener>,
    stack: Stack,
    on_link_addresses: Vec<(IpAddr, String)>,
}

impl HostStack {
    /// Creates the interface with routes to the stack's addresses, and listens at the local ports.
    ///
    /// # Errors
    /// A parameter out of its range; an interface or address that is not available; no `CAP_NET_ADMIN`.
    pub fn open(config: HostStackConfig) -> Result<Self, Error> {
        let must = "a forward or SOCKS: nothing is diverted to a stack";
        if config.listeners.iter().any(|way| matches!(way, ListenerConfig::Transparent { .. })) {
            return Err(Error::Config { field: "ways", must });
        }
        let mut ports: Vec<u16> = config.accept.iter().map(|accept| accept.port).collect();
        ports.sort_unstable();
        if ports.windows(2).any(|two| two[0] == two[1]) {
            return Err(Error::Config { field: "accept", must: "ports of which none is named twice" });
        }
        let in_networks = on_link(&config.stack.addresses)?;
        let mut stack = Stack::new(config.stack.clone())
            .map_err(|error| hopline_linux::Error::system("making the stack", io::Error::other(error)))?;
        config.accept.iter().for_each(|accept| stack.listen(accept.port));
        // Descriptors of a connection: the program's, and one for those that wait.
        descriptors::reserve(config.stack.max_connections, 2)?;
        let doors = config.listeners.iter().map(GatewayListener::open).collect::<Result<_, _>>()?;
        let tun = Tun::open(&config.interface)?;
        let interface = Interface::named(tun.name())?;
        interface.set_mtu(config.stack.mtu)?;
        // The kernel must not send packets by itself. Without IPv6 it does not.
        let _ = interface.disable_ipv6_autoconfiguration();
        interface.up()?;
        for &address in &config.stack.addresses {
            let prefix = if address.is_ipv4() { 32 } else { 128 };
            interface.route(Network { address, prefix }, None)?;
        }
        Ok(Self { config, tun, listeners: doors, stack, on_link_addresses: in_networks })
    }

    /// Returns the name of the TUN interface.
    #[must_use]
    pub fn interface(&self) -> &str {
        self.tun.name()
    }

    /// Returns the addresses of the stack that lie in the network of an interface, with the interface's name. Hosts of
    /// that network look them up by ARP or neighbour discovery, which the stack does not answer, and one of them may have
    /// the address.
    #[must_use]
    pub fn on_link_addresses(&self) -> &[(IpAddr, String)] {
        &self.on_link_addresses
    }

    /// Returns the local addresses of the listeners, in the order of [`HostStackConfig::listeners`].
    ///
    /// # Errors
    /// If the system fails.
    pub fn local_addrs(&self) -> io::Result<Vec<SocketAddr>> {
        self.listeners.iter().map(GatewayListener::local_addr).collect()
    }
}

impl Service for HostStack {
    fn run(self: Box<Self>, stop: BorrowedFd<'_>, ledger: &ServiceStatus) -> io::Result<()> {
        let Self { config, tun, listeners: doors, stack, .. } = *self;
        let (accepted, incoming) = unbounded_channel();
        let host = Arc::new(Host {
            pending: Admission::new(config.stack.max_connections),
            config,
            shared: Arc::new(Shared::new(stack, accepted)),
            counts: Counts::default(),
            refused_packets: Arc::default(),
        });
        // A second handle of the interface, for the resets at the end.
        let last = tun.try_clone()?;
        let work = async {
            let mut serving = JoinSet::new();
            let unaccepted = Unaccepted::of([]).map_err(io::Error::other)?;
            for door in doors {
                let host = Arc::clone(&host);
                let take =
                    move |call: AcceptedConnection, way: &ListenerConfig| host.handle_connection(call, way);
                serving.spawn(door.serve(unaccepted.clone(), take));
            }
            let driver = Driver::new(Arc::clone(&host.shared), tun, Arc::clone(&host.refused_packets))?;
            serving.spawn(driver.run());
            serving.spawn(Arc::clone(&host).accept(incoming));
            // A listener ends only with an error.
            while let Some(ended) = serving.join_next().await {
                ended.map_err(io::Error::other)??;
            }
            Ok(())
        };
        let ended = service::run(work, stop, ledger, (|| host.metrics(), &Notices::default()));
        Driver::stop(&host.shared, &last);
        ended
    }
}

/// Returns those of `addresses` that lie in the network of an interface, with the interface's name.
///
/// # Errors
/// An address of this machine, or an error of the system.
fn on_link(addresses: &[IpAddr]) -> Result<Vec<(IpAddr, String)>, hopline_linux::Error> {
    let failed = |error| hopline_linux::Error::system("looking for a route", error);
    let mut routes = Routes::open()?;
    let mut in_networks = Vec::new();
    for &address in addresses {
        if routes.lookup(address).map_err(failed)? == Some(Route::Local) {
            return Err(hopline_linux::Error::OwnAddress { address });
        }
        let hop = routes
            .next_hop(&RouteQuery::to_destination(address))
            .map_err(failed)?
            .filter(|hop| hop.next == address);
        in_networks.extend(hop.and_then(|hop| Some((address, routes.name_of(hop.interface)?))));
    }
    Ok(in_networks)
}

/// State that all connections share.
struct Host {
    config: HostStackConfig,
    shared: Arc<Shared>,
    /// Places of clients in negotiation.
    pending: Arc<Admission>,
    counts: Counts,
    /// Packets of the stack that the kernel rejected.
    refused_packets: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct Counts {
    outgoing: AtomicU64,
    incoming: AtomicU64,
    refused: AtomicU64,
    finished: AtomicU64,
    broken: AtomicU64,
    moved: Moved,
}

impl Host {
    /// Accepts a connection of a program.
    fn handle_connection(self: &Arc<Self>, call: AcceptedConnection, way: &ListenerConfig) {
        let place = self.pending.enter(call.client.ip());
        let (host, way) = (Arc::clone(self), way.clone());
        tokio::spawn(async move { host.serve(call, &way, place).await });
    }

    async fn serve(&self, call: AcceptedConnection, way: &ListenerConfig, place: AdmissionSlot) {
        self.counts.outgoing.fetch_add(1, Relaxed);
        let Ok(mut client) = TcpLeg::new(call.stream, &LegOptions::default()) else { return };
        let limit = self.config.negotiation_timeout;
        let destination =
            run_until(way.destination(&mut client, call.destination, limit), place.evicted()).await;
        let Some(Some(destination)) = destination else {
            self.counts.refused.fetch_add(1, Relaxed);
            return;
        };
        drop(place);
        match self.connect(&destination).await {
            Err(denial) => {
                self.counts.refused.fetch_add(1, Relaxed);
                way.outcome_report().report_refused(client, denial).await;
            }
            Ok(leg) => {
                if way.outcome_report().report_connected(&mut client).await.is_ok() {
                    self.relay(client, leg).await;
                }
            }
        }
    }

    /// Connects from the stack to the first address of `destination` that answers.
    async fn connect(&self, destination: &Destination) -> Result<StackLeg, Denial> {
        let permits = |address| Allowed::NonLocal.permits(address);
        let mut last = Denial::NotAllowed;
        for (address, share) in onward::candidates(destination, permits, self.config.connect_timeout).await? {
            match StackLeg::connect(&self.shared, address, share).await {
                Ok(leg) => return Ok(leg),
                Err(denial) => last = denial,
            }
        }
        Err(last)
    }

    /// Accepts connections that peers open to the stack.
    async fn accept(self: Arc<Self>, mut incoming: UnboundedReceiver<ConnectionId>) -> io::Result<()> {
        while let Some(id) = incoming.recv().await {
            let leg = StackLeg::accepted(Arc::clone(&self.shared), id);
            let host = Arc::clone(&self);
            tokio::spawn(async move { host.connect_program(leg).await });
        }
        Ok(())
    }

    /// Connects to the program that serves a port of the stack. If it is absent, the peer is reset.
    async fn connect_program(&self, leg: StackLeg) {
        self.counts.incoming.fetch_add(1, Relaxed);
        let port = leg.addresses().map(|(local, _)| local.port());
        let Some(accept) = self.config.accept.iter().find(|accept| Some(accept.port) == port) else { return };
        let how = (&LegOptions::default(), self.config.connect_timeout);
        match onward::connect(&accept.to, BindAddress::Gateway, |_| true, how).await {
            Ok(program) => self.relay(program, leg).await,
            Err(_) => {
                self.counts.refused.fetch_add(1, Relaxed);
            }
        }
    }

    async fn relay(&self, program: TcpLeg, leg: StackLeg) {
        let ended = relay(program, leg, Vec::new(), self.config.buffer, &self.counts.moved).await;
        let count = if ended.is_ok() { &self.counts.finished } else { &self.counts.broken };
        count.fetch_add(1, Relaxed);
    }

    fn metrics(&self) -> Vec<Metric> {
        let state = self.shared.lock();
        let (stats, counts) = (state.stack.stats(), &self.counts);
        let own = [
            ("outgoing_connections", "connections that programs of this host asked for", &counts.outgoing),
            ("incoming_connections", "connections that peers opened", &counts.incoming),
            ("refused_connections", "connections that were not made", &counts.refused),
            ("finished_connections", "connections that were closed in order", &counts.finished),
            ("broken_connections", "connections that broke", &counts.broken),
            ("sent_bytes", "bytes from programs to the stack, or of programs that serve", &counts.moved.out),
            ("received_bytes", "bytes from the stack to programs", &counts.moved.back),
            ("refused_packets", "packets of the stack that the kernel did not take", &self.refused_packets),
        ];
        let of_stack = [
            ("received_packets", "packets for the stack", stats.received),
            ("sent_packets", "packets of the stack", stats.sent),
            ("malformed_packets", "packets that cannot be read", stats.malformed),
            ("misaddressed_packets", "packets for or from an impossible address", stats.misaddressed),
            ("unsupported_packets", "packets of another protocol", stats.unsupported),
            ("unknown_segments", "segments for no connection", stats.unknown_connection),
            ("resets", "resets that answered them", stats.resets_sent),
            ("unanswered_packets", "answers left out, as too many waited", stats.replies_dropped),
            ("refused_syns", "SYNs dropped for want of room or memory", stats.syns_dropped),
            ("memory_refusals", "connections refused for want of memory", stats.refused_for_memory),
            ("displaced_half_open", "half-open connections that gave way", stats.half_open_evicted),
            (
                "crowded_segments",
                "segments of which the data were dropped behind too many short unread pieces",
                stats.unread_limit_drops,
            ),
            ("router_reports", "ICMP reports about data under way", stats.icmp_errors),
            ("stale_reports", "ICMP reports about nothing under way", stats.stale_icmp_errors),
            ("retransmissions", "segments sent again, of connections that are over", stats.retransmissions),
            ("door_events", "out-of-order events, of connections that are over", stats.door_events),
        ];
        let gauges = [
            ("connections", "connections of the stack", state.stack.len()),
            ("half_open_connections", "connections whose handshake is not complete", state.stack.half_open()),
            ("memory_bytes", "memory that connections hold or have promised", state.stack.memory() as usize),
        ];
        let own = own.into_iter().map(|(name, doc, value)| Metric::counter(name, doc, value.load(Relaxed)));
        let of_stack = of_stack.into_iter().map(|(name, doc, value)| Metric::counter(name, doc, value));
        let gauges = gauges.into_iter().map(|(name, doc, value)| Metric::gauge(name, doc, value as u64));
        own.chain(of_stack).chain(gauges).collect()
    }
}

/// Returns whether this host forwards packets of the IP version of `address`, as far as the setting can be read.
#[must_use]
pub fn is_forwarding(address: IpAddr) -> bool {
    let path = match address {
        IpAddr::V4(_) => "/proc/sys/net/ipv4/ip_forward",
        IpAddr::V6(_) => "/proc/sys/net/ipv6/conf/all/forwarding",
    };
    std::fs::read_to_string(path).is_ok_and(|text| text.trim() != "0")
}
