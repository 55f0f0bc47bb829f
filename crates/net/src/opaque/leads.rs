//! Routes into the interface of a tunnel. They are there only while the other end is, so that packets go the way that they would without
//! the tunnel while it leads nowhere.

use crate::error::Error;
use crate::netlink::{RouteSocket, attribute, message};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};
use std::io;
use std::net::IpAddr;

/// A network: an address of it, and how many bits are common.
pub type Network = (IpAddr, u8);

/// `RTPROT_STATIC`: an administrator's.
const PROTOCOL: u8 = libc::RTPROT_STATIC;
/// Of routes of IPv6, whose default is 1024: another route to the same network does not go first.
const METRIC: u32 = 1;

/// The routes of a tunnel.
#[derive(Debug)]
pub(super) struct Leads {
    socket: RouteSocket,
    interface: u32,
    networks: Vec<Network>,
    are_there: bool,
}

impl Leads {
    /// None is there yet.
    pub(super) fn new(interface: &str, networks: Vec<Network>) -> Result<Self, Error> {
        let any = socket(AddressFamily::INET, SocketType::DGRAM, None);
        let any = any.map_err(|e| Error::new("opening a socket", e))?;
        let index = name_to_index(&any, interface).map_err(|e| Error::of_interface(interface, e))?;
        let socket = RouteSocket::open().map_err(|e| Error::new("opening a netlink socket of routes", e))?;
        Ok(Self { socket, interface: index, networks, are_there: false })
    }

    /// Has the routes be there or not. One that cannot be changed is left as it is.
    ///
    /// # Errors
    /// The kernel's error for the first route that cannot be made.
    pub(super) fn set(&mut self, are_there: bool) -> io::Result<()> {
        if self.are_there == are_there {
            return Ok(());
        }
        self.are_there = are_there;
        let mut done = Ok(());
        for network in &self.networks {
            // Beside a route to the same network that is there already, and before it.
            let (kind, flags) =
                if are_there { (libc::RTM_NEWROUTE, libc::NLM_F_CREATE) } else { (libc::RTM_DELROUTE, 0) };
            let asked = self.socket.ask(&message(kind, flags, &self.route(*network)));
            done = done.and(asked.or_else(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Ok(()),
                _ => Err(error),
            }));
        }
        done
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
