use super::*;
use crate::testing::{assert_every_prefix_is_refused, bit_flips, hex};
use bytes::Bytes;
use proptest::prelude::*;
use std::net::Ipv4Addr;

const TAG: &str = "000102030405060708090a0b0c0d0e0f";

fn emitted(sealed: &Sealed) -> Bytes {
    let mut out = Vec::new();
    sealed.emit(&mut out);
    assert_eq!(out.len(), sealed.wire_len());
    Bytes::from(out)
}

fn sealed(says: MessageKind) -> Sealed {
    sealed_for([Ipv4Addr::new(10, 0, 0, 1).into(), Ipv4Addr::new(10, 0, 0, 2).into()], says)
}

/// Message of a flow over IPv6.
fn sealed_v6(says: MessageKind) -> Sealed {
    sealed_for(["2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap()], says)
}

fn sealed_for([src, dst]: [IpAddr; 2], says: MessageKind) -> Sealed {
    let flow = Flow { src: (src, 80), dst: (dst, 49_152) };
    let range = Range { seq: Seq32(0xffff_fe00), len: 1448 };
    let message = Message { number: 0x0102_0304_0506_0708, flow, range, kind: says };
    Sealed { message, tag: core::array::from_fn(|at| at as u8) }
}

#[test]
fn each_type_has_its_encoding() {
    for (says, code) in [(MessageKind::Request, "1"), (MessageKind::NotCached, "2"), (MessageKind::Tail, "3")]
    {
        let v4 = ("4", "0a000001 0a000002", sealed(says));
        let v6 = ("6", "20010db8000000000000000000000001 20010db8000000000000000000000002", sealed_v6(says));
        for (version, addresses, sealed) in [v4, v6] {
            let flow = format!("{addresses} 0050 c000");
            let bytes = hex(&format!("03 {version}{code} 05a8 {flow} fffffe00 0102030405060708 {TAG}"));
            assert_eq!(emitted(&sealed), bytes);
            assert_eq!(Sealed::parse(&bytes), Ok(sealed));
        }
    }
}

#[test]
fn a_range_may_wrap_around() {
    assert_eq!(sealed(MessageKind::Request).message.range.end(), Seq32(1448 - 512));
}

#[test]
fn truncated_or_overlong_messages_are_refused() {
    for (sealed, len) in [(sealed(MessageKind::Request), 44), (sealed_v6(MessageKind::Request), 68)] {
        let bytes = emitted(&sealed);
        assert_every_prefix_is_refused(&bytes, |bytes| Sealed::parse(bytes));
        let longer = [&bytes[..], &[0]].concat();
        let error = ParseError::BadLength { what: "D-Proxy message", value: len + 1 };
        assert_eq!(Sealed::parse(&longer), Err(error));
    }
}

#[test]
fn invalid_messages_are_refused() {
    let with = |at: usize, value: [u8; 2]| {
        let mut bytes = emitted(&sealed(MessageKind::Request)).to_vec();
        bytes[at..at + 2].copy_from_slice(&value);
        Sealed::parse(&bytes)
    };
    let unsupported = |what, value| Err(ParseError::Unsupported { what, value });
    assert_eq!(with(0, [0, 0x41]), unsupported("D-Proxy version", 0));
    assert_eq!(with(0, [2, 1]), unsupported("D-Proxy version", 2));
    assert_eq!(with(0, [3, 0x40]), unsupported("D-Proxy type", 0));
    assert_eq!(with(0, [3, 0x44]), unsupported("D-Proxy type", 4));
    assert_eq!(with(0, [3, 0x51]), unsupported("D-Proxy IP version", 5));
    assert_eq!(with(2, [0, 0]), Err(ParseError::BadLength { what: "D-Proxy range", value: 0 }));
}

#[test]
fn every_bit_changes_the_message() {
    for sealed in [sealed(MessageKind::Request), sealed_v6(MessageKind::Request)] {
        for flipped in bit_flips(&emitted(&sealed)) {
            assert_ne!(Sealed::parse(&flipped), Ok(sealed), "{flipped:02x?}");
        }
    }
}

proptest! {
    #[test]
    fn parsed_messages_are_emitted_unchanged(
        mut bytes in prop::collection::vec(any::<u8>(), 68),
        is_v6: bool,
        code in 0u8..5,
    ) {
        (bytes[0], bytes[1]) = (VERSION, if is_v6 { 0x60 } else { 0x40 } | code);
        bytes.truncate(if is_v6 { 68 } else { 44 });
        if let Ok(sealed) = Sealed::parse(&bytes) {
            prop_assert_eq!(emitted(&sealed), bytes);
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>) {
        let _ = Sealed::parse(&bytes);
    }
}
