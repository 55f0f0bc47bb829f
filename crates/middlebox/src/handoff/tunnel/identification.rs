//! Identifications for packets that their senders have not numbered.

use super::packet::set_identification;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Numbers atomic packets, for each mobile host. Such packets need no identification (RFC 6864 §4.1), and Linux gives many
/// of them 0. By these numbers a mobile host says what it has received. All other packets keep their identifications, which
/// belong to their fragments.
#[derive(Debug)]
pub(crate) struct IdAllocator {
    /// By mobile host: the last number.
    last: BTreeMap<Ipv4Addr, u16>,
}

/// Offsets in an IPv4 header, in bytes: of the flags and the fragment offset, and of the protocol.
const FRAGMENT: usize = 6;
const PROTOCOL: usize = 9;
/// Don't Fragment; More Fragments and the offset.
const DONT_FRAGMENT: u16 = 0x4000;
const IS_FRAGMENT: u16 = 0x3fff;
/// The authentication header (RFC 4302 §3.3.3.1.1.1) is a proof of the identification, too.
const AUTHENTICATED: u8 = 51;

impl IdAllocator {
    /// That of these hosts.
    pub(crate) fn new(mobiles: impl IntoIterator<Item = Ipv4Addr>, first: u16) -> Self {
        Self { last: mobiles.into_iter().map(|mobile| (mobile, first)).collect() }
    }

    /// Numbers a whole packet for a mobile host.
    pub(crate) fn assign(&mut self, mobile: Ipv4Addr, packet: &mut [u8]) {
        let Some(last) = self.last.get_mut(&mobile).filter(|_| is_atomic(packet)) else { return };
        *last = last.wrapping_add(1);
        set_identification(packet, *last);
    }
}

/// Returns whether a packet is atomic: it is no fragment and must not be fragmented (RFC 6864 §4). Packets with an
/// authentication header do not count.
fn is_atomic(packet: &[u8]) -> bool {
    let fragment = u16::from_be_bytes([packet[FRAGMENT], packet[FRAGMENT + 1]]);
    fragment & DONT_FRAGMENT != 0 && fragment & IS_FRAGMENT == 0 && packet[PROTOCOL] != AUTHENTICATED
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_wire::checksum;
    use hopline_wire::ipv4::{Ecn, Header, Protocol};

    const HOSTS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 9), Ipv4Addr::new(10, 0, 0, 10)];

    fn packet(to: Ipv4Addr, protocol: Protocol) -> Vec<u8> {
        let mut packet = Vec::new();
        Header { src: to, dst: to, ttl: 9, protocol, ecn: Ecn::NotCapable, id: 0 }.emit(0, &mut packet);
        packet
    }

    fn numbered(numbering: &mut IdAllocator, mut packet: Vec<u8>) -> u16 {
        numbering.assign(Ipv4Addr::from(*packet[16..].first_chunk::<4>().unwrap()), &mut packet);
        u16::from_be_bytes([packet[4], packet[5]])
    }

    #[test]
    fn each_host_has_its_own_identifications() {
        let mut numbering = IdAllocator::new(HOSTS, 65_534);
        let ids =
            [0, 0, 1, 0].map(|host: usize| numbered(&mut numbering, packet(HOSTS[host], Protocol::Udp)));
        assert_eq!(ids, [65_535, 0, 65_535, 1]);
        let mut packet = packet(HOSTS[1], Protocol::Tcp);
        numbering.assign(HOSTS[1], &mut packet);
        assert_eq!(checksum::internet(&packet), 0);
    }

    #[test]
    fn fragmentable_and_authenticated_packets_are_unchanged() {
        let mut numbering = IdAllocator::new(HOSTS, 6);
        for flags in [0, 0x20, 0x60] {
            let mut packet = packet(HOSTS[0], Protocol::Udp);
            packet[FRAGMENT] = flags;
            assert_eq!(numbered(&mut numbering, packet), 0, "{flags}");
        }
        assert_eq!(numbered(&mut numbering, packet(HOSTS[0], Protocol::Other(AUTHENTICATED))), 0);
        assert_eq!(numbered(&mut numbering, packet(HOSTS[0], Protocol::Tcp)), 7, "none was used up");
    }
}
