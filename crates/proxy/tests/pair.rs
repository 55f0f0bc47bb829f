//! D-Proxy for TCP, on bytes: both ends of a link, each in the path of a fake.

use hopline_core::{Duration, Instant};
use hopline_proxy::dproxy::{Config, Holding, Key};
use hopline_proxy::driver::{PairDriver, Pumped};
use hopline_proxy::{Connection, Injected, Peer, Side};
use hopline_testkit::in_path::{Broken, Fake, HOSTS, HOSTS_V6, connecting_between, data, data_between};
use hopline_wire::dproxy::SEALED_LENS;
use std::net::{IpAddr, Ipv4Addr};

const ENDS: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::new(10, 82, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 82, 0, 2))];

fn config(at: usize) -> Config {
    Config::new(ENDS[at], ENDS[1 - at], Key::new([1; 32]))
}

/// One end, and its messages that are not delivered yet.
struct End {
    driver: PairDriver,
    peer: IpAddr,
    io: Fake,
    said: Vec<Vec<u8>>,
}

impl End {
    fn new(config: Config) -> Self {
        Self::of_life(config, if config.local < config.peer { 1 } else { 2 })
    }

    fn of_life(config: Config, life: u64) -> Self {
        let (driver, peer) = (PairDriver::new(config, life), config.peer);
        Self { driver, peer, io: Fake::default(), said: Vec::new() }
    }

    fn pump(&mut self, now: Instant) -> Result<Pumped, Broken> {
        let said = &mut self.said;
        self.driver.pump(now, &mut self.io, |_, datagram| said.push(datagram.to_vec()))
    }

    /// Delivers messages to the end.
    fn hear(&mut self, now: Instant, said: Vec<Vec<u8>>) {
        for datagram in said {
            self.driver.handle_datagram(now, self.peer, &datagram);
        }
        assert_eq!(self.pump(now), Ok(Pumped::All));
    }

    /// Returns the packets forwarded towards this side.
    fn gone(&mut self, side: Side) -> Vec<Vec<u8>> {
        let arrived = &mut self.io.arrived;
        core::mem::take(if side == Side::Mobile { &mut arrived.mobile } else { &mut arrived.fixed })
    }
}

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// Lets both ends greet each other.
fn met(mut ends: [End; 2]) -> [End; 2] {
    run(&mut ends, Instant::ZERO, Instant::ZERO);
    assert_eq!(ends.each_ref().map(|end| end.driver.peer()), [Peer::Present; 2]);
    ends
}

/// Runs two ends until then; their datagrams arrive at once.
fn run(ends: &mut [End; 2], from: Instant, until: Instant) {
    let mut now = from;
    loop {
        for at in [0, 1] {
            assert_eq!(ends[at].pump(now), Ok(Pumped::All));
            let said = core::mem::take(&mut ends[at].said);
            ends[1 - at].hear(now, said);
        }
        let is_quiet = ends.iter().all(|end| end.said.is_empty());
        let due = ends.iter().filter_map(|end| end.driver.poll_timeout()).min();
        match due.filter(|due| *due <= until) {
            Some(due) => now = now.max(due),
            None if is_quiet => return,
            None => {}
        }
    }
}

/// Returns the near end and the far one after five packets were sent and these have arrived.
fn sent(arrive: &[u32], configs: [Config; 2]) -> [End; 2] {
    sent_between(HOSTS, arrive, configs)
}

/// As [`sent`], between these hosts.
fn sent_between(hosts: Connection, arrive: &[u32], configs: [Config; 2]) -> [End; 2] {
    let [mut near, mut far] = met(configs.map(End::new));
    let syn = connecting_between(hosts)[0].1.clone();
    near.io.offer(Side::Fixed, syn.clone());
    far.io.offer(Side::Mobile, syn);
    (0..5).for_each(|n| near.io.offer(Side::Fixed, data_between(hosts, n)));
    assert_eq!(near.pump(at(1)), Ok(Pumped::All));
    assert_eq!(near.gone(Side::Mobile).len(), 6, "nothing waits on its way out");
    arrive.iter().for_each(|n| far.io.offer(Side::Mobile, data_between(hosts, *n)));
    assert_eq!(far.pump(at(3)), Ok(Pumped::All));
    [near, far]
}

#[test]
fn what_is_missing_is_asked_for_sent_again_and_goes_on_in_order() {
    let over_ipv6 = ["2001:db8::1", "2001:db8::2"].map(|end| end.parse().unwrap());
    for (hosts, ends) in [(HOSTS, ENDS), (HOSTS_V6, ENDS), (HOSTS, over_ipv6), (HOSTS_V6, over_ipv6)] {
        println!("{hosts:?} over a link between {ends:?}");
        what_is_missing_is_repaired(hosts, ends);
    }
}

fn what_is_missing_is_repaired(hosts: Connection, ends: [IpAddr; 2]) {
    let data = |n| data_between(hosts, n);
    let configs = [0, 1].map(|at| Config { local: ends[at], peer: ends[1 - at], ..config(at) });
    let [mut near, mut far] = sent_between(hosts, &[0, 2, 4], configs);
    assert_eq!(far.gone(Side::Fixed)[1..], [data(0)]);
    assert_eq!((far.driver.held(), far.io.postponed()), (2, 2));
    near.hear(at(5), core::mem::take(&mut far.said));
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
    near.hear(at(5), core::mem::take(&mut far.said));
    assert_eq!((near.gone(Side::Mobile).len(), near.driver.stats().refused), (0, 1));
    far.hear(at(7), core::mem::take(&mut near.said));
    assert_eq!(far.gone(Side::Fixed), [data(2)], "nobody waits for it");
}

#[test]
fn what_finds_no_room_when_it_is_sent_again_is_congestion_and_left_to_the_sender() {
    let [mut near, mut far] = sent(&[0, 2], [config(0), config(1)]);
    near.io.injected = Some(Injected::NoRoom);
    near.hear(at(5), core::mem::take(&mut far.said));
    assert_eq!((near.driver.counts().refused, near.driver.stats().refused), (1, 1));
}

#[test]
fn what_finds_no_way_is_counted() {
    let [mut near, mut far] = sent(&[0, 2], [config(0), config(1)]);
    near.io.injected = Some(Injected::Refused);
    near.hear(at(5), core::mem::take(&mut far.said));
    assert_eq!((near.driver.counts().refused, near.driver.counts().sent_again), (1, 0));
    assert_eq!(near.driver.stats().refused, 0, "the link may have room");
}

#[test]
fn a_place_that_breaks_down_says_so() {
    let mut end = End::new(config(0));
    end.io.broken = Some(Broken);
    assert_eq!(end.pump(at(1)), Err(Broken));
}

#[test]
fn an_end_that_is_alone_holds_nothing_and_says_that_nobody_answers() {
    let mut far = End::new(config(1));
    for ms in 0..4_000 {
        // Every third packet is lost.
        far.io.offer(Side::Mobile, data(3 * ms / 2));
        assert_eq!(far.pump(at(ms.into())), Ok(Pumped::All));
        assert_eq!((far.io.postponed(), far.gone(Side::Fixed).len()), (0, 1));
    }
    assert_eq!(far.driver.peer(), Peer::Absent);
    assert!(far.said.iter().all(|said| !SEALED_LENS.contains(&said.len())), "it asks nobody");
    assert!(far.said.len() < 12, "and greets once a second: {}", far.said.len());
}

#[test]
fn an_end_that_dies_is_missed_within_three_seconds_and_found_again_within_one_and_a_half() {
    let mut ends = met([config(0), config(1)].map(End::new));
    let mut last_held = 0;
    for ms in 1..5_000 {
        let far = &mut ends[1];
        far.io.offer(Side::Mobile, data(2 * ms));
        assert_eq!(far.pump(at(ms.into())), Ok(Pumped::All));
        far.said.clear();
        if far.driver.held() > 0 {
            last_held = ms;
        }
    }
    assert!((1_000..3_000).contains(&last_held), "{last_held}");
    assert_eq!(ends[1].driver.peer(), Peer::Absent);
    ends[0] = End::of_life(config(0), 99);
    run(&mut ends, at(5_000), at(6_500));
    assert_eq!(ends.each_ref().map(|end| end.driver.peer()), [Peer::Present; 2]);
    ends[1].gone(Side::Fixed);
    [100_000, 100_002].into_iter().for_each(|n| ends[1].io.offer(Side::Mobile, data(n)));
    assert_eq!(ends[1].pump(at(6_500)), Ok(Pumped::All));
    assert_eq!(ends[1].driver.held(), 1, "it repairs again");
}

#[test]
fn while_packets_cross_both_ends_stay_present_and_greet_about_once_a_second() {
    let mut ends = met([config(0), config(1)].map(End::new));
    let before = ends[0].driver.counts().greetings;
    for ms in (0..20_000).step_by(10) {
        ends.iter_mut().for_each(|end| end.io.offer(Side::Fixed, data(ms)));
        run(&mut ends, at(ms.into()), at(u64::from(ms) + 9));
        assert_eq!(ends.each_ref().map(|end| end.driver.peer()), [Peer::Present; 2]);
    }
    let greetings = ends[0].driver.counts().greetings - before;
    assert!((15..50).contains(&greetings), "{greetings}");
}

#[test]
fn an_idle_link_is_asked_every_ten_seconds() {
    let mut ends = met([config(0), config(1)].map(End::new));
    let before = ends[0].driver.counts().greetings;
    run(&mut ends, at(1), at(100_000));
    let greetings = ends[0].driver.counts().greetings - before;
    assert!((5..25).contains(&greetings), "{greetings}");
    assert_eq!(ends[0].driver.peer(), Peer::Present);
}

#[test]
fn an_end_with_another_key_is_found_out_and_holds_up_nothing() {
    let other = Config { key: Key::new([9; 32]), ..config(1) };
    let mut ends = [config(0), other].map(End::new);
    run(&mut ends, at(1), at(2_000));
    assert_eq!(ends.each_ref().map(|end| end.driver.peer()), [Peer::OtherKey; 2]);
    [0, 2].into_iter().for_each(|n| ends[1].io.offer(Side::Mobile, data(n)));
    run(&mut ends, at(2_000), at(2_000));
    assert_eq!(ends[1].driver.held(), 0);
    ends[1] = End::of_life(config(1), 77);
    run(&mut ends, at(2_001), at(4_000));
    assert_eq!(ends.each_ref().map(|end| end.driver.peer()), [Peer::Present; 2], "and mended");
}

#[test]
fn an_end_of_another_version_is_found_out_and_counts_as_absent_when_it_falls_silent() {
    let mut near = End::new(config(0));
    assert_eq!(near.pump(at(0)), Ok(Pumped::All));
    let mut former = vec![0; SEALED_LENS[0]];
    former[0] = 1;
    near.hear(at(10), vec![former.clone()]);
    assert_eq!(near.driver.peer(), Peer::OtherVersion(1));
    // An attacker cannot change its state at will.
    let mut ends = [End::new(Config { key: Key::new([9; 32]), ..config(1) }), near];
    assert_eq!(ends[0].pump(at(20)), Ok(Pumped::All));
    let forged = core::mem::take(&mut ends[0].said);
    ends[1].hear(at(20), forged);
    let [_, mut near] = ends;
    assert_eq!(near.driver.peer(), Peer::OtherVersion(1));
    (20..8_000).step_by(50).for_each(|ms| assert_eq!(near.pump(at(ms)), Ok(Pumped::All)));
    assert_eq!(near.driver.peer(), Peer::Absent);
}

#[test]
fn recorded_greetings_do_not_make_a_dead_end_look_alive() {
    let mut ends = met([config(0), config(1)].map(End::new));
    let mut recorded = Vec::new();
    for ms in (1..5_000).step_by(10) {
        for at_end in [0, 1] {
            ends[at_end].io.offer(Side::Fixed, data(ms));
            assert_eq!(ends[at_end].pump(at(ms.into())), Ok(Pumped::All));
            let said = core::mem::take(&mut ends[at_end].said);
            if at_end == 0 {
                recorded.extend(said.clone());
            }
            ends[1 - at_end].hear(at(ms.into()), said);
        }
    }
    assert!(recorded.len() > 2, "{}", recorded.len());
    let far = &mut ends[1];
    for ms in (5_000..9_000u32).step_by(10) {
        far.io.offer(Side::Fixed, data(ms));
        far.said.clear();
        far.hear(at(ms.into()), recorded.clone());
    }
    assert_eq!(far.driver.peer(), Peer::Absent);
}
