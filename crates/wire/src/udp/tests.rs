use super::*;
use crate::ip::{Header, Protocol};
use crate::testing::{any_payload, any_version, assert_every_prefix_is_refused, bit_flips, hex, ip};
use hopline_core::Length;
use proptest::prelude::*;

fn datagram() -> Datagram<Bytes> {
    Datagram { src_port: 654, dst_port: 654, payload: Bytes::from_static(&[4, 0]) }
}

fn emitted<P: Emit>(datagram: &Datagram<P>) -> Bytes {
    let mut out = Vec::new();
    datagram.emit(&ip(Protocol::Udp), &mut out);
    Bytes::from(out)
}

fn parse(bytes: &Bytes) -> Result<Datagram<Bytes>, ParseError> {
    Datagram::parse(&ip(Protocol::Udp), bytes)
}

#[test]
fn a_datagram_is_written_byte_for_byte() {
    assert_eq!(emitted(&datagram()), hex("028e 028e 000a e2bb 0400"));
}

#[test]
fn a_zero_checksum_means_none_was_made() {
    assert_eq!(parse(&hex("028e 028e 000a 0000 0400")), Ok(datagram()));
}

#[test]
fn a_checksum_that_computes_to_zero_is_sent_as_ones() {
    // The two bytes of payload bring the sum to ffff.
    let mut zero = datagram();
    zero.payload = Bytes::from_static(&[0xe6, 0xbb]);
    let bytes = emitted(&zero);
    assert_eq!(&bytes[6..8], [0xff, 0xff]);
    assert_eq!(parse(&bytes), Ok(zero));
}

#[test]
fn bytes_after_the_datagram_are_removed() {
    assert_eq!(parse(&hex("028e 028e 000a e2bb 0400 ffff")), Ok(datagram()));
}

#[test]
fn malformed_datagrams_are_refused_with_the_reason() {
    let length = |value| Err(ParseError::BadLength { what: "udp datagram", value });
    assert_eq!(parse(&hex("028e 028e 0007 0000 0400")), length(7));
    assert_eq!(parse(&hex("028e 028e 0000 0000 0400")), length(0));
    assert_eq!(parse(&hex("028e 028e 000b 0000 0400")), Err(ParseError::Truncated { needed: 11, got: 10 }));
    assert_eq!(parse(&hex("028e 028e 000a e2bc 0400")), Err(ParseError::BadChecksum));
}

#[test]
fn the_checksum_covers_the_addresses() {
    let mut elsewhere = ip(Protocol::Udp);
    elsewhere.dst = std::net::Ipv4Addr::new(10, 0, 0, 3);
    assert_eq!(Datagram::parse(&elsewhere, &emitted(&datagram())), Err(ParseError::BadChecksum));
}

#[test]
fn a_datagram_over_ipv6_without_a_checksum_is_refused() {
    let [src, dst] = ["2001:db8::1", "2001:db8::2"].map(|address| address.parse().unwrap());
    let (hop_limit, ecn, flow_label) = (64, crate::ip::Ecn::NotCapable, 0);
    let header = crate::ipv6::Header { src, dst, hop_limit, protocol: Protocol::Udp, ecn, flow_label };
    let without = hex("028e 028e 000a 0000 0400");
    assert_eq!(Datagram::parse(&header, &without), Err(ParseError::BadChecksum));
    assert_eq!(parse(&without), Ok(datagram()), "IPv4 can do without");
}

#[test]
fn every_truncation_is_refused() {
    assert_every_prefix_is_refused(&emitted(&datagram()), parse);
}

#[test]
fn any_flipped_bit_is_detected() {
    for (bit, bytes) in bit_flips(&emitted(&datagram())).enumerate() {
        assert!(parse(&bytes).is_err(), "bit {bit}");
    }
}

#[test]
fn a_length_is_written_as_zeros() {
    let lengths = Datagram { src_port: 1, dst_port: 2, payload: Length(5) };
    let zeros = Datagram { src_port: 1, dst_port: 2, payload: Bytes::from_static(&[0; 5]) };
    assert_eq!(emitted(&lengths), emitted(&zeros));
    assert_eq!(lengths.wire_len(), 13);
}

proptest! {
    #[test]
    fn emitted_datagrams_parse_back_and_etherparse_agrees(
        header in any_version(Protocol::Udp),
        src_port: u16,
        dst_port: u16,
        payload in any_payload(),
    ) {
        let datagram = Datagram { src_port, dst_port, payload };
        let mut out = Vec::new();
        datagram.emit(&header, &mut out);
        let mut theirs = etherparse::UdpHeader::without_ipv4_checksum(src_port, dst_port, datagram.payload.len()).unwrap();
        theirs.checksum = match header {
            Header::V4(ip) => theirs.calc_checksum_ipv4_raw(ip.src.octets(), ip.dst.octets(), &datagram.payload),
            Header::V6(ip) => theirs.calc_checksum_ipv6_raw(ip.src.octets(), ip.dst.octets(), &datagram.payload),
        }
        .unwrap();
        prop_assert_eq!(&out[..HEADER_LEN], &theirs.to_bytes());
        prop_assert_eq!(out.len(), datagram.wire_len());
        prop_assert_eq!(Datagram::parse(&header, &Bytes::from(out)), Ok(datagram));
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let _ = parse(&Bytes::from(bytes));
    }
}
