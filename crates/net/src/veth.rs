//! Two namespaces joined by a cable: a pair of `veth` interfaces, asked for by rtnetlink(7).

use crate::error::Error;
use crate::netlink::{RouteSocket, attribute, message};
use crate::netns::Namespace;
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
    here.run(|| RouteSocket::open()?.ask(&wanted))?
        .map_err(|e| Error::new(format!("making the veth pair {name}"), e))
}

/// `VETH_INFO_PEER` of linux/veth.h.
const PEER: u16 = 1;
/// Of what a message says of an interface (`ifinfomsg`): bytes.
const HEADER: usize = 16;

/// `RTM_NEWLINK`, for an interface here and its peer in the namespace `there`.
fn request(name: &str, trains: Trains, there: i32) -> Vec<u8> {
    let mut end = attribute(libc::IFLA_IFNAME, &[name.as_bytes(), &[0]].concat());
    if trains == Trains::Never {
        end.extend(attribute(libc::IFLA_GSO_MAX_SEGS, &1u32.to_ne_bytes()));
    }
    let peer = [&[0; HEADER][..], &end, &attribute(libc::IFLA_NET_NS_FD, &there.to_ne_bytes())].concat();
    let data = attribute(libc::IFLA_INFO_DATA, &attribute(PEER, &peer));
    let info = attribute(libc::IFLA_LINKINFO, &[attribute(libc::IFLA_INFO_KIND, b"veth"), data].concat());
    let body = [&[0; HEADER][..], &end, &info].concat();
    message(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &body)
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
