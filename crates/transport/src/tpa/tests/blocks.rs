//! TPA §3.2: blocks.

use super::script::{Script, ack, plain, syn_ack};
use crate::tpa::{BlockNumbers, Config, Event, SendError};
use hopline_core::Length;

#[test]
fn a_full_block_goes_at_once_as_far_as_the_window_allows() {
    let mut s = Script::connected(plain());
    s.endpoint.send(s.now, Length(3999)).unwrap();
    assert_eq!(s.says(), "", "not full");
    s.endpoint.send(s.now, Length(1)).unwrap();
    assert_eq!(s.says(), "0:0 (1000) tx 0; 0:1 (1000) tx 1; 0:2 (1000) tx 2");
    assert_eq!(s.endpoint.in_flight(), 3);
    assert_eq!(s.answers(ack(0, &[0, 1], 1)), "0:3. (1000) tx 3");
}

#[test]
fn a_short_block_goes_after_the_block_fill_timeout() {
    let mut s = Script::connected(plain());
    s.endpoint.send(s.now, Length(700)).unwrap();
    assert_eq!(s.runs_to(150), "");
    s.endpoint.send(s.now, Length(800)).unwrap();
    assert_eq!(s.runs_to(300), "200: 0:0 (1000) tx 0; 0:1. (500) tx 1");
}

#[test]
fn a_short_block_goes_at_once_when_flushed() {
    let mut s = Script::sending(plain(), 1500);
    assert_eq!(s.says(), "0:0 (1000) tx 0; 0:1. (500) tx 1");
    assert_eq!(s.answers(ack(0, &[0, 1], 1)), "");
    s.endpoint.send(s.now, Length(1)).unwrap();
    assert_eq!(s.says(), "", "a flush is for what was there");
    s.endpoint.flush(s.now);
    assert_eq!(s.says(), "1:0. (1) tx 0");
}

#[test]
fn a_flush_reaches_over_several_blocks() {
    let mut s = Script::sending(plain(), 4100);
    s.says();
    assert_eq!(s.answers(ack(0, &[0, 1, 2], 2)), "0:3. (1000) tx 3");
    assert_eq!(s.answers(ack(0, &[0, 1, 2, 3], 3)), "1:0. (100) tx 0");
}

#[test]
fn what_full_blocks_leave_waits_for_company() {
    let mut s = Script::connected(plain());
    s.endpoint.send(s.now, Length(4100)).unwrap();
    s.says();
    assert_eq!(s.runs_to(150), "");
    assert_eq!(s.answers(ack(0, &[0, 1, 2], 2)), "0:3. (1000) tx 3");
    s.hears_at(190, ack(0, &[0, 1, 2, 3], 3));
    assert_eq!(s.runs_to(210), "200: 1:0. (100) tx 0", "100 ms after it was handed over");
}

#[test]
fn the_next_block_begins_only_when_all_is_acknowledged_and_counts_anew() {
    let mut s = Script::sending(plain(), 8000);
    s.says();
    assert_eq!(s.answers(ack(0, &[1, 2], 2)), "0:3. (1000) tx 3");
    assert_eq!(s.answers(ack(0, &[1, 2, 3], 3)), "", "the window is open, the block is not complete");
    assert_eq!(s.endpoint.in_flight(), 1);
    assert_eq!(
        s.answers(ack(0, &[0, 1, 2, 3], 0)),
        "1:0 (1000) tx 0; 1:1 (1000) tx 1; 1:2 (1000) tx 2",
        "TxSeqNumber begins anew"
    );
    assert_eq!((s.endpoint.stats().blocks, s.endpoint.unacknowledged()), (1, 4000));
}

#[test]
fn a_block_has_as_many_segments_as_configured() {
    for k in [1u8, 2, 12] {
        let mut s = Script::connecting(Config { block_segments: k, cwnd_max: 12, ..plain() });
        s.hears(syn_ack());
        s.says();
        s.hands_over(24_000);
        assert_eq!(s.says().split("; ").count(), usize::from(k));
        let place = s.last.unwrap().place.unwrap();
        assert_eq!((place.position, place.last), (k - 1, true));
    }
}

#[test]
fn block_numbers_wrap_around_at_their_width() {
    for (width, after) in [(BlockNumbers::Bits8, 700u32 % 256), (BlockNumbers::Bits16, 700)] {
        let mut s = Script::connecting(Config { block_numbers: width, block_segments: 1, ..plain() });
        s.hears(syn_ack());
        s.says();
        let most = if width == BlockNumbers::Bits8 { 0xff } else { 0xffff };
        assert_eq!(s.last.unwrap().ack.unwrap().block, most, "one before the first");
        for n in 0..700u32 {
            s.hands_over(10);
            s.says();
            let block = s.last.unwrap().block;
            s.hears(ack(block, &[0], 0));
            assert_eq!(u32::from(block), n & u32::from(most));
        }
        s.hands_over(10);
        s.says();
        assert_eq!(u32::from(s.last.unwrap().block), after);
    }
}

#[test]
fn a_full_send_buffer_refuses_and_tells_when_there_is_room() {
    let mut s = Script::connected(Config { send_buffer: Some(4000), ..plain() });
    s.hands_over(4000);
    assert_eq!(s.endpoint.send(s.now, Length(1)), Err(SendError::Full { free: 0 }));
    s.says();
    s.answers(ack(0, &[0, 1, 2], 2));
    assert_eq!(s.endpoint.send_capacity(), 0, "a block is one thing");
    s.answers(ack(0, &[0, 1, 2, 3], 3));
    assert_eq!((s.events(), s.endpoint.send_capacity()), (vec![Event::Writable], 4000));
}

#[test]
fn nothing_handed_over_is_nothing_sent() {
    let mut s = Script::connected(plain());
    s.hands_over(0);
    assert_eq!(s.runs_to(1_000_000), "");
}
