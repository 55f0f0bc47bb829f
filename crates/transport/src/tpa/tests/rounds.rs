//! TPA §3.2: rounds and the retransmission stream. Nothing here is taken for congestion: thCONG is out of reach.

use super::script::{Script, ack, plain};
use crate::tpa::{Config, RoundStart};

fn rounds(start: RoundStart) -> Script {
    let mut config = Config { rounds: start, ..plain() };
    config.failures.th_cong = 200;
    let mut s = Script::sending(config, 4000);
    assert_eq!(s.transmits(), "0:0 (1000) tx 0; 0:1 (1000) tx 1; 0:2 (1000) tx 2");
    s
}

#[test]
fn each_timeout_sends_a_new_segment_before_any_retransmission() {
    let mut s = rounds(RoundStart::AllResolved);
    assert_eq!(s.run_until(400), "400: 0:3. (1000) tx 3");
    assert_eq!((s.endpoint.stats().timeouts, s.endpoint.stats().retransmissions), (3, 0));
    assert_eq!(s.endpoint.in_flight(), 1, "B4: what has timed out does not fill the window");
}

#[test]
fn a_round_may_start_when_all_segments_of_the_last_were_sent() {
    let mut s = rounds(RoundStart::AllSent);
    assert_eq!(
        s.run_until(700),
        "400: 0:3. (1000) tx 3; 0:0 (1000) tx 4; 0:1 (1000) tx 5; \
         700: 0:2 (1000) tx 6; 0:0 (1000) tx 7; 0:1 (1000) tx 8"
    );
}

#[test]
fn a_round_may_wait_until_the_last_is_resolved() {
    let mut s = rounds(RoundStart::AllResolved);
    assert_eq!(
        s.run_until(1000),
        "400: 0:3. (1000) tx 3; 700: 0:0 (1000) tx 4; 0:1 (1000) tx 5; 0:2 (1000) tx 6; \
         1000: 0:3. (1000) tx 7",
        "3 belongs to the same round as the others"
    );
}

#[test]
fn acked_segments_leave_the_retransmission_stream() {
    let mut s = rounds(RoundStart::AllResolved);
    s.run_until(400);
    s.receive_at(450, ack(0, &[0, 2], 2));
    assert_eq!(s.run_until(700), "700: 0:1 (1000) tx 4; 0:3. (1000) tx 5");
    assert_eq!(s.endpoint.stats().retransmissions, 2);
}

#[test]
fn one_ack_replaces_all_lost_acks() {
    let mut s = rounds(RoundStart::AllSent);
    s.run_until(399);
    assert_eq!(s.exchange(ack(0, &[0, 1, 2], 2)), "0:3. (1000) tx 3");
    s.receive_at(500, ack(0, &[0, 1, 2, 3], 3));
    assert_eq!(s.run_until(10_000), "");
    assert_eq!((s.endpoint.stats().retransmissions, s.endpoint.stats().timeouts), (0, 0));
}

#[test]
fn reordered_acks_and_gaps_cause_no_retransmission() {
    let mut s = rounds(RoundStart::AllSent);
    assert_eq!(s.exchange(ack(0, &[2], 2)), "0:3. (1000) tx 3");
    assert_eq!(s.exchange(ack(0, &[2, 3], 3)), "");
    assert_eq!(s.exchange(ack(0, &[2], 2)), "");
    assert_eq!(s.exchange(ack(0, &[1, 2, 3], 1)), "");
    assert_eq!(s.exchange(ack(0, &[0, 1, 2, 3], 0)), "");
    assert_eq!((s.endpoint.stats().blocks, s.endpoint.stats().retransmissions), (1, 0));
}
