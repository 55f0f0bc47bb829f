use super::*;
use crate::testing::{assert_every_prefix_is_refused, bit_flips, hex};
use proptest::prelude::*;

const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);

fn rreq() -> Rreq {
    Rreq {
        join: false,
        repair: false,
        gratuitous: false,
        destination_only: false,
        hop_count: 3,
        id: 0x0102_0304,
        destination: B,
        destination_seq: Some(Seq32(0x11)),
        originator: A,
        originator_seq: Seq32(0xfffffffe),
    }
}

fn rrep() -> Rrep {
    Rrep {
        repair: false,
        ack_required: false,
        prefix_size: 0,
        hop_count: 2,
        destination: B,
        destination_seq: Seq32(0x12),
        originator: A,
        lifetime: Duration::from_millis(6000),
    }
}

fn rerr() -> Rerr {
    Rerr { no_delete: false, unreachable: vec![(B, Seq32(0x13)), (A, Seq32(1))] }
}

fn emitted(message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    message.emit(&mut out);
    out
}

/// Asserts that these bytes encode this message, in both directions.
fn assert_bytes(message: Message, bytes: &str) {
    assert_eq!(emitted(&message), hex(bytes), "{message:?}");
    assert_eq!(Message::parse(&hex(bytes)), Ok(message));
}

#[test]
fn a_route_request_is_laid_out_as_in_section_5_1() {
    assert_bytes(Message::Rreq(rreq()), "01 00 00 03 01020304 0a000009 00000011 0a000001 fffffffe");
    let flag = |change: fn(&mut Rreq)| {
        let mut request = rreq();
        change(&mut request);
        Message::Rreq(request)
    };
    let rest = "03 01020304 0a000009 00000011 0a000001 fffffffe";
    assert_bytes(flag(|r| r.join = true), &format!("01 80 00 {rest}"));
    assert_bytes(flag(|r| r.repair = true), &format!("01 40 00 {rest}"));
    assert_bytes(flag(|r| r.gratuitous = true), &format!("01 20 00 {rest}"));
    assert_bytes(flag(|r| r.destination_only = true), &format!("01 10 00 {rest}"));
    assert_bytes(
        flag(|r| r.destination_seq = None),
        "01 08 00 03 01020304 0a000009 00000000 0a000001 fffffffe",
    );
}

#[test]
fn a_route_reply_is_laid_out_as_in_section_5_2() {
    assert_bytes(Message::Rrep(rrep()), "02 00 00 02 0a000009 00000012 0a000001 00001770");
    let marked = Rrep { repair: true, ack_required: true, prefix_size: 31, ..rrep() };
    assert_bytes(Message::Rrep(marked), "02 c0 1f 02 0a000009 00000012 0a000001 00001770");
}

#[test]
fn a_route_error_is_laid_out_as_in_section_5_3() {
    assert_bytes(Message::Rerr(rerr()), "03 00 00 02 0a000009 00000013 0a000001 00000001");
    let repaired = Rerr { no_delete: true, unreachable: vec![(B, Seq32(0x13))] };
    assert_bytes(Message::Rerr(repaired), "03 80 00 01 0a000009 00000013");
}

#[test]
fn a_reply_acknowledgment_is_two_bytes() {
    assert_bytes(Message::RrepAck, "04 00");
}

#[test]
fn a_hello_is_a_reply_about_its_sender() {
    // RFC 3561 §6.9: hop count 0, lifetime ALLOWED_HELLO_LOSS * HELLO_INTERVAL.
    let hello = Rrep {
        hop_count: 0,
        destination: A,
        destination_seq: Seq32(7),
        lifetime: Duration::from_secs(2),
        ..rrep()
    };
    assert_bytes(Message::Rrep(hello.clone()), "02 00 00 00 0a000001 00000007 0a000001 000007d0");
    // §9.1: the Hello Interval extension, type 1, length 4.
    let with_interval = hex("02 00 00 00 0a000001 00000007 0a000001 000007d0 01 04 000003e8");
    assert_eq!(Message::parse(&with_interval), Ok(Message::Rrep(hello)));
}

#[test]
fn an_extension_from_128_on_may_not_be_skipped() {
    let unsupported = Err(ParseError::Unsupported { what: "aodv extension", value: 128 });
    assert_eq!(Message::parse(&hex("04 00 80 00")), unsupported);
    assert_eq!(Message::parse(&hex("04 00 7f 01 55")), Ok(Message::RrepAck));
    assert_eq!(Message::parse(&hex("04 00 7f 02 55")), Err(ParseError::Truncated { needed: 4, got: 3 }));
    assert_eq!(Message::parse(&hex("04 00 7f")), Err(ParseError::Truncated { needed: 2, got: 1 }));
}

#[test]
fn reserved_bits_are_ignored() {
    let reserved = hex("01 07 ff 03 01020304 0a000009 00000011 0a000001 fffffffe");
    assert_eq!(Message::parse(&reserved), Ok(Message::Rreq(rreq())));
    assert_eq!(Message::parse(&hex("04 ff")), Ok(Message::RrepAck));
}

#[test]
fn malformed_messages_are_refused_with_the_reason() {
    assert_eq!(
        Message::parse(&hex("05 00 00 00")),
        Err(ParseError::Unsupported { what: "aodv type", value: 5 })
    );
    assert_eq!(
        Message::parse(&hex("03 00 00 00")),
        Err(ParseError::BadLength { what: "rerr destinations", value: 0 })
    );
    assert_eq!(
        Message::parse(&hex("03 00 00 ff 0a000009 00000013")),
        Err(ParseError::Truncated { needed: 2044, got: 12 })
    );
}

#[test]
fn every_truncation_is_refused() {
    for message in [Message::Rreq(rreq()), Message::Rrep(rrep()), Message::Rerr(rerr()), Message::RrepAck] {
        assert_every_prefix_is_refused(&emitted(&message).into(), |bytes| Message::parse(bytes));
    }
}

#[test]
fn a_flipped_bit_gives_another_message_or_an_error() {
    for message in [Message::Rreq(rreq()), Message::Rrep(rrep()), Message::Rerr(rerr())] {
        for bytes in bit_flips(&emitted(&message).into()) {
            if let Ok(other) = Message::parse(&bytes) {
                assert_eq!(Message::parse(&emitted(&other)), Ok(other));
            }
        }
    }
}

#[test]
fn a_lifetime_beyond_the_field_is_clamped() {
    let eternal = Message::Rrep(Rrep { lifetime: Duration::MAX, ..rrep() });
    assert_eq!(emitted(&eternal)[16..], [0xff; 4]);
}

#[test]
#[should_panic(expected = "at most 255 destinations")]
fn too_many_destinations_panic() {
    emitted(&Message::Rerr(Rerr { no_delete: false, unreachable: vec![(A, Seq32(0)); 256] }));
}

fn any_seq() -> impl Strategy<Value = Seq32> {
    any::<u32>().prop_map(Seq32)
}

fn any_rreq() -> impl Strategy<Value = Message> {
    let flags = any::<[bool; 4]>();
    let destination = (any::<Ipv4Addr>(), prop::option::of(any_seq()));
    (flags, any::<u8>(), any::<u32>(), destination, any::<Ipv4Addr>(), any_seq()).prop_map(
        |(flags, hop_count, id, (destination, destination_seq), originator, originator_seq)| {
            let [join, repair, gratuitous, destination_only] = flags;
            Message::Rreq(Rreq {
                join,
                repair,
                gratuitous,
                destination_only,
                hop_count,
                id,
                destination,
                destination_seq,
                originator,
                originator_seq,
            })
        },
    )
}

fn any_rrep() -> impl Strategy<Value = Message> {
    let fields = (any::<bool>(), any::<bool>(), 0..32u8, any::<u8>());
    (fields, any::<Ipv4Addr>(), any_seq(), any::<Ipv4Addr>(), any::<u32>()).prop_map(
        |(
            (repair, ack_required, prefix_size, hop_count),
            destination,
            destination_seq,
            originator,
            millis,
        )| {
            Message::Rrep(Rrep {
                repair,
                ack_required,
                prefix_size,
                hop_count,
                destination,
                destination_seq,
                originator,
                lifetime: Duration::from_millis(millis.into()),
            })
        },
    )
}

fn any_rerr() -> impl Strategy<Value = Message> {
    (any::<bool>(), prop::collection::vec((any::<Ipv4Addr>(), any_seq()), 1..256))
        .prop_map(|(no_delete, unreachable)| Message::Rerr(Rerr { no_delete, unreachable }))
}

proptest! {
    #[test]
    fn emitted_messages_parse_back(
        message in prop_oneof![any_rreq(), any_rrep(), any_rerr(), Just(Message::RrepAck)],
    ) {
        let bytes = emitted(&message);
        prop_assert_eq!(bytes.len(), message.wire_len());
        prop_assert_eq!(Message::parse(&bytes), Ok(message));
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(
        kind in 0..6u8,
        bytes in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let _ = Message::parse(&[&[kind], &bytes[..]].concat());
    }
}
