//! Proxies on last hops that lose nothing and deliver in bursts, with jitter or out of order.

use crate::support::last_hop::linux;
use crate::support::{SpecBuilder, link, wired};
use hopline_core::{Duration, NodeId};
use hopline_radio::phy::errors::{ErrorModel, Probability};
use hopline_sim::spec::links::{LinkImpairments, Reordering};
use hopline_sim::spec::{MobileSide, ProxyKind, ProxySpec, hop_window, snoop};
use hopline_sim::{Spec, simulate};
use hopline_transport::tcp;

const MS: Duration = Duration::from_millis(1);

/// Returns a server, a station, a modem with a queue that reports nothing, and a mobile host behind it.
fn behind_a_modem(mbps: u64, quirks: LinkImpairments, loss: f64) -> Spec {
    let wide = |a, b, ms| link(a, b, 100_000_000, Duration::from_millis(ms), 2000);
    let mut hop = link(2, 3, mbps * 1_000_000, MS * 2, 100);
    hop.impairments = quirks;
    if loss > 0.0 {
        hop.errors[0] = ErrorModel::PacketLoss(Probability::new(loss).expect("a probability"));
    }
    wired(4).link(wide(0, 1, 25)).link(link(1, 2, 1_000_000_000, Duration::ZERO, 2000)).link(hop)
}

fn snoop(hop_window: bool) -> Option<ProxyKind> {
    let hop_window = hop_window.then_some(hop_window::Config::DEFAULT);
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
        let spec = behind_a_modem(20, quirks.clone(), 0.0);
        let [none, with] = [None, snoop(true)].map(|proxy| goodput(&spec, proxy, config, 12));
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

#[expect(clippy::print_stdout, reason = "it is what the tables are for")]
fn print_table(cells: impl IntoIterator<Item = (String, Spec)>) {
    for (name, spec) in cells {
        let mut line = format!("{name:32}");
        for (sender, config) in senders() {
            let run = |kind| goodput(&spec, kind, config, 12);
            let (none, with, without) = (run(None), run(snoop(true)), run(snoop(false)));
            line += &format!(" {sender} {none:6.2} window {with:6.2} {:4.2}", with / none);
            line += &format!(" off {without:6.2} {:4.2} |", without / none);
        }
        println!("{line}");
    }
}

#[test]
#[ignore = "prints a table: without a proxy, and Snoop with and without window"]
fn table() {
    let hop = |quirks, loss| behind_a_modem(20, quirks, loss);
    let mut cells = Vec::new();
    for (d, u) in [(0, 0), (5, 5), (10, 0), (10, 10), (20, 0), (0, 20), (20, 20), (40, 0), (40, 40)] {
        cells.push((format!("slots {d} {u}"), hop(slots(d, u), 0.0)));
    }
    for (d, u) in [(10, 0), (20, 0), (0, 20), (30, 0), (30, 30)] {
        cells.push((format!("jitter {d} {u}"), hop(jitter(d, u), 0.0)));
    }
    for (share, by) in [(0.1, 1), (0.3, 3), (0.5, 4), (0.02, 10)] {
        cells.push((format!("late {share} {by}"), hop(late(share, by), 0.0)));
    }
    cells.extend([0.01, 0.05, 0.1].map(|loss| (format!("lost {loss}"), hop(slots(0, 0), loss))));
    print_table(cells);
}

#[test]
#[ignore = "prints a table of hops for which nothing was chosen"]
fn table_of_other_hops() {
    let mut cells = Vec::new();
    for mbps in [5, 20, 100] {
        for ((d, u), loss) in [((7, 0), 0.0), ((7, 7), 0.0), ((35, 0), 0.0), ((3, 17), 0.0), ((7, 7), 0.02)] {
            cells
                .push((format!("{mbps} slots {d} {u} lost {loss}"), behind_a_modem(mbps, slots(d, u), loss)));
        }
        for ((d, u), loss) in [((15, 5), 0.0), ((25, 0), 0.0), ((15, 5), 0.02)] {
            cells.push((
                format!("{mbps} jitter {d} {u} lost {loss}"),
                behind_a_modem(mbps, jitter(d, u), loss),
            ));
        }
        for ((share, by), loss) in [((0.2, 2), 0.0), ((0.4, 6), 0.0), ((0.2, 2), 0.01)] {
            cells.push((
                format!("{mbps} late {share} {by} lost {loss}"),
                behind_a_modem(mbps, late(share, by), loss),
            ));
        }
        cells.extend([0.03, 0.1].map(|p| (format!("{mbps} lost {p}"), behind_a_modem(mbps, slots(0, 0), p))));
    }
    print_table(cells);
}
