//! Reference page of all keys of a proxy file: a table for the daemon, one for each kind of proxy, and one for each nested
//! table.
//!
//! If the meaning of a key differs between kinds, its text has clauses: "packets kept, of d-proxy and opaque: packets sent".
//! The table of a kind contains only the clause of that kind, or the text before the first clause. So each clause must be
//! complete without the others. Defaults have the same form: "10, of d-proxy: 4".

use super::{FILE_KEYS, KindKey, PROXY_KEYS, neighborhood, proxy};
use hopline_config::schema::{Default, Key, Takes};
use std::fmt::Write;

/// Kind that only scenarios have. Texts of keys that scenarios and proxy files share may contain its clauses.
const SCENARIO_KIND: &str = "ack-pacing";

/// Returns the reference page of a proxy file, in Markdown.
#[must_use]
pub fn reference() -> String {
    let mut text = String::new();
    let of_daemon = FILE_KEYS.iter().filter(|key| !matches!(key.takes, Takes::Tables(_)));
    section(&mut text, ["The daemon", "before the first `[[proxy]]`"], of_daemon, None);
    for &kind in KindKey::ALL {
        let is_own = |key: &&Key| kind.takes(key.name) && key.name != proxy::KIND.key.name;
        let taken = PROXY_KEYS.iter().filter(is_own);
        let needed = taken.clone().filter(|key| requirement(key, Some(kind)) != Requirement::None);
        let others = taken.filter(|key| requirement(key, Some(kind)) == Requirement::None);
        let (title, about) = (format!("`{}`", kind.word()), purpose(kind));
        section(&mut text, [&title, about], needed.chain(others), Some(kind));
        example(&mut text, kind);
    }
    for key in PROXY_KEYS {
        if let Takes::Table(keys) = key.takes {
            nested(&mut text, key, keys);
        }
    }
    text
}

/// Writes the section of a nested table: `keys` are the keys in the table `key`.
fn nested(text: &mut String, key: &Key, keys: &[Key]) {
    let is_named = |kind: &KindKey| kind.word() == key.name;
    let takes = |kind: &KindKey| kind.takes(key.name);
    let all = KindKey::ALL.iter().copied();
    let kind = all.clone().find(is_named).or_else(|| all.clone().find(takes));
    let of_daemons = keys.iter().filter(|key| !neighborhood::SCENARIO_KEYS.contains(&key.name));
    section(text, [&format!("`[proxy.{}]`", key.name), key.doc], of_daemons, kind);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Requirement {
    None,
    OneOf,
    Mandatory,
}

fn requirement(key: &Key, kind: Option<KindKey>) -> Requirement {
    let among = |keys: &[Key]| keys.iter().any(|needed| needed.name == key.name);
    match kind {
        _ if key.default == Default::Required => Requirement::Mandatory,
        Some(kind) if among(kind.needs()) => Requirement::Mandatory,
        Some(KindKey::NeighborhoodRed) if key.name == neighborhood::MANDATORY_KEY => Requirement::Mandatory,
        Some(kind) if among(kind.needs_one_of()) => Requirement::OneOf,
        _ => Requirement::None,
    }
}

fn write_line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("strings take everything");
}

fn section<'a>(
    text: &mut String,
    [title, about]: [&str; 2],
    keys: impl Iterator<Item = &'a Key>,
    kind: Option<KindKey>,
) {
    let mut rest = about.chars();
    let first = rest.next().into_iter().flat_map(char::to_uppercase);
    let about: String = first.chain(rest).collect();
    write_line(text, &format!("\n### {title}\n\n{about}.\n"));
    write_line(text, "| key | takes | default | example | meaning |");
    write_line(text, "|---|---|---|---|---|");
    for key in keys {
        let default = match requirement(key, kind) {
            Requirement::Mandatory => "**required**".to_owned(),
            Requirement::OneOf => "**one of these is required**".to_owned(),
            Requirement::None => for_kind(&key.default.to_string(), kind),
        };
        let example = value(key, &default).map(|value| format!("`{value}`")).unwrap_or_default();
        let meaning = for_kind(key.doc, kind);
        write_line(
            text,
            &format!("| `{}` | {} | {default} | {example} | {meaning} |", key.name, key.takes.in_markdown()),
        );
    }
}

/// Returns the default of `key` in a proxy of this kind in TOML syntax. `None` if the default is not a single value.
#[cfg(test)]
pub(in crate::config) fn stated(key: &Key, kind: KindKey) -> Option<String> {
    let text = for_kind(&key.default.to_string(), Some(kind));
    // Without a preset in the file, exceptions of presets do not apply.
    let first = text.split(", of ").next().unwrap_or_default();
    match (key.default, first.strip_prefix('`').and_then(|word| word.strip_suffix('`'))) {
        (Default::Required | Default::Unset | Default::Derived(_), _) => None,
        (_, Some(flag @ ("true" | "false"))) => Some(flag.to_owned()),
        (_, Some(word)) => Some(format!("\"{word}\"")),
        (_, None) => first.parse::<f64>().ok().map(|_| first.to_owned()),
    }
}

/// Returns the clause of `text` for `kind`, or, if there is none, `text` without the clauses of kinds. Without a kind,
/// returns the whole text.
fn for_kind(text: &str, kind: Option<KindKey>) -> String {
    let Some(kind) = kind else { return text.to_owned() };
    let (mut kept, clauses) = match text.strip_prefix("of ") {
        Some(clauses) => (String::new(), clauses),
        None => {
            let (first, clauses) = text.split_once(", of ").unwrap_or((text, ""));
            (first.to_owned(), clauses)
        }
    };
    for clause in clauses.split(", of ").filter(|clause| !clause.is_empty()) {
        let Some((names, value)) = clause.split_once(": ") else {
            kept.push_str(&format!(", of {clause}"));
            continue;
        };
        let names: Vec<&str> = names.split(", ").flat_map(|names| names.split(" and ")).collect();
        let is_kind =
            |name: &&str| *name == SCENARIO_KIND || KindKey::ALL.iter().any(|kind| names_kind(name, *kind));
        let is_condition = |name: &&str| name.starts_with("not ");
        if names.iter().any(|name| names_kind(name, kind)) {
            let conditions = names.into_iter().filter(is_condition).map(|name| format!("{name}: "));
            return conditions.collect::<String>() + value;
        }
        // Clauses of other conditions, such as presets, stay in the text.
        let others: Vec<&str> =
            names.into_iter().filter(|name| !is_kind(name) && !is_condition(name)).collect();
        if !others.is_empty() {
            kept.push_str(&format!(", of {}: {value}", others.join(" and ")));
        }
    }
    match kept.strip_prefix(", ") {
        Some(only) => only.to_owned(),
        None => kept,
    }
}

fn names_kind(name: &str, kind: KindKey) -> bool {
    let is_gateway = matches!(kind, KindKey::Gateway | KindKey::GatewayExit);
    name == kind.word() || (name == "gateways" && is_gateway)
}

/// Returns the purpose of a kind, from the text of the key `kind`.
fn purpose(kind: KindKey) -> &'static str {
    let clauses = proxy::KIND.key.doc.split("; ").filter_map(|clause| clause.split_once(": "));
    let mut own = clauses.filter(|(names, _)| names.split(", ").any(|name| name == kind.word()));
    own.next().map_or("", |(_, purpose)| purpose)
}

/// Returns an example value in TOML syntax: that of the declaration, or else the default, or the first valid word.
fn value(key: &Key, default: &str) -> Option<String> {
    let number = default.split([' ', ',']).next().filter(|first| first.parse::<f64>().is_ok());
    key.example.map(str::to_owned).or_else(|| match (key.default, key.takes) {
        (Default::Word(word), _) => Some(format!("\"{word}\"")),
        (_, Takes::Word(words)) => words.first().map(|word| format!("\"{word}\"")),
        (_, Takes::Flag) => Some("true".into()),
        _ => number.map(str::to_owned),
    })
}

/// Writes the shortest valid section of a proxy of this kind, after a comment that creates the key file for the test of
/// the page.
fn example(text: &mut String, kind: KindKey) {
    let digits = match kind {
        KindKey::HomeAgent | KindKey::BaseStation => 32,
        _ => 64,
    };
    let file = if kind == KindKey::GatewayExit { "drone-7.key" } else { "link.key" };
    write_line(text, "");
    if kind.takes(proxy::KEY_FILE.name) || kind == KindKey::GatewayExit {
        write_line(
            text,
            &format!("<!-- setup: umask 077; head -c {digits} /dev/zero | tr \"\\0\" 7 > {file} -->"),
        );
    }
    write_line(text, "<!-- proxy: proxy.toml -->");
    write_line(text, "```toml");
    write_line(text, &minimal_section(kind));
    write_line(text, "```");
}

/// Returns the shortest valid section of a proxy of this kind.
pub(in crate::config) fn minimal_section(kind: KindKey) -> String {
    let mut lines = vec!["[[proxy]]".to_owned(), format!("kind = \"{}\"", kind.word())];
    let keys = kind.needs().iter().chain(kind.needs_one_of().first());
    let line = |key: &Key| key.example.map(|value| format!("{} = {value}", key.name));
    lines.extend(keys.filter_map(line));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_its_own_clause_or_the_common_one() {
        let text = "packets kept, of d-proxy and opaque: packets sent, of gateways: none";
        for (kind, expected) in [
            (KindKey::Snoop, "packets kept"),
            (KindKey::DProxy, "packets sent"),
            (KindKey::Opaque, "packets sent"),
            (KindKey::GatewayExit, "none"),
        ] {
            assert_eq!(for_kind(text, Some(kind)), expected);
        }
        assert_eq!(for_kind(text, None), text);
        let conditional = "of snoop, not modern: repeated ACKs, of d-proxy: repeated data";
        assert_eq!(for_kind(conditional, Some(KindKey::Snoop)), "not modern: repeated ACKs");
        let mixed = "kept, of ns2-2.35 and d-proxy: left";
        assert_eq!(for_kind(mixed, Some(KindKey::Snoop)), "kept, of ns2-2.35: left");
        assert_eq!(for_kind(mixed, Some(KindKey::DProxy)), "left");
    }

    #[test]
    fn the_table_of_a_kind_mentions_no_other_kind() {
        for &kind in KindKey::ALL {
            for key in
                PROXY_KEYS.iter().filter(|key| kind.takes(key.name) && key.name != proxy::KIND.key.name)
            {
                let meaning = for_kind(key.doc, Some(kind));
                assert!(!meaning.is_empty(), "{} of {}: nothing is said", key.name, kind.word());
                for other in KindKey::ALL.iter().map(|kind| kind.word()).chain(["gateways", SCENARIO_KIND]) {
                    let names = |lead: &str| meaning.contains(&format!("{lead}of {other}"));
                    let is_mixed = [", ", "; ", " and "].into_iter().any(names)
                        || meaning.starts_with(&format!("of {other}"));
                    assert!(!is_mixed, "{} of {} speaks of {other}: {meaning}", key.name, kind.word());
                }
            }
        }
    }
}
