//! Opening of connections without state for unverified addresses.

use super::script::{Script, SegmentBuilder, ack, data, identity, offer, plain, rst, syn, tag};
use crate::tpa::{CloseReason, Config, Endpoint, Event, Listener, Refusal, Secret, State, Verdict};
use hopline_core::{Instant, Length, LinkId, StateMachine};
use hopline_wire::tpa::{Control, Opening, Segment, Tag};

const HERE: &[u8] = b"10.0.0.1:7172";

fn listener() -> Listener {
    Listener::new(plain(), Secret([7; 16])).unwrap()
}

fn offering() -> Opening {
    Opening { tag: Some(tag(8)), ..offer() }
}

fn at(secs: u64) -> Instant {
    Instant::from_secs(secs)
}

/// The tag that the listener gives to a SYN.
fn tag_from_syn_ack(listener: &Listener, now: Instant, address: &[u8], opening: Opening) -> Tag {
    match listener.handle(now, address, syn().opening(opening).0) {
        Verdict::Reply(reply) => reply.opening.unwrap().tag.unwrap(),
        other => panic!("no reply: {other:?}"),
    }
}

/// Returns the segment that completes the handshake.
fn handshake_ack(tag: Tag, opening: Opening) -> SegmentBuilder {
    ack(u16::MAX, &[], 0).tag(tag).opening(opening)
}

fn refusal(listener: &Listener, now: Instant, address: &[u8], segment: SegmentBuilder) -> Option<Refusal> {
    match listener.handle::<Length>(now, address, segment.0) {
        Verdict::Refused(refusal) => Some(refusal),
        Verdict::Reply(_) => panic!("replied"),
        Verdict::Accepted(_) => None,
    }
}

#[test]
fn a_syn_is_answered_with_a_tag_and_the_parameters() {
    let Verdict::Reply(reply) = listener().handle(at(0), HERE, syn().opening(offering()).0) else { panic!() };
    assert_eq!((reply.control, reply.tag, reply.window), (Control::Syn, Some(tag(8)), 65_535));
    let opening = reply.opening.unwrap();
    assert_eq!((opening.mss, opening.block_segments, opening.cwnd_max), (1000, 4, 3));
    assert!(reply.ack.is_some() && opening.tag.is_some());
}

#[test]
fn an_initiator_that_echoes_the_tag_is_accepted() {
    let listener = listener();
    let tag = tag_from_syn_ack(&listener, at(0), HERE, offering());
    let Verdict::Accepted(endpoint) = listener.handle(at(1), HERE, handshake_ack(tag, offering()).0) else {
        panic!()
    };
    let mut s = Script::with_endpoint(endpoint);
    s.now = at(1);
    assert_eq!((s.state(), s.endpoint.tag()), (State::Established, Some(tag)));
    assert_eq!(s.transmits(), "ack -1:[] tx 0");
    let answer = s.last.unwrap();
    assert_eq!((answer.tag, answer.opening), (Some(super::script::tag(8)), None));
}

#[test]
fn the_first_segment_may_carry_data_and_the_end() {
    let listener = listener();
    let tag = tag_from_syn_ack(&listener, at(0), HERE, offering());
    let first = data(0, 0).fin().tag(tag).opening(offering());
    let Verdict::Accepted(endpoint) = listener.handle(at(1), HERE, first.0) else { panic!() };
    let mut s = Script::with_endpoint(endpoint);
    assert_eq!((s.read_all(), s.state(), s.transmits()), (1000, State::CloseWait, "ack 0:[0] tx 0".into()));
}

#[test]
fn a_flood_of_syns_leaves_no_state() {
    let listener = listener();
    let before = format!("{listener:?}");
    for n in 0..100_000u32 {
        let opening = Opening { tag: Some(tag(u64::from(n) + 1)), ..offer() };
        let reply = listener.handle::<Length>(at(0), &n.to_be_bytes(), syn().opening(opening).0);
        assert!(matches!(reply, Verdict::Reply(_)));
    }
    // `handle` takes `&self`, and there is nothing inside that could change.
    assert_eq!(format!("{listener:?}"), before);
    assert!(size_of::<Listener>() <= size_of::<Config>() + size_of::<Secret>());
}

#[test]
fn a_syn_ack_is_no_longer_than_the_syn() {
    // The listener does not amplify: the answer is little longer than the SYN.
    let call = syn().opening(offering()).0;
    let Verdict::Reply(reply) = listener().handle(at(0), HERE, call) else { panic!() };
    assert_eq!((call.udp_len(), reply.udp_len()), (28, 40));
}

#[test]
fn a_tag_is_valid_for_one_address() {
    let listener = listener();
    let tag = tag_from_syn_ack(&listener, at(0), HERE, offering());
    for other in [&b"10.0.0.1:7173"[..], b"10.0.0.2:7172", b"", b"10.0.0.1:7172 "] {
        assert_eq!(refusal(&listener, at(0), other, handshake_ack(tag, offering())), Some(Refusal::BadTag));
    }
    assert_eq!(refusal(&listener, at(0), HERE, handshake_ack(tag, offering())), None);
}

#[test]
fn a_tag_is_valid_for_its_opening_parameters() {
    let listener = listener();
    let told = tag_from_syn_ack(&listener, at(0), HERE, offering());
    for opening in [
        Opening { tag: Some(tag(9)), ..offering() },
        Opening { mss: 1001, ..offering() },
        Opening { block_segments: 11, ..offering() },
        Opening { cwnd_max: 4, ..offering() },
        Opening { block_segments: 3, cwnd_max: 12, ..offering() },
    ] {
        assert_eq!(
            refusal(&listener, at(0), HERE, handshake_ack(told, opening)),
            Some(Refusal::BadTag),
            "{opening:?}"
        );
    }
}

#[test]
fn a_tag_is_valid_for_30_to_60_seconds() {
    let listener = listener();
    for (given, still, no_more) in [(0u64, 59, 60), (29, 59, 60), (30, 89, 90), (45, 89, 90)] {
        let tag = tag_from_syn_ack(&listener, at(given), HERE, offering());
        assert_eq!(
            refusal(&listener, at(still), HERE, handshake_ack(tag, offering())),
            None,
            "given at {given}"
        );
        assert_eq!(
            refusal(&listener, at(no_more), HERE, handshake_ack(tag, offering())),
            Some(Refusal::BadTag)
        );
    }
}

#[test]
fn a_tag_is_valid_with_one_secret() {
    let tag = tag_from_syn_ack(&listener(), at(0), HERE, offering());
    let other = Listener::new(plain(), Secret([8; 16])).unwrap();
    assert_eq!(refusal(&other, at(0), HERE, handshake_ack(tag, offering())), Some(Refusal::BadTag));
    assert_eq!(format!("{:?}", Secret([8; 16])), "Secret", "it does not get into logs");
}

#[test]
fn guessed_tags_and_other_segments_are_refused() {
    let listener = listener();
    let given = tag_from_syn_ack(&listener, at(0), HERE, offering());
    for (segment, why) in [
        (handshake_ack(tag(1), offering()), Refusal::BadTag),
        (ack(u16::MAX, &[], 0), Refusal::NoOpening),
        (ack(u16::MAX, &[], 0).tag(given), Refusal::NoOpening),
        (data(0, 0).tag(given), Refusal::NoOpening),
        (rst(0), Refusal::NoOpening),
        (rst(0).tag(given).opening(offering()), Refusal::NoOpening),
        (syn().tag(given).opening(offering()), Refusal::NoOpening),
        (syn().acks(0, &[], 0).opening(offering()), Refusal::NoOpening),
        (syn(), Refusal::NoTag),
        (handshake_ack(given, offer()), Refusal::NoTag),
    ] {
        assert_eq!(refusal(&listener, at(0), HERE, segment), Some(why));
    }
}

#[test]
fn a_repeated_tag_creates_an_equal_endpoint() {
    // Without state the listener cannot know. Its driver looks for the connection first, by address and tag. An
    // eavesdropper can replay the first segment of a connection for up to 60 s after the end of the connection.
    let listener = listener();
    let tag = tag_from_syn_ack(&listener, at(0), HERE, offering());
    let first = data(0, 0).tag(tag).opening(offering());
    let [a, b] = [(); 2].map(|()| match listener.handle(at(1), HERE, first.0) {
        Verdict::Accepted(endpoint) => format!("{endpoint:?}"),
        other => panic!("{other:?}"),
    });
    assert_eq!(a, b);
    // To the connection itself it is a duplicate.
    let Verdict::Accepted(endpoint) = listener.handle(at(1), HERE, first.0) else { panic!() };
    let mut s = Script::with_endpoint(endpoint);
    s.now = at(1);
    s.transmits();
    let before = s.snapshot();
    assert_eq!(s.exchange(first), "ack 0:[0] tx 0");
    assert_eq!((s.snapshot(), s.endpoint.stats().duplicates_received), (before, 1));
}

#[test]
fn an_idle_connection_outlives_the_loss_of_the_first_ack() {
    let listener = listener();
    let mut a = Script::with_endpoint(Endpoint::tagged(plain(), identity(8)).unwrap());
    a.endpoint.connect(a.now).unwrap();
    let syn = a.endpoint.poll_transmit(a.now).unwrap();
    let Verdict::Reply(reply) = listener.handle(a.now, HERE, syn) else { panic!() };
    a.receive(SegmentBuilder(reply));
    let first = a.endpoint.poll_transmit(a.now).unwrap();
    let Verdict::Accepted(endpoint) = listener.handle(a.now, HERE, first) else { panic!() };
    let mut b = Script::with_endpoint(endpoint);
    assert_eq!(b.transmits(), "ack -1:[] tx 0", "which is lost");
    assert_eq!(a.run_until(400), "200: ack -1:[] tx 0");
    b.endpoint.handle_packet(a.now, LinkId::ONLY, a.last.unwrap());
    b.now = a.now;
    assert_eq!(b.transmits(), "ack -1:[] tx 0");
    a.receive(SegmentBuilder(b.last.unwrap()));
    assert_eq!(a.run_until(1_000_000), "");
    assert_eq!(a.state(), State::Established);
}

#[test]
fn without_a_listener_only_a_syn_is_reset() {
    let reset: Segment<Length> = Listener::refuse(&syn().opening(offering()).0).unwrap();
    assert_eq!((reset.control, reset.tag), (Control::Rst, Some(tag(8))));
    let mut s = Script::with_endpoint(Endpoint::tagged(plain(), identity(8)).unwrap());
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    s.receive(SegmentBuilder(reset));
    assert_eq!(s.state(), State::Closed);
    for segment in [data(0, 0), rst(0).opening(offering()), ack(0, &[], 0).opening(offering())] {
        assert!(Listener::refuse(&segment.0).is_none());
    }
}

#[test]
fn a_bad_configuration_is_refused() {
    let error = Listener::new(Config { mss: 0, ..plain() }, Secret([0; 16])).unwrap_err();
    assert_eq!(error.to_string(), "mss must be 1 to 65000");
}

#[test]
fn an_initiator_with_an_expired_tag_times_out() {
    // It cannot know if its segment created a connection with lost answers. A second connection would receive the same
    // data again.
    for bytes in [1000, 0] {
        let listener = listener();
        let mut a = Script::with_endpoint(Endpoint::tagged(plain(), identity(8)).unwrap());
        a.endpoint.connect(a.now).unwrap();
        let syn = a.endpoint.poll_transmit(a.now).unwrap();
        let Verdict::Reply(reply) = listener.handle(a.now, HERE, syn) else { panic!() };
        a.receive(SegmentBuilder(reply));
        if bytes > 0 {
            a.write_and_flush(bytes);
        }
        a.run_until(59_999);
        // An outage of a minute ends: no segment that comes now makes a connection, and none is a new call.
        let mut late = 0;
        for ms in (60_000..=120_000).step_by(100) {
            a.run_until(ms);
            if let Some(segment) = a.last.take_if(|_| a.now >= at(60)) {
                assert_eq!(refusal(&listener, a.now, HERE, SegmentBuilder(segment)), Some(Refusal::BadTag));
                late += 1;
            }
        }
        assert_eq!((a.state(), late > 0), (State::Closed, true), "{bytes} bytes");
        assert_eq!(a.events().last(), Some(&Event::Closed(CloseReason::TimedOut)));
    }
}
