//! Hostile and careless neighbours: effect of their notices, with limits and as published.

use super::*;

const GUARDED: Config = Config { guard: Guard::On(Limits::DEFAULT), ..Config::PAPER };
const RELAYING: Config = Config { incoming: Incoming::Relayed, ..GUARDED };

/// Returns a notice with the longest lifetime.
fn lasting(share: f64) -> Notice {
    Notice { lifetime: ms(65_535), ..notice(share) }
}

/// Sends 6000 packets in 60 s, one after each of 6000 notices. Returns the number dropped in periods of total drops, and the
/// number dropped in periods of partial drops.
fn flooded(config: Config, get: impl Fn(&mut Node, u64)) -> (usize, usize) {
    let mut n = Node::new(config);
    n.pass(ms(5000), (90, 40, 10));
    let fate = |k| {
        get(&mut n, k);
        n.pass(ms(10), (90, 40, 10));
        n.down()
    };
    let fates: Vec<Verdict> = (0..6000).map(fate).collect();
    let count = |verdict| fates.iter().filter(|fate| **fate == verdict).count();
    (count(Verdict::Drop), count(Verdict::Notify))
}

#[test]
fn a_flood_of_notices_silences_no_longer_than_a_lifetime_and_then_a_rest() {
    let one = |n: &mut Node, _| {
        n.get(6, lasting(1.0));
    };
    let many = |n: &mut Node, k| {
        n.get((k % 50) as u8 + 10, lasting(1.0));
    };
    assert_eq!(flooded(Config::PAPER, one), (6000, 0), "the paper believes everything");
    for (all, some) in [flooded(GUARDED, one), flooded(GUARDED, many)] {
        assert!((900..=1000).contains(&all), "two seconds of each twelve: {all}");
        assert!((300..=600).contains(&some), "and as under heavy congestion, one in ten, in between: {some}");
    }
}

#[test]
fn to_ask_for_nearly_everything_is_to_ask_for_everything() {
    let just_above = GUARDED.largest_partial() * 1.001;
    for share in [0.99, 0.01, just_above] {
        let (_, some) = flooded(Config::PAPER, |n, _| {
            n.get(6, lasting(share));
        });
        let (none, guarded) = flooded(GUARDED, |n, _| {
            n.get(6, lasting(share));
        });
        // As published, an average of 0.01 · 98 packets or more drops all packets.
        let published = if share == just_above { 550..=750 } else { 5900..=6000 };
        assert!(published.contains(&some), "{share}: {some}");
        let (least, most) = if share == just_above { (300, 750) } else { (1200, 1600) };
        assert!(none == 0 && (least..=most).contains(&guarded), "{share}: {guarded}");
    }
}

#[test]
fn what_an_honest_node_could_say_costs_as_much_as_heavy_congestion_and_no_more() {
    // avgtx 98 of 0.14 / 240 each: one packet in 17.5, spaced evenly, so that some one in ten is chosen.
    let (all, some) = flooded(GUARDED, |n, _| {
        n.get(6, lasting(GUARDED.largest_partial()));
    });
    assert_eq!(all, 0);
    assert!((400..=750).contains(&some), "{some}");
}

#[test]
fn a_notice_that_ends_at_once_does_nothing_and_uses_nothing_up() {
    for config in [Config::PAPER, GUARDED] {
        let mut n = sufferer(config);
        for _ in 0..20 {
            n.get(6, Notice { lifetime: Duration::ZERO, ..notice(1.0) });
            assert_eq!((n.holds(), n.down()), (0.0, Verdict::Enter));
            n.pass(ms(250), (90, 5, 5));
        }
        assert!(n.sent.len() >= 9, "nobody is worse off for two intervals: {}", n.sent.len());
        n.get(7, notice(1.0));
        assert_eq!(n.holds(), 1.0, "who means it is believed");
    }
}

#[test]
fn notices_under_addresses_that_nobody_has_are_not_heeded() {
    let mut n = Node::new(GUARDED);
    n.hear(5).pass(ms(100), SATURATED);
    for from in 10..=250 {
        n.get_forged(from, lasting(1.0));
    }
    assert_eq!((n.holds(), n.red.stats().ignored_strangers, n.red.entries()), (0.0, 241, [1, 0]));
    n.get_forged(5, notice(1.0));
    assert_eq!(n.holds(), 1.0, "but that of a neighbour is taken for its own: nothing is authenticated");
}

#[test]
fn frames_under_many_addresses_drive_no_neighbour_out() {
    let config = Config { neighbours: 8.try_into().unwrap(), ..GUARDED };
    let mut n = sufferer(config);
    for k in 0..3000_u64 {
        if k % 50 == 0 {
            n.hear(5);
        }
        n.get((k % 200) as u8 + 50, lasting(0.9)).pass(ms(10), (90, 5, 5));
        let _ = n.down();
    }
    assert_eq!(n.red.entries(), [8, 0]);
    let strangers = n.red.stats().ignored_strangers;
    n.get_forged(5, notice(4e-4)).get_forged(4, notice(4e-4));
    assert_eq!(n.red.stats().ignored_strangers, strangers + 1, "5 is remembered, 4 was never heard");
    let before = n.red.stats().ignored();
    n.pass(ms(3000), (90, 5, 5)).get(5, notice(5e-4));
    assert_eq!(n.red.stats().ignored(), before, "node 5 is heeded when the others are gone");
    assert!((n.holds() - 5e-4).abs() < 1e-9);
}

#[test]
fn no_groups_address_and_not_ones_own_is_a_neighbour() {
    let mut n = Node::new(Config::PAPER);
    for address in [[10, 0, 0, 0], [255; 4], [224, 0, 0, 1], [0; 4]].map(Ipv4Addr::from) {
        n.red.handle_signal(n.now, Signal::Heard(address));
    }
    assert_eq!(n.red.entries(), [0, 0]);
}

#[test]
fn who_suffers_is_not_kept_quiet_for_longer_than_a_lifetime() {
    let spoken = |config| {
        let mut n = sufferer(config);
        for _ in 0..120 {
            n.get(6, notice(config.largest_partial())).pass(ms(250), (90, 5, 5));
            let _ = n.down();
        }
        n.sent.len()
    };
    assert_eq!(spoken(Config::PAPER), 0, "somebody says all the time that it is worse off");
    assert!((10..=15).contains(&spoken(GUARDED)), "once in 2 to 2.5 s: {}", spoken(GUARDED));
}

#[test]
fn made_up_sufferers_silence_no_longer_than_others() {
    let made_up = |n: &mut Node, k: u64| {
        n.get(9, Notice { about: About::Neighbour(node((k % 200) as u8 + 20)), ..lasting(1.0) });
    };
    let plain = Config { guard: Guard::Off, ..RELAYING };
    assert_eq!(flooded(plain, made_up), (6000, 0));
    let (all, some) = flooded(RELAYING, made_up);
    assert!((900..=1000).contains(&all), "{all}");
    assert!((300..=600).contains(&some), "{some}");
}

#[test]
fn what_is_passed_on_is_bounded_in_memory_and_in_number() {
    let config = Config { neighbours: 8.try_into().unwrap(), ..RELAYING };
    let plain = Config { guard: Guard::Off, ..config };
    let flood = |config| {
        let mut n = Node::new(config);
        for k in 0..6000_u32 {
            let (from, share) = ((k % 200) as u8 + 20, 1e-7 + f64::from(k) * 9e-8);
            n.get(from, lasting(share))
                .get(from, Notice { about: About::Neighbour(node(3)), ..lasting(share) });
            n.pass(ms(10), (90, 5, 5));
            assert!(n.red.entries().iter().all(|entries| *entries <= 8));
        }
        n.red.stats().notices_relayed
    };
    assert!(flood(config) <= 300, "in 60 s one in 200 ms: {}", flood(config));
    assert!(flood(plain) > flood(config), "as many as neighbours say: {}", flood(plain));
}

#[test]
fn a_guard_leaves_what_the_paper_sends_as_it_is() {
    let [mut plain, mut guarded] =
        [Config::PAPER, GUARDED].map(|config| neighbour(config, (90, 40, 10), 5e-4));
    for _ in 0..20 {
        assert_eq!(plain.chosen(100, Node::down), guarded.chosen(100, Node::down));
        plain.pass(ms(500), (90, 40, 10)).get(1, notice(5.5e-4));
        guarded.pass(ms(500), (90, 40, 10)).get(1, notice(5.5e-4));
    }
    assert_eq!((guarded.red.stats().capped, guarded.red.stats().ignored()), (0, 0));
}

#[test]
fn notices_of_a_neighbour_that_follow_too_soon_do_not_count() {
    let mut n = Node::new(GUARDED);
    n.get(1, notice(5e-4)).get(1, notice(1e-4));
    assert!((n.holds() - 5e-4).abs() < 1e-9);
    assert_eq!(n.red.stats().ignored_too_soon, 1);
    n.pass(ms(200), (0, 0, 0)).get(1, notice(1e-4));
    assert!((n.holds() - 1e-4).abs() < 1e-9);
}

#[test]
fn a_node_is_not_told_of_itself() {
    let mut n = Node::new(Config::PAPER);
    n.get(0, notice(1.0));
    assert_eq!((n.holds(), n.red.stats().ignored_about_us), (0.0, 1));
}
