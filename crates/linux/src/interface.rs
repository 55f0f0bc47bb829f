//! Configuration of network interfaces: addresses, MTU, routes, state.

use crate::error::Error;
use crate::netlink::{RouteSocket, attribute, message};
use crate::network::Network;
use crate::route_config::MAIN;
use crate::sys::{self, Multicast};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::OwnedFd;

/// An interface of the namespace in which the value was created.
#[derive(Debug)]
pub struct Interface {
    /// Socket for requests, of any kind: it determines the namespace.
    socket: OwnedFd,
    name: String,
}

impl Interface {
    /// Refers to the interface called `name` (at most 15 bytes). Its existence is not checked here, but by later
    /// requests.
    ///
    /// # Errors
    /// If no socket can be opened.
    pub fn named(name: impl Into<String>) -> Result<Self, Error> {
        let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)
            .map_err(|e| Error::new("opening a socket", e))?;
        Ok(Self { socket, name: name.into() })
    }

    /// Sets an address in a network with a prefix of `prefix` bits (0 to 32). The kernel adds the route to that network
    /// once the interface is up.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_ADMIN`.
    pub fn set_address(&self, address: Ipv4Addr, prefix: u8) -> Result<(), Error> {
        self.ioctl_request("setting the address of", |s| sys::set_address(s, &self.name, address))?;
        self.ioctl_request("setting the netmask of", |s| sys::set_netmask(s, &self.name, mask(prefix)))
    }

    /// Sets the MTU, in bytes.
    ///
    /// # Errors
    /// If the kernel finds it too small or too large; [`Error::Unavailable`] without `CAP_NET_ADMIN`.
    pub fn set_mtu(&self, bytes: u16) -> Result<(), Error> {
        self.ioctl_request("setting the MTU of", |s| sys::set_mtu(s, &self.name, bytes))
    }

    /// Brings the interface up without multicast, so that the kernel sends no membership reports.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_ADMIN`.
    pub fn up(&self) -> Result<(), Error> {
        self.ioctl_request("bringing up", |s| sys::bring_up(s, &self.name, Multicast::Off))
    }

    /// Brings the interface up with multicast, which IPv6 and routing daemons need.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_ADMIN`.
    pub fn up_with_multicast(&self) -> Result<(), Error> {
        self.ioctl_request("bringing up", |s| sys::bring_up(s, &self.name, Multicast::On))
    }

    /// Sets the MAC address of an Ethernet interface, which must be down.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_ADMIN`; [`Error::System`] if it is a group address.
    pub fn set_mac_address(&self, address: [u8; 6]) -> Result<(), Error> {
        self.ioctl_request("setting the MAC address of", |s| {
            sys::set_ethernet_address(s, &self.name, address)
        })
    }

    /// Adds a route for `destination/prefix` through this interface, which must be up. `0.0.0.0/0` is the default route.
    ///
    /// # Errors
    /// If bits of `destination` are set outside the prefix; [`Error::Unavailable`] without `CAP_NET_ADMIN`.
    pub fn add_route(&self, destination: Ipv4Addr, prefix: u8) -> Result<(), Error> {
        self.ioctl_request("adding a route through", |s| {
            sys::add_route(s, &self.name, destination, mask(prefix))
        })
    }

    /// Adds an address in a network with a prefix of `prefix` bits. Duplicate address detection (RFC 4862 §5.4) is
    /// skipped for IPv6: no other host has the address.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_ADMIN`; [`Error::System`] if it has the address.
    pub fn add_address(&self, address: IpAddr, prefix: u8) -> Result<(), Error> {
        let octets = octets(address);
        let flags = if address.is_ipv6() { libc::IFA_F_NODAD as u8 } else { 0 };
        // `ifaddrmsg`.
        let mut body = vec![family(address), prefix, flags, libc::RT_SCOPE_UNIVERSE];
        let create = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        self.netlink_request("adding an address to", |index| {
            body.extend(index.to_ne_bytes());
            body.extend(attribute(libc::IFA_LOCAL, &octets));
            body.extend(attribute(libc::IFA_ADDRESS, &octets));
            message(libc::RTM_NEWADDR, create, &body)
        })
    }

    /// Keeps the kernel from generating an IPv6 address for the interface, and from sending packets of its own with it
    /// (`IFLA_INET6_ADDR_GEN_MODE`).
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_ADMIN`; [`Error::System`] if it has no IPv6.
    pub fn disable_ipv6_autoconfiguration(&self) -> Result<(), Error> {
        /// From linux/if_link.h; libc lacks it.
        const ADDR_GEN_MODE: u16 = 8;
        const NONE: u8 = 1;
        self.netlink_request("setting how addresses are generated of", |index| {
            let of_v6 = attribute(libc::AF_INET6 as u16, &attribute(ADDR_GEN_MODE, &[NONE]));
            // `ifinfomsg`.
            let mut body = vec![0; 4];
            body.extend(index.to_ne_bytes());
            body.extend([0; 8]);
            body.extend(attribute(libc::IFLA_AF_SPEC, &of_v6));
            message(libc::RTM_SETLINK, 0, &body)
        })
    }

    /// Adds a route for `network` through this interface, which must be up: through the router `via`, or directly to
    /// neighbours. Does nothing if the route exists.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_ADMIN`; [`Error::System`] if `via` is not reached by this interface.
    pub fn route(&self, network: Network, via: Option<IpAddr>) -> Result<(), Error> {
        let scope = if via.is_some() { libc::RT_SCOPE_UNIVERSE } else { libc::RT_SCOPE_LINK };
        // `rtmsg`.
        let mut body = vec![family(network.address), network.prefix, 0, 0, MAIN as u8];
        body.extend([libc::RTPROT_STATIC, scope, libc::RTN_UNICAST, 0, 0, 0, 0]);
        let replace = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        self.netlink_request("adding a route through", |index| {
            body.extend(attribute(libc::RTA_DST, &octets(network.address)));
            body.extend(attribute(libc::RTA_OIF, &index.to_ne_bytes()));
            if let Some(router) = via {
                body.extend(attribute(libc::RTA_GATEWAY, &octets(router)));
            }
            message(libc::RTM_NEWROUTE, replace, &body)
        })
    }

    /// Renames the interface, which must be down. This value keeps the old name.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_ADMIN`; [`Error::System`] if it is up, or the name is taken or too long.
    pub fn rename(&self, name: &str) -> Result<(), Error> {
        self.netlink_request("renaming", |index| {
            // `ifinfomsg`.
            let mut body = vec![0; 4];
            body.extend(index.to_ne_bytes());
            body.extend([0; 8]);
            body.extend(attribute(libc::IFLA_IFNAME, &[name.as_bytes(), &[0]].concat()));
            message(libc::RTM_SETLINK, 0, &body)
        })
    }

    fn netlink_request(&self, doing: &str, request: impl FnOnce(u32) -> Vec<u8>) -> Result<(), Error> {
        self.ioctl_request(doing, |socket| {
            let index = name_to_index(socket, &self.name)?;
            RouteSocket::open()?.request(&request(index))
        })
    }

    fn ioctl_request(
        &self,
        doing: &str,
        request: impl FnOnce(&OwnedFd) -> io::Result<()>,
    ) -> Result<(), Error> {
        request(&self.socket).map_err(|e| Error::new(format!("{doing} {}", self.name), e))
    }
}

const fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// Returns the network mask of `prefix` bits.
fn mask(prefix: u8) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_a_mask() {
        let masks = [0, 1, 24, 32, 200].map(|prefix| mask(prefix).to_string());
        assert_eq!(masks, ["0.0.0.0", "128.0.0.0", "255.255.255.0", "255.255.255.255", "255.255.255.255"]);
    }
}
