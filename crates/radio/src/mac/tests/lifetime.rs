//! MSDU lifetime at the sender, and timeout at the receiver. Frames and times as in [`super::block_ack`].

use super::block_ack::{BA_US, BAR_US, QOS_US, ba, bar, blocks, deliver, deliver_held, held, once_more, qos};
use super::cell::Cell;
use super::*;

fn living(lifetime_us: u64, config: Config) -> Config {
    Config { msdu_lifetime: Some(micros(lifetime_us)), ..config }
}

fn forgetting(timeout_us: u64) -> Config {
    Config { block_ack_timeout: Some(micros(timeout_us)), ..blocks() }
}

#[test]
fn what_is_not_acknowledged_in_its_lifetime_is_given_up_and_reported() {
    let mut station = Station::new(living(20_000, dot11b()));
    station.send(1000, packet(0)).sends(1000, data(ME, PEER, 0)).run(us(100_000));
    station.reports(Event::Failed(packet(0))).reports_nothing();
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
fn what_is_acknowledged_in_time_is_not_missed() {
    let mut station = Station::new(living(20_000, dot11b()));
    station.send(1000, packet(0)).sends(1000, data(ME, PEER, 0));
    station.hears(1010 + DATA_US, 1010 + DATA_US + CTS_US, ack(ME)).run(us(100_000));
    station.reports(Event::Sent(packet(0))).reports_nothing();
}

#[test]
fn a_block_gives_up_its_old_ones_goes_on_with_the_young_and_tells_the_receiver() {
    let mut station = Station::drawing(living(30_000, blocks()), &[(31, 0)]);
    station.offer(1000, [0, 1].map(packet)).sends(1000, qos(ME, PEER, 0, 1)).sends(3210, qos(ME, PEER, 1, 0));
    // Only the second arrives.
    station.sends(5420, bar(ME, PEER, 0));
    station.carrier(5420 + BAR_US + 10, Activity::Receiving);
    station.receive(5814 + BA_US, Reception::Frame(ba(PEER, ME, 0, 0b10)));
    station.reports(Event::Sent(packet(1)));
    // The medium is taken until the lifetime of the first is over; a third has come.
    station.send(20_000, packet(2)).carrier(32_000, Activity::Quiet);
    station.sends(32_050, qos(ME, PEER, 2, 0)).reports(Event::Failed(packet(0)));
    station.sends(32_050 + QOS_US + 10, bar(ME, PEER, 2));
    assert_eq!(station.mac.stats().expired, 1);
}

#[test]
fn a_block_of_which_nothing_is_left_asks_once_more_so_that_nobody_waits() {
    let mut station = Station::drawing(living(10_000, blocks()), &[(31, 0)]);
    station.offer(1000, [packet(0)]).sends(1000, qos(ME, PEER, 0, 0)).sends(3210, bar(ME, PEER, 0));
    station.carrier(3604, Activity::Receiving);
    station.receive(3604 + BA_US, Reception::Frame(ba(PEER, ME, 0, 0)));
    station.carrier(20_000, Activity::Quiet).sends(20_050, bar(ME, PEER, 1));
    station.reports(Event::Failed(packet(0)));
    station.hears(20_050 + BAR_US + 10, 20_050 + BAR_US + 10 + BA_US, ba(PEER, ME, 1, 0));
    assert!(station.mac.is_ready());
    station.is_silent_until(999_999).reports_nothing();
}

#[test]
fn what_waits_for_an_earlier_one_is_delivered_after_the_silence_and_the_agreement_is_over() {
    let mut station = Station::new(forgetting(50_000));
    station.hears(1000, 1384, bar(PEER, ME, 0)).sends(1394, ba(ME, PEER, 0, 0));
    station.hears(2000, 4200, qos(PEER, ME, 1, 0)).reports(held(1));
    station.run(us(54_199)).reports_nothing();
    station.run(us(54_200)).reports(deliver_held(1)).reports_nothing();
    assert_eq!(station.mac.stats().inactive, 1);
    // A new one begins with whatever comes: what came before it is not known any more.
    station.hears(60_000, 62_200, once_more(qos(PEER, ME, 0, 0))).reports(held(0));
    station.hears(63_000, 63_384, bar(PEER, ME, 1)).reports(deliver_held(0));
}

#[test]
fn every_frame_and_every_request_prolongs_the_agreement() {
    let mut station = Station::new(forgetting(50_000));
    station.hears(1000, 1384, bar(PEER, ME, 0)).sends(1394, ba(ME, PEER, 0, 0));
    for n in 1..5u16 {
        let at = 40_000 * u64::from(n);
        station.hears(at, at + QOS_US, qos(PEER, ME, n, 0)).reports(held(u32::from(n)));
    }
    station.hears(200_000, 202_200, qos(PEER, ME, 0, 0)).reports(deliver(0));
    for n in 1..5 {
        station.reports(deliver_held(n));
    }
    assert_eq!(station.mac.stats().inactive, 0);
    station.run(us(252_200));
    assert_eq!(station.mac.stats().inactive, 1);
}

#[test]
fn of_two_senders_the_silent_one_is_forgotten() {
    let mut station = Station::new(forgetting(50_000));
    station.hears(1000, 3200, qos(PEER, ME, 3, 0)).reports(held(3));
    station.hears(30_000, 32_200, qos(OTHER, ME, 7, 0)).reports(held(7));
    station.run(us(53_200)).reports(deliver_held(3)).reports_nothing();
    station.run(us(82_200)).reports(Event::DeliverHeld { body: 7, from: OTHER }).reports_nothing();
}

#[test]
fn short_lives_on_a_lossy_link_keep_the_order_and_double_nothing() {
    for config in [living(15_000, blocks()), living(15_000, dot11b())] {
        let mut cell = Cell::one_way(&config, 464, 0.4);
        cell.run(Instant::from_secs(60));
        assert!(cell.received(1).is_sorted_by(|a, b| a < b));
        assert!(cell.total(|s| s.expired) > 50 && cell.delivered() > 1000, "{}", cell.total(|s| s.expired));
    }
}
