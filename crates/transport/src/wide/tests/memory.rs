//! Memory that a peer can make a receiver use.

use super::over_link::transfer;
use crate::wide::{Config, Endpoint};
use bytes::Bytes;
use hopline_core::{Duration, Instant, LinkId, Machine};
use hopline_wire::wide::{Data, End, Packet};

const NOW: Instant = Instant::from_secs(1);
const START: u64 = 64 << 10;

fn small_start() -> Config {
    Config { receive_start: START, ..Config::DEFAULT }
}

/// A receiver, and the number of the next packet that comes.
struct Receiver(Endpoint<Bytes>, u64);

impl Receiver {
    fn new() -> Self {
        let mut end = Endpoint::new(small_start()).expect("valid");
        let opening = end.opening();
        assert_eq!(u64::from(opening.limit), START);
        end.handshake_done(NOW, opening, None).expect("new");
        Self(end, 0)
    }

    fn takes(&mut self, offset: u64, len: usize) {
        self.takes_part(offset, Bytes::from(vec![7; len]));
    }

    fn takes_part(&mut self, offset: u64, payload: Bytes) {
        let data = Some(Data { offset, end: End::No, payload });
        self.0.handle_packet(NOW, LinkId::ONLY, Packet { number: self.1, data, ..Packet::default() });
        self.1 += 1;
    }

    /// Fills all that there is room for behind a hole of one byte; the bytes of memory that it takes.
    fn fill_behind_a_hole(&mut self, from: u64) -> u64 {
        for piece in 0..20_000 {
            self.takes(from + 1 + 1400 * piece, 1400);
        }
        self.0.held()
    }

    /// Receives data in order and reads them at once.
    fn reads(&mut self, from: u64, len: u64) {
        for offset in (from..from + len).step_by(1400) {
            self.takes(offset, 1400.min(from + len - offset) as usize);
            while self.0.recv().is_some() {}
        }
    }
}

#[test]
fn a_peer_that_has_sent_nothing_of_use_fills_a_small_window_only() {
    let held = Receiver::new().fill_behind_a_hole(0);
    assert!((START / 2..START + START / 4).contains(&held), "{held} bytes");
}

#[test]
fn the_window_grows_by_64_times_what_is_read_up_to_the_buffer() {
    for (read, window) in [(10_000, START + 640_000), (100_000, START + 6_400_000), (5 << 20, 16 << 20)] {
        let mut receiver = Receiver::new();
        receiver.reads(0, read);
        let held = receiver.fill_behind_a_hole(read);
        assert!((window * 9 / 10..window * 13 / 10).contains(&held), "{held} bytes, not {window}");
    }
}

#[test]
fn a_receiver_keeps_no_more_than_it_is_allowed_and_still_takes_what_is_missed() {
    let mut receiver = Receiver::new();
    receiver.reads(0, 5 << 20);
    receiver.0.allow(100_000);
    let held = receiver.fill_behind_a_hole(5 << 20);
    assert!((90_000..=100_000).contains(&held), "{held} bytes");
    receiver.takes(5 << 20, 1);
    let read: usize = std::iter::from_fn(|| receiver.0.recv()).map(|data| data.len()).sum();
    assert!(read > 80_000, "what waited behind the hole, too");
    assert_eq!(receiver.0.held(), 0);
    receiver.0.allow(u64::MAX);
    assert!(receiver.fill_behind_a_hole((5 << 20) + read as u64) > 10 << 20);
}

#[test]
fn data_that_are_not_read_stop_at_what_is_allowed() {
    let mut receiver = Receiver::new();
    receiver.0.allow(20_000);
    for offset in (0..60_000).step_by(1400) {
        receiver.takes(offset, 1400);
    }
    assert!((15_000..=20_000).contains(&receiver.0.held()), "{}", receiver.0.held());
    receiver.0.allow(1400);
    while receiver.0.recv().is_some() {}
    receiver.takes(receiver.0.stats().bytes_received, 1400);
    assert!(receiver.0.recv().is_some(), "a user that waits gets something in any case");
}

#[test]
fn room_that_reading_makes_within_what_is_allowed_is_told_at_once() {
    let mut receiver = Receiver::new();
    receiver.0.allow(20_000);
    let limit = |receiver: &mut Receiver| {
        std::iter::from_fn(|| receiver.0.poll_transmit(NOW)).find_map(|packet| Some(packet.ack?.limit))
    };
    (0..10).for_each(|packet| receiver.takes(1400 * packet, 1400));
    assert_eq!(limit(&mut receiver), Some(20_000));
    while receiver.0.recv().is_some() {}
    assert_eq!(limit(&mut receiver), Some(14_000 + 20_000));
}

#[test]
fn crumbs_are_counted_with_what_keeping_them_costs() {
    let mut receiver = Receiver::new();
    receiver.0.allow(100_000);
    for crumb in 1..10_000 {
        receiver.takes(2 * crumb, 1);
    }
    assert!((90_000..=100_000).contains(&receiver.0.held()), "{}", receiver.0.held());
}

#[test]
fn a_crumb_of_a_large_packet_does_not_keep_all_of_it() {
    let mut receiver = Receiver::new();
    receiver.takes(100, 1400);
    let large = Bytes::from(vec![7; 1400]);
    receiver.takes_part(101, large.clone());
    assert!(large.is_unique(), "what was known is not kept");
    let again = Bytes::from(vec![7; 1400]);
    receiver.takes_part(110, again.clone());
    assert!(again.is_unique(), "nine bytes of it are new, and were copied");
}

#[test]
fn a_small_first_window_holds_up_no_transfer_over_a_long_fat_path() {
    let long_and_fat = (1e8, Duration::from_millis(100));
    let [before, now] = [Config::DEFAULT, Config { receive_start: 256 << 10, ..Config::DEFAULT }]
        .map(|config| transfer(config, long_and_fat, 20_000_000, |_, _| ()));
    assert!(now <= before + Duration::from_millis(20), "{now} instead of {before}");
}
