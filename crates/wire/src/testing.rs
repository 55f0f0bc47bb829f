//! Test support shared by several formats.

use crate::ParseError;
use crate::ipv4::{Ecn, Header, Protocol};
use crate::{ip, ipv6};
use bytes::Bytes;
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The header of a packet from 10.0.0.1 to 10.0.0.2.
pub(crate) fn ip(protocol: Protocol) -> Header {
    Header {
        src: Ipv4Addr::new(10, 0, 0, 1),
        dst: Ipv4Addr::new(10, 0, 0, 2),
        ttl: 64,
        protocol,
        ecn: Ecn::NotCapable,
        id: 1,
    }
}

pub(crate) fn any_payload() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..200).prop_map(Bytes::from)
}

pub(crate) fn any_ip(protocol: impl Strategy<Value = Protocol>) -> impl Strategy<Value = Header> {
    (any::<Ipv4Addr>(), any::<Ipv4Addr>(), any::<u8>(), protocol, any_ecn(), any::<u16>())
        .prop_map(|(src, dst, ttl, protocol, ecn, id)| Header { src, dst, ttl, protocol, ecn, id })
}

pub(crate) fn any_ipv6(protocol: impl Strategy<Value = Protocol>) -> impl Strategy<Value = ipv6::Header> {
    (any::<Ipv6Addr>(), any::<Ipv6Addr>(), any::<u8>(), protocol, any_ecn(), 0..1u32 << 20).prop_map(
        |(src, dst, hop_limit, protocol, ecn, flow_label)| ipv6::Header {
            src,
            dst,
            hop_limit,
            protocol,
            ecn,
            flow_label,
        },
    )
}

/// A header of either version.
pub(crate) fn any_version(protocol: Protocol) -> impl Strategy<Value = ip::Header> {
    prop_oneof![
        any_ip(Just(protocol)).prop_map(ip::Header::V4),
        any_ipv6(Just(protocol)).prop_map(ip::Header::V6)
    ]
}

fn any_ecn() -> impl Strategy<Value = Ecn> {
    prop::sample::select(vec![Ecn::NotCapable, Ecn::Capable0, Ecn::Capable1, Ecn::CongestionExperienced])
}

/// Hexadecimal digits, with spaces for the reader.
pub(crate) fn hex(text: &str) -> Bytes {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Every proper prefix of `whole` must be refused.
pub(crate) fn assert_every_prefix_is_refused<T: core::fmt::Debug>(
    whole: &Bytes,
    parse: impl Fn(&Bytes) -> Result<T, ParseError>,
) {
    assert!(parse(whole).is_ok(), "the whole must parse");
    for len in 0..whole.len() {
        let result = parse(&whole.slice(..len));
        assert!(result.is_err(), "{len} of {} bytes gave {result:?}", whole.len());
    }
}

/// `whole` with one bit turned over, for every bit in turn.
pub(crate) fn bit_flips(whole: &Bytes) -> impl Iterator<Item = Bytes> {
    (0..whole.len() * 8).map(|bit| {
        let mut bytes = whole.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        Bytes::from(bytes)
    })
}
