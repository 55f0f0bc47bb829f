//! Keep-alive, the silence limit, abort and reset.

use super::script::{Script, ack, data, plain, question, rst, syn};
use crate::tpa::{CloseReason, Config, DropReason, Event, State};
use hopline_core::Duration;

fn keeping_alive(interval: u64) -> Script {
    Script::connected(Config { keep_alive: Some(Duration::from_secs(interval)), ..plain() })
}

const QUESTION: &str = "65535:0 (0) tx 0";

#[test]
fn without_keep_alive_an_idle_connection_lasts() {
    let mut s = Script::connected(plain());
    assert_eq!(s.runs_to(1_000_000_000), "");
    assert_eq!((s.state(), s.events()), (State::Established, vec![]));
}

#[test]
fn an_idle_peer_is_asked_for_a_sign_of_life() {
    let mut s = keeping_alive(30);
    assert_eq!(s.runs_to(30_200), format!("30100: {QUESTION}"));
    s.hears(ack(u16::MAX, &[], 0));
    assert_eq!(s.runs_to(60_200), format!("60200: {QUESTION}"), "30 s after it was heard");
    assert_eq!(s.endpoint.stats().probes, 2);
}

#[test]
fn whoever_gives_no_sign_of_life_is_given_up() {
    let mut s = keeping_alive(50);
    assert_eq!(s.runs_to(170_099), format!("50100: {QUESTION}; 100100: {QUESTION}; 150100: {QUESTION}"),);
    assert_eq!(s.state(), State::Established);
    assert_eq!(s.runs_to(170_100), "", "120 s after the first question");
    assert_eq!(s.events(), [Event::Closed(CloseReason::TimedOut)]);
}

#[test]
fn a_peer_is_asked_before_it_is_given_up_however_rarely_that_is() {
    let mut s = keeping_alive(7200);
    assert_eq!(s.runs_to(7_200_200), format!("7200100: {QUESTION}"));
    s.hears(ack(u16::MAX, &[], 0));
    assert_eq!(s.runs_to(14_400_000), "");
    assert_eq!(s.state(), State::Established);
}

#[test]
fn without_silence_limit_it_is_asked_for_ever() {
    let mut s = Script::connected(Config {
        keep_alive: Some(Duration::from_secs(60)),
        silence_limit: None,
        ..plain()
    });
    assert_eq!(s.runs_to(6_000_100).split("; ").count(), 100);
    assert_eq!(s.state(), State::Established);
}

#[test]
fn a_peer_that_owes_an_ack_may_be_silent_for_so_long() {
    let mut s = Script::connected(plain());
    s.runs_to(500_000);
    s.hands_over(1000);
    s.runs_to(619_999);
    assert_eq!(s.state(), State::Established, "counted from when it began to owe");
    s.runs_to(620_000);
    assert_eq!((s.state(), s.events()), (State::Closed, vec![Event::Closed(CloseReason::TimedOut)]));
    assert_eq!((s.endpoint.unacknowledged(), s.endpoint.in_flight()), (0, 0));
}

#[test]
fn each_sign_of_life_counts() {
    let mut s = Script::sending(plain(), 1000);
    for at in [60_000, 150_000, 260_000] {
        s.runs_to(at);
        s.hears(question(u16::MAX));
    }
    s.runs_to(379_999);
    assert_eq!(s.state(), State::Established);
    s.runs_to(380_000);
    assert_eq!(s.state(), State::Closed);
}

#[test]
fn abort_tells_the_peer_if_it_knows_of_us() {
    let mut s = Script::sending(plain(), 4000);
    s.says();
    s.endpoint.abort(s.now);
    assert_eq!(s.says(), "R");
    assert_eq!((s.state(), s.events()), (State::Closed, vec![Event::Closed(CloseReason::Aborted)]));
    assert_eq!((s.runs_to(1_000_000), s.endpoint.unacknowledged()), (String::new(), 0));
    s.endpoint.abort(s.now);
    assert_eq!((s.says(), s.events()), (String::new(), vec![]), "once");
    let mut s = Script::connecting(plain());
    s.endpoint.abort(s.now);
    assert_eq!(s.says(), "");
    let mut s = Script::new(plain());
    s.endpoint.listen().unwrap();
    s.answers(syn());
    s.endpoint.abort(s.now);
    assert_eq!(s.says(), "R");
}

#[test]
fn a_reset_ends_the_connection_and_leaves_what_arrived() {
    let mut s = Script::connected(plain());
    s.answers(data(0, 0));
    s.answers(data(0, 2));
    s.hears(rst(0));
    assert_eq!(s.events(), [Event::Readable, Event::Closed(CloseReason::Reset)]);
    assert_eq!((s.reads(), s.endpoint.received_unread()), (1000, 0), "2 can never be read");
    assert_eq!(s.runs_to(1_000_000), "");
}

#[test]
fn without_tags_a_reset_must_know_where_the_connection_stands() {
    // The peer is in block 0, or between it and block 1.
    for (block, right) in [(0u16, true), (1, true), (2, false), (u16::MAX, false), (700, false)] {
        let mut s = Script::connected(plain());
        s.answers(data(0, 0));
        s.hears(rst(block));
        assert_eq!(
            (s.state() == State::Closed, s.drops(DropReason::BadReset) == 0),
            (right, right),
            "{block}"
        );
    }
}
