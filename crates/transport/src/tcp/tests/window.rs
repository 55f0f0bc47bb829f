//! The window we announce: RFC 9293 §3.8.6.2.2 (silly windows) and RFC 7323 §2 (scaling).

use super::script::{Script, mss_1000, plain, segment};
use crate::tcp::{Config, OptionOffer, State};
use hopline_core::Length;
use hopline_wire::tcp::Options;

fn scaled(options: Options) -> Options {
    Options { window_scale: Some(3), ..options }
}

#[test]
fn the_window_shrinks_with_unread_data_and_never_takes_back_the_edge() {
    let mut s = Script::connected(Config { receive_buffer: 4000, ..plain() });
    let mut edge = 4001;
    for i in 0..4 {
        s.receive(segment(1 + 1000 * i).ack(1).data(1000));
        s.transmits();
        let ack = s.last.unwrap();
        let now = i64::from(ack.ack.distance_from(s.peer.irs)) + i64::from(ack.window);
        assert!(now >= edge, "{now} after {edge}");
        edge = now;
    }
    assert_eq!(s.last.unwrap().window, 0);
}

#[test]
fn reading_a_little_does_not_open_a_silly_window() {
    let mut s = Script::connected(Config { receive_buffer: 4000, ..plain() });
    for i in 0..8 {
        s.receive(segment(1 + 500 * i).ack(1).data(500));
    }
    s.transmits();
    assert_eq!(s.last.unwrap().window, 0);
    s.endpoint.recv();
    assert_eq!(s.transmits(), "", "500 bytes are neither a segment nor half the buffer");
    s.endpoint.recv();
    assert_eq!(s.transmits(), ". 1 ack 4001", "1000 bytes are a segment");
    assert_eq!(s.last.unwrap().window, 1000);
}

#[test]
fn reading_from_an_open_window_sends_no_update() {
    let mut s = Script::connected(plain());
    for i in 0..5 {
        s.receive(segment(1 + 1000 * i).ack(1).data(1000));
        assert_eq!(s.transmits(), format!(". 1 ack {}", 1001 + 1000 * i));
        s.read_all();
        assert_eq!(s.transmits(), "");
    }
    assert_eq!(s.last.unwrap().window, 59_000, "what the last ACK could know");
}

#[test]
fn a_probe_into_a_closed_window_is_answered() {
    let mut s = Script::connected(Config { receive_buffer: 1000, ..plain() });
    s.receive(segment(1).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 1001");
    s.receive(segment(1001).ack(1).data(1));
    assert_eq!(s.transmits(), ". 1 ack 1001");
    assert_eq!(s.last.unwrap().window, 0);
    assert_eq!(s.read_all(), 1000, "and its byte not taken");
    assert_eq!(s.transmits(), ". 1 ack 1001", "the window opens");
    assert_eq!(s.last.unwrap().window, 1000);
}

#[test]
fn a_closed_window_still_takes_acknowledgments() {
    let mut s = Script::connected(Config { receive_buffer: 1000, ..plain() });
    s.endpoint.send(s.now, Length(500)).unwrap();
    s.transmits();
    s.receive(segment(1).ack(1).data(1000));
    s.transmits();
    s.receive(segment(1001).ack(501).data(100));
    assert_eq!(s.endpoint.stats().bytes_acked, 500);
}

#[test]
fn windows_are_scaled_in_both_directions_but_not_in_a_syn() {
    let config = Config { window_scale: OptionOffer::Offered, receive_buffer: 1 << 20, ..plain() };
    let mut s = Script::new(config);
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    assert_eq!(s.last.unwrap().options.window_scale, Some(5));
    s.peer.window = 100;
    s.receive(segment(0).syn().ack(1).options(scaled(mss_1000())));
    assert_eq!(s.endpoint.peer_window(), 100, "not scaled in the SYN");
    s.transmits();
    assert_eq!(s.last.unwrap().window, (1 << 20 >> 5) as u16);
    s.receive(segment(1).ack(1));
    assert_eq!(s.endpoint.peer_window(), 800);
}

#[test]
fn a_shift_above_14_counts_as_14() {
    let config = Config { window_scale: OptionOffer::Offered, ..plain() };
    let mut s = Script::new(config);
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    s.receive(segment(0).syn().ack(1).options(Options { window_scale: Some(200), ..mss_1000() }));
    s.receive(segment(1).ack(1).win(1));
    assert_eq!(s.endpoint.peer_window(), 1 << 14);
}

#[test]
fn window_scaling_needs_both_ends() {
    let config = Config { window_scale: OptionOffer::Offered, receive_buffer: 1 << 20, ..plain() };
    let mut s = Script::connected(config);
    assert_eq!(s.last.unwrap().window, 65_535);
    s.receive(segment(1).ack(1).win(7));
    assert_eq!(s.endpoint.peer_window(), 7);
}

#[test]
fn an_old_segment_does_not_change_the_window() {
    let mut s = Script::connected(plain());
    s.receive(segment(1).ack(1).data(100).win(5000));
    s.receive(segment(101).ack(1).win(6000));
    s.endpoint.send(s.now, Length(10)).unwrap();
    s.transmits();
    s.receive(segment(101).ack(11).win(9000));
    s.receive(segment(101).ack(1).win(77));
    assert_eq!(s.endpoint.peer_window(), 9000);
    assert_eq!(s.state(), State::Established);
}

#[test]
fn with_a_scaled_window_memory_stays_within_the_buffer() {
    let config = Config { window_scale: OptionOffer::Offered, receive_buffer: 1 << 17, ..plain() };
    let mut s = Script::connected_with(config, scaled(mss_1000()));
    let mut at = 1;
    for _ in 0..3000 {
        s.receive(segment(at).ack(1).data(97));
        at = i64::from(s.endpoint.received_unread() as u32) + 1;
        s.transmits();
    }
    assert!(s.endpoint.received_unread() <= 1 << 17);
    assert!(s.endpoint.received_unread() > (1 << 17) - 1000);
}
