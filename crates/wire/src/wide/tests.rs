use super::*;
use proptest::prelude::*;
use smallvec::smallvec;

fn through_bytes(packet: &Packet<Bytes>) -> Packet<Bytes> {
    let mut out = Vec::new();
    packet.emit_inner(&mut out);
    assert_eq!(out.len() + SEALED_LEN, packet.sealed_len());
    Packet::parse_inner(packet.number, &Bytes::from(out)).expect("what was emitted can be parsed")
}

fn everything() -> Packet<Bytes> {
    Packet {
        number: 77,
        ecn: Ecn::NotCapable,
        opening: Some(Opening { mss: 1437, limit: 4_000_000 }),
        ack: Some(Box::new(Ack {
            arrival_us: u32::MAX,
            delay: 7,
            marks: 9,
            cumulative: (1 << 48) - 1,
            limit: 1 << 40,
            arrived: 0xffff,
            spans: smallvec![
                Span { first: 900, last: 1000 },
                Span { first: 898, last: 898 },
                Span { first: 0, last: 300 }
            ],
        })),
        control: Control::Ping,
        answer: Answer::Late,
        data: Some(Data { offset: 1 << 47, end: End::Yes, payload: Bytes::from_static(b"data") }),
    }
}

#[test]
fn a_packet_is_the_same_behind_the_wire() {
    assert_eq!(through_bytes(&everything()), everything());
    let nothing = Packet { number: 1 << 60, ..Packet::default() };
    assert_eq!(through_bytes(&nothing), nothing);
    assert_eq!(nothing.sealed_len(), SEALED_LEN + 1);
}

#[test]
fn full_data_packets_cost_35_bytes() {
    let data = Data { offset: 5, end: End::No, payload: Bytes::from(vec![0; 1437]) };
    let packet = Packet { data: Some(data), ..Packet::default() };
    assert_eq!(packet.sealed_len(), 1437 + DATA_OVERHEAD);
    assert_eq!(20 + 8 + packet.sealed_len(), 1500);
}

#[test]
fn what_makes_no_sense_is_refused() {
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

proptest! {
    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(packet) = Packet::parse_inner(3, &Bytes::from(bytes)) {
            prop_assert_eq!(through_bytes(&packet), packet);
        }
    }
}
