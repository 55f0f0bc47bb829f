use super::*;
use crate::testing::{assert_every_prefix_is_refused, hex};
use proptest::prelude::*;

fn emitted(notice: &Notice) -> Vec<u8> {
    let mut out = Vec::new();
    notice.emit(&mut out);
    out
}

#[test]
fn a_notice_has_its_encoding() {
    let notice = Notice {
        normalized_pb: NormalizedPb(0x0026_3d0e),
        lifetime: Duration::from_millis(2000),
        starved_node: StarvedNode::Sender,
    };
    let bytes = hex("01 00 07d0 00263d0e");
    assert_eq!(emitted(&notice), bytes);
    assert_eq!(Notice::parse(&bytes), Ok(notice));
    let relayed = Notice { starved_node: StarvedNode::Neighbour(Ipv4Addr::new(10, 0, 0, 7)), ..notice };
    let bytes = hex("02 00 07d0 00263d0e 0a000007");
    assert_eq!(emitted(&relayed), bytes);
    assert_eq!(Notice::parse(&bytes), Ok(relayed));
}

#[test]
fn other_payloads_are_refused() {
    assert_every_prefix_is_refused(&hex("01 00 07d0 00263d0e"), |bytes| Notice::parse(bytes));
    assert_every_prefix_is_refused(&hex("02 00 07d0 00263d0e 0a000007"), |bytes| Notice::parse(bytes));
    let other = ParseError::Unsupported { what: "notice type", value: 3 };
    assert_eq!(Notice::parse(&hex("03 00 07d0 00263d0e 0a000007")), Err(other));
}

#[test]
fn reserved_and_trailing_bytes_are_ignored() {
    let plain = Notice::parse(&hex("01 00 07d0 00263d0e")).unwrap();
    assert_eq!(Notice::parse(&hex("01 ff 07d0 00263d0e 0102030405")), Ok(plain));
}

#[test]
fn drop_shares_are_precise_and_clamped() {
    assert_eq!((NormalizedPb::of(0.0), NormalizedPb::of(1.0)), (NormalizedPb::ZERO, NormalizedPb::ONE));
    assert_eq!((NormalizedPb::of(-3.0), NormalizedPb::of(7.0)), (NormalizedPb::ZERO, NormalizedPb::ONE));
    assert_eq!(NormalizedPb::of(f64::NAN), NormalizedPb::ZERO);
    let share = 0.14 / 240.0;
    assert!((NormalizedPb::of(share).get() - share).abs() < 1.2e-10);
    assert_eq!(NormalizedPb::of(share).to_string(), "0.000583");
}

#[test]
fn a_lifetime_beyond_the_field_is_clamped() {
    let long = Notice {
        normalized_pb: NormalizedPb::ONE,
        lifetime: Duration::from_secs(1000),
        starved_node: StarvedNode::Sender,
    };
    let parsed = Notice::parse(&emitted(&long)).unwrap();
    assert_eq!(parsed.lifetime, Duration::from_millis(65_535));
}

proptest! {
    #[test]
    fn emitted_notices_parse_back(pb: u32, lifetime: u16, address: Option<Ipv4Addr>) {
        let about = address.map_or(StarvedNode::Sender, StarvedNode::Neighbour);
        let lifetime = Duration::from_millis(lifetime.into());
        let notice = Notice { normalized_pb: NormalizedPb(pb), lifetime, starved_node: about };
        let bytes = emitted(&notice);
        prop_assert_eq!(bytes.len(), notice.wire_len());
        prop_assert_eq!(Notice::parse(&bytes), Ok(notice));
        prop_assert_eq!(NormalizedPb::of(notice.normalized_pb.get()), notice.normalized_pb);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>) {
        let _ = Notice::parse(&bytes);
    }
}
