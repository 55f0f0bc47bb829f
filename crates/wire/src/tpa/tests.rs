use super::*;
use crate::testing::{any_ip, any_payload, assert_every_prefix_is_refused, bit_flips, hex, ip};
use proptest::prelude::*;

fn tag(n: u64) -> Option<Tag> {
    NonZeroU64::new(n).map(Tag)
}

fn data() -> Segment<Bytes> {
    Segment {
        block: 0x0183,
        position: Some(SegmentPosition { position: 9, is_last: false }),
        tx: 12,
        ack: Some(Ack { block: 0x02fe, bitmap: Bitmap::first(3), tx: 7 }),
        control: Control::None,
        tx_stat: TxStat::Congested,
        window: 17_520,
        tag: None,
        receipt: Receipt::default(),
        opening: None,
        payload: Bytes::from_static(b"ad hoc"),
    }
}

#[test]
fn a_data_segment_over_udp_has_its_encoding() {
    let mut out = Vec::new();
    data().emit_udp(&mut out);
    let expected = hex("83 fe 0c 07  200 007 88  4470  01 02") // then the data
        .iter()
        .copied()
        .chain(*b"ad hoc")
        .collect::<Vec<_>>();
    assert_eq!(out, expected);
    assert_eq!(Segment::parse_udp(&Bytes::from(out)), Ok(data()));
    assert_eq!(data().udp_len(), 12 + 6);
}

#[test]
fn a_native_segment_has_its_encoding_with_8_bit_block_numbers() {
    let ports = Ports { src: 1000, dst: 7172 };
    let mut out = Vec::new();
    data().emit_native(&ip(PROTOCOL), ports, &mut out);
    assert_eq!(&out[..14], &hex("03e8 1c04 83 fe 0c 07 200 007 88 4470")[..]);
    assert_eq!(out.len(), NATIVE_HEADER_LEN + 6);
    let mut low = data();
    low.block &= 0xff;
    low.ack = low.ack.map(|ack| Ack { block: ack.block & 0xff, ..ack });
    assert_eq!(Segment::parse_native(&ip(PROTOCOL), &Bytes::from(out)), Ok((ports, low)));
}

#[test]
fn a_syn_carries_its_parameters() {
    let syn = Segment {
        control: Control::Syn,
        window: 0xffff,
        opening: Some(Opening {
            tag: tag(0x0102_0304_0506_0708),
            mss: 1452,
            block_segments: 12,
            cwnd_max: 3,
        }),
        ..Segment::default()
    };
    let mut out = Vec::new();
    syn.emit_udp(&mut out);
    assert_eq!(&out[..], &hex("00 00 00 00 000 000 22 ffff 0000  0102030405060708 05ac 02 0c 03 000000")[..]);
    assert_eq!(Segment::parse_udp(&Bytes::from(out)), Ok(syn));
}

#[test]
fn a_tag_comes_with_a_receipt() {
    let segment = Segment { tag: tag(5), receipt: Receipt { nonce: 0x1234, proof: 0xabcd }, ..data() };
    let mut out = Vec::new();
    segment.emit_udp(&mut out);
    assert_eq!(&out[UDP_HEADER_LEN..][..12], &hex("0000000000000005 1234 abcd")[..]);
    assert_eq!(segment.udp_len(), 12 + 12 + 6);
    assert_eq!(Segment::parse_udp(&Bytes::from(out)), Ok(segment));
}

#[test]
fn path_challenges_have_their_encoding() {
    let of_path = |control, payload| Segment { control, tag: tag(5), payload, ..Segment::default() };
    for (control, payload, expected) in [
        (
            Control::Challenge(ChallengeToken(9)),
            "ff ff",
            "31 0000 0000 0000000000000005 0000 0000 0000000000000009 ff ff",
        ),
        (Control::Echo(ChallengeToken(9)), "", "51 0000 0000 0000000000000005 0000 0000 0000000000000009"),
        (Control::StatelessReset, "", "61 0000 0000 0000000000000005 0000 0000"),
    ] {
        let segment = of_path(control, hex(payload));
        let mut out = Vec::new();
        segment.emit_udp(&mut out);
        assert_eq!(&out[..], &hex(&format!("00 00 00 00 000 000 {expected}"))[..]);
        assert_eq!(out.len(), segment.udp_len());
        assert_eq!(Segment::parse_udp(&Bytes::from(out)), Ok(segment));
    }
}

#[test]
fn invalid_segments_are_refused_with_the_reason() {
    let refused = |text: &str| Segment::parse_udp(&hex(text)).map(|_| ()).map_err(|e| e.to_string());
    let says = |text: &str| Err(format!("unsupported {text}"));
    assert_eq!(refused("00 00 00 00 003 000 00 0000 0000"), says("tpa position: 3"));
    assert_eq!(refused("00 00 00 00 000 000 04 0000 0000"), says("tpa position: 0"));
    assert_eq!(refused("00 00 00 00 000 000 70 0000 0000"), says("tpa flags: 7"));
    assert_eq!(refused("00 00 00 00 000 000 10 0000 0000"), says("tpa FIN without position: 0"));
    assert_eq!(refused("00 00 00 00 000 000 00 0000 0000 ff"), says("tpa data without position: 0"));
    let of_path = says("tpa question of the path with more than its tag: 0");
    let tag = "0000000000000001 0000 0000";
    let opening = "0000000000000001 05ac 02 0c 03 000000";
    assert_eq!(refused("00 00 00 00 000 000 30 0000 0000 0000000000000007"), of_path);
    assert_eq!(refused("00 00 00 00 000 000 60 0000 0000"), of_path);
    assert_eq!(refused(&format!("00 00 00 00 001 000 61 0000 0000 {tag}")), of_path);
    assert_eq!(refused(&format!("00 00 00 00 000 000 e1 0000 0000 {tag}")), of_path);
    assert_eq!(refused(&format!("00 00 00 00 000 000 63 0000 0000 {tag} {opening}")), of_path);
    let data = says("tpa data without position: 0");
    assert_eq!(refused(&format!("00 00 00 00 000 000 51 0000 0000 {tag} 0000000000000007 ff")), data);
    assert_eq!(refused(&format!("00 00 00 00 000 000 61 0000 0000 {tag} ff")), data);
    assert_eq!(refused("00 00 00 00 001 000 20 0000 0000"), says("tpa position of SYN or RST: 0"));
    assert_eq!(refused("00 00 00 00 000 000 01 0000 0000 0000000000000000 0000 0000"), says("tpa tag: 0"));
    let opening = "00 00 00 00 000 000 22 0000 0000 0000000000000001 05ac";
    assert_eq!(refused(&format!("{opening} 01 0c 03 000000")), says("tpa version: 1"));
    assert_eq!(refused(&format!("{opening} 02 0d 03 000000")), says("tpa block size: 13"));
    assert_eq!(refused(&format!("{opening} 02 00 03 000000")), says("tpa block size: 0"));
    assert_eq!(refused(&format!("{opening} 02 0c 00 000000")), says("tpa cwndmax: 0"));
}

#[test]
fn every_truncated_header_and_every_flipped_bit_of_the_native_form_is_refused() {
    let full = Segment {
        tag: tag(5),
        opening: Some(Opening { tag: tag(6), mss: 1, block_segments: 1, cwnd_max: 1 }),
        position: None,
        payload: Bytes::new(),
        ..data()
    };
    let mut out = Vec::new();
    full.emit_udp(&mut out);
    assert_every_prefix_is_refused(&Bytes::from(out), Segment::parse_udp);
    let mut out = Vec::new();
    full.emit_native(&ip(PROTOCOL), Ports { src: 1, dst: 2 }, &mut out);
    let whole = Bytes::from(out);
    assert_every_prefix_is_refused(&whole, |bytes| Segment::parse_native(&ip(PROTOCOL), bytes));
    for flipped in bit_flips(&whole) {
        assert!(Segment::parse_native(&ip(PROTOCOL), &flipped).is_err());
    }
}

#[test]
fn a_bitmap_is_a_set_of_twelve_positions() {
    let mut set = Bitmap::first(3);
    set.insert(11);
    set.insert(12);
    set.remove(1);
    assert_eq!(set.positions().collect::<Vec<_>>(), [0, 2, 11]);
    assert_eq!((set.count(), set.lowest(), set.bits()), (3, Some(0), 0b1000_0000_0101));
    assert!(set.contains(11) && !set.contains(1) && !set.contains(12) && !set.contains(200));
    assert_eq!(Bitmap::first(12), Bitmap::from_bits(0xffff));
    assert_eq!(Bitmap::first(200).count(), 12);
    assert_eq!(Bitmap::first(12).without(set).count(), 9);
    assert_eq!(set.and(Bitmap::single(2)).or(Bitmap::single(5)).bits(), 0b10_0100);
    assert!(Bitmap::single(16).is_empty() && Bitmap::EMPTY.lowest().is_none());
}

fn any_segment() -> impl Strategy<Value = Segment<Bytes>> {
    let place = prop::option::of(
        (0..POSITIONS, any::<bool>())
            .prop_map(|(position, last)| SegmentPosition { position, is_last: last }),
    );
    let ack = prop::option::of((any::<u16>(), any::<u16>(), any::<u8>()).prop_map(|(block, bits, tx)| Ack {
        block,
        bitmap: Bitmap::from_bits(bits),
        tx,
    }));
    let opening = prop::option::of((any::<u64>(), any::<u16>(), 1..=POSITIONS, 1..=u8::MAX).prop_map(
        |(t, mss, block_segments, cwnd_max)| Opening { tag: tag(t), mss, block_segments, cwnd_max },
    ));
    let numbers = (any::<u16>(), any::<u8>(), any::<u16>());
    let tagged = prop::option::of((1..=u64::MAX, any::<u16>(), any::<u16>()));
    (numbers, place, ack, 0..7u8, any::<bool>(), tagged, opening, any_payload()).prop_map(
        |((block, tx, window), place, ack, control, congested, tagged, opening, payload)| {
            let (t, nonce, proof) = tagged.unwrap_or_default();
            let token = ChallengeToken(t ^ 0xff);
            let control = match (control, place) {
                (1, Some(_)) => Control::Fin,
                (2, None) => Control::Syn,
                (3, None) => Control::Rst,
                (4, None) if t != 0 => Control::Challenge(token),
                (5, None) if t != 0 => Control::Echo(token),
                (6, None) if t != 0 => Control::StatelessReset,
                _ => Control::None,
            };
            let of_path =
                matches!(control, Control::Challenge(_) | Control::Echo(_) | Control::StatelessReset);
            let may_have_payload = place.is_some() || matches!(control, Control::Challenge(_));
            Segment {
                block,
                position: place,
                tx,
                ack: ack.filter(|_| !of_path),
                control,
                tx_stat: if congested { TxStat::Congested } else { TxStat::Normal },
                window,
                tag: tag(t),
                receipt: Receipt { nonce, proof },
                opening: opening.filter(|_| !of_path),
                payload: if may_have_payload { payload } else { Bytes::new() },
            }
        },
    )
}

proptest! {
    #[test]
    fn emitted_segments_parse_back(segment in any_segment(), header in any_ip(Just(PROTOCOL)), src: u16, dst: u16) {
        let mut out = Vec::new();
        segment.emit_udp(&mut out);
        prop_assert_eq!(out.len(), segment.udp_len());
        prop_assert_eq!(Segment::parse_udp(&Bytes::from(out)), Ok(segment.clone()));

        let low = Segment {
            block: segment.block & 0xff,
            ack: segment.ack.map(|ack| Ack { block: ack.block & 0xff, ..ack }),
            ..segment
        };
        let mut out = Vec::new();
        low.emit_native(&header, Ports { src, dst }, &mut out);
        prop_assert_eq!(Segment::parse_native(&header, &Bytes::from(out)), Ok((Ports { src, dst }, low)));
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), header in any_ip(Just(PROTOCOL))) {
        let bytes = Bytes::from(bytes);
        if let Ok(segment) = Segment::parse_udp(&bytes) {
            let mut out = Vec::new();
            segment.emit_udp(&mut out);
            prop_assert_eq!(Segment::parse_udp(&Bytes::from(out)), Ok(segment));
        }
        let _ = Segment::parse_native(&header, &bytes);
    }
}
