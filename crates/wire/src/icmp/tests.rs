use super::*;
use crate::ipv4::Protocol;
use crate::testing::{any_ip, assert_every_prefix_is_refused, bit_flips, hex, ip};
use proptest::prelude::*;

/// A report about a segment of 1460 bytes from 10.0.0.1:49152 to 10.0.0.2:9, sequence number 0x01020304.
fn report() -> Unreachable {
    Unreachable {
        reason: UnreachableCode::Host,
        ip: ip(Protocol::Tcp),
        payload_len: 1480,
        quoted: [0xc0, 0x00, 0x00, 0x09, 1, 2, 3, 4],
    }
}

fn emitted(report: &Unreachable) -> Bytes {
    let mut out = Vec::new();
    report.emit(&mut out);
    Bytes::from(out)
}

#[test]
fn a_report_is_written_byte_for_byte() {
    let quoted = "4500 05dc 0001 4000 4006 2119 0a00 0001 0a00 0002  c000 0009 0102 0304";
    let bytes = emitted(&report());
    assert_eq!(bytes.len(), Unreachable::LEN);
    assert_eq!(&bytes[8..], &hex(quoted)[..]);
    assert_eq!(bytes[..2], [3, 1]);
    assert_eq!(bytes[4..8], [0; 4], "unused");
    assert_eq!(checksum::internet(&bytes), 0);
}

#[test]
fn emitted_messages_parse_back() {
    for reason in [UnreachableCode::Network, UnreachableCode::Host] {
        let report = Unreachable { reason, ..report() };
        assert_eq!(Unreachable::parse(&emitted(&report)), Ok(report));
    }
}

#[test]
fn longer_quotations_are_truncated() {
    // RFC 1812 quotes as much as fits; Linux pads to 576 bytes.
    let mut bytes = emitted(&report()).to_vec();
    bytes.extend([7; 64]);
    bytes[2..4].fill(0);
    let checksum = checksum::internet(&bytes);
    bytes[2..4].copy_from_slice(&checksum.to_be_bytes());
    assert_eq!(Unreachable::parse(&Bytes::from(bytes)), Ok(report()));
}

#[test]
fn a_report_is_made_of_the_packet_it_is_about() {
    let mut packet = Vec::new();
    ip(Protocol::Tcp).emit(1480, &mut packet);
    packet.extend([0xc0, 0x00, 0x00, 0x09, 1, 2, 3, 4]);
    packet.resize(1500, 0xaa);
    assert_eq!(Unreachable::for_packet(UnreachableCode::Host, &packet), Ok(report()));
    let short = Unreachable::for_packet(UnreachableCode::Host, &packet[..27]);
    assert_eq!(short, Err(ParseError::Truncated { needed: 28, got: 27 }));
}

#[test]
fn ports_are_those_of_the_packet() {
    assert_eq!(report().ports(), Some([49_152, 9]));
    let other = Unreachable { ip: ip(Protocol::Other(89)), ..report() };
    assert_eq!(other.ports(), None);
}

#[test]
fn other_messages_are_refused() {
    let resealed = |at: usize, value: u8| {
        let mut bytes = emitted(&report()).to_vec();
        bytes[at] = value;
        bytes[2..4].fill(0);
        let checksum = checksum::internet(&bytes);
        bytes[2..4].copy_from_slice(&checksum.to_be_bytes());
        Unreachable::parse(&Bytes::from(bytes))
    };
    assert_eq!(resealed(0, 8), Err(ParseError::Unsupported { what: "icmp type", value: 8 }));
    assert_eq!(resealed(1, 4), Err(ParseError::Unsupported { what: "icmp code", value: 4 }));
    assert_eq!(resealed(8, 0x65), Err(ParseError::Unsupported { what: "ip version", value: 6 }));
    assert_eq!(resealed(8, 0x44), Err(ParseError::BadLength { what: "ip header", value: 16 }));
    // A header of 60 bytes leaves no room for the ports.
    assert_eq!(resealed(8, 0x4f), Err(ParseError::Truncated { needed: 60, got: 28 }));
    assert_eq!(resealed(15, 1), Err(ParseError::Unsupported { what: "ip fragment", value: 0x4001 }));
}

#[test]
fn prefixes_and_damaged_messages_are_refused() {
    let bytes = emitted(&report());
    assert_every_prefix_is_refused(&bytes, Unreachable::parse);
    for damaged in bit_flips(&bytes) {
        assert_eq!(Unreachable::parse(&damaged), Err(ParseError::BadChecksum));
    }
}

proptest! {
    #[test]
    fn any_message_parses_back(
        ip in any_ip(any::<u8>().prop_map(Protocol::from)),
        payload_len in 8..=65_515_u16,
        start: [u8; 8],
        host: bool,
    ) {
        let reason = if host { UnreachableCode::Host } else { UnreachableCode::Network };
        let report = Unreachable { reason, ip, payload_len, quoted: start };
        prop_assert_eq!(Unreachable::parse(&emitted(&report)), Ok(report));
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let bytes = Bytes::from(bytes);
        if let Ok(report) = Unreachable::parse(&bytes) {
            prop_assert_eq!(Unreachable::parse(&emitted(&report)), Ok(report));
        }
    }
}
