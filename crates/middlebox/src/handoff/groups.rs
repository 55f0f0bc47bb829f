//! Memberships in multicast groups.

use rustix::net::netdevice::name_to_index;
use socket2::{Domain, InterfaceIndexOrAddress, Socket, Type};
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;

/// Multicast memberships of one interface. A socket has few memberships (`net.ipv4.igmp_max_memberships`, 20 by default), so
/// there may be several sockets. Nothing is received by them.
#[derive(Debug)]
pub(super) struct Groups {
    interface: InterfaceIndexOrAddress,
    sockets: Vec<Socket>,
    /// By which socket, and how many hosts want it: home addresses may share a group.
    members: BTreeMap<Ipv4Addr, Membership>,
}

#[derive(Clone, Copy, Debug)]
struct Membership {
    socket: usize,
    references: u32,
}

impl Groups {
    pub(super) fn new(interface: &str) -> io::Result<Self> {
        let socket = socket()?;
        let index = name_to_index(&socket, interface)?;
        let interface = InterfaceIndexOrAddress::Index(index);
        Ok(Self { interface, sockets: vec![socket], members: BTreeMap::new() })
    }

    /// Joins a group for one more host.
    pub(super) fn join(&mut self, group: Ipv4Addr) -> io::Result<()> {
        if let Some(membership) = self.members.get_mut(&group) {
            membership.references += 1;
            return Ok(());
        }
        let socket = self.ensure_joined(&group)?;
        self.members.insert(group, Membership { socket, references: 1 });
        Ok(())
    }

    /// Leaves a group for one host. The membership ends with its last host.
    pub(super) fn leave(&mut self, group: Ipv4Addr) {
        let Some(membership) = self.members.get_mut(&group) else { return };
        membership.references -= 1;
        if membership.references == 0 {
            // Without its interface there is no membership either.
            let _ = self.sockets[membership.socket].leave_multicast_v4_n(&group, &self.interface);
            self.members.remove(&group);
        }
    }

    /// The number of the socket by which the group has been joined.
    fn ensure_joined(&mut self, group: &Ipv4Addr) -> io::Result<usize> {
        for (number, socket) in self.sockets.iter().enumerate() {
            match socket.join_multicast_v4_n(group, &self.interface) {
                Ok(()) => return Ok(number),
                Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => {}
                Err(e) => return Err(e),
            }
        }
        let another = socket()?;
        another.join_multicast_v4_n(group, &self.interface)?;
        self.sockets.push(another);
        Ok(self.sockets.len() - 1)
    }
}

fn socket() -> io::Result<Socket> {
    Socket::new(Domain::IPV4, Type::DGRAM, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn memberships_may_exceed_the_limit_of_one_socket() {
        let at_once = fs::read_to_string("/proc/sys/net/ipv4/igmp_max_memberships").unwrap();
        let at_once: u8 = at_once.trim().parse().unwrap();
        let all = || (0..=at_once).map(|last| Ipv4Addr::new(239, 255, 77, last));
        let mut groups = Groups::new("lo").unwrap();
        all().for_each(|group| groups.join(group).unwrap());
        assert_eq!((groups.members.len(), groups.sockets.len()), (usize::from(at_once) + 1, 2));
        all().for_each(|group| groups.leave(group));
        assert!(groups.members.is_empty());
    }

    #[test]
    fn a_group_of_two_hosts_is_left_with_the_second_host() {
        let mut groups = Groups::new("lo").unwrap();
        let group = Ipv4Addr::new(239, 255, 77, 1);
        groups.join(group).unwrap();
        groups.join(group).unwrap();
        groups.leave(group);
        assert!(groups.members.contains_key(&group));
        groups.leave(group);
        groups.leave(group);
        assert!(groups.members.is_empty());
    }
}
