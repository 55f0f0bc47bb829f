use super::*;
use crate::testing::{assert_every_prefix_is_refused, hex};
use proptest::prelude::*;

fn emitted(frame: &Frame) -> Bytes {
    let mut out = Vec::new();
    frame.emit(&mut out);
    assert_eq!(out.len(), frame.wire_len());
    Bytes::from(out)
}

fn numbers(of: &[u32]) -> PacketNumbers {
    PacketNumbers::new(of.to_vec()).unwrap()
}

/// Every kind, and its bytes.
fn kinds() -> [(Body, &'static str); 8] {
    let packet = Bytes::from_static(&[0x45, 1, 2]);
    let data = |sending| Body::Data { number: 9, transmission: sending, packet: packet.clone() };
    let parity = Parity::over(7, [&[1, 2, 3][..], &[4, 5]].into_iter()).unwrap();
    [
        (data(TransmissionKind::Original), "d510 0304 00000009 450102"),
        (data(TransmissionKind::Retransmission), "d511 0304 00000009 450102"),
        (Body::Request(numbers(&[9])), "d512 0304 00000009"),
        (Body::Request(numbers(&[9, 11])), "d512 0304 00000009 0000000b"),
        (Body::NotCached(numbers(&[9, 12])), "d513 0304 00000009 0000000c"),
        (Body::Tail(8), "d514 0304 00000008"),
        (Body::Report(u32::MAX), "d515 0304 ffffffff"),
        (Body::Parity(parity), "d516 0304 00000007 0002 0001 050703"),
    ]
}

#[test]
fn each_kind_has_its_encoding() {
    for (body, bytes) in kinds() {
        let frame = Frame { epoch: 0x0304, body };
        assert_eq!(emitted(&frame), hex(bytes), "{frame:?}");
        assert_eq!(Frame::parse(&hex(bytes)), Ok(frame));
    }
}

#[test]
fn truncated_frames_are_refused() {
    for bytes in
        ["d510 0304 00000009", "d512 0304 00000009", "d514 0304 00000008", "d516 0304 00000007 00020000"]
    {
        assert_every_prefix_is_refused(&hex(bytes), Frame::parse);
    }
    let odd = Err(ParseError::BadLength { what: "D-Proxy numbers", value: 3 });
    assert_eq!(Frame::parse(&hex("d512 0304 00000009 000000")), odd);
}

#[test]
fn invalid_frames_are_refused() {
    let unsupported = |what, value| Err(ParseError::Unsupported { what, value });
    let long = |what, value| Err(ParseError::BadLength { what, value });
    assert_eq!(Frame::parse(&hex("4510 0304 00000009")), unsupported("D-Proxy frame", 0x4510));
    assert_eq!(Frame::parse(&hex("d520 0304 00000009")), unsupported("D-Proxy frame", 0xd520));
    assert_eq!(Frame::parse(&hex("d517 0304 00000009")), unsupported("D-Proxy kind", 7));
    assert_eq!(Frame::parse(&hex("d514 0304 00000009 00")), long("D-Proxy frame", 9));
    assert_eq!(Frame::parse(&hex("d516 0304 00000009 0000 0000")), long("D-Proxy parity", 12));
    let many = Bytes::from([&hex("d512 0304 00000009")[..], &[0; 4 * MAX_NUMBERS]].concat());
    assert_eq!(Frame::parse(&many), long("D-Proxy numbers", 4 * MAX_NUMBERS));
    assert_eq!((PacketNumbers::new(vec![]), PacketNumbers::new(vec![1; MAX_NUMBERS + 1])), (None, None));
}

#[test]
fn parity_with_wrong_packets_recovers_nothing() {
    let parity = Parity::over(7, [&[1, 2, 3][..], &[4, 5], &[6]].into_iter()).unwrap();
    let made = |others: &[&'static [u8]]| parity.recover(others.iter().copied());
    assert_eq!(made(&[&[1, 2, 3], &[6]]).as_deref(), Some(&[4, 5][..]));
    assert_eq!(made(&[&[1, 2, 3]]), None, "two are missing");
    assert_eq!(made(&[&[1, 2, 3], &[7, 7, 7, 7]]), None, "it is no part of it");
    assert_eq!(made(&[&[1, 2, 3], &[4, 9, 9]]), None, "the length does not fit");
    assert_eq!(Parity::over(7, [].into_iter()), None);
}

proptest! {
    #[test]
    fn any_single_packet_can_be_recovered(
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..20),
        lost: prop::sample::Index,
    ) {
        let slices = || packets.iter().map(Vec::as_slice);
        let parity = Parity::over(3, slices()).expect("some");
        let lost = lost.index(packets.len());
        let others = slices().enumerate().filter(|(at, _)| *at != lost).map(|(_, packet)| packet);
        prop_assert_eq!(parity.recover(others).expect("one is missing"), packets[lost].clone());
    }

    #[test]
    fn parsed_frames_are_emitted_unchanged(mut bytes in prop::collection::vec(any::<u8>(), 8..300), kind in 0u8..8) {
        (bytes[0], bytes[1]) = (MAGIC, 0x10 | kind);
        let bytes = Bytes::from(bytes);
        if let Ok(frame) = Frame::parse(&bytes) {
            prop_assert_eq!(emitted(&frame), bytes);
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>) {
        let _ = Frame::parse(&Bytes::from(bytes));
    }
}
