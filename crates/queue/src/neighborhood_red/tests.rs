mod hostile;

use super::channel::ChannelEstimator;
use super::config::{Delivery, IncomingPolicy, Limits, NoticeLimits, StarvationTest};
use super::*;
use crate::red::RedDecision;
use hopline_core::{Duration, Instant, LinkId, Purpose, RandomStream, StateMachine};
use hopline_wire::ncn::{NormalizedPb, Notice, StarvedNode};
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
struct TestNode {
    red: NeighborhoodRed,
    now: Instant,
    total: ChannelTime,
    sent: Vec<OutgoingNotice>,
}

impl TestNode {
    fn new(config: Config) -> Self {
        let stream = RandomStream::keyed(1, 1, 0, Purpose::Queue);
        Self {
            red: NeighborhoodRed::new(config, node(0), Instant::ZERO, stream),
            now: Instant::ZERO,
            total: ChannelTime::default(),
            sent: Vec::new(),
        }
    }

    /// Advances the time under a load, which the machine samples at the end of each interval.
    fn run_under_load(&mut self, time: Duration, load: Load) -> &mut Self {
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

    fn receive_frame(&mut self, n: u8) -> &mut Self {
        self.red.handle_signal(self.now, Signal::FrameReceived(node(n)));
        self
    }

    fn offer_outgoing(&mut self) -> RedDecision {
        self.red.admit(self.now, Arrival::Outgoing { next_hop: node(9) })
    }

    fn offer_incoming(&mut self) -> RedDecision {
        self.red.admit(self.now, Arrival::Incoming)
    }

    /// Delivers a frame of a neighbour with a notice.
    fn receive_notice(&mut self, from: u8, notice: Notice) -> &mut Self {
        self.receive_frame(from).receive_forged_notice(from, notice)
    }

    /// Delivers a notice from an address without a frame of that address.
    fn receive_forged_notice(&mut self, from: u8, notice: Notice) -> &mut Self {
        self.red.handle_packet(self.now, LinkId::ONLY, ReceivedNotice { from: node(from), notice });
        self.sent.extend(core::iter::from_fn(|| self.red.poll_transmit(self.now)));
        self
    }

    fn active_pb(&self) -> f64 {
        self.red.normalized_pb(self.now).get()
    }

    /// Returns the number of chosen packets out of `packets`.
    fn count_selected(&mut self, packets: u32, offer: fn(&mut Self) -> RedDecision) -> u32 {
        (0..packets).map(|_| u32::from(offer(self) != RedDecision::Enqueue)).sum()
    }
}

fn notice(share: f64) -> Notice {
    Notice { normalized_pb: NormalizedPb::of(share), lifetime: ms(2000), starved_node: StarvedNode::Sender }
}

fn relayed_notice(share: f64, sufferer: u8) -> Notice {
    Notice { starved_node: StarvedNode::Neighbour(node(sufferer)), ..notice(share) }
}

const SATURATED: Load = (100, 0, 0);

fn approx_eq(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6 * (1.0 + b.abs())
}

// ---- NCD ----

#[test]
fn averages_follow_the_shares_of_radio_time() {
    let mut n = TestNode::new(Config::PAPER);
    n.run_under_load(ms(300), (60, 20, 10));
    let full = 2e6 / 8192.0;
    let reached = 1.0 - 0.8_f64.powi(3);
    assert!(approx_eq(n.red.average(), 0.6 * full * reached), "{}", n.red.average());
    let [outgoing, incoming] = n.red.node_averages();
    assert!(approx_eq(outgoing, 0.2 * full * reached) && approx_eq(incoming, 0.1 * full * reached));
    assert!(approx_eq(n.red.latest(), 0.6 * full), "{}", n.red.latest());
    n.run_under_load(ms(10_000), SATURATED);
    assert!((n.red.average() - 244.14).abs() < 0.01, "{}", n.red.average());
}

#[test]
fn reset_totals_give_no_sample() {
    let mut congestion = ChannelEstimator::default();
    let total =
        |elapsed, busy| ChannelTime { elapsed: ms(elapsed), busy: ms(busy), ..ChannelTime::default() };
    congestion.sample(total(1000, 1000), &Config::PAPER);
    let before = congestion.average;
    congestion.sample(total(10, 10), &Config::PAPER);
    congestion.sample(total(10, 10), &Config::PAPER);
    assert!(approx_eq(congestion.average, before), "neither going back nor standing still says anything");
    congestion.sample(total(110, 10), &Config::PAPER);
    assert!(approx_eq(congestion.average, 0.8 * before), "from there on it counts");
}

#[test]
fn the_drop_probability_rises_between_the_thresholds() {
    let at = |all| {
        let mut congestion = ChannelEstimator::default();
        congestion.average = all;
        congestion.normalized_pb(&Config::PAPER)
    };
    assert_eq!((at(0.0), at(99.9), at(100.0)), (0.0, 0.0, 0.0));
    assert!(approx_eq(at(170.0), 0.07 / 170.0));
    assert!(approx_eq(at(239.9), 0.14 * 139.9 / 140.0 / 239.9));
    assert_eq!((at(240.0), at(1000.0)), (1.0, 1.0));
}

#[test]
fn equal_busy_time_is_equal_congestion_at_every_rate() {
    assert_eq!(Config::for_bandwidth(2_000_000), Config::PAPER);
    let own_share_to_drop = |bandwidth_bps: u64, busy: u64| {
        let config = Config::for_bandwidth(bandwidth_bps);
        let mut congestion = ChannelEstimator::default();
        let total = ChannelTime { elapsed: ms(100), busy: ms(busy), transmitting: ms(30), receiving: ms(5) };
        congestion.sample(total, &Config { weight: 1.0, ..config });
        congestion.normalized_pb(&config) * congestion.average_outgoing
    };
    for bandwidth_bps in [1_000_000, 5_500_000, 11_000_000, 54_000_000] {
        for busy in [20, 40, 41, 60, 90, 98] {
            let (there, published) =
                (own_share_to_drop(bandwidth_bps, busy), own_share_to_drop(2_000_000, busy));
            assert!(approx_eq(there, published), "{bandwidth_bps} bit/s, {busy} %: {there} {published}");
        }
    }
}

// ---- NCN, senders ----

/// A node for which all four conditions hold; congestion is below total.
fn starved_node(config: Config) -> TestNode {
    let mut n = TestNode::new(config);
    n.receive_frame(5);
    n.run_under_load(ms(3000), (90, 5, 5));
    n.receive_frame(5);
    let _ = n.offer_outgoing();
    n.sent.clear();
    n
}

#[test]
fn a_starved_node_sends_a_notice_each_interval() {
    let mut n = starved_node(Config::PAPER);
    n.run_under_load(ms(999), (90, 5, 5));
    assert_eq!(n.sent.len(), 2);
    let OutgoingNotice { to, notice } = n.sent[1];
    assert_eq!(
        (to, notice.lifetime, notice.starved_node),
        (Destination::Neighbour(node(5)), ms(2000), StarvedNode::Sender)
    );
    let average = n.red.average();
    let expected = 0.14 * (average - 100.0) / 140.0 / average;
    assert!((notice.normalized_pb.get() - expected).abs() < 1e-6, "{} {expected}", notice.normalized_pb);
}

#[test]
fn a_notice_due_with_a_sample_includes_it() {
    let every_sample = Config { weight: 1.0, sampling: ms(1000), ..Config::PAPER };
    let (first_look, _) =
        TestNode::new(every_sample).red.poll_timeout().expect("it looks, and samples later");
    let sampling = first_look.since(Instant::ZERO);
    let mut n = TestNode::new(Config { sampling, ..every_sample });
    n.receive_frame(5);
    let _ = n.offer_outgoing();
    n.run_under_load(sampling, (90, 5, 5));
    assert!(approx_eq(n.red.average(), 0.9 * 2e6 / 8192.0), "{}", n.red.average());
    let told: Vec<f64> = n.sent.iter().map(|sent| sent.notice.normalized_pb.get()).collect();
    let average = n.red.average();
    assert!(told.len() == 1, "there was no congestion before this sample: {told:?}");
    assert!((told[0] - 0.14 * (average - 100.0) / 140.0 / average).abs() < 1e-6, "{told:?}");
}

#[test]
fn total_congestion_requests_that_all_packets_be_dropped() {
    let mut n = starved_node(Config::PAPER);
    n.run_under_load(ms(5000), (100, 5, 5));
    let _ = n.offer_outgoing();
    n.sent.clear();
    n.run_under_load(ms(500), (100, 5, 5));
    assert_eq!(n.sent[0].notice.normalized_pb, NormalizedPb::ONE);
}

#[test]
fn without_congestion_there_is_no_notice() {
    let mut n = starved_node(Config::PAPER);
    n.run_under_load(ms(3000), (30, 5, 5));
    let _ = n.offer_outgoing();
    n.sent.clear();
    n.run_under_load(ms(1000), (30, 5, 5));
    assert_eq!(n.sent, []);
}

#[test]
fn off_the_paths_of_flows_there_is_no_notice() {
    let mut n = starved_node(Config { flow_memory: Duration::from_secs(1), ..Config::PAPER });
    n.run_under_load(ms(1600), (90, 5, 5));
    n.sent.clear();
    n.run_under_load(ms(3000), (90, 5, 5));
    assert_eq!(n.sent, [], "the last packet came more than a second ago");
    let _ = n.offer_incoming();
    n.run_under_load(ms(500), (90, 5, 5));
    assert_eq!(n.sent.len(), 1, "one that is received counts as well");
}

#[test]
fn a_flow_remains_on_its_path_for_the_flow_memory() {
    let mut n = starved_node(Config::PAPER);
    let _ = n.offer_outgoing();
    n.run_under_load(ms(58_000), (90, 5, 5));
    n.sent.clear();
    n.run_under_load(ms(1500), (90, 5, 5));
    assert_eq!(n.sent.len(), 3, "a timer is backed off to 60 s");
    n.run_under_load(ms(2000), (90, 5, 5));
    n.sent.clear();
    n.run_under_load(ms(3000), (90, 5, 5));
    assert_eq!(n.sent, []);
}

#[test]
fn a_node_with_a_large_share_sends_no_notice() {
    for (load, notices) in [((90, 30, 14), 2), ((90, 30, 16), 0)] {
        let mut n = starved_node(Config::PAPER);
        n.run_under_load(ms(5000), load);
        let _ = n.offer_outgoing();
        n.sent.clear();
        n.run_under_load(ms(999), load);
        assert_eq!(n.sent.len(), notices, "half of 90 is 45: {load:?}");
    }
}

#[test]
fn the_fair_share_counts_active_neighbours() {
    let config = Config { starvation: StarvationTest::BelowFairShare, ..Config::PAPER };
    for (neighbours, notices) in [(2, 2), (4, 0)] {
        let mut n = starved_node(config);
        n.run_under_load(ms(5000), (90, 10, 14));
        (0..neighbours).for_each(|i| {
            n.receive_frame(10 + i);
        });
        let _ = n.offer_outgoing();
        n.sent.clear();
        n.run_under_load(ms(999), (90, 10, 14));
        assert_eq!(n.sent.len(), notices, "24 of 90 beside {neighbours}");
    }
}

#[test]
fn a_node_that_received_a_larger_notice_sends_none() {
    let mut n = starved_node(Config::PAPER);
    n.receive_notice(7, notice(0.01));
    n.run_under_load(ms(500), (90, 5, 5));
    assert_eq!(n.sent, [], "somebody is worse off");
    n.run_under_load(ms(500), (90, 5, 5));
    assert_eq!(n.sent.len(), 1, "it was not told again in the interval after that");
    n.receive_notice(7, notice(1e-5));
    let _ = n.offer_outgoing();
    n.run_under_load(ms(500), (90, 5, 5));
    assert_eq!(n.sent.len(), 2, "a smaller one is no reason");
}

#[test]
fn without_neighbours_or_by_configuration_notices_are_broadcast() {
    let config = Config { delivery: Delivery::Broadcast, ..Config::PAPER };
    let mut n = starved_node(config);
    n.run_under_load(ms(500), (90, 5, 5));
    assert_eq!(n.sent[0].to, Destination::AllNeighbours);
    let mut alone = TestNode::new(Config::PAPER);
    alone.run_under_load(ms(3000), (90, 5, 5));
    let _ = alone.offer_outgoing();
    alone.run_under_load(ms(500), (90, 5, 5));
    assert_eq!(alone.sent[0].to, Destination::AllNeighbours);
}

#[test]
fn every_active_neighbour_is_drawn() {
    let mut n = starved_node(Config::PAPER);
    for _ in 0..60 {
        (1..=3).for_each(|i| {
            n.receive_frame(i);
        });
        let _ = n.offer_outgoing();
        n.run_under_load(ms(500), (90, 5, 5));
    }
    let to = |i| n.sent.iter().filter(|sent| sent.to == Destination::Neighbour(node(i))).count();
    assert!((1..=3).all(|i| to(i) > 8), "{:?}", [to(1), to(2), to(3)]);
    assert!(to(5) <= 2, "it was not heard any more");
}

#[test]
fn a_monitoring_node_sends_and_drops_nothing() {
    let mut n =
        starved_node(Config { delivery: Delivery::None, incoming: IncomingPolicy::Relayed, ..Config::PAPER });
    n.run_under_load(ms(5000), (90, 5, 5));
    assert!(n.red.average() > 100.0, "it sees congestion");
    assert_eq!((n.sent.len(), n.count_selected(100, TestNode::offer_outgoing)), (0, 0));
    n.receive_notice(1, notice(5e-4));
    assert!(n.active_pb() > 0.0, "others may ask for something");
    let stats = n.red.stats();
    assert_eq!((n.sent.len(), stats.notices_sent, stats.notices_relayed), (0, 0, 0));
}

// ---- NCN, receivers ----

#[test]
fn the_largest_notice_applies_until_its_lifetime_ends() {
    let mut n = TestNode::new(Config::PAPER);
    n.receive_notice(1, notice(3e-4)).receive_notice(2, notice(5e-4)).receive_notice(3, notice(4e-4));
    assert!((n.active_pb() - 5e-4).abs() < 1e-9);
    assert_eq!(n.red.stats().ignored_smaller, 1);
    n.run_under_load(ms(1999), (0, 0, 0));
    assert!(n.active_pb() > 0.0);
    n.run_under_load(ms(1), (0, 0, 0));
    assert_eq!(n.active_pb(), 0.0);
    n.receive_notice(3, notice(1e-4));
    assert!((n.active_pb() - 1e-4).abs() < 1e-9, "what has ended is no larger one");
}

#[test]
fn a_newer_notice_of_the_same_node_replaces_its_older_one() {
    let mut n = TestNode::new(Config::PAPER);
    n.receive_notice(1, notice(5e-4)).receive_notice(1, notice(2e-4));
    assert!((n.active_pb() - 2e-4).abs() < 1e-9);
    n.receive_notice(1, Notice { lifetime: Duration::ZERO, ..notice(9e-4) });
    assert_eq!(n.active_pb(), 0.0, "a lifetime of nothing takes it back");
}

// ---- DNPD ----

/// Returns a node that sends and receives at this load, and has received a notice of this share.
fn node_with_notice(config: Config, load: Load, share: f64) -> TestNode {
    let mut n = TestNode::new(config);
    n.run_under_load(ms(5000), load);
    n.receive_notice(1, notice(share));
    n
}

#[test]
fn without_a_notice_everything_enters() {
    let mut n = TestNode::new(Config::PAPER);
    n.run_under_load(ms(5000), (100, 50, 50));
    assert_eq!(
        n.count_selected(1000, TestNode::offer_outgoing) + n.count_selected(1000, TestNode::offer_incoming),
        0
    );
}

#[test]
fn a_node_drops_its_share_evenly_and_no_more() {
    // avgtx is 0.4 · 244 = 98: pb = 0.04883, so that no two drops are farther apart than 1 / pb = 20.5 packets.
    let mut n = node_with_notice(Config::PAPER, (100, 40, 0), 5e-4);
    let at: Vec<usize> = (0..4000).filter(|_| n.offer_outgoing() != RedDecision::Enqueue).collect();
    let gaps: Vec<usize> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|gap| *gap <= 21), "{gaps:?}");
    let mean = gaps.iter().sum::<usize>() as f64 / gaps.len() as f64;
    assert!((9.5..11.5).contains(&mean), "{mean}");
    assert_eq!(n.count_selected(500, TestNode::offer_incoming), 0, "it receives nothing");
    assert_eq!(n.red.stats().selected_outgoing as usize, at.len());
}

#[test]
fn incoming_packets_are_decided_by_the_incoming_average() {
    let mut n = node_with_notice(Config::PAPER, (100, 0, 40), 5e-4);
    assert_eq!(n.count_selected(500, TestNode::offer_outgoing), 0);
    let chosen = n.count_selected(4000, TestNode::offer_incoming);
    assert!((340..430).contains(&chosen), "{chosen}");
}

#[test]
fn a_node_with_a_larger_share_drops_more() {
    let of = |percent| {
        node_with_notice(Config::PAPER, (100, percent, 0), 5e-4)
            .count_selected(8000, TestNode::offer_outgoing)
    };
    let (little, much) = (of(10), of(60));
    assert!((4.0..8.0).contains(&(f64::from(much) / f64::from(little))), "{little} {much}");
}

#[test]
fn total_congestion_drops_everything_until_it_ends() {
    let mut n = node_with_notice(Config::PAPER, (100, 40, 10), 1.0);
    assert_eq!((n.offer_outgoing(), n.offer_incoming()), (RedDecision::Drop, RedDecision::Drop));
    n.run_under_load(ms(1999), (100, 40, 10));
    assert_eq!(n.offer_outgoing(), RedDecision::Drop);
    n.run_under_load(ms(1), (100, 40, 10));
    assert_eq!(n.offer_outgoing(), RedDecision::Enqueue);
}

// ---- relaying of notices ----

#[test]
fn a_relaying_neighbour_relays_once_and_drops_no_incoming_packet() {
    let config = Config { incoming: IncomingPolicy::Relayed, ..Config::PAPER };
    let mut n = node_with_notice(config, (100, 40, 40), 5e-4);
    let about = StarvedNode::Neighbour(node(1));
    assert_eq!(n.sent.len(), 1);
    assert_eq!((n.sent[0].notice.starved_node, n.sent[0].notice.lifetime), (about, ms(2000)));
    assert!(n.count_selected(1000, TestNode::offer_outgoing) > 50);
    assert_eq!(n.count_selected(1000, TestNode::offer_incoming), 0);
    n.receive_notice(1, notice(5e-4)).receive_notice(1, notice(6e-4));
    assert_eq!(n.sent.len(), 1, "a flood is not passed on");
    n.run_under_load(ms(250), (100, 40, 40)).receive_notice(1, notice(6e-4));
    assert_eq!(n.sent.len(), 2);
}

#[test]
fn relayed_broadcasts_are_jittered() {
    let relaying = |relay_jitter, number| {
        let (incoming, delivery) = (IncomingPolicy::Relayed, Delivery::Broadcast);
        let mut n = TestNode::new(Config { incoming, delivery, relay_jitter, ..Config::PAPER });
        n.red = NeighborhoodRed::new(
            *n.red.config(),
            node(0),
            Instant::ZERO,
            RandomStream::keyed(1, 1, number, Purpose::Queue),
        );
        let heard = n.receive_notice(1, notice(5e-4)).now;
        assert_eq!(n.red.stats().notices_relayed, 1);
        while n.sent.is_empty() {
            n.run_under_load(Duration::from_micros(1), (0, 0, 0));
        }
        assert_eq!(
            (n.sent[0].to, n.sent[0].notice.starved_node),
            (Destination::AllNeighbours, StarvedNode::Neighbour(node(1)))
        );
        n.now.since(heard)
    };
    let times = [0, 1, 2].map(|number| relaying(Config::PAPER.relay_jitter, number));
    assert!(times.iter().all(|time| *time <= ms(10)), "{times:?}");
    assert!(times[0] != times[1] && times[1] != times[2] && times[0] != times[2], "{times:?}");
    let in_step = [0, 1, 2].map(|number| relaying(Duration::ZERO, number));
    assert_eq!(in_step, [Duration::ZERO; 3]);
}

#[test]
fn a_relayed_notice_applies_to_packets_to_its_relay() {
    let config = Config { incoming: IncomingPolicy::Relayed, ..Config::PAPER };
    let mut n = TestNode::new(config);
    n.run_under_load(ms(5000), (100, 40, 0)).receive_notice(9, relayed_notice(5e-4, 1));
    assert!(n.count_selected(1000, TestNode::offer_outgoing) > 50, "to node 9");
    assert_eq!((n.active_pb(), n.sent.len()), (0.0, 0), "it is not passed on again");
    let elsewhere = |n: &mut TestNode| n.red.admit(n.now, Arrival::Outgoing { next_hop: node(8) });
    assert_eq!(n.count_selected(1000, elsewhere), 0);
    n.run_under_load(ms(2000), (100, 40, 0));
    assert_eq!(n.count_selected(1000, TestNode::offer_outgoing), 0);
}

#[test]
fn irrelevant_relayed_notices_are_ignored() {
    let config = Config { incoming: IncomingPolicy::Relayed, ..Config::PAPER };
    let mut n = TestNode::new(config);
    n.run_under_load(ms(5000), (100, 40, 0)).receive_frame(1).receive_notice(9, relayed_notice(5e-4, 1));
    assert_eq!(n.red.stats().ignored_not_for_us, 1, "node 1 is a neighbour");
    n.receive_notice(9, relayed_notice(5e-4, 0));
    assert_eq!(n.red.stats().ignored_about_us, 1);
    let mut plain = TestNode::new(Config::PAPER);
    plain.receive_notice(9, relayed_notice(5e-4, 1));
    assert_eq!(plain.red.stats().ignored_not_for_us, 1, "notices are not passed on here");
    assert_eq!(
        n.count_selected(1000, TestNode::offer_outgoing)
            + plain.count_selected(1000, TestNode::offer_outgoing),
        0
    );
}

#[test]
fn invalid_configurations_are_refused() {
    assert_eq!(Config::PAPER.validate(), Ok(()));
    for (config, must) in [
        (Config { sampling: Duration::ZERO, ..Config::PAPER }, "a sampling interval"),
        (Config { weight: 0.0, ..Config::PAPER }, "a weight"),
        (Config { min_threshold: 240.0, ..Config::PAPER }, "min_threshold <"),
        (Config { lifetime: ms(999), ..Config::PAPER }, "a lifetime of at least two"),
        (Config { lifetime: ms(70_000), ..Config::PAPER }, "a lifetime of at most"),
        (Config { starvation: StarvationTest::BelowShare(0.0), ..Config::PAPER }, "a suffering share"),
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
    fn arbitrary_inputs_keep_memory_bounded_and_are_deterministic(
        inputs in proptest::collection::vec(any_input(), 1..200),
        relayed: bool,
        guarded: bool,
    ) {
        let incoming = if relayed { IncomingPolicy::Relayed } else { IncomingPolicy::Dropped };
        let guard = if guarded { NoticeLimits::On(Limits::DEFAULT) } else { NoticeLimits::Off };
        let run = || {
            let mut n = TestNode::new(Config { incoming, notice_limits: guard, neighbours: 5.try_into().unwrap(), ..Config::PAPER });
            for input in inputs.clone() {
                match input {
                    Input::Pass(time, load) => { n.run_under_load(ms(time), load); }
                    Input::Hear(who) => { n.receive_frame(who); }
                    Input::Notice(from, share, life, about) => {
                        let about = about.map_or(StarvedNode::Sender, |who| StarvedNode::Neighbour(node(who)));
                        n.receive_notice(from, Notice {
                            normalized_pb: NormalizedPb::of(f64::from(share) / 1e9),
                            lifetime: ms(life),
                            starved_node: about,
                        });
                    }
                    Input::Packet(down) => { let _ = if down { n.offer_outgoing() } else { n.offer_incoming() }; }
                }
                assert!(n.red.table_sizes().iter().all(|entries| *entries <= 5), "{:?}", n.red.table_sizes());
                let [outgoing, incoming] = n.red.node_averages();
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
