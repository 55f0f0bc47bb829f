use super::*;
use crate::testing::{any_ip, any_payload, assert_every_prefix_is_refused, bit_flips, hex, ip};
use proptest::prelude::*;

/// A UDP packet of 20 + 4 bytes.
fn packet() -> Bytes {
    let mut out = Vec::new();
    ip(Protocol::Udp).emit(4, &mut out);
    out.extend([1, 2, 3, 4]);
    Bytes::from(out)
}

/// Returns `packet` with bytes replaced from `at` on and a corrected header checksum.
fn patched(at: usize, with: &[u8]) -> Bytes {
    let mut bytes = packet().to_vec();
    bytes[at..at + with.len()].copy_from_slice(with);
    bytes[10..12].fill(0);
    let checksum = checksum::internet(&bytes[..HEADER_LEN]);
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    Bytes::from(bytes)
}

#[test]
fn a_header_is_written_byte_for_byte() {
    let header = Header {
        src: Ipv4Addr::new(192, 168, 0, 1),
        dst: Ipv4Addr::new(192, 168, 0, 199),
        ttl: 64,
        protocol: Protocol::Udp,
        ecn: Ecn::NotCapable,
        id: 0,
    };
    let mut out = Vec::new();
    header.emit(95, &mut out);
    // A widely used worked example of the header checksum, b861.
    assert_eq!(out, hex("4500 0073 0000 4000 4011 b861 c0a8 0001 c0a8 00c7"));
}

#[test]
fn ecn_and_identification_are_encoded_in_their_fields() {
    let mut header = ip(Protocol::Tcp);
    header.ecn = Ecn::Capable0;
    header.id = 0xabcd;
    let mut out = Vec::new();
    header.emit(0, &mut out);
    assert_eq!((out[1], &out[4..6], out[9]), (0b10, &[0xab, 0xcd][..], 6));
}

#[test]
fn options_are_skipped() {
    let mut out = hex("4600 0019 0001 0000 4011 0000 0a000001 0a000002 07040400 55").to_vec();
    let checksum = checksum::internet(&out[..24]);
    out[10..12].copy_from_slice(&checksum.to_be_bytes());
    let (header, payload) = Header::parse(&Bytes::from(out)).unwrap();
    assert_eq!((header, &payload[..]), (ip(Protocol::Udp), &[0x55][..]));
}

#[test]
fn a_total_length_that_ends_among_the_options_is_refused() {
    let mut out = hex("4600 0014 0001 0000 4011 0000 0a000001 0a000002 07040400").to_vec();
    let checksum = checksum::internet(&out);
    out[10..12].copy_from_slice(&checksum.to_be_bytes());
    let error = ParseError::BadLength { what: "ip total", value: 20 };
    assert_eq!(Header::parse(&Bytes::from(out)), Err(error));
}

#[test]
fn link_padding_is_removed() {
    let mut padded = packet().to_vec();
    padded.extend([0; 22]);
    let (_, payload) = Header::parse(&Bytes::from(padded)).unwrap();
    assert_eq!(payload, [1, 2, 3, 4][..]);
}

#[test]
fn malformed_packets_are_refused_with_the_reason() {
    let unsupported = |what, value| Err(ParseError::Unsupported { what, value });
    let bad_length = |what, value| Err(ParseError::BadLength { what, value });
    assert_eq!(Header::parse(&patched(0, &[0x65])), unsupported("ip version", 6));
    assert_eq!(Header::parse(&patched(0, &[0x44])), bad_length("ip header", 16));
    assert_eq!(Header::parse(&patched(0, &[0x4f])), Err(ParseError::Truncated { needed: 60, got: 24 }));
    assert_eq!(Header::parse(&patched(2, &[0, 19])), bad_length("ip total", 19));
    assert_eq!(Header::parse(&patched(2, &[0, 25])), Err(ParseError::Truncated { needed: 25, got: 24 }));
    assert_eq!(Header::parse(&patched(6, &[0x20, 0x00])), unsupported("ip fragment", 0x2000));
    assert_eq!(Header::parse(&patched(6, &[0x00, 0xb9])), unsupported("ip fragment", 0x00b9));
    assert!(Header::parse(&patched(6, &[0x00, 0x00])).is_ok(), "Don't Fragment is not needed");
}

#[test]
fn every_truncation_is_refused() {
    assert_every_prefix_is_refused(&packet(), Header::parse);
}

#[test]
fn any_flipped_header_bit_is_detected() {
    for (bit, bytes) in bit_flips(&packet()).take(HEADER_LEN * 8).enumerate() {
        assert!(Header::parse(&bytes).is_err(), "bit {bit}");
    }
    let mut wrong = packet().to_vec();
    wrong[8] -= 1;
    assert_eq!(Header::parse(&Bytes::from(wrong)), Err(ParseError::BadChecksum));
}

#[test]
fn errors_read_as_short_sentences() {
    assert_eq!(
        Header::parse(&Bytes::new()).unwrap_err().to_string(),
        "truncated: 20 bytes needed, 0 present"
    );
    assert_eq!(Header::parse(&patched(0, &[0x65])).unwrap_err().to_string(), "unsupported ip version: 6");
    assert_eq!(Header::parse(&patched(0, &[0x44])).unwrap_err().to_string(), "bad length 16 of ip header");
}

#[test]
#[should_panic(expected = "at most 65,535 bytes")]
fn a_packet_beyond_the_length_field_panics() {
    ip(Protocol::Tcp).emit(65_516, &mut Vec::new());
}

proptest! {
    #[test]
    fn emitted_packets_parse_back(
        header in any_ip(any::<u8>().prop_map(Protocol::from)),
        payload in any_payload(),
    ) {
        let mut out = Vec::new();
        header.emit(payload.len(), &mut out);
        out.extend_from_slice(&payload);
        prop_assert_eq!(Header::parse(&Bytes::from(out)), Ok((header, payload)));
    }

    #[test]
    fn etherparse_reads_what_was_emitted(
        header in any_ip(any::<u8>().prop_map(Protocol::from)),
        payload in any_payload(),
    ) {
        let mut out = Vec::new();
        header.emit(payload.len(), &mut out);
        out.extend_from_slice(&payload);
        let (theirs, rest) = etherparse::Ipv4Header::from_slice(&out).unwrap();
        prop_assert_eq!(theirs.calc_header_checksum(), theirs.header_checksum);
        prop_assert_eq!(theirs.source, header.src.octets());
        prop_assert_eq!(theirs.destination, header.dst.octets());
        prop_assert_eq!(theirs.time_to_live, header.ttl);
        prop_assert_eq!(theirs.protocol.0, header.protocol.number());
        prop_assert_eq!(theirs.identification, header.id);
        prop_assert_eq!(theirs.ecn.value(), header.ecn.bits());
        prop_assert_eq!(usize::from(theirs.total_len), out.len());
        prop_assert!(theirs.dont_fragment && !theirs.is_fragmenting_payload());
        prop_assert_eq!(rest, &payload[..]);
    }

    #[test]
    fn packets_of_etherparse_parse(
        header in any_ip(any::<u8>().prop_map(Protocol::from)),
        options in 0..=10usize,
        dscp in 0..64u8,
        payload in any_payload(),
    ) {
        let mut theirs = etherparse::Ipv4Header::new(
            payload.len() as u16,
            header.ttl,
            header.protocol.number().into(),
            header.src.octets(),
            header.dst.octets(),
        ).unwrap();
        theirs.identification = header.id;
        theirs.ecn = etherparse::IpEcn::try_new(header.ecn.bits()).unwrap();
        theirs.dscp = etherparse::IpDscp::try_new(dscp).unwrap();
        theirs.options = etherparse::Ipv4Options::try_from(&vec![1; options * 4][..]).unwrap();
        theirs.set_payload_len(payload.len()).unwrap();
        theirs.header_checksum = theirs.calc_header_checksum();
        let mut bytes = theirs.to_bytes().to_vec();
        bytes.extend_from_slice(&payload);
        prop_assert_eq!(Header::parse(&Bytes::from(bytes)), Ok((header, payload)));
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = Header::parse(&Bytes::from(bytes));
    }
}
