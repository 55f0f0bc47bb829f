//! `hopline proxy status`.

use super::daemon;
use crate::console;
use crate::net::args::ProxyStatus as Args;
use crate::problems::Failure;
use hopline_daemon::status::{Condition, ProxyStatus, ReadingKind, Status, Tracked};
use hopline_lab::text::table::{Align, render};
use std::fmt::Write;
use std::thread;
use std::time::Duration;

/// Interval of `--follow`.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);
/// Clears a terminal and moves to its upper left corner.
const CLEAR_SCREEN: &str = "\x1b[2J\x1b[H";

pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let place = daemon::daemon_id(&args.asked)?;
    let ask = || daemon::query(&place);
    let status = ask()?;
    if args.json {
        let text = serde_json::to_string_pretty(&status).expect("words and numbers");
        return console::print(&format!("{text}\n"));
    }
    if !args.follow {
        return console::print(&text(&status, None));
    }
    console::catch_interrupts()?;
    let mut before = status;
    while !console::interrupted() {
        thread::sleep(REFRESH_INTERVAL);
        let now = ask()?;
        console::print(&format!("{CLEAR_SCREEN}{}", text(&now, Some(&before))))?;
        before = now;
    }
    Ok(())
}

/// Returns a table for each proxy; with the status of a second ago, also the increase of each value.
fn text(status: &Status, before: Option<&Status>) -> String {
    let Status { name, version, process, running_s, reloads, sandbox, connection_tracking, proxies } = status;
    let mut text = format!(
        "{name}: hopline {version}, process {process}, running for {}, read again {reloads} times\n",
        time(*running_s)
    );
    if let Some(tracked) = connection_tracking {
        text.push_str(match tracked {
            Tracked::NotInUse => "connection tracking: not in use on this machine, and no rules for it\n",
            Tracked::InUse => "connection tracking: in use on this machine, and rules for it\n",
        });
    }
    for what in sandbox.iter().flat_map(|sandbox| &sandbox.unrestricted) {
        let _ = writeln!(text, "not restricted: {what}");
    }
    for proxy in proxies {
        let before = before.and_then(|before| before.proxies.iter().find(|other| other.name == proxy.name));
        let notices: String = proxy.notices.iter().map(|notice| format!("  {notice}\n")).collect();
        let _ = write!(text, "\n{}\n{notices}{}", heading(proxy), figures(proxy, before));
    }
    text
}

fn heading(proxy: &ProxyStatus) -> String {
    let ProxyStatus { name, kind, state, why, for_s, restarts, .. } = proxy;
    let state = match (state, why) {
        (Condition::Running, _) => format!("running for {}", time(*for_s)),
        (Condition::Waiting, Some(why)) => format!("NOT RUNNING for {}: {why}", time(*for_s)),
        (Condition::Waiting, None) => format!("NOT RUNNING for {}", time(*for_s)),
    };
    let restarts = if *restarts == 0 { String::new() } else { format!(", started again {restarts} times") };
    let kind = if kind == name { String::new() } else { format!(" ({kind})") };
    format!("{name}{kind}: {state}{restarts}")
}

fn figures(proxy: &ProxyStatus, before: Option<&ProxyStatus>) -> String {
    let rate = |name: &str, value: u64| {
        let earlier = before?.figures.iter().find(|figure| figure.name == name)?.value;
        Some(value.saturating_sub(earlier).to_string())
    };
    let rows: Vec<Vec<String>> = proxy
        .figures
        .iter()
        .map(|figure| {
            let rate = match figure.kind {
                ReadingKind::Counter => rate(&figure.name, figure.value),
                ReadingKind::Gauge => None,
            };
            vec![
                format!("  {}", figure.name),
                figure.value.to_string(),
                rate.unwrap_or_default(),
                figure.doc.clone(),
            ]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    render(
        &[
            ("", Align::Left),
            ("", Align::Right),
            (if before.is_some() { "/s" } else { "" }, Align::Right),
            ("", Align::Left),
        ],
        &rows,
    )
}

pub(super) fn time(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}
