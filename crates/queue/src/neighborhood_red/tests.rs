mod hostile;

use super::channel::Congestion;
use super::config::{Delivery, Guard, Incoming, Limits, Suffering};
use super::*;
use crate::red::Verdict;
use hopline_core::{Duration, Instant, LinkId, Machine, Purpose, Stream};
use hopline_wire::ncn::{About, NormalizedPb, Notice};
use proptest::prelude::*;
use std::net::Ipv4Addr;

fn node(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, n)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Shares of an interval in percent: busy, transmitting, receiving.
type Load = (u64, u64, u64);

/// A node, its clock and the totals of its radio.
struct Node {
    red: NeighborhoodRed,
    now: Instant,
    total: ChannelTime,
    sent: Vec<Outgoing>,
}

impl Node {
    fn new(config: Config) -> Self {
        let stream = Stream::keyed(1, 1, 0, Purpose::Queue);
        Self {
            red: NeighborhoodRed::new(config, node(0), Instant::ZERO, stream),
            now: Instant::ZERO,
            total: ChannelTime::default(),
            sent: Vec::new(),
        }
    }

    /// Advances the time under a load, which the machine samples at the end of each interval.
    fn pass(&mut self, time: Duration, load: Load) -> &mut Self {
        let end = self.now + time;
        while let Some((at, _)) = self.red.poll_timeout().filter(|(at, _)| *at <= end) {
            self.advance(at, load);
            self.red.handle_timeout(at);
            while let Some(Event::Sample) = self.red.poll_event() {
                self.red.handle_signal(at, Signal::Channel(self.total));
            }
            self.sent.extend(core::iter::from_fn(|| self.red.poll_transmit(at)));
        }
        self.advance(end, load);
        self
    }

    fn advance(&mut self, to: Instant, (busy, transmitting, receiving): Load) {
        let passed = to.since(self.now);
        let part = |percent: u64| passed * percent / 100;
        self.total.elapsed += passed;
        self.total.busy += part(busy);
        self.total.transmitting += part(transmitting);
        self.total.receiving += part(receiving);
        self.now = to;
    }

    fn hear(&mut self, n: u8) -> &mut Self {
        self.red.handle_signal(self.now, Signal::Heard(node(n)));
        self
    }

    fn down(&mut self) -> Verdict {
        self.red.admit(self.now, Coming::Down { next_hop: node(9) })
    }

    fn up(&mut self) -> Verdict {
        self.red.admit(self.now, Coming::Up)
    }

    /// Delivers a frame of a neighbour with a notice.
    fn get(&mut self, from: u8, notice: Notice) -> &mut Self {
        self.hear(from).get_forged(from, notice)
    }

    /// Delivers a notice from an address without a frame of that address.
    fn get_forged(&mut self, from: u8, notice: Notice) -> &mut Self {
        self.red.handle_packet(self.now, LinkId::ONLY, Received { from: node(from), notice });
        self.sent.extend(core::iter::from_fn(|| self.red.poll_transmit(self.now)));
        self
    }

    fn holds(&self) -> f64 {
        self.red.normalized_pb(self.now).get()
    }

    /// Returns the number of chosen packets out of `packets`.
    fn chosen(&mut self, packets: u32, offer: fn(&mut Self) -> Verdict) -> u32 {
        (0..packets).map(|_| u32::from(offer(self) != Verdict::Enter)).sum()
    }
}

fn notice(share: f64) -> Notice {
    Notice { normalized_pb: NormalizedPb::of(share), lifetime: ms(2000), about: About::Sender }
}

fn passed_on(share: f64, sufferer: u8) -> Notice {
    Notice { about: About::Neighbour(node(sufferer)), ..notice(share) }
}

const SATURATED: Load = (100, 0, 0);

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6 * (1.0 + b.abs())
}

// ---- NCD ----

#[test]
fn averages_follow_the_shares_of_radio_time() {
    let mut n = Node::new(Config::PAPER);
    n.pass(ms(300), (60, 20, 10));
    let full = 2e6 / 8192.0;
    let reached = 1.0 - 0.8_f64.powi(3);
    assert!(close(n.red.average(), 0.6 * full * reached), "{}", n.red.average());
    let [outgoing, incoming] = n.red.own_averages();
    assert!(close(outgoing, 0.2 * full * reached) && close(incoming, 0.1 * full * reached));
    assert!(close(n.red.latest(), 0.6 * full), "{}", n.red.latest());
    n.pass(ms(10_000), SATURATED);
    assert!((n.red.average() - 244.14).abs() < 0.01, "{}", n.red.average());
}

#[test]
fn totals_that_begin_anew_are_no_interval() {
    let mut congestion = Congestion::default();
    let total =
        |elapsed, busy| ChannelTime { elapsed: ms(elapsed), busy: ms(busy), ..ChannelTime::default() };
    congestion.sample(total(1000, 1000), &Config::PAPER);
    let before = congestion.all;
    congestion.sample(total(10, 10), &Config::PAPER);
    congestion.sample(total(10, 10), &Config::PAPER);
    assert!(close(congestion.all, before), "neither going back nor standing still says anything");
    congestion.sample(total(110, 10), &Config::PAPER);
    assert!(close(congestion.all, 0.8 * before), "from there on it counts");
}

#[test]
fn probability_rises_from_threshold_to_threshold_over_the_average() {
    let at = |all| {
        let mut congestion = Congestion::default();
        congestion.all = all;
        congestion.normalized_pb(&Config::PAPER)
    };
    assert_eq!((at(0.0), at(99.9), at(100.0)), (0.0, 0.0, 0.0));
    assert!(close(at(170.0), 0.07 / 170.0));
    assert!(close(at(239.9), 0.14 * 139.9 / 140.0 / 239.9));
    assert_eq!((at(240.0), at(1000.0)), (1.0, 1.0));
}

#[test]
fn the_same_busy_time_is_the_same_congestion_at_every_rate() {
    assert_eq!(Config::on_channel(2_000_000), Config::PAPER);
    let own_share_to_drop = |bandwidth_bps: u64, busy: u64| {
        let config = Config::on_channel(bandwidth_bps);
        let mut congestion = Congestion::default();
        let total = ChannelTime { elapsed: ms(100), busy: ms(busy), transmitting: ms(30), receiving: ms(5) };
        congestion.sample(total, &Config { weight: 1.0, ..config });
        congestion.normalized_pb(&config) * congestion.outgoing
    };
    for bandwidth_bps in [1_000_000, 5_500_000, 11_000_000, 54_000_000] {
        for busy in [20, 40, 41, 60, 90, 98] {
            let (there, published) =
                (own_share_to_drop(bandwidth_bps, busy), own_share_to_drop(2_000_000, busy));
            assert!(close(there, published), "{bandwidth_bps} bit/s, {busy} %: {there} {published}");
        }
    }
}

// ---- NCN, senders ----

/// A node for which all four conditions hold; congestion is below total.
fn sufferer(config: Config) -> Node {
    let mut n = Node::new(config);
    n.hear(5);
    n.pass(ms(3000), (90, 5, 5));
    n.hear(5);
    let _ = n.down();
    n.sent.clear();
    n
}

#[test]
fn a_node_that_suffers_sends_a_notice_each_interval() {
    let mut n = sufferer(Config::PAPER);
    n.pass(ms(999), (90, 5, 5));
    assert_eq!(n.sent.len(), 2);
    let Outgoing { to, notice } = n.sent[1];
    assert_eq!((to, notice.lifetime, notice.about), (To::Neighbour(node(5)), ms(2000), About::Sender));
    let average = n.red.average();
    let expected = 0.14 * (average - 100.0) / 140.0 / average;
    assert!((notice.normalized_pb.get() - expected).abs() < 1e-6, "{} {expected}", notice.normalized_pb);
}

#[test]
fn a_notice_that_is_due_with_a_sample_tells_of_that_sample() {
    let every_sample = Config { weight: 1.0, sampling: ms(1000), ..Config::PAPER };
    let (first_look, _) = Node::new(every_sample).red.poll_timeout().expect("it looks, and samples later");
    let sampling = first_look.since(Instant::ZERO);
    let mut n = Node::new(Config { sampling, ..every_sample });
    n.hear(5);
    let _ = n.down();
    n.pass(sampling, (90, 5, 5));
    assert!(close(n.red.average(), 0.9 * 2e6 / 8192.0), "{}", n.red.average());
    let told: Vec<f64> = n.sent.iter().map(|sent| sent.notice.normalized_pb.get()).collect();
    let average = n.red.average();
    assert!(told.len() == 1, "there was no congestion before this sample: {told:?}");
    assert!((told[0] - 0.14 * (average - 100.0) / 140.0 / average).abs() < 1e-6, "{told:?}");
}

#[test]
fn total_congestion_says_drop_everything() {
    let mut n = sufferer(Config::PAPER);
    n.pass(ms(5000), (100, 5, 5));
    let _ = n.down();
    n.sent.clear();
    n.pass(ms(500), (100, 5, 5));
    assert_eq!(n.sent[0].notice.normalized_pb, NormalizedPb::ONE);
}

#[test]
fn without_congestion_there_is_no_notice() {
    let mut n = sufferer(Config::PAPER);
    n.pass(ms(3000), (30, 5, 5));
    let _ = n.down();
    n.sent.clear();
    n.pass(ms(1000), (30, 5, 5));
    assert_eq!(n.sent, []);
}

#[test]
fn off_the_paths_of_flows_there_is_no_notice() {
    let mut n = sufferer(Config { flow_memory: Duration::from_secs(1), ..Config::PAPER });
    n.pass(ms(1600), (90, 5, 5));
    n.sent.clear();
    n.pass(ms(3000), (90, 5, 5));
    assert_eq!(n.sent, [], "the last packet came more than a second ago");
    let _ = n.up();
    n.pass(ms(500), (90, 5, 5));
    assert_eq!(n.sent.len(), 1, "one that is received counts as well");
}

#[test]
fn a_flow_that_waits_for_its_timer_is_still_there() {
    let mut n = sufferer(Config::PAPER);
    let _ = n.down();
    n.pass(ms(58_000), (90, 5, 5));
    n.sent.clear();
    n.pass(ms(1500), (90, 5, 5));
    assert_eq!(n.sent.len(), 3, "a timer is backed off to 60 s");
    n.pass(ms(2000), (90, 5, 5));
    n.sent.clear();
    n.pass(ms(3000), (90, 5, 5));
    assert_eq!(n.sent, []);
}

#[test]
fn who_has_much_of_the_channel_sends_no_notice() {
    for (load, notices) in [((90, 30, 14), 2), ((90, 30, 16), 0)] {
        let mut n = sufferer(Config::PAPER);
        n.pass(ms(5000), load);
        let _ = n.down();
        n.sent.clear();
        n.pass(ms(999), load);
        assert_eq!(n.sent.len(), notices, "half of 90 is 45: {load:?}");
    }
}

#[test]
fn a_fair_share_is_that_of_one_among_the_active_neighbours() {
    let config = Config { suffering: Suffering::BelowFairShare, ..Config::PAPER };
    for (neighbours, notices) in [(2, 2), (4, 0)] {
        let mut n = sufferer(config);
        n.pass(ms(5000), (90, 10, 14));
        (0..neighbours).for_each(|i| {
            n.hear(10 + i);
        });
        let _ = n.down();
        n.sent.clear();
        n.pass(ms(999), (90, 10, 14));
        assert_eq!(n.sent.len(), notices, "24 of 90 beside {neighbours}");
    }
}

#[test]
fn who_was_told_of_worse_sends_no_notice() {
    let mut n = sufferer(Config::PAPER);
    n.get(7, notice(0.01));
    n.pass(ms(500), (90, 5, 5));
    assert_eq!(n.sent, [], "somebody is worse off");
    n.pass(ms(500), (90, 5, 5));
    assert_eq!(n.sent.len(), 1, "it was not told again in the interval after that");
    n.get(7, notice(1e-5));
    let _ = n.down();
    n.pass(ms(500), (90, 5, 5));
    assert_eq!(n.sent.len(), 2, "a smaller one is no reason");
}

#[test]
fn without_a_neighbour_or_if_asked_to_a_notice_goes_to_all() {
    let config = Config { delivery: Delivery::Broadcast, ..Config::PAPER };
    let mut n = sufferer(config);
    n.pass(ms(500), (90, 5, 5));
    assert_eq!(n.sent[0].to, To::Everyone);
    let mut alone = Node::new(Config::PAPER);
    alone.pass(ms(3000), (90, 5, 5));
    let _ = alone.down();
    alone.pass(ms(500), (90, 5, 5));
    assert_eq!(alone.sent[0].to, To::Everyone);
}

#[test]
fn every_active_neighbour_gets_its_turn() {
    let mut n = sufferer(Config::PAPER);
    for _ in 0..60 {
        (1..=3).for_each(|i| {
            n.hear(i);
        });
        let _ = n.down();
        n.pass(ms(500), (90, 5, 5));
    }
    let to = |i| n.sent.iter().filter(|sent| sent.to == To::Neighbour(node(i))).count();
    assert!((1..=3).all(|i| to(i) > 8), "{:?}", [to(1), to(2), to(3)]);
    assert!(to(5) <= 2, "it was not heard any more");
}

#[test]
fn a_node_that_only_watches_sends_nothing_and_drops_nothing() {
    let mut n = sufferer(Config { delivery: Delivery::None, incoming: Incoming::Relayed, ..Config::PAPER });
    n.pass(ms(5000), (90, 5, 5));
    assert!(n.red.average() > 100.0, "it sees congestion");
    assert_eq!((n.sent.len(), n.chosen(100, Node::down)), (0, 0));
    n.get(1, notice(5e-4));
    assert!(n.holds() > 0.0, "others may ask for something");
    let stats = n.red.stats();
    assert_eq!((n.sent.len(), stats.notices_sent, stats.notices_relayed), (0, 0, 0));
}

// ---- NCN, receivers ----

#[test]
fn the_largest_notice_holds_until_its_lifetime_ends() {
    let mut n = Node::new(Config::PAPER);
    n.get(1, notice(3e-4)).get(2, notice(5e-4)).get(3, notice(4e-4));
    assert!((n.holds() - 5e-4).abs() < 1e-9);
    assert_eq!(n.red.stats().ignored_smaller, 1);
    n.pass(ms(1999), (0, 0, 0));
    assert!(n.holds() > 0.0);
    n.pass(ms(1), (0, 0, 0));
    assert_eq!(n.holds(), 0.0);
    n.get(3, notice(1e-4));
    assert!((n.holds() - 1e-4).abs() < 1e-9, "what has ended is no larger one");
}

#[test]
fn a_newer_notice_of_the_same_node_replaces_its_older_one() {
    let mut n = Node::new(Config::PAPER);
    n.get(1, notice(5e-4)).get(1, notice(2e-4));
    assert!((n.holds() - 2e-4).abs() < 1e-9);
    n.get(1, Notice { lifetime: Duration::ZERO, ..notice(9e-4) });
    assert_eq!(n.holds(), 0.0, "a lifetime of nothing takes it back");
}

// ---- DNPD ----

/// Returns a node that sends and receives at this load, and has received a notice of this share.
fn neighbour(config: Config, load: Load, share: f64) -> Node {
    let mut n = Node::new(config);
    n.pass(ms(5000), load);
    n.get(1, notice(share));
    n
}

#[test]
fn without_a_notice_everything_enters() {
    let mut n = Node::new(Config::PAPER);
    n.pass(ms(5000), (100, 50, 50));
    assert_eq!(n.chosen(1000, Node::down) + n.chosen(1000, Node::up), 0);
}

#[test]
fn a_node_drops_its_share_evenly_and_no_more() {
    // avgtx is 0.4 · 244 = 98: pb = 0.04883, so that no two drops are farther apart than 1 / pb = 20.5 packets.
    let mut n = neighbour(Config::PAPER, (100, 40, 0), 5e-4);
    let at: Vec<usize> = (0..4000).filter(|_| n.down() != Verdict::Enter).collect();
    let gaps: Vec<usize> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|gap| *gap <= 21), "{gaps:?}");
    let mean = gaps.iter().sum::<usize>() as f64 / gaps.len() as f64;
    assert!((9.5..11.5).contains(&mean), "{mean}");
    assert_eq!(n.chosen(500, Node::up), 0, "it receives nothing");
    assert_eq!(n.red.stats().chosen_outgoing as usize, at.len());
}

#[test]
fn what_comes_up_is_judged_by_what_is_received() {
    let mut n = neighbour(Config::PAPER, (100, 0, 40), 5e-4);
    assert_eq!(n.chosen(500, Node::down), 0);
    let chosen = n.chosen(4000, Node::up);
    assert!((340..430).contains(&chosen), "{chosen}");
}

#[test]
fn who_has_more_of_the_channel_drops_more() {
    let of = |percent| neighbour(Config::PAPER, (100, percent, 0), 5e-4).chosen(8000, Node::down);
    let (little, much) = (of(10), of(60));
    assert!((4.0..8.0).contains(&(f64::from(much) / f64::from(little))), "{little} {much}");
}

#[test]
fn total_congestion_drops_everything_until_it_ends() {
    let mut n = neighbour(Config::PAPER, (100, 40, 10), 1.0);
    assert_eq!((n.down(), n.up()), (Verdict::Drop, Verdict::Drop));
    n.pass(ms(1999), (100, 40, 10));
    assert_eq!(n.down(), Verdict::Drop);
    n.pass(ms(1), (100, 40, 10));
    assert_eq!(n.down(), Verdict::Enter);
}

// ---- relaying of notices ----

#[test]
fn a_neighbour_passes_a_notice_on_once_and_drops_nothing_that_comes() {
    let config = Config { incoming: Incoming::Relayed, ..Config::PAPER };
    let mut n = neighbour(config, (100, 40, 40), 5e-4);
    let about = About::Neighbour(node(1));
    assert_eq!(n.sent.len(), 1);
    assert_eq!((n.sent[0].notice.about, n.sent[0].notice.lifetime), (about, ms(2000)));
    assert!(n.chosen(1000, Node::down) > 50);
    assert_eq!(n.chosen(1000, Node::up), 0);
    n.get(1, notice(5e-4)).get(1, notice(6e-4));
    assert_eq!(n.sent.len(), 1, "a flood is not passed on");
    n.pass(ms(250), (100, 40, 40)).get(1, notice(6e-4));
    assert_eq!(n.sent.len(), 2);
}

#[test]
fn neighbours_that_broadcast_the_same_notice_on_do_so_at_different_instants() {
    let relaying = |relay_jitter, number| {
        let (incoming, delivery) = (Incoming::Relayed, Delivery::Broadcast);
        let mut n = Node::new(Config { incoming, delivery, relay_jitter, ..Config::PAPER });
        n.red = NeighborhoodRed::new(
            *n.red.config(),
            node(0),
            Instant::ZERO,
            Stream::keyed(1, 1, number, Purpose::Queue),
        );
        let heard = n.get(1, notice(5e-4)).now;
        assert_eq!(n.red.stats().notices_relayed, 1);
        while n.sent.is_empty() {
            n.pass(Duration::from_micros(1), (0, 0, 0));
        }
        assert_eq!((n.sent[0].to, n.sent[0].notice.about), (To::Everyone, About::Neighbour(node(1))));
        n.now.since(heard)
    };
    let times = [0, 1, 2].map(|number| relaying(Config::PAPER.relay_jitter, number));
    assert!(times.iter().all(|time| *time <= ms(10)), "{times:?}");
    assert!(times[0] != times[1] && times[1] != times[2] && times[0] != times[2], "{times:?}");
    let in_step = [0, 1, 2].map(|number| relaying(Duration::ZERO, number));
    assert_eq!(in_step, [Duration::ZERO; 3]);
}

#[test]
fn what_was_passed_on_is_for_packets_to_who_passed_it_on() {
    let config = Config { incoming: Incoming::Relayed, ..Config::PAPER };
    let mut n = Node::new(config);
    n.pass(ms(5000), (100, 40, 0)).get(9, passed_on(5e-4, 1));
    assert!(n.chosen(1000, Node::down) > 50, "to node 9");
    assert_eq!((n.holds(), n.sent.len()), (0.0, 0), "it is not passed on again");
    let elsewhere = |n: &mut Node| n.red.admit(n.now, Coming::Down { next_hop: node(8) });
    assert_eq!(n.chosen(1000, elsewhere), 0);
    n.pass(ms(2000), (100, 40, 0));
    assert_eq!(n.chosen(1000, Node::down), 0);
}

#[test]
fn what_was_passed_on_needlessly_is_not_heeded() {
    let config = Config { incoming: Incoming::Relayed, ..Config::PAPER };
    let mut n = Node::new(config);
    n.pass(ms(5000), (100, 40, 0)).hear(1).get(9, passed_on(5e-4, 1));
    assert_eq!(n.red.stats().ignored_not_for_us, 1, "node 1 is a neighbour");
    n.get(9, passed_on(5e-4, 0));
    assert_eq!(n.red.stats().ignored_about_us, 1);
    let mut plain = Node::new(Config::PAPER);
    plain.get(9, passed_on(5e-4, 1));
    assert_eq!(plain.red.stats().ignored_not_for_us, 1, "notices are not passed on here");
    assert_eq!(n.chosen(1000, Node::down) + plain.chosen(1000, Node::down), 0);
}

#[test]
fn configurations_that_make_no_sense_are_refused() {
    assert_eq!(Config::PAPER.validate(), Ok(()));
    for (config, must) in [
        (Config { sampling: Duration::ZERO, ..Config::PAPER }, "a sampling interval"),
        (Config { weight: 0.0, ..Config::PAPER }, "a weight"),
        (Config { min_threshold: 240.0, ..Config::PAPER }, "min_threshold <"),
        (Config { lifetime: ms(999), ..Config::PAPER }, "a lifetime of at least two"),
        (Config { lifetime: ms(70_000), ..Config::PAPER }, "a lifetime of at most"),
        (Config { suffering: Suffering::BelowShare(0.0), ..Config::PAPER }, "a suffering share"),
        (Config { max_threshold: f64::INFINITY, ..Config::PAPER }, "a max_threshold that is a number"),
    ] {
        let problem = config.validate().unwrap_err();
        assert!(problem.starts_with(must), "{problem}");
    }
}

#[derive(Clone, Debug)]
enum Input {
    Pass(u64, Load),
    Hear(u8),
    Notice(u8, u32, u64, Option<u8>),
    Packet(bool),
}

fn any_input() -> impl Strategy<Value = Input> {
    let load = (0..=100_u64, 0..=60_u64, 0..=60_u64);
    prop_oneof![
        (0..3000_u64, load).prop_map(|(time, load)| Input::Pass(time, load)),
        any::<u8>().prop_map(Input::Hear),
        (any::<u8>(), any::<u32>(), 0..70_000_u64, any::<Option<u8>>())
            .prop_map(|(from, share, life, about)| Input::Notice(from, share, life, about)),
        any::<bool>().prop_map(Input::Packet),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_memory_is_bounded_and_the_same_happens_again(
        inputs in proptest::collection::vec(any_input(), 1..200),
        relayed: bool,
        guarded: bool,
    ) {
        let incoming = if relayed { Incoming::Relayed } else { Incoming::Dropped };
        let guard = if guarded { Guard::On(Limits::DEFAULT) } else { Guard::Off };
        let run = || {
            let mut n = Node::new(Config { incoming, guard, neighbours: 5.try_into().unwrap(), ..Config::PAPER });
            for input in inputs.clone() {
                match input {
                    Input::Pass(time, load) => { n.pass(ms(time), load); }
                    Input::Hear(who) => { n.hear(who); }
                    Input::Notice(from, share, life, about) => {
                        let about = about.map_or(About::Sender, |who| About::Neighbour(node(who)));
                        n.get(from, Notice {
                            normalized_pb: NormalizedPb::of(f64::from(share) / 1e9),
                            lifetime: ms(life),
                            about,
                        });
                    }
                    Input::Packet(down) => { let _ = if down { n.down() } else { n.up() }; }
                }
                assert!(n.red.entries().iter().all(|entries| *entries <= 5), "{:?}", n.red.entries());
                let [outgoing, incoming] = n.red.own_averages();
                for average in [n.red.average(), outgoing, incoming] {
                    assert!((0.0..=244.2).contains(&average), "{average}");
                }
                assert!(n.red.poll_timeout().is_some_and(|(at, _)| at > n.now));
            }
            (n.sent.clone(), *n.red.stats())
        };
        prop_assert_eq!(run(), run());
    }
}
