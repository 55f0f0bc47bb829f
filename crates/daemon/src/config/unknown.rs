//! Check of the keys of a proxy file. For an unknown key, the advice depends on the kind of the proxy, which the key tables
//! do not consider.

use super::keys::{self, KindKey, PROXY_KEYS};
use hopline_config::document::{Node, Table, Value};
use hopline_config::schema::{self, join};
use hopline_config::source::{Problem, Problems};

/// Checks a file against the key tables. If a key of a proxy is misspelt, the advice names only keys of its kind.
pub(super) fn check(document: &Node) -> Result<(), Problems> {
    let mut checked = schema::check_document(document, "the file", keys::FILE_KEYS);
    if let Err(Problems(problems)) = &mut checked {
        for of_kind in (0..).zip(proxies(document)).flat_map(|(number, table)| unknown(number, table)) {
            // The key tables have reported this key already, with advice for all kinds.
            if let Some(problem) = problems.iter_mut().find(|problem| problem.at == of_kind.at) {
                *problem = of_kind;
            }
        }
    }
    checked
}

fn proxies(document: &Node) -> impl Iterator<Item = &Table> {
    let list = match &document.value {
        Value::Table(file) => file.get("proxy").map(|entry| &entry.node.value),
        _ => None,
    };
    let tables = match list {
        Some(Value::Array(tables)) => tables.as_slice(),
        _ => &[],
    };
    tables.iter().filter_map(|node| match &node.value {
        Value::Table(table) => Some(table),
        _ => None,
    })
}

/// Returns a problem for each key that no kind of proxy takes. Empty if the kind of this proxy is not known.
fn unknown(number: usize, table: &Table) -> Vec<Problem> {
    let Some(kind) = kind(table) else { return Vec::new() };
    let taken = PROXY_KEYS.iter().filter(|key| kind.takes(key.name));
    let path = join("proxy", &number.to_string());
    let strangers = table.iter().filter(|(name, _)| PROXY_KEYS.iter().all(|key| key.name != name.as_str()));
    strangers.map(|(name, entry)| schema::unknown(name, entry, &path, taken.clone())).collect()
}

fn kind(table: &Table) -> Option<KindKey> {
    let Value::Text(word) = &table.get("kind")?.node.value else { return None };
    KindKey::ALL.iter().copied().find(|kind| kind.word() == word)
}
