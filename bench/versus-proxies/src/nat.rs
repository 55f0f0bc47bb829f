//! Goodput of proxies on a router with address translation, compared with the same router without.

use crate::condition::{Addresses, Bottleneck};
use crate::run::Measured;
use versus::table::{aligned, distinct, median};

/// Minimum share of the goodput without translation.
const LEAST: f64 = 0.95;

/// Returns a table of both; empty if nothing was measured behind NAT.
pub(crate) fn table(runs: &[Measured]) -> String {
    let translated: Vec<_> = distinct(
        runs.iter()
            .filter(|run| run.addresses == Addresses::Translated)
            .map(|run| (run.sender, run.losses.as_str(), run.proxy.as_str())),
    );
    let rows: Vec<_> = translated.into_iter().filter_map(|what| row(runs, what)).collect();
    if rows.is_empty() {
        return String::new();
    }
    let heading =
        ["sender", "last hop", "proxy", "routed, Mb/s", "behind NAT, Mb/s", "share", ""].map(String::from);
    let rows: Vec<_> = std::iter::once(heading.to_vec()).chain(rows).collect();
    format!("## Behind NAT: 20 Mb/s, queue in the router\n\n{}\n", aligned(&rows))
}

fn row(runs: &[Measured], (sender, losses, proxy): (&str, &str, &str)) -> Option<Vec<String>> {
    let of = |addresses: Addresses| {
        let is_it = |run: &&Measured| {
            (run.bottleneck, run.mbps, run.addresses) == (Bottleneck::Router.name(), 20, addresses)
                && (run.sender, run.losses.as_str(), run.proxy.as_str()) == (sender, losses, proxy)
        };
        let goodputs: Vec<f64> = runs.iter().filter(is_it).map(|run| run.goodput_mbps).collect();
        (!goodputs.is_empty()).then(|| median(goodputs))
    };
    let (routed, behind) = (of(Addresses::Routed)?, of(Addresses::Translated)?);
    let share = behind / routed;
    let verdict = if share >= LEAST { "met" } else { "missed" };
    let figures = [format!("{routed:.2}"), format!("{behind:.2}"), format!("{share:.2}"), verdict.to_owned()];
    Some([sender, losses, proxy].into_iter().map(String::from).chain(figures).collect())
}
