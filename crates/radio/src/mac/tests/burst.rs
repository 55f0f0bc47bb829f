//! Bursts, and the frames that get an ACK. A frame of [`packet`] takes 2192 µs, an ACK 304 µs, SIFS 10 µs, DIFS 50 µs.

use super::cell::Cell;
use super::*;
use crate::mac::config::AckPolicy;

/// Duration of one exchange with its ACK.
const EXCHANGE_US: u64 = DATA_US + 10 + CTS_US;

fn burst_config(limit_us: u64) -> Config {
    Config { burst_limit: Some(micros(limit_us)), ..dot11b() }
}

fn no_ack(config: Config) -> Config {
    Config { ack_policy: AckPolicy::NoAck, ..config }
}

/// A first transmission that wants no ACK.
fn no_ack_frame(ra: MacAddr, body: u32) -> Frame<u32> {
    let sequence = Seq16(body as u16);
    Frame::Data { duration_us: 0, ra, ta: ME, sequence, retry: false, body }
}

impl Station {
    /// The peer answers the frame that was sent at this time.
    fn receive_ack(&mut self, sent_us: u64) -> &mut Self {
        let from = sent_us + DATA_US + 10;
        self.receive_frame(from, from + CTS_US, ack(ME))
    }

    /// The station hands the next over as soon as it can.
    fn send_when_ready(&mut self, msdu: Msdu<u32>) -> &mut Self {
        assert!(self.mac.is_ready());
        self.mac.send(self.now, msdu);
        self.drain();
        self
    }
}

#[test]
fn acknowledged_frames_follow_sifs_apart_until_the_limit() {
    let mut station = Station::with_backoffs(burst_config(2 * EXCHANGE_US + 10), &[(31, 4)]);
    station.send(1000, packet(0)).expect_frame(1000, data(ME, PEER, 0)).receive_ack(1000);
    let second = 1000 + EXCHANGE_US + 10;
    station.send_when_ready(packet(1)).expect_frame(second, data(ME, PEER, 1)).receive_ack(second);
    let end = second + EXCHANGE_US;
    // A third does not fit: DIFS and backoff.
    station.send_when_ready(packet(2)).expect_frame(end + 50 + 4 * 20, data(ME, PEER, 2));
}

#[test]
fn a_limit_one_microsecond_too_short_ends_the_burst() {
    let mut station = Station::with_backoffs(burst_config(2 * EXCHANGE_US + 9), &[(31, 4)]);
    station.send(1000, packet(0)).expect_frame(1000, data(ME, PEER, 0)).receive_ack(1000);
    station.send_when_ready(packet(1)).expect_frame(1000 + EXCHANGE_US + 50 + 80, data(ME, PEER, 1));
}

#[test]
fn one_frame_is_sent_whatever_the_limit() {
    let mut station = Station::new(burst_config(1));
    station.send(1000, packet(0)).expect_frame(1000, data(ME, PEER, 0)).receive_ack(1000);
    station.expect_event(Event::Sent(packet(0)));
}

#[test]
fn unacknowledged_frames_follow_sifs_apart_to_whatever_receiver() {
    let mut station = Station::new(no_ack(burst_config(10_000)));
    station.send(1000, packet(0)).expect_frame(1000, no_ack_frame(PEER, 0)).run(us(1000 + DATA_US));
    let to_other = Msdu { to: OTHER, ..packet(1) };
    station.send_when_ready(to_other).expect_frame(1000 + DATA_US + 10, no_ack_frame(OTHER, 1));
}

#[test]
fn a_packet_within_sifs_joins_the_burst_and_a_later_one_contends() {
    let mut station = Station::with_backoffs(no_ack(burst_config(10_000)), &[(31, 4)]);
    let end = 1000 + DATA_US;
    station.send(1000, packet(0)).expect_frame(1000, no_ack_frame(PEER, 0));
    station.send(end + 9, packet(1)).expect_frame(end + 10, no_ack_frame(PEER, 1));
    let end = end + 10 + DATA_US;
    // DIFS counts from the end of the burst.
    station.send(end + 11, packet(2)).expect_frame(end + 50 + 80, no_ack_frame(PEER, 2));
}

#[test]
fn a_missing_ack_ends_the_burst_and_the_repetition_begins_another() {
    let mut station = Station::with_backoffs(burst_config(20_000), &[(63, 6)]);
    station.send(1000, packet(0)).expect_frame(1000, data(ME, PEER, 0));
    // SIFS, slot and preamble without a sign of the ACK; DIFS counts from the end of the frame.
    let retry = 1000 + DATA_US + 50 + 6 * 20;
    station.run(us(1000 + DATA_US + 10 + 20 + 192));
    let (at, transmission) = station.next_sent();
    assert_eq!(transmission.frame, as_retry(data(ME, PEER, 0)));
    assert!(at >= us(retry), "{at:?}");
    let at = at.as_nanos() / 1000;
    station.receive_ack(at).send_when_ready(packet(1)).expect_frame(at + EXCHANGE_US + 10, data(ME, PEER, 1));
}

#[test]
fn after_a_burst_the_medium_is_contended_for_with_the_smallest_window() {
    let mut station = Station::with_backoffs(burst_config(10_000), &[(31, 31)]);
    station.send(1000, packet(0)).expect_frame(1000, data(ME, PEER, 0)).receive_ack(1000);
    let end = 1000 + EXCHANGE_US;
    station.expect_silence_until(end + 100);
    assert_eq!(station.mac.state(), crate::mac::State::Idle);
    station.send(end + 100, packet(1)).expect_frame(end + 50 + 31 * 20, data(ME, PEER, 1));
}

#[test]
fn short_packets_can_be_acknowledged_where_long_ones_are_not() {
    let config = Config { no_ack_bytes: 465..=u32::MAX, ..no_ack(dot11b()) };
    let mut station = Station::new(config);
    station.send(1000, packet(0)).expect_frame(1000, data(ME, PEER, 0)).receive_ack(1000);
    station.expect_event(Event::Sent(packet(0)));
    let long = Msdu { len_bytes: 465, ..packet(1) };
    station.send(50_000, long).expect_frame(50_000, no_ack_frame(PEER, 1)).run(us(60_000));
    station.expect_event(Event::Sent(long));
}

/// Whatever the receiver's own policy is.
#[test]
fn a_frame_gets_an_ack_if_it_reserves_time_for_one() {
    for config in [dot11b(), no_ack(dot11b())] {
        let mut station = Station::new(config);
        station
            .receive_frame(1000, 1000 + DATA_US, data(PEER, ME, 0))
            .expect_frame(1010 + DATA_US, ack(PEER));
        let Frame::Data { ra, .. } = data(PEER, ME, 1) else { unreachable!() };
        let silent = Frame::Data { duration_us: 0, ra, ta: PEER, sequence: Seq16(1), retry: false, body: 1 };
        station.receive_frame(9000, 9000 + DATA_US, silent).expect_silence_until(20_000);
        station.expect_event(Event::Deliver { body: 0, from: PEER, to: ME });
        station.expect_event(Event::Deliver { body: 1, from: PEER, to: ME });
    }
}

#[test]
fn block_acknowledgment_ignores_the_burst_limit() {
    let config = Config { ack_policy: AckPolicy::block_ack(), ..burst_config(100_000) };
    let mut station = Station::with_backoffs(config, &[(31, 3)]);
    let group = Msdu { to: MacAddr::BROADCAST, ..packet(0) };
    station.send(1000, group);
    let (_, first) = station.next_sent();
    let end = us(1000) + first.airtime;
    station.run(end).expect_event(Event::Sent(group)).send_when_ready(packet(1));
    assert_eq!(station.next_sent().0, end + micros(50 + 3 * 20));
}

#[test]
fn bursts_of_two_stations_alternate_and_lose_only_to_collisions() {
    let mut cell = Cell::saturated(&burst_config(6 * EXCHANGE_US), 2, micros(1), 464);
    cell.run(Instant::from_secs(30));
    // Five frames each time but the first: five SIFS and exchanges, DIFS and some slots.
    let each = cell.delivered() as f64 / 30e6;
    let bound = 5.0 / (5.0 * EXCHANGE_US as f64 + 40.0 + 50.0);
    assert!(each > 0.93 * bound && each < bound, "{each} {bound}");
    assert_eq!(cell.total(|s| s.failed), 0);
}
