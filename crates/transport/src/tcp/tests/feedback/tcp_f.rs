//! TCP-F (Chandran, Raghunathan, Venkatesan, Prakash 2001, §4).

use super::*;
use crate::tcp::TcpFConfig;

fn tcp_f() -> Script {
    let mut s = sending(RouteFeedback::TcpF(TcpFConfig { failure_timer: ms(5000) }));
    s.lose_route_at(200);
    s
}

#[test]
fn a_snoozing_sender_is_silent_until_the_rrn_and_then_retransmits() {
    let mut s = tcp_f();
    assert_eq!(s.run_until(5000), "");
    s.signal(Signal::RouteFound);
    let said = s.transmits();
    assert!(
        said.starts_with(". 1:1001 ack 1; . 1001:2001") && said.ends_with(". 9001:10001 ack 1"),
        "{said}"
    );
    assert_eq!(
        (s.feedback_state(), s.endpoint.cwnd(), s.endpoint.backoff()),
        (FeedbackState::Active, 10_000, 1)
    );
    assert_eq!(s.endpoint.poll_timeout().unwrap().0, Instant::from_millis(5300));
    s.receive_at(5100, segment(1).ack(10_001));
    assert_eq!(s.transmits().split("; ").count(), 11, "at the same rate as before");
    assert_eq!((s.endpoint.stats().timeouts, s.endpoint.stats().retransmissions), (0, 10));
}

#[test]
fn duplicates_caused_by_the_flush_are_no_loss() {
    let mut s = tcp_f();
    s.signal(Signal::RouteFound);
    s.transmits();
    s.receive_at(300, segment(1).ack(4001));
    s.transmits();
    for _ in 0..4 {
        s.receive(segment(1).ack(4001));
    }
    assert_eq!(s.endpoint.stats().fast_retransmits, 0);
}

#[test]
fn the_route_failure_timer_ends_the_snooze_and_congestion_control_is_invoked() {
    let mut s = tcp_f();
    assert_eq!(s.run_until(5200), "");
    assert_eq!((s.feedback_state(), s.endpoint.cwnd()), (FeedbackState::Active, 10_000));
    assert_eq!(s.run_until(5600), "5500: . 1:1001 ack 1", "one RTO later");
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh(), s.endpoint.backoff()), (1000, 5000, 2));
    s.signal(Signal::RouteFound);
    assert_eq!(s.transmits(), "", "it no longer waits for that");
}

#[test]
fn it_may_snooze_again() {
    let mut s = tcp_f();
    s.signal(Signal::RouteFound);
    s.transmits();
    s.lose_route_at(300);
    assert_eq!((s.feedback_state(), s.endpoint.stats().feedback.freezes), (FeedbackState::Snooze, 2));
}

#[test]
fn sacked_data_are_not_flushed() {
    let mut s = sending_with_sack(RouteFeedback::TcpF(TcpFConfig::PAPER));
    s.receive(segment(1).ack(2001).sack(3001, 9001));
    s.transmits();
    s.lose_route_at(200);
    s.signal(Signal::RouteFound);
    assert!(s.transmits().starts_with(". 2001:3001 ack 1; . 9001:10001 ack 1; . 10001:11001 ack 1"));
}
