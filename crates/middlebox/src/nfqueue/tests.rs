//! Messages of linux/netfilter/nfnetlink_queue.h, well-formed and malformed.

use super::message::{Setting, kind};
use super::parse::{Completeness, Malformed, Message, Queued, messages};
use super::verdicts::{ReplaceResult, Verdicts};
use super::*;
use hopline_linux::netlink::attribute;
use proptest::prelude::*;

const QUEUE: u16 = 0x0102;
const MOBILE: u32 = 5;
const FIXED: u32 = 3;

/// Returns a netlink message of this kind. The tests run on hosts of either byte order.
fn message(kind: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from(((16 + body.len()) as u32).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend([0; 2]);
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(body);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn queued(attributes: &[Vec<u8>]) -> Vec<u8> {
    let general = [libc::AF_INET as u8, 0, 1, 2];
    message(kind(libc::NFQNL_MSG_PACKET), 0, &[&general[..], &attributes.concat()].concat())
}

fn header(id: u32) -> Vec<u8> {
    // IPv4 of Ethernet, forward.
    attribute(libc::NFQA_PACKET_HDR as u16, &[&id.to_be_bytes()[..], &[8, 0, 2]].concat())
}

fn numbered(kind: libc::c_int, value: u32) -> Vec<u8> {
    attribute(kind as u16, &value.to_be_bytes())
}

fn payload(bytes: &[u8]) -> Vec<u8> {
    attribute(libc::NFQA_PAYLOAD as u16, bytes)
}

/// Returns a packet with these interfaces, as the kernel sends it, with attributes that the parser does not know.
fn passing(id: u32, came_by: u32, leaves_by: u32) -> Vec<u8> {
    queued(&[
        header(id),
        numbered(libc::NFQA_IFINDEX_INDEV, came_by),
        numbered(libc::NFQA_IFINDEX_OUTDEV, leaves_by),
        attribute(libc::NFQA_HWADDR as u16, &[0, 6, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0]),
        numbered(libc::NFQA_SKB_INFO, libc::NFQA_SKB_CSUM_NOTVERIFIED as u32),
        payload(b"odd"),
    ])
}

fn only(datagram: &[u8]) -> Result<Message<'_>, Malformed> {
    let mut found = messages(datagram);
    let first = found.next().expect("there is one");
    assert_eq!(found.next(), None);
    first
}

#[test]
fn a_packet_is_parsed_with_its_interfaces() {
    let expected = Queued {
        queue: QUEUE,
        id: 0xfffe_0001,
        in_interface: Some(FIXED),
        out_interface: Some(MOBILE),
        mark: 0,
        packet: b"odd",
        completeness: Completeness::Whole,
    };
    assert_eq!(only(&passing(0xfffe_0001, FIXED, MOBILE)), Ok(Message::Packet(expected)));
}

#[test]
fn a_mark_is_parsed() {
    let marked = queued(&[header(1), numbered(libc::NFQA_MARK, 0x105)]);
    let Ok(Message::Packet(packet)) = only(&marked) else { unreachable!("it is one") };
    assert_eq!(packet.mark, 0x105);
}

#[test]
fn incomplete_packets_are_reported() {
    let shape = |attribute: Vec<u8>| match only(&queued(&[header(1), payload(b"data"), attribute])) {
        Ok(Message::Packet(packet)) => packet.completeness,
        other => unreachable!("{other:?}"),
    };
    assert_eq!(shape(numbered(libc::NFQA_CAP_LEN, 9000)), Completeness::Truncated);
    assert_eq!(shape(numbered(libc::NFQA_SKB_INFO, 1)), Completeness::Incomplete);
    assert_eq!(shape(numbered(libc::NFQA_SKB_INFO, 2)), Completeness::Incomplete);
    assert_eq!(shape(numbered(libc::NFQA_SKB_INFO, 4)), Completeness::Whole);
}

#[test]
fn acknowledgements_are_parsed() {
    let answer =
        |error: i32| message(libc::NLMSG_ERROR as u16, 9, &[&error.to_ne_bytes()[..], &[0; 16]].concat());
    assert_eq!(only(&answer(0)), Ok(Message::Answer { sequence: 9, error: 0 }));
    assert_eq!(only(&answer(-libc::EPERM)), Ok(Message::Answer { sequence: 9, error: libc::EPERM }));
    assert_eq!(only(&answer(i32::MIN)), Ok(Message::Answer { sequence: 9, error: i32::MAX }));
    assert_eq!(only(&message(libc::NLMSG_ERROR as u16, 9, &[1, 2])), Err(Malformed::Length));
    assert_eq!(only(&message(libc::NLMSG_DONE as u16, 9, &[])), Ok(Message::Other));
}

#[test]
fn hostile_packets_are_rejected_with_a_reason() {
    let short = |kind: libc::c_int| attribute(kind as u16, &[1, 2, 3]);
    let why = |attributes: &[Vec<u8>]| only(&queued(attributes)).expect_err("it is none");
    assert_eq!(why(&[payload(b"data")]), Malformed::NoHeader);
    assert_eq!(why(&[header(1), header(1)]), Malformed::Duplicate);
    assert_eq!(why(&[header(1), payload(b"a"), payload(b"b")]), Malformed::Duplicate);
    assert_eq!(why(&[short(libc::NFQA_PACKET_HDR)]), Malformed::Value);
    for kind in [
        libc::NFQA_IFINDEX_INDEV,
        libc::NFQA_IFINDEX_OUTDEV,
        libc::NFQA_MARK,
        libc::NFQA_CAP_LEN,
        libc::NFQA_SKB_INFO,
    ] {
        assert_eq!(why(&[header(1), short(kind)]), Malformed::Value, "{kind}");
    }
    // An attribute of length 3, one that ends behind the message, and a rest that is no header.
    for bytes in [vec![3, 0, 10, 0], vec![200, 0, 10, 0], vec![1]] {
        assert_eq!(why(&[header(1), bytes]), Malformed::AttributeLength);
    }
    let mut version = queued(&[header(1)]);
    version[17] = 1;
    assert_eq!(only(&version), Err(Malformed::Version));
    assert_eq!(only(&message(kind(libc::NFQNL_MSG_PACKET), 0, &[2, 0, 1])), Err(Malformed::Length));
}

#[test]
fn a_malformed_message_is_skipped_and_an_invalid_length_ends_the_datagram() {
    let good = passing(1, FIXED, MOBILE);
    let bad = queued(&[payload(b"no header")]);
    let found: Vec<_> = messages(&[&good[..], &bad, &good].concat()).map(|message| message.is_ok()).collect();
    assert_eq!(found, [true, false, true]);
    for len in [0u32, 15, 1 << 20, u32::MAX] {
        let mut endless = good.clone();
        endless[..4].copy_from_slice(&len.to_ne_bytes());
        let found: Vec<_> = messages(&[&good[..], &endless, &good].concat()).map(|m| m.is_ok()).collect();
        assert_eq!(found, [true, false], "{len}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(messages(&bytes).count() <= bytes.len() / 16 + 1);
    }

    #[test]
    fn a_packet_with_any_bytes_changed_does_not_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = [passing(1, FIXED, MOBILE), passing(2, MOBILE, FIXED)].concat();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len() + 1));
        let mut incoming = Incoming::new(QUEUE, MOBILE);
        for message in messages(&bytes) {
            if let Ok(Message::Packet(packet)) = message {
                prop_assert!(packet.packet.len() <= bytes.len());
                incoming.handle_queued(packet);
            }
        }
    }
}

#[test]
fn sides_are_distinguished_by_interface() {
    let mut incoming = Incoming::new(QUEUE, MOBILE);
    let mut take = |datagram: &[u8]| {
        let Ok(Message::Packet(packet)) = only(datagram) else { unreachable!("a packet") };
        incoming.handle_queued(packet);
        incoming.next()
    };
    let mut from = |came_by, leaves_by| match take(&passing(7, came_by, leaves_by)) {
        Some(PendingPacket::ForMiddlebox(Arrival { id: 7, from, packet }, _)) if packet == "odd" => {
            Some(from)
        }
        Some(PendingPacket::Pass { id: 7 }) => None,
        other => unreachable!("{other:?}"),
    };
    assert_eq!(from(FIXED, MOBILE), Some(Side::Fixed));
    assert_eq!(from(MOBILE, FIXED), Some(Side::Mobile));
    assert_eq!((from(MOBILE, MOBILE), from(FIXED, FIXED)), (None, None));
    assert!(matches!(take(&queued(&[header(8), payload(b"data")])), Some(PendingPacket::Pass { id: 8 })));
    let cut = [
        header(9),
        numbered(libc::NFQA_IFINDEX_OUTDEV, MOBILE),
        payload(b"data"),
        numbered(libc::NFQA_CAP_LEN, 9000),
    ];
    assert!(matches!(take(&queued(&cut)), Some(PendingPacket::Pass { id: 9 })));
    assert_eq!(incoming.counts, Counts { packets: 6, not_crossing: 3, truncated: 1, ..Counts::default() });
}

#[test]
fn a_packet_of_another_queue_is_ignored() {
    let mut incoming = Incoming::new(QUEUE + 1, MOBILE);
    let datagram = passing(1, FIXED, MOBILE);
    let Ok(Message::Packet(packet)) = only(&datagram) else { unreachable!("a packet") };
    incoming.handle_queued(packet);
    assert!(incoming.is_empty());
}

/// Fields of a message: kind, flags, queue, attributes.
type MessageFields = (u16, u16, u16, Vec<(u16, Vec<u8>)>);

fn said(mut bytes: &[u8]) -> Vec<MessageFields> {
    let ne16 = |bytes: &[u8]| u16::from_ne_bytes([bytes[0], bytes[1]]);
    let mut said = Vec::new();
    while !bytes.is_empty() {
        let len = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
        let mut rest = &bytes[20..len];
        let mut attributes = Vec::new();
        while !rest.is_empty() {
            let len = usize::from(ne16(rest));
            attributes.push((ne16(&rest[2..]), rest[4..len].to_vec()));
            rest = &rest[len.next_multiple_of(4)..];
        }
        assert_eq!(bytes[16..18], [0, 0], "any family, version 0");
        said.push((
            ne16(&bytes[4..]),
            ne16(&bytes[6..]),
            u16::from_be_bytes([bytes[18], bytes[19]]),
            attributes,
        ));
        bytes = &bytes[len..];
    }
    said
}

fn taken(verdicts: &mut Verdicts) -> Vec<u8> {
    let mut taken = Vec::new();
    let send = |messages: &[u8]| {
        taken.extend_from_slice(messages);
        Ok(())
    };
    verdicts.flush(send).unwrap();
    taken
}

#[test]
fn settings_match_the_kernel_header() {
    let attributes = |setting: Setting| {
        let request = setting.request(QUEUE, 77);
        assert_eq!(request[8..12], 77u32.to_ne_bytes());
        let [(0x0302, 5, QUEUE, ref attributes)] = said(&request)[..] else { unreachable!("one request") };
        attributes.clone()
    };
    assert_eq!(attributes(Setting::Bind), [(1, vec![1, 0, 0, 0])]);
    assert_eq!(attributes(Setting::CopyAll), [(2, vec![0, 0, 0xff, 0xff, 2])]);
    assert_eq!(attributes(Setting::Length(4096)), [(3, vec![0, 0, 16, 0])]);
    let flags = |config: &Config| attributes(config.flags());
    let config = Config::new(QUEUE, "wlan0");
    assert_eq!(flags(&config), [(5, vec![0, 0, 0, 1]), (4, vec![0, 0, 0, 5])]);
    let other = Config { when_full: WhenFull::Drop, gso: Offload::Gso, ..config };
    assert_eq!(flags(&other), [(5, vec![0, 0, 0, 4]), (4, vec![0, 0, 0, 5])]);
}

#[test]
fn consecutive_verdicts_share_one_message() {
    let mut verdicts = Verdicts::new(QUEUE);
    (1..=3).for_each(|id| verdicts.pass(id));
    verdicts.drop(4);
    verdicts.pass(5);
    assert_eq!(verdicts.replace(6, b"other"), ReplaceResult::Replaced);
    (7..=9).for_each(|id| verdicts.pass(id));
    let sent = taken(&mut verdicts);
    let (verdict, batch) = (0x0301, 0x0303);
    let header = |verdict: u8, id: u8| (2, vec![0, 0, 0, verdict, 0, 0, 0, id]);
    assert_eq!(
        said(&sent),
        [
            (batch, 1, QUEUE, vec![header(1, 3)]),
            (verdict, 1, QUEUE, vec![header(0, 4)]),
            (batch, 1, QUEUE, vec![header(1, 5)]),
            (verdict, 1, QUEUE, vec![header(1, 6), (10, b"other".to_vec())]),
            (batch, 1, QUEUE, vec![header(1, 9)]),
        ]
    );
    verdicts.flush(|_| unreachable!("nothing is held back any more")).unwrap();
}

#[test]
fn a_postponed_packet_does_not_pass_with_later_ones() {
    let mut verdicts = Verdicts::new(QUEUE);
    verdicts.pass(1);
    verdicts.postpone(2);
    verdicts.postpone(3);
    (4..=5).for_each(|id| verdicts.pass(id));
    verdicts.pass(3);
    verdicts.drop(6);
    verdicts.pass(2);
    (7..=8).for_each(|id| verdicts.pass(id));
    let one = |verdict: u8, id: u8| (0x0301, 1, QUEUE, vec![(2, vec![0, 0, 0, verdict, 0, 0, 0, id])]);
    let up_to = |id: u8| (0x0303, 1, QUEUE, vec![(2, vec![0, 0, 0, 1, 0, 0, 0, id])]);
    let expected = [up_to(1), one(1, 4), one(1, 5), one(1, 3), one(0, 6), one(1, 2), up_to(8)];
    assert_eq!(said(&taken(&mut verdicts)), expected);
}

#[test]
fn a_replacement_that_is_too_long_leaves_the_packet_unchanged() {
    let mut verdicts = Verdicts::new(QUEUE);
    assert_eq!(verdicts.replace(1, &[7; 65_532]), ReplaceResult::TooLong);
    assert_eq!(said(&taken(&mut verdicts))[0].0, 0x0303);
    assert_eq!(verdicts.replace(2, &[7; 65_531]), ReplaceResult::Replaced);
    assert!(verdicts.len() > FLUSH_THRESHOLD - 5);
}

#[test]
fn failed_verdicts_are_not_sent_later() {
    let mut verdicts = Verdicts::new(QUEUE);
    verdicts.pass(1);
    assert!(verdicts.flush(|_| Err(io::ErrorKind::OutOfMemory.into())).is_err());
    verdicts.flush(|_| unreachable!("nothing is held back any more")).unwrap();
}
