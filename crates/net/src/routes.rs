//! Where this machine would send a packet: the kernel's routes, asked one at a time (rtnetlink(7)).

use crate::error::Error;
use crate::netlink::{ATTRIBUTE_HEADER, attribute};
use rustix::net::netdevice::{index_to_name, name_to_index};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind, Read};
use std::net::IpAddr;

/// Asks for routes, in the namespace in which it was opened.
#[derive(Debug)]
pub struct Routes {
    socket: Socket,
    /// Of the last question.
    sequence: u32,
}

/// Where packets for an address go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// To this machine: the address is its own, or everybody's here (broadcast, multicast).
    Here,
    /// To another one, through the interface of this number.
    Beyond(u32),
}

/// Bytes of the header of a message, of what it says of a route, and of both.
const HEADER: usize = 16;
const ROUTE: usize = 12;
const ATTRIBUTES: usize = HEADER + ROUTE;
/// Attributes of a route (linux/rtnetlink.h): the address it is for, the number of the interface.
const DESTINATION: u16 = 1;
const INTERFACE: u16 = 4;
/// `RTN_UNICAST`: the only kind of route that leads to one other host.
const UNICAST: u8 = 1;

impl Routes {
    /// # Errors
    /// If the system has no socket.
    pub fn open() -> Result<Self, Error> {
        let route = Protocol::from(libc::NETLINK_ROUTE);
        let kind = Type::from(libc::SOCK_RAW).nonblocking();
        let socket = Socket::new(Domain::from(libc::AF_NETLINK), kind, Some(route));
        Ok(Self { socket: socket.map_err(|e| Error::new("opening a netlink socket", e))?, sequence: 0 })
    }

    /// Where packets for `address` go, by the rules for packets without marks that this machine sends itself. `None`: nowhere.
    ///
    /// # Errors
    /// What the system says.
    pub fn towards(&mut self, address: IpAddr) -> io::Result<Option<Route>> {
        self.sequence = self.sequence.wrapping_add(1);
        self.socket.send(&question(self.sequence, address))?;
        // The kernel has answered when it has taken the question.
        let mut answer = [0; 4096];
        loop {
            let len = self.socket.read(&mut answer)?;
            let message = answer.get(..len).unwrap_or_default();
            if number(message, 8) == Some(self.sequence) {
                return read(message);
            }
        }
    }

    /// The number of the interface `name`; `None`: there is none now.
    #[must_use]
    pub fn interface(&self, name: &str) -> Option<u32> {
        name_to_index(&self.socket, name).ok()
    }

    /// The name of the interface of this number; `None`: there is none now.
    #[must_use]
    pub fn name_of(&self, interface: u32) -> Option<String> {
        index_to_name(&self.socket, interface).ok()
    }
}

/// `RTM_GETROUTE`.
fn question(sequence: u32, address: IpAddr) -> Vec<u8> {
    let (family, bits, address) = match address {
        IpAddr::V4(address) => (libc::AF_INET, 32, attribute(DESTINATION, &address.octets())),
        IpAddr::V6(address) => (libc::AF_INET6, 128, attribute(DESTINATION, &address.octets())),
    };
    let mut message = Vec::from(((ATTRIBUTES + address.len()) as u32).to_ne_bytes());
    message.extend(libc::RTM_GETROUTE.to_ne_bytes());
    message.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    message.extend(sequence.to_ne_bytes());
    message.extend([0; 4]);
    message.extend([family as u8, bits]);
    message.extend([0; ROUTE - 2]);
    message.extend(address);
    message
}

fn read(message: &[u8]) -> io::Result<Option<Route>> {
    let kind = u16::try_from(number(message, 4).unwrap_or(0) & 0xffff).unwrap_or(0);
    match kind {
        libc::RTM_NEWROUTE => {}
        kind if i32::from(kind) == libc::NLMSG_ERROR => return Ok(None),
        _ => return Err(ErrorKind::InvalidData.into()),
    }
    if message.get(HEADER + 7) != Some(&UNICAST) {
        return Ok(Some(Route::Here));
    }
    Ok(interface(message.get(ATTRIBUTES..).unwrap_or_default()).map(Route::Beyond))
}

/// The number of the interface, among attributes.
fn interface(mut attributes: &[u8]) -> Option<u32> {
    loop {
        let &[a, b, c, d] = attributes.first_chunk()?;
        let (len, kind) = (usize::from(u16::from_ne_bytes([a, b])), u16::from_ne_bytes([c, d]));
        if kind == INTERFACE {
            return number(attributes, ATTRIBUTE_HEADER);
        }
        attributes = attributes.get(len.max(ATTRIBUTE_HEADER).next_multiple_of(4)..)?;
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_machine_leads_here() {
        let mut routes = Routes::open().unwrap();
        for address in ["127.0.0.1", "127.1.2.3", "224.0.0.1"] {
            assert_eq!(routes.towards(address.parse().unwrap()).unwrap(), Some(Route::Here), "{address}");
        }
        assert_eq!(routes.interface("lo"), Some(1));
        assert_eq!(routes.interface("no-such"), None);
    }

    #[test]
    fn what_is_cut_short_has_no_interface() {
        let attributes = attribute(INTERFACE, &7u32.to_ne_bytes());
        assert_eq!(interface(&[attribute(9, b"x"), attributes.clone()].concat()), Some(7));
        for len in 0..attributes.len() {
            assert_eq!(interface(&attributes[..len]), None);
        }
        assert_eq!(interface(&[0; 8]), None);
    }
}
