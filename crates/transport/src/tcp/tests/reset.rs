//! RFC 9293 §3.5.2–3.5.3 and RFC 5961: resets and challenge ACKs.

use super::script::{Script, plain, segment};
use crate::tcp::{CloseReason, DropReason, Event, State};
use hopline_core::{Length, StateMachine};

#[test]
fn an_exact_reset_ends_the_connection() {
    let mut s = Script::sending(plain(), 5000);
    s.transmits();
    s.receive(segment(1).rst());
    assert_eq!(s.events(), [Event::Closed(CloseReason::Reset)]);
    assert_eq!(s.transmits(), "");
    assert_eq!(s.endpoint.poll_timeout(), None);
    assert_eq!(s.endpoint.unacknowledged(), 0);
}

#[test]
fn data_received_before_a_reset_can_still_be_read() {
    let mut s = Script::connected(plain());
    s.receive(segment(1).ack(1).data(400));
    s.transmits();
    s.receive(segment(401).rst());
    assert_eq!(s.read_all(), 400);
}

#[test]
fn a_reset_elsewhere_in_the_window_is_challenged() {
    let mut s = Script::connected(plain());
    s.receive(segment(500).rst());
    assert_eq!(s.transmits(), ". 1 ack 1");
    assert_eq!(s.state(), State::Established);
    assert_eq!(s.endpoint.stats().challenge_acks, 1);
    assert_eq!(s.endpoint.stats().drops.count(DropReason::BadReset), 1);
}

#[test]
fn a_reset_outside_the_window_is_dropped_silently() {
    let mut s = Script::connected(plain());
    s.receive(segment(0).rst());
    s.receive(segment(70_000).rst());
    assert_eq!(s.transmits(), "");
    assert_eq!(s.endpoint.stats().drops.count(DropReason::OutsideWindow), 2);
}

#[test]
fn a_syn_in_an_open_connection_is_challenged() {
    let mut s = Script::connected(plain());
    s.receive(segment(1).syn());
    assert_eq!(s.transmits(), ". 1 ack 1");
    assert_eq!(s.state(), State::Established);
    assert_eq!(s.endpoint.stats().drops.count(DropReason::UnexpectedSyn), 1);
}

#[test]
fn an_ack_of_what_was_never_sent_is_challenged() {
    let mut s = Script::connected(plain());
    s.receive(segment(1).ack(2).data(10));
    assert_eq!(s.transmits(), ". 1 ack 1");
    assert_eq!(s.endpoint.stats().bytes_received, 0, "and the rest of it ignored");
    assert_eq!(s.endpoint.stats().drops.count(DropReason::BadAck), 1);
}

#[test]
fn an_ack_older_than_the_window_is_challenged_and_one_within_it_is_not() {
    let mut s = Script::sending(plain(), 1000);
    s.peer.window = 5000;
    s.transmits();
    s.receive(segment(1).ack(1001));
    s.receive(segment(1).ack(1).data(10));
    assert_eq!(s.transmits(), ". 1001 ack 11", "old by 1000, largest window 60000: its data is good");
    s.receive(segment(11).ack(1001 - 60_001));
    assert_eq!(s.endpoint.stats().challenge_acks, 1);
}

#[test]
fn challenge_acks_are_rate_limited() {
    // RFC 5961 §7.
    let mut s = Script::connected(plain());
    for _ in 0..5 {
        s.receive(segment(500).rst());
    }
    assert_eq!(s.transmits(), ". 1 ack 1");
    s.receive_at(599, segment(500).rst());
    assert_eq!(s.transmits(), "");
    s.receive_at(600, segment(500).rst());
    assert_eq!(s.transmits(), ". 1 ack 1");
}

#[test]
fn abort_resets_the_peer() {
    let mut s = Script::sending(plain(), 1500);
    s.transmits();
    s.endpoint.abort(s.now);
    assert_eq!(s.transmits(), "R 1501 ack 1");
    assert_eq!(s.events(), [Event::Closed(CloseReason::Aborted)]);
    s.receive(segment(1).ack(1001));
    assert_eq!(s.transmits(), "R 1001", "what still arrives is reset");
}

#[test]
fn abort_without_a_peer_is_silent() {
    let mut s = Script::new(plain());
    s.endpoint.connect(s.now).unwrap();
    s.endpoint.abort(s.now);
    assert_eq!(s.transmits(), "");
    assert_eq!(s.events(), [Event::Closed(CloseReason::Aborted)]);
    s.endpoint.abort(s.now);
    assert_eq!(s.events(), []);
}

#[test]
fn a_reset_in_time_wait_ends_it() {
    let mut s = Script::connected(plain());
    s.endpoint.close(s.now).unwrap();
    s.transmits();
    s.receive(segment(1).ack(2).fin());
    s.transmits();
    s.receive(segment(2).rst());
    assert_eq!(s.events(), [Event::PeerClosed, Event::Closed(CloseReason::Finished)]);
}

#[test]
fn a_reset_while_closing_is_reported_as_a_reset() {
    let mut s = Script::connected(plain());
    s.endpoint.close(s.now).unwrap();
    s.transmits();
    s.receive(segment(1).rst());
    assert_eq!(s.events(), [Event::Closed(CloseReason::Reset)]);
}

#[test]
fn a_segment_without_ack_is_dropped() {
    let mut s = Script::connected(plain());
    s.receive(segment(1).data(10));
    assert_eq!(s.transmits(), "");
    assert_eq!(s.endpoint.stats().drops.count(DropReason::Unexpected), 1);
}

#[test]
fn too_many_timeouts_give_up() {
    let mut config = plain();
    config.data_retries = Some(3);
    let mut s = Script::connected(config);
    s.endpoint.send(s.now, Length(10)).unwrap();
    assert_eq!(
        s.run_until(60_000),
        "100: . 1:11 ack 1; 400: . 1:11 ack 1; 1000: . 1:11 ack 1; 2200: . 1:11 ack 1"
    );
    assert_eq!(s.events(), [Event::Closed(CloseReason::TimedOut)]);
}
