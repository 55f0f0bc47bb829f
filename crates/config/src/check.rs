//! Check of a document against the declarations of its keys.

use super::document::{Entry, Node, Table, Value, as_number, as_whole, join};
use super::schema::{Default, Key, Takes, user_defined_name};
use super::source::{Origin, Problem, Problems, nearest};

/// Checks a whole document, called `noun` ("the scenario"), against `keys`.
///
/// # Errors
///
/// Everything that is wrong with it, in the order of its text.
pub fn check_document(document: &Node, noun: &str, keys: &'static [Key]) -> Result<(), Problems> {
    let Value::Table(table) = &document.value else { unreachable!("a TOML document is a table") };
    let mut problems = Vec::new();
    check(table, &document.origin, "", keys, &mut problems);
    for key in keys.iter().filter(|k| is_missing(k, table)) {
        problems.push(missing(key, noun, &document.origin));
    }
    if problems.is_empty() {
        return Ok(());
    }
    problems.sort_by_key(|p| p.at.as_ref().map(|at| (at.source.name.clone(), at.span.start)));
    Err(Problems(problems))
}

/// Checks `table`, written at `origin` and called `path` (empty at the top), against `keys`: unknown keys, missing keys,
/// types, ranges. Adds what is wrong to `problems`. What is missing at the top is left to [`check_document`].
pub fn check(table: &Table, origin: &Origin, path: &str, keys: &'static [Key], problems: &mut Vec<Problem>) {
    for (name, entry) in table {
        match keys.iter().find(|k| k.name == name) {
            Some(key) => {
                let before = problems.len();
                check_value(&entry.node, key, &join(path, name), problems);
                if let (Some(list), [problem]) = (plural_of(key, keys, &entry.node), &mut problems[before..])
                {
                    problem.help = Some(format!("did you mean `{}`? {}", list.name, list.doc));
                }
            }
            None => problems.push(unknown(name, entry, path, keys.iter())),
        }
    }
    if !path.is_empty() {
        let missing = |key| missing(key, &format!("`{path}`"), origin);
        problems.extend(keys.iter().filter(|k| is_missing(k, table)).map(missing));
    }
}

/// Returns the key that takes several of what `key` takes one of, such as `ports` beside `port`, if a list
/// was given.
fn plural_of<'a>(key: &Key, keys: &'a [Key], given: &Node) -> Option<&'a Key> {
    let Value::Array(_) = given.value else { return None };
    let is_plural = |other: &&Key| other.name.strip_suffix('s') == Some(key.name);
    let takes_list = |other: &&Key| matches!(other.takes, Takes::Texts | Takes::Integers(..));
    keys.iter().filter(is_plural).find(takes_list)
}

fn is_missing(key: &Key, table: &Table) -> bool {
    key.default == Default::Required && !table.contains_key(key.name)
}

fn missing(key: &Key, whose: &str, origin: &Origin) -> Problem {
    Problem::new(format!("{whose} has no `{}`", key.name))
        .at(&Origin { span: origin.span.start..origin.span.start, ..origin.clone() })
        .help(format!("add `{} = …`, {}: {}", key.name, key.expects(), key.doc))
}

/// Returns the problem that a table called `path` takes the keys `known`, and not the key `name`.
pub fn unknown<'a>(
    name: &str,
    entry: &Entry,
    path: &str,
    known: impl Iterator<Item = &'a Key> + Clone,
) -> Problem {
    let place = if path.is_empty() { String::new() } else { format!(" in `{path}`") };
    let problem = Problem::new(format!("unknown key `{name}`{place}")).at(&entry.key);
    match renamed(name, known.clone()).or_else(|| nearest(name, known.clone().map(|key| key.name))) {
        Some(known) => problem.help(format!("did you mean `{known}`?")),
        None => {
            let all: Vec<&str> = known.map(|key| key.name).collect();
            problem.help(format!("known keys: {}", all.join(", ")))
        }
    }
}

/// Returns the present name of the key that was called `former`.
fn renamed<'a>(former: &str, mut keys: impl Iterator<Item = &'a Key>) -> Option<&'a str> {
    keys.find(|key| key.former.contains(&former)).map(|key| key.name)
}

fn check_value(node: &Node, key: &'static Key, path: &str, problems: &mut Vec<Problem>) {
    let mut wrong = |message: String, help: String| {
        problems.push(Problem::new(message).at(&node.origin).help(help));
    };
    let kind = || format!("`{path}` takes {}, not {}", key.expects(), node.value.kind());
    let outside = |x: &dyn std::fmt::Display| format!("`{path}` = {x} is out of range");
    match (key.takes, &node.value) {
        (
            Takes::Number(min, max) | Takes::NumberOrTable(min, max, _),
            Value::Float(_) | Value::Integer(_),
        ) => {
            let x = as_number(&node.value).expect("matched above");
            if !(min..=max).contains(&x) {
                wrong(outside(&x), format!("it takes {}", key.expects()));
            }
        }
        (Takes::Integer(min, max) | Takes::IntegerOr(min, max, _), Value::Integer(i)) => {
            if u64::try_from(*i).map_or(true, |i| !(min..=max).contains(&i)) {
                wrong(outside(i), format!("it takes {}", key.expects()));
            }
        }
        (Takes::WordOrUserDefined(_), Value::Text(word))
            if user_defined_name(word).is_some_and(|name| !name.is_empty()) => {}
        (
            Takes::Word(words) | Takes::WordOrUserDefined(words) | Takes::IntegerOr(_, _, words),
            Value::Text(word),
        ) => {
            if !words.contains(&word.as_str()) {
                let guess = nearest(word, words.iter().copied()).map(|w| format!("did you mean \"{w}\"? "));
                wrong(
                    format!("`{path}` does not know \"{word}\""),
                    format!("{}it takes {}", guess.unwrap_or_default(), key.expects()),
                );
            }
        }
        (Takes::Flag, Value::Boolean(_)) | (Takes::Text | Takes::TextOrTable(_), Value::Text(_)) => {}
        (
            Takes::Table(keys) | Takes::NumberOrTable(_, _, keys) | Takes::TextOrTable(keys),
            Value::Table(table),
        ) => check(table, &node.origin, path, keys, problems),
        (Takes::Tables(keys), Value::Array(items)) => {
            for (i, item) in items.iter().enumerate() {
                match &item.value {
                    Value::Table(table) => check(table, &item.origin, &format!("{path}.{i}"), keys, problems),
                    _ => problems.push(Problem::new(kind()).at(&item.origin).help(key.help())),
                }
            }
        }
        (Takes::Lists | Takes::Settings, Value::Table(_)) => {}
        (Takes::Texts, Value::Array(items)) if items.iter().all(|i| matches!(i.value, Value::Text(_))) => {}
        (Takes::Integers(min, max), Value::Array(items)) if !items.is_empty() => {
            for item in items {
                let whole = as_whole(item);
                if !whole.is_some_and(|i| (min..=max).contains(&i)) {
                    let message = format!("`{path}` takes {}", key.expects());
                    problems.push(Problem::new(message).at(&item.origin).help(key.help()));
                }
            }
        }
        _ => wrong(kind(), key.help()),
    }
}
