use super::*;
use crate::testing::{any_ipv6, any_payload, hex};
use bytes::Bytes;
use proptest::prelude::*;

/// Addresses of 2001:db8::1 and 2001:db8::2.
const ADDRESSES: &str = "20010db8000000000000000000000001 20010db8000000000000000000000002";

fn header() -> Header {
    Header {
        src: "2001:db8::1".parse().unwrap(),
        dst: "2001:db8::2".parse().unwrap(),
        hop_limit: 64,
        protocol: Protocol::Udp,
        ecn: Ecn::Capable0,
        flow_label: 0xa_bcde,
    }
}

/// Returns a packet with DSCP 10, with the first next header `next` and with `rest` behind the header.
fn packet(next: u8, rest: &str) -> Bytes {
    let rest = hex(rest);
    let mut bytes = hex("62 aa bcde").to_vec();
    bytes.extend((rest.len() as u16).to_be_bytes());
    bytes.extend([next, 64]);
    bytes.extend(hex(ADDRESSES));
    bytes.extend(rest);
    bytes.into()
}

/// The protocol of a packet and its payload.
fn read(packet: &Bytes) -> Result<(Protocol, Bytes), ParseError> {
    let (header, payload) = Header::parse(packet)?;
    Ok((header.protocol, packet.slice(payload)))
}

#[test]
fn a_header_is_written_byte_for_byte() {
    let mut out = Vec::new();
    header().emit(4, &mut out);
    assert_eq!(out, [&hex("602a bcde 0004 1140")[..], &hex(ADDRESSES)].concat());
}

#[test]
fn dscp_is_ignored_and_link_padding_removed() {
    let mut padded = packet(17, "01020304").to_vec();
    padded.extend([0xee; 6]);
    assert_eq!(Header::parse(&padded), Ok((header(), 40..44)));
}

#[test]
fn extension_headers_are_skipped() {
    let data = Ok((Protocol::Udp, hex("0102")));
    // Hop-by-hop with router alert, destination options, routing of type 2 with no segments left, destination options of 16 bytes.
    let chain = "3c00 050200000100 2b00 010400000000 3c02 0200 00000000 20010db8000000000000000000000003 \
         1101 010c000000000000000000000000 0102";
    assert_eq!(read(&packet(0, chain)), data);
    assert_eq!(read(&packet(60, "1100 010400000000 0102")), data);
    assert_eq!(read(&packet(59, "")), Ok((Protocol::Other(59), Bytes::new())), "no next header");
}

#[test]
fn encrypted_and_authenticated_packets_are_another_protocol() {
    assert_eq!(read(&packet(50, "0102")), Ok((Protocol::Other(50), hex("0102"))));
    let authenticated = "3300 010400000000 0600 0000 00000001 00000001";
    assert_eq!(read(&packet(60, authenticated)).unwrap().0, Protocol::Other(51));
}

#[test]
fn a_packet_that_is_not_at_its_last_destination_is_another_protocol() {
    let routed = "0602 0201 00000000 20010db8000000000000000000000003 0102";
    assert_eq!(read(&packet(43, routed)), Ok((Protocol::Other(43), hex(routed))));
}

#[test]
fn fragments_are_refused_whatever_is_before_them() {
    let fragment = |value| Err(ParseError::Unsupported { what: "ip fragment", value });
    assert_eq!(read(&packet(44, "0600 0001 00000007 01")), fragment(1));
    assert_eq!(read(&packet(60, "2c00 010400000000 0600 05a8 00000007 01")), fragment(0x5a8));
    assert_eq!(read(&packet(44, "0600 0000 00000007 01")), fragment(0), "an atomic one (RFC 6946)");
}

#[test]
fn a_chain_that_never_ends_is_refused() {
    let too_many = "3c00 010400000000".repeat(MAX_EXTENSIONS + 1);
    let error = ParseError::Unsupported { what: "ipv6 extension headers", value: 17 };
    assert_eq!(read(&packet(60, &too_many)), Err(error));
    let most = "3c00 010400000000".repeat(MAX_EXTENSIONS - 1) + "1100 010400000000 0102";
    assert_eq!(read(&packet(60, &most)), Ok((Protocol::Udp, hex("0102"))));
    let again = ParseError::Unsupported { what: "ipv6 extension header", value: 0 };
    assert_eq!(read(&packet(0, "0000 010400000000 1100 010400000000")), Err(again), "hop-by-hop twice");
}

#[test]
fn jumbograms_and_other_versions_are_refused() {
    let mut jumbo = packet(0, "1100 c20400010000 0102").to_vec();
    jumbo[4..6].fill(0);
    assert_eq!(Header::parse(&jumbo), Err(ParseError::BadLength { what: "ipv6 payload", value: 0 }));
    let mut other = packet(17, "0102").to_vec();
    other[0] = 0x42;
    assert_eq!(Header::parse(&other), Err(ParseError::Unsupported { what: "ip version", value: 4 }));
}

#[test]
fn every_truncation_is_refused() {
    let chain = packet(
        0,
        "3c00 050200000100 2b00 010400000000 1102 0200 00000000 00000000000000000000000000000003 0102",
    );
    assert!(Header::parse(&chain).is_ok());
    for len in 0..chain.len() {
        assert!(Header::parse(&chain[..len]).is_err(), "{len} bytes");
    }
    // The payload length ends among the extension headers, though bytes follow.
    for len in 0..chain.len() - HEADER_LEN - 2 {
        let mut short = chain.to_vec();
        short[4..6].copy_from_slice(&(len as u16).to_be_bytes());
        assert!(Header::parse(&short).is_err(), "{len} bytes of payload");
    }
}

proptest! {
    #[test]
    fn emitted_packets_parse_back_and_etherparse_agrees(
        header in any_ipv6(any::<u8>().prop_map(Protocol::from)),
        payload in any_payload(),
    ) {
        let mut out = Vec::new();
        header.emit(payload.len(), &mut out);
        out.extend_from_slice(&payload);
        let (theirs, rest) = etherparse::Ipv6Header::from_slice(&out).unwrap();
        prop_assert_eq!((theirs.source, theirs.destination), (header.src.octets(), header.dst.octets()));
        prop_assert_eq!((theirs.hop_limit, theirs.next_header.0), (header.hop_limit, header.protocol.number()));
        prop_assert_eq!(theirs.ecn().value(), header.ecn.bits());
        prop_assert_eq!((theirs.flow_label.value(), rest), (header.flow_label, &payload[..]));
        prop_assert_eq!(usize::from(theirs.payload_length), payload.len());
        if !matches!(header.protocol.number(), HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION) {
            prop_assert_eq!(Header::parse(&out), Ok((header, HEADER_LEN..out.len())));
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic_and_the_payload_is_within_them(
        next in prop::sample::select(&[0, 43, 44, 60, 6, 51][..]),
        rest in prop::collection::vec(prop_oneof![0..3u8, prop::sample::select(&[43, 44, 60][..]), any::<u8>()], 0..80),
        len in prop::option::of(any::<u16>()),
    ) {
        let mut bytes = packet(next, "").to_vec();
        bytes[4..6].copy_from_slice(&len.unwrap_or(rest.len() as u16).to_be_bytes());
        bytes.extend(rest);
        if let Ok((_, payload)) = Header::parse(&bytes) {
            prop_assert!(HEADER_LEN <= payload.start && payload.start <= payload.end && payload.end <= bytes.len());
        }
    }
}
