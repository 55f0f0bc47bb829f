//! Link with local retransmission between any two Linux hosts: a TUN interface at each end, and UDP between them.
//!
//! ```text
//! ip route add 10.82.0.0/24 dev dproxy0
//! ```
//!
//! Packets that the kernel routes into the interface cross the link by the protocol of [`hopline_proxy::tunnel`], and
//! leave the interface at the other end: IPv4 and IPv6 with any payload. `docs/protocols/d-proxy.md` has the details.
//!
//! Without the peer the tunnel leads nowhere. Its routes ([`Config::routes`]) therefore exist only while the peer is
//! present; otherwise packets take the remaining routes.
//!
//! Drops of the local interface's queue are reported to the state machine, which does not repair them. A drop in another
//! queue on the path counts as a link loss and is repaired again and again, so that a loss-based sender fills that queue
//! and keeps it full. If the rate of the link is known, use [`Shaping`]: packets then wait here, where they can be
//! dropped in time. ECN marks are not copied between the inner and the outer IP header.

mod metrics;
mod shaping;
mod tunnel_routes;
mod underlay;

use crate::peer_socket::{PeerSocket, SendResult, random_incarnation};
use crate::service::{Notice, Service, ServiceStatus, Severity};
use bytes::Bytes;
use hopline_core::Instant;
use hopline_linux::Error;
use hopline_linux::event_loop::{Clock, MetricsTimer, WaitResult};
use hopline_linux::{Interface, Tun, TunLifetime};
use hopline_proxy::PeerStatus;
use hopline_proxy::dproxy::Key;
use hopline_proxy::tunnel::{self, MAX_OVERHEAD, RecoveryScheme, Tunnel, TunnelAction};
use shaping::Shaper;
pub use shaping::Shaping;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
pub use tunnel_routes::Network;
use tunnel_routes::{Desired, RouteStatus, TunnelRoutes};
use underlay::Underlay;

/// Packets read from the interface before other events are processed.
const BATCH: usize = 64;
/// Maximum bytes of an IP packet.
const MAX_PACKET: usize = 65_535;
/// Minimum MTU of the interface: that of IPv6 (RFC 8200 §5).
const MIN_MTU: u16 = 1280;
/// Length of the UDP header.
const UDP: usize = hopline_wire::udp::HEADER_LEN;

/// Configuration of one end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Name of the interface: 1 to 15 bytes. Default `dproxy0`.
    pub tun: String,
    /// Lifetime of the interface. Default [`TunLifetime::Process`].
    pub lifetime: TunLifetime,
    /// Local address of the UDP socket.
    pub local: IpAddr,
    /// Address of the peer, of the same IP version. Datagrams from other addresses are ignored.
    pub peer: IpAddr,
    /// UDP port at both ends. Default 1022.
    pub port: u16,
    /// Pre-shared key.
    pub key: Key,
    /// Repair scheme, the same at both ends. Default [`RecoveryScheme::Nack`].
    pub repair: RecoveryScheme,
    /// Maximum bytes of an IP packet that passes between the ends without fragmentation. Default 1500. The interface's
    /// MTU is this value less the overhead of a datagram: 56 bytes over IPv4, 76 over IPv6. It must be at least 1280, for
    /// IPv6.
    pub mtu: u16,
    /// Networks behind the peer: routed into the interface while the peer is present. Default none.
    pub routes: Vec<Network>,
    /// Local queue before a link with a known rate. Default none: packets are sent at once.
    pub shaping: Option<Shaping>,
}

impl Config {
    /// Returns the defaults for these addresses.
    #[must_use]
    pub fn new(local: IpAddr, peer: IpAddr, key: Key) -> Self {
        Self {
            tun: "dproxy0".into(),
            lifetime: TunLifetime::Process,
            local,
            peer,
            port: hopline_wire::dproxy::PORT,
            key,
            repair: RecoveryScheme::Nack(hopline_proxy::dproxy::opaque::Config::default()),
            mtu: 1500,
            routes: Vec::new(),
            shaping: None,
        }
    }

    /// Returns the MTU of the interface.
    ///
    /// # Errors
    /// The requirement that the configuration violates.
    pub fn tun_mtu(&self) -> Result<u16, &'static str> {
        if self.local.is_ipv4() != self.peer.is_ipv4() {
            return Err("`local` and `peer` must be addresses of the same version of IP");
        }
        if let Some(shaping) = &self.shaping {
            shaping.codel().validate()?;
        }
        let mtu = self.mtu.saturating_sub((self.ip_header() + UDP + MAX_OVERHEAD) as u16);
        if mtu < MIN_MTU { Err("`mtu` must be at least 1336 over IPv4, 1356 over IPv6") } else { Ok(mtu) }
    }

    const fn ip_header(&self) -> usize {
        if self.local.is_ipv4() { 20 } else { 40 }
    }
}

/// One end of a link, ready to run.
#[derive(Debug)]
pub struct Opaque {
    tun: Tun,
    lifetime: TunLifetime,
    peer: IpAddr,
    socket: PeerSocket,
    tunnel: Tunnel,
    shaper: Option<Shaper>,
    routes: TunnelRoutes,
    underlay: Option<Underlay>,
    /// Last reported state of the peer.
    peer_state: PeerStatus,
    /// Overhead of a datagram, in bytes.
    overhead: usize,
    counts: Counts,
}

/// Counters outside the state machine.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Packets that the interface rejected.
    tun_write_failures: u64,
    datagrams_sent: u64,
    bytes_sent: u64,
    datagrams_received: u64,
    /// Attempts after which a route was not in the wanted state.
    missing_routes: u64,
}

impl Opaque {
    /// Creates the interface, or attaches to a persistent one, brings it up, and opens the socket, in the calling
    /// thread's namespace. The caller assigns addresses.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_ADMIN` and `/dev/net/tun`; [`Error::System`] if the name or the port is in
    /// use, if `local` is no address of this host, if there is no route to `peer`, or if the configuration is invalid.
    pub fn open(config: &Config) -> Result<Self, Error> {
        let mtu = config.tun_mtu().map_err(|why| {
            Error::system("setting up a link", io::Error::new(io::ErrorKind::InvalidInput, why))
        })?;
        let socket = PeerSocket::open(config.local, config.peer, config.port, None)?;
        let tun = Tun::open(&config.tun)?;
        let interface = Interface::named(tun.name())?;
        interface.set_mtu(mtu)?;
        interface.up()?;
        let leads = TunnelRoutes::new(tun.name(), config.routes.clone())?;
        let underlay = Underlay::for_peer(config.peer, &config.routes)?;
        let life = random_incarnation()?;
        let machine = tunnel::Config { key: config.key, recovery: config.repair };
        Ok(Self {
            tun,
            lifetime: config.lifetime,
            peer: config.peer,
            socket,
            tunnel: Tunnel::new(machine, life),
            shaper: config.shaping.map(Shaper::new),
            routes: leads,
            underlay,
            peer_state: PeerStatus::default(),
            overhead: config.ip_header() + UDP,
            counts: Counts::default(),
        })
    }

    /// Returns the name of the interface.
    #[must_use]
    pub fn interface(&self) -> &str {
        self.tun.name()
    }

    /// Processes received packets and expired timers. Returns whether more packets may be waiting.
    fn poll(&mut self, now: Instant, buffer: &mut [u8]) -> io::Result<bool> {
        let from_socket = self.receive_from_socket(now)?;
        let from_tun = self.receive_from_tun(now, buffer)?;
        if self.tunnel.poll_timeout().is_some_and(|due| due <= now) {
            self.tunnel.handle_timeout(now);
            self.handle_outputs(now);
        }
        self.send_shaped(now);
        Ok(from_socket || from_tun)
    }

    fn receive_from_socket(&mut self, now: Instant) -> io::Result<bool> {
        let mut received = Vec::new();
        let more = self.socket.receive(|datagram| received.push(datagram))?;
        self.counts.datagrams_received += received.len() as u64;
        for datagram in received {
            self.tunnel.handle_datagram(now, &datagram);
            self.handle_outputs(now);
        }
        Ok(more)
    }

    fn receive_from_tun(&mut self, now: Instant, buffer: &mut [u8]) -> io::Result<bool> {
        for _ in 0..BATCH {
            let Some(len) = self.tun.receive(buffer)? else { return Ok(false) };
            let packet = Bytes::copy_from_slice(&buffer[..len]);
            match &mut self.shaper {
                Some(shaper) => shaper.push(now, packet),
                None => {
                    self.tunnel.send(now, packet);
                    self.handle_outputs(now);
                }
            }
        }
        Ok(true)
    }

    /// Sends packets that the rate of the link allows now.
    fn send_shaped(&mut self, now: Instant) {
        while let Some(packet) = self.shaper.as_mut().and_then(|shaper| shaper.pop(now)) {
            self.tunnel.send(now, packet);
            self.handle_outputs(now);
        }
    }

    /// Executes the actions of the state machine.
    fn handle_outputs(&mut self, now: Instant) {
        while let Some(does) = self.tunnel.poll_action() {
            match does {
                TunnelAction::Deliver(packet) => {
                    self.counts.tun_write_failures += u64::from(self.tun.send(&packet).is_err())
                }
                TunnelAction::SendDatagram { queue_position: turn, datagram, packet } => {
                    match (self.socket.send(turn, &datagram), packet) {
                        (SendResult::Sent, _) => {
                            self.counts.datagrams_sent += 1;
                            let len = datagram.len() + self.overhead;
                            self.counts.bytes_sent += len as u64;
                            self.shaper.iter_mut().for_each(|shaper| shaper.record_sent(now, len));
                        }
                        (SendResult::Failed, Some(packet)) => self.tunnel.on_queue_drop(packet),
                        (SendResult::Failed, None) => {}
                    }
                }
            }
        }
    }

    /// Sets or removes the routes when the peer appears or disappears, and reports it.
    fn update_routes(&mut self, now: Instant, ledger: &ServiceStatus) {
        let peer = self.tunnel.peer();
        let wanted = if peer == PeerStatus::Present { Desired::Present } else { Desired::Absent };
        if wanted == Desired::Present && self.peer_state != peer {
            self.bind_underlay();
        }
        if let Some(condition) = self.routes.set(now, wanted) {
            self.counts.missing_routes += u64::from(matches!(condition, RouteStatus::Refused(..)));
            route_notice(&condition, self.tun.name(), &ledger.notices())
                .into_iter()
                .for_each(|notice| ledger.report(notice));
        }
        if wanted == Desired::Absent && self.routes.missing() == 0 {
            self.release_underlay();
        }
        if self.peer_state == peer {
            return;
        }
        self.peer_state = peer;
        let without = "packets take the routes beside the tunnel";
        Notice::of_peer(peer, &self.peer.to_string(), without)
            .into_iter()
            .for_each(|notice| ledger.report(notice));
    }

    /// Binds the socket so that datagrams avoid the tunnel's own routes, which are set next. If that fails, the peer
    /// counts as absent, and all is retried.
    fn bind_underlay(&mut self) {
        if let Some(underlay) = &mut self.underlay {
            let _ = underlay.bind(&self.socket, self.tun.name());
        }
    }

    fn release_underlay(&mut self) {
        if let Some(underlay) = &mut self.underlay {
            let _ = underlay.release(&self.socket);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let shaped = self.shaper.as_ref().and_then(Shaper::poll_timeout);
        self.tunnel.poll_timeout().into_iter().chain(shaped).chain(self.routes.poll_timeout()).min()
    }
}

impl Service for Opaque {
    /// A persistent interface becomes so only here: one with a service that never ran is not left behind.
    fn run(mut self: Box<Self>, stop: BorrowedFd<'_>, ledger: &ServiceStatus) -> io::Result<()> {
        self.tun.set_lifetime(self.lifetime)?;
        let (clock, mut written, mut buffer) = (Clock::start(), MetricsTimer::default(), vec![0; MAX_PACKET]);
        loop {
            let now = clock.now();
            let due = if self.poll(now, &mut buffer)? { Some(now) } else { self.poll_timeout() };
            self.update_routes(now, ledger);
            if written.is_due(now) {
                ledger.set_metrics(self.metrics());
            }
            if clock.wait([self.tun.as_fd(), self.socket.as_fd()], stop, due)? == WaitResult::Stopped {
                // A persistent interface leads nowhere from now on.
                let _ = self.routes.set(now, Desired::Absent);
                ledger.set_metrics(self.metrics());
                return Ok(());
            }
        }
    }
}

/// Subject of the notice about routes.
const ROUTES: &str = "routes";

/// Returns the notice about the routes. `None` if all is well and was before.
fn route_notice(condition: &RouteStatus<'_>, tun: &str, said: &[Notice]) -> Option<Notice> {
    let (tone, text) = match condition {
        RouteStatus::Done(_) if said.iter().all(|notice| notice.subject != ROUTES) => return None,
        RouteStatus::Done(Desired::Present) => (Severity::Normal, format!("all routes lead into {tun}")),
        RouteStatus::Done(Desired::Absent) => {
            (Severity::Normal, format!("no route leads into {tun} while the other end is not there"))
        }
        RouteStatus::Refused(wanted, (address, prefix), error) => {
            let (refused, meanwhile) = match wanted {
                Desired::Present => ("set", "packets take the routes beside the tunnel"),
                Desired::Absent => ("removed", "packets that take it are lost"),
            };
            let route = format!("the route to {address}/{prefix} through {tun}");
            let text = format!("{route} cannot be {refused}: {error}; tried again each second, {meanwhile}");
            (Severity::Warning, text)
        }
    };
    Some(Notice { subject: ROUTES.into(), severity: tone, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn route_changes_are_reported_once_and_only_after_a_rejection() {
        let ledger = ServiceStatus::default();
        let network = ("10.1.0.0".parse().unwrap(), 16);
        let refused =
            || RouteStatus::Refused(Desired::Present, &network, io::Error::from_raw_os_error(libc::ENETDOWN));
        let is = |condition: RouteStatus<'_>| {
            route_notice(&condition, "dproxy0", &ledger.notices()).into_iter().for_each(|n| ledger.report(n));
            ledger.notices().first().map(|notice| (notice.severity, notice.text.clone()))
        };
        assert_eq!(is(RouteStatus::Done(Desired::Present)), None);
        let text = "the route to 10.1.0.0/16 through dproxy0 cannot be set: Network is down (os error 100); \
                    tried again each second, packets take the routes beside the tunnel";
        for _ in 0..2 {
            assert_eq!(is(refused()), Some((Severity::Warning, text.to_owned())));
        }
        assert_eq!(
            is(RouteStatus::Done(Desired::Present)),
            Some((Severity::Normal, "all routes lead into dproxy0".into()))
        );
    }

    #[test]
    fn the_interface_mtu_fits_into_a_datagram() {
        let [a, b, v6]: [IpAddr; 3] = ["10.0.0.1", "10.0.0.2", "fd00::1"].map(|text| text.parse().unwrap());
        let config = Config::new(a, b, Key::new([0; 32]));
        assert_eq!(config.tun_mtu(), Ok(1444));
        assert_eq!(Config { local: v6, peer: v6, ..config.clone() }.tun_mtu(), Ok(1424));
        assert!(Config { peer: v6, ..config.clone() }.tun_mtu().is_err());
        assert_eq!(Config { mtu: 1336, ..config.clone() }.tun_mtu(), Ok(1280));
        assert!(Config { mtu: 1335, ..config }.tun_mtu().is_err());
    }
}
