//! What the tests of several formats share.

use crate::ParseError;
use crate::ipv4::{Ecn, Header, Protocol};
use bytes::Bytes;
use proptest::prelude::*;
use std::net::Ipv4Addr;

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
    let ecn =
        prop::sample::select(vec![Ecn::NotCapable, Ecn::Capable0, Ecn::Capable1, Ecn::CongestionExperienced]);
    (any::<Ipv4Addr>(), any::<Ipv4Addr>(), any::<u8>(), protocol, ecn, any::<u16>())
        .prop_map(|(src, dst, ttl, protocol, ecn, id)| Header { src, dst, ttl, protocol, ecn, id })
}

/// Hexadecimal digits, with spaces for the reader.
pub(crate) fn hex(text: &str) -> Bytes {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Every proper prefix of `whole` must be refused.
pub(crate) fn refuses_every_prefix<T: core::fmt::Debug>(
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
