use super::*;
use crate::testing::{assert_every_prefix_is_refused, hex};
use bytes::Bytes;
use proptest::prelude::*;

const STATION: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 5);
const SENDER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
const LIFETIME: Duration = Duration::from_millis(3000);
const TAG: &str = "000102030405060708090a0b0c0d0e0f";

fn emitted(tagged: &TaggedMessage) -> Bytes {
    let mut out = Vec::new();
    tagged.emit(&mut out);
    assert_eq!(out.len(), tagged.wire_len());
    Bytes::from(out)
}

fn tagged(number: u64, says: MessageBody) -> TaggedMessage {
    TaggedMessage { message: Message { number, body: says }, tag: core::array::from_fn(|at| at as u8) }
}

fn packet(id: u16) -> PacketId {
    PacketId { source: SENDER, id }
}

fn latest(ids: &[u16]) -> RecentPackets {
    let mut latest = RecentPackets::default();
    ids.iter().for_each(|&id| latest.push(packet(id)));
    latest
}

/// Every type, and its bytes before the tag.
fn dialogue() -> [(TaggedMessage, &'static str); 7] {
    let request = |asks| MessageBody::Request { mobile: MOBILE, lifetime: LIFETIME, action: asks };
    let forward = request(RequestAction::Forward(latest(&[0x0102, 0x0304])));
    [
        (tagged(7, MessageBody::Beacon { station: STATION }), "01 00 0000 0000000000000007 0a000002"),
        (
            tagged(8, forward),
            "02 02 0bb8 0000000000000008 0a000005 0a000009 0102 0a000009 0304 00000000 0000 0000",
        ),
        (tagged(9, request(RequestAction::Buffer)), "03 00 0bb8 0000000000000009 0a000005"),
        (tagged(10, request(RequestAction::Stop)), "04 00 0bb8 000000000000000a 0a000005"),
        (
            tagged(
                11,
                request(RequestAction::Register {
                    care_of: STATION,
                    prior_reception: PriorReception::Received,
                }),
            ),
            "05 01 0bb8 000000000000000b 0a000005 0a000002",
        ),
        (
            tagged(
                11,
                request(RequestAction::Register { care_of: STATION, prior_reception: PriorReception::None }),
            ),
            "05 00 0bb8 000000000000000b 0a000005 0a000002",
        ),
        (
            tagged(8, MessageBody::Reply { mobile: MOBILE, lifetime: LIFETIME, kind: RequestKind::Forward }),
            "06 02 0bb8 0000000000000008 0a000005",
        ),
    ]
}

#[test]
fn each_type_has_its_encoding() {
    for (message, bytes) in dialogue() {
        let bytes = hex(&format!("{bytes} {TAG}"));
        assert_eq!(emitted(&message), bytes, "{message:?}");
        assert_eq!(TaggedMessage::parse(&bytes), Ok(message));
    }
}

#[test]
fn truncated_messages_are_refused_and_trailing_bytes_ignored() {
    for (message, _) in dialogue() {
        let bytes = emitted(&message);
        assert_every_prefix_is_refused(&bytes, |bytes| TaggedMessage::parse(bytes));
        assert_eq!(TaggedMessage::parse(&[&bytes, &[1, 2, 3][..]].concat()), Ok(message));
    }
}

#[test]
fn invalid_messages_are_refused() {
    let with = |at: usize, value: u8, number: usize| {
        let mut bytes = emitted(&dialogue()[number].0).to_vec();
        bytes[at] = value;
        TaggedMessage::parse(&bytes)
    };
    let unsupported = |what, value| Err(ParseError::Unsupported { what, value });
    assert_eq!(with(0, 0, 0), unsupported("handoff type", 0));
    assert_eq!(with(0, 8, 0), unsupported("handoff type", 8));
    assert_eq!(with(1, 1, 6), unsupported("handoff answer", 1));
    assert_eq!(with(1, 6, 6), unsupported("handoff answer", 6));
    assert_eq!(with(1, 4, 1), Err(ParseError::BadLength { what: "identifications", value: 4 }));
}

#[test]
fn the_oldest_of_three_packets_is_replaced() {
    assert_eq!(latest(&[1, 2, 3, 4]).as_slice(), [2, 3, 4].map(packet));
    assert_eq!(latest(&[]).as_slice(), []);
}

proptest! {
    #[test]
    fn parsed_messages_are_emitted_unchanged(mut bytes in prop::collection::vec(any::<u8>(), 32..60), code in 0u8..8) {
        bytes[0] = code;
        bytes[1] %= 8;
        if let Ok(message) = TaggedMessage::parse(&bytes) {
            let again = emitted(&message);
            prop_assert_eq!(TaggedMessage::parse(&again), Ok(message));
            prop_assert_eq!(again.len(), message.wire_len());
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>) {
        let _ = TaggedMessage::parse(&bytes);
    }
}
