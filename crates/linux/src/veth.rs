//! Virtual cable between two namespaces: a pair of `veth` interfaces, created by rtnetlink(7).

use crate::error::Error;
use crate::netlink::{RouteSocket, attribute, message};
use crate::netns::Namespace;
use std::os::fd::{AsFd, AsRawFd};

/// Segment groups on the cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// GSO groups, the kernel's default for veth: up to 64 KiB of equal packets of one connection, segmented where
    /// necessary.
    Gso,
    /// Single packets up to the MTU, as on a wire behind a network card without offload.
    SinglePackets,
}

/// Connects two hosts by a cable; both interfaces are called `name`, have no address and are down. The cable is removed
/// with either host.
///
/// # Errors
/// [`Error::Unavailable`] without `CAP_NET_ADMIN`; errors of the kernel, for instance if the name is in use.
pub fn join(hosts: [&Namespace; 2], name: &str, trains: Offload) -> Result<(), Error> {
    let [here, there] = hosts;
    let wanted = request(name, trains, there.as_fd().as_raw_fd());
    here.run(|| RouteSocket::open()?.request(&wanted))?
        .map_err(|e| Error::new(format!("making the veth pair {name}"), e))
}

/// `VETH_INFO_PEER` of linux/veth.h.
const PEER: u16 = 1;
/// Bytes of `ifinfomsg`.
const HEADER: usize = 16;

/// Returns an `RTM_NEWLINK` request for an interface here and its peer in the namespace `there`.
fn request(name: &str, trains: Offload, there: i32) -> Vec<u8> {
    let mut end = attribute(libc::IFLA_IFNAME, &[name.as_bytes(), &[0]].concat());
    if trains == Offload::SinglePackets {
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
    fn a_request_has_its_length() {
        for name in ["v", "link0", "a-longer-one"] {
            let request = request(name, Offload::SinglePackets, 7);
            assert_eq!(request[..4], (request.len() as u32).to_ne_bytes());
            assert_eq!(request.len() % 4, 0);
        }
    }
}
