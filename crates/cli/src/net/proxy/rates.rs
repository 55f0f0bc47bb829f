//! Rates of a proxy between two status answers of its daemon, in the same units for every kind.

use hopline_daemon::status::{Condition, ProxyStatus, Status};
use serde::Serialize;
use std::time::Duration;

/// Counters of a proxy per second. `None`: its kind has no such counter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Rates {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) state: Condition,
    /// Reason why the proxy does not run.
    pub(super) why: Option<String>,
    /// Rate towards mobile hosts, the other end of the link, or servers.
    pub(super) out_packets_per_s: Option<f64>,
    pub(super) in_packets_per_s: Option<f64>,
    pub(super) out_bytes_per_s: Option<f64>,
    pub(super) in_bytes_per_s: Option<f64>,
    /// Packets that it retransmitted or restored.
    pub(super) repairs_per_s: Option<f64>,
    pub(super) drops_per_s: Option<f64>,
    pub(super) connections: Option<u64>,
    pub(super) notices: Vec<String>,
}

/// Names of counters, by their meaning.
struct CounterNames {
    out_packets: &'static [&'static str],
    in_packets: &'static [&'static str],
    out_bytes: &'static [&'static str],
    in_bytes: &'static [&'static str],
    repairs: &'static [&'static str],
    drops: &'static [&'static str],
    connections: &'static [&'static str],
}

const NO_COUNTERS: CounterNames = CounterNames {
    out_packets: &[],
    in_packets: &[],
    out_bytes: &[],
    in_bytes: &[],
    repairs: &[],
    drops: &[],
    connections: &[],
};

/// Counters of middleboxes in the path of TCP.
const MIDDLEBOX_COUNTERS: CounterNames = CounterNames {
    out_packets: &["segments_to_mobile"],
    in_packets: &["segments_from_mobile"],
    drops: &[
        "dropped_packets",
        "refused_packets",
        "queue_drops",
        "held_too_many_packets",
        "found_full_packets",
        "found_no_room_packets",
    ],
    connections: &["connections"],
    ..NO_COUNTERS
};

/// Returns the counters of a kind that are shown.
fn counters_of(kind: &str) -> CounterNames {
    match kind {
        "snoop" => CounterNames { repairs: &["local_retransmissions"], ..MIDDLEBOX_COUNTERS },
        "nack" => CounterNames { repairs: &["repaired_ranges"], ..MIDDLEBOX_COUNTERS },
        "nack-host" => CounterNames { repairs: &["local_retransmissions"], ..MIDDLEBOX_COUNTERS },
        "mtcp" => MIDDLEBOX_COUNTERS,
        "split" => CounterNames {
            out_bytes: &["to_servers_bytes"],
            in_bytes: &["to_clients_bytes"],
            connections: &["connections_open"],
            ..NO_COUNTERS
        },
        "gateway" | "gateway-exit" => CounterNames {
            out_bytes: &["out_bytes"],
            in_bytes: &["back_bytes"],
            connections: &["open_connections"],
            ..NO_COUNTERS
        },
        "d-proxy" => CounterNames {
            out_packets: &["segments_out"],
            in_packets: &["segments_in"],
            repairs: &["packets_sent_again"],
            drops: &["packets_refused"],
            connections: &["connections"],
            ..NO_COUNTERS
        },
        "opaque" | "arq" => CounterNames {
            out_packets: &["packets"],
            in_packets: &["packets_delivered"],
            out_bytes: &["datagrams_sent_bytes"],
            repairs: &["packets_sent_again", "packets_restored"],
            drops: &[
                "packets_refused",
                "packets_without_peer",
                "packets_interface_refused",
                "queue_full_dropped",
                "queue_late_dropped",
            ],
            ..NO_COUNTERS
        },
        "home-agent" => CounterNames {
            out_packets: &["tunnelled_packets"],
            drops: &["homeless_packets", "too_long_packets", "refused_packets"],
            ..NO_COUNTERS
        },
        "base-station" => CounterNames {
            out_packets: &["delivered_packets"],
            repairs: &["buffer_sent_packets", "local_retransmissions"],
            drops: &["unwanted_packets", "undelivered_packets", "too_long_packets"],
            ..NO_COUNTERS
        },
        "mobile-host" => CounterNames { in_packets: &["received_packets"], ..NO_COUNTERS },
        "neighborhood-red" => {
            CounterNames { out_packets: &["packets"], drops: &["packets_dropped"], ..NO_COUNTERS }
        }
        _ => NO_COUNTERS,
    }
}

/// Returns the rates of each proxy of `now` since `before`, which was received `time` earlier.
pub(super) fn between(before: &Status, now: &Status, time: Duration) -> Vec<Rates> {
    now.proxies
        .iter()
        .map(|proxy| {
            let earlier = before.proxies.iter().find(|other| other.name == proxy.name);
            rates(earlier, proxy, time)
        })
        .collect()
}

fn rates(before: Option<&ProxyStatus>, now: &ProxyStatus, time: Duration) -> Rates {
    let names = counters_of(&now.kind);
    let rate = |names: &[&str]| {
        let count = sum(now, names)?;
        let earlier = before.and_then(|before| sum(before, names)).unwrap_or(0);
        // A restarted proxy counts from 0.
        let more = count.checked_sub(earlier).unwrap_or(count);
        Some(more as f64 / time.as_secs_f64().max(f64::MIN_POSITIVE))
    };
    Rates {
        name: now.name.clone(),
        kind: now.kind.clone(),
        state: now.state,
        why: now.why.clone(),
        out_packets_per_s: rate(names.out_packets),
        in_packets_per_s: rate(names.in_packets),
        out_bytes_per_s: rate(names.out_bytes),
        in_bytes_per_s: rate(names.in_bytes),
        repairs_per_s: rate(names.repairs),
        drops_per_s: rate(names.drops),
        connections: sum(now, names.connections),
        notices: now.notices.clone(),
    }
}

/// Returns the sum of those of the counters `names` that the proxy has; `None` if it has none.
fn sum(proxy: &ProxyStatus, names: &[&str]) -> Option<u64> {
    let values = proxy.figures.iter().filter(|figure| names.contains(&figure.name.as_str()));
    values.map(|figure| figure.value).reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_daemon::config::keys::KindKey;
    use hopline_daemon::status::{Reading, ReadingKind};

    pub(super) fn status(kind: &str, figures: &[(&str, u64)]) -> Status {
        let reading = |&(name, value): &(&str, u64)| Reading {
            name: name.into(),
            doc: String::new(),
            kind: ReadingKind::Counter,
            value,
        };
        let proxy = ProxyStatus {
            name: "a".into(),
            kind: kind.into(),
            state: Condition::Running,
            why: None,
            notices: Vec::new(),
            for_s: 1,
            restarts: 0,
            figures: figures.iter().map(reading).collect(),
        };
        Status {
            name: "x".into(),
            version: "1".into(),
            process: 1,
            running_s: 1,
            reloads: 0,
            sandbox: None,
            connection_tracking: None,
            proxies: vec![proxy],
        }
    }

    #[test]
    fn rates_are_computed_over_the_elapsed_time() {
        let before =
            status("snoop", &[("segments_to_mobile", 100), ("dropped_packets", 1), ("connections", 9)]);
        let now = status(
            "snoop",
            &[
                ("segments_to_mobile", 300),
                ("dropped_packets", 2),
                ("queue_drops", 3),
                ("local_retransmissions", 6),
                ("connections", 7),
            ],
        );
        let rates = &between(&before, &now, Duration::from_secs(2))[0];
        assert_eq!((rates.out_packets_per_s, rates.drops_per_s), (Some(100.0), Some(2.0)));
        assert_eq!((rates.repairs_per_s, rates.connections), (Some(3.0), Some(7)));
        assert_eq!((rates.out_bytes_per_s, rates.in_packets_per_s), (None, None), "not counted, not 0");
    }

    #[test]
    fn a_restarted_proxy_counts_from_zero() {
        let [before, now] = [1000, 50].map(|count| status("gateway", &[("out_bytes", count)]));
        let rates = &between(&before, &now, Duration::from_secs(1))[0];
        assert_eq!(rates.out_bytes_per_s, Some(50.0));
    }

    #[test]
    fn every_kind_has_some_rate() {
        for kind in KindKey::ALL {
            let names = counters_of(kind.word());
            let shown = [names.out_packets, names.in_packets, names.out_bytes, names.in_bytes];
            assert!(shown.iter().any(|names| !names.is_empty()), "{}", kind.word());
        }
    }
}
