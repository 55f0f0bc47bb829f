//! Bits flipped in packets.

use hopline_core::RandomStream;
use hopline_wire::ipv4;

/// Effect of corruption on a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Damage {
    /// Flips a bit behind the IP header. The kernel's UDP and TCP checksums detect it, and the kernel drops the packet.
    #[default]
    Detected,
    /// Flips a bit of the UDP or TCP payload and corrects the checksum: only the application can detect it. Packets
    /// without payload are not changed.
    Undetected,
}

impl Damage {
    pub(super) fn corrupt(self, packet: &mut [u8], random: &mut RandomStream) {
        let from = match (self, Transport::of(packet)) {
            (Self::Detected, _) => header_len(packet),
            (Self::Undetected, Some(transport)) => transport.payload,
            (Self::Undetected, None) => packet.len(),
        };
        let bits = packet.len().saturating_sub(from) as u32 * 8;
        if bits == 0 {
            return;
        }
        let bit = random.below(bits) as usize;
        let (at, mask) = (from + bit / 8, 1 << (bit % 8));
        match self {
            Self::Detected => packet[at] ^= mask,
            Self::Undetected => {
                let changed = packet[at] ^ mask;
                write_and_fix_checksum(packet, at, changed);
            }
        }
    }
}

/// Returns the length of the IP header. IPv4 headers have no options here, as hosts send them.
fn header_len(packet: &[u8]) -> usize {
    match packet.first().map(|first| first >> 4) {
        Some(6) => V6_HEADER_LEN,
        _ => ipv4::HEADER_LEN,
    }
}

/// Length of an IPv6 header without extensions (RFC 8200 §3).
pub(super) const V6_HEADER_LEN: usize = 40;

/// Offsets in a UDP or TCP packet, from the start of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transport {
    pub(super) protocol: u8,
    pub(super) header: usize,
    checksum: usize,
    payload: usize,
}

pub(super) const UDP: u8 = 17;
const TCP: u8 = 6;

impl Transport {
    /// Returns the offsets. `None` if the packet is neither UDP nor TCP, is a later fragment, has extension headers, or
    /// is truncated.
    pub(super) fn of(packet: &[u8]) -> Option<Self> {
        let (header, fragment, protocol) = match packet.first()? >> 4 {
            6 => (V6_HEADER_LEN, 0, *packet.get(6)?),
            _ => {
                let fragment = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x1fff;
                (usize::from(packet.first()? & 0xf) * 4, fragment, *packet.get(9)?)
            }
        };
        let (checksum, payload) = match protocol {
            UDP => (header + 6, header + 8),
            TCP => (header + 16, header + usize::from(packet.get(header + 12)? >> 4) * 4),
            _ => return None,
        };
        (fragment == 0 && payload <= packet.len() && checksum + 2 <= payload).then_some(Self {
            protocol,
            header,
            checksum,
            payload,
        })
    }
}

/// Replaces the byte at `at`, behind the IP header, and updates the UDP or TCP checksum, so that it is as valid as
/// before.
pub(super) fn write_and_fix_checksum(packet: &mut [u8], at: usize, byte: u8) {
    let Some(transport) = Transport::of(packet) else { return };
    let high = (at - transport.header).is_multiple_of(2);
    let word = |byte: u8| if high { u16::from(byte) << 8 } else { u16::from(byte) };
    let (old, new) = (word(packet[at]), word(byte));
    packet[at] = byte;
    let sum = &mut packet[transport.checksum..transport.checksum + 2];
    let before = u16::from_be_bytes([sum[0], sum[1]]);
    // RFC 768: zero means "no checksum".
    if transport.protocol == UDP && before == 0 {
        return;
    }
    let mut after = update_checksum(before, old, new);
    if transport.protocol == UDP && after == 0 {
        after = 0xffff;
    }
    sum.copy_from_slice(&after.to_be_bytes());
}

/// Returns the checksum after the change of one word (RFC 1624 §3, equation 3).
fn update_checksum(checksum: u16, old: u16, new: u16) -> u16 {
    let mut sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use hopline_core::Purpose;
    use hopline_wire::checksum::ChecksumSum;
    use std::net::Ipv4Addr;

    /// Returns an IPv4 packet with a valid transport checksum.
    pub(in super::super) fn packet(protocol: u8, ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
        let header_len = if protocol == UDP { 8 } else { 20 };
        let mut packet = vec![0; ipv4::HEADER_LEN + header_len];
        packet[0] = 0x45;
        packet[9] = protocol;
        packet[12..20].copy_from_slice(&[10, 80, 0, 1, 10, 80, 0, 2]);
        packet[20..22].copy_from_slice(&ports[0].to_be_bytes());
        packet[22..24].copy_from_slice(&ports[1].to_be_bytes());
        if protocol == TCP {
            packet[32] = 5 << 4;
        }
        packet.extend_from_slice(payload);
        let at = Transport::of(&packet).map_or(0, |t| t.checksum);
        if at > 0 {
            let sum = sum(&packet);
            packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        }
        packet
    }

    /// Returns zero if the transport checksum is valid.
    pub(in super::super) fn sum(packet: &[u8]) -> u16 {
        let header = ipv4::Header {
            src: Ipv4Addr::from_octets(packet[12..16].try_into().unwrap()),
            dst: Ipv4Addr::from_octets(packet[16..20].try_into().unwrap()),
            ttl: 64,
            protocol: if packet[9] == UDP { ipv4::Protocol::Udp } else { ipv4::Protocol::Tcp },
            ecn: ipv4::Ecn::NotCapable,
            id: 0,
        };
        let mut sum = ChecksumSum::pseudo_header(&header, packet.len() - 20);
        sum.add(&packet[20..]);
        sum.finish()
    }

    fn flipped(a: &[u8], b: &[u8]) -> u32 {
        a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
    }

    fn stream() -> RandomStream {
        RandomStream::keyed(1, 0, 0, Purpose::Emulation)
    }

    #[test]
    fn detected_damage_flips_one_bit_behind_the_ip_header() {
        let mut random = stream();
        for protocol in [UDP, TCP, 1] {
            let whole = packet(protocol, [1, 2], b"seven..");
            for _ in 0..200 {
                let mut damaged = whole.clone();
                Damage::Detected.corrupt(&mut damaged, &mut random);
                assert_eq!((flipped(&whole, &damaged), &damaged[..20]), (1, &whole[..20]));
            }
        }
    }

    #[test]
    fn undetected_damage_flips_one_payload_bit_and_fixes_the_checksum() {
        let mut random = stream();
        for (protocol, header) in [(UDP, 28), (TCP, 40)] {
            let whole = packet(protocol, [1, 2], b"seven..");
            assert_eq!(sum(&whole), 0);
            for _ in 0..200 {
                let mut damaged = whole.clone();
                Damage::Undetected.corrupt(&mut damaged, &mut random);
                assert_eq!(flipped(&whole[header..], &damaged[header..]), 1);
                assert_eq!(sum(&damaged), 0, "{damaged:?}");
            }
        }
    }

    #[test]
    fn ipv6_is_damaged_behind_its_header() {
        let mut whole = vec![0; 60];
        whole[0] = 0x60;
        whole[6] = UDP;
        let (mut noticed, mut hidden) = (whole.clone(), whole.clone());
        Damage::Detected.corrupt(&mut noticed, &mut stream());
        assert_eq!((flipped(&whole, &noticed), &noticed[..40]), (1, &whole[..40]));
        Damage::Undetected.corrupt(&mut hidden, &mut stream());
        assert_eq!((flipped(&whole[48..], &hidden[48..]), &hidden[..40]), (1, &whole[..40]));
    }

    #[test]
    fn packets_without_payload_cannot_be_damaged_undetected() {
        let mut random = stream();
        for whole in [packet(UDP, [1, 2], b""), packet(1, [1, 2], b"ping"), vec![0x45; 3], Vec::new()] {
            let mut damaged = whole.clone();
            Damage::Undetected.corrupt(&mut damaged, &mut random);
            assert_eq!(damaged, whole);
        }
        let mut short = vec![0x45; 20];
        Damage::Detected.corrupt(&mut short, &mut random);
        assert_eq!(short, [0x45; 20]);
    }

    #[test]
    fn a_datagram_without_checksum_stays_without() {
        let mut damaged = packet(UDP, [1, 2], b"data");
        damaged[26..28].fill(0);
        Damage::Undetected.corrupt(&mut damaged, &mut stream());
        assert_eq!(damaged[26..28], [0, 0]);
    }
}
