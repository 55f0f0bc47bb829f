use super::*;
use crate::testing::{any_payload, bit_flips, hex, refuses_every_prefix};
use proptest::prelude::*;

const A: MacAddr = MacAddr::of_node(NodeId(1));
const B: MacAddr = MacAddr::of_node(NodeId(2));

fn rts() -> Frame<Bytes> {
    Frame::Rts { duration_us: 10_000, ra: B, ta: A }
}

fn data() -> Frame<Bytes> {
    Frame::Data { duration_us: 213, ra: B, ta: A, sequence: Seq16(0x123), retry: true, body: Bytes::new() }
}

fn emitted(frame: &Frame<Bytes>) -> Bytes {
    let mut out = Vec::new();
    frame.emit(&mut out);
    Bytes::from(out)
}

/// `frame` with bytes replaced from `at` on and the frame check sequence made right again.
fn patched(frame: &Frame<Bytes>, at: usize, with: &[u8]) -> Bytes {
    let mut bytes = emitted(frame).to_vec();
    bytes[at..at + with.len()].copy_from_slice(with);
    bytes.truncate(bytes.len() - FCS_LEN);
    with_fcs(bytes)
}

fn with_fcs(mut bytes: Vec<u8>) -> Bytes {
    let fcs = checksum::crc32(&bytes);
    bytes.extend(fcs.to_le_bytes());
    Bytes::from(bytes)
}

/// Both ways: these bytes are this frame.
fn assert_bytes(frame: Frame<Bytes>, bytes: &str) {
    assert_eq!(emitted(&frame), hex(bytes), "{frame:?}");
    assert_eq!(Frame::parse(&hex(bytes)), Ok(frame));
}

#[test]
fn control_frames_are_laid_out_as_in_section_9_3_1() {
    assert_bytes(rts(), "b400 1027 020000000002 020000000001 2fc0bb7c");
    assert_bytes(Frame::Cts { duration_us: 10_000, ra: A }, "c400 1027 020000000001 0961b0de");
    assert_bytes(Frame::Ack { duration_us: 0, ra: A }, "d400 0000 020000000001 d8d6bf8f");
}

#[test]
fn a_data_frame_carries_its_retry_bit_cell_sequence_number_and_snap_header() {
    assert_bytes(
        data(),
        "0808 d500 020000000002 020000000001 0268 6f70 0000 3012 aaaa03 000000 0800 c1c91348",
    );
}

#[test]
fn lengths_agree_with_the_constants_of_the_simulator() {
    assert_eq!(emitted(&rts()).len(), RTS_LEN);
    assert_eq!(emitted(&Frame::Cts { duration_us: 0, ra: A }).len(), CTS_LEN);
    assert_eq!(emitted(&Frame::Ack { duration_us: 0, ra: A }).len(), ACK_LEN);
    assert_eq!(emitted(&data()).len(), DATA_OVERHEAD + LLC_SNAP_LEN);
}

#[test]
fn the_cell_is_nobodys_address() {
    assert!(!MacAddr::CELL.is_group());
    assert_eq!(MacAddr::CELL.node(), None);
}

#[test]
fn what_is_refused_and_why() {
    let unsupported = |what, value| Err(ParseError::Unsupported { what, value });
    let kind = "802.11 frame type";
    assert_eq!(Frame::parse(&patched(&data(), 0, &[0x80])), unsupported(kind, 0x80)); // beacon
    assert_eq!(Frame::parse(&patched(&data(), 0, &[0x88])), unsupported(kind, 0x88)); // QoS data
    assert_eq!(Frame::parse(&patched(&data(), 0, &[0x09])), unsupported(kind, 0x09)); // version 1
    for flag in [0x01, 0x02, 0x04, 0x40] {
        assert_eq!(Frame::parse(&patched(&data(), 1, &[flag])), unsupported("802.11 flags", flag.into()));
    }
    assert_eq!(Frame::parse(&patched(&data(), 22, &[0x31])), unsupported("802.11 fragment", 1));
    assert_eq!(
        Frame::parse(&patched(&data(), 30, &[0x86, 0xdd])),
        unsupported("llc header, ethertype", 0x86dd)
    );
    assert_eq!(Frame::parse(&patched(&data(), 24, &[0x42])), unsupported("llc header, ethertype", 0x0800));
}

#[test]
fn a_control_frame_has_one_length() {
    let longer = with_fcs(hex("c400 1027 020000000001 00").to_vec());
    assert_eq!(Frame::parse(&longer), Err(ParseError::BadLength { what: "cts", value: 15 }));
    let short_rts = with_fcs(hex("b400 1027 020000000001").to_vec());
    assert_eq!(Frame::parse(&short_rts), Err(ParseError::Truncated { needed: RTS_LEN, got: 14 }));
}

#[test]
fn every_truncation_is_refused_even_with_a_right_check_sequence() {
    for frame in [rts(), data(), Frame::Cts { duration_us: 1, ra: A }, Frame::Ack { duration_us: 0, ra: A }] {
        let whole = emitted(&frame);
        refuses_every_prefix(&whole, Frame::parse);
        for len in 0..whole.len() - FCS_LEN {
            assert!(Frame::parse(&with_fcs(whole[..len].to_vec())).is_err(), "{len} bytes of {frame:?}");
        }
    }
}

#[test]
fn any_flipped_bit_is_noticed() {
    for frame in [rts(), data()] {
        for bytes in bit_flips(&emitted(&frame)) {
            assert_eq!(Frame::parse(&bytes), Err(ParseError::BadChecksum));
        }
    }
}

#[test]
fn a_handle_is_written_by_the_caller() {
    let handle =
        Frame::Data { duration_us: 213, ra: B, ta: A, sequence: Seq16(0x123), retry: true, body: 7_usize };
    let mut out = Vec::new();
    handle.emit_with(&mut out, |body, out| out.resize(out.len() + body, 0x2a));
    let Ok(Frame::Data { body, .. }) = Frame::parse(&out.into()) else { panic!("a data frame") };
    assert_eq!(body, [0x2a; 7][..]);
}

fn any_frame() -> impl Strategy<Value = Frame<Bytes>> {
    let mac = || any::<[u8; 6]>().prop_map(MacAddr);
    prop_oneof![
        (any::<u16>(), mac(), mac()).prop_map(|(duration_us, ra, ta)| Frame::Rts { duration_us, ra, ta }),
        (any::<u16>(), mac()).prop_map(|(duration_us, ra)| Frame::Cts { duration_us, ra }),
        (any::<u16>(), mac()).prop_map(|(duration_us, ra)| Frame::Ack { duration_us, ra }),
        (any::<u16>(), mac(), mac(), 0..4096u16, any::<bool>(), any_payload()).prop_map(
            |(duration_us, ra, ta, sequence, retry, body)| Frame::Data {
                duration_us,
                ra,
                ta,
                sequence: Seq16(sequence),
                retry,
                body
            }
        ),
    ]
}

proptest! {
    #[test]
    fn what_was_emitted_parses_back(frame in any_frame()) {
        prop_assert_eq!(Frame::parse(&emitted(&frame)), Ok(frame));
    }

    #[test]
    fn any_bytes_with_a_right_check_sequence_are_taken_without_panic(
        kind in prop::sample::select(vec![RTS, CTS, ACK, DATA, 0x80]),
        bytes in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let _ = Frame::parse(&with_fcs([&[kind], &bytes[..]].concat()));
    }
}
