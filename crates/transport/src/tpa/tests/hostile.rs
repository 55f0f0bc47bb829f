//! Forged, replayed and broken segments: a counter moves, and nothing else.

use super::script::{
    Script, SegmentBuilder, ack, data, identity, offer, plain, probe, rst, syn, syn_ack, tag,
};
use crate::test_script::STATES;
use crate::tpa::{CloseReason, Config, DropReason, Endpoint, Event, State};
use bytes::Bytes;
use hopline_core::{Instant, Length, LinkId, StateMachine};
use hopline_wire::tpa::{
    Ack, Bitmap, ChallengeToken, Control, Opening, Receipt, Segment, SegmentPosition, TxStat,
};
use proptest::prelude::*;
use proptest::sample::select;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6000))]

    #[test]
    fn arbitrary_segments_in_every_state_do_not_panic(
        state in select(&STATES), segment in any_segment(), tagged in any::<bool>(),
    ) {
        let mut s = in_state(state);
        let segment = Segment { tag: tagged.then(|| tag(7)).filter(|_| state == State::Closed), ..segment };
        s.receive(SegmentBuilder(segment));
        s.transmits();
        s.run_until(1_000_000);
        prop_assert!(s.endpoint.received_unread() <= 64 * 1024);
        prop_assert!(s.endpoint.in_flight() <= 3);
    }

    #[test]
    fn segments_without_the_tag_change_nothing(segment in any_segment(), other in 1u64..100) {
        let mut s = tagged();
        let before = s.snapshot();
        s.receive(SegmentBuilder(Segment { tag: Some(tag(other)).filter(|&t| t != tag(7)), ..segment }));
        prop_assert_eq!(s.transmits(), "");
        prop_assert_eq!(s.snapshot(), before);
        prop_assert_eq!(s.drops(DropReason::WrongTag), 1);
    }
}

fn any_segment() -> impl Strategy<Value = Segment<Length>> {
    let number = prop_oneof![Just(0u16), Just(1), Just(u16::MAX), any::<u16>()];
    let place = proptest::option::of((0u8..12, any::<bool>()))
        .prop_map(|place| place.map(|(position, last)| SegmentPosition { position, is_last: last }));
    let acked = proptest::option::of((number.clone(), 0u16..4096, any::<u8>()))
        .prop_map(|ack| ack.map(|(block, bits, tx)| Ack { block, bitmap: Bitmap::from_bits(bits), tx }));
    let control =
        prop_oneof![Just(Control::None), Just(Control::Syn), Just(Control::Fin), Just(Control::Rst)];
    let opening = proptest::option::of((any::<u16>(), 1u8..=12, 1u8..))
        .prop_map(|o| o.map(|(mss, k, cwnd_max)| Opening { tag: None, mss, block_segments: k, cwnd_max }));
    let len = prop_oneof![Just(0u64), 0u64..1500, Just(u64::MAX)];
    (number, place, any::<u8>(), acked, control, any::<bool>(), any::<u16>(), opening, len).prop_map(
        |(block, place, tx, ack, control, congested, window, opening, len)| Segment {
            block,
            position: place,
            tx,
            ack,
            control,
            tx_stat: if congested { TxStat::Congested } else { TxStat::Normal },
            window,
            tag: None,
            receipt: Receipt::default(),
            opening,
            payload: Length(if place.is_some() { len } else { 0 }),
        },
    )
}

/// A connection with tags (ours 7, the peer's 8), in the middle of a block each way, with nothing to say.
fn tagged() -> Script {
    let mut s = Script::with_endpoint(Endpoint::tagged(plain(), identity(7)).unwrap());
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    s.receive_at(100, syn_ack().opening(Opening { tag: Some(tag(8)), ..offer() }).tag(tag(7)));
    s.write_and_flush(4000);
    s.transmits();
    assert_eq!(s.exchange(data(0, 0).congested().tag(tag(7))), "ack 0:[0] tx 0");
    s.receive(data(0, 2).acks(0, &[0], 0).with_proof(7));
    assert_eq!(s.transmits(), "0:3. (1000) tx 3 ack 0:[0 2] tx 2");
    s
}

/// The same without tags.
fn untagged() -> Script {
    let mut s = Script::sending(plain(), 4000);
    s.transmits();
    s.exchange(data(0, 0).congested());
    s.receive(data(0, 2).acks(0, &[0], 0));
    s.transmits();
    s
}

#[test]
fn forged_segments_without_the_right_tag_only_count() {
    let forged = [
        data(0, 1),
        data(0, 1).last(),
        data(0, 1).fin(),
        ack(0, &[0, 1, 2], 2),
        ack(0, &[0, 1, 2], 2).win(0),
        probe(0),
        rst(0),
        rst(1),
        syn(),
        syn().opening(Opening { tag: Some(tag(8)), ..offer() }),
        syn_ack(),
        data(0, 1).opening(offer()),
    ];
    let mut s = tagged();
    let before = s.snapshot();
    let mut count = 0;
    for segment in forged {
        for segment in [segment, segment.tag(tag(8)), segment.tag(tag(666))] {
            assert_eq!(s.exchange(segment), "");
            assert_eq!(s.snapshot(), before);
            count += 1;
        }
    }
    assert_eq!((s.drops(DropReason::WrongTag), s.endpoint.stats().drops.total()), (count, count));
    assert_eq!(s.state(), State::Established);
}

#[test]
fn an_unexpected_tag_is_wrong() {
    let mut s = untagged();
    let before = s.snapshot();
    assert_eq!((s.exchange(data(0, 1).tag(tag(1))), s.snapshot()), (String::new(), before));
    assert_eq!(s.drops(DropReason::WrongTag), 1);
}

#[test]
fn replayed_segments_are_at_most_answered() {
    let mut s = tagged();
    let before = s.snapshot();
    for _ in 0..3 {
        assert_eq!(s.exchange(data(0, 2).acks(0, &[0], 0).with_proof(7)), "ack 0:[0 2] tx 2");
        assert_eq!(s.snapshot(), before);
        assert_eq!(s.exchange(syn_ack().tag(tag(7))), "ack 0:[0 2] tx 2");
        assert_eq!(s.snapshot(), before);
        // From before anything was received.
        assert_eq!(s.exchange(ack(u16::MAX, &[], 0).win(9).tag(tag(7))), "");
        assert_eq!(s.exchange(ack(0, &[], 0).win(9).tag(tag(7))), "");
        assert_eq!(s.snapshot(), before);
    }
    assert_eq!(s.endpoint.stats().duplicates_received, 3);
}

#[test]
fn an_ack_without_proof_of_receipt_is_dropped() {
    // A peer that knows the tag and has received positions 0 and 2 tries to direct more data at a victim.
    let mut s = tagged();
    let before = s.snapshot();
    let honest = ack(0, &[0, 2], 2).with_proof(7);
    let claims_more = SegmentBuilder(Segment { ack: ack(0, &[0, 1, 2], 2).0.ack, ..honest.0 });
    let mut guesses = 0;
    for guess in 0..=u16::MAX {
        let mut forged = ack(0, &[0, 1, 2, 3], 3).tag(tag(7));
        forged.0.receipt.proof = guess;
        if forged.0.receipt.proof != forged.with_proof(7).0.receipt.proof {
            s.receive(forged);
            guesses += 1;
        }
    }
    s.receive(claims_more);
    s.receive(ack(0, &[0, 1, 2], 2).tag(tag(7)));
    assert_eq!((s.transmits(), s.snapshot()), (String::new(), before));
    assert_eq!((guesses, s.drops(DropReason::BadProof)), (65_535, 65_537));
    assert_eq!(s.exchange(honest), "", "it is taken: nothing else is to be said");
    assert_eq!(s.endpoint.stats().bytes_acked, 2000);
}

#[test]
fn retransmissions_repeat_the_nonce_of_their_segment() {
    let mut s = Script::with_endpoint(Endpoint::tagged(plain(), identity(7)).unwrap());
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    s.receive_at(100, syn_ack().opening(Opening { tag: Some(tag(8)), ..offer() }).tag(tag(7)));
    s.write_and_flush(2000);
    let nonces = |s: &mut Script| {
        let mut found = Vec::new();
        while let Some(segment) = s.endpoint.poll_transmit(s.now) {
            found.extend(segment.position.map(|place| (place.position, segment.receipt.nonce)));
        }
        found
    };
    let first = nonces(&mut s);
    assert_eq!(first.len(), 2);
    assert_ne!(first[0].1, first[1].1);
    s.now = Instant::from_millis(500);
    s.endpoint.handle_timeout(s.now);
    assert_eq!(nonces(&mut s)[0], first[0]);
}

#[test]
fn a_stateless_reset_carries_the_peers_tag() {
    let stray = |n| {
        SegmentBuilder(Segment { control: Control::StatelessReset, tag: Some(tag(n)), ..Segment::default() })
    };
    let mut s = tagged();
    let before = s.snapshot();
    for wrong in [7, 9] {
        assert_eq!((s.exchange(stray(wrong)), s.snapshot()), (String::new(), before.clone()));
    }
    assert_eq!(s.drops(DropReason::WrongTag), 2);
    s.receive(stray(8));
    assert_eq!((s.transmits(), s.state()), (String::new(), State::Closed));
    assert_eq!(s.events().last(), Some(&Event::Closed(CloseReason::Reset)));
}

#[test]
fn an_echo_is_a_sign_of_life_and_is_acknowledged() {
    let mut s = tagged();
    let echo = Segment { control: Control::Echo(ChallengeToken(1)), tag: Some(tag(7)), ..Segment::default() };
    assert_eq!(s.exchange(SegmentBuilder(echo)), "ack 0:[0 2] tx 2");
    let challenge = Segment { control: Control::Challenge(ChallengeToken(1)), ..echo };
    assert_eq!((s.exchange(SegmentBuilder(challenge)), s.drops(DropReason::Unexpected)), (String::new(), 1));
}

#[test]
fn acks_of_what_was_never_sent_are_dropped() {
    let mut s = Script::sending(plain(), 8000);
    s.transmits();
    let before = s.snapshot();
    for (segment, reason) in [
        (ack(0, &[0, 1, 2, 3], 3), DropReason::BadAck),
        (ack(0, &[11], 0), DropReason::BadAck),
        (ack(1, &[0], 0), DropReason::OldAck),
        (ack(7, &[], 0), DropReason::OldAck),
        (ack(u16::MAX - 1, &[0], 0), DropReason::OldAck),
    ] {
        let count = s.drops(reason);
        assert_eq!(s.exchange(segment.win(1)), "");
        assert_eq!((s.drops(reason), s.snapshot()), (count + 1, before.clone()));
    }
}

#[test]
fn a_block_has_one_end_and_nothing_after_it() {
    let mut s = Script::connected(plain());
    s.exchange(data(0, 3).last());
    s.exchange(data(0, 1));
    let before = s.snapshot();
    for segment in [data(0, 4), data(0, 11).last(), data(0, 2).last(), data(0, 3), data(0, 5).fin()] {
        assert_eq!(s.exchange(segment), "");
    }
    assert_eq!((s.drops(DropReason::Inconsistent), s.snapshot()), (5, before));
    let mut s = Script::connected(plain());
    s.exchange(data(0, 5));
    let before = s.snapshot();
    assert_eq!(s.exchange(data(0, 3).last()), "", "an end before what was received");
    assert_eq!((s.drops(DropReason::Inconsistent), s.snapshot()), (1, before));
}

#[test]
fn blocks_come_one_after_another() {
    let mut s = Script::connected(plain());
    s.exchange(data(0, 0).congested());
    let before = s.snapshot();
    for block in [1, 2, 0x7fff] {
        assert_eq!(s.exchange(data(block, 0)), "");
    }
    assert_eq!((s.drops(DropReason::OutsideBlock), s.snapshot()), (3, before));
}

#[test]
fn segments_above_the_announced_maximum_are_dropped() {
    let mut s = Script::connected(plain());
    s.exchange(data(0, 0).congested());
    let before = s.snapshot();
    for len in [1001, 65_535, u64::MAX] {
        assert_eq!(s.exchange(data(0, 1).len(len)), "");
    }
    assert_eq!((s.drops(DropReason::TooLong), s.snapshot()), (3, before));
}

#[test]
fn nothing_comes_after_the_end_of_the_stream() {
    let mut s = Script::connected(plain());
    s.exchange(data(0, 0).fin());
    let before = s.snapshot();
    assert_eq!(s.exchange(data(1, 0)), "");
    assert_eq!((s.drops(DropReason::AfterClose), s.snapshot()), (1, before));
    s.endpoint.abort(s.now);
    assert_eq!(s.transmits(), "R");
    let closed = s.snapshot();
    for segment in [data(1, 0), syn(), rst(0), ack(0, &[], 0)] {
        assert_eq!((s.exchange(segment), s.snapshot()), (String::new(), closed.clone()));
    }
    assert_eq!(s.drops(DropReason::Closed), 4);
}

#[test]
fn a_regular_segment_without_an_ack_is_dropped() {
    let mut s = Script::connected(plain());
    let before = s.snapshot();
    let segment = SegmentBuilder(Segment { ack: None, ..data(0, 0).0 });
    assert_eq!((s.exchange(segment), s.snapshot()), (String::new(), before));
    assert_eq!(s.drops(DropReason::Unexpected), 1);
}

#[test]
fn unread_data_are_bounded() {
    let mut s = Script::connected(Config { receive_buffer: 6000, ..plain() });
    for block in 0..100 {
        for position in [3, 1, 0, 2] {
            let segment = data(block, position);
            s.exchange(if position == 3 { segment.last() } else { segment });
            assert!(s.endpoint.received_unread() <= 6000);
        }
    }
    assert_eq!(s.endpoint.received_unread(), 6000);
}

#[test]
fn one_byte_blocks_are_bounded_like_any_others() {
    let mut s = Script::connected(plain());
    for block in 0..65_536u32 + 1000 {
        s.exchange(data(block as u16, 0).len(1).last());
    }
    assert_eq!(s.endpoint.received_unread(), 64 * 1024);
    assert!(s.drops(DropReason::NoRoom) > 0);
}

#[test]
fn an_endpoint_has_a_known_size() {
    // docs/protocols/tpa.md says so too.
    assert!(size_of::<Endpoint<Bytes>>() <= 2048, "{}", size_of::<Endpoint<Bytes>>());
}

#[test]
fn time_in_the_far_future_does_not_panic() {
    let mut s = Script::sending(Config { silence_limit: None, ..plain() }, 1 << 40);
    s.transmits();
    s.now = Instant::from_nanos(u64::MAX - 1);
    s.endpoint.handle_timeout(s.now);
    s.transmits();
    s.endpoint.handle_packet(s.now, LinkId::ONLY, ack(0, &[0, 1, 2], 2).0);
    s.transmits();
    assert_eq!(s.state(), State::Established);
}

/// An endpoint in this state.
fn in_state(state: State) -> Script {
    let mut s = match state {
        State::Closed => Script::new(plain()),
        State::SynSent => Script::connecting(plain()),
        State::Listen | State::SynReceived => {
            let mut s = Script::new(plain());
            s.endpoint.listen().unwrap();
            s
        }
        _ => Script::connected(plain()),
    };
    match state {
        State::SynReceived => drop(s.exchange(syn())),
        State::FinWait1 | State::FinWait2 | State::Closing | State::TimeWait => {
            s.endpoint.close(s.now).unwrap()
        }
        State::CloseWait | State::LastAck => drop(s.exchange(data(0, 0).fin())),
        _ => {}
    }
    s.transmits();
    match state {
        State::FinWait2 => drop(s.exchange(ack(0, &[0], 0))),
        State::Closing => drop(s.exchange(data(0, 0).fin())),
        State::LastAck => s.endpoint.close(s.now).unwrap(),
        State::TimeWait => drop(s.exchange(data(0, 0).fin().acks(0, &[0], 0))),
        _ => {}
    }
    s.transmits();
    s
}

#[test]
fn in_state_reaches_all_eleven_states() {
    for state in STATES {
        assert_eq!(in_state(state).state(), state);
    }
}
