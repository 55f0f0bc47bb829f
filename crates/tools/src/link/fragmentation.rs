//! Router on the path with a smaller MTU, and without ICMP messages about it.

use hopline_wire::checksum::ChecksumSum;

const HEADER: usize = 20;
/// Flags and fragment offset of IPv4: DF, MF, and the mask of the offset.
const DONT_FRAGMENT: u16 = 0x4000;
const MORE: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;

/// Returns the output of the router for a packet: the packet itself if it fits, fragments (RFC 791 §3.2) if it may be
/// fragmented, and nothing otherwise. A firewall drops the ICMP message (RFC 1191). Routers do not fragment IPv6 (RFC
/// 8200 §5).
pub(super) fn forward(packet: &[u8], mtu: u16) -> Vec<Vec<u8>> {
    if packet.len() <= mtu.into() {
        return vec![packet.to_vec()];
    }
    let word = |at: usize| packet.get(at..at + 2).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
    let header = usize::from(packet[0] & 15) * 4;
    let flags = word(6);
    // Options would have to be copied or omitted one by one; no host sends any here.
    if packet[0] >> 4 != 4 || flags & DONT_FRAGMENT != 0 || header != HEADER {
        return Vec::new();
    }
    let each = (usize::from(mtu) - HEADER) / 8 * 8;
    let (head, data) = packet.split_at(HEADER);
    let last = data.len().div_ceil(each) - 1;
    let fragments = data.chunks(each).enumerate();
    fragments
        .map(|(number, chunk)| {
            let offset = (flags & OFFSET) + (number * each / 8) as u16;
            let more = if number < last { MORE } else { flags & MORE };
            let mut fragment = [head, chunk].concat();
            fragment[2..4].copy_from_slice(&((HEADER + chunk.len()) as u16).to_be_bytes());
            fragment[6..8].copy_from_slice(&(offset | more).to_be_bytes());
            fragment[10..12].fill(0);
            let sum = header_sum(&fragment);
            fragment[10..12].copy_from_slice(&sum.to_be_bytes());
            fragment
        })
        .collect()
}

/// Returns the correct checksum of the header, or zero if the header has it.
fn header_sum(packet: &[u8]) -> u16 {
    let mut sum = ChecksumSum::default();
    sum.add(&packet[..HEADER]);
    sum.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(len: usize, flags: u16) -> Vec<u8> {
        let mut packet: Vec<u8> = (0..len).map(|i| i as u8).collect();
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        packet[6..8].copy_from_slice(&flags.to_be_bytes());
        packet
    }

    #[test]
    fn packets_that_fit_pass_unchanged() {
        for len in [20, 1399, 1400] {
            assert_eq!(forward(&packet(len, DONT_FRAGMENT), 1400), [packet(len, DONT_FRAGMENT)]);
        }
        let mut v6 = packet(1400, 0);
        v6[0] = 0x60;
        assert_eq!(forward(&v6, 1400), [v6]);
    }

    #[test]
    fn packets_that_must_not_be_fragmented_are_dropped() {
        assert!(forward(&packet(1401, DONT_FRAGMENT), 1400).is_empty());
        let mut v6 = packet(1401, 0);
        v6[0] = 0x60;
        assert!(forward(&v6, 1400).is_empty());
    }

    #[test]
    fn other_packets_are_fragmented() {
        let whole = packet(1500, 0);
        let fragments = forward(&whole, 600);
        let lengths: Vec<_> = fragments.iter().map(Vec::len).collect();
        assert_eq!(lengths, [596, 596, 348]);
        let offsets: Vec<_> =
            fragments.iter().map(|fragment| u16::from_be_bytes([fragment[6], fragment[7]])).collect();
        assert_eq!(offsets, [MORE, MORE | 72, 144]);
        let data: Vec<u8> = fragments.iter().flat_map(|fragment| fragment[20..].to_vec()).collect();
        assert_eq!(data, whole[20..]);
        for fragment in fragments {
            assert_eq!(header_sum(&fragment), 0, "its checksum is right");
        }
    }
}
