//! Fixed RTO (Dyer, Boppana 2001).

use super::*;
use crate::tcp::{CloseReason, Event, FixedRtoConfig};

fn fixed(timeouts: u32) -> Feedback {
    Feedback::FixedRto(FixedRtoConfig { timeouts })
}

fn times(said: &str) -> Vec<&str> {
    said.split("; ").map(|line| line.split(':').next().unwrap()).collect()
}

#[test]
fn the_second_and_later_timeouts_in_a_row_do_not_double_the_timeout() {
    let mut s = sending(fixed(2));
    // 300 ms, doubled once.
    assert_eq!(times(&s.runs_to(3000)), ["400", "1000", "1600", "2200", "2800"]);
    assert_eq!((s.endpoint.backoff(), s.stands()), (2, FeedbackState::RtoFixed));
    assert_eq!((s.endpoint.stats().timeouts, s.endpoint.stats().feedback.fixed_timeouts), (5, 4));
}

#[test]
fn an_acknowledgment_of_new_data_in_between_begins_a_new_row() {
    let mut s = sending(fixed(2));
    s.runs_to(1050);
    assert_eq!(s.stands(), FeedbackState::RtoFixed);
    s.hears(seg(1).ack(1001));
    s.says();
    assert_eq!(s.stands(), FeedbackState::Active);
    assert_eq!(times(&s.runs_to(4100)), ["1650", "2850", "4050"], "600, doubled once");
}

#[test]
fn the_row_is_a_parameter() {
    assert_eq!(times(&sending(fixed(1)).runs_to(1100)), ["400", "700", "1000"]);
    assert_eq!(times(&sending(fixed(3)).runs_to(4700)), ["400", "1000", "2200", "3400", "4600"]);
}

#[test]
fn a_syn_is_resent_as_always() {
    let mut s = Script::new(Config { feedback: fixed(1), ..plain() });
    s.endpoint.connect(s.now).unwrap();
    assert_eq!(s.runs_to(7000), "0: S 0; 1000: S 0; 3000: S 0; 7000: S 0");
}

#[test]
fn it_gives_up_when_plain_tcp_would_have() {
    let config = Config { feedback: fixed(1), data_retries: Some(4), ..plain() };
    let mut s = Script::sending(config, 1000);
    s.says();
    // The series begins at 400; 300 + 600 + 1200 + 2400 + 4800 ms later the endpoint gives up.
    let said = s.runs_to(9600);
    assert_eq!((times(&said).len(), s.events()), (31, vec![]));
    s.runs_to(9700);
    assert_eq!(s.events(), [Event::Closed(CloseReason::TimedOut)]);
}
