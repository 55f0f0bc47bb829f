use super::*;
use crate::ip::{Header, Protocol};
use crate::testing::{any_payload, any_version, assert_every_prefix_is_refused, bit_flips, hex, ip};
use hopline_core::Length;
use proptest::prelude::*;
use proptest::sample::select;

const SYN: &str =
    "c000 0050 01020304 00000000 a0 02 ffff 6fa6 0000 020405b4 0402 080a 00000001 00000000 01 030307";
const DATA: &str = "0050 c000 0a0b0c0d 01020305 b0 18 03e8 59db 0000 \
     0101 080a 00000002 00000001 0101 050a 00001000 00002000 616263";

fn syn() -> Segment<Bytes> {
    Segment {
        src_port: 49_152,
        dst_port: 80,
        seq: Seq32(0x0102_0304),
        flags: Flags::SYN,
        window: 0xffff,
        options: Options {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: 1, echo: 0 }),
            ..Options::default()
        },
        ..Segment::default()
    }
}

fn data() -> Segment<Bytes> {
    let timestamps = Some(Timestamps { value: 2, echo: 1 });
    Segment {
        src_port: 80,
        dst_port: 49_152,
        seq: Seq32(0x0a0b_0c0d),
        ack: Seq32(0x0102_0305),
        flags: Flags::PSH | Flags::ACK,
        window: 1000,
        options: Options { timestamps, sack: sack(&[(0x1000, 0x2000)]), ..Options::default() },
        payload: Bytes::from_static(b"abc"),
        ..Segment::default()
    }
}

fn sack(blocks: &[(u32, u32)]) -> SackBlocks {
    let mut sack = SackBlocks::default();
    for &(left, right) in blocks {
        assert!(sack.push(SackBlock { left: Seq32(left), right: Seq32(right) }));
    }
    sack
}

fn emitted<P: Emit>(segment: &Segment<P>) -> Bytes {
    let mut out = Vec::new();
    segment.emit(&ip(Protocol::Tcp), &mut out);
    Bytes::from(out)
}

fn parse(bytes: &Bytes) -> Result<Segment<Bytes>, ParseError> {
    Segment::parse(&ip(Protocol::Tcp), bytes)
}

/// Returns a segment with this option area, padded to 32 bits with zeros.
fn with_options(area: &str) -> Bytes {
    let mut area = hex(area).to_vec();
    area.resize(area.len().next_multiple_of(4), 0);
    let mut bytes = hex("c000 0050 01020304 00000000 00 02 ffff 0000 0000").to_vec();
    bytes[12] = (((HEADER_LEN + area.len()) / 4) << 4) as u8;
    bytes.extend(area);
    rechecked(bytes)
}

/// Returns `bytes` with a corrected checksum.
fn rechecked(mut bytes: Vec<u8>) -> Bytes {
    bytes[16..18].fill(0);
    let mut sum = ChecksumSum::pseudo_header(&ip(Protocol::Tcp), bytes.len());
    sum.add(&bytes);
    bytes[16..18].copy_from_slice(&sum.finish().to_be_bytes());
    Bytes::from(bytes)
}

fn options(area: &str) -> Result<Options, ParseError> {
    parse(&with_options(area)).map(|segment| segment.options)
}

#[test]
fn a_syn_is_written_byte_for_byte() {
    assert_eq!(emitted(&syn()), hex(SYN));
    assert_eq!(parse(&hex(SYN)), Ok(syn()));
}

#[test]
fn data_with_timestamps_and_sack_are_written_byte_for_byte() {
    assert_eq!(emitted(&data()), hex(DATA));
    assert_eq!(parse(&hex(DATA)), Ok(data()));
}

#[test]
fn header_lengths_are_those_of_common_stacks() {
    assert_eq!(Segment::<Length>::default().header_len(), 20);
    assert_eq!(syn().header_len(), 40);
    let mut segment = data();
    for (blocks, len) in [(1, 44), (2, 52), (3, 60)] {
        segment.options.sack = sack(&vec![(1, 2); blocks]);
        assert_eq!(segment.header_len(), len);
    }
    segment.options.timestamps = None;
    segment.options.sack = sack(&[(1, 2); 4]);
    assert_eq!(segment.header_len(), 56);
    segment.options = Options { mss: Some(1460), ..Options::default() };
    assert_eq!(segment.header_len(), 24);
    segment.options = Options { mss: Some(1460), sack_permitted: true, ..Options::default() };
    assert_eq!(segment.header_len(), 28);
}

#[test]
fn header_len_is_a_constant_where_the_segment_is() {
    const LEN: usize = {
        let options = Options {
            mss: Some(536),
            window_scale: None,
            sack_permitted: false,
            timestamps: None,
            door: None,
            acc_ecn: None,
            nack: false,
            sack: SackBlocks { len: 0, blocks: [SackBlock { left: Seq32(0), right: Seq32(0) }; 4] },
        };
        options.len()
    };
    assert_eq!(LEN, 4);
}

#[test]
fn timestamps_leave_room_for_three_sack_blocks() {
    let mut segment = data();
    segment.options.sack = sack(&[(1, 2), (3, 4), (5, 6), (7, 8)]);
    assert_eq!((segment.options.sack_room(), segment.header_len()), (3, 60));
    let parsed = parse(&emitted(&segment)).unwrap();
    assert_eq!(parsed.options.sack, sack(&[(1, 2), (3, 4), (5, 6)]), "the oldest is left out");
}

#[test]
fn options_that_do_not_fit_aligned_are_packed() {
    // MSS and SACK together are legal, if odd: 4 + 10 + 26 bytes without NOPs.
    let mut segment = data();
    segment.options.mss = Some(536);
    segment.options.sack = sack(&[(1, 2), (3, 4), (5, 6)]);
    assert_eq!(segment.header_len(), 60);
    assert_eq!(parse(&emitted(&segment)), Ok(segment));
}

#[test]
fn options_are_found_at_any_offset() {
    assert_eq!(options("01 01 01 020405b4").unwrap().mss, Some(1460));
    assert_eq!(options("030307 0402 080a 00000001 00000002 020405b4"), {
        let timestamps = Some(Timestamps { value: 1, echo: 2 });
        let sack = SackBlocks::default();
        Ok(Options {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps,
            door: None,
            acc_ecn: None,
            nack: false,
            sack,
        })
    });
}

#[test]
fn unknown_options_are_skipped() {
    // 34: TCP Fast Open; 254: experimental.
    assert_eq!(options("22 0a 0102030405060708 fe 02 020405b4").unwrap().mss, Some(1460));
}

#[test]
fn the_option_of_tcp_door_is_written_byte_for_byte() {
    let written = |door| {
        let segment =
            Segment::<Bytes> { options: Options { door: Some(door), ..Options::default() }, ..syn() };
        let bytes = emitted(&segment);
        assert_eq!(parse(&bytes), Ok(segment));
        assert_eq!(bytes.len(), HEADER_LEN + DOOR_LEN);
        bytes.slice(HEADER_LEN..)
    };
    let report = |adsn, tpsn, out_of_order| DoorOption::Report(DoorReport { adsn, tpsn, out_of_order });
    let all = DoorFeatures { adsn: true, tpsn: true, feedback: true };
    assert_eq!(written(DoorOption::Offer(all)), hex("01 01 01 fd 05 d002 87"));
    let some = DoorFeatures { adsn: true, ..DoorFeatures::default() };
    assert_eq!(written(DoorOption::Offer(some)), hex("01 01 01 fd 05 d002 81"));
    assert_eq!(written(report(Some(0xab), Some(0x1234), true)), hex("fd 08 d002 07 ab 1234"));
    assert_eq!(written(report(None, Some(0xffff), false)), hex("01 fd 07 d002 02 ffff"));
    assert_eq!(written(report(Some(255), None, false)), hex("01 01 fd 06 d002 01 ff"));
    assert_eq!(written(report(None, None, true)), hex("01 01 01 fd 05 d002 04"));
    assert_eq!(written(DoorOption::Malformed), hex("01 01 01 01 fd 04 d002"));
}

#[test]
fn a_malformed_door_option_affects_no_other_option() {
    let door = |area| options(&format!("{area} 01 01 020405b4")).map(|o| (o.door, o.mss)).unwrap();
    for area in [
        "fd04 d002",               // no flags
        "fd05 d002 01",            // the ADSN is missing
        "fd06 d002 00 01",         // more than the flags say
        "fd06 d002 02 01",         // half a TPSN
        "fd09 d002 03 01 0002 00", // too long
        "fd05 d002 08",            // an unknown flag
        "fd06 d002 81 01",         // an offer with a value
    ] {
        assert_eq!(door(area), (Some(DoorOption::Malformed), Some(1460)), "{area}");
    }
    // Another experiment, one without identifier, and the other experimental kind.
    for area in ["fd06 d003 01 01", "fd03 d0", "fd02", "fe06 d002 01 01"] {
        assert_eq!(door(area), (None, Some(1460)), "{area}");
    }
    assert_eq!(
        options("fd 05 d002 01 01"),
        Ok(Options { door: Some(DoorOption::Malformed), ..Options::default() })
    );
    assert_eq!(options("01 01 fd 06"), Err(ParseError::Truncated { needed: 6, got: 2 }));
}

#[test]
fn tcp_door_leaves_room_for_sack_blocks() {
    let mut segment = data();
    let report = DoorReport { adsn: Some(1), tpsn: Some(2), out_of_order: false };
    segment.options.door = Some(DoorOption::Report(report));
    segment.options.sack = sack(&[(1, 2), (3, 4), (5, 6), (7, 8)]);
    assert_eq!((segment.options.sack_room(), segment.header_len()), (2, 60), "with timestamps");
    segment.options.timestamps = None;
    assert_eq!((segment.options.sack_room(), segment.header_len()), (3, 56), "without");
}

#[test]
fn nack_ranges_use_an_experimental_option_and_precede_sack() {
    let mut segment = data();
    segment.options = Options { sack: sack(&[(1, 2), (3, 4)]), nack: true, ..Options::default() };
    let mut written = Vec::new();
    segment.options.emit(&mut written);
    let area = "fd144e4b 00000001 00000002 00000003 00000004";
    assert_eq!(written, self::hex(area));
    assert_eq!(options(area), Ok(segment.options));
    let one = Options { sack: sack(&[(1, 2)]), nack: true, ..Options::default() };
    for both in [
        "fd0c4e4b 00000001 00000002 01 01 050a 00000007 00000008",
        "01 01 050a 00000007 00000008 fd0c4e4b 00000001 00000002",
    ] {
        assert_eq!(options(both), Ok(one));
    }
    for none in ["fd084e4b 00000001", "fd034e 01"] {
        assert_eq!(options(none), Ok(Options::default()), "{none}");
    }
    segment.options.sack = sack(&[(1, 2), (3, 4), (5, 6), (7, 8)]);
    segment.options.timestamps = Some(Timestamps::default());
    assert_eq!((segment.options.sack_room(), segment.options.len()), (3, 40));
    segment.options = Options { nack: true, ..Options::default() };
    written.clear();
    segment.options.emit(&mut written);
    assert_eq!(
        (written, options("fd044e4b")),
        (self::hex("fd044e4b").to_vec(), Ok(segment.options)),
        "an announcement"
    );
}

#[test]
fn headers_of_truncated_packets_without_checksums_parse() {
    let segment = Segment { payload: Bytes::from_static(b"some data"), ..data() };
    let ip = ipv4::Header {
        src: [10, 0, 0, 1].into(),
        dst: [10, 0, 0, 2].into(),
        ttl: 64,
        protocol: ipv4::Protocol::Tcp,
        ecn: Ecn::NotCapable,
        id: 7,
    };
    let mut packet = Vec::new();
    ip.emit(segment.wire_len(), &mut packet);
    segment.emit(&ip, &mut packet);
    let headers = packet.len() - segment.payload.len();
    packet[36..38].fill(0xaa);
    let (read, of_it) = Segment::parse_headers(&packet[..headers]).unwrap();
    assert_eq!((read, of_it.payload), (ip, Length(9)));
    assert_eq!((of_it.seq, of_it.options), (segment.seq, segment.options));
    assert!(Segment::parse_headers(&packet[..headers - 1]).is_err(), "cut short");
    packet[9] = 17;
    assert!(Segment::parse_headers(&packet).is_err(), "another protocol");
    packet[9] = 6;
    packet[2..4].copy_from_slice(&20u16.to_be_bytes());
    assert!(Segment::parse_headers(&packet).is_err(), "shorter than its headers");
}

#[test]
fn bytes_after_the_end_of_options_are_ignored() {
    assert_eq!(options("00 ff ff ff"), Ok(Options::default()));
}

#[test]
fn malformed_options_are_refused_with_the_reason() {
    let length = |what, value| Err(ParseError::BadLength { what, value });
    assert_eq!(options("ff 00"), length("tcp option", 0));
    assert_eq!(options("02 01"), length("tcp option", 1));
    assert_eq!(options("02 03 05 00"), length("mss option", 3));
    assert_eq!(options("03 04 07 00"), length("window scale option", 4));
    assert_eq!(options("04 03 00 00"), length("sack-permitted option", 3));
    assert_eq!(options("08 08 000000010000"), length("timestamps option", 8));
    assert_eq!(options("05 02"), length("sack option", 2));
    assert_eq!(options("05 06 00000001"), length("sack option", 6));
    assert_eq!(options("01 01 08 0a"), Err(ParseError::Truncated { needed: 10, got: 2 }));
    assert_eq!(options("01 01 01 02"), Err(ParseError::Truncated { needed: 2, got: 1 }));
}

#[test]
fn a_data_offset_outside_the_segment_is_refused() {
    let mut bytes = hex(SYN).to_vec();
    bytes[12] = 0x40;
    assert_eq!(
        parse(&rechecked(bytes.clone())),
        Err(ParseError::BadLength { what: "tcp header", value: 16 })
    );
    bytes[12] = 0xf0;
    assert_eq!(parse(&rechecked(bytes)), Err(ParseError::Truncated { needed: 60, got: 40 }));
}

#[test]
fn every_truncation_is_refused() {
    assert_every_prefix_is_refused(&hex(SYN), parse);
    assert_every_prefix_is_refused(&hex(DATA), parse);
}

#[test]
fn any_flipped_bit_is_detected() {
    for (bit, bytes) in bit_flips(&hex(DATA)).enumerate() {
        assert!(parse(&bytes).is_err(), "bit {bit}");
    }
    let mut wrong = hex(DATA).to_vec();
    wrong[45] ^= 1;
    assert_eq!(parse(&Bytes::from(wrong)), Err(ParseError::BadChecksum));
}

#[test]
fn a_flipped_bit_with_a_right_checksum_gives_another_segment_or_an_error() {
    for bytes in bit_flips(&hex(DATA)) {
        if let Ok(other) = parse(&rechecked(bytes.to_vec())) {
            assert_eq!(parse(&emitted(&other)), Ok(other));
        }
    }
}

#[test]
fn the_checksum_covers_addresses_and_protocol() {
    let mut elsewhere = ip(Protocol::Tcp);
    elsewhere.src = std::net::Ipv4Addr::new(10, 0, 0, 3);
    assert_eq!(Segment::parse(&elsewhere, &hex(SYN)), Err(ParseError::BadChecksum));
    assert_eq!(Segment::parse(&ip(Protocol::Udp), &hex(SYN)), Err(ParseError::BadChecksum));
}

#[test]
fn a_length_is_written_as_zeros() {
    let zeros = Segment { payload: Bytes::from_static(&[0; 1460]), ..data() };
    let lengths = Segment {
        src_port: zeros.src_port,
        dst_port: zeros.dst_port,
        seq: zeros.seq,
        ack: zeros.ack,
        flags: zeros.flags,
        window: zeros.window,
        urgent: zeros.urgent,
        options: zeros.options,
        ecn: zeros.ecn,
        payload: Length(1460),
    };
    assert_eq!(emitted(&lengths), emitted(&zeros));
    assert_eq!(lengths.wire_len(), 44 + 1460);
}

/// An ACK of a receiver that has counted 0x10203 bytes as CE and 1 as ECT(1).
fn with_acc_ecn(count: u8, order: AccEcnOrder) -> Segment<Bytes> {
    let counters = AccEcnCounters { e0b: 1, ceb: 0x0001_0203, e1b: 0xff00_0002 };
    let options = Options { acc_ecn: Some(AccEcnOption::new(order, counters, count)), ..Options::default() };
    Segment { flags: Flags::ACK | Flags::from_ace(0b101), options, ..Segment::default() }
}

#[test]
fn acc_ecn_options_have_the_layout_of_rfc_9768() {
    for (count, order, option) in [
        (0, AccEcnOrder::Zero, "0101 ac02"),
        (1, AccEcnOrder::One, "010101 ae05 000002"),
        (2, AccEcnOrder::One, "ae08 000002 010203"),
        (3, AccEcnOrder::Zero, "01 ac0b 000001 010203 000002"),
    ] {
        let segment = with_acc_ecn(count, order);
        let bytes = emitted(&segment);
        assert_eq!(bytes[HEADER_LEN..], hex(option)[..], "{count} {order:?}");
        assert_eq!(parse(&bytes), Ok(segment));
    }
    let option = with_acc_ecn(2, AccEcnOrder::One).options.acc_ecn.unwrap();
    assert_eq!((option.e1b(), option.ceb(), option.e0b()), (Some(2), Some(0x1_0203), None));
}

#[test]
fn whole_fields_of_an_acc_ecn_option_of_another_length_count() {
    // RFC 9768 §3.2.3: the rest is padding.
    let with_length = |len: u8, option: &str| {
        let mut bytes = emitted(&with_acc_ecn(3, AccEcnOrder::Zero)).to_vec();
        bytes.truncate(HEADER_LEN);
        bytes.extend(hex(option));
        bytes[12] = bytes[12] & 0x0f | len << 4;
        parse(&rechecked(bytes)).unwrap().options.acc_ecn.unwrap()
    };
    let long = with_length(9, "ac0e 000001 010203 000002 ffffff 0000");
    assert_eq!((long.e0b(), long.ceb(), long.e1b(), long.len()), (Some(1), Some(0x1_0203), Some(2), 11));
    let short = with_length(7, "ae07 000001 ffff 00");
    assert_eq!((short.e1b(), short.ceb(), short.len()), (Some(1), None, 5));
}

#[test]
fn two_sack_blocks_fit_beside_timestamps_and_an_acc_ecn_option() {
    // RFC 9768 §3.2.3.3: two blocks have precedence, and 10 + 11 + 18 bytes fit.
    let mut segment = with_acc_ecn(3, AccEcnOrder::One);
    segment.options.timestamps = Some(Timestamps { value: 1, echo: 2 });
    segment.options.sack = sack(&[(1, 2), (3, 4)]);
    assert_eq!((segment.options.len(), segment.options.sack_room()), (40, 2));
    assert_eq!(parse(&emitted(&segment)), Ok(segment));
}

#[test]
fn the_ace_field_is_ae_cwr_ece() {
    assert_eq!(Flags::from_ace(0b100), Flags::AE);
    assert_eq!(Flags::from_ace(0b011), Flags::CWR | Flags::ECE);
    for ace in 0..8 {
        assert_eq!((Flags::from_ace(ace) | Flags::ACK | Flags::SYN).ace(), ace);
    }
    let bytes = emitted(&Segment { flags: Flags::AE | Flags::ACK, ..data() });
    assert_eq!(
        (bytes[12] & 0x0f, bytes[13]),
        (0x01, 0x10),
        "RFC 9768 §3.2.2: the bit below the reserved ones"
    );
}

fn any_door() -> impl Strategy<Value = DoorOption> {
    prop_oneof![
        any::<[bool; 3]>()
            .prop_map(|[adsn, tpsn, feedback]| { DoorOption::Offer(DoorFeatures { adsn, tpsn, feedback }) }),
        (any::<Option<u8>>(), any::<Option<u16>>(), any::<bool>()).prop_map(|(adsn, tpsn, out_of_order)| {
            DoorOption::Report(DoorReport { adsn, tpsn, out_of_order })
        }),
        Just(DoorOption::Malformed),
    ]
}

fn any_acc_ecn() -> impl Strategy<Value = AccEcnOption> {
    let order = prop_oneof![Just(AccEcnOrder::Zero), Just(AccEcnOrder::One)];
    (order, any::<[u32; 3]>(), 0..=3_u8).prop_map(|(order, [e0b, ceb, e1b], count)| {
        AccEcnOption::new(order, AccEcnCounters { e0b, ceb, e1b }, count)
    })
}

fn any_options() -> impl Strategy<Value = Options> {
    let timestamps = (any::<u32>(), any::<u32>()).prop_map(|(value, echo)| Timestamps { value, echo });
    (
        prop::option::of(any::<u16>()),
        prop::option::of(any::<u8>()),
        any::<bool>(),
        prop::option::of(timestamps),
        prop::option::of(any_door()),
        prop::option::of(any_acc_ecn()),
        prop::collection::vec(any::<(u32, u32)>(), 0..=4),
        any::<bool>(),
    )
        .prop_map(|(mss, window_scale, sack_permitted, timestamps, door, acc_ecn, blocks, nack)| {
            Options {
                mss,
                window_scale,
                sack_permitted,
                timestamps,
                door,
                acc_ecn,
                sack: sack(&blocks),
                nack,
            }
        })
}

fn any_segment() -> impl Strategy<Value = Segment<Bytes>> {
    (any::<[u16; 4]>(), any::<[u32; 2]>(), 0..=0x1ff_u16, any_options(), any_payload()).prop_map(
        |([src_port, dst_port, window, urgent], [seq, ack], flags, options, payload)| Segment {
            src_port,
            dst_port,
            seq: Seq32(seq),
            ack: Seq32(ack),
            flags: Flags(flags),
            window,
            urgent,
            options,
            ecn: Ecn::NotCapable,
            payload,
        },
    )
}

proptest! {
    #[test]
    fn emitted_segments_parse_back(header in any_version(Protocol::Tcp), segment in any_segment()) {
        let mut out = Vec::new();
        segment.emit(&header, &mut out);
        prop_assert_eq!(out.len(), segment.wire_len());
        let mut expected = Segment { ecn: header.ecn(), ..segment };
        let sent = expected.options.sack.len().min(expected.options.sack_room());
        let blocks = expected.options.sack;
        expected.options.acc_ecn = expected.options.acc_ecn_sent().copied();
        expected.options.sack = SackBlocks::default();
        for &block in &blocks.as_slice()[..sent] {
            prop_assert!(expected.options.sack.push(block));
        }
        prop_assert_eq!(Segment::parse(&header, &Bytes::from(out)), Ok(expected));
    }

    #[test]
    fn etherparse_reads_what_was_emitted(header in any_version(Protocol::Tcp), segment in any_segment()) {
        use etherparse::TcpOptionElement as Element;
        let mut out = Vec::new();
        segment.emit(&header, &mut out);
        let (theirs, payload) = etherparse::TcpHeader::from_slice(&out).unwrap();
        prop_assert_eq!(payload, &segment.payload[..]);
        let checksum = match header {
            Header::V4(ip) => theirs.calc_checksum_ipv4_raw(ip.src.octets(), ip.dst.octets(), payload),
            Header::V6(ip) => theirs.calc_checksum_ipv6_raw(ip.src.octets(), ip.dst.octets(), payload),
        }
        .unwrap();
        prop_assert_eq!(theirs.checksum, checksum);
        prop_assert_eq!(theirs.header_len(), segment.header_len());
        prop_assert_eq!(
            (theirs.source_port, theirs.destination_port, theirs.window_size, theirs.urgent_pointer),
            (segment.src_port, segment.dst_port, segment.window, segment.urgent)
        );
        prop_assert_eq!(
            (theirs.sequence_number, theirs.acknowledgment_number),
            (segment.seq.0, segment.ack.0)
        );
        let bits = [
            theirs.fin, theirs.syn, theirs.rst, theirs.psh, theirs.ack, theirs.urg, theirs.ece, theirs.cwr, theirs.ns,
        ];
        let flags = bits.iter().rev().fold(0, |flags, &bit| flags << 1 | u16::from(bit));
        prop_assert_eq!(flags, segment.flags.0);
        let mut seen = Options::default();
        for element in theirs.options_iterator() {
            let Ok(element) = element else {
                prop_assert!(segment.options.door.is_some()
                    || segment.options.nack
                    || segment.options.acc_ecn.is_some());
                return Ok(());
            };
            match element {
                Element::Noop => {}
                Element::MaximumSegmentSize(mss) => seen.mss = Some(mss),
                Element::WindowScale(shift) => seen.window_scale = Some(shift),
                Element::SelectiveAcknowledgementPermitted => seen.sack_permitted = true,
                Element::Timestamp(value, echo) => seen.timestamps = Some(Timestamps { value, echo }),
                Element::SelectiveAcknowledgement(first, rest) => {
                    let blocks: Vec<_> = core::iter::once(first).chain(rest.into_iter().flatten()).collect();
                    seen.sack = sack(&blocks);
                }
            }
        }
        let sent = segment.options.sack.len().min(segment.options.sack_room());
        prop_assert_eq!(seen.sack.as_slice(), &segment.options.sack.as_slice()[..sent]);
        // It knows no experiments.
        let Options { sack, door, acc_ecn, .. } = segment.options;
        prop_assert_eq!(Options { sack, door, acc_ecn, ..seen }, segment.options);
    }

    #[test]
    fn arbitrary_option_areas_do_not_panic_and_parse_back(
        words in 0..=10usize,
        area in prop::collection::vec(prop_oneof![0..12u8, any::<u8>(), select(&[253, 0xd0, 172, 174])], 40),
    ) {
        let mut bytes = hex("c000 0050 01020304 00000000 00 02 ffff 0000 0000").to_vec();
        bytes[12] = ((5 + words) << 4) as u8;
        bytes.extend(&area[..words * 4]);
        if let Ok(segment) = parse(&rechecked(bytes)) {
            prop_assert_eq!(parse(&emitted(&segment)), Ok(segment));
        }
    }
}
