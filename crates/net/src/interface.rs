//! Network interfaces: address, MTU, routes, up.

use crate::error::Error;
use crate::sys;
use rustix::net::{AddressFamily, SocketType, socket};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

/// An interface of the namespace in which the value was made. IPv4 only.
#[derive(Debug)]
pub struct Interface {
    /// Every request needs a socket, of any kind: it says which namespace is meant.
    socket: OwnedFd,
    name: String,
}

impl Interface {
    /// The interface called `name` (at most 15 bytes), whether there is one or not: what is then asked of it says so.
    ///
    /// # Errors
    /// If there is no socket to be had.
    pub fn named(name: impl Into<String>) -> Result<Self, Error> {
        let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)
            .map_err(|e| Error::new("opening a socket", e))?;
        Ok(Self { socket, name: name.into() })
    }

    /// Gives it an address in a network of which the first `prefix` bits (0 to 32) are common; the kernel adds the
    /// route to that network once the interface is up.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_ADMIN`.
    pub fn set_address(&self, address: Ipv4Addr, prefix: u8) -> Result<(), Error> {
        self.ask("setting the address of", |s| sys::set_address(s, &self.name, address))?;
        self.ask("setting the netmask of", |s| sys::set_netmask(s, &self.name, mask(prefix)))
    }

    /// Sets the longest IP packet it takes, in bytes.
    ///
    /// # Errors
    /// If the kernel finds it too small or too large; [`Error::Unavailable`] without `CAP_NET_ADMIN`.
    pub fn set_mtu(&self, bytes: u16) -> Result<(), Error> {
        self.ask("setting the MTU of", |s| sys::set_mtu(s, &self.name, bytes))
    }

    /// Brings it up.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_ADMIN`.
    pub fn up(&self) -> Result<(), Error> {
        self.ask("bringing up", |s| sys::bring_up(s, &self.name))
    }

    /// Sends packets for `destination/prefix` through this interface, which must be up. `0.0.0.0/0` is the default
    /// route.
    ///
    /// # Errors
    /// If bits of `destination` are set outside the prefix; [`Error::Unavailable`] without `CAP_NET_ADMIN`.
    pub fn add_route(&self, destination: Ipv4Addr, prefix: u8) -> Result<(), Error> {
        self.ask("adding a route through", |s| sys::add_route(s, &self.name, destination, mask(prefix)))
    }

    fn ask(&self, doing: &str, request: impl FnOnce(&OwnedFd) -> io::Result<()>) -> Result<(), Error> {
        request(&self.socket).map_err(|e| Error::new(format!("{doing} {}", self.name), e))
    }
}

/// The first `prefix` bits.
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
