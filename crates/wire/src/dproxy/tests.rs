use super::*;
use crate::testing::{bit_flips, hex, refuses_every_prefix};
use bytes::Bytes;
use proptest::prelude::*;

const TAG: &str = "000102030405060708090a0b0c0d0e0f";

fn emitted(sealed: &Sealed) -> Bytes {
    let mut out = Vec::new();
    sealed.emit(&mut out);
    assert_eq!(out.len(), sealed.wire_len());
    Bytes::from(out)
}

fn sealed(says: Says) -> Sealed {
    let flow = Flow { src: (Ipv4Addr::new(10, 0, 0, 1), 80), dst: (Ipv4Addr::new(10, 0, 0, 2), 49_152) };
    let range = Range { seq: Seq32(0xffff_fe00), len: 1448 };
    let message = Message { number: 0x0102_0304_0506_0708, flow, range, says };
    Sealed { message, tag: core::array::from_fn(|at| at as u8) }
}

#[test]
fn each_type_is_these_bytes() {
    for (says, code) in [(Says::Request, "01"), (Says::NotCached, "02"), (Says::Tail, "03")] {
        let flow = "0a000001 0a000002 0050 c000";
        let bytes = hex(&format!("02 {code} 05a8 {flow} fffffe00 0102030405060708 {TAG}"));
        assert_eq!(emitted(&sealed(says)), bytes);
        assert_eq!(Sealed::parse(&bytes), Ok(sealed(says)));
    }
}

#[test]
fn a_range_ends_beyond_the_wrap() {
    assert_eq!(sealed(Says::Request).message.range.end(), Seq32(1448 - 512));
}

#[test]
fn what_is_cut_short_or_followed_by_something_is_refused() {
    let bytes = emitted(&sealed(Says::Request));
    refuses_every_prefix(&bytes, |bytes| Sealed::parse(bytes));
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(
        Sealed::parse(&longer),
        Err(ParseError::BadLength { what: "D-Proxy message", value: SEALED_LEN + 1 })
    );
}

#[test]
fn what_nobody_says_is_refused() {
    let with = |at: usize, value: [u8; 2]| {
        let mut bytes = emitted(&sealed(Says::Request)).to_vec();
        bytes[at..at + 2].copy_from_slice(&value);
        Sealed::parse(&bytes)
    };
    let unsupported = |what, value| Err(ParseError::Unsupported { what, value });
    assert_eq!(with(0, [0, 1]), unsupported("D-Proxy version", 0));
    assert_eq!(with(0, [1, 1]), unsupported("D-Proxy version", 1));
    assert_eq!(with(0, [2, 0]), unsupported("D-Proxy type", 0));
    assert_eq!(with(0, [2, 4]), unsupported("D-Proxy type", 4));
    assert_eq!(with(2, [0, 0]), Err(ParseError::BadLength { what: "D-Proxy range", value: 0 }));
}

#[test]
fn every_bit_counts() {
    let whole = emitted(&sealed(Says::Request));
    for flipped in bit_flips(&whole) {
        assert_ne!(Sealed::parse(&flipped), Ok(sealed(Says::Request)), "{flipped:02x?}");
    }
}

proptest! {
    #[test]
    fn what_is_understood_is_written_as_it_was(mut bytes in prop::collection::vec(any::<u8>(), 44), code in 0u8..5) {
        (bytes[0], bytes[1]) = (VERSION, code);
        if let Ok(sealed) = Sealed::parse(&bytes) {
            prop_assert_eq!(emitted(&sealed), bytes);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>) {
        let _ = Sealed::parse(&bytes);
    }
}
