//! In-place changes of the acknowledgment number, SACK blocks and timestamp of a packet. All other bytes stay
//! as they were, including unknown options.

use super::ParsedSegment;
use crate::packet::AckContent;
use hopline_wire::checksum::ChecksumSum;
use hopline_wire::tcp::{HEADER_LEN, SackBlock};

/// Offsets in the TCP header, bytes.
const ACK: usize = 8;
const DATA_OFFSET: usize = 12;
const CHECKSUM: usize = 16;
/// Kinds of options (RFC 9293 §3.1, RFC 2018 §3).
const OPTION_END: u8 = 0;
const OPTION_NOP: u8 = 1;
const OPTION_SACK: u8 = 5;
/// RFC 7323 §3.2: kind and length.
const OPTION_TIMESTAMPS: u8 = 8;
const TIMESTAMPS_LEN: u8 = 10;
/// Length of a SACK block, bytes.
const BLOCK_LEN: usize = 8;

/// Returns the packet with this acknowledgment number and these SACK blocks. Removed blocks become NOPs, so
/// that nothing moves. `packet` has been parsed, so the length of every option is valid.
pub(super) fn with_ack(says: AckContent, parsed: &ParsedSegment, packet: &[u8]) -> Vec<u8> {
    modify_segment(parsed, packet, |segment| {
        segment[ACK..ACK + 4].copy_from_slice(&says.ack.0.to_be_bytes());
        replace_sack_blocks(options_of(segment), says.sack.as_slice());
    })
}

/// Returns the packet with this TSval. It has been parsed, as for [`with_ack`]; a packet without timestamps is
/// unchanged.
pub(super) fn with_timestamp(clock: u32, parsed: &ParsedSegment, packet: &[u8]) -> Vec<u8> {
    modify_segment(parsed, packet, |segment| {
        for_each_option(options_of(segment), |option| {
            if let [OPTION_TIMESTAMPS, TIMESTAMPS_LEN, value @ ..] = option {
                value[..4].copy_from_slice(&clock.to_be_bytes());
            }
        });
    })
}

/// Returns the packet with its segment changed and a correct checksum.
fn modify_segment(parsed: &ParsedSegment, packet: &[u8], change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut packet = packet.to_vec();
    let segment = &mut packet[parsed.segment_range.clone()];
    change(segment);
    segment[CHECKSUM..CHECKSUM + 2].fill(0);
    let mut sum = ChecksumSum::pseudo_header(&parsed.ip, segment.len());
    sum.add(segment);
    segment[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.finish().to_be_bytes());
    packet
}

fn options_of(segment: &mut [u8]) -> &mut [u8] {
    let data = usize::from(segment[DATA_OFFSET] >> 4) * 4;
    &mut segment[HEADER_LEN..data]
}

/// Replaces SACK blocks in place, in order; blocks without a place are left out.
fn replace_sack_blocks(options: &mut [u8], mut blocks: &[SackBlock]) {
    for_each_option(options, |option| {
        if option[0] == OPTION_SACK {
            let places = option.len().saturating_sub(2) / BLOCK_LEN;
            let (here, later) = blocks.split_at(blocks.len().min(places));
            write_blocks(option, here);
            blocks = later;
        }
    });
}

fn for_each_option(mut options: &mut [u8], mut what: impl FnMut(&mut [u8])) {
    loop {
        let len = match *options {
            [] | [OPTION_END, ..] | [_] => return,
            [OPTION_NOP, ..] => 1,
            [_, len, ..] => usize::from(len),
        };
        let Some((option, rest)) = options.split_at_mut_checked(len.max(1)) else { return };
        what(option);
        options = rest;
    }
}

fn write_blocks(option: &mut [u8], blocks: &[SackBlock]) {
    let len = if blocks.is_empty() { 0 } else { 2 + BLOCK_LEN * blocks.len() };
    let (said, left) = option.split_at_mut(len);
    left.fill(OPTION_NOP);
    if said.is_empty() {
        return;
    }
    said[1] = len as u8;
    for (to, block) in said[2..].chunks_exact_mut(BLOCK_LEN).zip(blocks) {
        to[..4].copy_from_slice(&block.left.0.to_be_bytes());
        to[4..].copy_from_slice(&block.right.0.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use hopline_core::Seq32;
    use hopline_wire::ip::Header;
    use hopline_wire::tcp::{SackBlocks, Segment};
    use proptest::prelude::*;

    fn block(left: u32) -> SackBlock {
        SackBlock { left: Seq32(left), right: Seq32(left.wrapping_add(10)) }
    }

    fn blocks(lefts: &[u32]) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        for &left in lefts {
            assert!(blocks.push(block(left)));
        }
        blocks
    }

    /// Versions of IP.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Version {
        V4,
        V6,
    }

    const VERSIONS: [Version; 2] = [Version::V4, Version::V6];

    impl Version {
        /// Returns the length of the headers before the segment.
        fn headers(self) -> usize {
            match self {
                Self::V4 => 24,
                Self::V6 => 48,
            }
        }

        /// Returns a header with DSCP 10 and options, or a flow label and an extension header, before a
        /// segment of this length.
        fn header(self, len: usize) -> Vec<u8> {
            match self {
                Self::V4 => {
                    let mut header = vec![0x46, 0x28, 0, (24 + len) as u8, 0x12, 0x34, 0x40, 0, 63, 6, 0, 0];
                    header.extend([10, 0, 0, 2, 10, 0, 0, 1, 1, 1, 1, 0]);
                    let sum = hopline_wire::checksum::internet(&header);
                    header[10..12].copy_from_slice(&sum.to_be_bytes());
                    header
                }
                Self::V6 => {
                    let mut header = vec![0x62, 0x8a, 0xbc, 0xde, 0, (8 + len) as u8, 60, 63];
                    for host in [2, 1] {
                        header.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
                    }
                    header.extend([6, 0, 1, 4, 0, 0, 0, 0]);
                    header
                }
            }
        }
    }

    /// Returns an ACK with these option bytes, behind an IP header with options, and before link-layer
    /// padding.
    fn packet(version: Version, options: &[u8], data: &[u8]) -> Bytes {
        assert!(options.len().is_multiple_of(4));
        let len = HEADER_LEN + options.len() + data.len();
        let mut packet = version.header(len);
        packet.extend([0, 9, 0, 80, 0, 0, 0, 77, 0, 0, 1, 0]);
        packet.extend([((HEADER_LEN + options.len()) / 4 * 16) as u8, 0x10, 2, 0, 0, 0, 0, 0]);
        packet.extend(options);
        packet.extend(data);
        let (ip, place) = Header::parse(&packet).unwrap();
        let mut sum = ChecksumSum::pseudo_header(&ip, len);
        sum.add(&packet[place.clone()]);
        packet[place.start + CHECKSUM..place.start + CHECKSUM + 2]
            .copy_from_slice(&sum.finish().to_be_bytes());
        packet.extend([0xee; 6]);
        packet.into()
    }

    /// Returns the packet after the change, parsed and as bytes; its checksums are correct.
    fn with_ack_checked(packet: &Bytes, ack: u32, lefts: &[u32]) -> (Segment<Bytes>, Vec<u8>) {
        let parsed = ParsedSegment::parse(packet).unwrap();
        let bytes = with_ack(AckContent { ack: Seq32(ack), sack: blocks(lefts) }, &parsed, packet);
        assert_eq!(bytes.len(), packet.len());
        let after = ParsedSegment::parse(&bytes.clone().into()).expect("it is a packet with right checksums");
        (after.segment, bytes)
    }

    /// Returns two NOPs and SACK with these blocks.
    fn sack(lefts: &[u32]) -> Vec<u8> {
        let mut option = vec![OPTION_NOP, OPTION_NOP, OPTION_SACK, 2 + 8 * lefts.len() as u8];
        for &left in lefts {
            option.extend(left.to_be_bytes());
            option.extend(block(left).right.0.to_be_bytes());
        }
        option
    }

    /// Unknown option.
    const UNKNOWN: [u8; 4] = [30, 4, 0xab, 0xcd];

    #[test]
    fn sack_blocks_are_replaced_and_removed_ones_become_nops() {
        for version in VERSIONS {
            let options = [&UNKNOWN[..], &sack(&[500, 700])].concat();
            let packet = packet(version, &options, b"data");
            let (segment, bytes) = with_ack_checked(&packet, u32::MAX, &[600]);
            assert_eq!((segment.ack, segment.options.sack), (Seq32(u32::MAX), blocks(&[600])));
            assert_eq!((&segment.payload[..], segment.window, segment.seq), (&b"data"[..], 512, Seq32(77)));
            let options = &bytes[version.headers() + HEADER_LEN..][..24];
            assert_eq!(options[..16], [&UNKNOWN[..], &sack(&[600])].concat());
            assert_eq!(options[16..], [OPTION_NOP; 8]);
        }
    }

    #[test]
    fn only_acknowledgment_blocks_and_checksum_change() {
        for version in VERSIONS {
            let packet = packet(version, &sack(&[500]), b"odd");
            let (_, bytes) = with_ack_checked(&packet, 0x0102_0304, &[0x0a0b_0c0d]);
            let changed: Vec<usize> = (0..packet.len()).filter(|&at| packet[at] != bytes[at]).collect();
            let allowed =
                |at: &usize| matches!(at.checked_sub(version.headers()), Some(8..12 | 16..18 | 24..32));
            assert!(changed.iter().all(allowed), "{changed:?}");
        }
    }

    #[test]
    fn only_tsval_is_changed() {
        for version in VERSIONS {
            let clocks = [OPTION_NOP, OPTION_NOP, OPTION_TIMESTAMPS, TIMESTAMPS_LEN, 0, 0, 0, 1, 0, 0, 0, 2];
            let packet = packet(version, &[&UNKNOWN[..], &clocks].concat(), b"odd");
            let before = ParsedSegment::parse(&packet).unwrap();
            let bytes = with_timestamp(0xdead_beef, &before, &packet);
            let mut after = ParsedSegment::parse(&bytes.clone().into())
                .expect("it is a packet with right checksums")
                .segment;
            let clock = after.options.timestamps.as_mut().unwrap();
            assert_eq!((clock.value, clock.echo), (0xdead_beef, 2));
            clock.value = 1;
            assert_eq!(after, before.segment);
            assert_eq!(bytes[version.headers() + HEADER_LEN..][..4], UNKNOWN);
        }
    }

    #[test]
    fn packet_without_timestamps_gets_none() {
        let packet = packet(Version::V4, &sack(&[1]), b"data");
        assert_eq!(with_timestamp(7, &ParsedSegment::parse(&packet).unwrap(), &packet), packet);
    }

    #[test]
    fn sack_blocks_are_removed_if_none_are_given() {
        let (segment, bytes) = with_ack_checked(&packet(Version::V4, &sack(&[1, 2, 3]), b""), 9, &[]);
        assert!(segment.options.sack.is_empty());
        assert_eq!(bytes[44..72], [OPTION_NOP; 28]);
    }

    #[test]
    fn excess_blocks_are_omitted() {
        let (segment, _) = with_ack_checked(&packet(Version::V4, &sack(&[1]), b""), 9, &[4, 5, 6]);
        assert_eq!(segment.options.sack, blocks(&[4]));
        let (segment, _) = with_ack_checked(&packet(Version::V4, &[], b""), 9, &[4]);
        assert!(segment.options.sack.is_empty());
    }

    #[test]
    fn two_sack_options_are_filled_in_order() {
        let packet = packet(Version::V4, &[sack(&[1]), sack(&[2])].concat(), b"");
        assert_eq!(with_ack_checked(&packet, 9, &[7, 8]).0.options.sack, blocks(&[7, 8]));
        assert_eq!(with_ack_checked(&packet, 9, &[7]).0.options.sack, blocks(&[7]));
    }

    /// Generates options, or bytes that may be some, up to 40 bytes.
    fn options() -> impl Strategy<Value = Vec<u8>> {
        let clocks = vec![OPTION_NOP, OPTION_NOP, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let known = vec![
            vec![OPTION_NOP; 4],
            UNKNOWN.to_vec(),
            clocks,
            sack(&[1]),
            sack(&[2, 3]),
            vec![OPTION_END; 4],
        ];
        let piece = prop_oneof![
            9 => prop::sample::select(known),
            1 => prop::array::uniform4(any::<u8>()).prop_map(|bytes| bytes.to_vec()),
        ];
        prop::collection::vec(piece, 0..=4).prop_map(|pieces| {
            let mut options = pieces.concat();
            options.truncate(40);
            options
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// A packet that can be parsed can be changed, whatever its options are, and holds the new values.
        #[test]
        fn any_options_are_rewritten_validly(
            version in prop::sample::select(&VERSIONS[..]),
            options in options(),
            ack in any::<u32>(),
        ) {
            let packet = packet(version, &options, b"data");
            let Ok(ParsedSegment { segment: before, .. }) = ParsedSegment::parse(&packet) else { return Ok(()) };
            let lefts: Vec<u32> = (0..before.options.sack.len() as u32 / 2).collect();
            let (after, _) = with_ack_checked(&packet, ack, &lefts);
            prop_assert_eq!(after.ack, Seq32(ack));
            if !before.options.nack {
                prop_assert_eq!(after.options.sack, blocks(&lefts));
            }
        }
    }
}
