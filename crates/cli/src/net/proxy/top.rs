//! `hopline proxy top`.

use super::keyboard::{Keyboard, PauseResult};
use super::rates::{self, Rates};
use super::{daemon, status};
use crate::console;
use crate::net::args::ProxyTop as Args;
use crate::net::clock;
use crate::problems::Failure;
use hopline_daemon::DaemonId;
use hopline_daemon::status::{Condition, Status};
use hopline_lab::text::table::{Align, render};
use serde_json::json;
use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// Interval between queries of the daemon.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);
/// Moves to the upper left corner of a terminal, erases the rest of a line, and the rest of the screen.
const CURSOR_HOME: &str = "\x1b[H";
const ERASE_LINE: &str = "\x1b[K";
const ERASE_SCREEN: &str = "\x1b[J";

pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let place = daemon::daemon_id(&args.asked)?;
    let mut before = StatusSample::of(&place)?;
    console::catch_interrupts()?;
    let shows = !args.json && !args.once && io::stdout().is_terminal();
    let mut keyboard = Keyboard::new();
    loop {
        let paused = keyboard.pause(REFRESH_INTERVAL).map_err(|error| Failure::Other(error.to_string()))?;
        if paused == PauseResult::Quit {
            return Ok(());
        }
        let now = StatusSample::of(&place)?;
        let rates = rates::between(&before.status, &now.status, now.at - before.at);
        console::print(&match (args.json, shows) {
            (true, _) => line(&now.status, &rates),
            (false, true) => screen(&text(&now.status, &rates)),
            (false, false) => text(&now.status, &rates),
        })?;
        if args.once || !args.json && !shows {
            return Ok(());
        }
        before = now;
    }
}

/// Status, and the time of its arrival.
struct StatusSample {
    status: Status,
    at: Instant,
}

impl StatusSample {
    fn of(place: &DaemonId) -> Result<Self, Failure> {
        Ok(Self { status: daemon::query(place)?, at: clock::now() })
    }
}

/// Returns a line of JSON.
fn line(status: &Status, rates: &[Rates]) -> String {
    let object = json!({
        "time_s": clock::time_of_day().as_secs_f64(),
        "name": status.name,
        "process": status.process,
        "proxies": rates,
    });
    format!("{object}\n")
}

/// Returns a text that overwrites the one before.
fn screen(text: &str) -> String {
    let lines: String = text.lines().map(|line| format!("{line}{ERASE_LINE}\n")).collect();
    format!("{CURSOR_HOME}{lines}q: end{ERASE_LINE}\n{ERASE_SCREEN}")
}

/// Returns a row for each proxy, and remarks below.
fn text(status: &Status, rates: &[Rates]) -> String {
    let Status { name, version, process, running_s, .. } = status;
    let running = status::time(*running_s);
    let mut text = format!("{name}: hopline {version}, process {process}, running for {running}\n\n");
    let header = [
        ("proxy", Align::Left),
        ("kind", Align::Left),
        ("state", Align::Left),
        ("out pkt/s", Align::Right),
        ("in pkt/s", Align::Right),
        ("out kB/s", Align::Right),
        ("in kB/s", Align::Right),
        ("repairs/s", Align::Right),
        ("drops/s", Align::Right),
        ("conns", Align::Right),
    ];
    text += &render(&header, &rates.iter().map(row).collect::<Vec<_>>());
    for proxy in rates {
        for notice in proxy.why.iter().chain(&proxy.notices) {
            let _ = writeln!(text, "{}: {}", proxy.name, printable(notice));
        }
    }
    text
}

fn row(proxy: &Rates) -> Vec<String> {
    let state = match proxy.state {
        Condition::Running => "running",
        Condition::Waiting => "WAITING",
    };
    let kilo = |rate: Option<f64>| number(rate.map(|rate| rate / 1e3));
    vec![
        printable(&proxy.name),
        proxy.kind.clone(),
        state.to_owned(),
        number(proxy.out_packets_per_s),
        number(proxy.in_packets_per_s),
        kilo(proxy.out_bytes_per_s),
        kilo(proxy.in_bytes_per_s),
        number(proxy.repairs_per_s),
        number(proxy.drops_per_s),
        proxy.connections.map_or_else(absent, |count| count.to_string()),
    ]
}

/// Formats a rate; small ones with one decimal.
fn number(rate: Option<f64>) -> String {
    match rate {
        None => absent(),
        Some(rate) if rate > 0.0 && rate < 9.95 => format!("{rate:.1}"),
        Some(rate) => format!("{rate:.0}"),
    }
}

fn absent() -> String {
    "-".to_owned()
}

/// Returns a text without control characters, which could move a terminal's cursor.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_rates_have_one_decimal_and_missing_ones_a_dash() {
        let numbers = [None, Some(0.0), Some(0.5), Some(9.94), Some(9.96), Some(1234.5)].map(number);
        assert_eq!(numbers, ["-", "0", "0.5", "9.9", "10", "1234"]);
    }

    #[test]
    fn control_characters_are_removed() {
        assert_eq!(printable("a\x1b[2Jb\n"), "a?[2Jb?");
    }

    #[test]
    fn each_line_of_a_screen_erases_the_previous_one() {
        assert_eq!(screen("a\nb\n"), "\x1b[Ha\x1b[K\nb\x1b[K\nq: end\x1b[K\n\x1b[J");
    }
}
