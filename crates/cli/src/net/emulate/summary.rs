//! Summary of an emulation: text and JSON.

use super::programs::{End, ProgramResult};
use super::results::Emulated;
use hopline_emulate::{HostReport, NetworkReport, Report};
use hopline_lab::record::Record;
use hopline_lab::text::packets;
use serde_json::{Value, json};
use std::fmt::Display;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

/// Returns flows, programs, and `last`: frames and the verdict.
pub(super) fn text(
    network: &NetworkReport,
    programs: &[ProgramResult],
    emulated: &Emulated,
    last: &dyn Display,
) -> String {
    // An empty line follows the table.
    let flows = Some(packets::flows(&emulated.done)).filter(|table| !table.is_empty());
    let uncounted = Some(network.flows.uncounted_packets).filter(|&packets| packets > 0);
    let uncounted =
        uncounted.map(|packets| format!("{packets} packets of further flows are not in the table"));
    let programs = programs.iter().map(ProgramResult::line);
    let lines = flows.into_iter().chain(uncounted).chain(programs).chain([last.to_string()]);
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the summary as an object, with the fields of `more`.
pub(super) fn json(
    network: &NetworkReport,
    programs: &[ProgramResult],
    emulated: &Emulated,
    more: Value,
) -> String {
    let run = Record { point: 0, run: 1, result: Ok(emulated.done.clone()) }.json();
    let mut value = json!({
        "failure": network.failure,
        "duration_s": network.outcome.sim_time.as_secs_f64(),
        "nodes": network.hosts.iter().map(node).collect::<Vec<_>>(),
        "flows": run["flows"],
        "uncounted_packets": network.flows.uncounted_packets,
        "programs": programs.iter().map(program).collect::<Vec<_>>(),
    });
    if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
        value.extend(more);
    }
    format!("{value:#}\n")
}

/// Returns the fields of an emulation in real time.
pub(super) fn lateness(report: &Report) -> Value {
    let late = &report.lateness;
    json!({
        "valid": report.is_valid(),
        "lateness": {
            "events": late.packets,
            "mean_s": late.mean.as_secs_f64(),
            "p50_s": late.p50.as_secs_f64(),
            "p99_s": late.p99.as_secs_f64(),
            "max_s": late.max.as_secs_f64(),
            "share_over_1_ms": late.over_1_ms,
        },
    })
}

fn program(result: &ProgramResult) -> Value {
    let (end, status): (&str, Option<ExitStatus>) = match result.end {
        End::Exited(status) => ("exited", Some(status)),
        End::Stopped(status) => ("stopped", Some(status)),
        End::NotStarted | End::CannotStart(_) => ("not started", None),
    };
    let reason = match &result.end {
        End::CannotStart(reason) => Some(reason),
        End::Exited(_) | End::Stopped(_) | End::NotStarted => None,
    };
    json!({
        "name": result.program.name,
        "node": result.node,
        "command": result.program.command,
        "started_s": result.started.map(|time| time.as_secs_f64()),
        "ended_s": result.ended.as_ref().map(Duration::as_secs_f64),
        "end": end,
        "reason": reason,
        "exit_code": status.and_then(|status| status.code()),
        "signal": status.and_then(|status| status.signal()),
    })
}

fn node(host: &HostReport) -> Value {
    let HostReport { name, tap, refused } = host;
    let drops = &tap.dropped;
    json!({
        "name": name,
        "sent": tap.accepted,
        "flooded": tap.flooded,
        "delivered": tap.delivered,
        "dropped": drops.total(),
        "held": tap.held,
        "drops": {
            "queue_full": drops.queue_full,
            "early": drops.early,
            "neighborhood": drops.neighborhood,
            "retry_limit": drops.retry_limit,
            "unresolved": drops.unresolved,
            "no_route": drops.no_route,
            "ttl": drops.ttl,
            "policed": drops.policed,
            "link_error": drops.link_error,
            "outage": drops.outage,
        },
        "received": tap.emitted,
        "filtered": tap.filtered,
        "refused": tap.malformed + tap.too_long,
        "refused_by_kernel": refused,
    })
}
