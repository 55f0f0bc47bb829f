//! What the link did.

use hopline_link::Counts;
use hopline_net::link::LinkStats;
use serde_json::{Value, json};

pub(super) fn text(stats: &LinkStats) -> String {
    let late = if stats.lateness.is_late() {
        "\nINVALID: more than 2 % of packets were more than 1 ms late; this machine is too busy for this link"
    } else {
        ""
    };
    let too_long = match stats.too_long {
        0 => String::new(),
        n => format!("\n{n} packets were too long for the path"),
    };
    format!(
        "there: {}\nback:  {}{too_long}\nthe link itself: {}{late}",
        way(&stats.forth),
        way(&stats.back),
        stats.lateness
    )
}

fn way(counts: &Counts) -> String {
    let share = 100.0 * lost(counts) as f64 / (counts.sent.max(1)) as f64;
    format!(
        "{} packets, {} delivered, {} lost ({share:.2} %): {} at random, {} by the queue, {} in outages",
        counts.sent,
        counts.delivered,
        lost(counts),
        counts.lost,
        counts.queue_drops,
        counts.blacked_out
    )
}

/// Packets that did not arrive, whatever became of them.
fn lost(counts: &Counts) -> u64 {
    counts.lost + counts.blacked_out + counts.queue_drops
}

pub(super) fn json(stats: &LinkStats, seed: u64) -> String {
    let late = &stats.lateness;
    let value = json!({
        "seed": seed,
        "there": values(&stats.forth),
        "back": values(&stats.back),
        "too_long": stats.too_long,
        "lateness": {
            "packets": late.packets,
            "mean_s": late.mean.as_secs_f64(),
            "p50_s": late.p50.as_secs_f64(),
            "p99_s": late.p99.as_secs_f64(),
            "max_s": late.max.as_secs_f64(),
            "share_over_1_ms": late.over_1_ms,
            "valid": !late.is_late(),
        },
    });
    format!("{value:#}\n")
}

fn values(counts: &Counts) -> Value {
    json!({
        "sent": counts.sent,
        "sent_bytes": counts.sent_bytes,
        "delivered": counts.delivered,
        "lost": counts.lost,
        "bursts": counts.bursts,
        "queue_drops": counts.queue_drops,
        "blacked_out": counts.blacked_out,
        "reordered": counts.reordered,
        "duplicated": counts.duplicated,
        "corrupted": counts.corrupted,
        "longest_queue": counts.longest_queue,
        "mean_wait_s": counts.mean_wait().as_secs_f64(),
    })
}
