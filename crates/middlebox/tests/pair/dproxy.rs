//! D-Proxy for TCP behind NFQUEUE at both ends: a router, and the mobile host itself.

use crate::pair::world::{Bottleneck, Losses, World, last_figures};
use hopline_linux::Namespace;
use hopline_middlebox::dproxy::{Config, DProxy};
use hopline_middlebox::nfqueue::{Config as QueueConfig, Queue};
use hopline_proxy::dproxy::{HoleDelivery, Key};
use hopline_testkit::Side;
use hopline_testkit::namespace::host::{ip, open_with_retries, succeed};
use hopline_testkit::namespace::last_hop::{LINK, MOBILE_V6};
use hopline_testkit::namespace::{RunningService, unless_late};
use hopline_testkit::streams::until;
use hopline_tools::link::NamespaceLink;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

const KEY: Key = Key::new([5; 32]);
const QUEUE: u16 = 7;
const MOBILE: Ipv4Addr = NamespaceLink::address(Side::B);

/// Returns the reason that NFQUEUE is not available, found by trial.
pub(crate) fn why_no_queue() -> Option<String> {
    let tried = || Namespace::new()?.run(|| Queue::open(&QueueConfig::new(0, "lo")).map(drop))?;
    tried().err().map(|error| error.to_string())
}

pub(crate) fn config(side: Side) -> Config {
    let ends = [side, side.other()].map(NamespaceLink::address);
    Config::new(QUEUE, LINK, ends, KEY)
}

/// Queues TCP packets over the link at both ends, while a process has bound the queues.
pub(crate) fn divert(world: &World) {
    divert_by(world, "iptables");
}

fn divert_by(world: &World, tables: &str) {
    let rule = |host, rule: &str| {
        succeed(host, tables, &format!("-w -A {rule} -p tcp -j NFQUEUE --queue-num {QUEUE} --queue-bypass"));
    };
    rule(world.near(), &format!("FORWARD -o {LINK}"));
    rule(world.near(), &format!("FORWARD -i {LINK}"));
    rule(world.mobile(), &format!("INPUT -i {LINK}"));
    rule(world.mobile(), &format!("OUTPUT -o {LINK} -m mark ! --mark 0x686f"));
}

pub(crate) fn start(world: &World, side: Side, config: &Config) -> RunningService {
    RunningService::in_real_time(open_with_retries(world.lossy.host(side), || DProxy::open(config)))
}

pub(crate) fn pair(world: &World, configs: [Config; 2]) -> [RunningService; 2] {
    divert(world);
    [start(world, Side::A, &configs[0]), start(world, Side::B, &configs[1])]
}

pub(crate) fn both() -> [Config; 2] {
    [Side::A, Side::B].map(config)
}

fn world(losses: Losses) -> World {
    World::new(5, losses, Bottleneck::InLink, 21)
}

pub(crate) fn all_bytes_arrive_despite_losses() {
    let bursts = Losses { share: 0.05, burst: Some(4.0), back: false };
    let both_ways = Losses { share: 0.1, burst: None, back: true };
    for (losses, bytes) in [(Losses::of(0.0), 500_000), (bursts, 1_000_000), (both_ways, 1_000_000)] {
        let world = world(losses);
        let [near, mobile] = pair(&world, both());
        world.transfer(MOBILE, bytes, |_| {});
        let lost = world.lossy.stats().forward.losses;
        let (near, mobile) = (last_figures(near), last_figures(mobile));
        assert!(near("packets_sent_again") >= lost / 3, "{lost} lost, {losses:?}");
        assert!(mobile("segments_in") > 300 && near("segments_out") > 300, "both see what crosses");
        assert!(lost == 0 || mobile("packets_postponed") > 0, "packets wait for what is lost");
    }
}

const LASTS: Duration = Duration::from_secs(2);

pub(crate) fn cubic_doubles_its_goodput_at_5_percent_loss() {
    let world = || World::new(25, Losses::of(0.05), Bottleneck::InLink, 5);
    let plain = world().received_within(MOBILE, "cubic", LASTS);
    let paired = world();
    let _ends = pair(&paired, both());
    let repaired = paired.received_within(MOBILE, "cubic", LASTS);
    assert!(repaired >= 2 * plain, "{repaired} bytes, {plain} without");
}

/// Starts both ends of a pair for IPv6, with these addresses on the link.
fn pair_over_ipv6(world: &World, ends: [Ipv6Addr; 2]) -> [RunningService; 2] {
    divert_by(world, "ip6tables");
    [Side::A, Side::B].map(|side| {
        let of = |side: Side| ends[side as usize];
        start(world, side, &Config::new(QUEUE, LINK, [of(side), of(side.other())], KEY))
    })
}

pub(crate) fn all_bytes_arrive_over_ipv6_between_link_local_addresses() {
    let world = world(Losses { share: 0.05, burst: Some(4.0), back: false });
    world.add_ipv6();
    let ends = [1, 2].map(|host| Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, host));
    for (side, end) in [Side::A, Side::B].into_iter().zip(ends) {
        ip(world.lossy.host(side), &format!("-6 addr add {end}/64 dev {LINK} nodad"));
    }
    let [near, mobile] = pair_over_ipv6(&world, ends);
    world.transfer(MOBILE_V6, 1_000_000, |_| {});
    let lost = world.lossy.stats().forward.losses;
    let (near, mobile) = (last_figures(near), last_figures(mobile));
    assert!(lost > 10 && near("packets_sent_again") >= lost / 3, "{lost} lost");
    assert!(mobile("segments_in") > 300 && near("segments_out") > 300, "both see what crosses");
    assert!(mobile("packets_postponed") > 0, "packets wait for what is lost");
}

pub(crate) fn cubic_over_ipv6_doubles_its_goodput_at_5_percent_loss() {
    const LASTS: Duration = Duration::from_millis(1500);
    let world = || {
        let world = World::new(25, Losses::of(0.05), Bottleneck::InLink, 5);
        world.add_ipv6();
        world
    };
    let plain = world().received_within(MOBILE_V6, "cubic", LASTS);
    let paired = world();
    let _ends = pair_over_ipv6(&paired, [1, 2].map(|host| Ipv6Addr::new(0xfd80, 0, 0, 0, 0, 0, 0, host)));
    let repaired = paired.received_within(MOBILE_V6, "cubic", LASTS);
    unless_late(&paired.lossy, "CUBIC over D-Proxy", || {
        assert!(plain > 0 && repaired >= 2 * plain, "{repaired} bytes, {plain} without");
    });
}

pub(crate) fn packets_are_not_delayed() {
    let world = world(Losses::of(0.05));
    let configs = both().map(|mut config| {
        config.machine.hole_delivery = HoleDelivery::OutOfOrder;
        config
    });
    let [_near, mobile] = pair(&world, configs);
    world.transfer(MOBILE, 500_000, |_| {});
    let figure = last_figures(mobile);
    assert!(figure("packets_postponed") == 0 && figure("holes_recovered") > 0);
}

pub(crate) fn a_transfer_survives_the_loss_of_either_end() {
    for who in [Side::A, Side::B] {
        let world = world(Losses::of(0.02));
        let mut ends = pair(&world, both()).map(Some);
        let mut has_ended = false;
        world.transfer(MOBILE, 1_500_000, |arrived| {
            if arrived > 500_000 && !has_ended {
                has_ended = true;
                ends[who as usize].take();
                ends[who as usize] = Some(start(&world, who, &config(who)));
            }
        });
        let [near, mobile] = ends.map(|end| last_figures(end.unwrap()));
        assert!(has_ended && near("packets_sent_again") > 0 && mobile("holes_recovered") > 0);
        for end in [near, mobile] {
            assert_eq!((end("messages_replayed"), end("messages_forged")), (0, 0));
        }
    }
}

pub(crate) fn without_the_peer_traffic_passes() {
    for who in [Side::A, Side::B] {
        let world = world(Losses::of(0.01));
        divert(&world);
        let end = start(&world, who, &config(who));
        world.transfer(MOBILE, 500_000, |_| {});
        until("it is said", || end.has_notice("does not answer: packets pass without repair"));
        let figure = last_figures(end);
        assert!(figure("segments_out") > 0 && figure("segments_in") > 0, "it has seen it");
        assert_eq!(
            (figure("packets_sent_again"), figure("packets_postponed"), figure("requests")),
            (0, 0, 0)
        );
    }
}

pub(crate) fn another_key_is_counted_and_traffic_passes() {
    let world = world(Losses::of(0.02));
    let [near, mut mobile] = both();
    mobile.machine.key = Key::new([6; 32]);
    let [near, _mobile] = pair(&world, [near, mobile]);
    world.transfer(MOBILE, 300_000, |_| {});
    until("it is counted and said", || {
        near.metric("greetings_forged") > 0 && near.has_notice("has another key")
    });
    assert_eq!(near.metric("packets_sent_again"), 0);
}
