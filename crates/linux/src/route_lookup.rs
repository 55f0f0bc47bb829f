//! Route lookups in the kernel, one packet at a time (rtnetlink(7)).

use crate::error::Error;
use crate::netlink::{HEADER_LEN, attribute, attributes, messages, ne32};
use rustix::net::netdevice::{index_to_name, name_to_index};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Looks up routes in the namespace in which it was opened.
#[derive(Debug)]
pub struct Routes {
    socket: Socket,
    /// Sequence number of the last request.
    sequence: u32,
}

/// Destination of packets for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// This host: its own address, or a broadcast or multicast address.
    Local,
    /// Another host, through the interface with this index.
    Remote(u32),
}

/// A TCP packet, as far as routing rules (ip-rule(8)) and routes consider it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteQuery {
    /// Source address. `None`: the kernel chooses one of this host.
    pub source: Option<IpAddr>,
    /// Destination address.
    pub destination: IpAddr,
    /// Source and destination port, if rules may match them.
    pub ports: Option<[u16; 2]>,
    /// Index of the incoming interface; `None`: a local packet.
    pub in_interface: Option<u32>,
    /// Index of the interface by which it must leave, if any.
    pub out_interface: Option<u32>,
    /// Firewall mark; 0: none.
    pub mark: u32,
    /// Treatment of `out_interface` if no table has a route by it.
    pub fallback: NoRouteFallback,
}

/// Treatment of a required interface for which no table has a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRouteFallback {
    /// The kernel's assumption, for IPv4, that the destination is a neighbour there.
    Neighbour,
    /// There is no route.
    Nothing,
}

/// Next hop of a route to another host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Index of the interface.
    pub interface: u32,
    /// The gateway, or the destination itself if it is a neighbour.
    pub next: IpAddr,
}

/// Bytes of `struct rtmsg`.
const RTMSG_LEN: usize = 12;
/// Attributes of a route that libc does not define (linux/rtnetlink.h).
const IP_PROTOCOL: u16 = 27;
const SOURCE_PORT: u16 = 28;
const DESTINATION_PORT: u16 = 29;
/// `RTM_F_FIB_MATCH`: requests the entry of the table.
const FIB_MATCH: u32 = 0x2000;
/// `RTN_UNICAST`: the only type of route that leads to one other host.
const UNICAST: u8 = 1;

/// The kernel's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Unreachable,
    Local,
    /// `next`: `None` for a gateway of the other IP version.
    Remote {
        interface: u32,
        next: Option<IpAddr>,
    },
}

impl RouteQuery {
    /// Returns a local packet for `destination`, without a mark.
    pub const fn to_destination(destination: IpAddr) -> Self {
        Self {
            source: None,
            destination,
            ports: None,
            in_interface: None,
            out_interface: None,
            mark: 0,
            fallback: NoRouteFallback::Neighbour,
        }
    }
}

impl Routes {
    /// # Errors
    /// If the system has no socket.
    pub fn open() -> Result<Self, Error> {
        let route = Protocol::from(libc::NETLINK_ROUTE);
        let kind = Type::from(libc::SOCK_RAW).nonblocking();
        let socket = Socket::new(Domain::from(libc::AF_NETLINK), kind, Some(route));
        Ok(Self { socket: socket.map_err(|e| Error::new("opening a netlink socket", e))?, sequence: 0 })
    }

    /// Returns the destination of local packets for `address`, by the rules for packets without marks. `None`: there is
    /// no route.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn lookup(&mut self, address: IpAddr) -> io::Result<Option<Route>> {
        Ok(match self.query(&RouteQuery::to_destination(address))? {
            Answer::Unreachable => None,
            Answer::Local => Some(Route::Local),
            Answer::Remote { interface, .. } => Some(Route::Remote(interface)),
        })
    }

    /// Returns the next hop of a packet; `None` if it is for this host, has no route, or has a gateway of the other IP
    /// version.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn next_hop(&mut self, asked: &RouteQuery) -> io::Result<Option<Hop>> {
        Ok(match self.query(asked)? {
            Answer::Remote { interface, next: Some(next) } => Some(Hop { interface, next }),
            _ => None,
        })
    }

    fn query(&mut self, asked: &RouteQuery) -> io::Result<Answer> {
        self.sequence = self.sequence.wrapping_add(1);
        self.socket.send(&encode_query(self.sequence, asked))?;
        // The kernel has answered when `send` returns.
        let mut answer = [0; 4096];
        loop {
            let len = self.socket.read(&mut answer)?;
            let first = messages(answer.get(..len).unwrap_or_default()).next();
            let Some(Ok(message)) = first else { return Err(ErrorKind::InvalidData.into()) };
            if message.sequence == self.sequence {
                return read(message.kind, message.body, asked.destination);
            }
        }
    }

    /// Returns the index of the interface `name`; `None` if it does not exist at present.
    #[must_use]
    pub fn interface(&self, name: &str) -> Option<u32> {
        name_to_index(&self.socket, name).ok()
    }

    /// Returns the name of the interface with this index; `None` if it does not exist at present.
    #[must_use]
    pub fn name_of(&self, interface: u32) -> Option<String> {
        index_to_name(&self.socket, interface).ok()
    }
}

/// Returns an `RTM_GETROUTE` request.
fn encode_query(sequence: u32, asked: &RouteQuery) -> Vec<u8> {
    let (family, bits) =
        if asked.destination.is_ipv4() { (libc::AF_INET, 32) } else { (libc::AF_INET6, 128) };
    let source_bits = if asked.source.is_some() { bits } else { 0 };
    let flags = if asked.fallback == NoRouteFallback::Nothing { FIB_MATCH } else { 0 };
    let mut body = vec![family as u8, bits, source_bits, 0, 0, 0, 0, 0];
    body.extend(flags.to_ne_bytes());
    let mut put = |kind: u16, value: &[u8]| body.extend(attribute(kind, value));
    put(libc::RTA_DST, &octets(asked.destination));
    asked.source.iter().for_each(|source| put(libc::RTA_SRC, &octets(*source)));
    asked.in_interface.iter().for_each(|interface| put(libc::RTA_IIF, &interface.to_ne_bytes()));
    asked.out_interface.iter().for_each(|interface| put(libc::RTA_OIF, &interface.to_ne_bytes()));
    if asked.mark != 0 {
        put(libc::RTA_MARK, &asked.mark.to_ne_bytes());
    }
    if let Some([source, destination]) = asked.ports {
        put(IP_PROTOCOL, &[libc::IPPROTO_TCP as u8]);
        put(SOURCE_PORT, &source.to_be_bytes());
        put(DESTINATION_PORT, &destination.to_be_bytes());
    }
    let mut message = Vec::from(((HEADER_LEN + body.len()) as u32).to_ne_bytes());
    message.extend(libc::RTM_GETROUTE.to_ne_bytes());
    message.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    message.extend(sequence.to_ne_bytes());
    message.extend([0; 4]);
    message.extend(body);
    message
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().into(),
        IpAddr::V6(address) => address.octets().into(),
    }
}

fn read(kind: u16, body: &[u8], destination: IpAddr) -> io::Result<Answer> {
    match kind {
        libc::RTM_NEWROUTE => {}
        kind if i32::from(kind) == libc::NLMSG_ERROR => return Ok(Answer::Unreachable),
        _ => return Err(ErrorKind::InvalidData.into()),
    }
    if body.get(7) != Some(&UNICAST) {
        return Ok(Answer::Local);
    }
    let (mut interface, mut next) = (None, Some(destination));
    // A truncated message has no more attributes.
    for (kind, value) in attributes(body.get(RTMSG_LEN..).unwrap_or_default()).map_while(Result::ok) {
        match kind {
            libc::RTA_OIF => interface = ne32(value, 0),
            libc::RTA_GATEWAY => next = address(value),
            libc::RTA_VIA => next = None,
            _ => {}
        }
    }
    Ok(interface.map_or(Answer::Unreachable, |interface| Answer::Remote { interface, next }))
}

fn address(value: &[u8]) -> Option<IpAddr> {
    let v4 = || <[u8; 4]>::try_from(value).ok().map(|octets| Ipv4Addr::from(octets).into());
    let v6 = || <[u8; 16]>::try_from(value).ok().map(|octets| Ipv6Addr::from(octets).into());
    v4().or_else(v6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_host_is_local() {
        let mut routes = Routes::open().unwrap();
        for address in ["127.0.0.1", "127.1.2.3", "224.0.0.1"] {
            assert_eq!(routes.lookup(address.parse().unwrap()).unwrap(), Some(Route::Local), "{address}");
        }
        assert_eq!(routes.interface("lo"), Some(1));
        assert_eq!(routes.interface("no-such"), None);
    }

    #[test]
    fn truncated_answers_have_no_route() {
        let destination = IpAddr::from([10, 9, 0, 1]);
        let attributes =
            [attribute(libc::RTA_GATEWAY, &[10, 8, 0, 1]), attribute(libc::RTA_OIF, &7u32.to_ne_bytes())]
                .concat();
        let mut body = vec![0; RTMSG_LEN];
        body[7] = UNICAST;
        body.extend(&attributes);
        let next = Some(IpAddr::from([10, 8, 0, 1]));
        let read = |body: &[u8]| read(libc::RTM_NEWROUTE, body, destination).unwrap();
        assert_eq!(read(&body), Answer::Remote { interface: 7, next });
        for len in RTMSG_LEN..body.len() {
            assert_eq!(read(&body[..len]), Answer::Unreachable);
        }
        let without = [&body[..RTMSG_LEN], &attributes[8..]].concat();
        assert_eq!(read(&without), Answer::Remote { interface: 7, next: Some(destination) });
        let other = [&body[..], &attribute(libc::RTA_VIA, &[0; 18])].concat();
        assert_eq!(read(&other), Answer::Remote { interface: 7, next: None });
    }
}
