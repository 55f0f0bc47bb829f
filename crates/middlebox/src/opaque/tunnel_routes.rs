//! Routes into the tunnel interface. They exist only while the peer is present. Otherwise packets take the routes that
//! they would take without the tunnel.

use hopline_core::{Duration, Instant};
use hopline_linux::Error;
use hopline_linux::netlink::{RouteSocket, attribute, message};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};
use std::io;
use std::net::IpAddr;

/// A network: address and prefix length in bits.
pub type Network = (IpAddr, u8);

/// `RTPROT_STATIC`: routes of an administrator.
const PROTOCOL: u8 = libc::RTPROT_STATIC;
/// Metric of IPv6 routes, below the default of 1024, so that they precede another route to the same network.
const METRIC: u32 = 1;

/// Interval between attempts to change a route that the kernel has rejected.
const RETRY: Duration = Duration::from_secs(1);

/// The routes of a tunnel.
#[derive(Debug)]
pub(super) struct TunnelRoutes {
    kernel: Kernel,
    routes: Routes,
}

impl TunnelRoutes {
    /// Creates the routes object. No route is set yet.
    pub(super) fn new(interface: &str, networks: Vec<Network>) -> Result<Self, Error> {
        let any = socket(AddressFamily::INET, SocketType::DGRAM, None);
        let any = any.map_err(|e| Error::new("opening a socket", e))?;
        let interface = name_to_index(&any, interface).map_err(|e| Error::of_interface(interface, e))?;
        let socket = RouteSocket::open().map_err(|e| Error::new("opening a netlink socket of routes", e))?;
        Ok(Self { kernel: Kernel { socket, interface }, routes: Routes::new(networks) })
    }

    /// Sets or removes the routes. Returns their condition if an attempt may have changed it. Call it again at
    /// [`TunnelRoutes::poll_timeout`].
    pub(super) fn set(&mut self, now: Instant, wanted: Desired) -> Option<RouteStatus<'_>> {
        self.routes.set(now, wanted, |network, wanted| self.kernel.change(network, wanted))
    }

    /// Returns the time of the next attempt after the kernel has rejected a change.
    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.routes.due
    }

    /// Returns the number of routes that are not in the wanted state.
    pub(super) fn missing(&self) -> u64 {
        self.routes.missing().count() as u64
    }
}

/// Wanted state of the routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Desired {
    /// They lead into the tunnel.
    Present,
    /// They do not exist.
    Absent,
}

/// Condition of the routes after an attempt.
#[derive(Debug)]
pub(super) enum RouteStatus<'a> {
    /// All are in the wanted state.
    Done(Desired),
    /// The kernel rejected the change of this one, the first of possibly several.
    Refused(Desired, &'a Network, io::Error),
}

/// States of the routes, and the time of the next attempt.
#[derive(Debug)]
struct Routes {
    wanted: Desired,
    networks: Vec<(Network, Desired)>,
    due: Option<Instant>,
}

impl Routes {
    fn new(networks: Vec<Network>) -> Self {
        let networks = networks.into_iter().map(|network| (network, Desired::Absent)).collect();
        Self { wanted: Desired::Absent, networks, due: None }
    }

    fn missing(&self) -> impl Iterator<Item = &(Network, Desired)> {
        self.networks.iter().filter(|(_, is)| *is != self.wanted)
    }

    fn set(
        &mut self,
        now: Instant,
        wanted: Desired,
        mut change: impl FnMut(Network, Desired) -> io::Result<()>,
    ) -> Option<RouteStatus<'_>> {
        if self.wanted == wanted && self.due.is_none_or(|due| due > now) {
            return None;
        }
        self.wanted = wanted;
        let mut refused = None;
        for (network, is) in self.networks.iter_mut().filter(|(_, is)| *is != wanted) {
            match change(*network, wanted) {
                Ok(()) => *is = wanted,
                Err(error) => refused = refused.or(Some((&*network, error))),
            }
        }
        self.due = refused.is_some().then(|| now + RETRY);
        Some(match refused {
            None => RouteStatus::Done(wanted),
            Some((network, error)) => RouteStatus::Refused(wanted, network, error),
        })
    }
}

/// The kernel's routing table.
#[derive(Debug)]
struct Kernel {
    socket: RouteSocket,
    interface: u32,
}

impl Kernel {
    fn change(&mut self, network: Network, wanted: Desired) -> io::Result<()> {
        // Add the route beside an existing one to the same network, with precedence.
        let (kind, flags, done_before) = match wanted {
            Desired::Present => (libc::RTM_NEWROUTE, libc::NLM_F_CREATE, libc::EEXIST),
            // The kernel removes routes when their interface goes down.
            Desired::Absent => (libc::RTM_DELROUTE, 0, libc::ESRCH),
        };
        match self.socket.request(&message(kind, flags, &self.route(network))) {
            Err(error) if error.raw_os_error() == Some(done_before) => Ok(()),
            asked => asked,
        }
    }

    fn route(&self, (address, prefix): Network) -> Vec<u8> {
        let (family, scope, bytes) = match address {
            IpAddr::V4(address) => (libc::AF_INET, libc::RT_SCOPE_LINK, address.octets().to_vec()),
            IpAddr::V6(address) => (libc::AF_INET6, libc::RT_SCOPE_UNIVERSE, address.octets().to_vec()),
        };
        // `rtmsg`
        let mut body = vec![
            family as u8,
            prefix,
            0,
            0,
            libc::RT_TABLE_MAIN,
            PROTOCOL,
            scope,
            libc::RTN_UNICAST,
            0,
            0,
            0,
            0,
        ];
        if prefix > 0 {
            body.extend(attribute(libc::RTA_DST, &bytes));
        }
        if address.is_ipv6() {
            body.extend(attribute(libc::RTA_PRIORITY, &METRIC.to_ne_bytes()));
        }
        body.extend(attribute(libc::RTA_OIF, &self.interface.to_ne_bytes()));
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETWORKS: [Network; 2] = [
        (IpAddr::V4(std::net::Ipv4Addr::new(10, 1, 0, 0)), 16),
        (IpAddr::V4(std::net::Ipv4Addr::new(10, 2, 0, 0)), 16),
    ];

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// Rejects the second network.
    fn reluctant(tried: &mut Vec<Network>) -> impl FnMut(Network, Desired) -> io::Result<()> {
        |network, _| {
            tried.push(network);
            if network == NETWORKS[1] { Err(io::ErrorKind::NetworkDown.into()) } else { Ok(()) }
        }
    }

    #[test]
    fn a_rejected_route_is_retried_each_second_and_others_are_not() {
        let (mut routes, mut tried) = (Routes::new(NETWORKS.into()), Vec::new());
        for (ms, count) in [(0, 2), (1, 2), (999, 2), (1_000, 3), (1_500, 3), (2_000, 4)] {
            let condition = routes.set(at(ms), Desired::Present, reluctant(&mut tried));
            if let Some(condition) = condition {
                assert!(
                    matches!(condition, RouteStatus::Refused(Desired::Present, &network, _) if network == NETWORKS[1])
                );
            }
            assert_eq!(tried.len(), count, "{ms}");
            assert_eq!(routes.missing().count(), 1);
        }
        assert_eq!(tried[2..], [NETWORKS[1]; 2]);
        let done = routes.set(at(3_000), Desired::Present, |_, _| Ok(()));
        assert!(matches!(done, Some(RouteStatus::Done(Desired::Present))));
        assert_eq!((routes.missing().count(), routes.due), (0, None));
        assert!(routes.set(at(4_000), Desired::Present, |_, _| unreachable!("it is there")).is_none());
    }

    #[test]
    fn only_existing_routes_are_removed() {
        let (mut routes, mut tried, mut taken) = (Routes::new(NETWORKS.into()), Vec::new(), Vec::new());
        let _ = routes.set(at(0), Desired::Present, reluctant(&mut tried));
        let away = routes.set(at(10), Desired::Absent, |network, _| {
            taken.push(network);
            Ok(())
        });
        assert!(matches!(away, Some(RouteStatus::Done(Desired::Absent))));
        assert_eq!((&taken[..], routes.due), (&NETWORKS[..1], None));
    }
}
