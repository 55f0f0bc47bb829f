//! The parameters in effect, as a result file records them.

use super::schema::{Literal, Section, Takes, USER_DEFINED_PREFIX};
use hopline_sim::custom::{AlgorithmKind, UsedAlgorithm};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeSet;

/// Returns every key of `section` that is given or has a default, and those below. Lists of tables are as
/// they were given; what is left to a preset is named by the preset.
pub(super) fn of(section: Section<'_>) -> Json {
    let mut map = Map::new();
    for key in section.keys() {
        let value = match (key.takes, section.node(key.name)) {
            (Takes::Table(_), _) => {
                let below = section.section(key.name);
                if below.is_given() { Some(of(below)) } else { None }
            }
            (Takes::Tables(_), Some(_)) => Some(section.sections(key.name).into_iter().map(of).collect()),
            (_, Some(node)) => Some(node.json_value()),
            (_, None) => key.default.read().and_then(Literal::json),
        };
        if let Some(value) = value {
            map.insert(key.name.to_owned(), value);
        }
    }
    Json::Object(map)
}

/// Returns the digests of user-defined algorithms, by the key that names them and their name.
pub(super) fn of_machines(used: &BTreeSet<UsedAlgorithm>) -> Json {
    let mut map = Map::new();
    for machine in used {
        let key = match machine.kind {
            AlgorithmKind::CongestionControl => "tcp.congestion_control",
            AlgorithmKind::Discipline => "queue.discipline",
            AlgorithmKind::QuicCongestionControl => "quic.congestion_control",
        };
        map.insert(format!("{key} = {USER_DEFINED_PREFIX}{}", machine.name), json!(machine.digest));
    }
    Json::Object(map)
}
