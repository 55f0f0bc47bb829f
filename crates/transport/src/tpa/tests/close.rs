//! Closing, as TCP does it (B9): RFC 9293 §3.6. The FIN is in the last segment of the last block.

use super::script::{Script, ack, data, plain, rst};
use crate::tpa::{CloseError, CloseReason, Event, SendError, State};
use hopline_core::{Instant, Length};

/// Closed by our user at 100 ms.
fn closing() -> Script {
    let mut s = Script::connected(plain());
    s.endpoint.close(s.now).unwrap();
    assert_eq!((s.transmits().as_str(), s.state()), ("F 0:0. (0) tx 0", State::FinWait1));
    s
}

#[test]
fn the_fin_goes_in_the_last_segment_after_all_data() {
    let mut s = Script::connected(plain());
    s.endpoint.send(s.now, Length(1500)).unwrap();
    s.endpoint.close(s.now).unwrap();
    assert_eq!(s.transmits(), "0:0 (1000) tx 0; F 0:1. (500) tx 1");
    let mut s = Script::sending(plain(), 4000);
    s.endpoint.close(s.now).unwrap();
    s.transmits();
    s.exchange(ack(0, &[0, 1, 2], 2));
    assert_eq!(s.exchange(ack(0, &[0, 1, 2, 3], 3)), "F 1:0. (0) tx 0", "the block was under way");
}

#[test]
fn closing_first_leads_through_time_wait() {
    let mut s = closing();
    s.receive_at(200, ack(0, &[0], 0));
    assert_eq!(s.state(), State::FinWait2);
    s.receive_at(300, data(0, 0).len(0).fin());
    assert_eq!((s.transmits().as_str(), s.state()), ("ack 0:[0] tx 0", State::TimeWait));
    assert_eq!(s.events(), [Event::PeerClosed]);
    assert_eq!(s.run_until(10_299), "");
    assert_eq!(s.state(), State::TimeWait);
    assert_eq!(s.run_until(10_300), "");
    assert_eq!(s.events(), [Event::Closed(CloseReason::Finished)]);
}

#[test]
fn closing_second_ends_with_the_ack_of_our_fin() {
    let mut s = Script::connected(plain());
    assert_eq!(s.exchange(data(0, 0).fin()), "ack 0:[0] tx 0");
    assert_eq!((s.state(), s.events()), (State::CloseWait, vec![Event::Readable, Event::PeerClosed]));
    s.write_and_flush(10);
    assert_eq!(s.transmits(), "0:0. (10) tx 0 ack 0:[0] tx 0", "our direction is still open");
    s.receive(ack(0, &[0], 0));
    s.endpoint.close(s.now).unwrap();
    assert_eq!((s.transmits().as_str(), s.state()), ("F 1:0. (0) tx 0 ack 0:[0] tx 0", State::LastAck));
    s.receive(ack(1, &[0], 0));
    assert_eq!((s.state(), s.events()), (State::Closed, vec![Event::Closed(CloseReason::Finished)]));
    assert_eq!(s.run_until(1_000_000), "");
}

#[test]
fn data_arrive_after_we_closed() {
    let mut s = closing();
    s.receive(ack(0, &[0], 0));
    assert_eq!(s.exchange(data(0, 0).last()), "ack 0:[0] tx 0");
    assert_eq!((s.read_all(), s.state()), (1000, State::FinWait2));
}

#[test]
fn both_may_close_at_once() {
    let mut s = closing();
    assert_eq!(s.exchange(data(0, 0).len(0).fin()), "ack 0:[0] tx 0");
    assert_eq!(s.state(), State::Closing);
    s.receive(ack(0, &[0], 0).acks(0, &[0], 0));
    assert_eq!((s.state(), s.transmits()), (State::TimeWait, String::new()));
}

#[test]
fn one_segment_may_acknowledge_our_fin_and_carry_the_peers() {
    let mut s = closing();
    assert_eq!(s.exchange(data(0, 0).len(0).fin().acks(0, &[0], 0)), "ack 0:[0] tx 0");
    assert_eq!(s.state(), State::TimeWait);
}

#[test]
fn a_lost_fin_is_sent_again() {
    let mut s = closing();
    assert_eq!(s.run_until(1300), "400: F 0:0. (0) tx 1 !; 700: F 0:0. (0) tx 2 !; 1300: F 0:0. (0) tx 3 !");
    s.receive(ack(0, &[0], 1));
    assert_eq!(s.state(), State::FinWait2);
}

#[test]
fn a_fin_that_comes_again_restarts_time_wait() {
    let mut s = closing();
    let fin = data(0, 0).len(0).fin().acks(0, &[0], 0);
    s.exchange(fin);
    s.receive_at(5_000, fin);
    assert_eq!(s.transmits(), "ack 0:[0] tx 0", "the peer did not get our ACK");
    s.run_until(14_999);
    assert_eq!(s.state(), State::TimeWait);
    s.run_until(15_000);
    assert_eq!(s.state(), State::Closed);
}

#[test]
fn what_is_dropped_does_not_restart_time_wait() {
    let mut s = closing();
    s.exchange(data(0, 0).len(0).fin().acks(0, &[0], 0));
    s.receive_at(5_000, data(1, 0));
    s.receive_at(6_000, data(0, 5));
    s.run_until(10_100);
    assert_eq!(s.state(), State::Closed);
}

#[test]
fn a_reset_in_time_wait_has_no_effect() {
    // RFC 9293 §3.10.7.4: both directions have ended in order.
    let mut s = closing();
    s.exchange(data(0, 0).len(0).fin().acks(0, &[0], 0));
    s.events();
    s.receive(rst(1));
    assert_eq!(s.events(), [Event::Closed(CloseReason::Finished)]);
}

#[test]
fn a_closed_direction_accepts_no_data() {
    let mut s = closing();
    assert_eq!(s.endpoint.send(s.now, Length(1)), Err(SendError::NotOpen));
    assert_eq!(s.endpoint.close(s.now), Err(CloseError::NotOpen));
    let mut s = Script::new(plain());
    assert_eq!(s.endpoint.close(s.now), Err(CloseError::NotOpen));
    assert_eq!(s.endpoint.send(s.now, Length(1)), Err(SendError::NotOpen));
}

#[test]
fn closing_before_the_peer_answers_with_nothing_to_send_simply_ends() {
    let mut s = Script::new(plain());
    s.endpoint.listen().unwrap();
    s.endpoint.close(Instant::ZERO).unwrap();
    assert_eq!(s.events(), [Event::Closed(CloseReason::Finished)]);
}
