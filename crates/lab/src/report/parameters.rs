//! Parameters of a scenario as short tables, one for each section.

use super::picture::legible;
use serde_json::{Map, Value as Json};

/// Maximum number of entries of a list of nodes, links or flows.
const MAX_ENTRIES: usize = 12;
/// Maximum length of a value, characters.
const MAX_CHARACTERS: usize = 300;

/// A section and its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Name: `tcp`, `routing.aodv`, `flow 1`.
    pub(super) name: String,
    /// Keys and values.
    pub(super) rows: Vec<(String, String)>,
}

/// Returns the groups of an object: first the keys outside sections, then the sections, each before its
/// subsections.
pub(super) fn groups(parameters: &Json) -> Vec<Group> {
    let mut out = Vec::new();
    if let Json::Object(map) = parameters {
        collect("scenario", "", map, &mut out);
    }
    out
}

/// Returns a value as written in a scenario file.
pub(super) fn text(value: &Json) -> String {
    let text = match value {
        Json::String(text) => text.clone(),
        Json::Number(number) => {
            let written = number.to_string();
            written.strip_suffix(".0").unwrap_or(&written).to_owned()
        }
        other => other.to_string(),
    };
    legible(&text, MAX_CHARACTERS)
}

fn collect(name: &str, path: &str, map: &Map<String, Json>, out: &mut Vec<Group>) {
    let tables =
        |value: &Json| value.as_array().is_some_and(|a| !a.is_empty() && a.iter().all(Json::is_object));
    let plain = map.iter().filter(|(_, value)| !value.is_object() && !tables(value));
    let rows: Vec<(String, String)> = plain.map(|(key, value)| (legible(key, 60), text(value))).collect();
    if !rows.is_empty() {
        out.push(Group { name: legible(name, 60), rows });
    }
    for (key, value) in map {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match value {
            Json::Object(below) => collect(&path, &path, below, out),
            Json::Array(entries) if tables(value) => list(&path, entries, out),
            _ => {}
        }
    }
}

/// Adds a list of tables: a row each, the first ones only.
fn list(name: &str, entries: &[Json], out: &mut Vec<Group>) {
    let entry = |(i, entry): (usize, &Json)| {
        let mut words = Vec::new();
        flatten("", entry, &mut words);
        ((i + 1).to_string(), legible(&words.join(", "), MAX_CHARACTERS))
    };
    let mut rows: Vec<(String, String)> = entries.iter().enumerate().take(MAX_ENTRIES).map(entry).collect();
    if entries.len() > MAX_ENTRIES {
        rows.push(("…".into(), format!("and {} more", entries.len() - MAX_ENTRIES)));
    }
    out.push(Group { name: format!("{} ({})", legible(name, 60), entries.len()), rows });
}

/// Returns the keys and values of an entry, `errors.model bit` for those of a table within.
fn flatten(path: &str, value: &Json, words: &mut Vec<String>) {
    match value {
        Json::Object(map) => {
            for (key, value) in map {
                flatten(&if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, value, words);
            }
        }
        Json::Null => {}
        plain => words.push(format!("{path} {}", text(plain))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sections_follow_the_keys_outside_them() {
        let groups = groups(&json!({
            "duration_s": 120.0,
            "routing": { "protocol": "aodv", "aodv": { "ttl": 7 } },
            "flow": [{ "src": "n0", "dst": "n4", "bytes": null, "errors": { "rate": 1e-6 } }],
            "set": [1, 2],
        }));
        let names: Vec<_> = groups.iter().map(|g| g.name.as_str()).collect();
        assert_eq!(names, ["scenario", "flow (1)", "routing", "routing.aodv"]);
        let row = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(groups[0].rows, [row("duration_s", "120"), row("set", "[1,2]")]);
        assert_eq!(groups[1].rows, [row("1", "dst n4, errors.rate 1e-6, src n0")]);
        assert_eq!(groups[3].rows, [row("ttl", "7")]);
    }

    #[test]
    fn long_lists_and_values_are_cut_and_that_is_noted() {
        let nodes: Vec<Json> = (0..500).map(|i| json!({ "name": format!("n{i}") })).collect();
        let groups = groups(&json!({ "node": nodes, "file": "x".repeat(5000) }));
        assert_eq!(groups[1].rows.len(), MAX_ENTRIES + 1);
        assert_eq!(groups[1].rows[MAX_ENTRIES].1, "and 488 more");
        assert_eq!(groups[0].rows[0].1.chars().count(), MAX_CHARACTERS);
    }

    #[test]
    fn a_value_that_is_no_object_has_no_groups() {
        assert_eq!(groups(&Json::Null), []);
        assert_eq!(groups(&json!([1])), []);
        assert_eq!(groups(&json!({})), []);
    }
}
