//! MSDU lifetime at the sender, and timeout at the receiver. Frames and times as in [`super::block_ack`].

use super::block_ack::{
    BA_US, BAR_US, QOS_US, as_retry, block_ack, block_ack_config, block_ack_req, buffered_event,
    deliver_buffered_event, deliver_event, qos_frame,
};
use super::cell::Cell;
use super::*;

fn with_lifetime(lifetime_us: u64, config: Config) -> Config {
    Config { msdu_lifetime: Some(micros(lifetime_us)), ..config }
}

fn with_inactivity_timeout(timeout_us: u64) -> Config {
    Config { block_ack_timeout: Some(micros(timeout_us)), ..block_ack_config() }
}

#[test]
fn an_msdu_not_acknowledged_in_its_lifetime_is_dropped_and_reported() {
    let mut station = Station::new(with_lifetime(20_000, dot11b()));
    station.send(1000, packet(0)).expect_frame(1000, data(ME, PEER, 0)).run(us(100_000));
    station.expect_event(Event::Failed(packet(0))).expect_no_event();
    let stats = station.mac.stats();
    // Not the seven that the retry limit allows.
    assert_eq!((stats.failed, stats.expired), (1, 1));
    assert!((2..7).contains(&stats.data_sent), "{}", stats.data_sent);
}

#[test]
fn without_a_limit_the_attempts_are_counted_alone() {
    let mut station = Station::new(dot11b());
    station.send(1000, packet(0)).run(us(1_000_000));
    assert_eq!((station.mac.stats().data_sent, station.mac.stats().expired), (7, 0));
}

#[test]
fn an_msdu_acknowledged_in_its_lifetime_is_delivered() {
    let mut station = Station::new(with_lifetime(20_000, dot11b()));
    station.send(1000, packet(0)).expect_frame(1000, data(ME, PEER, 0));
    station.receive_frame(1010 + DATA_US, 1010 + DATA_US + CTS_US, ack(ME)).run(us(100_000));
    station.expect_event(Event::Sent(packet(0))).expect_no_event();
}

#[test]
fn a_block_drops_expired_msdus_and_informs_the_receiver() {
    let mut station = Station::with_backoffs(with_lifetime(30_000, block_ack_config()), &[(31, 0)]);
    station
        .offer(1000, [0, 1].map(packet))
        .expect_frame(1000, qos_frame(ME, PEER, 0, 1))
        .expect_frame(3210, qos_frame(ME, PEER, 1, 0));
    // Only the second arrives.
    station.expect_frame(5420, block_ack_req(ME, PEER, 0));
    station.carrier(5420 + BAR_US + 10, RadioState::Receiving);
    station.receive(5814 + BA_US, Reception::Frame(block_ack(PEER, ME, 0, 0b10)));
    station.expect_event(Event::Sent(packet(1)));
    // The medium is taken until the lifetime of the first is over; a third has come.
    station.send(20_000, packet(2)).carrier(32_000, RadioState::Idle);
    station.expect_frame(32_050, qos_frame(ME, PEER, 2, 0)).expect_event(Event::Failed(packet(0)));
    station.expect_frame(32_050 + QOS_US + 10, block_ack_req(ME, PEER, 2));
    assert_eq!(station.mac.stats().expired, 1);
}

#[test]
fn a_fully_expired_block_sends_a_final_block_ack_req() {
    let mut station = Station::with_backoffs(with_lifetime(10_000, block_ack_config()), &[(31, 0)]);
    station
        .offer(1000, [packet(0)])
        .expect_frame(1000, qos_frame(ME, PEER, 0, 0))
        .expect_frame(3210, block_ack_req(ME, PEER, 0));
    station.carrier(3604, RadioState::Receiving);
    station.receive(3604 + BA_US, Reception::Frame(block_ack(PEER, ME, 0, 0)));
    station.carrier(20_000, RadioState::Idle).expect_frame(20_050, block_ack_req(ME, PEER, 1));
    station.expect_event(Event::Failed(packet(0)));
    station.receive_frame(20_050 + BAR_US + 10, 20_050 + BAR_US + 10 + BA_US, block_ack(PEER, ME, 1, 0));
    assert!(station.mac.is_ready());
    station.expect_silence_until(999_999).expect_no_event();
}

#[test]
fn an_inactive_agreement_ends_and_its_buffered_msdus_are_delivered() {
    let mut station = Station::new(with_inactivity_timeout(50_000));
    station
        .receive_frame(1000, 1384, block_ack_req(PEER, ME, 0))
        .expect_frame(1394, block_ack(ME, PEER, 0, 0));
    station.receive_frame(2000, 4200, qos_frame(PEER, ME, 1, 0)).expect_event(buffered_event(1));
    station.run(us(54_199)).expect_no_event();
    station.run(us(54_200)).expect_event(deliver_buffered_event(1)).expect_no_event();
    assert_eq!(station.mac.stats().agreements_expired, 1);
    // A new one begins with whatever comes: what came before it is not known any more.
    station
        .receive_frame(60_000, 62_200, as_retry(qos_frame(PEER, ME, 0, 0)))
        .expect_event(buffered_event(0));
    station.receive_frame(63_000, 63_384, block_ack_req(PEER, ME, 1)).expect_event(deliver_buffered_event(0));
}

#[test]
fn every_frame_and_every_request_prolongs_the_agreement() {
    let mut station = Station::new(with_inactivity_timeout(50_000));
    station
        .receive_frame(1000, 1384, block_ack_req(PEER, ME, 0))
        .expect_frame(1394, block_ack(ME, PEER, 0, 0));
    for n in 1..5u16 {
        let at = 40_000 * u64::from(n);
        station
            .receive_frame(at, at + QOS_US, qos_frame(PEER, ME, n, 0))
            .expect_event(buffered_event(u32::from(n)));
    }
    station.receive_frame(200_000, 202_200, qos_frame(PEER, ME, 0, 0)).expect_event(deliver_event(0));
    for n in 1..5 {
        station.expect_event(deliver_buffered_event(n));
    }
    assert_eq!(station.mac.stats().agreements_expired, 0);
    station.run(us(252_200));
    assert_eq!(station.mac.stats().agreements_expired, 1);
}

#[test]
fn of_two_senders_the_agreement_of_the_inactive_one_ends() {
    let mut station = Station::new(with_inactivity_timeout(50_000));
    station.receive_frame(1000, 3200, qos_frame(PEER, ME, 3, 0)).expect_event(buffered_event(3));
    station.receive_frame(30_000, 32_200, qos_frame(OTHER, ME, 7, 0)).expect_event(buffered_event(7));
    station.run(us(53_200)).expect_event(deliver_buffered_event(3)).expect_no_event();
    station.run(us(82_200)).expect_event(Event::DeliverBuffered { body: 7, from: OTHER }).expect_no_event();
}

#[test]
fn short_lifetimes_on_a_lossy_link_keep_order_without_duplicates() {
    for config in [with_lifetime(15_000, block_ack_config()), with_lifetime(15_000, dot11b())] {
        let mut cell = Cell::one_way(&config, 464, 0.4);
        cell.run(Instant::from_secs(60));
        assert!(cell.received(1).is_sorted_by(|a, b| a < b));
        assert!(cell.total(|s| s.expired) > 50 && cell.delivered() > 1000, "{}", cell.total(|s| s.expired));
    }
}
