//! The reference of all keys of a file of proxies, for people: a table for the daemon, one for each kind, and those of nested tables.
//!
//! Texts of keys say what differs between kinds in clauses: "of snoop: …". That of a default stands last: "; default: 10, of d-proxy: 4".

use super::{FILE, KindKey, PROXY, neighborhood, proxy};
use hopline_scenario::schema::{Default, Key, Takes};
use std::fmt::Write;

/// Mark in front of the text of a default.
const DEFAULT: &str = "; default: ";
/// A kind of scenarios that no daemon has. Texts of shared keys name it.
const OF_SCENARIOS: &str = "ack-pacing";

/// Every key of such a file as Markdown.
#[must_use]
pub fn reference() -> String {
    let mut text = String::new();
    let of_daemon = FILE.iter().filter(|key| !matches!(key.takes, Takes::Tables(_)));
    section(&mut text, ["The daemon", "before the first `[[proxy]]`"], of_daemon, None);
    for &kind in KindKey::ALL {
        let is_own = |key: &&Key| kind.takes(key.name) && key.name != proxy::KIND.key.name;
        let taken = PROXY.iter().filter(is_own);
        let needed = taken.clone().filter(|key| need(key, Some(kind)) != Need::None);
        let others = taken.filter(|key| need(key, Some(kind)) == Need::None);
        let (title, about) = (format!("`{}`", kind.word()), purpose(kind));
        section(&mut text, [&title, about], needed.chain(others), Some(kind));
        example(&mut text, kind);
    }
    for key in PROXY {
        if let Takes::Table(keys) = key.takes {
            nested(&mut text, key, keys);
        }
    }
    text
}

/// The table of `keys` that `key` takes.
fn nested(text: &mut String, key: &Key, keys: &[Key]) {
    let (meaning, _) = key.doc.split_once(DEFAULT).unwrap_or((key.doc, ""));
    let kind = KindKey::ALL.iter().copied().find(|kind| kind.takes(key.name));
    let of_daemons = keys.iter().filter(|key| !neighborhood::OF_SCENARIOS.contains(&key.name));
    section(text, [&format!("`[proxy.{}]`", key.name), meaning], of_daemons, kind);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    None,
    OneOf,
    Must,
}

fn need(key: &Key, kind: Option<KindKey>) -> Need {
    let among = |keys: &[Key]| keys.iter().any(|needed| needed.name == key.name);
    match kind {
        _ if key.default == Default::Required => Need::Must,
        Some(kind) if among(kind.needs()) => Need::Must,
        Some(KindKey::NeighborhoodRed) if key.name == neighborhood::NEEDED => Need::Must,
        Some(kind) if among(kind.needs_one_of()) => Need::OneOf,
        _ => Need::None,
    }
}

fn say(text: &mut String, line: &str) {
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
    say(text, &format!("\n### {title}\n\n{about}.\n"));
    say(text, "| key | takes | default | example | meaning |");
    say(text, "|---|---|---|---|---|");
    for key in keys {
        let (meaning, default) = key.doc.rsplit_once(DEFAULT).unwrap_or((key.doc, ""));
        let default = match (need(key, kind), key.default) {
            (Need::Must, _) => "**required**".to_owned(),
            (Need::OneOf, _) => "**one of these is required**".to_owned(),
            (Need::None, Default::Number(x)) => x.to_string(),
            (Need::None, Default::Integer(i)) => i.to_string(),
            (Need::None, Default::Word(word)) => format!("`{word}`"),
            (Need::None, Default::Required | Default::Unset) => default_of(default, kind),
        };
        let example = value(key, &default).map(|value| format!("`{value}`")).unwrap_or_default();
        say(
            text,
            &format!("| `{}` | {} | {default} | {example} | {meaning} |", key.name, key.takes.in_markdown()),
        );
    }
}

/// The clauses of `text` that concern `kind`, or all of them.
fn default_of(text: &str, kind: Option<KindKey>) -> String {
    let Some(kind) = kind else { return text.to_owned() };
    let mut clauses = text.split(", of ");
    let mut kept = clauses.next().unwrap_or_default().to_owned();
    for clause in clauses {
        let Some((names, value)) = clause.split_once(": ") else {
            kept.push_str(&format!(", of {clause}"));
            continue;
        };
        let names: Vec<&str> = names.split(", ").flat_map(|names| names.split(" and ")).collect();
        if names.iter().any(|name| is(name, kind)) {
            return value.to_owned();
        }
        let is_kind =
            |name: &&&str| **name == OF_SCENARIOS || KindKey::ALL.iter().any(|kind| is(name, *kind));
        let others: Vec<&str> = names.iter().filter(|name| !is_kind(name)).copied().collect();
        if !others.is_empty() {
            kept.push_str(&format!(", of {}: {value}", others.join(" and ")));
        }
    }
    kept
}

fn is(name: &str, kind: KindKey) -> bool {
    let is_gateway = matches!(kind, KindKey::Gateway | KindKey::GatewayExit);
    name == kind.word() || (name == "gateways" && is_gateway)
}

/// Returns the text of a kind from its declaration.
fn purpose(kind: KindKey) -> &'static str {
    let clauses = proxy::KIND.key.doc.split("; ").filter_map(|clause| clause.split_once(": "));
    let mut own = clauses.filter(|(names, _)| names.split(", ").any(|name| name == kind.word()));
    own.next().map_or("", |(_, purpose)| purpose)
}

/// A value as it would be written: that of the declaration, the default, or the first word or number that is taken.
fn value(key: &Key, default: &str) -> Option<String> {
    let number = default.split([' ', ',']).next().filter(|first| first.parse::<f64>().is_ok());
    key.example.map(str::to_owned).or_else(|| match (key.default, key.takes) {
        (Default::Word(word), _) => Some(format!("\"{word}\"")),
        (_, Takes::Word(words)) => words.first().map(|word| format!("\"{word}\"")),
        (_, Takes::Flag) => Some("true".into()),
        _ => number.map(str::to_owned),
    })
}

/// The least that a proxy of this kind can be told, with the key file that a test of the page needs.
fn example(text: &mut String, kind: KindKey) {
    let digits = match kind {
        KindKey::HomeAgent | KindKey::BaseStation => 32,
        _ => 64,
    };
    let file = if kind == KindKey::GatewayExit { "drone-7.key" } else { "link.key" };
    say(text, "");
    if kind.takes(proxy::KEY_FILE.name) || kind == KindKey::GatewayExit {
        say(text, &format!("<!-- setup: umask 077; head -c {digits} /dev/zero | tr \"\\0\" 7 > {file} -->"));
    }
    say(text, "<!-- proxy: proxy.toml -->");
    say(text, "```toml");
    say(text, &least(kind));
    say(text, "```");
}

/// The least that a proxy of this kind can be told.
pub(in crate::config) fn least(kind: KindKey) -> String {
    let mut lines = vec!["[[proxy]]".to_owned(), format!("kind = \"{}\"", kind.word())];
    let keys = kind.needs().iter().chain(kind.needs_one_of().first());
    let line = |key: &Key| key.example.map(|value| format!("{} = {value}", key.name));
    lines.extend(keys.filter_map(line));
    lines.join("\n")
}
