use super::*;
use crate::testing::{any_payload, assert_every_prefix_is_refused, bit_flips, hex};
use proptest::prelude::*;

const A: MacAddr = MacAddr::of_node(NodeId(1));
const B: MacAddr = MacAddr::of_node(NodeId(2));

fn rts() -> Frame<Bytes> {
    Frame::Rts { duration_us: 10_000, ra: B, ta: A }
}

fn data() -> Frame<Bytes> {
    Frame::Data { duration_us: 213, ra: B, ta: A, sequence: Seq16(0x123), retry: true, body: Bytes::new() }
}

fn qos_data() -> Frame<Bytes> {
    let (sequence, body) = (Seq16(0x123), Bytes::new());
    let ack = QosAckPolicy::BlockAck;
    Frame::QosData { duration_us: 213, ra: B, ta: A, sequence, retry: true, tid: 5, ack, body }
}

fn block_ack_req() -> Frame<Bytes> {
    Frame::BlockAckReq { duration_us: 84, ra: B, ta: A, tid: 5, start: Seq16(0xffe) }
}

fn block_ack() -> Frame<Bytes> {
    let bitmap = Bitmap::from_bits(0x8000_0000_0000_0fff);
    Frame::BlockAck { duration_us: 0, ra: A, ta: B, tid: 5, start: Seq16(0xffe), bitmap }
}

fn action(action: BlockAckAction) -> Frame<Bytes> {
    Frame::Action { duration_us: 314, ra: B, ta: A, sequence: Seq16(0x123), retry: true, action }
}

fn addba_request() -> Frame<Bytes> {
    let (kind, start) = (BlockAckPolicy::Immediate, Seq16(0xffe));
    action(BlockAckAction::AddbaRequest {
        dialog_token: 7,
        policy: kind,
        tid: 5,
        buffer_size: 64,
        timeout_tu: 0x102,
        start,
    })
}

fn addba_response() -> Frame<Bytes> {
    let (status, kind) = (STATUS_REQUEST_DECLINED, BlockAckPolicy::Immediate);
    action(BlockAckAction::AddbaResponse {
        dialog_token: 7,
        status,
        policy: kind,
        tid: 5,
        buffer_size: 64,
        timeout_tu: 0x102,
    })
}

fn delba() -> Frame<Bytes> {
    action(BlockAckAction::Delba { side: BlockAckSide::Recipient, tid: 5, reason: REASON_TIMEOUT })
}

fn emitted(frame: &Frame<Bytes>) -> Bytes {
    let mut out = Vec::new();
    frame.emit(&mut out);
    Bytes::from(out)
}

/// Returns `frame` with bytes replaced from `at` on and a corrected frame check sequence.
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

/// Asserts that these bytes encode this frame, in both directions.
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
fn a_data_frame_carries_retry_bit_bssid_sequence_number_and_snap_header() {
    assert_bytes(
        data(),
        "0808 d500 020000000002 020000000001 0268 6f70 0000 3012 aaaa03 000000 0800 c1c91348",
    );
}

/// Asserts the bytes before the frame check sequence, which has tests of its own.
fn assert_bytes_before_fcs(frame: Frame<Bytes>, bytes: &str) {
    let whole = with_fcs(hex(bytes).to_vec());
    assert_eq!(emitted(&frame), whole, "{frame:?}");
    assert_eq!(Frame::parse(&whole), Ok(frame));
}

#[test]
fn qos_data_carries_tid_and_ack_policy_behind_the_sequence_number() {
    let head = "8808 d500 020000000002 020000000001 0268 6f70 0000 3012";
    assert_bytes_before_fcs(qos_data(), &format!("{head} 6500 aaaa03 000000 0800"));
    for (policy, field) in [(QosAckPolicy::Normal, "0500"), (QosAckPolicy::NoAck, "2500")] {
        let Frame::QosData { duration_us, ra, ta, sequence, retry, tid, body, .. } = qos_data() else {
            panic!("QoS data")
        };
        let frame = Frame::QosData { duration_us, ra, ta, sequence, retry, tid, ack: policy, body };
        assert_bytes_before_fcs(frame, &format!("{head} {field} aaaa03 000000 0800"));
    }
}

#[test]
fn block_ack_frames_are_compressed_and_start_at_a_sequence_number() {
    assert_bytes_before_fcs(block_ack_req(), "8400 5400 020000000002 020000000001 0450 e0ff");
    assert_bytes_before_fcs(block_ack(), "9400 0000 020000000001 020000000002 0450 e0ff ff0f000000000080");
}

#[test]
fn block_acknowledgment_is_set_up_and_ended_by_action_frames() {
    let head = "d008 3a01 020000000002 020000000001 0268 6f70 0000 3012";
    // Parameter set: 64 buffers, TID 5, immediate.
    assert_bytes_before_fcs(addba_request(), &format!("{head} 03 00 07 1610 0201 e0ff"));
    assert_bytes_before_fcs(addba_response(), &format!("{head} 03 01 07 2500 1610 0201"));
    assert_bytes_before_fcs(delba(), &format!("{head} 03 02 0050 2700"));
    let by_sender = BlockAckAction::Delba { side: BlockAckSide::Originator, tid: 0, reason: 1 };
    assert_bytes_before_fcs(action(by_sender), &format!("{head} 03 02 0008 0100"));
}

#[test]
fn delayed_block_ack_is_parsed_and_a_msdu_support_is_ignored() {
    let kind = |frame: &Bytes| match Frame::parse(frame) {
        Ok(Frame::Action { action: BlockAckAction::AddbaRequest { policy: kind, .. }, .. }) => kind,
        other => panic!("{other:?}"),
    };
    assert_eq!(kind(&patched(&addba_request(), 27, &[0x14])), BlockAckPolicy::Delayed);
    assert_eq!(kind(&patched(&addba_request(), 27, &[0x17])), BlockAckPolicy::Immediate);
}

#[test]
fn other_actions_are_refused() {
    let unsupported = |what, value| Err(ParseError::Unsupported { what, value });
    let kind = "802.11 category and action";
    // Radio measurement; an action of block acknowledgment that does not exist.
    assert_eq!(Frame::parse(&patched(&addba_request(), 24, &[5])), unsupported(kind, 0x0500));
    assert_eq!(Frame::parse(&patched(&addba_request(), 25, &[3])), unsupported(kind, 0x0303));
    for flag in [0x01, 0x02, 0x04, 0x40] {
        let frame = patched(&addba_response(), 1, &[flag]);
        assert_eq!(Frame::parse(&frame), unsupported("802.11 flags", flag.into()));
    }
    assert_eq!(Frame::parse(&patched(&delba(), 22, &[0x31])), unsupported("802.11 fragment", 1));
    assert_eq!(Frame::parse(&patched(&addba_request(), 31, &[0xe2])), unsupported("802.11 fragment", 2));
    // One kind with the length of another, and an element behind the fixed fields.
    let long = ParseError::BadLength { what: "delba", value: ADDBA_LEN };
    assert_eq!(Frame::parse(&patched(&addba_request(), 25, &[2])), Err(long));
    let short = ParseError::Truncated { needed: ADDBA_LEN, got: DELBA_LEN };
    assert_eq!(Frame::parse(&patched(&delba(), 25, &[1])), Err(short));
    let mut extended = emitted(&addba_request()).to_vec();
    extended.truncate(extended.len() - FCS_LEN);
    extended.extend([159, 1, 0]);
    let long = ParseError::BadLength { what: "addba request", value: ADDBA_LEN + 3 };
    assert_eq!(Frame::parse(&with_fcs(extended)), Err(long));
}

#[test]
fn block_acknowledgment_makes_no_frame_larger_in_memory() {
    // Data with an eight-byte handle: the frames that the simulator copies.
    assert_eq!(size_of::<Frame<[u32; 2]>>(), 28);
}

#[test]
fn other_variants_of_block_acknowledgment_are_refused() {
    let unsupported = |what, value| Err(ParseError::Unsupported { what, value });
    let kind = "802.11 block ack type";
    // Basic, with 128 bytes of bitmap, and multi-TID.
    assert_eq!(Frame::parse(&patched(&block_ack(), 16, &[0x00])), unsupported(kind, 0x5000));
    assert_eq!(Frame::parse(&patched(&block_ack_req(), 16, &[0x06])), unsupported(kind, 0x5006));
    assert_eq!(Frame::parse(&patched(&block_ack_req(), 18, &[0xe3])), unsupported("802.11 fragment", 3));
    // PSMP, and an A-MSDU.
    let control = "802.11 qos control";
    assert_eq!(Frame::parse(&patched(&qos_data(), 24, &[0x45])), unsupported(control, 0x45));
    assert_eq!(Frame::parse(&patched(&qos_data(), 24, &[0xe5])), unsupported(control, 0xe5));
}

#[test]
fn a_frame_is_mapped_with_its_body_only() {
    assert_eq!(qos_data().body(), Some(&Bytes::new()));
    assert_eq!(data().map(|body| body.len()).body(), Some(&0));
    assert_eq!(qos_data().map(|body| body.len()).map(|_| Bytes::new()), qos_data());
    for frame in [rts(), block_ack_req(), block_ack(), addba_request(), delba()] {
        assert_eq!(frame.body(), None);
        assert_eq!(frame.clone().map(|_| ()).map(|()| Bytes::new()), frame);
    }
}

#[test]
fn lengths_agree_with_the_constants_of_the_simulator() {
    assert_eq!(emitted(&rts()).len(), RTS_LEN);
    assert_eq!(emitted(&Frame::Cts { duration_us: 0, ra: A }).len(), CTS_LEN);
    assert_eq!(emitted(&Frame::Ack { duration_us: 0, ra: A }).len(), ACK_LEN);
    assert_eq!(emitted(&data()).len(), DATA_OVERHEAD + LLC_SNAP_LEN);
    assert_eq!(emitted(&qos_data()).len(), QOS_DATA_OVERHEAD + LLC_SNAP_LEN);
    assert_eq!(emitted(&block_ack_req()).len(), BLOCK_ACK_REQ_LEN);
    assert_eq!(emitted(&block_ack()).len(), BLOCK_ACK_LEN);
    for frame in [addba_request(), addba_response(), delba()] {
        let Frame::Action { action, .. } = &frame else { panic!("an action frame") };
        assert_eq!(emitted(&frame).len(), action.frame_len());
    }
}

#[test]
fn the_bssid_is_the_address_of_no_node() {
    assert!(!MacAddr::BSSID.is_group());
    assert_eq!(MacAddr::BSSID.node(), None);
}

#[test]
fn malformed_frames_are_refused_with_the_reason() {
    let unsupported = |what, value| Err(ParseError::Unsupported { what, value });
    let kind = "802.11 frame type";
    assert_eq!(Frame::parse(&patched(&data(), 0, &[0x80])), unsupported(kind, 0x80)); // beacon
    assert_eq!(Frame::parse(&patched(&data(), 0, &[0x98])), unsupported(kind, 0x98)); // QoS data with CF-Ack
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
    let (cts, ack) = (Frame::Cts { duration_us: 1, ra: A }, Frame::Ack { duration_us: 0, ra: A });
    let actions = [addba_request(), addba_response(), delba()];
    for frame in
        [rts(), data(), cts, ack, qos_data(), block_ack_req(), block_ack()].into_iter().chain(actions)
    {
        let whole = emitted(&frame);
        assert_every_prefix_is_refused(&whole, Frame::parse);
        for len in 0..whole.len() - FCS_LEN {
            assert!(Frame::parse(&with_fcs(whole[..len].to_vec())).is_err(), "{len} bytes of {frame:?}");
        }
    }
}

#[test]
fn any_flipped_bit_is_detected() {
    for frame in [rts(), data(), qos_data(), block_ack(), addba_request(), delba()] {
        for bytes in bit_flips(&emitted(&frame)) {
            assert_eq!(Frame::parse(&bytes), Err(ParseError::BadChecksum));
        }
    }
}

#[test]
fn a_body_handle_is_emitted_by_the_caller() {
    let handle =
        Frame::Data { duration_us: 213, ra: B, ta: A, sequence: Seq16(0x123), retry: true, body: 7_usize };
    let mut out = Vec::new();
    handle.emit_with(&mut out, |body, out| out.resize(out.len() + body, 0x2a));
    let Ok(Frame::Data { body, .. }) = Frame::parse(&out.into()) else { panic!("a data frame") };
    assert_eq!(body, [0x2a; 7][..]);
}

fn qos_ack() -> impl Strategy<Value = QosAckPolicy> {
    prop::sample::select(vec![QosAckPolicy::Normal, QosAckPolicy::NoAck, QosAckPolicy::BlockAck])
}

fn any_action() -> impl Strategy<Value = BlockAckAction> {
    let kind = || prop::sample::select(vec![BlockAckPolicy::Delayed, BlockAckPolicy::Immediate]);
    let side = prop::sample::select(vec![BlockAckSide::Recipient, BlockAckSide::Originator]);
    let agreed = || (any::<u8>(), kind(), 0..16u8, 0..1024u16, any::<u16>());
    prop_oneof![
        (agreed(), 0..4096u16).prop_map(|((dialog_token, kind, tid, buffer_size, timeout_tu), start)| {
            let start = Seq16(start);
            BlockAckAction::AddbaRequest { dialog_token, policy: kind, tid, buffer_size, timeout_tu, start }
        }),
        (agreed(), any::<u16>()).prop_map(|((dialog_token, kind, tid, buffer_size, timeout_tu), status)| {
            BlockAckAction::AddbaResponse { dialog_token, status, policy: kind, tid, buffer_size, timeout_tu }
        }),
        (side, 0..16u8, any::<u16>()).prop_map(|(side, tid, reason)| BlockAckAction::Delba {
            side,
            tid,
            reason
        }),
    ]
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
        (any::<u16>(), (mac(), mac()), 0..4096u16, any::<bool>(), 0..16u8, qos_ack(), any_payload())
            .prop_map(|(duration_us, (ra, ta), sequence, retry, tid, ack, body)| Frame::QosData {
                duration_us,
                ra,
                ta,
                sequence: Seq16(sequence),
                retry,
                tid,
                ack,
                body
            }),
        (any::<u16>(), mac(), mac(), 0..16u8, 0..4096u16).prop_map(|(duration_us, ra, ta, tid, start)| {
            Frame::BlockAckReq { duration_us, ra, ta, tid, start: Seq16(start) }
        }),
        (any::<u16>(), mac(), mac(), 0..16u8, 0..4096u16, any::<[u8; 8]>()).prop_map(
            |(duration_us, ra, ta, tid, start, bits)| Frame::BlockAck {
                duration_us,
                ra,
                ta,
                tid,
                start: Seq16(start),
                bitmap: Bitmap(bits)
            }
        ),
        (any::<u16>(), mac(), mac(), 0..4096u16, any::<bool>(), any_action()).prop_map(
            |(duration_us, ra, ta, sequence, retry, action)| Frame::Action {
                duration_us,
                ra,
                ta,
                sequence: Seq16(sequence),
                retry,
                action
            }
        ),
    ]
}

proptest! {
    #[test]
    fn emitted_frames_parse_back(frame in any_frame()) {
        prop_assert_eq!(Frame::parse(&emitted(&frame)), Ok(frame));
    }

    #[test]
    fn arbitrary_bytes_with_a_correct_fcs_do_not_panic(
        kind in prop::sample::select(vec![RTS, CTS, ACK, DATA, QOS_DATA, BLOCK_ACK_REQ, BLOCK_ACK, ACTION, 0x80]),
        bytes in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let _ = Frame::parse(&with_fcs([&[kind], &bytes[..]].concat()));
    }
}
