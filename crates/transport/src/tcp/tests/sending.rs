//! Choice of segments and their times: buffers, Nagle, the clamp, many small writes.

use super::script::{Script, mss_1000, plain, segment};
use crate::tcp::{Config, Event, Nagle, SendError, State};
use bytes::Bytes;
use hopline_core::{Instant, Length, LinkId, Payload, Seq32, StateMachine};
use hopline_testkit::reference_stream::InOrder;
use hopline_wire::tcp::{Flags, Segment};

#[test]
fn a_huge_write_is_sent_as_the_window_allows() {
    let mut s = Script::sending(plain(), 1 << 60);
    let said = s.transmits();
    assert_eq!(said.split("; ").count(), 10, "the initial window");
    assert!(said.ends_with(". 9001:10001 ack 1"));
    s.receive_at(200, segment(1).ack(1001));
    assert_eq!(s.transmits(), ". 10001:11001 ack 1; . 11001:12001 ack 1", "slow start: two for one");
}

#[test]
fn the_clamp_limits_what_is_in_flight() {
    let mut config = plain();
    config.window_clamp = Some(3);
    let mut s = Script::sending(config, 1 << 60);
    assert_eq!(s.transmits(), ". 1:1001 ack 1; . 1001:2001 ack 1; . 2001:3001 ack 1");
    for i in 1..50 {
        s.receive(segment(1).ack(1 + 1000 * i));
        assert_eq!(s.transmits(), format!(". {}:{} ack 1", 1000 * i + 2001, 1000 * i + 3001));
    }
    assert_eq!(s.endpoint.cwnd(), 3000);
    assert_eq!(s.endpoint.flight_size(), 3000);
}

#[test]
fn the_peers_window_limits_what_is_in_flight() {
    let mut s = Script::connected(plain());
    s.receive(segment(1).ack(1).win(2500));
    s.endpoint.send(s.now, Length(1 << 60)).unwrap();
    assert_eq!(s.transmits(), ". 1:1001 ack 1; . 1001:2001 ack 1", "half a segment is not worth sending");
}

#[test]
fn nagle_holds_a_small_segment_while_data_is_in_flight() {
    let mut s = Script::connected(Config { nagle: Nagle::On, ..plain() });
    s.endpoint.send(s.now, Length(100)).unwrap();
    assert_eq!(s.transmits(), ". 1:101 ack 1");
    s.endpoint.send(s.now, Length(100)).unwrap();
    assert_eq!(s.transmits(), "");
    s.endpoint.send(s.now, Length(950)).unwrap();
    assert_eq!(s.transmits(), ". 101:1101 ack 1", "a full segment goes");
    s.receive_at(200, segment(1).ack(1101));
    assert_eq!(s.transmits(), ". 1101:1151 ack 1");
}

#[test]
fn without_nagle_small_segments_go_at_once() {
    let mut s = Script::connected(plain());
    for i in 0..3 {
        s.endpoint.send(s.now, Length(100)).unwrap();
        assert_eq!(s.transmits(), format!(". {}:{} ack 1", 1 + 100 * i, 101 + 100 * i));
    }
}

#[test]
fn nagle_does_not_hold_the_last_data_of_a_closed_stream() {
    let mut s = Script::connected(Config { nagle: Nagle::On, ..plain() });
    s.endpoint.send(s.now, Length(1100)).unwrap();
    s.endpoint.close(s.now).unwrap();
    assert_eq!(s.transmits(), ". 1:1001 ack 1; F 1001:1101 ack 1");
}

#[test]
fn psh_marks_the_end_of_a_write() {
    let mut s = Script::sending(plain(), 1500);
    let mut flags = Vec::new();
    while let Some(segment) = s.endpoint.poll_transmit(s.now) {
        flags.push(segment.flags.contains(Flags::PSH));
    }
    assert_eq!(flags, [false, true]);
}

#[test]
fn a_full_send_buffer_refuses_and_reports_space() {
    let mut s = Script::connected(Config { send_buffer: Some(1500), ..plain() });
    s.endpoint.send(s.now, Length(1000)).unwrap();
    assert_eq!(s.endpoint.send(s.now, Length(501)), Err(SendError::Full { free: 500 }));
    s.endpoint.send(s.now, Length(500)).unwrap();
    s.transmits();
    assert_eq!(s.events(), []);
    s.receive(segment(1).ack(1001));
    assert_eq!(s.events(), [Event::Writable]);
    assert_eq!(s.endpoint.send_capacity(), 1000);
    s.receive(segment(1).ack(1501));
    assert_eq!(s.events(), [], "told once");
}

#[test]
fn an_unlimited_send_buffer_refuses_absurd_lengths() {
    let mut s = Script::connected(plain());
    assert!(matches!(s.endpoint.send(s.now, Length(u64::MAX)), Err(SendError::Full { .. })));
    s.endpoint.send(s.now, Length(1 << 62)).unwrap();
    assert_eq!(s.endpoint.send(s.now, Length(1)), Err(SendError::Full { free: 0 }));
}

#[test]
fn sending_on_a_closed_endpoint_is_refused() {
    let mut s = Script::new(plain());
    assert_eq!(s.endpoint.send(s.now, Length(1)), Err(SendError::NotOpen));
    assert_eq!(s.state(), State::Closed);
}

/// Small writes of real bytes are cut into segments across chunk borders, and resent from any position.
#[test]
fn segments_are_cut_from_chunks_of_any_size() {
    use crate::tcp::{Endpoint, Ports};
    let mut e = Endpoint::<Bytes>::new(plain(), Ports { local: 1, remote: 2 }, Seq32(7)).unwrap();
    e.connect(Instant::ZERO).unwrap();
    let mut at = 0;
    for n in [1usize, 700, 3, 1300, 0, 996] {
        e.send(Instant::ZERO, InOrder::bytes(at, n)).unwrap();
        at += n as u64;
    }
    let _ = e.poll_transmit(Instant::ZERO);
    let peer = |seq: u32, ack: u32, flags: Flags| Segment {
        src_port: 2,
        dst_port: 1,
        seq: Seq32(seq),
        ack: Seq32(7 + ack),
        flags,
        window: 60_000,
        options: mss_1000(),
        ..Segment::default()
    };
    e.handle_packet(Instant::ZERO, LinkId::ONLY, peer(50, 1, Flags::SYN | Flags::ACK));
    let sent: Vec<Bytes> = std::iter::from_fn(|| e.poll_transmit(Instant::ZERO)).map(|s| s.payload).collect();
    assert_eq!(
        sent,
        [InOrder::bytes(0, 1000), InOrder::bytes(1000, 1000), InOrder::bytes(2000, 1000), Bytes::new()][..3]
    );
    e.handle_packet(Instant::ZERO, LinkId::ONLY, peer(51, 1234, Flags::ACK));
    e.handle_timeout(Instant::from_secs(5));
    let again = e.poll_transmit(Instant::from_secs(5)).unwrap();
    assert_eq!(again.payload, InOrder::bytes(1233, 1000));
    assert_eq!(e.unacknowledged(), Payload::len(&InOrder::bytes(0, 1767)));
}
