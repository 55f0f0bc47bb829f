//! Flow control (B11): the window is in bytes, what closes it is asked about, and asking is no failure.

use super::script::{Script, ack, data, plain};
use crate::tpa::{Config, DropReason, State};

/// Nothing was received, and there is room for `window` bytes.
fn window_update(window: u16) -> super::script::SegmentBuilder {
    ack(u16::MAX, &[], 0).win(window)
}

fn sending(window: u16, bytes: u64) -> Script {
    let mut s = Script::connected(plain());
    s.receive(window_update(window));
    s.write_and_flush(bytes);
    s
}

#[test]
fn sending_respects_the_peers_window() {
    let mut s = sending(2999, 4000);
    assert_eq!(s.transmits(), "0:0 (1000) tx 0; 0:1 (1000) tx 1");
    assert_eq!(s.exchange(ack(0, &[0, 1], 1).win(1000)), "0:2 (1000) tx 2");
    assert_eq!(s.exchange(ack(0, &[0, 1, 2], 2).win(1000)), "0:3. (1000) tx 3");
}

#[test]
fn a_closed_window_is_probed_with_backoff() {
    let mut s = sending(0, 1000);
    assert_eq!(
        s.run_until(10_000),
        "400: 65535:0 (0) tx 0; 1000: 65535:0 (0) tx 0; 2200: 65535:0 (0) tx 0; \
         4600: 65535:0 (0) tx 0; 9400: 65535:0 (0) tx 0"
    );
    assert_eq!((s.endpoint.stats().probes, s.endpoint.stats().timeouts), (5, 0));
}

#[test]
fn answers_to_window_probes_do_not_reset_the_backoff() {
    // RFC 9293 §3.8.6.1.
    let mut s = sending(0, 1000);
    assert_eq!(s.transmits(), "");
    let mut asked = Vec::new();
    while asked.len() < 5 {
        let next = s.next_timer();
        if !s.run_until(next).is_empty() {
            asked.push(next);
            assert_eq!(s.exchange(window_update(0)), "");
        }
    }
    assert_eq!(asked, [400, 1000, 2200, 4600, 9400]);
}

#[test]
fn a_window_probe_recovers_a_lost_window_update() {
    let mut s = sending(0, 1000);
    assert_eq!(s.run_until(500), "400: 65535:0 (0) tx 0");
    assert_eq!(s.exchange(window_update(5000)), "0:0. (1000) tx 0");
    assert_eq!(s.endpoint.peer_window(), 5000);
}

#[test]
fn window_probes_restart_when_the_window_closes_again() {
    let mut s = sending(0, 2000);
    s.run_until(5000);
    assert_eq!(s.exchange(window_update(1000)), "0:0 (1000) tx 0");
    s.receive(ack(0, &[0], 0).win(0));
    let wait = s.endpoint.rto().as_nanos() / 1_000_000;
    assert_eq!(s.run_until(5001 + wait), format!("{}: 65535:0 (0) tx 0", 5000 + wait));
}

#[test]
fn an_unreading_peer_stops_only_the_sender() {
    let mut s = sending(0, 1000);
    for (block, minute) in (0u16..).zip(1..=24 * 60u64) {
        // It answers whatever it is asked, and sends data of its own.
        while s.next_timer() <= minute * 60_000 {
            let at = s.next_timer();
            if s.run_until(at).contains("65535:0 (0)") {
                assert_eq!(s.exchange(window_update(0)), "");
            }
        }
        s.run_until(minute * 60_000);
        assert_eq!(s.exchange(data(block, 0).last().win(0)), format!("ack {block}:[0] tx 0"));
        assert_eq!(s.read_all(), 1000);
    }
    assert_eq!((s.state(), s.endpoint.stats().segments_sent), (State::Established, 0));
    assert_eq!(s.exchange(ack(u16::MAX, &[], 0).win(1000)), "0:0. (1000) tx 0 ack 1439:[0] tx 0");
}

#[test]
fn the_window_announces_the_free_buffer() {
    let mut s = Script::connected(Config { receive_buffer: 4000, ..plain() });
    let mut windows = Vec::new();
    for position in 0..4 {
        s.exchange(data(0, position).congested());
        windows.push(s.last.unwrap().window);
    }
    assert_eq!(windows, [3000, 2000, 1000, 0]);
    assert_eq!(s.endpoint.received_unread(), 4000);
}

#[test]
fn data_without_room_are_dropped_and_answered() {
    let mut s = Script::connected(Config { receive_buffer: 4000, ..plain() });
    (0..3).for_each(|position| drop(s.exchange(data(0, position))));
    assert_eq!(s.exchange(data(0, 3).len(1000).last()), "ack 0:[0-3] tx 3");
    assert_eq!(s.exchange(data(1, 0).len(1)), "ack 1:[] tx 3");
    assert_eq!((s.drops(DropReason::NoRoom), s.endpoint.received_unread()), (1, 4000));
    assert_eq!(s.read_all(), 4000);
    assert_eq!(s.transmits(), "ack 1:[] tx 3", "there is room again");
    assert_eq!(s.last.unwrap().window, 4000);
    s.receive(data(1, 0).len(1).last());
    assert_eq!(s.read_all(), 1);
}

#[test]
fn reading_sends_an_update_only_for_a_nearly_closed_window() {
    let mut s = Script::connected(plain());
    s.exchange(data(0, 0).congested());
    assert_eq!((s.read_all(), s.transmits()), (1000, String::new()));
}

#[test]
fn an_older_ack_does_not_update_the_window() {
    let mut s = Script::sending(plain(), 4000);
    s.transmits();
    s.receive(ack(0, &[0, 1], 1).win(0));
    s.receive(ack(0, &[0], 0).win(9000));
    assert_eq!((s.endpoint.peer_window(), s.transmits()), (0, String::new()));
    s.receive(window_update(9000));
    assert_eq!((s.endpoint.peer_window(), s.transmits()), (0, String::new()), "of the block before");
    assert_eq!(s.exchange(ack(0, &[0, 1], 1).win(9000)), "0:3. (1000) tx 3");
}

#[test]
fn the_largest_window_can_be_changed_while_segments_are_in_flight() {
    let mut s = Script::sending(Config { block_segments: 8, ..plain() }, 8000);
    assert_eq!(s.transmits(), "0:0 (1000) tx 0; 0:1 (1000) tx 1; 0:2 (1000) tx 2");
    s.endpoint.set_cwnd_max(5).unwrap();
    assert_eq!(s.transmits(), "0:3 (1000) tx 3; 0:4 (1000) tx 4");
    s.endpoint.set_cwnd_max(1).unwrap();
    assert_eq!(s.exchange(ack(0, &[0, 1, 2, 3], 3)), "", "one is in flight");
    for wrong in [0, 13] {
        assert!(s.endpoint.set_cwnd_max(wrong).is_err());
    }
    assert_eq!((s.endpoint.cwnd(), s.endpoint.config().cwnd_max), (1, 1));
}
