use super::*;
use crate::testing::{assert_every_prefix_is_refused, bit_flips, hex};
use hopline_core::Duration;
use proptest::prelude::*;

const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const C: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);

fn time(secs: u64) -> CodedTime {
    CodedTime::at_least(Duration::from_secs(secs))
}

fn code(link: LinkType, neighbour: NeighbourType) -> LinkCode {
    LinkCode::Valid { link, neighbour }
}

fn hello() -> Message {
    let relay = code(LinkType::Symmetric, NeighbourType::Mpr);
    let heard = code(LinkType::Asymmetric, NeighbourType::NotNeighbour);
    let links = vec![
        LinkMessage { code: relay, neighbours: vec![B] },
        LinkMessage { code: heard, neighbours: vec![C] },
    ];
    let hello = Hello { interval: time(2), willingness: Willingness::DEFAULT, links };
    Message { ttl: 1, hop_count: 0, ..message(time(6), Body::Hello(hello)) }
}

fn message(validity: CodedTime, body: Body) -> Message {
    Message { validity, originator: A, ttl: 255, hop_count: 3, seq: Seq16(0x0102), body }
}

fn tc() -> Message {
    message(time(15), Body::Tc(Tc { ansn: Seq16(0x7fff), neighbours: vec![B, C] }))
}

fn packet(messages: &[Message]) -> Packet {
    Packet { seq: Seq16(0xfffe), messages: messages.to_vec() }
}

fn emitted(packet: &Packet) -> Vec<u8> {
    let mut out = Vec::new();
    packet.emit(&mut out);
    out
}

/// Asserts that these bytes encode this message, alone in its packet, in both directions.
fn assert_bytes(message: Message, bytes: &str) {
    let whole = hex(&format!("{:04x} fffe {bytes}", 4 + hex(bytes).len()));
    assert_eq!(emitted(&packet(core::slice::from_ref(&message))), whole, "{message:?}");
    assert_eq!(Packet::parse(&whole), Ok(packet(&[message])));
}

fn reason(bytes: &str) -> ParseError {
    Packet::parse(&hex(bytes)).expect_err("must be refused")
}

#[test]
fn a_hello_is_laid_out_as_in_section_6_1() {
    assert_bytes(
        hello(),
        "01 86 0020 0a000001 01 00 0102  0000 05 03  0a 00 0008 0a000002  01 00 0008 0a000003",
    );
}

#[test]
fn a_hello_without_links_announces_its_sender() {
    let body = Body::Hello(Hello { interval: time(2), willingness: Willingness::NEVER, links: vec![] });
    assert_bytes(message(time(6), body), "01 86 0010 0a000001 ff 03 0102  0000 05 00");
}

#[test]
fn topology_control_is_laid_out_as_in_section_9_1() {
    assert_bytes(tc(), "02 e7 0018 0a000001 ff 03 0102  7fff 0000 0a000002 0a000003");
    let empty = message(time(15), Body::Tc(Tc { ansn: Seq16(0), neighbours: vec![] }));
    assert_bytes(empty, "02 e7 0010 0a000001 ff 03 0102  0000 0000");
}

#[test]
fn interfaces_and_networks_are_laid_out_as_in_sections_5_1_and_12_1() {
    let mid = message(time(15), Body::Mid(vec![B, C]));
    assert_bytes(mid, "03 e7 0014 0a000001 ff 03 0102  0a000002 0a000003");
    let network = Network { address: Ipv4Addr::new(192, 168, 0, 0), mask: Ipv4Addr::new(255, 255, 0, 0) };
    let hna = message(time(15), Body::Hna(vec![network]));
    assert_bytes(hna, "04 e7 0014 0a000001 ff 03 0102  c0a80000 ffff0000");
}

#[test]
fn a_message_of_unknown_type_is_kept_unchanged() {
    let body = Body::Unknown { kind: 130, bytes: vec![1, 2, 3] };
    assert_bytes(message(time(15), body), "82 e7 000f 0a000001 ff 03 0102  010203");
}

#[test]
fn a_packet_holds_its_messages_in_order() {
    let both = packet(&[tc(), hello()]);
    let bytes = emitted(&both);
    assert_eq!(bytes[..4], [0, 60, 0xff, 0xfe]);
    assert_eq!(Packet::parse(&bytes), Ok(both));
}

#[test]
fn link_codes_are_two_halves_where_these_go_together() {
    use LinkType::{Asymmetric, Lost, Symmetric, Unspecified};
    use NeighbourType::{Mpr, NotNeighbour};
    assert_eq!(LinkCode::from_bits(0), code(Unspecified, NotNeighbour));
    assert_eq!(LinkCode::from_bits(1), code(Asymmetric, NotNeighbour));
    assert_eq!(LinkCode::from_bits(3), code(Lost, NotNeighbour));
    assert_eq!(LinkCode::from_bits(6), code(Symmetric, NeighbourType::Symmetric));
    assert_eq!(LinkCode::from_bits(10), code(Symmetric, Mpr));
    // A symmetric link to no neighbour, an undefined neighbour type, codes that RFC 3626 leaves undefined.
    for bits in [2, 12, 15, 16, 22, 255] {
        assert_eq!(LinkCode::from_bits(bits), LinkCode::Other(bits));
    }
    for bits in 0..=u8::MAX {
        assert_eq!(LinkCode::from_bits(bits).bits(), bits);
    }
}

#[test]
fn willingness_above_always_is_always() {
    let eager = hex("0014 fffe 01 86 0010 0a000001 01 00 0102 0000 05 ff");
    match &Packet::parse(&eager).unwrap().messages[0].body {
        Body::Hello(hello) => assert_eq!(hello.willingness, Willingness::ALWAYS),
        other => panic!("expected a HELLO, got {other:?}"),
    }
}

#[test]
fn reserved_fields_are_ignored() {
    let reserved =
        hex("0024 fffe 01 86 0020 0a000001 01 00 0102 ffff 05 03 0a ff 0008 0a000002 01 ff 0008 0a000003");
    assert_eq!(Packet::parse(&reserved), Ok(packet(&[hello()])));
    let reserved = hex("001c fffe 02 e7 0018 0a000001 ff 03 0102 7fff ffff 0a000002 0a000003");
    assert_eq!(Packet::parse(&reserved), Ok(packet(&[tc()])));
}

#[test]
fn malformed_packets_are_refused_with_the_reason() {
    let bad = |what, value| ParseError::BadLength { what, value };
    // RFC 3626 §3.4: no message, no packet.
    assert_eq!(reason("0004 fffe"), ParseError::Truncated { needed: 16, got: 4 });
    assert_eq!(
        reason("0011 fffe 82 e7 000c 0a000001 ff 03 0102"),
        ParseError::Truncated { needed: 17, got: 16 }
    );
    assert_eq!(reason("000f fffe 82 e7 000c 0a000001 ff 03 0102"), bad("olsr packet", 15));
    assert_eq!(reason("0010 fffe 82 e7 000b 0a000001 ff 03 0102"), bad("olsr message", 11));
    assert_eq!(reason("0010 fffe 82 e7 000d 0a000001 ff 03 0102"), bad("olsr message", 13));
    assert_eq!(reason("0010 fffe 82 e7 0000 0a000001 ff 03 0102"), bad("olsr message", 0));
    assert_eq!(reason("0013 fffe 03 e7 000f 0a000001 ff 03 0102 010203"), bad("olsr mid", 3));
    assert_eq!(reason("0014 fffe 04 e7 0010 0a000001 ff 03 0102 c0a80000"), bad("olsr hna", 4));
    assert_eq!(
        reason("0012 fffe 02 e7 000e 0a000001 ff 03 0102 7fff"),
        ParseError::Truncated { needed: 4, got: 2 }
    );
    assert_eq!(reason("0015 fffe 02 e7 0011 0a000001 ff 03 0102 7fff0000 0a"), bad("olsr tc", 1));
    let hello = |links| reason(&format!("0018 fffe 01 86 0014 0a000001 01 00 0102 00000503 {links}"));
    assert_eq!(hello("0a 00 0000"), bad("olsr link message", 0));
    assert_eq!(hello("0a 00 0003"), bad("olsr link message", 3));
    assert_eq!(hello("0a 00 0008"), bad("olsr link message", 8));
    let crooked = reason("001b fffe 01 86 0017 0a000001 01 00 0102 00000503 0a 00 0007 0a0000");
    assert_eq!(crooked, bad("olsr link message", 3));
}

#[test]
fn every_truncation_is_refused() {
    for message in [hello(), tc(), message(time(15), Body::Mid(vec![B]))] {
        assert_every_prefix_is_refused(&emitted(&packet(&[message])).into(), |bytes| Packet::parse(bytes));
    }
}

#[test]
fn a_flipped_bit_gives_another_packet_or_an_error() {
    for bytes in bit_flips(&emitted(&packet(&[hello(), tc()])).into()) {
        if let Ok(other) = Packet::parse(&bytes) {
            assert_eq!(Packet::parse(&emitted(&other)), Ok(other));
        }
    }
}

#[test]
#[should_panic(expected = "holds a message")]
fn a_packet_without_messages_panics() {
    emitted(&packet(&[]));
}

#[test]
#[should_panic(expected = "at most 65,535 bytes")]
fn a_packet_beyond_the_length_field_panics() {
    emitted(&packet(&[message(time(1), Body::Mid(vec![A; 16_384]))]));
}

fn any_addresses() -> impl Strategy<Value = Vec<Ipv4Addr>> {
    prop::collection::vec(any::<Ipv4Addr>(), 0..20)
}

fn any_time() -> impl Strategy<Value = CodedTime> {
    any::<u8>().prop_map(CodedTime::from_bits)
}

fn any_hello() -> impl Strategy<Value = Body> {
    let link = (any::<u8>(), any_addresses())
        .prop_map(|(bits, neighbours)| LinkMessage { code: LinkCode::from_bits(bits), neighbours });
    (any_time(), 0..8u8, prop::collection::vec(link, 0..6)).prop_map(|(interval, level, links)| {
        Body::Hello(Hello { interval, willingness: Willingness::new(level), links })
    })
}

fn any_body() -> impl Strategy<Value = Body> {
    let tc = (any::<u16>(), any_addresses())
        .prop_map(|(ansn, neighbours)| Body::Tc(Tc { ansn: Seq16(ansn), neighbours }));
    let network = any::<(Ipv4Addr, Ipv4Addr)>().prop_map(|(address, mask)| Network { address, mask });
    let unknown = (5..=u8::MAX, prop::collection::vec(any::<u8>(), 0..40))
        .prop_map(|(kind, bytes)| Body::Unknown { kind, bytes });
    prop_oneof![
        any_hello(),
        tc,
        any_addresses().prop_map(Body::Mid),
        prop::collection::vec(network, 0..10).prop_map(Body::Hna),
        unknown,
    ]
}

fn any_message() -> impl Strategy<Value = Message> {
    (any_time(), any::<Ipv4Addr>(), any::<[u8; 2]>(), any::<u16>(), any_body()).prop_map(
        |(validity, originator, [ttl, hop_count], seq, body)| Message {
            validity,
            originator,
            ttl,
            hop_count,
            seq: Seq16(seq),
            body,
        },
    )
}

proptest! {
    #[test]
    fn emitted_packets_parse_back(
        seq in any::<u16>(),
        messages in prop::collection::vec(any_message(), 1..5),
    ) {
        let packet = Packet { seq: Seq16(seq), messages };
        let bytes = emitted(&packet);
        prop_assert_eq!(bytes.len(), packet.wire_len());
        prop_assert_eq!(Packet::parse(&bytes), Ok(packet));
    }

    /// The lengths are corrected, as the parser would refuse everything else.
    #[test]
    fn arbitrary_bytes_do_not_panic(
        kind in 0..6u8,
        bytes in prop::collection::vec(any::<u8>(), 12..80),
    ) {
        let mut packet = [&[0; 4], &bytes[..]].concat();
        let len = packet.len() as u16;
        packet[..2].copy_from_slice(&len.to_be_bytes());
        packet[4] = kind;
        packet[6..8].copy_from_slice(&(len - 4).to_be_bytes());
        let _ = Packet::parse(&packet);
        let _ = Packet::parse(&bytes);
    }
}
