//! Memory that a peer can make a receiver use.

use super::over_link::transfer;
use crate::wide::{Config, Endpoint};
use bytes::Bytes;
use hopline_core::{Duration, Instant, LinkId, StateMachine};
use hopline_wire::wide::{Data, Packet, StreamEnd};

const NOW: Instant = Instant::from_secs(1);
const INITIAL_WINDOW: u64 = 64 << 10;

fn small_start() -> Config {
    Config { initial_receive_window: INITIAL_WINDOW, ..Config::DEFAULT }
}

/// A receiver, and the number of the next packet that comes.
struct TestReceiver(Endpoint<Bytes>, u64);

impl TestReceiver {
    fn new() -> Self {
        let mut end = Endpoint::new(small_start()).expect("valid");
        let opening = end.opening_parameters();
        assert_eq!(u64::from(opening.max_data), INITIAL_WINDOW);
        end.on_lower_handshake_done(NOW, opening, None).expect("new");
        Self(end, 0)
    }

    fn receive(&mut self, offset: u64, len: usize) {
        self.receive_part(offset, Bytes::from(vec![7; len]));
    }

    fn receive_part(&mut self, offset: u64, payload: Bytes) {
        let data = Some(Data { offset, end: StreamEnd::No, payload });
        self.0.handle_packet(NOW, LinkId::ONLY, Packet { number: self.1, data, ..Packet::default() });
        self.1 += 1;
    }

    /// Fills all that there is room for behind a hole of one byte; the bytes of memory that it takes.
    fn fill_behind_a_hole(&mut self, from: u64) -> u64 {
        for piece in 0..20_000 {
            self.receive(from + 1 + 1400 * piece, 1400);
        }
        self.0.receive_memory()
    }

    /// Receives data in order and reads them at once.
    fn receive_and_read(&mut self, from: u64, len: u64) {
        for offset in (from..from + len).step_by(1400) {
            self.receive(offset, 1400.min(from + len - offset) as usize);
            while self.0.recv().is_some() {}
        }
    }
}

#[test]
fn an_unread_sender_can_fill_only_the_initial_window() {
    let held = TestReceiver::new().fill_behind_a_hole(0);
    assert!((INITIAL_WINDOW / 2..INITIAL_WINDOW + INITIAL_WINDOW / 4).contains(&held), "{held} bytes");
}

#[test]
fn the_window_grows_by_64_times_what_is_read_up_to_the_buffer() {
    for (read, window) in
        [(10_000, INITIAL_WINDOW + 640_000), (100_000, INITIAL_WINDOW + 6_400_000), (5 << 20, 16 << 20)]
    {
        let mut receiver = TestReceiver::new();
        receiver.receive_and_read(0, read);
        let held = receiver.fill_behind_a_hole(read);
        assert!((window * 9 / 10..window * 13 / 10).contains(&held), "{held} bytes, not {window}");
    }
}

#[test]
fn a_receiver_at_its_memory_limit_still_accepts_the_next_data_in_order() {
    let mut receiver = TestReceiver::new();
    receiver.receive_and_read(0, 5 << 20);
    receiver.0.set_receive_memory_limit(100_000);
    let held = receiver.fill_behind_a_hole(5 << 20);
    assert!((90_000..=100_000).contains(&held), "{held} bytes");
    receiver.receive(5 << 20, 1);
    let read: usize = std::iter::from_fn(|| receiver.0.recv()).map(|data| data.len()).sum();
    assert!(read > 80_000, "what waited behind the hole, too");
    assert_eq!(receiver.0.receive_memory(), 0);
    receiver.0.set_receive_memory_limit(u64::MAX);
    assert!(receiver.fill_behind_a_hole((5 << 20) + read as u64) > 10 << 20);
}

#[test]
fn unread_data_are_limited_by_the_memory_limit() {
    let mut receiver = TestReceiver::new();
    receiver.0.set_receive_memory_limit(20_000);
    for offset in (0..60_000).step_by(1400) {
        receiver.receive(offset, 1400);
    }
    assert!((15_000..=20_000).contains(&receiver.0.receive_memory()), "{}", receiver.0.receive_memory());
    receiver.0.set_receive_memory_limit(1400);
    while receiver.0.recv().is_some() {}
    receiver.receive(receiver.0.stats().bytes_received, 1400);
    assert!(receiver.0.recv().is_some(), "a user that waits gets something in any case");
}

#[test]
fn reading_at_the_memory_limit_sends_a_window_update_at_once() {
    let mut receiver = TestReceiver::new();
    receiver.0.set_receive_memory_limit(20_000);
    let limit = |receiver: &mut TestReceiver| {
        std::iter::from_fn(|| receiver.0.poll_transmit(NOW)).find_map(|packet| Some(packet.ack?.max_data))
    };
    (0..10).for_each(|packet| receiver.receive(1400 * packet, 1400));
    assert_eq!(limit(&mut receiver), Some(20_000));
    while receiver.0.recv().is_some() {}
    assert_eq!(limit(&mut receiver), Some(14_000 + 20_000));
}

#[test]
fn small_pieces_are_counted_with_their_overhead() {
    let mut receiver = TestReceiver::new();
    receiver.0.set_receive_memory_limit(100_000);
    for crumb in 1..10_000 {
        receiver.receive(2 * crumb, 1);
    }
    assert!((90_000..=100_000).contains(&receiver.0.receive_memory()), "{}", receiver.0.receive_memory());
}

#[test]
fn a_small_piece_does_not_retain_the_whole_packet() {
    let mut receiver = TestReceiver::new();
    receiver.receive(100, 1400);
    let large = Bytes::from(vec![7; 1400]);
    receiver.receive_part(101, large.clone());
    assert!(large.is_unique(), "what was known is not kept");
    let again = Bytes::from(vec![7; 1400]);
    receiver.receive_part(110, again.clone());
    assert!(again.is_unique(), "nine bytes of it are new, and were copied");
}

#[test]
fn a_small_initial_window_does_not_slow_a_long_fat_path() {
    let long_and_fat = (1e8, Duration::from_millis(100));
    let [before, now] = [Config::DEFAULT, Config { initial_receive_window: 256 << 10, ..Config::DEFAULT }]
        .map(|config| transfer(config, long_and_fat, 20_000_000, |_, _| ()));
    assert!(now <= before + Duration::from_millis(20), "{now} instead of {before}");
}
