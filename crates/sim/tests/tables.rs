//! A table of results: a change of behaviour reads as a diff.

use crate::support::{SpecBuilder, chain, grid, link, ns2_tcp, standing, wired};
use core::fmt::Write;
use hopline_routing::aodv;
use hopline_sim::{Outcome, Spec, simulate};

fn row(out: &mut String, name: &str, outcome: &Outcome) {
    for (n, flow) in outcome.flows.iter().enumerate() {
        let label = if n == 0 { name } else { "" };
        let kbps = flow.goodput_bps() / 1e3;
        let (sent, again, timeouts) = (flow.segments_sent, flow.retransmissions, flow.timeouts);
        writeln!(
            out,
            "{label:<24} {n:>4} {kbps:>9.1} {sent:>6} {again:>5} {timeouts:>8} {:>7.2}",
            flow.rtx_index_pct()
        )
        .expect("a string takes everything");
    }
}

fn table(rows: impl IntoIterator<Item = (String, Spec)>) -> String {
    let mut out = format!(
        "{:<24} {:>4} {:>9} {:>6} {:>5} {:>8} {:>7}\n",
        "network", "flow", "kb/s", "sent", "again", "timeouts", "rtx %"
    );
    for (name, spec) in rows {
        row(&mut out, &name, &simulate(&spec, 1));
    }
    out
}

#[test]
fn chains_by_length_window_and_routing() {
    let mut rows = Vec::new();
    for routing in ["static", "aodv"] {
        for window in [2, 8, 32] {
            for hops in [1, 2, 4, 8] {
                let spec = chain(hops).bulk(0, hops, ns2_tcp(window)).seconds(20);
                let spec = if routing == "aodv" { spec.aodv(aodv::Config::ns2_235()) } else { spec };
                rows.push((format!("{hops} hops, window {window:>2}, {routing}"), spec));
            }
        }
    }
    insta::assert_snapshot!(table(rows));
}

#[test]
fn flows_that_compete() {
    let lanes: Vec<_> = (0..6).map(|n| (200.0 * f64::from(n % 2), 300.0 * f64::from(n / 2))).collect();
    let cross: Vec<_> = (0..5)
        .map(|n| (200.0 * f64::from(n), 400.0))
        .chain([0.0, 200.0, 600.0, 800.0].map(|y| (400.0, y)))
        .collect();
    let tcp = ns2_tcp(8);
    let rows = [
        ("three lanes", standing(&lanes).bulk(0, 1, tcp).bulk(2, 3, tcp).bulk(4, 5, tcp)),
        ("cross", standing(&cross).bulk(0, 4, tcp).bulk(5, 8, tcp)),
        ("both ways, 4 hops", chain(4).bulk(0, 4, tcp).bulk(4, 0, tcp)),
        ("grid", (0..5).fold(grid(5), |spec, n| spec.bulk(5 * n, 5 * n + 4, tcp))),
        (
            "grid, AODV",
            (0..5).fold(grid(5).aodv(aodv::Config::ns2_235()), |spec, n| spec.bulk(n, 20 + n, tcp)),
        ),
    ];
    insta::assert_snapshot!(table(rows.map(|(name, spec)| (name.to_owned(), spec.seconds(20)))));
}

#[test]
fn variants_over_a_lossy_wire() {
    use hopline_core::Duration;
    use hopline_radio::phy::errors::{ErrorModel, Probability};
    let mut rows = Vec::new();
    for errors in [0.0, 1e-6, 5e-6] {
        let ber = ErrorModel::BitErrors(Probability::new(errors).expect("a probability"));
        let spec = wired(3)
            .link(link(0, 1, 10_000_000, Duration::from_millis(5), 50))
            .link(link(1, 2, 2_000_000, Duration::from_millis(1), 50))
            .change(|spec| spec.links[1].errors = [ber; 2])
            .seconds(20);
        for (name, tcp) in
            [("Reno", ns2_tcp(20).with_reno()), ("NewReno", ns2_tcp(20)), ("SACK", ns2_tcp(20).with_sack())]
        {
            rows.push((format!("{name}, {errors:.0e}"), spec.clone().bulk(0, 2, tcp)));
        }
    }
    insta::assert_snapshot!(table(rows));
}
