//! Ranges as the key tables state them are those of the algorithms: a scenario takes both bounds of a range, and refuses a
//! value beyond either with an error that names the range.

use super::defaults::{LOSS, OUTAGE, WIRED, every_key, resolved, scenarios};
use super::*;
use crate::schema::{Key, Takes};
use std::collections::BTreeSet;

/// A node that moves, an obstacle, an outage, and a link with two rates.
const TABLES: &str = "\
duration_s = 10
[radio]
[[node]]
name = \"a\"
[[node.waypoints]]
at_s = 1
x_m = 10
y_m = 0
speed_mps = 1
[[node]]
name = \"b\"
x_m = 100
[[obstacle]]
loss_db = 3
x_m = 0
y_m = 0
width_m = 1
height_m = 1
[[link]]
a = \"a\"
b = \"b\"
rate_mbps = 10
delay_ms = 1
[[link.rate]]
from_s = 1
rate_mbps = 1
[[link.delay]]
from_s = 1
delay_ms = 1
[[outage]]
from = \"a\"
to = \"b\"
[[flow]]
src = \"a\"
dst = \"b\"
";

/// A wall between two nodes.
const WALL: &str = "\
duration_s = 10
[radio]
[[node]]
name = \"a\"
[[node]]
name = \"b\"
x_m = 100
[[obstacle]]
loss_db = 3
corners = [{ x_m = 50, y_m = 0 }, { x_m = 50, y_m = 50 }]
[[flow]]
src = \"a\"
dst = \"b\"
";

/// A grid and a node beside it.
const GRID: &str = "\
duration_s = 10
[nodes]
layout = \"grid\"
columns = 2
rows = 2
spacing_m = 100
[radio]
[[node]]
name = \"x\"
x_m = 50
[[flow]]
src = \"x\"
dst = \"n0\"
";

/// Nodes at random places, a node beside them, and flows from it to some of them.
const RANDOM: &str = "\
duration_s = 10
[nodes]
layout = \"random\"
count = 3
width_m = 100
height_m = 100
[radio]
[[node]]
name = \"x\"
[[flow]]
src = \"x\"
pairs = 1
";

/// Scenarios, beside those of [`scenarios`], with the tables, models and kinds that keys need, and with other keys wide enough
/// for both bounds of one.
const MORE: &[(&str, &[&str])] = &[
    (TABLES, &[]),
    (WALL, &[]),
    (GRID, &[]),
    (RANDOM, &[]),
    (RANDOM, &["flow.0.pairs=2"]),
    (OUTAGE, &["duration_s=0.01", "outage.0.end_s=0.0000005"]),
    (CHAIN, &["radio.errors.model=bit", "radio.errors.bit_error_rate=0.1"]),
    (CHAIN, &["radio.errors.model=every-nth", "radio.errors.nth=2"]),
    (LOSS, &["radio.loss.0.model=bit", "radio.loss.0.bit_error_rate=0.1"]),
    (LOSS, &["radio.loss.0.model=every-nth", "radio.loss.0.nth=2"]),
    (WIRED, &["link.0.errors.model=bit", "link.0.errors.bit_error_rate=0.1"]),
    (WIRED, &["link.0.errors.model=every-nth", "link.0.errors.nth=2"]),
    (
        WALL,
        &[
            "mobility.model=random-waypoint-stationary",
            "mobility.width_m=100",
            "mobility.height_m=100",
            "mobility.min_speed_mps=1",
            "mobility.max_speed_mps=10000",
        ],
    ),
    (
        CHAIN,
        &["routing.protocol=olsr", "routing.olsr.hysteresis=on", "routing.olsr.hysteresis_threshold_low=0"],
    ),
    (
        CHAIN,
        &["routing.protocol=olsr", "routing.olsr.hysteresis=on", "routing.olsr.hysteresis_threshold_high=1"],
    ),
    (CHAIN, &["warmup_s=0", "duration_s=1e7"]),
    (CHAIN, &["mac.cw_min=1"]),
    (CHAIN, &["mac.cw_max=32767"]),
    (CHAIN, &["tcp.min_rto_s=0"]),
    (CHAIN, &["tcp.max_rto_s=1e6"]),
    (CHAIN, &["tcp.window=1"]),
    (CHAIN, &["transport=tpa", "tpa.max_rto_s=1e6"]),
    (CHAIN, &["transport=tpa", "tpa.min_rto_s=0.001"]),
    (CHAIN, &["transport=tpa", "tpa.mss_bytes=1"]),
    (CHAIN, &["transport=tpa", "tpa.receive_buffer_bytes=1073741824"]),
    (CHAIN, &["transport=tpa", "tpa.block_segments=1", "tpa.mss_bytes=1"]),
    (CHAIN, &["transport=tpa-wide", "wide.receive_buffer_bytes=1073741824"]),
    (CHAIN, &["transport=tpa-wide", "wide.mss_bytes=64"]),
    (CHAIN, &["transport=tpa-wide", "wide.ack_delay_ms=0"]),
    (CHAIN, &["transport=tpa-wide", "wide.relaxed_ack_delay_ms=10000"]),
    (CHAIN, &["queue.discipline=red", "queue.max_threshold_packets=65535"]),
    (CHAIN, &["queue.discipline=red", "queue.min_threshold_packets=0"]),
    (CHAIN, &["queue.discipline=codel", "queue.interval_ms=100000"]),
    (CHAIN, &["queue.discipline=codel", "queue.target_ms=0.001"]),
    (CHAIN, &["neighborhood_red.max_threshold_packets=1e6"]),
    (CHAIN, &["neighborhood_red.min_threshold_packets=0"]),
    (CHAIN, &["neighborhood_red.lifetime_s=65.535"]),
    (CHAIN, &["neighborhood_red.notice_interval_s=0.001"]),
    (CHAIN, &["radio.propagation=log-distance"]),
    (CHAIN, &["radio.propagation=range-disk"]),
    (CHAIN, &["radio.propagation=range-disk", "radio.carrier_sense_range_m=1e6"]),
    (CHAIN, &["radio.range_m=1"]),
    (CHAIN, &["radio.propagation=range-disk", "radio.range_m=1", "radio.carrier_sense_range_m=1e6"]),
    (CHAIN, &["radio.preset=dot11a", "mac.data_rate_mbps=6"]),
    (CHAIN, &["flows.random=1", "flows.start_max_s=1e7"]),
    (CHAIN, &["flows.random=1", "flows.kind=cbr", "flows.rate_kbps=8"]),
    (
        CHAIN,
        &[
            "flow.0.kind=on-off",
            "flow.0.rate_kbps=8",
            "flow.0.on_s.draw=uniform",
            "flow.0.on_s.min=0",
            "flow.0.on_s.max=1e12",
        ],
    ),
    (
        CHAIN,
        &["flow.0.kind=on-off", "flow.0.rate_kbps=8", "flow.0.on_s.draw=exponential", "flow.0.on_s.mean=1"],
    ),
    (
        CHAIN,
        &[
            "flow.0.kind=on-off",
            "flow.0.rate_kbps=8",
            "flow.0.on_s.draw=log-normal",
            "flow.0.on_s.mean=1",
            "flow.0.on_s.deviation=1",
        ],
    ),
    (
        CHAIN,
        &[
            "flow.0.kind=on-off",
            "flow.0.rate_kbps=8",
            "flow.0.on_s.draw=bounded-pareto",
            "flow.0.on_s.min=1",
            "flow.0.on_s.max=2",
            "flow.0.on_s.shape=1",
        ],
    ),
    (CHAIN, &["flow.0.kind=request-response", "flow.0.request_bytes=1", "flow.0.response_bytes=1"]),
];

/// Keys with an upper bound that would take minutes or gigabytes: only the lower one is resolved.
const LARGE: &[&str] = &["nodes.count", "nodes.columns", "nodes.rows", "flow.0.pairs", "flows.random"];

/// Ends of ranges that another key excludes, as the meaning of the key says: the value nearest to it that is tried, and the other
/// key.
const EXCLUDED: &[(&str, &str, &str)] = &[
    ("warmup_s", "9999999", "below duration_s"),
    ("animation.from_s", "9999999", "below to_s"),
    ("animation.to_s", "0.001", "above from_s"),
    ("flow.0.stop_s", "0.001", "above start_s"),
    ("outage.0.end_s", "0.001", "above start_s"),
    ("notice_flood.0.stop_s", "0.001", "above start_s"),
    ("program.0.stop_s", "0.001", "above start_s"),
    ("queue.min_threshold_packets", "65534", "below max_threshold_packets"),
    ("neighborhood_red.min_threshold_packets", "999999", "below max_threshold_packets"),
];

/// Values around the ends of a range, as they are written.
struct Bounds {
    least: String,
    greatest: String,
    /// Values beyond either end, where TOML can write them.
    beyond: Vec<String>,
}

/// Returns the bounds of a key with a range.
fn bounds(key: &Key) -> Option<Bounds> {
    let whole = |min: u64, max: u64| {
        let beyond = [i128::from(min) - 1, i128::from(max) + 1];
        let beyond = beyond.into_iter().filter(|i| i64::try_from(*i).is_ok()).map(|i| i.to_string());
        Bounds { least: min.to_string(), greatest: max.to_string(), beyond: beyond.collect() }
    };
    Some(match key.takes {
        Takes::Number(min, max) | Takes::NumberOrTable(min, max, _) => Bounds {
            least: min.to_string(),
            greatest: max.to_string(),
            beyond: [min.next_down(), max.next_up()].map(|x| format!("{x:e}")).into(),
        },
        Takes::Integer(min, max) | Takes::IntegerOr(min, max, _) => whole(min, max),
        Takes::Integers(min, max) => {
            let Bounds { least, greatest, beyond } = whole(min, max);
            let list = |value: String| format!("[{value}]");
            Bounds {
                least: list(least),
                greatest: list(greatest),
                beyond: beyond.into_iter().map(list).collect(),
            }
        }
        _ => return None,
    })
}

/// Returns the scenarios in which bounds are tried.
fn all_scenarios() -> Vec<(String, Vec<String>)> {
    let owned = |(text, settings): (&str, Vec<String>)| (text.to_owned(), settings);
    let more = |(text, settings): &(&str, &[&str])| {
        ((*text).to_owned(), settings.iter().map(|&setting| setting.to_owned()).collect())
    };
    scenarios().into_iter().map(owned).chain(MORE.iter().map(more)).collect()
}

#[test]
fn both_ends_of_a_stated_range_are_accepted() {
    let scenarios: Vec<_> = all_scenarios()
        .into_iter()
        .map(|(text, settings)| {
            let spec =
                resolved(&text, &settings).unwrap_or_else(|problems| panic!("{settings:?}: {problems}"));
            (text, settings, spec)
        })
        .collect();
    let mut wrong = Vec::new();
    for (path, key) in every_key() {
        let Some(Bounds { mut least, mut greatest, .. }) = bounds(key) else { continue };
        if let Some((_, near, stated)) = EXCLUDED.iter().find(|(excluded, ..)| *excluded == path) {
            assert!(key.doc.contains(stated), "{path} is {stated}, which its meaning does not say");
            let is_lower = stated.starts_with("above");
            *(if is_lower { &mut least } else { &mut greatest }) = (*near).to_owned();
        }
        let is_large = LARGE.contains(&path.as_str());
        let mut problems = BTreeSet::new();
        let mut is_shown = [false, is_large];
        for (text, settings, without) in &scenarios {
            if is_shown == [true, true] {
                break;
            }
            let mut with = |value: &str| {
                let result = resolved(text, &[&settings[..], &[format!("{path}={value}")]].concat());
                result.map_err(|error| problems.insert(error.to_string())).ok()
            };
            let ends = [with(&least), if is_large { None } else { with(&greatest) }];
            // A value that makes no difference may not have been looked at.
            let differ = matches!(&ends, [Some(least), Some(greatest)] if least != greatest);
            for (shown, end) in is_shown.iter_mut().zip(&ends) {
                *shown |= end.as_ref().is_some_and(|end| differ || end != without);
            }
        }
        if is_shown != [true, true] {
            wrong.push((path, key.expects(), is_shown, problems));
        }
    }
    assert!(wrong.is_empty(), "{} ranges are not those of the algorithms: {wrong:#?}", wrong.len());
}

#[test]
fn beyond_a_stated_range_an_error_names_it() {
    let texts: BTreeSet<String> = all_scenarios().into_iter().map(|(text, _)| text).collect();
    let mut wrong = Vec::new();
    for (path, key) in every_key() {
        for value in bounds(key).into_iter().flat_map(|bounds| bounds.beyond) {
            let setting = format!("{path}={value}");
            let said: Vec<String> = texts
                .iter()
                .map(|text| match parse(text, &[&setting]) {
                    Ok(_) => "accepted".to_owned(),
                    Err(problems) => problems.to_string(),
                })
                .collect();
            let names_range = |said: &String| said.contains(&path) && said.contains(&key.expects());
            if said.iter().any(|said| said == "accepted") || !said.iter().any(names_range) {
                wrong.push((setting, said));
            }
        }
    }
    assert!(wrong.is_empty(), "{} are not refused with their range: {wrong:#?}", wrong.len());
}
