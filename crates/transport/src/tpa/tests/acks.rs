//! TPA §3.6: when a receiver acknowledges; B6, B7, B8, B12.

use super::script::{Script, ack, data, plain, question, syn_ack};
use crate::tpa::{AckEvery, CompleteBlock, Config, Echo, Event};

fn receiving(change: impl FnOnce(&mut Config)) -> Script {
    let mut config = Config { block_segments: 12, ..plain() };
    change(&mut config);
    Script::connected(config)
}

#[test]
fn every_other_segment_is_acknowledged() {
    let mut s = receiving(|_| {});
    assert_eq!(s.answers(data(0, 0)), "");
    assert_eq!(s.answers(data(0, 1)), "ack 0:[0-1] tx 1");
    assert_eq!(s.answers(data(0, 2)), "");
    assert_eq!(s.answers(data(0, 3)), "ack 0:[0-3] tx 3");
    assert_eq!(s.runs_to(1_000_000), "", "none is left for the timer");
}

#[test]
fn segments_that_are_read_together_are_answered_together() {
    let mut s = receiving(|_| {});
    for position in 0..12 {
        s.hears(data(0, position));
    }
    assert_eq!(s.says(), "ack 0:[0-11] tx 11");
    assert_eq!(s.runs_to(1_000_000), "");
}

#[test]
fn tpa_star_acknowledges_once_for_each_window_of_the_peer() {
    let mut s = receiving(|c| c.ack.every = AckEvery::Window);
    let said: Vec<_> = (0..6).map(|position| s.answers(data(0, position))).collect();
    assert_eq!(said, ["", "", "ack 0:[0-2] tx 2", "", "", "ack 0:[0-5] tx 5"]);
    // It is the peer's window that counts, not ours.
    let mut s = Script::connecting(Config::tpa_star(3));
    s.hears(syn_ack().opening(hopline_wire::tpa::Opening { cwnd_max: 2, ..super::script::offer() }));
    s.says();
    assert_eq!((s.answers(data(0, 0)), s.answers(data(0, 1))), (String::new(), "ack 0:[0-1] tx 1".into()));
}

#[test]
fn the_timer_runs_from_the_first_segment_that_waits() {
    let mut s = receiving(|c| c.ack.every = AckEvery::Window);
    s.hears(data(0, 0));
    s.hears_at(190, data(0, 1));
    assert_eq!(s.runs_to(1_000), "200: ack 0:[0-1] tx 1");
}

#[test]
fn a_congested_sender_gets_an_ack_for_each_segment() {
    let mut s = receiving(|_| {});
    let said: Vec<_> = (0..3).map(|position| s.answers(data(0, position).congested())).collect();
    assert_eq!(said, ["ack 0:[0] tx 0", "ack 0:[0-1] tx 1", "ack 0:[0-2] tx 2"]);
}

#[test]
fn what_waits_is_acknowledged_with_the_first_segment_of_a_congested_sender() {
    // B12.
    let mut s = receiving(|c| c.ack.every = AckEvery::Window);
    s.hears(data(0, 0));
    assert_eq!(s.answers(data(0, 1).congested()), "ack 0:[0-1] tx 1");
}

#[test]
fn a_complete_block_is_acknowledged_at_once_or_as_usual() {
    // B6.
    let mut s = receiving(|_| {});
    assert_eq!(s.answers(data(0, 0).last()), "ack 0:[0] tx 0");
    let mut s = receiving(|c| c.ack.complete_block = CompleteBlock::AckAsUsual);
    assert_eq!(s.answers(data(0, 0).last()), "");
    assert_eq!(s.runs_to(1_000), "200: ack 0:[0] tx 0");
    assert_eq!(
        s.answers(data(1, 0).fin()),
        "ack 1:[0] tx 0",
        "nothing can follow that would bring one about"
    );
}

#[test]
fn the_last_segment_completes_nothing_while_another_is_missing() {
    let mut s = receiving(|_| {});
    assert_eq!(s.answers(data(0, 1).last()), "");
    assert_eq!(s.answers(data(0, 0)), "ack 0:[0-1] tx 0");
}

#[test]
fn what_was_received_before_is_acknowledged_at_once() {
    // B7.
    let mut s = receiving(|_| {});
    s.answers(data(0, 0).last());
    assert_eq!(s.answers(data(0, 0).last().tx(1)), "ack 0:[0] tx 1", "of the block that is complete");
    s.answers(data(1, 0));
    assert_eq!(s.answers(data(1, 0).tx(2)), "ack 1:[0] tx 2", "of the current block");
    assert_eq!(s.answers(data(0, 0).last().tx(3)), "ack 1:[0] tx 2", "of a block that is over");
    assert_eq!(s.endpoint.stats().duplicates_received, 3);
    assert_eq!(s.reads(), 2000);
}

#[test]
fn the_echo_names_the_last_segment_or_the_first_that_waited() {
    // B8.
    let mut s = receiving(|c| c.ack.every = AckEvery::Window);
    s.hears(data(0, 0));
    s.hears(data(0, 2));
    assert_eq!(s.answers(data(0, 1)), "ack 0:[0-2] tx 1");
    let mut s = receiving(|c| (c.ack.every, c.ack.echo) = (AckEvery::Window, Echo::First));
    s.hears(data(0, 0));
    s.hears(data(0, 2));
    assert_eq!(s.answers(data(0, 1)), "ack 0:[0-2] tx 0");
    s.hears(data(0, 3));
    s.hears(data(0, 4));
    assert_eq!(s.answers(data(0, 5)), "ack 0:[0-5] tx 3");
}

#[test]
fn an_ack_rides_on_data() {
    let mut s = receiving(|_| {});
    s.hears(data(0, 0));
    s.hands_over(100);
    assert_eq!(s.says(), "0:0. (100) tx 0 ack 0:[0] tx 0");
    assert_eq!(s.answers(ack(0, &[0], 0)), "");
    assert_eq!(s.runs_to(1_000), "", "and is not sent again by the timer");
}

#[test]
fn out_of_order_segments_wait_for_what_they_overtook() {
    let mut s = receiving(|_| {});
    s.hears(data(0, 2).len(30).last());
    s.hears(data(0, 1).len(20));
    assert_eq!((s.says().as_str(), s.reads(), s.endpoint.received_unread()), ("ack 0:[1-2] tx 1", 0, 50));
    assert_eq!(s.events(), []);
    assert_eq!(s.answers(data(0, 0).len(10)), "ack 0:[0-2] tx 0");
    assert_eq!((s.events(), s.reads()), (vec![Event::Readable], 60));
    assert_eq!(s.endpoint.stats().out_of_order, 2);
}

#[test]
fn a_question_is_answered_at_once_and_holds_nothing() {
    let mut s = receiving(|_| {});
    assert_eq!(s.answers(question(u16::MAX)), "ack -1:[] tx 0");
    s.answers(data(0, 0));
    assert_eq!(s.answers(question(u16::MAX)), "ack 0:[0] tx 0");
    assert_eq!(s.endpoint.stats().duplicates_received, 0);
}
