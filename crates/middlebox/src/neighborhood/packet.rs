//! Classification of packets, and ECN marks.

use hopline_queue::EcnCapability;
use hopline_wire::ncn;

/// IP protocols of network control (IANA's numbers), which are never dropped: ICMP, IGMP, ICMPv6, EIGRP, OSPF, PIM, VRRP,
/// MANET (RFC 5498), DSR.
const CONTROL_PROTOCOLS: [u8; 9] = [1, 2, 58, 88, 89, 103, 112, 138, DSR];
const DSR: u8 = 48;
/// UDP ports of network control: DHCP, MANET (RFC 5498), RIP, DHCPv6, AODV, OLSR, B.A.T.M.A.N., Babel.
const CONTROL_PORTS: [u16; 12] = [67, 68, 269, 520, 521, 546, 547, 654, 698, 4305, 6696, ncn::PORT];

const UDP: u8 = 17;

/// Returns the ECN capability of a packet. `None` if it belongs to no flow: routing messages and other control,
/// multicast, and packets that are not IP.
pub(super) fn capability(packet: &[u8]) -> Option<EcnCapability> {
    let headers = Headers::of(packet)?;
    if headers.group || CONTROL_PROTOCOLS.contains(&headers.protocol) || is_control(headers) {
        return None;
    }
    // RFC 3168 §5: 00 is not capable, 11 is marked already.
    Some(if headers.ecn == 0 { EcnCapability::NotCapable } else { EcnCapability::Capable })
}

/// Returns the packet with the mark CE (RFC 3168 §5). It must be ECN-capable.
pub(super) fn mark_ce(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    match packet[..] {
        [first, ..] if first >> 4 == 6 => packet[1] |= CONGESTION << 4,
        _ => mark_v4(&mut packet),
    }
    packet
}

/// ECN field "congestion experienced" (CE).
const CONGESTION: u8 = 0b11;

/// Updates the checksum by RFC 1624 §3: HC' = ~(~HC + ~m + m'). An invalid checksum stays invalid.
fn mark_v4(packet: &mut [u8]) {
    let word = |packet: &[u8], at: usize| u32::from(u16::from_be_bytes([packet[at], packet[at + 1]]));
    let before = word(packet, 0);
    packet[1] |= CONGESTION;
    let sum = (!word(packet, 10) & 0xffff) + (!before & 0xffff) + word(packet, 0);
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    packet[10..12].copy_from_slice(&(!folded as u16).to_be_bytes());
}

fn is_control(headers: Headers<'_>) -> bool {
    let &[a, b, c, d, ..] = headers.payload else { return false };
    let ports = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
    headers.protocol == UDP && ports.iter().any(|port| CONTROL_PORTS.contains(port))
}

/// Relevant header fields of a packet.
#[derive(Clone, Copy, Debug)]
struct Headers<'a> {
    protocol: u8,
    ecn: u8,
    /// `true` if the destination is a group or broadcast address.
    group: bool,
    /// Bytes behind the IP headers; empty for a fragment that is not the first.
    payload: &'a [u8],
}

impl<'a> Headers<'a> {
    fn of(packet: &'a [u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => Self::v4(packet),
            6 => Self::v6(packet),
            _ => None,
        }
    }

    fn v4(packet: &'a [u8]) -> Option<Self> {
        const OFFSET: u16 = 0x1fff;
        let header_len = 4 * usize::from(packet[0] & 0xf);
        let header = packet.get(..header_len).filter(|header| header.len() >= 20)?;
        let first = u16::from_be_bytes([header[6], header[7]]) & OFFSET == 0;
        Some(Self {
            protocol: header[9],
            ecn: header[1] & CONGESTION,
            // 224.0.0.0/4 and broadcast.
            group: header[16] >= 224,
            payload: if first { &packet[header_len..] } else { &[] },
        })
    }

    /// Parses IPv6. Options, routing and fragment headers may precede the payload (RFC 8200 §4).
    fn v6(packet: &'a [u8]) -> Option<Self> {
        const LEN: usize = 40;
        const MOST_EXTENSIONS: usize = 8;
        let header = packet.get(..LEN)?;
        let (mut protocol, mut payload) = (header[6], &packet[LEN..]);
        for _ in 0..MOST_EXTENSIONS {
            let &[next, len, high, low, ..] = payload else { break };
            let skipped = match protocol {
                0 | 43 | 60 => 8 + 8 * usize::from(len),
                44 if u16::from_be_bytes([high, low]) >> 3 != 0 => payload.len(),
                44 => 8,
                _ => break,
            };
            (protocol, payload) = (next, payload.get(skipped..).unwrap_or(&[]));
        }
        Some(Self { protocol, ecn: header[1] >> 4 & CONGESTION, group: header[24] == 0xff, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_wire::checksum;
    use proptest::prelude::*;

    fn v4(protocol: u8, tos: u8, to: [u8; 4], payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, tos, 0, (20 + payload.len()) as u8, 1, 2, 0x40, 0, 64, protocol, 0, 0];
        packet.extend([10, 0, 0, 1]);
        packet.extend(to);
        let sum = checksum::internet(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend(payload);
        packet
    }

    fn v6(next: u8, class: u8, to: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60 | class >> 4, class << 4, 0x12, 0x34, 0, payload.len() as u8, next, 64];
        packet.extend([0x20; 16]);
        packet.extend([to; 16]);
        packet.extend(payload);
        packet
    }

    fn ports(from: u16, to: u16) -> Vec<u8> {
        [from.to_be_bytes(), to.to_be_bytes(), [0, 8], [0, 0]].concat()
    }

    const HOST: [u8; 4] = [10, 0, 0, 2];

    #[test]
    fn flows_are_distinguished_from_network_control() {
        let flow = ports(5000, 6000);
        for protocol in [6, 17, 33, 47, 50, 132] {
            assert_eq!(
                capability(&v4(protocol, 0, HOST, &flow)),
                Some(EcnCapability::NotCapable),
                "{protocol}"
            );
            assert_eq!(
                capability(&v6(protocol, 0, 0x20, &flow)),
                Some(EcnCapability::NotCapable),
                "{protocol}"
            );
        }
        for protocol in CONTROL_PROTOCOLS {
            assert_eq!(capability(&v4(protocol, 0, HOST, &flow)), None, "{protocol}");
            assert_eq!(capability(&v6(protocol, 0, 0x20, &flow)), None, "{protocol}");
        }
        for port in CONTROL_PORTS {
            assert_eq!(capability(&v4(17, 0, HOST, &ports(port, 6000))), None, "{port}");
            assert_eq!(capability(&v6(17, 0, 0x20, &ports(5000, port))), None, "{port}");
            assert!(capability(&v4(6, 0, HOST, &ports(port, 6000))).is_some(), "TCP has other ports");
        }
        for group in [[224, 0, 0, 5], [255; 4]] {
            assert_eq!(capability(&v4(17, 0, group, &flow)), None);
        }
        assert_eq!(capability(&v6(17, 0, 0xff, &flow)), None);
    }

    #[test]
    fn extension_headers_are_skipped() {
        let olsr = ports(698, 698);
        let options = [&[17, 0, 0, 0, 0, 0, 0, 0][..], &olsr].concat();
        let fragment = |offset: u16| {
            let [high, low] = (offset << 3).to_be_bytes();
            [&[17, 0, high, low, 0, 0, 0, 1][..], &olsr].concat()
        };
        assert_eq!(capability(&v6(0, 0, 0x20, &options)), None);
        assert_eq!(capability(&v6(60, 0, 0x20, &options)), None);
        assert_eq!(capability(&v6(44, 0, 0x20, &fragment(0))), None);
        assert!(capability(&v6(44, 0, 0x20, &fragment(7))).is_some(), "its ports are not there");
        let mut later = v4(17, 0, HOST, &olsr);
        later[7] = 9;
        assert!(capability(&later).is_some(), "nor here");
    }

    #[test]
    fn marking_changes_only_the_ecn_field_and_the_checksum() {
        for (tos, dscp) in [(0b01, 0), (0b10, 0), (0b11, 0), (0xb9, 0xb8), (0xfe, 0xfc)] {
            let packet = v4(6, tos, HOST, b"abcd");
            assert_eq!(capability(&packet), Some(EcnCapability::Capable));
            assert_eq!(mark_ce(&packet), v4(6, dscp | 0b11, HOST, b"abcd"));
            let packet = v6(6, tos, 0x20, b"abcd");
            assert_eq!(capability(&packet), Some(EcnCapability::Capable));
            assert_eq!(mark_ce(&packet), v6(6, dscp | 0b11, 0x20, b"abcd"));
        }
        let mut wrong = v4(6, 1, HOST, b"abcd");
        wrong[10] ^= 0x40;
        assert_ne!(checksum::internet(&mark_ce(&wrong)[..20]), 0, "damage is not covered up");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic_and_marks_are_kept(bytes in prop::collection::vec(any::<u8>(), 0..90), version in 0..3_u8) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut().filter(|_| version > 0) {
                *first = (if version == 1 { 0x40 } else { 0x60 }) | (*first & 0xf);
            }
            if capability(&bytes) == Some(EcnCapability::Capable) {
                let marked = mark_ce(&bytes);
                prop_assert_eq!(marked.len(), bytes.len());
                prop_assert_eq!(capability(&marked), Some(EcnCapability::Capable));
            }
        }

        #[test]
        fn the_checksum_is_valid_for_any_header(id: u16, tos: u8, to: [u8; 4]) {
            let mut packet = v4(6, tos | 1, to, b"");
            packet[4..6].copy_from_slice(&id.to_be_bytes());
            packet[10..12].fill(0);
            let sum = checksum::internet(&packet);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            prop_assert_eq!(checksum::internet(&mark_ce(&packet)), 0);
        }
    }
}
