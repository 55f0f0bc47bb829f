//! Hostile nodes: how long their notices of Neighborhood RED silence others, with a guard and as published.

use crate::support::{SpecBuilder, at, disk, standing};
use hopline_core::{Duration, Instant, NodeId};
use hopline_queue::neighborhood_red::Config;
use hopline_queue::neighborhood_red::config::{IncomingPolicy, Limits, NoticeLimits};
use hopline_sim::outcome::FlowOutcome;
use hopline_sim::spec::{ForgedField, NeighborhoodSpec, NodeSet, NormalizedPb, NoticeFloodSpec};
use hopline_sim::{Outcome, Spec, simulate};
use hopline_transport::tcp;

const SECONDS: u64 = 120;
/// Start of the floods. It does not coincide with the sending of a datagram, which is every 20 ms; both would
/// go out at once.
const FLOOD_S: f64 = 20.007;
/// Time from one datagram to the next.
const INTERVAL: Duration = Duration::from_millis(20);
/// Allowance for the delay of a packet beyond its usual time: queues, back-off, retransmissions.
const SLACK: Duration = Duration::from_millis(200);

const GUARDED: Config = Config { notice_limits: NoticeLimits::On(Limits::DEFAULT), ..Config::PAPER };

/// Four nodes that hear each other: node 0 sends datagrams to node 1, node 2 is hostile, node 3 does nothing.
fn datagrams(config: Option<Config>, flood: NoticeFloodSpec) -> Outcome {
    simulate(&with(square().cbr(0, 1, 500, INTERVAL), config, flood), 1)
}

fn square() -> Spec {
    let spec = standing(&[(0.0, 0.0), (100.0, 0.0), (0.0, 100.0), (100.0, 100.0)]).seconds(SECONDS);
    spec.change(|spec| spec.radio = Some(disk(250.0)))
}

fn with(spec: Spec, config: Option<Config>, flood: NoticeFloodSpec) -> Spec {
    let neighborhood = config.map(|config| NeighborhoodSpec {
        config,
        members: NodeSet::All,
        observed: [].into(),
        observed_weight: config.weight,
    });
    spec.radio(|radio| radio.neighborhood = neighborhood)
        .change(|spec| spec.notice_flood_attackers = vec![flood])
}

/// Notices of total congestion that last as long as they can, ten a second, for 60 s.
fn flood() -> NoticeFloodSpec {
    NoticeFloodSpec {
        node: NodeId(2),
        start: at(FLOOD_S),
        stop: at(FLOOD_S + 60.0),
        interval: Duration::from_millis(100),
        normalized_pb: NormalizedPb::ONE,
        lifetime: Duration::from_millis(65_535),
        forge: ForgedField::Nothing,
    }
}

/// One of them.
fn once(lifetime: Duration) -> NoticeFloodSpec {
    NoticeFloodSpec { stop: at(FLOOD_S + 0.05), lifetime, ..flood() }
}

/// Packets that came from second `from` to second `to`, per hundred that were sent.
fn arrived_pct(flow: &FlowOutcome, from: u64, to: u64) -> u64 {
    let by = |second: u64| {
        let sample = flow.series.iter().find(|s| s.at == Instant::from_secs(second));
        sample.expect("a sample is taken every second").bytes_received
    };
    100 * (by(to) - by(from)) / (500 * 50 * (to - from))
}

#[test]
fn one_notice_stops_traffic_for_its_lifetime() {
    for lifetime in [1, 5, 30].map(Duration::from_secs) {
        let silence = datagrams(Some(Config::PAPER), once(lifetime)).flows[0].longest_silence;
        assert!(silence > lifetime - INTERVAL && silence < lifetime + SLACK, "{lifetime:?}: {silence:?}");
    }
}

#[test]
fn with_limits_one_notice_stops_traffic_for_the_accepted_lifetime() {
    let believed = Limits::DEFAULT.max_lifetime;
    let silence = datagrams(Some(GUARDED), once(Duration::from_secs(30))).flows[0].longest_silence;
    assert!(silence > believed - INTERVAL && silence < believed + SLACK, "{silence:?}");
}

#[test]
fn tcp_is_silent_for_at_most_twice_the_lifetime_and_its_shortest_timeout() {
    // RFC 6298 §5.5: each timeout doubles the next. One that ends just before the lifetime does began at half of it at the
    // latest, so that the next ends at twice the lifetime and one timeout of before.
    let over = tcp::Config::ns2_235().with_mss(512).with_window_clamp(Some(32));
    let silence = |config: Config, lifetime| {
        let spec = with(square().bulk(0, 1, over), Some(config), once(lifetime));
        simulate(&spec, 1).flows[0].longest_silence
    };
    let (long, believed) = (Duration::from_secs(10), Limits::DEFAULT.max_lifetime);
    for (config, held) in [(Config::PAPER, long), (GUARDED, believed)] {
        let silence = silence(config, long);
        let bound = held * 2 + Duration::from_secs(1) + SLACK;
        assert!(silence > held - SLACK && silence < bound, "{silence:?}");
    }
}

#[test]
fn a_flood_stops_traffic_until_the_last_lifetime_or_with_limits_for_a_sixth_of_the_time() {
    let published = &datagrams(Some(Config::PAPER), flood()).flows[0];
    assert_eq!(arrived_pct(published, 21, SECONDS), 0, "60 s, and then 65.5 s");
    let guarded = &datagrams(Some(GUARDED), flood()).flows[0];
    assert!(guarded.longest_silence < Limits::DEFAULT.max_lifetime + SLACK, "{:?}", guarded.longest_silence);
    // Five times silence and rest.
    let during = arrived_pct(guarded, 20, 80);
    assert!((75..=83).contains(&during), "ten of twelve seconds are 83 %: {during}");
    assert_eq!(arrived_pct(guarded, 83, SECONDS), 100);
}

#[test]
fn with_limits_forged_senders_are_ignored() {
    let forged = NoticeFloodSpec { forge: ForgedField::Senders, ..flood() };
    let published = &datagrams(Some(Config::PAPER), forged).flows[0];
    assert_eq!(
        arrived_pct(published, 21, 85),
        0,
        "the first holds, and others that say no more do not replace it"
    );
    let guarded = datagrams(Some(GUARDED), forged);
    assert!(guarded.flows[0].longest_silence < SLACK);
    let notices = guarded.nodes[0].notices;
    assert!(notices.received > 590 && notices.ignored == notices.received, "{notices:?}");
}

#[test]
fn forged_relayed_notices_affect_only_senders_to_the_attacker() {
    let forged = NoticeFloodSpec { forge: ForgedField::StarvedNodes, ..flood() };
    let relaying = |config| Some(Config { incoming: IncomingPolicy::Relayed, ..config });
    let to_the_liar = |config| {
        let spec = with(square().cbr(0, 2, 500, INTERVAL).cbr(0, 1, 500, INTERVAL), config, forged);
        simulate(&spec, 1)
    };
    let published = to_the_liar(relaying(Config::PAPER));
    let arrived = |outcome: &Outcome| [0, 1].map(|flow| arrived_pct(&outcome.flows[flow], 21, 85));
    assert_eq!(arrived(&published), [0, 100]);
    assert_eq!(arrived(&to_the_liar(Some(Config::PAPER))), [100, 100]);
    let guarded = to_the_liar(relaying(GUARDED));
    assert!(guarded.flows[0].longest_silence < Limits::DEFAULT.max_lifetime + SLACK);
}

#[test]
fn nodes_without_neighborhood_red_ignore_floods() {
    let outcome = datagrams(None, flood());
    assert_eq!(arrived_pct(&outcome.flows[0], 20, 80), 100);
    assert!(outcome.flows[0].longest_silence < SLACK);
    let idle = &outcome.nodes[3];
    assert_eq!((idle.frames.total(), idle.drops.total()), (0, 0), "no ICMP, nothing passed on");
    assert_eq!(outcome.nodes[2].frames.data, 600, "one frame a notice");
}

#[test]
fn floods_are_deterministic() {
    let run = || datagrams(Some(GUARDED), NoticeFloodSpec { forge: ForgedField::Senders, ..flood() });
    assert_eq!(run(), run());
}
