//! Addresses and ports of a TCP segment, parsed from its packet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Protocol number of TCP.
const TCP: u8 = 6;
/// Length of the fixed IPv6 header.
const IPV6: usize = 40;

/// Addresses and ports of the client and of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FlowEndpoints {
    client: (IpAddr, u16),
    server: (IpAddr, u16),
}

impl FlowEndpoints {
    pub(crate) fn new(client: SocketAddr, server: SocketAddr) -> Self {
        Self { client: (client.ip(), client.port()), server: (server.ip(), server.port()) }
    }

    /// Returns both ends of the connection that a SYN opens. `None` as for [`endpoints`].
    pub(crate) fn of(packet: &[u8]) -> Option<Self> {
        endpoints(packet).map(|[client, server]| Self::new(client, server))
    }

    pub(crate) fn client(self) -> SocketAddr {
        self.client.into()
    }

    pub(crate) fn server(self) -> SocketAddr {
        self.server.into()
    }
}

/// Returns source and destination of a packet. `None` if it is not TCP, a later fragment, or has IPv6 extension headers.
pub(crate) fn endpoints(packet: &[u8]) -> Option<[SocketAddr; 2]> {
    let (header, source, destination) = match packet.first()? >> 4 {
        4 => of_ipv4(packet)?,
        6 => of_ipv6(packet)?,
        _ => return None,
    };
    let &[a, b, c, d] = packet.get(header..)?.first_chunk()?;
    let [source_port, destination_port] = [[a, b], [c, d]].map(u16::from_be_bytes);
    Some([SocketAddr::new(source, source_port), SocketAddr::new(destination, destination_port)])
}

/// Returns the source address of a packet with any payload.
pub(crate) fn source(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(packet.get(12..16)?).ok()?).into()),
        6 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(packet.get(8..24)?).ok()?).into()),
        _ => None,
    }
}

fn of_ipv4(packet: &[u8]) -> Option<(usize, IpAddr, IpAddr)> {
    let header = usize::from(packet.first()? & 0xf) * 4;
    let &[from, to] = packet.get(12..20)?.as_chunks::<4>().0 else { return None };
    let is_first = u16::from_be_bytes(*packet.get(6..)?.first_chunk()?) & 0x1fff == 0;
    (packet.get(9) == Some(&TCP) && is_first)
        .then(|| (header, Ipv4Addr::from(from).into(), Ipv4Addr::from(to).into()))
}

fn of_ipv6(packet: &[u8]) -> Option<(usize, IpAddr, IpAddr)> {
    let &[from, to] = packet.get(8..IPV6)?.as_chunks::<16>().0 else { return None };
    (packet.get(6) == Some(&TCP)).then(|| (IPV6, Ipv6Addr::from(from).into(), Ipv6Addr::from(to).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4() -> Vec<u8> {
        let mut packet = vec![0; 40];
        (packet[0], packet[9]) = (0x45, TCP);
        packet[12..20].copy_from_slice(&[10, 9, 0, 1, 10, 8, 0, 1]);
        packet[20..24].copy_from_slice(&[0x9c, 0x40, 0, 80]);
        packet
    }

    fn v6() -> Vec<u8> {
        let mut packet = vec![0; 60];
        (packet[0], packet[6]) = (0x60, TCP);
        (packet[8], packet[23], packet[24], packet[39]) = (0xfd, 1, 0xfe, 2);
        packet[40..44].copy_from_slice(&[0x9c, 0x40, 0, 80]);
        packet
    }

    #[test]
    fn both_endpoints_are_read_over_ipv4_and_ipv6() {
        let read = |packet: &[u8]| endpoints(packet).map(|ends| ends.map(|end| end.to_string()));
        assert_eq!(read(&v4()), Some(["10.9.0.1:40000", "10.8.0.1:80"].map(String::from)));
        assert_eq!(read(&v6()), Some(["[fd00::1]:40000", "[fe00::2]:80"].map(String::from)));
    }

    #[test]
    fn the_source_is_read_before_extension_headers() {
        let read = |packet: &[u8]| source(packet).map(|source| source.to_string());
        let mut extended = v6();
        extended[6] = 0;
        assert_eq!((endpoints(&extended), read(&extended)), (None, Some("fd00::1".into())));
        assert_eq!(read(&v4()), Some("10.9.0.1".into()));
        assert_eq!([read(&v4()[..15]), read(&v6()[..23]), read(&[]), read(&[0x50; 60])], [const { None }; 4]);
    }

    #[test]
    fn truncated_packets_fragments_and_other_protocols_have_no_endpoints() {
        for whole in [v4(), v6()] {
            let ports = if whole[0] == 0x45 { 24 } else { 44 };
            (0..ports).for_each(|len| assert_eq!(endpoints(&whole[..len]), None, "{len}"));
        }
        let with = |mut packet: Vec<u8>, at: usize, byte| {
            packet[at] = byte;
            endpoints(&packet)
        };
        assert_eq!(with(v4(), 7, 1), None);
        assert_eq!((with(v4(), 9, 17), with(v6(), 6, 17), with(v4(), 0, 0x75)), (None, None, None));
    }
}
