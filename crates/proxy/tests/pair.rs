//! D-Proxy that reads TCP, on bytes: both ends of a link, each in the path of a fake.

use hopline_core::{Duration, Instant};
use hopline_proxy::dproxy::{Config, Holding, Key};
use hopline_proxy::driver::{PairDriver, Pumped};
use hopline_proxy::{Injected, Side};
use hopline_testkit::in_path::{Broken, Fake, connecting, data};
use hopline_wire::dproxy::Sealed;
use std::net::Ipv4Addr;

const ENDS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 82, 0, 1), Ipv4Addr::new(10, 82, 0, 2)];

fn config(at: usize) -> Config {
    Config::new(ENDS[at], ENDS[1 - at], Key::new([1; 32]))
}

/// One end, and its messages that were not taken yet.
struct End {
    driver: PairDriver,
    io: Fake,
    said: Vec<Sealed>,
}

impl End {
    fn new(config: Config) -> Self {
        Self { driver: PairDriver::new(config), io: Fake::default(), said: Vec::new() }
    }

    fn pump(&mut self, now: Instant) -> Result<Pumped, Broken> {
        let said = &mut self.said;
        self.driver.pump(now, &mut self.io, |_, sealed| said.push(*sealed))
    }

    /// The end hears what the other has said since.
    fn hear(&mut self, now: Instant, from: usize, said: Vec<Sealed>) {
        for sealed in said {
            let mut bytes = Vec::new();
            sealed.emit(&mut bytes);
            self.driver.handle_datagram(now, ENDS[from], &bytes);
        }
        assert_eq!(self.pump(now), Ok(Pumped::All));
    }

    /// What has gone on towards the link, or came from there.
    fn gone(&mut self, side: Side) -> Vec<Vec<u8>> {
        let arrived = &mut self.io.arrived;
        core::mem::take(if side == Side::Mobile { &mut arrived.mobile } else { &mut arrived.fixed })
    }
}

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// The near end and the far one, when five packets have gone out and these have come over the link.
fn sent(arrive: &[u32], configs: [Config; 2]) -> [End; 2] {
    let [mut near, mut far] = configs.map(End::new);
    let syn = connecting()[0].1.clone();
    near.io.offer(Side::Fixed, syn.clone());
    far.io.offer(Side::Mobile, syn);
    (0..5).for_each(|n| near.io.offer(Side::Fixed, data(n)));
    assert_eq!(near.pump(at(1)), Ok(Pumped::All));
    assert_eq!(near.gone(Side::Mobile).len(), 6, "nothing waits on its way out");
    arrive.iter().for_each(|n| far.io.offer(Side::Mobile, data(*n)));
    assert_eq!(far.pump(at(3)), Ok(Pumped::All));
    [near, far]
}

#[test]
fn what_is_missing_is_asked_for_sent_again_and_goes_on_in_order() {
    let [mut near, mut far] = sent(&[0, 2, 4], [config(0), config(1)]);
    assert_eq!(far.gone(Side::Fixed)[1..], [data(0)]);
    assert_eq!((far.driver.held(), far.io.postponed()), (2, 2));
    near.hear(at(5), 1, core::mem::take(&mut far.said));
    assert_eq!(near.gone(Side::Mobile), [data(1), data(3)]);
    assert_eq!(near.driver.counts().sent_again, 2);
    far.io.offer(Side::Mobile, data(1));
    assert_eq!(far.pump(at(7)), Ok(Pumped::All));
    assert_eq!(far.gone(Side::Fixed), [data(1), data(2)]);
    far.io.offer(Side::Mobile, data(3));
    assert_eq!(far.pump(at(7)), Ok(Pumped::All));
    assert_eq!(far.gone(Side::Fixed), [data(3), data(4)]);
    assert_eq!((far.driver.held(), far.io.postponed(), far.driver.counts().postponed), (0, 0, 2));
}

#[test]
fn what_nobody_sends_again_is_waited_for_no_longer_than_patience() {
    let [_, mut far] = sent(&[0, 2, 3], [config(0), config(1)]);
    far.gone(Side::Fixed);
    let mut now = at(3);
    while let Some(due) = far.driver.poll_timeout().filter(|_| far.io.postponed() > 0) {
        now = due;
        assert_eq!(far.pump(now), Ok(Pumped::All));
    }
    assert!(now <= at(3) + Duration::from_millis(200));
    assert_eq!(far.gone(Side::Fixed), [data(2), data(3)]);
}

#[test]
fn packets_pass_that_are_no_segments_and_those_that_need_not_wait() {
    let as_they_come = Config { holding: Holding::AsTheyCome, ..config(1) };
    let [_, mut far] = sent(&[0, 2], [config(0), as_they_come]);
    assert_eq!((far.gone(Side::Fixed).len(), far.io.postponed()), (3, 0));
    far.io.offer(Side::Mobile, vec![0; 40]);
    far.io.offer(Side::Fixed, vec![0x60; 60]);
    assert_eq!(far.pump(at(9)), Ok(Pumped::All));
    assert_eq!((far.gone(Side::Fixed).len(), far.gone(Side::Mobile).len()), (1, 1));
    assert_eq!(far.driver.counts().untouched.total(), 2);
}

#[test]
fn what_the_queue_has_dropped_is_left_to_the_sender() {
    let [mut near, mut far] = sent(&[0, 2], [config(0), config(1)]);
    far.gone(Side::Fixed);
    near.io.dropped.push_back(data(1).into());
    assert_eq!(near.pump(at(4)), Ok(Pumped::All));
    near.hear(at(5), 1, core::mem::take(&mut far.said));
    assert_eq!((near.gone(Side::Mobile).len(), near.driver.stats().refused), (0, 1));
    far.hear(at(7), 0, core::mem::take(&mut near.said));
    assert_eq!(far.gone(Side::Fixed), [data(2)], "nobody waits for it");
}

#[test]
fn what_finds_no_room_when_it_is_sent_again_is_congestion_and_left_to_the_sender() {
    let [mut near, mut far] = sent(&[0, 2], [config(0), config(1)]);
    near.io.injected = Some(Injected::NoRoom);
    near.hear(at(5), 1, core::mem::take(&mut far.said));
    assert_eq!((near.driver.counts().refused, near.driver.stats().refused), (1, 1));
}

#[test]
fn what_finds_no_way_is_counted() {
    let [mut near, mut far] = sent(&[0, 2], [config(0), config(1)]);
    near.io.injected = Some(Injected::Refused);
    near.hear(at(5), 1, core::mem::take(&mut far.said));
    assert_eq!((near.driver.counts().refused, near.driver.counts().sent_again), (1, 0));
    assert_eq!(near.driver.stats().refused, 0, "the link may have room");
}

#[test]
fn a_place_that_breaks_down_says_so() {
    let mut end = End::new(config(0));
    end.io.broken = Some(Broken);
    assert_eq!(end.pump(at(1)), Err(Broken));
}
