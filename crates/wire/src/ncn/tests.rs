use super::*;
use crate::testing::{hex, refuses_every_prefix};
use proptest::prelude::*;

fn emitted(notice: &Notice) -> Vec<u8> {
    let mut out = Vec::new();
    notice.emit(&mut out);
    out
}

#[test]
fn a_notice_is_these_bytes() {
    let notice = Notice {
        normalized_pb: NormalizedPb(0x0026_3d0e),
        lifetime: Duration::from_millis(2000),
        about: About::Sender,
    };
    let bytes = hex("01 00 07d0 00263d0e");
    assert_eq!(emitted(&notice), bytes);
    assert_eq!(Notice::parse(&bytes), Ok(notice));
    let relayed = Notice { about: About::Neighbour(Ipv4Addr::new(10, 0, 0, 7)), ..notice };
    let bytes = hex("02 00 07d0 00263d0e 0a000007");
    assert_eq!(emitted(&relayed), bytes);
    assert_eq!(Notice::parse(&bytes), Ok(relayed));
}

#[test]
fn what_is_no_notice_is_refused() {
    refuses_every_prefix(&hex("01 00 07d0 00263d0e"), |bytes| Notice::parse(bytes));
    refuses_every_prefix(&hex("02 00 07d0 00263d0e 0a000007"), |bytes| Notice::parse(bytes));
    let other = ParseError::Unsupported { what: "notice type", value: 3 };
    assert_eq!(Notice::parse(&hex("03 00 07d0 00263d0e 0a000007")), Err(other));
}

#[test]
fn what_is_reserved_or_comes_after_it_is_not_looked_at() {
    let plain = Notice::parse(&hex("01 00 07d0 00263d0e")).unwrap();
    assert_eq!(Notice::parse(&hex("01 ff 07d0 00263d0e 0102030405")), Ok(plain));
}

#[test]
fn shares_are_exact_to_a_quarter_of_a_billionth_and_stay_in_range() {
    assert_eq!((NormalizedPb::of(0.0), NormalizedPb::of(1.0)), (NormalizedPb::ZERO, NormalizedPb::ONE));
    assert_eq!((NormalizedPb::of(-3.0), NormalizedPb::of(7.0)), (NormalizedPb::ZERO, NormalizedPb::ONE));
    assert_eq!(NormalizedPb::of(f64::NAN), NormalizedPb::ZERO);
    let share = 0.14 / 240.0;
    assert!((NormalizedPb::of(share).get() - share).abs() < 1.2e-10);
    assert_eq!(NormalizedPb::of(share).to_string(), "0.000583");
}

#[test]
fn a_lifetime_beyond_the_field_is_the_longest() {
    let long = Notice {
        normalized_pb: NormalizedPb::ONE,
        lifetime: Duration::from_secs(1000),
        about: About::Sender,
    };
    let parsed = Notice::parse(&emitted(&long)).unwrap();
    assert_eq!(parsed.lifetime, Duration::from_millis(65_535));
}

proptest! {
    #[test]
    fn what_is_emitted_is_parsed(pb: u32, lifetime: u16, address: Option<Ipv4Addr>) {
        let about = address.map_or(About::Sender, About::Neighbour);
        let lifetime = Duration::from_millis(lifetime.into());
        let notice = Notice { normalized_pb: NormalizedPb(pb), lifetime, about };
        let bytes = emitted(&notice);
        prop_assert_eq!(bytes.len(), notice.wire_len());
        prop_assert_eq!(Notice::parse(&bytes), Ok(notice));
        prop_assert_eq!(NormalizedPb::of(notice.normalized_pb.get()), notice.normalized_pb);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>) {
        let _ = Notice::parse(&bytes);
    }
}
