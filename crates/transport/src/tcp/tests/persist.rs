//! RFC 9293 §3.8.6.1: zero-window probes, and the override of the sender's silly-window rule.

use super::script::{Script, plain, segment};
use crate::tcp::{CloseReason, ClosedWindow, Config, Event, State, Timer};
use hopline_core::{Instant, Length, StateMachine};
use hopline_wire::tcp::Flags;

/// Connected, with data waiting before a closed window.
fn blocked(config: Config) -> Script {
    let mut s = Script::connected(config);
    s.receive(segment(1).ack(1).win(0));
    s.endpoint.send(s.now, Length(3000)).unwrap();
    s
}

#[test]
fn a_closed_window_is_probed_with_one_byte_ever_more_rarely() {
    let mut s = blocked(plain());
    // RTO 300 ms.
    assert_eq!(
        s.run_until(5000),
        "400: . 1:2 ack 1; 1000: . 1:2 ack 1; 2200: . 1:2 ack 1; 4600: . 1:2 ack 1"
    );
    assert_eq!(s.endpoint.stats().window_probes, 4);
    assert_eq!(s.endpoint.stats().timeouts, 0);
}

#[test]
fn the_persist_timer_runs_as_soon_as_the_window_blocks() {
    let mut s = blocked(plain());
    s.transmits();
    assert_eq!(s.endpoint.poll_timeout(), Some((Instant::from_millis(400), Timer::Persist)));
}

#[test]
fn an_open_window_releases_the_data() {
    let mut s = blocked(plain());
    s.run_until(500);
    s.receive(segment(1).ack(1).win(0));
    assert_eq!(s.transmits(), "");
    s.receive(segment(1).ack(1).win(60_000));
    assert_eq!(s.transmits(), ". 1:1001 ack 1; . 1001:2001 ack 1; . 2001:3001 ack 1");
    assert_eq!(s.endpoint.poll_timeout().map(|t| t.1), Some(Timer::Retransmit));
}

#[test]
fn an_accepted_probe_byte_is_not_retransmitted() {
    let mut s = blocked(plain());
    s.run_until(500);
    s.receive(segment(1).ack(2).win(0));
    assert_eq!(s.run_until(1100), "1000: . 2:3 ack 1");
    s.receive(segment(1).ack(3).win(5000));
    assert_eq!(s.transmits(), ". 3:1003 ack 1; . 1003:2003 ack 1; . 2003:3001 ack 1");
}

#[test]
fn answered_probes_go_on_for_ever_unanswered_ones_do_not() {
    let config = Config { data_retries: Some(4), ..plain() };
    let mut s = blocked(config);
    let mut ms = 100;
    for _ in 0..50 {
        while s.run_until(ms).is_empty() {
            ms += 1000;
        }
        s.receive(segment(1).ack(1).win(0));
    }
    assert_eq!(s.events(), []);
    s.run_until(ms + 300_000);
    assert_eq!(s.events(), [Event::Closed(CloseReason::TimedOut)]);
}

#[test]
fn answers_to_probes_are_no_duplicate_acks() {
    let mut s = blocked(plain());
    for ms in [500, 1100, 2300, 4700, 9500] {
        s.run_until(ms);
        s.receive(segment(1).ack(1).win(0));
        assert_eq!(s.transmits(), "");
    }
    assert_eq!(s.endpoint.stats().dup_acks, 0);
    assert_eq!(s.endpoint.stats().fast_retransmits, 0);
}

#[test]
fn a_silly_window_is_used_when_nothing_better_comes() {
    let mut s = Script::connected(plain());
    s.receive(segment(1).ack(1).win(300));
    s.endpoint.send(s.now, Length(3000)).unwrap();
    assert_eq!(s.run_until(500), "400: . 1:301 ack 1");
}

#[test]
fn half_of_the_largest_window_is_not_silly() {
    let mut s = Script::new(plain());
    s.peer.window = 600;
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    s.receive(segment(0).syn().ack(1).options(super::script::mss_1000()));
    s.transmits();
    s.endpoint.send(s.now, Length(3000)).unwrap();
    assert_eq!(s.transmits(), ". 1:601 ack 1");
}

#[test]
fn the_window_closing_under_data_in_flight_ends_in_probes() {
    let mut s = Script::sending(plain(), 3000);
    s.transmits();
    s.receive_at(200, segment(1).ack(1001).win(0));
    // RTO 250 ms: at 450 the timer takes back what was in flight and finds the window closed; a probe 500 ms later.
    assert_eq!(s.run_until(1500), "950: . 1001:1002 ack 1");
    assert_eq!(s.endpoint.stats().timeouts, 1);
}

#[test]
fn a_fin_goes_out_even_into_a_closed_window() {
    let mut s = Script::connected(plain());
    s.receive(segment(1).ack(1).win(0));
    s.endpoint.close(s.now).unwrap();
    assert_eq!(s.transmits(), "F 1 ack 1");
}

#[test]
fn a_fin_after_a_probe_that_was_taken_goes_out_once_and_again_after_a_timeout() {
    let mut s = Script::connected(plain());
    s.receive(segment(1).ack(1).win(0));
    s.endpoint.send(s.now, Length(1)).unwrap();
    assert_eq!(s.run_until(500), "400: . 1:2 ack 1");
    s.receive(segment(1).ack(2).win(0));
    s.endpoint.close(s.now).unwrap();
    let fin = s.endpoint.poll_transmit(s.now).unwrap();
    assert!(fin.flags.contains(Flags::FIN));
    assert_eq!(s.endpoint.poll_transmit(s.now), None);
    assert_eq!(s.endpoint.poll_timeout().map(|t| t.1), Some(Timer::Retransmit));
    assert_eq!(s.run_until(1000), "750: F 2 ack 1");
    s.receive(segment(1).ack(3).win(0));
    assert_eq!(s.state(), State::FinWait2);
}

/// Two segments are in flight when the window closes over them.
fn closed_over(closed_window: ClosedWindow) -> Script {
    let mut s = Script::connected(Config { closed_window, ..plain() });
    s.receive(segment(1).ack(1).win(2000));
    s.endpoint.send(s.now, Length(3000)).unwrap();
    assert_eq!(s.transmits(), ". 1:1001 ack 1; . 1001:2001 ack 1");
    s.run_until(150);
    s.receive(segment(1).ack(1).win(0));
    s
}

#[test]
fn a_window_that_closes_over_data_in_flight_lets_them_time_out() {
    let mut s = closed_over(ClosedWindow::TimeOut);
    assert_eq!(s.run_until(800), "");
    assert_eq!((s.endpoint.stats().timeouts, s.endpoint.cwnd()), (1, 1000), "congestion, it seems");
    assert_eq!(s.run_until(1200), "1000: . 1:2 ack 1");
}

#[test]
fn as_in_4_4bsd_data_under_a_closed_window_count_as_unsent() {
    let mut s = closed_over(ClosedWindow::Persist);
    let cwnd = s.endpoint.cwnd();
    assert_eq!(s.run_until(1200), "450: . 1:2 ack 1; 1050: . 1:2 ack 1");
    s.receive(segment(1).ack(1).win(60_000));
    assert_eq!(s.transmits(), ". 1:1001 ack 1; . 1001:2001 ack 1; . 2001:3001 ack 1");
    assert_eq!((s.endpoint.stats().timeouts, s.endpoint.cwnd()), (0, cwnd), "congestion control saw nothing");
}

#[test]
fn data_acked_before_the_window_closed_are_not_retransmitted() {
    let mut s = closed_over(ClosedWindow::Persist);
    s.receive(segment(1).ack(1001).win(0));
    s.receive(segment(1).ack(1001).win(60_000));
    assert_eq!(s.transmits(), ". 1001:2001 ack 1; . 2001:3001 ack 1");
}
