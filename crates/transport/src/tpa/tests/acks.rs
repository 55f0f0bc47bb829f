//! TPA §3.6: when a receiver acknowledges; B6, B7, B8, B12.

use super::script::{Script, ack, data, plain, probe, syn_ack};
use crate::tpa::{AckEvery, CompleteBlock, Config, EchoRule, Event};

fn receiving(change: impl FnOnce(&mut Config)) -> Script {
    let mut config = Config { block_segments: 12, ..plain() };
    change(&mut config);
    Script::connected(config)
}

#[test]
fn every_other_segment_is_acknowledged() {
    let mut s = receiving(|_| {});
    assert_eq!(s.exchange(data(0, 0)), "");
    assert_eq!(s.exchange(data(0, 1)), "ack 0:[0-1] tx 1");
    assert_eq!(s.exchange(data(0, 2)), "");
    assert_eq!(s.exchange(data(0, 3)), "ack 0:[0-3] tx 3");
    assert_eq!(s.run_until(1_000_000), "", "none is left for the timer");
}

#[test]
fn segments_received_together_are_acknowledged_together() {
    let mut s = receiving(|_| {});
    for position in 0..12 {
        s.receive(data(0, position));
    }
    assert_eq!(s.transmits(), "ack 0:[0-11] tx 11");
    assert_eq!(s.run_until(1_000_000), "");
}

#[test]
fn tpa_star_acknowledges_once_for_each_window_of_the_peer() {
    let mut s = receiving(|c| c.ack.every = AckEvery::Window);
    let said: Vec<_> = (0..6).map(|position| s.exchange(data(0, position))).collect();
    assert_eq!(said, ["", "", "ack 0:[0-2] tx 2", "", "", "ack 0:[0-5] tx 5"]);
    // It is the peer's window that counts, not ours.
    let mut s = Script::connecting(Config::tpa_star(3));
    s.receive(syn_ack().opening(hopline_wire::tpa::Opening { cwnd_max: 2, ..super::script::offer() }));
    s.transmits();
    assert_eq!((s.exchange(data(0, 0)), s.exchange(data(0, 1))), (String::new(), "ack 0:[0-1] tx 1".into()));
}

#[test]
fn the_timer_runs_from_the_first_segment_that_waits() {
    let mut s = receiving(|c| c.ack.every = AckEvery::Window);
    s.receive(data(0, 0));
    s.receive_at(190, data(0, 1));
    assert_eq!(s.run_until(1_000), "200: ack 0:[0-1] tx 1");
}

#[test]
fn a_congested_sender_gets_an_ack_for_each_segment() {
    let mut s = receiving(|_| {});
    let said: Vec<_> = (0..3).map(|position| s.exchange(data(0, position).congested())).collect();
    assert_eq!(said, ["ack 0:[0] tx 0", "ack 0:[0-1] tx 1", "ack 0:[0-2] tx 2"]);
}

#[test]
fn a_segment_of_a_congested_sender_acknowledges_pending_ones() {
    // B12.
    let mut s = receiving(|c| c.ack.every = AckEvery::Window);
    s.receive(data(0, 0));
    assert_eq!(s.exchange(data(0, 1).congested()), "ack 0:[0-1] tx 1");
}

#[test]
fn a_complete_block_is_acknowledged_at_once_or_as_usual() {
    // B6.
    let mut s = receiving(|_| {});
    assert_eq!(s.exchange(data(0, 0).last()), "ack 0:[0] tx 0");
    let mut s = receiving(|c| c.ack.complete_block = CompleteBlock::AckAsUsual);
    assert_eq!(s.exchange(data(0, 0).last()), "");
    assert_eq!(s.run_until(1_000), "200: ack 0:[0] tx 0");
    assert_eq!(
        s.exchange(data(1, 0).fin()),
        "ack 1:[0] tx 0",
        "nothing can follow that would bring one about"
    );
}

#[test]
fn the_last_segment_completes_nothing_while_another_is_missing() {
    let mut s = receiving(|_| {});
    assert_eq!(s.exchange(data(0, 1).last()), "");
    assert_eq!(s.exchange(data(0, 0)), "ack 0:[0-1] tx 0");
}

#[test]
fn duplicates_are_acknowledged_at_once() {
    // B7.
    let mut s = receiving(|_| {});
    s.exchange(data(0, 0).last());
    assert_eq!(s.exchange(data(0, 0).last().tx(1)), "ack 0:[0] tx 1", "of the block that is complete");
    s.exchange(data(1, 0));
    assert_eq!(s.exchange(data(1, 0).tx(2)), "ack 1:[0] tx 2", "of the current block");
    assert_eq!(s.exchange(data(0, 0).last().tx(3)), "ack 1:[0] tx 2", "of a block that is over");
    assert_eq!(s.endpoint.stats().duplicates_received, 3);
    assert_eq!(s.read_all(), 2000);
}

#[test]
fn the_echo_is_of_the_last_or_first_pending_segment() {
    // B8.
    let mut s = receiving(|c| c.ack.every = AckEvery::Window);
    s.receive(data(0, 0));
    s.receive(data(0, 2));
    assert_eq!(s.exchange(data(0, 1)), "ack 0:[0-2] tx 1");
    let mut s = receiving(|c| (c.ack.every, c.ack.echo) = (AckEvery::Window, EchoRule::First));
    s.receive(data(0, 0));
    s.receive(data(0, 2));
    assert_eq!(s.exchange(data(0, 1)), "ack 0:[0-2] tx 0");
    s.receive(data(0, 3));
    s.receive(data(0, 4));
    assert_eq!(s.exchange(data(0, 5)), "ack 0:[0-5] tx 3");
}

#[test]
fn an_ack_is_piggybacked_on_data() {
    let mut s = receiving(|_| {});
    s.receive(data(0, 0));
    s.write_and_flush(100);
    assert_eq!(s.transmits(), "0:0. (100) tx 0 ack 0:[0] tx 0");
    assert_eq!(s.exchange(ack(0, &[0], 0)), "");
    assert_eq!(s.run_until(1_000), "", "and is not sent again by the timer");
}

#[test]
fn out_of_order_segments_wait_for_the_missing_ones() {
    let mut s = receiving(|_| {});
    s.receive(data(0, 2).len(30).last());
    s.receive(data(0, 1).len(20));
    assert_eq!(
        (s.transmits().as_str(), s.read_all(), s.endpoint.received_unread()),
        ("ack 0:[1-2] tx 1", 0, 50)
    );
    assert_eq!(s.events(), []);
    assert_eq!(s.exchange(data(0, 0).len(10)), "ack 0:[0-2] tx 0");
    assert_eq!((s.events(), s.read_all()), (vec![Event::Readable], 60));
    assert_eq!(s.endpoint.stats().out_of_order, 2);
}

#[test]
fn a_probe_is_answered_at_once_and_has_no_data() {
    let mut s = receiving(|_| {});
    assert_eq!(s.exchange(probe(u16::MAX)), "ack -1:[] tx 0");
    s.exchange(data(0, 0));
    assert_eq!(s.exchange(probe(u16::MAX)), "ack 0:[0] tx 0");
    assert_eq!(s.endpoint.stats().duplicates_received, 0);
}
