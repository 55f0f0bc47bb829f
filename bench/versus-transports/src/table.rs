//! Tables of medians in Markdown, also legible in a terminal.

use crate::cable::Fast;
use crate::plan::Part;
use crate::run::Measured;
use std::fmt::Write;
use versus::table::{aligned, cell, distinct, median};

/// One quantity: heading, value, digits.
type Column = (&'static str, fn(&Measured) -> Option<f64>, usize);

const GOODPUT: Column = ("Goodput, Mb/s", |m| Some(m.goodput_mbps), 2);
const PACKETS: Column =
    ("Packets sent per full packet's worth delivered", |m| Some(m.packets_per_delivered), 2);
const QUEUE_DROPS: Column = ("Dropped by the full queue, % of what was sent", |m| Some(m.queue_drop_pct), 1);
const QUEUE_WAIT: Column = ("Mean wait in the queue, ms", |m| Some(m.queue_wait_ms), 0);

const LINK_COLUMNS: [Column; 6] = [
    GOODPUT,
    PACKETS,
    ("Bytes sent per byte delivered", |m| Some(m.bytes_per_byte), 2),
    QUEUE_DROPS,
    ("Smoothed round-trip time at the end, as the transport says, ms", |m| m.srtt_ms, 0),
    QUEUE_WAIT,
];

const VARYING_COLUMNS: [Column; 5] = [
    GOODPUT,
    ("Goodput, % of what the link could carry", |m| Some(m.capacity_pct), 0),
    PACKETS,
    QUEUE_DROPS,
    QUEUE_WAIT,
];

const CROWD_COLUMNS: [Column; 7] = [
    ("Sum of goodputs, Mb/s", |m| Some(m.goodput_mbps), 2),
    ("Jain's index of the goodputs", |m| Some(m.jain), 2),
    ("Lowest goodput of a flow, % of the mean", |m| Some(m.lowest_pct), 0),
    ("Flows with an error, such as a connection that timed out", |m| Some(m.failed as f64), 0),
    PACKETS,
    QUEUE_DROPS,
    QUEUE_WAIT,
];

/// Returns the tables of a part, one of each quantity. Those of links that do not change are for each rate and delay.
pub(crate) fn tables(part: Part, runs: &[Measured]) -> String {
    let all: Vec<&Measured> = runs.iter().collect();
    match part {
        Part::Varying => quantities("Varying links", &all, &VARYING_COLUMNS),
        Part::Crowds => quantities("Crowds", &all, &CROWD_COLUMNS),
        Part::Links | Part::Cable => {
            let links = distinct(runs.iter().map(|m| (m.rate_mbps, m.delay_ms)));
            let of_link = |link: (u64, u64)| {
                let at: Vec<_> = runs.iter().filter(|m| (m.rate_mbps, m.delay_ms) == link).collect();
                quantities(&format!("{} Mb/s, {} ms one way", link.0, link.1), &at, &LINK_COLUMNS)
            };
            links.into_iter().map(of_link).collect()
        }
    }
}

fn quantities(title: &str, runs: &[&Measured], columns: &[Column]) -> String {
    let mut text = String::new();
    for &(heading, value, digits) in columns {
        let _ = writeln!(text, "### {title}: {heading}\n");
        text.push_str(&table(runs, value, digits));
        text.push('\n');
    }
    text
}

/// Returns the lateness of the link.
pub(crate) fn lateness(runs: &[Measured]) -> String {
    let n = runs.len().max(1) as f64;
    let mean = runs.iter().map(|m| m.link_late_mean_ms).sum::<f64>() / n;
    let over = runs.iter().map(|m| m.link_late_over_1ms_pct).sum::<f64>() / n;
    let worst = runs.iter().map(|m| m.link_late_max_ms).fold(0.0, f64::max);
    let p99 = median(runs.iter().map(|m| m.link_late_p99_ms).collect());
    let late = runs.iter().filter(|m| m.late).count();
    format!(
        "Lateness of the link over {} runs: mean {mean:.3} ms, p99 of the median run {p99:.2} ms, maximum {worst:.1} ms. \
         Late by more than 1 ms: {over:.2} % of packets. Runs beyond the bound (2 %) at each attempt: {late}, marked `*`.\n",
        runs.len()
    )
}

/// One quantity over the cable.
type FastColumn = (&'static str, fn(&Fast) -> f64, usize);

const FAST_COLUMNS: [FastColumn; 5] = [
    ("Mb/s", |m| m.goodput_mbps, 0),
    ("sender, s/GB", |m| m.sender_s_per_gb, 2),
    ("receiver, s/GB", |m| m.receiver_s_per_gb, 2),
    ("ksoftirqd, s/GB", |m| m.kernel_s_per_gb, 2),
    ("together, s/GB", |m| m.sender_s_per_gb + m.receiver_s_per_gb + m.kernel_s_per_gb, 2),
];

/// Returns goodput and cost over the cable, a table for each unit that crosses it.
pub(crate) fn cable(runs: &[Fast]) -> String {
    let mut text = String::new();
    for crossing in distinct(runs.iter().map(|m| m.crossing)) {
        let _ =
            writeln!(text, "### Over a cable, {crossing}: goodput, and processor seconds per 10⁹ bytes\n");
        let at = || runs.iter().filter(|m| m.crossing == crossing);
        let mut rows = vec![
            std::iter::once("").chain(FAST_COLUMNS.iter().map(|c| c.0)).map(String::from).collect::<Vec<_>>(),
        ];
        for peer in distinct(at().map(|m| m.peer.as_str())) {
            let of = |value: fn(&Fast) -> f64| at().filter(|m| m.peer == peer).map(value).collect();
            let cells = FAST_COLUMNS.iter().map(|&(_, value, digits)| cell(of(value), digits));
            rows.push(std::iter::once(peer.to_owned()).chain(cells).collect());
        }
        text.push_str(&aligned(&rows));
        text.push('\n');
    }
    text
}

fn table(runs: &[&Measured], value: fn(&Measured) -> Option<f64>, digits: usize) -> String {
    let conditions = distinct(runs.iter().map(|m| m.condition.as_str()));
    let peers = distinct(runs.iter().map(|m| m.peer.as_str()));
    let mut rows =
        vec![std::iter::once("").chain(conditions.iter().copied()).map(String::from).collect::<Vec<_>>()];
    for peer in peers {
        let mut row = vec![peer.to_owned()];
        for condition in &conditions {
            let of = runs.iter().filter(|m| m.peer == peer && m.condition == *condition);
            let of: Vec<&Measured> = of.copied().collect();
            let mark = if of.iter().any(|m| m.late) { "*" } else { "" };
            row.push(format!("{}{mark}", cell(of.iter().filter_map(|m| value(m)).collect(), digits)));
        }
        rows.push(row);
    }
    aligned(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(peer: &str, delay_ms: u64, condition: &str, goodput_mbps: f64) -> Measured {
        Measured {
            peer: peer.to_owned(),
            delay_ms,
            condition: condition.to_owned(),
            goodput_mbps,
            ..Measured::default()
        }
    }

    #[test]
    fn constant_links_have_tables_for_each_delay_and_the_other_parts_one_of_each_quantity() {
        let runs = [measured("a", 25, "steps", 9.0), measured("a", 10, "delay", 8.0)];
        let headings = |part| {
            let text = tables(part, &runs);
            text.lines().filter(|line| line.starts_with("###")).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(headings(Part::Links).len(), 2 * LINK_COLUMNS.len());
        assert_eq!(headings(Part::Varying).len(), VARYING_COLUMNS.len());
        assert_eq!(headings(Part::Crowds)[0], "### Crowds: Sum of goodputs, Mb/s");
    }

    #[test]
    fn a_table_has_a_row_for_each_peer_and_marks_late_runs() {
        let late = Measured { late: true, ..measured("b", 10, "delay", 7.0) };
        let runs = [measured("a", 25, "steps", 9.0), measured("a", 10, "delay", 8.0), late];
        let text = tables(Part::Varying, &runs);
        let rows: Vec<_> = text.lines().skip(2).take(4).collect();
        assert_eq!(
            rows,
            [
                "|   | steps | delay |",
                "| - | -----:| -----:|",
                "| a |  9.00 |  8.00 |",
                "| b |     – | 7.00* |"
            ]
        );
    }
}
