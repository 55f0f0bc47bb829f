use super::*;
use crate::testing::{hex, refuses_every_prefix};
use bytes::Bytes;
use proptest::prelude::*;

const STATION: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 5);
const SENDER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
const LIFETIME: Duration = Duration::from_millis(3000);
const TAG: &str = "000102030405060708090a0b0c0d0e0f";

fn emitted(tagged: &Tagged) -> Bytes {
    let mut out = Vec::new();
    tagged.emit(&mut out);
    assert_eq!(out.len(), tagged.wire_len());
    Bytes::from(out)
}

fn tagged(number: u64, says: Says) -> Tagged {
    Tagged { message: Message { number, says }, tag: core::array::from_fn(|at| at as u8) }
}

fn packet(id: u16) -> PacketId {
    PacketId { source: SENDER, id }
}

fn latest(ids: &[u16]) -> Latest {
    let mut latest = Latest::default();
    ids.iter().for_each(|&id| latest.push(packet(id)));
    latest
}

/// Every type, and its bytes before the tag.
fn dialogue() -> [(Tagged, &'static str); 7] {
    let request = |asks| Says::Request { mobile: MOBILE, lifetime: LIFETIME, asks };
    let forward = request(Asks::Forward(latest(&[0x0102, 0x0304])));
    [
        (tagged(7, Says::Beacon { station: STATION }), "01 00 0000 0000000000000007 0a000002"),
        (
            tagged(8, forward),
            "02 02 0bb8 0000000000000008 0a000005 0a000009 0102 0a000009 0304 00000000 0000 0000",
        ),
        (tagged(9, request(Asks::Buffer)), "03 00 0bb8 0000000000000009 0a000005"),
        (tagged(10, request(Asks::Stop)), "04 00 0bb8 000000000000000a 0a000005"),
        (
            tagged(11, request(Asks::Register { care_of: STATION, past: Past::Some })),
            "05 01 0bb8 000000000000000b 0a000005 0a000002",
        ),
        (
            tagged(11, request(Asks::Register { care_of: STATION, past: Past::None })),
            "05 00 0bb8 000000000000000b 0a000005 0a000002",
        ),
        (
            tagged(8, Says::Answer { mobile: MOBILE, lifetime: LIFETIME, to: Kind::Forward }),
            "06 02 0bb8 0000000000000008 0a000005",
        ),
    ]
}

#[test]
fn each_type_is_these_bytes() {
    for (message, bytes) in dialogue() {
        let bytes = hex(&format!("{bytes} {TAG}"));
        assert_eq!(emitted(&message), bytes, "{message:?}");
        assert_eq!(Tagged::parse(&bytes), Ok(message));
    }
}

#[test]
fn what_is_cut_short_is_refused_and_what_follows_is_not_looked_at() {
    for (message, _) in dialogue() {
        let bytes = emitted(&message);
        refuses_every_prefix(&bytes, |bytes| Tagged::parse(bytes));
        assert_eq!(Tagged::parse(&[&bytes, &[1, 2, 3][..]].concat()), Ok(message));
    }
}

#[test]
fn what_nobody_says_is_refused() {
    let with = |at: usize, value: u8, number: usize| {
        let mut bytes = emitted(&dialogue()[number].0).to_vec();
        bytes[at] = value;
        Tagged::parse(&bytes)
    };
    let unsupported = |what, value| Err(ParseError::Unsupported { what, value });
    assert_eq!(with(0, 0, 0), unsupported("handoff type", 0));
    assert_eq!(with(0, 8, 0), unsupported("handoff type", 8));
    assert_eq!(with(1, 1, 6), unsupported("handoff answer", 1));
    assert_eq!(with(1, 6, 6), unsupported("handoff answer", 6));
    assert_eq!(with(1, 4, 1), Err(ParseError::BadLength { what: "identifications", value: 4 }));
}

#[test]
fn the_oldest_of_three_makes_room() {
    assert_eq!(latest(&[1, 2, 3, 4]).as_slice(), [2, 3, 4].map(packet));
    assert_eq!(latest(&[]).as_slice(), []);
}

proptest! {
    #[test]
    fn what_is_understood_is_written_as_it_was(mut bytes in prop::collection::vec(any::<u8>(), 32..60), code in 0u8..8) {
        bytes[0] = code;
        bytes[1] %= 8;
        if let Ok(message) = Tagged::parse(&bytes) {
            let again = emitted(&message);
            prop_assert_eq!(Tagged::parse(&again), Ok(message));
            prop_assert_eq!(again.len(), message.wire_len());
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>) {
        let _ = Tagged::parse(&bytes);
    }
}
