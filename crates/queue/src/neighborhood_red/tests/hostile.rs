//! Hostile and careless neighbours: effect of their notices, with limits and as published.

use super::*;

const GUARDED: Config = Config { notice_limits: NoticeLimits::On(Limits::DEFAULT), ..Config::PAPER };
const RELAYING: Config = Config { incoming: IncomingPolicy::Relayed, ..GUARDED };

/// Returns a notice with the longest lifetime.
fn longest_notice(share: f64) -> Notice {
    Notice { lifetime: ms(65_535), ..notice(share) }
}

/// Sends 6000 packets in 60 s, one after each of 6000 notices. Returns the number dropped in periods of total drops, and the
/// number dropped in periods of partial drops.
fn flooded(config: Config, get: impl Fn(&mut TestNode, u64)) -> (usize, usize) {
    let mut n = TestNode::new(config);
    n.run_under_load(ms(5000), (90, 40, 10));
    let fate = |k| {
        get(&mut n, k);
        n.run_under_load(ms(10), (90, 40, 10));
        n.offer_outgoing()
    };
    let fates: Vec<RedDecision> = (0..6000).map(fate).collect();
    let count = |verdict| fates.iter().filter(|fate| **fate == verdict).count();
    (count(RedDecision::Drop), count(RedDecision::Signal))
}

#[test]
fn a_flood_of_notices_stops_traffic_for_one_lifetime_and_then_not_during_the_recovery_time() {
    let one = |n: &mut TestNode, _| {
        n.receive_notice(6, longest_notice(1.0));
    };
    let many = |n: &mut TestNode, k| {
        n.receive_notice((k % 50) as u8 + 10, longest_notice(1.0));
    };
    assert_eq!(flooded(Config::PAPER, one), (6000, 0), "the paper believes everything");
    for (all, some) in [flooded(GUARDED, one), flooded(GUARDED, many)] {
        assert!((900..=1000).contains(&all), "two seconds of each twelve: {all}");
        assert!((300..=600).contains(&some), "and as under heavy congestion, one in ten, in between: {some}");
    }
}

#[test]
fn nearly_total_drop_shares_count_as_total() {
    let just_above = GUARDED.max_partial_pb() * 1.001;
    for share in [0.99, 0.01, just_above] {
        let (_, some) = flooded(Config::PAPER, |n, _| {
            n.receive_notice(6, longest_notice(share));
        });
        let (none, guarded) = flooded(GUARDED, |n, _| {
            n.receive_notice(6, longest_notice(share));
        });
        // As published, an average of 0.01 · 98 packets or more drops all packets.
        let published = if share == just_above { 550..=750 } else { 5900..=6000 };
        assert!(published.contains(&some), "{share}: {some}");
        let (least, most) = if share == just_above { (300, 750) } else { (1200, 1600) };
        assert!(none == 0 && (least..=most).contains(&guarded), "{share}: {guarded}");
    }
}

#[test]
fn partial_notices_cost_no_more_than_heavy_congestion() {
    // avgtx 98 of 0.14 / 240 each: one packet in 17.5, spaced evenly, so that some one in ten is chosen.
    let (all, some) = flooded(GUARDED, |n, _| {
        n.receive_notice(6, longest_notice(GUARDED.max_partial_pb()));
    });
    assert_eq!(all, 0);
    assert!((400..=750).contains(&some), "{some}");
}

#[test]
fn a_notice_with_zero_lifetime_has_no_effect() {
    for config in [Config::PAPER, GUARDED] {
        let mut n = starved_node(config);
        for _ in 0..20 {
            n.receive_notice(6, Notice { lifetime: Duration::ZERO, ..notice(1.0) });
            assert_eq!((n.active_pb(), n.offer_outgoing()), (0.0, RedDecision::Enqueue));
            n.run_under_load(ms(250), (90, 5, 5));
        }
        assert!(n.sent.len() >= 9, "nobody is worse off for two intervals: {}", n.sent.len());
        n.receive_notice(7, notice(1.0));
        assert_eq!(n.active_pb(), 1.0, "who means it is believed");
    }
}

#[test]
fn notices_from_unknown_addresses_are_ignored() {
    let mut n = TestNode::new(GUARDED);
    n.receive_frame(5).run_under_load(ms(100), SATURATED);
    for from in 10..=250 {
        n.receive_forged_notice(from, longest_notice(1.0));
    }
    assert_eq!((n.active_pb(), n.red.stats().ignored_strangers, n.red.table_sizes()), (0.0, 241, [1, 0]));
    n.receive_forged_notice(5, notice(1.0));
    assert_eq!(n.active_pb(), 1.0, "but that of a neighbour is taken for its own: nothing is authenticated");
}

#[test]
fn frames_from_many_addresses_evict_no_active_neighbour() {
    let config = Config { neighbours: 8.try_into().unwrap(), ..GUARDED };
    let mut n = starved_node(config);
    for k in 0..3000_u64 {
        if k % 50 == 0 {
            n.receive_frame(5);
        }
        n.receive_notice((k % 200) as u8 + 50, longest_notice(0.9)).run_under_load(ms(10), (90, 5, 5));
        let _ = n.offer_outgoing();
    }
    assert_eq!(n.red.table_sizes(), [8, 0]);
    let strangers = n.red.stats().ignored_strangers;
    n.receive_forged_notice(5, notice(4e-4)).receive_forged_notice(4, notice(4e-4));
    assert_eq!(n.red.stats().ignored_strangers, strangers + 1, "5 is remembered, 4 was never heard");
    let before = n.red.stats().ignored();
    n.run_under_load(ms(3000), (90, 5, 5)).receive_notice(5, notice(5e-4));
    assert_eq!(n.red.stats().ignored(), before, "node 5 is heeded when the others are gone");
    assert!((n.active_pb() - 5e-4).abs() < 1e-9);
}

#[test]
fn group_and_own_addresses_are_no_neighbours() {
    let mut n = TestNode::new(Config::PAPER);
    for address in [[10, 0, 0, 0], [255; 4], [224, 0, 0, 1], [0; 4]].map(Ipv4Addr::from) {
        n.red.handle_signal(n.now, Signal::FrameReceived(address));
    }
    assert_eq!(n.red.table_sizes(), [0, 0]);
}

#[test]
fn a_starved_node_defers_for_at_most_one_lifetime() {
    let spoken = |config| {
        let mut n = starved_node(config);
        for _ in 0..120 {
            n.receive_notice(6, notice(config.max_partial_pb())).run_under_load(ms(250), (90, 5, 5));
            let _ = n.offer_outgoing();
        }
        n.sent.len()
    };
    assert_eq!(spoken(Config::PAPER), 0, "somebody says all the time that it is worse off");
    assert!((10..=15).contains(&spoken(GUARDED)), "once in 2 to 2.5 s: {}", spoken(GUARDED));
}

#[test]
fn forged_relayed_notices_stop_traffic_no_longer_than_direct_ones() {
    let made_up = |n: &mut TestNode, k: u64| {
        n.receive_notice(
            9,
            Notice {
                starved_node: StarvedNode::Neighbour(node((k % 200) as u8 + 20)),
                ..longest_notice(1.0)
            },
        );
    };
    let plain = Config { notice_limits: NoticeLimits::Off, ..RELAYING };
    assert_eq!(flooded(plain, made_up), (6000, 0));
    let (all, some) = flooded(RELAYING, made_up);
    assert!((900..=1000).contains(&all), "{all}");
    assert!((300..=600).contains(&some), "{some}");
}

#[test]
fn relayed_notices_are_bounded_in_memory_and_rate() {
    let config = Config { neighbours: 8.try_into().unwrap(), ..RELAYING };
    let plain = Config { notice_limits: NoticeLimits::Off, ..config };
    let flood = |config| {
        let mut n = TestNode::new(config);
        for k in 0..6000_u32 {
            let (from, share) = ((k % 200) as u8 + 20, 1e-7 + f64::from(k) * 9e-8);
            n.receive_notice(from, longest_notice(share)).receive_notice(
                from,
                Notice { starved_node: StarvedNode::Neighbour(node(3)), ..longest_notice(share) },
            );
            n.run_under_load(ms(10), (90, 5, 5));
            assert!(n.red.table_sizes().iter().all(|entries| *entries <= 8));
        }
        n.red.stats().notices_relayed
    };
    assert!(flood(config) <= 300, "in 60 s one in 200 ms: {}", flood(config));
    assert!(flood(plain) > flood(config), "as many as neighbours say: {}", flood(plain));
}

#[test]
fn limits_do_not_change_the_notices_of_the_paper() {
    let [mut plain, mut guarded] =
        [Config::PAPER, GUARDED].map(|config| node_with_notice(config, (90, 40, 10), 5e-4));
    for _ in 0..20 {
        assert_eq!(
            plain.count_selected(100, TestNode::offer_outgoing),
            guarded.count_selected(100, TestNode::offer_outgoing)
        );
        plain.run_under_load(ms(500), (90, 40, 10)).receive_notice(1, notice(5.5e-4));
        guarded.run_under_load(ms(500), (90, 40, 10)).receive_notice(1, notice(5.5e-4));
    }
    assert_eq!((guarded.red.stats().capped, guarded.red.stats().ignored()), (0, 0));
}

#[test]
fn notices_of_a_neighbour_within_the_spacing_are_ignored() {
    let mut n = TestNode::new(GUARDED);
    n.receive_notice(1, notice(5e-4)).receive_notice(1, notice(1e-4));
    assert!((n.active_pb() - 5e-4).abs() < 1e-9);
    assert_eq!(n.red.stats().ignored_too_soon, 1);
    n.run_under_load(ms(200), (0, 0, 0)).receive_notice(1, notice(1e-4));
    assert!((n.active_pb() - 1e-4).abs() < 1e-9);
}

#[test]
fn notices_about_the_node_itself_are_ignored() {
    let mut n = TestNode::new(Config::PAPER);
    n.receive_notice(0, notice(1.0));
    assert_eq!((n.active_pb(), n.red.stats().ignored_about_us), (0.0, 1));
}
