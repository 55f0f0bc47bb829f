//! Keep-alive, the silence limit, abort and reset.

use super::script::{Script, ack, data, plain, probe, rst, syn};
use crate::tpa::{CloseReason, Config, DropReason, Event, State};
use hopline_core::Duration;

fn keeping_alive(interval: u64) -> Script {
    Script::connected(Config { keep_alive: Some(Duration::from_secs(interval)), ..plain() })
}

const PROBE: &str = "65535:0 (0) tx 0";

#[test]
fn without_keep_alive_an_idle_connection_lasts() {
    let mut s = Script::connected(plain());
    assert_eq!(s.run_until(1_000_000_000), "");
    assert_eq!((s.state(), s.events()), (State::Established, vec![]));
}

#[test]
fn an_idle_peer_is_probed() {
    let mut s = keeping_alive(30);
    assert_eq!(s.run_until(30_200), format!("30100: {PROBE}"));
    s.receive(ack(u16::MAX, &[], 0));
    assert_eq!(s.run_until(60_200), format!("60200: {PROBE}"), "30 s after it was heard");
    assert_eq!(s.endpoint.stats().probes, 2);
}

#[test]
fn a_silent_peer_times_out() {
    let mut s = keeping_alive(50);
    assert_eq!(s.run_until(170_099), format!("50100: {PROBE}; 100100: {PROBE}; 150100: {PROBE}"),);
    assert_eq!(s.state(), State::Established);
    assert_eq!(s.run_until(170_100), "", "120 s after the first question");
    assert_eq!(s.events(), [Event::Closed(CloseReason::TimedOut)]);
}

#[test]
fn a_peer_is_probed_before_it_times_out() {
    let mut s = keeping_alive(7200);
    assert_eq!(s.run_until(7_200_200), format!("7200100: {PROBE}"));
    s.receive(ack(u16::MAX, &[], 0));
    assert_eq!(s.run_until(14_400_000), "");
    assert_eq!(s.state(), State::Established);
}

#[test]
fn without_a_silence_limit_probes_continue() {
    let mut s = Script::connected(Config {
        keep_alive: Some(Duration::from_secs(60)),
        silence_limit: None,
        ..plain()
    });
    assert_eq!(s.run_until(6_000_100).split("; ").count(), 100);
    assert_eq!(s.state(), State::Established);
}

#[test]
fn a_peer_that_has_to_acknowledge_has_the_silence_limit() {
    let mut s = Script::connected(plain());
    s.run_until(500_000);
    s.write_and_flush(1000);
    s.run_until(619_999);
    assert_eq!(s.state(), State::Established, "counted from when it began to owe");
    s.run_until(620_000);
    assert_eq!((s.state(), s.events()), (State::Closed, vec![Event::Closed(CloseReason::TimedOut)]));
    assert_eq!((s.endpoint.unacknowledged(), s.endpoint.in_flight()), (0, 0));
}

#[test]
fn each_segment_of_the_peer_resets_the_silence_timer() {
    let mut s = Script::sending(plain(), 1000);
    for at in [60_000, 150_000, 260_000] {
        s.run_until(at);
        s.receive(probe(u16::MAX));
    }
    s.run_until(379_999);
    assert_eq!(s.state(), State::Established);
    s.run_until(380_000);
    assert_eq!(s.state(), State::Closed);
}

#[test]
fn abort_resets_a_peer_that_knows_the_connection() {
    let mut s = Script::sending(plain(), 4000);
    s.transmits();
    s.endpoint.abort(s.now);
    assert_eq!(s.transmits(), "R");
    assert_eq!((s.state(), s.events()), (State::Closed, vec![Event::Closed(CloseReason::Aborted)]));
    assert_eq!((s.run_until(1_000_000), s.endpoint.unacknowledged()), (String::new(), 0));
    s.endpoint.abort(s.now);
    assert_eq!((s.transmits(), s.events()), (String::new(), vec![]), "once");
    let mut s = Script::connecting(plain());
    s.endpoint.abort(s.now);
    assert_eq!(s.transmits(), "");
    let mut s = Script::new(plain());
    s.endpoint.listen().unwrap();
    s.exchange(syn());
    s.endpoint.abort(s.now);
    assert_eq!(s.transmits(), "R");
}

#[test]
fn a_reset_ends_the_connection_and_leaves_what_arrived() {
    let mut s = Script::connected(plain());
    s.exchange(data(0, 0));
    s.exchange(data(0, 2));
    s.receive(rst(0));
    assert_eq!(s.events(), [Event::Readable, Event::Closed(CloseReason::Reset)]);
    assert_eq!((s.read_all(), s.endpoint.received_unread()), (1000, 0), "2 can never be read");
    assert_eq!(s.run_until(1_000_000), "");
}

#[test]
fn without_tags_a_reset_must_match_the_state() {
    // The peer is in block 0, or between it and block 1.
    for (block, right) in [(0u16, true), (1, true), (2, false), (u16::MAX, false), (700, false)] {
        let mut s = Script::connected(plain());
        s.exchange(data(0, 0));
        s.receive(rst(block));
        assert_eq!(
            (s.state() == State::Closed, s.drops(DropReason::BadReset) == 0),
            (right, right),
            "{block}"
        );
    }
}
