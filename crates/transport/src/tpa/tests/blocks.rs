//! TPA §3.2: blocks.

use super::script::{Script, ack, plain, syn_ack};
use crate::tpa::{BlockNumbers, Config, Event, SendError};
use hopline_core::Length;

#[test]
fn a_full_block_goes_at_once_as_far_as_the_window_allows() {
    let mut s = Script::connected(plain());
    s.endpoint.send(s.now, Length(3999)).unwrap();
    assert_eq!(s.transmits(), "", "not full");
    s.endpoint.send(s.now, Length(1)).unwrap();
    assert_eq!(s.transmits(), "0:0 (1000) tx 0; 0:1 (1000) tx 1; 0:2 (1000) tx 2");
    assert_eq!(s.endpoint.in_flight(), 3);
    assert_eq!(s.exchange(ack(0, &[0, 1], 1)), "0:3. (1000) tx 3");
}

#[test]
fn a_short_block_goes_after_the_block_fill_timeout() {
    let mut s = Script::connected(plain());
    s.endpoint.send(s.now, Length(700)).unwrap();
    assert_eq!(s.run_until(150), "");
    s.endpoint.send(s.now, Length(800)).unwrap();
    assert_eq!(s.run_until(300), "200: 0:0 (1000) tx 0; 0:1. (500) tx 1");
}

#[test]
fn a_short_block_goes_at_once_when_flushed() {
    let mut s = Script::sending(plain(), 1500);
    assert_eq!(s.transmits(), "0:0 (1000) tx 0; 0:1. (500) tx 1");
    assert_eq!(s.exchange(ack(0, &[0, 1], 1)), "");
    s.endpoint.send(s.now, Length(1)).unwrap();
    assert_eq!(s.transmits(), "", "a flush is for what was there");
    s.endpoint.flush(s.now);
    assert_eq!(s.transmits(), "1:0. (1) tx 0");
}

#[test]
fn a_flush_reaches_over_several_blocks() {
    let mut s = Script::sending(plain(), 4100);
    s.transmits();
    assert_eq!(s.exchange(ack(0, &[0, 1, 2], 2)), "0:3. (1000) tx 3");
    assert_eq!(s.exchange(ack(0, &[0, 1, 2, 3], 3)), "1:0. (100) tx 0");
}

#[test]
fn data_left_by_full_blocks_wait_for_the_block_fill_timeout() {
    let mut s = Script::connected(plain());
    s.endpoint.send(s.now, Length(4100)).unwrap();
    s.transmits();
    assert_eq!(s.run_until(150), "");
    assert_eq!(s.exchange(ack(0, &[0, 1, 2], 2)), "0:3. (1000) tx 3");
    s.receive_at(190, ack(0, &[0, 1, 2, 3], 3));
    assert_eq!(s.run_until(210), "200: 1:0. (100) tx 0", "100 ms after it was handed over");
}

#[test]
fn the_next_block_starts_when_all_segments_are_acked() {
    let mut s = Script::sending(plain(), 8000);
    s.transmits();
    assert_eq!(s.exchange(ack(0, &[1, 2], 2)), "0:3. (1000) tx 3");
    assert_eq!(s.exchange(ack(0, &[1, 2, 3], 3)), "", "the window is open, the block is not complete");
    assert_eq!(s.endpoint.in_flight(), 1);
    assert_eq!(
        s.exchange(ack(0, &[0, 1, 2, 3], 0)),
        "1:0 (1000) tx 0; 1:1 (1000) tx 1; 1:2 (1000) tx 2",
        "TxSeqNumber begins anew"
    );
    assert_eq!((s.endpoint.stats().blocks, s.endpoint.unacknowledged()), (1, 4000));
}

#[test]
fn a_block_has_as_many_segments_as_configured() {
    for k in [1u8, 2, 12] {
        let mut s = Script::connecting(Config { block_segments: k, cwnd_max: 12, ..plain() });
        s.receive(syn_ack());
        s.transmits();
        s.write_and_flush(24_000);
        assert_eq!(s.transmits().split("; ").count(), usize::from(k));
        let place = s.last.unwrap().position.unwrap();
        assert_eq!((place.position, place.is_last), (k - 1, true));
    }
}

#[test]
fn block_numbers_wrap_around_at_their_width() {
    for (width, after) in [(BlockNumbers::Bits8, 700u32 % 256), (BlockNumbers::Bits16, 700)] {
        let mut s = Script::connecting(Config { block_numbers: width, block_segments: 1, ..plain() });
        s.receive(syn_ack());
        s.transmits();
        let most = if width == BlockNumbers::Bits8 { 0xff } else { 0xffff };
        assert_eq!(s.last.unwrap().ack.unwrap().block, most, "one before the first");
        for n in 0..700u32 {
            s.write_and_flush(10);
            s.transmits();
            let block = s.last.unwrap().block;
            s.receive(ack(block, &[0], 0));
            assert_eq!(u32::from(block), n & u32::from(most));
        }
        s.write_and_flush(10);
        s.transmits();
        assert_eq!(u32::from(s.last.unwrap().block), after);
    }
}

#[test]
fn a_full_send_buffer_refuses_and_reports_space() {
    let mut s = Script::connected(Config { send_buffer: Some(4000), ..plain() });
    s.write_and_flush(4000);
    assert_eq!(s.endpoint.send(s.now, Length(1)), Err(SendError::Full { free: 0 }));
    s.transmits();
    s.exchange(ack(0, &[0, 1, 2], 2));
    assert_eq!(s.endpoint.send_capacity(), 0, "a block is one thing");
    s.exchange(ack(0, &[0, 1, 2, 3], 3));
    assert_eq!((s.events(), s.endpoint.send_capacity()), (vec![Event::Writable], 4000));
}

#[test]
fn an_empty_write_sends_nothing() {
    let mut s = Script::connected(plain());
    s.write_and_flush(0);
    assert_eq!(s.run_until(1_000_000), "");
}
