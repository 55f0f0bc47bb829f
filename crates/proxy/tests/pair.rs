//! D-Proxy for TCP, on bytes: both ends of a link, each in the path of a fake.

use hopline_core::{Duration, Instant};
use hopline_proxy::dproxy::{Config, HoleDelivery, Key};
use hopline_proxy::driver::{PairDriver, PumpResult};
use hopline_proxy::{Connection, InjectResult, PeerStatus, Side};
use hopline_testkit::middlebox::{Broken, FakePath, HOSTS, HOSTS_V6, connecting_between, data, data_between};
use hopline_wire::dproxy::SEALED_LENS;
use std::net::{IpAddr, Ipv4Addr};

const ENDS: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::new(10, 82, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 82, 0, 2))];

fn config(at: usize) -> Config {
    Config::new(ENDS[at], ENDS[1 - at], Key::new([1; 32]))
}

/// One end, and its messages that are not delivered yet.
struct LinkEnd {
    driver: PairDriver,
    peer: IpAddr,
    io: FakePath,
    messages: Vec<Vec<u8>>,
}

impl LinkEnd {
    fn new(config: Config) -> Self {
        Self::with_epoch(config, if config.local < config.peer { 1 } else { 2 })
    }

    fn with_epoch(config: Config, life: u64) -> Self {
        let (driver, peer) = (PairDriver::new(config, life), config.peer);
        Self { driver, peer, io: FakePath::default(), messages: Vec::new() }
    }

    fn pump(&mut self, now: Instant) -> Result<PumpResult, Broken> {
        let said = &mut self.messages;
        self.driver.pump(now, &mut self.io, |_, datagram| said.push(datagram.to_vec()))
    }

    /// Delivers messages to the end.
    fn deliver_messages(&mut self, now: Instant, said: Vec<Vec<u8>>) {
        for datagram in said {
            self.driver.handle_datagram(now, self.peer, &datagram);
        }
        assert_eq!(self.pump(now), Ok(PumpResult::Drained));
    }

    /// Returns the packets forwarded towards this side.
    fn forwarded(&mut self, side: Side) -> Vec<Vec<u8>> {
        let arrived = &mut self.io.arrived;
        core::mem::take(if side == Side::Mobile { &mut arrived.mobile } else { &mut arrived.fixed })
    }
}

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// Lets both ends greet each other.
fn handshaken(mut ends: [LinkEnd; 2]) -> [LinkEnd; 2] {
    run(&mut ends, Instant::ZERO, Instant::ZERO);
    assert_eq!(ends.each_ref().map(|end| end.driver.peer()), [PeerStatus::Present; 2]);
    ends
}

/// Runs two ends until then; their datagrams arrive at once.
fn run(ends: &mut [LinkEnd; 2], from: Instant, until: Instant) {
    let mut now = from;
    loop {
        for at in [0, 1] {
            assert_eq!(ends[at].pump(now), Ok(PumpResult::Drained));
            let said = core::mem::take(&mut ends[at].messages);
            ends[1 - at].deliver_messages(now, said);
        }
        let is_quiet = ends.iter().all(|end| end.messages.is_empty());
        let due = ends.iter().filter_map(|end| end.driver.poll_timeout()).min();
        match due.filter(|due| *due <= until) {
            Some(due) => now = now.max(due),
            None if is_quiet => return,
            None => {}
        }
    }
}

/// Returns the near end and the far one after five packets were sent and these have arrived.
fn sent(arrive: &[u32], configs: [Config; 2]) -> [LinkEnd; 2] {
    sent_between(HOSTS, arrive, configs)
}

/// As [`sent`], between these hosts.
fn sent_between(hosts: Connection, arrive: &[u32], configs: [Config; 2]) -> [LinkEnd; 2] {
    let [mut near, mut far] = handshaken(configs.map(LinkEnd::new));
    let syn = connecting_between(hosts)[0].1.clone();
    near.io.offer(Side::Fixed, syn.clone());
    far.io.offer(Side::Mobile, syn);
    (0..5).for_each(|n| near.io.offer(Side::Fixed, data_between(hosts, n)));
    assert_eq!(near.pump(at(1)), Ok(PumpResult::Drained));
    assert_eq!(near.forwarded(Side::Mobile).len(), 6, "nothing waits on its way out");
    arrive.iter().for_each(|n| far.io.offer(Side::Mobile, data_between(hosts, *n)));
    assert_eq!(far.pump(at(3)), Ok(PumpResult::Drained));
    [near, far]
}

#[test]
fn missing_packet_is_requested_replayed_and_delivered_in_order() {
    let over_ipv6 = ["2001:db8::1", "2001:db8::2"].map(|end| end.parse().unwrap());
    for (hosts, ends) in [(HOSTS, ENDS), (HOSTS_V6, ENDS), (HOSTS, over_ipv6), (HOSTS_V6, over_ipv6)] {
        println!("{hosts:?} over a link between {ends:?}");
        check_missing_packet_is_repaired(hosts, ends);
    }
}

fn check_missing_packet_is_repaired(hosts: Connection, ends: [IpAddr; 2]) {
    let data = |n| data_between(hosts, n);
    let configs = [0, 1].map(|at| Config { local: ends[at], peer: ends[1 - at], ..config(at) });
    let [mut near, mut far] = sent_between(hosts, &[0, 2, 4], configs);
    assert_eq!(far.forwarded(Side::Fixed)[1..], [data(0)]);
    assert_eq!((far.driver.waiting_packets(), far.io.postponed()), (2, 2));
    near.deliver_messages(at(5), core::mem::take(&mut far.messages));
    assert_eq!(near.forwarded(Side::Mobile), [data(1), data(3)]);
    assert_eq!(near.driver.counts().replayed, 2);
    far.io.offer(Side::Mobile, data(1));
    assert_eq!(far.pump(at(7)), Ok(PumpResult::Drained));
    assert_eq!(far.forwarded(Side::Fixed), [data(1), data(2)]);
    far.io.offer(Side::Mobile, data(3));
    assert_eq!(far.pump(at(7)), Ok(PumpResult::Drained));
    assert_eq!(far.forwarded(Side::Fixed), [data(3), data(4)]);
    assert_eq!((far.driver.waiting_packets(), far.io.postponed(), far.driver.counts().postponed), (0, 0, 2));
}

#[test]
fn unanswered_hole_is_given_up_after_max_wait() {
    let [_, mut far] = sent(&[0, 2, 3], [config(0), config(1)]);
    far.forwarded(Side::Fixed);
    let mut now = at(3);
    while let Some(due) = far.driver.poll_timeout().filter(|_| far.io.postponed() > 0) {
        now = due;
        assert_eq!(far.pump(now), Ok(PumpResult::Drained));
    }
    assert!(now <= at(3) + Duration::from_millis(200));
    assert_eq!(far.forwarded(Side::Fixed), [data(2), data(3)]);
}

#[test]
fn other_packets_pass() {
    let as_they_come = Config { hole_delivery: HoleDelivery::OutOfOrder, ..config(1) };
    let [_, mut far] = sent(&[0, 2], [config(0), as_they_come]);
    assert_eq!((far.forwarded(Side::Fixed).len(), far.io.postponed()), (3, 0));
    far.io.offer(Side::Mobile, vec![0; 40]);
    far.io.offer(Side::Fixed, vec![0x60; 60]);
    assert_eq!(far.pump(at(9)), Ok(PumpResult::Drained));
    assert_eq!((far.forwarded(Side::Fixed).len(), far.forwarded(Side::Mobile).len()), (1, 1));
    assert_eq!(far.driver.counts().bypassed.total(), 2);
}

#[test]
fn queue_drop_is_left_to_the_sender() {
    let [mut near, mut far] = sent(&[0, 2], [config(0), config(1)]);
    far.forwarded(Side::Fixed);
    near.io.dropped.push_back(data(1).into());
    assert_eq!(near.pump(at(4)), Ok(PumpResult::Drained));
    near.deliver_messages(at(5), core::mem::take(&mut far.messages));
    assert_eq!((near.forwarded(Side::Mobile).len(), near.driver.stats().refused), (0, 1));
    far.deliver_messages(at(7), core::mem::take(&mut near.messages));
    assert_eq!(far.forwarded(Side::Fixed), [data(2)], "nobody waits for it");
}

#[test]
fn replay_into_a_full_queue_is_left_to_the_sender() {
    let [mut near, mut far] = sent(&[0, 2], [config(0), config(1)]);
    near.io.injected = Some(InjectResult::QueueFull);
    near.deliver_messages(at(5), core::mem::take(&mut far.messages));
    assert_eq!((near.driver.counts().refused, near.driver.stats().refused), (1, 1));
}

#[test]
fn packet_without_route_is_counted() {
    let [mut near, mut far] = sent(&[0, 2], [config(0), config(1)]);
    near.io.injected = Some(InjectResult::NoRoute);
    near.deliver_messages(at(5), core::mem::take(&mut far.messages));
    assert_eq!((near.driver.counts().refused, near.driver.counts().replayed), (1, 0));
    assert_eq!(near.driver.stats().refused, 0, "the link may have room");
}

#[test]
fn packet_io_error_is_returned() {
    let mut end = LinkEnd::new(config(0));
    end.io.error = Some(Broken);
    assert_eq!(end.pump(at(1)), Err(Broken));
}

#[test]
fn end_without_peer_is_absent_and_holds_no_packets() {
    let mut far = LinkEnd::new(config(1));
    for ms in 0..4_000 {
        // Every third packet is lost.
        far.io.offer(Side::Mobile, data(3 * ms / 2));
        assert_eq!(far.pump(at(ms.into())), Ok(PumpResult::Drained));
        assert_eq!((far.io.postponed(), far.forwarded(Side::Fixed).len()), (0, 1));
    }
    assert_eq!(far.driver.peer(), PeerStatus::Absent);
    assert!(far.messages.iter().all(|said| !SEALED_LENS.contains(&said.len())), "it asks nobody");
    assert!(far.messages.len() < 12, "and greets once a second: {}", far.messages.len());
}

#[test]
fn peer_failure_and_return_are_detected_in_time() {
    let mut ends = handshaken([config(0), config(1)].map(LinkEnd::new));
    let mut last_held = 0;
    for ms in 1..5_000 {
        let far = &mut ends[1];
        far.io.offer(Side::Mobile, data(2 * ms));
        assert_eq!(far.pump(at(ms.into())), Ok(PumpResult::Drained));
        far.messages.clear();
        if far.driver.waiting_packets() > 0 {
            last_held = ms;
        }
    }
    assert!((1_000..3_000).contains(&last_held), "{last_held}");
    assert_eq!(ends[1].driver.peer(), PeerStatus::Absent);
    ends[0] = LinkEnd::with_epoch(config(0), 99);
    run(&mut ends, at(5_000), at(6_500));
    assert_eq!(ends.each_ref().map(|end| end.driver.peer()), [PeerStatus::Present; 2]);
    ends[1].forwarded(Side::Fixed);
    [100_000, 100_002].into_iter().for_each(|n| ends[1].io.offer(Side::Mobile, data(n)));
    assert_eq!(ends[1].pump(at(6_500)), Ok(PumpResult::Drained));
    assert_eq!(ends[1].driver.waiting_packets(), 1, "it repairs again");
}

#[test]
fn active_ends_exchange_one_handshake_a_second() {
    let mut ends = handshaken([config(0), config(1)].map(LinkEnd::new));
    let before = ends[0].driver.counts().handshakes;
    for ms in (0..20_000).step_by(10) {
        ends.iter_mut().for_each(|end| end.io.offer(Side::Fixed, data(ms)));
        run(&mut ends, at(ms.into()), at(u64::from(ms) + 9));
        assert_eq!(ends.each_ref().map(|end| end.driver.peer()), [PeerStatus::Present; 2]);
    }
    let greetings = ends[0].driver.counts().handshakes - before;
    assert!((15..50).contains(&greetings), "{greetings}");
}

#[test]
fn idle_link_is_probed_every_ten_seconds() {
    let mut ends = handshaken([config(0), config(1)].map(LinkEnd::new));
    let before = ends[0].driver.counts().handshakes;
    run(&mut ends, at(1), at(100_000));
    let greetings = ends[0].driver.counts().handshakes - before;
    assert!((5..25).contains(&greetings), "{greetings}");
    assert_eq!(ends[0].driver.peer(), PeerStatus::Present);
}

#[test]
fn peer_with_another_key_is_detected() {
    let other = Config { key: Key::new([9; 32]), ..config(1) };
    let mut ends = [config(0), other].map(LinkEnd::new);
    run(&mut ends, at(1), at(2_000));
    assert_eq!(ends.each_ref().map(|end| end.driver.peer()), [PeerStatus::OtherKey; 2]);
    [0, 2].into_iter().for_each(|n| ends[1].io.offer(Side::Mobile, data(n)));
    run(&mut ends, at(2_000), at(2_000));
    assert_eq!(ends[1].driver.waiting_packets(), 0);
    ends[1] = LinkEnd::with_epoch(config(1), 77);
    run(&mut ends, at(2_001), at(4_000));
    assert_eq!(ends.each_ref().map(|end| end.driver.peer()), [PeerStatus::Present; 2], "and mended");
}

#[test]
fn peer_of_another_version_is_detected_and_becomes_absent() {
    let mut near = LinkEnd::new(config(0));
    assert_eq!(near.pump(at(0)), Ok(PumpResult::Drained));
    let mut former = vec![0; SEALED_LENS[0]];
    former[0] = 1;
    near.deliver_messages(at(10), vec![former.clone()]);
    assert_eq!(near.driver.peer(), PeerStatus::OtherVersion(1));
    // An attacker cannot change its state at will.
    let mut ends = [LinkEnd::new(Config { key: Key::new([9; 32]), ..config(1) }), near];
    assert_eq!(ends[0].pump(at(20)), Ok(PumpResult::Drained));
    let forged = core::mem::take(&mut ends[0].messages);
    ends[1].deliver_messages(at(20), forged);
    let [_, mut near] = ends;
    assert_eq!(near.driver.peer(), PeerStatus::OtherVersion(1));
    (20..8_000).step_by(50).for_each(|ms| assert_eq!(near.pump(at(ms)), Ok(PumpResult::Drained)));
    assert_eq!(near.driver.peer(), PeerStatus::Absent);
}

#[test]
fn replayed_handshakes_do_not_prove_presence() {
    let mut ends = handshaken([config(0), config(1)].map(LinkEnd::new));
    let mut recorded = Vec::new();
    for ms in (1..5_000).step_by(10) {
        for at_end in [0, 1] {
            ends[at_end].io.offer(Side::Fixed, data(ms));
            assert_eq!(ends[at_end].pump(at(ms.into())), Ok(PumpResult::Drained));
            let said = core::mem::take(&mut ends[at_end].messages);
            if at_end == 0 {
                recorded.extend(said.clone());
            }
            ends[1 - at_end].deliver_messages(at(ms.into()), said);
        }
    }
    assert!(recorded.len() > 2, "{}", recorded.len());
    let far = &mut ends[1];
    for ms in (5_000..9_000u32).step_by(10) {
        far.io.offer(Side::Fixed, data(ms));
        far.messages.clear();
        far.deliver_messages(at(ms.into()), recorded.clone());
    }
    assert_eq!(far.driver.peer(), PeerStatus::Absent);
}
