//! Ranges as the tables of keys state them are those of the services: a file takes both bounds of a range, and refuses a value
//! beyond either with an error that names the range.

use super::*;
use hopline_config::schema::{Key, Takes};

/// Keys that a kind takes in a narrower range than it is declared with, as its row in docs/proxy-keys.md says: least and
/// greatest value, and the words of the error.
const NARROWER: &[(&[keys::KindKey], &str, f64, f64, &str)] = &[
    (GATEWAYS, "max_connections", 1.0, 65_535.0, "1 to 65535"),
    (GATEWAYS, "buffer_bytes", 4096.0, 1_048_576.0, "4 KiB to 1 MiB"),
    (GATEWAYS, "connect_timeout_s", 0.1, 25.0, "100 ms to 25 s"),
    (TUNNELS, "mtu", 1336.0, 65_515.0, "1336"),
];
const GATEWAYS: &[keys::KindKey] = &[keys::KindKey::Gateway, keys::KindKey::GatewayExit];
const TUNNELS: &[keys::KindKey] = &[keys::KindKey::Opaque, keys::KindKey::Arq];

/// Ends of ranges that another key excludes, as the meaning of the key says, and the value nearest to it that is tried.
const EXCLUDED: &[(&str, f64, &str)] = &[("min_threshold_packets", 999_999.0, "below max_threshold_packets")];

/// Keys of a table that only scenarios have, as the error says.
const OF_SCENARIOS: &[&str] = &["share", "observe_weight"];

/// Returns lines with which both bounds of a key of a kind are valid, where they depend on other keys.
fn companions(kind: keys::KindKey, name: &str) -> &'static str {
    match name {
        "dup_ack_threshold" | "persist_ms" => "preset = \"published\"\n",
        "queue" if GATEWAYS.contains(&kind) => "announce = \"wlan0\"\n",
        "min_threshold_packets" => "max_threshold_packets = 1e6\n",
        "max_threshold_packets" => "min_threshold_packets = 0\n",
        "notice_interval_s" => "lifetime_s = 65.535\n",
        "lifetime_s" if kind == keys::KindKey::NeighborhoodRed => "notice_interval_s = 0.001\n",
        "guard_lifetime_s" | "guard_spacing_s" | "guard_rest_s" => "guard = \"on\"\n",
        _ => "",
    }
}

/// Range of a key of a kind, and the text by which errors name it.
struct Range {
    least: f64,
    greatest: f64,
    is_whole: bool,
    named: String,
}

impl Range {
    fn of(kind: keys::KindKey, key: &Key) -> Option<Self> {
        let (least, greatest, is_whole) = match key.takes {
            Takes::Number(min, max) | Takes::NumberOrTable(min, max, _) => (min, max, false),
            Takes::Integer(min, max) | Takes::IntegerOr(min, max, _) | Takes::Integers(min, max) => {
                (min as f64, max as f64, true)
            }
            _ => return None,
        };
        let narrower = NARROWER.iter().find(|(kinds, name, ..)| kinds.contains(&kind) && *name == key.name);
        Some(match narrower {
            Some(&(_, _, least, greatest, named)) => Self { least, greatest, is_whole, named: named.into() },
            None => Self { least, greatest, is_whole, named: key.expects() },
        })
    }

    /// Returns the values just beyond both ends.
    fn beyond(&self) -> [f64; 2] {
        match self.is_whole {
            true => [self.least - 1.0, self.greatest + 1.0],
            // Times are whole nanoseconds.
            false => [self.least - 1e-6, self.greatest + 1e-6 * self.greatest],
        }
    }

    /// Returns `value` of `key` as TOML.
    fn written(&self, key: &Key, value: f64) -> String {
        let value = if self.is_whole { format!("{value}") } else { format!("{value:e}") };
        match key.takes {
            Takes::Integers(..) => format!("[{value}]"),
            _ => value,
        }
    }
}

/// Files with their secrets.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for bytes in [16, 32] {
            secret(&folder.path().join(bytes.to_string()), "07".repeat(bytes));
        }
        Self(folder)
    }

    /// Reads `text`, in which the file of the key has its usual name.
    fn read(&self, kind: keys::KindKey, text: &str) -> Result<String, String> {
        let bytes = match kind {
            keys::KindKey::HomeAgent | keys::KindKey::BaseStation => "16",
            _ => "32",
        };
        let path = self.0.path().join(bytes).display().to_string();
        let text = text
            .replace("\"link.key\"", &format!("\"{path}\""))
            .replace("= drone-7.key", &format!("= {path}"))
            .replace("station.key", &self.0.path().join("16").display().to_string());
        read(&text).map(|config| format!("{config:?}"))
    }
}

/// Returns the problems with the range of `key`, for which `line` makes a file with a value.
fn problems(files: &Files, kind: keys::KindKey, key: &Key, file: impl Fn(&str) -> String) -> Vec<String> {
    let Some(range) = Range::of(kind, key) else { return Vec::new() };
    let try_value = |value: f64| {
        let line = format!("{} = {}", key.name, range.written(key, value));
        (line.clone(), files.read(kind, &file(&line)))
    };
    let place = format!("{} of {}", key.name, kind.word());
    let mut problems = Vec::new();
    let mut ends = [range.least, range.greatest];
    if let Some((_, near, stated)) = EXCLUDED.iter().find(|(name, ..)| *name == key.name) {
        assert!(key.doc.contains(stated), "{place} is {stated}, which its meaning does not say");
        ends[1] = *near;
    }
    let [(_, least), (_, greatest)] = ends.map(try_value);
    match (least, greatest) {
        (Ok(least), Ok(greatest)) if least == greatest => problems.push(format!("{place}: no effect")),
        (Ok(_), Ok(_)) => {}
        (Err(said), _) | (_, Err(said)) => problems.push(format!("{place}: {said}")),
    }
    for (line, result) in range.beyond().map(try_value) {
        match result {
            Ok(_) => problems.push(format!("{place}: {line} is accepted")),
            Err(said) if said.contains(&range.named) || said.contains(&key.expects()) => {}
            Err(said) => problems.push(format!("{place}: {line}: no range in: {said}")),
        }
    }
    problems
}

#[test]
fn a_stated_range_is_accepted_and_named_in_errors() {
    let files = Files::new();
    let mut wrong = Vec::new();
    for key in keys::FILE_KEYS {
        wrong.extend(problems(&files, keys::KindKey::Snoop, key, |line| format!("{line}\n{SNOOP}")));
    }
    for &kind in keys::KindKey::ALL {
        let least = keys::minimal_section(kind);
        for key in keys::PROXY_KEYS.iter().filter(|key| kind.takes(key.name)) {
            let more = companions(kind, key.name);
            wrong.extend(problems(&files, kind, key, |line| format!("{least}\n{more}{line}\n")));
            let Takes::Table(table) = key.takes else { continue };
            let is_other = |line: &&str| !line.starts_with(&format!("{} = ", key.name));
            let others: String = least.lines().filter(is_other).map(|line| format!("{line}\n")).collect();
            for below in table.iter().filter(|below| !OF_SCENARIOS.contains(&below.name)) {
                // Connections move from a base station of the same file alone; a table of Neighborhood RED needs a rate.
                let (before, needed) = match key.name {
                    "moves" => (STATION, "stations = [\"192.0.2.12\"]\n"),
                    "neighborhood_red" if below.name != "bandwidth_mbps" => ("", "bandwidth_mbps = 54\n"),
                    _ => ("", ""),
                };
                let more = companions(kind, below.name);
                let file =
                    |line: &str| format!("{before}{others}[proxy.{}]\n{needed}{more}{line}\n", key.name);
                wrong.extend(problems(&files, kind, below, file));
            }
        }
    }
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
}

/// Base station of the interface of the shortest split.
const STATION: &str = "[[proxy]]\nname = \"station\"\nkind = \"base-station\"\naddress = \"192.0.2.11\"\nhome_agent = \"192.0.2.1\"\n\
    network = \"10.9.0.0/24\"\nwired = \"eth0\"\ninterface = \"wlan0\"\nkey_file = \"station.key\"\n";

#[test]
fn the_page_states_a_narrower_range_of_a_kind() {
    let reference = keys::reference();
    for (kinds, name, _, greatest, _) in NARROWER {
        for kind in *kinds {
            let heading = format!("\n### `{}`\n", kind.word());
            let (_, section) = reference.split_once(&heading).unwrap();
            let section = section.split("\n### ").next().unwrap();
            let row = section.lines().find(|line| line.starts_with(&format!("| `{name}` |"))).unwrap();
            let is_stated = row.contains(&format!("at most {greatest}")) || row.contains("or more");
            assert!(is_stated, "{row}: not the range of {}", kind.word());
        }
    }
}

/// Numeric keys without a unit at the end of their name: numbers of things, and numbers that only tell things apart.
const DIMENSIONLESS: &[&str] = &[
    "buffering",
    "beacons",
    "connections",
    "cwnd_max",
    "divert_queue",
    "dup_ack_threshold",
    "fast_retransmit",
    "listen_port",
    "local_limit",
    "mark",
    "max_connections",
    "max_trunks",
    "notice_port",
    "order_requests",
    "port",
    "ports",
    "queue",
    "route_table",
    "spare_connections",
];
/// Keys that are called as ip(8) calls them, in its unit: bytes.
const IN_BYTES: &[&str] = &["mtu"];

#[test]
fn every_numeric_key_has_a_unit_or_is_explicitly_without() {
    let all = keys::FILE_KEYS.iter().chain(keys::PROXY_KEYS);
    let without: BTreeSet<&str> = all
        .filter(|key| Range::of(keys::KindKey::Snoop, key).is_some())
        .map(|key| key.name)
        .filter(|name| hopline_config::unit::of(name).is_none())
        .collect();
    assert_eq!(without, DIMENSIONLESS.iter().chain(IN_BYTES).copied().collect());
}
