//! Summary of an emulation as JSON.

use hopline_emulate::{HostReport, Report};
use serde_json::{Value, json};

pub(super) fn json(report: &Report) -> String {
    let late = &report.lateness;
    let value = json!({
        "valid": report.is_valid(),
        "failure": report.failure,
        "duration_s": report.outcome.sim_time.as_secs_f64(),
        "lateness": {
            "events": late.packets,
            "mean_s": late.mean.as_secs_f64(),
            "p50_s": late.p50.as_secs_f64(),
            "p99_s": late.p99.as_secs_f64(),
            "max_s": late.max.as_secs_f64(),
            "share_over_1_ms": late.over_1_ms,
        },
        "nodes": report.hosts.iter().map(node).collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
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
