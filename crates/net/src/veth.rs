//! Two namespaces joined by a cable: a pair of `veth` interfaces, asked for by rtnetlink(7).

use crate::error::Error;
use crate::netlink::attribute;
use crate::netns::Namespace;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};

/// What crosses the cable as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trains {
    /// As the kernel sets up a veth: up to 64 KiB of equal packets of one connection, cut up by whoever has to (GSO).
    Allowed,
    /// Single packets no longer than the MTU, as on a wire behind a card without offload.
    Never,
}

/// Joins two hosts by a cable; both ends are called `name`. They have no address yet, and are down. The cable goes with
/// either host.
///
/// # Errors
/// [`Error::Unavailable`] without `CAP_NET_ADMIN`; what the kernel says, such as that the name is taken.
pub fn join(hosts: [&Namespace; 2], name: &str, trains: Trains) -> Result<(), Error> {
    let [here, there] = hosts;
    let wanted = request(name, trains, there.as_fd().as_raw_fd());
    here.run(|| ask(&wanted))?.map_err(|e| Error::new(format!("making the veth pair {name}"), e))
}

/// `VETH_INFO_PEER` of linux/veth.h.
const PEER: u16 = 1;
/// Of an rtnetlink message, and of what it says of an interface: bytes.
const HEADER: usize = 16;

fn ask(request: &[u8]) -> io::Result<()> {
    let route = Protocol::from(libc::NETLINK_ROUTE);
    // Not connected, it talks to the kernel (netlink(7)).
    let mut socket = Socket::new(Domain::from(libc::AF_NETLINK), Type::from(libc::SOCK_RAW), Some(route))?;
    socket.send(request)?;
    let mut answer = [0; 1024];
    let len = socket.read(&mut answer)?;
    // An error of zero is the acknowledgment.
    match answer[..len].get(HEADER..HEADER + 4) {
        Some(&[a, b, c, d]) => match i32::from_ne_bytes([a, b, c, d]) {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(-error)),
        },
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// `RTM_NEWLINK`, for an interface here and its peer in the namespace `there`.
fn request(name: &str, trains: Trains, there: i32) -> Vec<u8> {
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let mut end = attribute(libc::IFLA_IFNAME, &[name.as_bytes(), &[0]].concat());
    if trains == Trains::Never {
        end.extend(attribute(libc::IFLA_GSO_MAX_SEGS, &1u32.to_ne_bytes()));
    }
    let peer = [&[0; HEADER][..], &end, &attribute(libc::IFLA_NET_NS_FD, &there.to_ne_bytes())].concat();
    let data = attribute(libc::IFLA_INFO_DATA, &attribute(PEER, &peer));
    let info = attribute(libc::IFLA_LINKINFO, &[attribute(libc::IFLA_INFO_KIND, b"veth"), data].concat());
    let body = [&[0; HEADER][..], &end, &info].concat();
    let mut message = Vec::from(((HEADER + body.len()) as u32).to_ne_bytes());
    message.extend(libc::RTM_NEWLINK.to_ne_bytes());
    message.extend((flags as u16).to_ne_bytes());
    message.extend([0; 8]); // sequence number, port: nobody else asks on this socket
    message.extend(body);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_how_long_it_is() {
        for name in ["v", "link0", "a-longer-one"] {
            let request = request(name, Trains::Never, 7);
            assert_eq!(request[..4], (request.len() as u32).to_ne_bytes());
            assert_eq!(request.len() % 4, 0);
        }
    }
}
