//! Summary of a link's counters.

use hopline_link::DirectionStats;
use hopline_tools::link::{Drops, LinkStats};
use serde_json::{Value, json};

/// Consequence of the link's own lateness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    OnTime,
    /// The results are doubtful.
    Late,
    /// The run has failed (`--strict`).
    Failed,
}

impl Verdict {
    pub(super) const fn of(late: bool, strict: bool) -> Self {
        match (late, strict) {
            (false, _) => Self::OnTime,
            (true, false) => Self::Late,
            (true, true) => Self::Failed,
        }
    }
}

pub(super) fn text(stats: &LinkStats, verdict: Verdict) -> String {
    let late = match verdict {
        Verdict::OnTime => "",
        Verdict::Late => {
            "\nwarning: LATE. More than 2 % of packets were more than 1 ms late: this machine is too busy for this link, and figures say little"
        }
        Verdict::Failed => {
            "\nLATE: more than 2 % of packets were more than 1 ms late; this machine is too busy for this link"
        }
    };
    let [forth, back] = &stats.drops;
    format!(
        "there: {}\nback:  {}\nthe link itself: {}{late}",
        direction_text(&stats.forward, forth),
        direction_text(&stats.reverse, back),
        stats.lateness
    )
}

/// Describes the packets of one direction and each cause of losses. Causes that only some links have are listed if they
/// occurred.
fn direction_text(counts: &DirectionStats, drops: &Drops) -> String {
    let (all, lost) = (counts.sent + drops.before_emulation(), lost(counts, drops));
    let share = 100.0 * lost as f64 / all.max(1) as f64;
    let mut text = format!(
        "{all} packets, {} delivered, {lost} lost ({share:.2} %): {} at random, {} by the queue, {} in outages",
        delivered(counts, drops),
        counts.losses,
        counts.queue_drops,
        counts.blackout_drops
    );
    for (number, cause) in [
        (drops.interface, "by the sender's interface, faster than the link's thread"),
        (drops.too_long, "too long for the path"),
        (drops.not_ip, "not IP"),
        (drops.unknown_port, "for ports that no host has"),
        (drops.refused, "refused by the receiver's kernel"),
    ] {
        if number > 0 {
            text += &format!(", {number} {cause}");
        }
    }
    text
}

/// Returns the number of packets that did not arrive, for any cause.
fn lost(counts: &DirectionStats, drops: &Drops) -> u64 {
    counts.losses
        + counts.blackout_drops
        + counts.queue_drops
        + drops.before_emulation()
        + drops.after_emulation()
}

/// Returns the number of delivered packets. Duplicates that the receiver's kernel dropped count as packets.
fn delivered(counts: &DirectionStats, drops: &Drops) -> u64 {
    counts.delivered.saturating_sub(drops.after_emulation())
}

pub(super) fn json(stats: &LinkStats, seed: u64) -> String {
    let late = &stats.lateness;
    let [forth, back] = &stats.drops;
    let value = json!({
        "seed": seed,
        "there": values(&stats.forward, forth),
        "back": values(&stats.reverse, back),
        "too_long": forth.too_long + back.too_long,
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

fn values(counts: &DirectionStats, drops: &Drops) -> Value {
    json!({
        "sent": counts.sent + drops.before_emulation(),
        "sent_bytes": counts.sent_bytes,
        "delivered": delivered(counts, drops),
        "lost": counts.losses,
        "bursts": counts.loss_bursts,
        "queue_drops": counts.queue_drops,
        "blacked_out": counts.blackout_drops,
        "reordered": counts.reordered,
        "duplicated": counts.duplicated,
        "corrupted": counts.corrupted,
        "interface_drops": drops.interface,
        "too_long": drops.too_long,
        "not_ip": drops.not_ip,
        "memberships": drops.memberships,
        "refused": drops.refused,
        "longest_queue": counts.max_queue,
        "mean_wait_s": counts.mean_queueing_delay().as_secs_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_is_delivered_or_counted_as_lost_by_a_cause() {
        let mut counts = DirectionStats::default();
        (counts.sent, counts.delivered) = (100, 90);
        (counts.losses, counts.queue_drops, counts.blackout_drops) = (6, 3, 1);
        let plain = "100 packets, 90 delivered, 10 lost (10.00 %): 6 at random, 3 by the queue, 1 in outages";
        assert_eq!(direction_text(&counts, &Drops::default()), plain);
        let drops = Drops { interface: 50, too_long: 7, refused: 2, memberships: 5, ..Drops::default() };
        assert_eq!(
            direction_text(&counts, &drops),
            "157 packets, 88 delivered, 69 lost (43.95 %): 6 at random, 3 by the queue, 1 in outages, 50 by the sender's interface, \
             faster than the link's thread, 7 too long for the path, 2 refused by the receiver's kernel"
        );
    }
}
