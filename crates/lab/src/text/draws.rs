//! Text of a comparison on random networks, for a terminal.

use super::table::{Align, render};
use crate::counted::count_text;
use crate::draws::{Draw, Kind, Outcome, Quantiles, RatioToBbr, Results, Summary};

/// Number of networks that are listed by name.
const LISTED: usize = 10;

/// Meaning of the columns.
const LEGEND: &str = "\
performance: goodput, or inverse response time, as a share of the highest possible; beside other flows: the smaller of both
sides' shares of what is fair, at most 1. overhead: packets sent per delivered packet, times the share that the path lets through;
collapsed: networks with more than 1.1. p95 delay: 95th percentile of the one-way delay; on target: at least 0.9 of BBR's
goodput at no more than half its p95 delay.";

/// Describes the results; the first algorithm is the one of interest.
#[must_use]
pub fn describe(results: &Results<'_>) -> String {
    let Results { laws, draws, outcomes, .. } = *results;
    let summaries = Summary::all(results);
    let tables = [
        Some(overall(laws, &summaries)),
        varying(laws, &summaries),
        Some(by_kind(laws, &summaries)),
        Some(worst(laws, draws, outcomes)),
    ];
    let tables: Vec<String> = tables.into_iter().flatten().collect();
    format!("{}\n\n{}\n{LEGEND}\n", heading(results), tables.join("\n"))
}

/// Returns the number of networks, and that of networks with traces.
fn heading(results: &Results<'_>) -> String {
    let networks = format!("{} of seed {}", count_text(results.draws.len(), "random network"), results.seed);
    if results.trace_files == 0 {
        return networks;
    }
    format!(
        "{networks}, {} of them with rates from {}",
        results.traced(),
        count_text(results.trace_files, "trace file")
    )
}

/// Returns a row of ratios to BBR for each algorithm, if BBR is one of them.
fn varying(laws: &[String], summaries: &[Summary]) -> Option<String> {
    let ratios: Vec<(&String, RatioToBbr)> = laws
        .iter()
        .zip(summaries)
        .filter_map(|(name, summary)| Some((name, summary.varying_to_bbr?)))
        .collect();
    if ratios.is_empty() {
        return None;
    }
    let header = [
        ("of BBR, on networks that vary", Align::Left),
        ("goodput: median", Align::Right),
        ("p95 delay: median", Align::Right),
        ("both on target", Align::Right),
        ("networks", Align::Right),
    ];
    let row = |(name, ratio): &(&String, RatioToBbr)| {
        vec![
            (*name).clone(),
            format!("{:.2}", ratio.goodput),
            ratio.delay_p95.map_or("–".to_owned(), |delay| format!("{delay:.2}")),
            ratio.on_target.to_string(),
            ratio.count.to_string(),
        ]
    };
    Some(render(&header, &ratios.iter().map(row).collect::<Vec<_>>()))
}

/// Returns a row for each algorithm.
fn overall(laws: &[String], summaries: &[Summary]) -> String {
    let header = [
        "of best rival: median",
        "5 %",
        "least",
        "of ceiling: median",
        "5 %",
        "waits > 20 ms",
        "largest overhead",
        "collapsed",
        "Jain: 5 %",
        "others' share: 5 %",
    ];
    let header: Vec<_> =
        [("", Align::Left)].into_iter().chain(header.map(|name| (name, Align::Right))).collect();
    let row = |(name, summary): (&String, &Summary)| {
        vec![
            name.clone(),
            part(summary.of_best_rival, |q| q.median),
            part(summary.of_best_rival, |q| q.p5),
            part(summary.of_best_rival, |q| q.least),
            part(summary.of_ceiling, |q| q.median),
            part(summary.of_ceiling, |q| q.p5),
            summary.long_waits.map_or("–".into(), |share| format!("{:.0} %", share * 100.0)),
            summary.overhead.map_or("–".into(), |overhead| format!("{overhead:.2}")),
            summary.collapsed.to_string(),
            part(summary.jain, |q| q.p5),
            part(summary.other_share, |q| q.p5),
        ]
    };
    let rows: Vec<_> = laws.iter().zip(summaries).map(row).collect();
    render(&header, &rows)
}

/// Returns median and least ratio to the best rival by kind.
fn by_kind(laws: &[String], summaries: &[Summary]) -> String {
    let names = laws.iter().map(|law| (law.as_str(), Align::Right));
    let header: Vec<_> = [("of best rival: median, least", Align::Left), ("networks", Align::Right)]
        .into_iter()
        .chain(names)
        .collect();
    let row = |(index, kind): (usize, &Kind)| {
        let count = summaries.iter().filter_map(|s| s.by_kind[index]).map(|q| q.count).max().unwrap_or(0);
        let cells = summaries.iter().map(|s| match s.by_kind[index] {
            Some(q) => format!("{:.2} {:.2}", q.median, q.least),
            None => "–".to_owned(),
        });
        [kind.name().to_owned(), count.to_string()].into_iter().chain(cells).collect::<Vec<_>>()
    };
    render(&header, &Kind::ALL.iter().enumerate().map(row).collect::<Vec<_>>())
}

/// Returns the networks with the smallest ratios of the first algorithm, with the performance of all.
fn worst(laws: &[String], draws: &[Draw], outcomes: &[Vec<Outcome>]) -> String {
    let ratio = |all: &Vec<Outcome>| crate::draws::ratio_to_best_rival(all, 0);
    let mut ranked: Vec<_> =
        draws.iter().zip(outcomes).filter_map(|(draw, all)| Some((ratio(all)?, draw, all))).collect();
    ranked.sort_by(|one, other| one.0.total_cmp(&other.0));
    ranked.truncate(LISTED);
    let names = laws.iter().map(|law| (law.as_str(), Align::Right));
    let first = format!("least ratios of {}, with performance", laws[0]);
    let header: Vec<_> =
        [(first.as_str(), Align::Left), ("ratio", Align::Right)].into_iter().chain(names).collect();
    let row = |(ratio, draw, all): &(f64, &Draw, &Vec<Outcome>)| {
        let cells = all.iter().map(|one| one.performance.map_or("–".to_owned(), |p| format!("{p:.2}")));
        [draw.id.clone(), format!("{ratio:.2}")].into_iter().chain(cells).collect::<Vec<_>>()
    };
    render(&header, &ranked.iter().map(row).collect::<Vec<_>>())
}

fn part(quantiles: Option<Quantiles>, part: impl Fn(Quantiles) -> f64) -> String {
    quantiles.map_or("–".to_owned(), |q| format!("{:.2}", part(q)))
}
