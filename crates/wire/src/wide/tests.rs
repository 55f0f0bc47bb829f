use super::*;
use proptest::prelude::*;
use smallvec::smallvec;

fn round_trip(packet: &Packet<Bytes>) -> Packet<Bytes> {
    let mut out = Vec::new();
    packet.emit_inner(&mut out);
    assert_eq!(out.len() + SEALED_LEN, packet.sealed_len());
    Packet::parse_inner(packet.number, &Bytes::from(out)).expect("what was emitted can be parsed")
}

fn full_packet() -> Packet<Bytes> {
    Packet {
        number: 77,
        ecn: Ecn::NotCapable,
        opening: Some(Opening { mss: 1437, max_data: 4_000_000 }),
        ack: Some(Box::new(Ack {
            arrival_us: u32::MAX,
            delay: 7,
            marks: 9,
            cumulative: (1 << 48) - 1,
            max_data: 1 << 40,
            ack_eliciting: 0xffff,
            ranges: smallvec![
                AckRange { first: 900, last: 1000 },
                AckRange { first: 898, last: 898 },
                AckRange { first: 0, last: 300 }
            ],
        })),
        control: Control::Ping,
        ack_urgency: AckUrgency::Deferred,
        data: Some(Data { offset: 1 << 47, end: StreamEnd::Yes, payload: Bytes::from_static(b"data") }),
    }
}

#[test]
fn packets_parse_back() {
    assert_eq!(round_trip(&full_packet()), full_packet());
    let nothing = Packet { number: 1 << 60, ..Packet::default() };
    assert_eq!(round_trip(&nothing), nothing);
    assert_eq!(nothing.sealed_len(), SEALED_LEN + 1);
}

#[test]
fn full_data_packets_cost_35_bytes() {
    let data = Data { offset: 5, end: StreamEnd::No, payload: Bytes::from(vec![0; 1437]) };
    let packet = Packet { data: Some(data), ..Packet::default() };
    assert_eq!(packet.sealed_len(), 1437 + DATA_OVERHEAD);
    assert_eq!(20 + 8 + packet.sealed_len(), 1500);
}

#[test]
fn invalid_packets_are_refused() {
    let parse = |bytes: &[u8]| Packet::parse_inner(1, &Bytes::copy_from_slice(bytes));
    assert!(parse(&[]).is_err());
    assert!(parse(&[0x40]).is_err(), "unknown flag");
    assert!(parse(&[RESET | PING]).is_err(), "both");
    assert!(parse(&[FIN]).is_err(), "an end without a place");
    assert!(parse(&[0, 1]).is_err(), "something behind nothing");
    assert!(parse(&[OPENING, 2, 0, 0, 0, 0, 0, 0, 0]).is_err(), "another version");
    let mut spans = vec![ACK];
    spans.extend([0; 30]);
    assert!(parse(&[&spans[..], &[0]].concat()).is_err(), "no span");
    assert!(parse(&[&spans[..], &[1, 1]].concat()).is_err(), "a span below zero");
    assert!(parse(&[&spans[..], &[65]].concat()).is_err(), "more spans than allowed");
}

#[test]
fn path_frames_and_empty_datagrams_parse_back() {
    let through = |content: &DatagramContent<Bytes>| {
        let mut out = Vec::new();
        content.emit(&mut out);
        (out.len(), DatagramContent::parse(77, &Bytes::from(out)).expect("what was emitted can be parsed"))
    };
    let frames = [secure::Control::Challenge(*b"whereami"), secure::Control::Response([0xff; 8])];
    for content in frames.map(DatagramContent::Path) {
        assert_eq!(through(&content), (9, content));
    }
    assert_eq!(through(&DatagramContent::Empty), (0, DatagramContent::Empty));
    assert_eq!(through(&DatagramContent::Packet(full_packet())).1, DatagramContent::Packet(full_packet()));
    let parse = |bytes: &[u8]| DatagramContent::parse(1, &Bytes::copy_from_slice(bytes));
    assert!(parse(&[PATH | 1; 8]).is_err(), "cut short");
    assert!(parse(&[PATH | 1; 10]).is_err(), "something behind it");
    assert!(parse(&[PATH; 9]).is_err() && parse(&[PATH | 3; 9]).is_err(), "another frame");
}

#[test]
fn parameters_parse_back_and_may_be_extended() {
    let opening = Opening { mss: 1437, max_data: 4_000_000 };
    for parameters in
        [HandshakeParameters { opening, reset: None }, HandshakeParameters { opening, reset: Some([7; 16]) }]
    {
        let bytes = parameters.to_bytes();
        assert_eq!(HandshakeParameters::parse(&bytes), Ok(parameters));
        assert!((0..8).all(|len| HandshakeParameters::parse(&bytes[..len]).is_err()));
        let longer = [&parameters.to_bytes()[..], &[1; 3]].concat();
        assert_eq!(HandshakeParameters::parse(&longer).unwrap().opening, opening);
    }
    assert!(HandshakeParameters::parse(&[9; 8]).is_err(), "another version");
}

proptest! {
    #[test]
    fn arbitrary_content_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(content) = DatagramContent::parse(3, &Bytes::from(bytes)) {
            let mut out = Vec::new();
            content.emit(&mut out);
            prop_assert_eq!(DatagramContent::parse(3, &Bytes::from(out)), Ok(content));
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(packet) = Packet::parse_inner(3, &Bytes::from(bytes)) {
            prop_assert_eq!(round_trip(&packet), packet);
        }
    }
}
