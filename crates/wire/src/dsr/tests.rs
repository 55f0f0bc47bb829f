use super::*;
use crate::testing::{assert_every_prefix_is_refused, bit_flips, hex};
use bytes::Bytes;
use proptest::prelude::*;
use smallvec::smallvec;
use std::net::Ipv4Addr;

const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const C: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);

fn source_route() -> SourceRoute {
    SourceRoute {
        first: FirstHop::Ordinary,
        last: LastHop::Ordinary,
        salvage: 0,
        segments_left: 2,
        path: Addresses::from_slice(&[A, B]),
    }
}

fn emitted(header: &Header) -> Vec<u8> {
    let mut out = Vec::new();
    header.emit(&mut out);
    assert_eq!(out.len(), header.wire_len());
    out
}

/// Asserts that these bytes encode this option alone, without a payload, in both directions.
fn assert_bytes(option: DsrOption, bytes: &str) {
    let header = Header { next: None, options: smallvec![option] };
    let len = hex(bytes).len();
    let whole = hex(&format!("3b 00 {len:04x} {bytes}"));
    assert_eq!(emitted(&header), whole, "{header:?}");
    assert_eq!(Header::parse(&whole), Ok((header, FIXED_LEN + len)));
}

#[test]
fn a_route_request_is_laid_out_as_in_section_6_2() {
    let request = |path: &[Ipv4Addr]| {
        DsrOption::Request(RouteRequest { id: 0x0102, target: C, path: Addresses::from_slice(path) })
    };
    assert_bytes(request(&[]), "01 06 0102 0a000009");
    assert_bytes(request(&[A, B]), "01 0e 0102 0a000009 0a000001 0a000002");
}

#[test]
fn a_route_reply_is_laid_out_as_in_section_6_3() {
    let reply = |last| DsrOption::Reply(RouteReply { last, path: Addresses::from_slice(&[B, C]) });
    assert_bytes(reply(LastHop::Ordinary), "02 09 00 0a000002 0a000009");
    assert_bytes(reply(LastHop::External), "02 09 80 0a000002 0a000009");
}

#[test]
fn a_route_error_is_laid_out_as_in_section_6_4() {
    let error = |kind| DsrOption::Error(RouteError { salvage: 3, source: A, destination: B, kind });
    assert_bytes(error(ErrorKind::NodeUnreachable(C)), "03 0e 01 03 0a000001 0a000002 0a000009");
    let unsupported = ErrorKind::Other { kind: 3, data: smallvec![0x77] };
    assert_bytes(error(unsupported), "03 0b 03 03 0a000001 0a000002 77");
}

#[test]
fn acknowledgements_are_laid_out_as_in_sections_6_5_and_6_6() {
    assert_bytes(DsrOption::AckRequest(AckRequest { id: 7 }), "a0 02 0007");
    assert_bytes(DsrOption::Ack(Ack { id: 7, source: A, destination: B }), "20 0a 0007 0a000001 0a000002");
}

#[test]
fn a_source_route_is_laid_out_as_in_section_6_7() {
    let option = |change: fn(&mut SourceRoute)| {
        let mut route = source_route();
        change(&mut route);
        DsrOption::SourceRoute(route)
    };
    let path = "0a000001 0a000002";
    assert_bytes(option(|_| ()), &format!("60 0a 0002 {path}"));
    assert_bytes(option(|r| r.first = FirstHop::External), &format!("60 0a 8002 {path}"));
    assert_bytes(option(|r| r.last = LastHop::External), &format!("60 0a 4002 {path}"));
    assert_bytes(option(|r| r.salvage = 15), &format!("60 0a 03c2 {path}"));
    assert_bytes(option(|r| r.segments_left = 0), &format!("60 0a 0000 {path}"));
}

#[test]
fn an_unknown_option_is_kept_as_it_is() {
    assert_bytes(DsrOption::Unknown { kind: 0xc5, data: smallvec![1, 2, 3] }, "c5 03 010203");
}

#[test]
fn a_packet_goes_from_node_to_node_of_its_route() {
    let next = |segments_left| SourceRoute { segments_left, ..source_route() }.next_hop(C);
    assert_eq!([next(2), next(1), next(0)], [A, B, C]);
}

#[test]
fn the_payload_is_aligned_to_four_bytes() {
    let reply = DsrOption::Reply(RouteReply { last: LastHop::Ordinary, path: Addresses::from_slice(&[C]) });
    let header = |options| Header { next: Some(Protocol::Tcp), options };
    let one = header(smallvec![reply.clone()]);
    assert_eq!(emitted(&one), hex("06 00 0008 02 05 00 0a000009 e0"));
    let two = header(smallvec![reply.clone(), reply.clone()]);
    assert_eq!(emitted(&two), hex("06 00 0010 02 05 00 0a000009 02 05 00 0a000009 00 00"));
    for header in [one, two] {
        let bytes = emitted(&header);
        assert_eq!(Header::parse(&bytes), Ok((header, bytes.len())));
    }
}

#[test]
fn padding_is_skipped_anywhere() {
    let (header, len) = Header::parse(&hex("3b 00 000b e0 00 03 010203 a0 02 0007 e0 ff")).unwrap();
    assert_eq!(header.options.as_slice(), [DsrOption::AckRequest(AckRequest { id: 7 })]);
    assert_eq!(len, 15);
}

#[test]
fn wrong_lengths_are_refused() {
    for (bytes, what) in [
        ("01 05 0102 0a0000", "dsr route request"),
        ("01 07 0102 0a000009 01", "dsr route request"),
        ("02 01 00", "dsr route reply"),
        ("02 00", "dsr route reply"),
        ("03 09 01 00 0a000001 0a0000", "dsr route error"),
        ("03 0a 01 00 0a000001 0a000002", "dsr route error"),
        ("a0 03 000700", "dsr acknowledgement request"),
        ("20 08 0007 0a000001 0000", "dsr acknowledgement"),
        ("60 01 00", "dsr source route"),
        ("60 06 0002 0a000001", "dsr segments left"),
    ] {
        let len = hex(bytes).len();
        let result = Header::parse(&hex(&format!("3b 00 {len:04x} {bytes}")));
        let Err(ParseError::BadLength { what: found, .. }) = result else { panic!("{bytes}: {result:?}") };
        assert_eq!(found, what, "{bytes}");
    }
    assert!(matches!(Header::parse(&hex("06 80 0000")), Err(ParseError::Unsupported { .. })));
    assert!(matches!(Header::parse(&hex("3b 00 0002 01 01")), Err(ParseError::Truncated { .. })));
}

#[test]
fn every_prefix_is_refused_and_no_flipped_bit_panics() {
    let header = Header {
        next: Some(Protocol::Udp),
        options: smallvec![
            DsrOption::SourceRoute(source_route()),
            DsrOption::AckRequest(AckRequest { id: 1 })
        ],
    };
    let bytes = Bytes::from(emitted(&header));
    assert_every_prefix_is_refused(&bytes, |bytes| Header::parse(bytes));
    for flipped in bit_flips(&bytes) {
        let _ = Header::parse(&flipped);
    }
}

fn any_path(least: usize) -> impl Strategy<Value = Addresses> {
    prop::collection::vec(any::<Ipv4Addr>(), least..20).prop_map(Addresses::from_vec)
}

fn any_option() -> impl Strategy<Value = DsrOption> {
    let first = prop::sample::select(vec![FirstHop::Ordinary, FirstHop::External]);
    let last = || prop::sample::select(vec![LastHop::Ordinary, LastHop::External]);
    prop_oneof![
        (any::<u16>(), any::<Ipv4Addr>(), any_path(0))
            .prop_map(|(id, target, path)| DsrOption::Request(RouteRequest { id, target, path })),
        (last(), any_path(1)).prop_map(|(last, path)| DsrOption::Reply(RouteReply { last, path })),
        (0..16u8, any::<Ipv4Addr>(), any::<Ipv4Addr>(), any::<Ipv4Addr>()).prop_map(
            |(salvage, source, destination, node)| {
                let kind = ErrorKind::NodeUnreachable(node);
                DsrOption::Error(RouteError { salvage, source, destination, kind })
            }
        ),
        (first, last(), 0..16u8, any::<prop::sample::Index>(), any_path(0)).prop_map(
            |(first, last, salvage, left, path)| {
                let segments_left = left.index(path.len() + 1) as u8;
                DsrOption::SourceRoute(SourceRoute { first, last, salvage, segments_left, path })
            }
        ),
    ]
}

proptest! {
    #[test]
    fn emitted_headers_parse_back(
        options in prop::collection::vec(any_option(), 0..4),
        next in prop::sample::select(vec![None, Some(Protocol::Tcp), Some(Protocol::Other(253))]),
    ) {
        let header = Header { next, options: options.into() };
        let bytes = emitted(&header);
        prop_assert_eq!(Header::parse(&bytes), Ok((header, bytes.len())));
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        if let Ok((header, _)) = Header::parse(&bytes) {
            let again = emitted(&header);
            prop_assert_eq!(Header::parse(&again).map(|(header, _)| header), Ok(header));
        }
    }
}
