//! Arbitrary segments, in every state: no panic, bounded memory, a timer set while data is in flight.

use super::script::{Script, mss_1000, plain, segment};
use crate::tcp::{DropReason, State};
use crate::test_script::STATES;
use hopline_core::{Instant, Length, LinkId, Seq32, StateMachine};
use hopline_wire::tcp::{Flags, Segment};
use proptest::prelude::*;
use proptest::sample::select;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6000))]

    #[test]
    fn arbitrary_segments_in_every_state_do_not_panic(
        state in select(&STATES),
        seq in any::<u32>(), near in -3000i64..70_000, exact in 0u8..3,
        ack in any::<u32>(), flags in any::<u8>(), len in 0u64..70_000, window in any::<u16>(),
    ) {
        let mut s = in_state(state);
        let before = s.state();
        let seq = match exact {
            0 => Seq32(seq),
            1 => s.peer.irs + near as u32,
            _ => s.peer.irs + 1,
        };
        let segment = Segment {
            src_port: super::script::REMOTE,
            dst_port: super::script::LOCAL,
            seq,
            ack: if exact == 2 { s.peer.iss + 1 } else { Seq32(ack) },
            flags: Flags(flags.into()),
            window,
            payload: Length(len),
            ..Segment::default()
        };
        s.endpoint.handle_packet(s.now, LinkId::ONLY, segment);
        s.transmits();
        s.run_until(1_000_000);
        prop_assert!(s.endpoint.received_unread() <= 60_000, "from {before:?}");
    }
}

/// An endpoint in this state.
fn in_state(state: State) -> Script {
    let mut s = match state {
        State::Closed => Script::new(plain()),
        State::SynSent => {
            let mut s = Script::new(plain());
            s.endpoint.connect(s.now).unwrap();
            s
        }
        State::Listen | State::SynReceived => {
            let mut s = Script::new(plain());
            s.endpoint.listen().unwrap();
            s
        }
        _ => Script::connected(plain()),
    };
    match state {
        State::SynReceived => s.receive(segment(0).syn().options(mss_1000())),
        State::FinWait1 | State::FinWait2 | State::Closing | State::TimeWait => {
            s.endpoint.close(s.now).unwrap()
        }
        State::CloseWait | State::LastAck => s.receive(segment(1).ack(1).fin()),
        _ => {}
    }
    s.transmits();
    match state {
        State::FinWait2 => s.receive(segment(1).ack(2)),
        State::Closing => s.receive(segment(1).ack(1).fin()),
        State::LastAck => s.endpoint.close(s.now).unwrap(),
        State::TimeWait => s.receive(segment(1).ack(2).fin()),
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

#[test]
fn foreign_ports_and_absurd_lengths_are_dropped() {
    let mut s = Script::connected(plain());
    let mut segment = Segment { src_port: 1, dst_port: super::script::LOCAL, ..Segment::default() };
    s.endpoint.handle_packet(s.now, LinkId::ONLY, segment);
    segment.src_port = super::script::REMOTE;
    segment.payload = Length(u64::MAX);
    s.endpoint.handle_packet(s.now, LinkId::ONLY, segment);
    assert_eq!(s.transmits(), "");
    assert_eq!(s.endpoint.stats().drops.count(DropReason::WrongPort), 1);
    assert_eq!(s.endpoint.stats().drops.count(DropReason::Unexpected), 1);
    assert_eq!(s.endpoint.stats().drops.total(), 2);
}

#[test]
fn one_byte_pieces_out_of_order_are_kept_up_to_a_limit() {
    let mut s = Script::connected(plain());
    for i in 0..20_000 {
        s.receive(segment(3 + 2 * i).ack(1).data(1));
        s.transmits();
    }
    // 60 000 bytes of buffer: 234 pieces and 64 to spare.
    assert_eq!(s.endpoint.received_unread(), 298);
    assert!(s.endpoint.stats().drops.count(DropReason::ReassemblyFull) > 19_000);
}

#[test]
fn time_in_the_far_future_does_not_panic() {
    let mut s = Script::sending(plain(), 1 << 40);
    s.transmits();
    s.now = Instant::from_nanos(u64::MAX - 1);
    s.endpoint.handle_timeout(s.now);
    s.transmits();
    s.receive(segment(1).ack(5001));
    s.transmits();
    assert_eq!(s.state(), State::Established);
}
