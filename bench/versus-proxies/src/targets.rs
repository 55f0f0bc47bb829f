//! Targets for Snoop with today's senders at 20 Mb/s, with random losses, for both places of the queue.

use crate::condition::Bottleneck;
use crate::middle::Middle;
use crate::run::Measured;
use versus::table::{aligned, median};

/// Goodput of CUBIC, Mb/s.
const GOODPUT: [(&str, f64); 4] =
    [("loss 3 %", 16.8), ("loss 5 %", 16.5), ("loss 10 %", 15.7), ("loss 20 %", 12.3)];
/// Share of CUBIC's goodput without a proxy and without losses.
const HARMLESS: f64 = 0.99;
/// Losses at which Snoop must not cost BBR anything.
const BBR: [&str; 4] = ["loss 0 %", "loss 1 %", "loss 3 %", "loss 5 %"];

/// Returns a table of targets and results; empty if none was measured.
pub(crate) fn table(runs: &[Measured]) -> String {
    let places = [Bottleneck::Router, Bottleneck::Link];
    let rows: Vec<_> = places.into_iter().flat_map(|place| rows(place, runs)).collect();
    if rows.is_empty() {
        return String::new();
    }
    let heading =
        ["sender", "last hop", "", "target", "at least, Mb/s", "snoop modern, Mb/s", ""].map(String::from);
    let rows: Vec<_> = std::iter::once(heading.to_vec()).chain(rows).collect();
    format!("## Targets: Snoop modern at 20 Mb/s\n\n{}\n", aligned(&rows))
}

fn rows(place: Bottleneck, runs: &[Measured]) -> Vec<Vec<String>> {
    let of = |middle: Middle, sender: &str, condition: &str| {
        let is_it = |m: &&Measured| {
            (m.bottleneck, m.mbps) == (place.name(), 20)
                && (m.sender, m.condition.as_str()) == (sender, condition)
                && m.proxy == middle.name()
        };
        let goodputs: Vec<f64> = runs.iter().filter(is_it).map(|m| m.goodput_mbps).collect();
        (!goodputs.is_empty()).then(|| median(goodputs))
    };
    let (snoop, plain) = (Middle::SnoopModern, Middle::Plain);
    let row = |sender: &str, condition: &str, target: &str, least: Option<f64>| {
        row([sender, condition, place.name(), target], least, of(snoop, sender, condition))
    };
    let nothing = "loss 0 %";
    let harmless = of(plain, "cubic", nothing).map(|plain| HARMLESS * plain);
    let mut rows: Vec<_> = row("cubic", nothing, "0.99 of plain", harmless).into_iter().collect();
    rows.extend(GOODPUT.iter().filter_map(|&(on, least)| row("cubic", on, "as designed", Some(least))));
    rows.extend(BBR.iter().filter_map(|on| row("bbr", on, "plain", of(plain, "bbr", on))));
    rows
}

fn row(what: [&str; 4], least: Option<f64>, got: Option<f64>) -> Option<Vec<String>> {
    let (least, got) = (least?, got?);
    let verdict =
        if got >= least { "met".into() } else { format!("missed by {:.1} %", (1.0 - got / least) * 100.0) };
    let mut row = what.map(String::from).to_vec();
    row.extend([format!("{least:.2}"), format!("{got:.2}"), verdict]);
    Some(row)
}
