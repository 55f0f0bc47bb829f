//! Dialogues of two endpoints: states, events, sizes, and what happens when packets are lost.

use crate::support::{endpoint, pair};
use hopline_core::{Duration, Instant, Length, Payload};
use hopline_link::{Emulation, Side};
use hopline_quic::Endpoint;
use hopline_testkit::pair::PacketEvent;
use hopline_testkit::{Pair, Recording};
use hopline_transport::connection::{CloseReason, Event, OpenError, SendError, State};
use hopline_transport::quic::Config;
use hopline_wire::ipv4::Ecn;

const DELAY: Duration = Duration::from_millis(10);

fn opened(link: &Emulation) -> Pair<Endpoint<Length>> {
    let mut pair = pair(Config::DEFAULT, link, 1);
    pair.record(Recording::On);
    pair.b.listen().expect("new");
    pair.a.connect(Instant::ZERO).expect("new");
    pair
}

fn received(end: &mut Endpoint<Length>) -> u64 {
    std::iter::from_fn(|| end.recv()).map(|data| data.len()).sum()
}

#[test]
fn the_handshake_takes_one_round_trip_for_the_client_and_two_for_the_server() {
    let mut pair = opened(&Emulation::delay(DELAY));
    assert_eq!((pair.a.state(), pair.b.state()), (State::SynSent, State::Listen));
    pair.run_until(Instant::from_millis(10));
    assert_eq!(pair.b.state(), State::SynReceived);
    pair.run_until(Instant::from_secs(1));
    let connected: Vec<_> = pair
        .take_events()
        .into_iter()
        .filter_map(|(at, side, event)| (event == Event::Connected).then_some((at, side)))
        .collect();
    assert_eq!(connected, [(Instant::from_millis(20), Side::A), (Instant::from_millis(30), Side::B)]);
    assert_eq!((pair.a.state(), pair.b.state()), (State::Established, State::Established));
    let srtt = pair.a.srtt().expect("a sample").as_millis();
    assert!((20..=21).contains(&srtt), "{srtt} ms");
}

#[test]
fn flights_of_the_handshake_have_realistic_sizes() {
    let mut pair = opened(&Emulation::delay(DELAY));
    pair.run_until(Instant::from_millis(11));
    let sent = |from: Side| -> Vec<usize> {
        pair.entries()
            .iter()
            .filter(|e| e.event == PacketEvent::Sent && e.from == from)
            .map(|e| e.packet.bytes.len())
            .collect()
    };
    // RFC 9000 §14.1: datagrams with Initial packets are expanded.
    assert_eq!(sent(Side::A), [1472]);
    let server = sent(Side::B);
    assert_eq!(server[0], 1472);
    let total: usize = server.iter().sum();
    // RFC 9000 §8.1: at most three times as much before the client's address is validated.
    assert!((2000..=3 * 1472).contains(&total), "{server:?}");
}

#[test]
fn each_lost_packet_of_the_handshake_is_sent_again() {
    // Each single datagram of the first 60 ms, and then the whole time.
    for (from, until) in [(0, 1), (9, 11), (19, 21), (29, 31), (39, 41), (0, 3000)] {
        let link = Emulation::delay(DELAY)
            .with_blackouts(vec![(Instant::from_millis(from), Instant::from_millis(until))]);
        let mut pair = opened(&link);
        pair.a.send(Length(10_000)).expect("open");
        pair.a.close().expect("open");
        pair.run_until(Instant::from_secs(30));
        assert_eq!(received(&mut pair.b), 10_000, "{from} to {until} ms");
        assert_eq!(pair.b.state(), State::CloseWait);
    }
}

#[test]
fn a_close_is_half_a_close_and_both_end_the_connection() {
    let mut pair = opened(&Emulation::delay(DELAY));
    pair.a.send(Length(5000)).expect("open");
    pair.a.close().expect("open");
    assert_eq!(pair.a.send(Length(1)), Err(SendError::NotOpen));
    assert_eq!(pair.a.connect(Instant::ZERO), Err(OpenError::AlreadyOpened));
    pair.run_until(Instant::from_secs(1));
    assert_eq!((pair.a.state(), pair.b.state()), (State::FinWait2, State::CloseWait));
    pair.b.send(Length(700)).expect("open");
    pair.b.close().expect("open");
    pair.run_until(Instant::from_secs(3));
    assert_eq!((received(&mut pair.a), received(&mut pair.b)), (700, 5000));
    assert_eq!((pair.a.state(), pair.b.state()), (State::Closed, State::Closed));
    let closed: Vec<_> = pair.take_events().into_iter().map(|(_, side, event)| (side, event)).collect();
    for side in [Side::A, Side::B] {
        assert!(closed.contains(&(side, Event::Closed(CloseReason::Finished))), "{closed:?}");
        assert!(closed.contains(&(side, Event::PeerClosed)), "{closed:?}");
    }
}

#[test]
fn an_abort_resets_the_peer() {
    let mut pair = opened(&Emulation::delay(DELAY));
    pair.a.send(Length(5000)).expect("open");
    pair.run_until(Instant::from_secs(1));
    pair.a.abort(Instant::from_secs(1));
    pair.run_until(Instant::from_secs(5));
    let events: Vec<_> = pair.take_events().into_iter().map(|(_, side, event)| (side, event)).collect();
    assert!(events.contains(&(Side::A, Event::Closed(CloseReason::Aborted))), "{events:?}");
    assert!(events.contains(&(Side::B, Event::Closed(CloseReason::Reset))), "{events:?}");
    assert_eq!((pair.a.poll_timeout(), pair.b.poll_timeout()), (None, None), "both rest");
}

/// Fault of quinn-proto 0.11.19 (quinn-rs/quinn#2785): CONNECTION_CLOSE waits for room in the congestion window.
#[test]
fn an_abort_with_a_full_window_is_silent() {
    let mut pair = opened(&Emulation::delay(DELAY).with_rate(Some(1_000_000)).with_queue(Some(20)));
    pair.a.send(Length(1 << 40)).expect("open");
    pair.run_until(Instant::from_secs(1));
    let sent = pair.counts(Side::A).sent;
    pair.a.abort(Instant::from_secs(1));
    pair.run_until(Instant::from_secs(5));
    assert_eq!((pair.a.state(), pair.b.state()), (State::Closed, State::Established));
    assert_eq!(pair.counts(Side::A).sent, sent);
    assert_eq!((pair.a.poll_timeout(), pair.b.poll_timeout()), (None, None), "both rest");
}

#[test]
fn an_endpoint_that_is_not_open_ignores_packets_and_time() {
    let mut client: Endpoint<Length> = endpoint(Config::DEFAULT, 0, 1);
    client.connect(Instant::ZERO).expect("new");
    let first = client.poll_transmit(Instant::ZERO).expect("the first flight");
    let mut idle: Endpoint<Length> = endpoint(Config::DEFAULT, 1, 1);
    idle.handle_packet(Instant::ZERO, &first);
    idle.handle_timeout(Instant::from_secs(1));
    assert!(idle.poll_transmit(Instant::from_secs(1)).is_none());
    assert_eq!((idle.state(), idle.poll_timeout()), (State::Closed, None));
}

#[test]
fn a_full_datagram_has_the_configured_size_whatever_is_lost() {
    for size in [1200, 1472, 4000] {
        let config = Config::DEFAULT.with_max_datagram(size);
        let link = Emulation::delay(DELAY).with_rate(Some(10_000_000)).with_loss(0.2);
        let mut pair = pair(config, &link, 3);
        pair.record(Recording::On);
        pair.b.listen().expect("new");
        pair.a.connect(Instant::ZERO).expect("new");
        pair.a.send(Length(200_000)).expect("open");
        pair.run_until(Instant::from_secs(20));
        assert_eq!(received(&mut pair.b), 200_000);
        let data: Vec<_> = pair
            .entries()
            .iter()
            .filter(|e| e.event == PacketEvent::Sent && e.packet.data_bytes > 0)
            .map(|e| (e.packet.bytes.len(), e.packet.data_bytes))
            .collect();
        let full = data.iter().filter(|(bytes, _)| *bytes == usize::from(size)).count();
        assert!(data.iter().all(|(bytes, _)| *bytes <= usize::from(size)), "{data:?}");
        assert!(full > data.len() / 2, "{full} of {} are full", data.len());
        let largest = data.iter().map(|(_, data)| *data).max().expect("some");
        let mss = u64::from(config.mss());
        assert!((mss - 4..=mss + 8).contains(&largest), "{largest} bytes of data, {mss} expected");
    }
}

#[test]
fn datagrams_with_data_are_counted_and_so_are_those_sent_again() {
    let link = Emulation::delay(DELAY).with_rate(Some(10_000_000)).with_loss(0.05);
    let mut pair = opened(&link);
    pair.a.send(Length(500_000)).expect("open");
    pair.run_until(Instant::from_secs(20));
    assert_eq!(received(&mut pair.b), 500_000);
    let stats = pair.a.stats();
    let needed = 500_000_u64.div_ceil(u64::from(Config::DEFAULT.mss()));
    let lost = pair.a.quinn_stats().expect("a connection").path.lost_packets;
    assert!(stats.retransmissions > 0 && stats.retransmissions <= lost + 5, "{stats:?}, {lost} lost");
    assert!(stats.segments_sent - stats.retransmissions < needed + 10, "{stats:?}, {needed} needed");
    assert_eq!(pair.b.stats().bytes_received, 500_000);
}

#[test]
fn a_duplicate_is_counted() {
    let link = Emulation::delay(DELAY).with_rate(Some(10_000_000)).with_duplicate(0.5);
    let mut pair = opened(&link);
    pair.a.send(Length(100_000)).expect("open");
    pair.run_until(Instant::from_secs(5));
    let duplicates = pair.b.stats().duplicates_received;
    assert!((20..50).contains(&duplicates), "{duplicates} of some 70");
}

#[test]
fn packets_are_ecn_capable_and_marks_reduce_the_window() {
    let run = |mark| {
        let link = Emulation::delay(DELAY).with_rate(Some(10_000_000)).with_mark(mark);
        let mut pair = opened(&link);
        pair.a.send(Length(1 << 40)).expect("open");
        pair.run_until(Instant::from_secs(2));
        let capable = pair.entries().iter().filter(|e| e.packet.ecn != Ecn::NotCapable).count();
        assert!(capable * 10 > pair.entries().len() * 9, "{capable} of {}", pair.entries().len());
        let stats = pair.a.quinn_stats().expect("a connection").path;
        assert_eq!(stats.lost_packets, 0);
        (pair.a.cwnd(), stats.congestion_events)
    };
    let ((without, none), (with, some)) = (run(0.0), run(0.02));
    assert_eq!(none, 0);
    assert!(some > 5 && with * 4 < without, "{some} marks: window {with}, {without} without");
}

#[test]
fn the_same_seed_gives_the_same_datagrams() {
    let run = |seed| {
        let link = Emulation::delay(DELAY).with_rate(Some(5_000_000)).with_loss(0.05);
        let mut pair = pair::<Length>(Config::DEFAULT, &link, seed);
        pair.record(Recording::On);
        pair.b.listen().expect("new");
        pair.a.connect(Instant::ZERO).expect("new");
        pair.a.send(Length(100_000)).expect("open");
        pair.run_until(Instant::from_secs(5));
        let entries = pair.entries().iter();
        entries.map(|e| (e.at, e.from, e.event, e.packet.clone())).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
