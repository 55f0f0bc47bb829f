//! Fixed RTO (Dyer, Boppana 2001).

use super::*;
use crate::tcp::{CloseReason, Event, FixedRtoConfig};

fn fixed(timeouts: u32) -> RouteFeedback {
    RouteFeedback::FixedRto(FixedRtoConfig { timeouts })
}

fn times(said: &str) -> Vec<&str> {
    said.split("; ").map(|line| line.split(':').next().unwrap()).collect()
}

#[test]
fn the_second_and_later_timeouts_in_a_row_do_not_double_the_timeout() {
    let mut s = sending(fixed(2));
    // 300 ms, doubled once.
    assert_eq!(times(&s.run_until(3000)), ["400", "1000", "1600", "2200", "2800"]);
    assert_eq!((s.endpoint.backoff(), s.feedback_state()), (2, FeedbackState::RtoFixed));
    assert_eq!((s.endpoint.stats().timeouts, s.endpoint.stats().feedback.fixed_timeouts), (5, 4));
}

#[test]
fn an_ack_of_new_data_resets_the_count_of_timeouts() {
    let mut s = sending(fixed(2));
    s.run_until(1050);
    assert_eq!(s.feedback_state(), FeedbackState::RtoFixed);
    s.receive(segment(1).ack(1001));
    s.transmits();
    assert_eq!(s.feedback_state(), FeedbackState::Active);
    assert_eq!(times(&s.run_until(4100)), ["1650", "2850", "4050"], "600, doubled once");
}

#[test]
fn the_number_of_timeouts_is_configurable() {
    assert_eq!(times(&sending(fixed(1)).run_until(1100)), ["400", "700", "1000"]);
    assert_eq!(times(&sending(fixed(3)).run_until(4700)), ["400", "1000", "2200", "3400", "4600"]);
}

#[test]
fn a_syn_is_resent_as_always() {
    let mut s = Script::new(Config { feedback: fixed(1), ..plain() });
    s.endpoint.connect(s.now).unwrap();
    assert_eq!(s.run_until(7000), "0: S 0; 1000: S 0; 3000: S 0; 7000: S 0");
}

#[test]
fn the_connection_times_out_as_in_plain_tcp() {
    let config = Config { feedback: fixed(1), data_retries: Some(4), ..plain() };
    let mut s = Script::sending(config, 1000);
    s.transmits();
    // The series begins at 400; 300 + 600 + 1200 + 2400 + 4800 ms later the endpoint gives up.
    let said = s.run_until(9600);
    assert_eq!((times(&said).len(), s.events()), (31, vec![]));
    s.run_until(9700);
    assert_eq!(s.events(), [Event::Closed(CloseReason::TimedOut)]);
}
