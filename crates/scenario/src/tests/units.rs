//! Units of numeric keys: each has one at the end of its name, or stands in a list here.

use super::defaults::every_key;
use crate::schema::Takes;
use hopline_config::unit;
use std::collections::BTreeSet;

/// Numbers of things: packets, segments, nodes, round trips. Windows are in segments.
const COUNTS: &[&str] = &[
    "ack_every",
    "allowed_hello_loss",
    "attempts",
    "beacons",
    "block_segments",
    "block_size",
    "buffering",
    "cache_paths",
    "columns",
    "connections",
    "count",
    "cw_max",
    "cw_min",
    "cwnd_max",
    "dup_ack_threshold",
    "fast_retransmit",
    "feedback_acks",
    "flows",
    "futile_drains",
    "history_samples",
    "initial_window",
    "local_limit",
    "long_retry_limit",
    "low_rate_ack_every",
    "max_path",
    "max_request_retries",
    "max_salvage",
    "n_rc",
    "neighbour_hold_intervals",
    "net_diameter",
    "nth",
    "order_requests",
    "pairs",
    "parity_every",
    "prague_rtt_dependent_rounds",
    "probe_rounds",
    "random",
    "rows",
    "rreq_retries",
    "runs",
    "short_retry_limit",
    "spatial_factor",
    "th_ack",
    "th_cong",
    "th_rc",
    "th_route",
    "timeouts",
    "topology_hold_intervals",
    "transactions",
    "ttl_start",
    "window",
];

/// Probabilities, shares, weights, factors and exponents.
const RATIOS: &[&str] = &[
    "activation_share",
    "backoff_limit",
    "bad_to_good",
    "bbr_beta",
    "bbr_cwnd_gain",
    "bbr_headroom",
    "bbr_loss_threshold",
    "bbr_pacing_margin",
    "bit_error_rate",
    "bit_error_rate_bad",
    "bit_error_rate_good",
    "classic_weight",
    "contention_factor",
    "coupling_factor",
    "cubic_beta",
    "decrease_factor",
    "drain_fraction",
    "drain_gain",
    "empty_queue_fraction",
    "fraction",
    "g",
    "g1",
    "good_to_bad",
    "h",
    "h1",
    "headroom",
    "history_weight",
    "hysteresis_scaling",
    "hysteresis_threshold_high",
    "hysteresis_threshold_low",
    "jitter_weight",
    "loss_bad",
    "loss_good",
    "loss_threshold",
    "mark_threshold",
    "max_growth",
    "max_probability",
    "max_unobserved_loss",
    "normalized_pb",
    "observe_weight",
    "packet_loss",
    "path_loss_exponent",
    "prague_gain",
    "prague_loss_beta",
    "queueing_gain",
    "relaxed_ack_max_loss",
    "reordering_window_divisor",
    "request_backoff",
    "shape",
    "share",
    "suffering_share",
    "t1",
    "t2",
    "weight",
];

/// Numbers that only tell things apart, and the willingness of OLSR.
const NUMBERS: &[&str] = &["channels", "seed", "willingness"];

/// Keys with a unit that is not at the end of their name, each with a text of its meaning that states it.
const STATED: &[(&str, &str)] = &[
    ("cubic_c", "segments per second cubed"),
    // `draw` and its parameters are the same for sizes and times.
    ("deviation", "standard deviation"),
    ("max", "greatest value"),
    ("mean", "mean"),
    ("min", "least value"),
];

#[test]
fn every_numeric_key_has_a_unit_or_is_explicitly_without() {
    let mut listed: BTreeSet<&str> = [COUNTS, RATIOS, NUMBERS]
        .into_iter()
        .flatten()
        .chain(STATED.iter().map(|(name, _)| name))
        .copied()
        .collect();
    let is_number = |takes: Takes| {
        matches!(
            takes,
            Takes::Number(..)
                | Takes::Integer(..)
                | Takes::IntegerOr(..)
                | Takes::NumberOrTable(..)
                | Takes::Integers(..)
        )
    };
    let of_keys: BTreeSet<&str> =
        every_key().iter().filter(|(_, key)| is_number(key.takes)).map(|(_, key)| key.name).collect();
    let without: BTreeSet<&str> = of_keys.iter().copied().filter(|name| unit::of(name).is_none()).collect();
    let unlisted: Vec<_> = without.difference(&listed).collect();
    assert!(unlisted.is_empty(), "neither a unit nor listed here: {unlisted:?}");
    listed.retain(|name| !without.contains(name));
    assert!(listed.is_empty(), "listed, but no such key is without a unit: {listed:?}");
}

#[test]
fn a_unit_that_is_not_in_the_name_is_in_the_meaning() {
    for (name, stated) in STATED {
        let keys = every_key().into_iter().filter(|(_, key)| key.name == *name);
        let unsaid: Vec<String> =
            keys.filter(|(_, key)| !key.doc.contains(stated)).map(|(path, _)| path).collect();
        assert!(unsaid.is_empty(), "{stated} is not in the meaning of {unsaid:?}");
    }
}
