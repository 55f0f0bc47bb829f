//! Keys of Neighborhood RED.

use hopline_config::keys;
use hopline_config::schema::{Key, Literal};

/// `samples`.
pub const SAMPLES: Key = Key::text(
    "samples",
    "source of measured channel times; survey: the driver, by nl80211; file:PATH or socket:PATH: lines that another program writes",
).default(Literal::Word("survey")).example("\"survey\"");
/// `silence_s`.
pub const SILENCE_S: Key =
    Key::number("silence_s", 0.01, 3600.0, "silence of the source after which the channel counts as idle")
        .default(Literal::Number(1.0));
/// `notice_port`.
pub const NOTICE_PORT: Key =
    Key::integer("notice_port", 1, 65_535, "UDP port of notices, the same at all nodes")
        .default(Literal::Integer(1022));
/// `neighborhood_red`.
pub const NEIGHBORHOOD_RED: Key = Key::table(
    "neighborhood_red",
    keys::NEIGHBORHOOD_RED,
    "parameters of the algorithm, with the keys of scenarios; defaults that differ: delivery = broadcast, guard = on",
)
.example("{ bandwidth_mbps = 54 }");

/// Mandatory key of the algorithm.
pub(in crate::config) const MANDATORY_KEY: &str = "bandwidth_mbps";

/// Keys of the algorithm that only scenarios have.
pub(in crate::config) const SCENARIO_KEYS: &[&str] = &["share", "nodes", "observe", "observe_weight"];

/// Keys of Neighborhood RED.
pub(super) const NEIGHBORHOOD_KEYS: &[Key] = &[SAMPLES, SILENCE_S, NOTICE_PORT, NEIGHBORHOOD_RED];
