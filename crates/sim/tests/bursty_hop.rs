//! Proxies on last hops that lose nothing and deliver in bursts, with jitter or out of order.

use crate::support::last_hop::linux;
use crate::support::{SpecBuilder, link, wired};
use hopline_core::{Duration, NodeId};
use hopline_sim::spec::links::{LinkImpairments, Reordering};
use hopline_sim::spec::{MobileSide, ProxyKind, ProxySpec, hop_window, snoop};
use hopline_sim::{Spec, simulate};
use hopline_transport::tcp;

const MS: Duration = Duration::from_millis(1);

/// Returns a server, a station, a modem with a queue that reports nothing, and a mobile host behind it.
fn behind_a_modem(mbps: u64, quirks: LinkImpairments) -> Spec {
    let wide = |a, b, ms| link(a, b, 100_000_000, Duration::from_millis(ms), 2000);
    let mut hop = link(2, 3, mbps * 1_000_000, MS * 2, 100);
    hop.impairments = quirks;
    wired(4).link(wide(0, 1, 25)).link(link(1, 2, 1_000_000_000, Duration::ZERO, 2000)).link(hop)
}

fn snoop() -> Option<ProxyKind> {
    let hop_window = Some(hop_window::Config::DEFAULT);
    Some(ProxyKind::Snoop(snoop::Config { hop_window, ..snoop::Config::modern() }))
}

/// Goodput in Mb/s after the first three seconds, as `proxy` leaves it.
fn goodput(spec: &Spec, proxy: Option<ProxyKind>, sender: tcp::Config, seconds: u64) -> f64 {
    let mobile = MobileSide::Nodes([NodeId(3)].into());
    let proxies = proxy.map(|kind| ProxySpec { node: NodeId(1), mobile, kind }).into_iter().collect();
    let spec = spec.clone().change(|spec| spec.proxies = proxies).seconds(seconds).warmup(3.0);
    simulate(&spec.bulk(0, 3, sender), 1).flows[0].goodput_bps() / 1e6
}

fn slots(down: u64, up: u64) -> LinkImpairments {
    LinkImpairments { slots: [down, up].map(Duration::from_millis), ..LinkImpairments::default() }
}

fn jitter(down: u64, up: u64) -> LinkImpairments {
    LinkImpairments { jitter: [down, up].map(Duration::from_millis), ..LinkImpairments::default() }
}

fn late(share: f64, by: u64) -> LinkImpairments {
    LinkImpairments {
        reordering: [Some(Reordering { share, extra_delay: Duration::from_millis(by) }), None],
        ..LinkImpairments::default()
    }
}

fn senders() -> [(&'static str, tcp::Config); 2] {
    let cubic = linux().with_receive_buffer(6_291_456);
    [("cubic", cubic), ("bbr", cubic.with_bbr(tcp::BbrConfig::V1))]
}

/// A hop of 20 Mb/s: Snoop, with its window, has at least `share` of what there is without.
#[track_caller]
fn assert_low_cost(quirks: &LinkImpairments, share: f64) {
    for (sender, config) in senders() {
        let spec = behind_a_modem(20, quirks.clone());
        let [none, with] = [None, snoop()].map(|proxy| goodput(&spec, proxy, config, 12));
        assert!(with >= share * none, "{sender}: {with} Mb/s in place of {none}, {quirks:?}");
    }
}

#[test]
fn snoop_costs_little_on_a_bursty_hop() {
    for (down, up) in [(10, 0), (20, 20)] {
        assert_low_cost(&slots(down, up), 0.88);
    }
}

#[test]
fn snoop_costs_little_on_a_hop_with_jitter() {
    for (down, up) in [(20, 0), (0, 20)] {
        assert_low_cost(&jitter(down, up), 0.95);
    }
}

#[test]
fn snoop_costs_little_under_reordering() {
    for (share, by) in [(0.1, 1), (0.5, 4)] {
        assert_low_cost(&late(share, by), 0.95);
    }
}

/// Shares of goodput that Snoop leaves to CUBIC and to BBR, in the table of docs/which-proxy.md.
const TABLE: [(u64, Hop, [f64; 2]); 17] = [
    (20, Hop::Slots(5, 5), [0.99, 1.00]),
    (20, Hop::Slots(10, 0), [0.97, 1.00]),
    (20, Hop::Slots(10, 10), [0.95, 1.00]),
    (20, Hop::Slots(20, 0), [0.99, 1.00]),
    (20, Hop::Slots(0, 20), [0.99, 0.99]),
    (20, Hop::Slots(20, 20), [0.90, 0.99]),
    (20, Hop::Slots(40, 0), [0.87, 0.86]),
    (20, Hop::Slots(40, 40), [0.93, 0.99]),
    (20, Hop::Jitter(20, 0), [0.99, 1.00]),
    (20, Hop::Jitter(0, 20), [0.98, 0.99]),
    (20, Hop::Jitter(30, 0), [0.97, 0.99]),
    (20, Hop::Jitter(30, 30), [0.82, 0.88]),
    (20, Hop::Late(0.1, 1), [0.98, 0.98]),
    (20, Hop::Late(0.5, 4), [1.01, 0.99]),
    (100, Hop::Slots(7, 0), [1.00, 1.00]),
    (100, Hop::Slots(35, 0), [0.57, 0.64]),
    (100, Hop::Jitter(25, 0), [0.96, 0.46]),
];

/// Effect of a hop of the table, down and up, in milliseconds.
#[derive(Clone, Copy, Debug)]
enum Hop {
    Slots(u64, u64),
    Jitter(u64, u64),
    /// This share of the packets, down, by this time.
    Late(f64, u64),
}

impl Hop {
    fn impairments(self) -> LinkImpairments {
        match self {
            Self::Slots(down, up) => slots(down, up),
            Self::Jitter(down, up) => jitter(down, up),
            Self::Late(share, by) => late(share, by),
        }
    }
}

#[test]
#[ignore = "takes a minute; for the table of docs/which-proxy.md"]
fn shares_of_goodput_are_those_of_the_table() {
    let mut others = Vec::new();
    for (mbps, hop, shares) in TABLE {
        let spec = behind_a_modem(mbps, hop.impairments());
        for ((sender, config), share) in senders().into_iter().zip(shares) {
            let [none, with] = [None, snoop()].map(|proxy| goodput(&spec, proxy, config, 12));
            if (with / none - share).abs() > 0.005_1 {
                others.push(format!("{mbps} Mb/s, {hop:?}, {sender}: {:.3}, not {share}", with / none));
            }
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
}
