//! The mechanism of the key tables: what a key takes, its default and its meaning, and the check of a document against
//! them. The keys themselves are in [`keys`](super::keys), and in the `keys` of plans and claims.

use super::document::{Entry, Node, Table, Value, as_number, as_whole};
use super::source::{Origin, Problem, Problems, nearest};
use core::fmt;
use hopline_core::Duration;
use serde_json::{Value as Json, json};

pub use super::section::Section;

/// One key of a file. Its unit is the end of its name (`_s`, `_m`, `_mbps`, …).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key {
    /// The name.
    pub name: &'static str,
    /// Type and range of the value.
    pub takes: Takes,
    /// Value if the key is not given.
    pub default: Default,
    /// Meaning of the key.
    pub doc: &'static str,
    /// A value as it would be written.
    pub example: Option<&'static str>,
    /// Names that the key had before. A file that has one is told the present name.
    pub former: &'static [&'static str],
}

/// Prefix of the name of a user-defined algorithm.
pub const USER_DEFINED_PREFIX: &str = "own:";

/// Type and range of the value of a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Takes {
    /// A number in a range, both ends included.
    Number(f64, f64),
    /// A whole number in a range, both ends included.
    Integer(u64, u64),
    /// A whole number in a range, or one of some words.
    IntegerOr(u64, u64, &'static [&'static str]),
    /// One of some words.
    Word(&'static [&'static str]),
    /// One of some words, or [`USER_DEFINED_PREFIX`] and the name of a machine that the program which runs the scenario brings along.
    WordOrUserDefined(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// Any string.
    Text,
    /// A number in a range, both ends included, or a table with these keys.
    NumberOrTable(f64, f64, &'static [Key]),
    /// Any string, or a table with these keys.
    TextOrTable(&'static [Key]),
    /// A table with these keys.
    Table(&'static [Key]),
    /// A list of tables with these keys.
    Tables(&'static [Key]),
    /// Dotted keys of the scenario, each with a list of values.
    Lists,
    /// Dotted keys of the scenario, each with a value.
    Settings,
    /// A list of strings.
    Texts,
    /// A list of at least one whole number in a range, both ends included.
    Integers(u64, u64),
}

/// Value of a key that is not given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Default {
    /// The key must be given.
    Required,
    /// The value of the chosen preset, or as the meaning describes.
    Unset,
    /// This number.
    Number(f64),
    /// This whole number.
    Integer(u64),
    /// This word.
    Word(&'static str),
    /// The constant that the configuration of the algorithm starts from, and its exceptions. A [`Section`] does not
    /// return it, since a table may lie over another one.
    Of(Literal, &'static [Exception]),
    /// A value that follows from other keys or the environment, or the absence of a value: the text says which.
    Derived(&'static str),
}

/// Value of a default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Literal {
    /// A number.
    Number(f64),
    /// A whole number.
    Integer(u64),
    /// A word, as the key takes it.
    Word(&'static str),
    /// `true` or `false`.
    Flag(bool),
    /// A description, of an exception that has no single value.
    Text(&'static str),
}

/// Default that differs where a condition holds, such as a preset or a kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exception {
    /// The condition: "of preset linux", "over Linux".
    pub when: &'static str,
    /// The default there.
    pub value: Literal,
}

impl Exception {
    /// Creates an exception.
    #[must_use]
    pub const fn new(when: &'static str, value: Literal) -> Self {
        Self { when, value }
    }
}

impl Literal {
    /// Converts a duration to seconds.
    #[must_use]
    pub const fn seconds(time: Duration) -> Self {
        Self::Number(time.as_nanos() as f64 / 1e9)
    }

    /// Converts a duration to milliseconds.
    #[must_use]
    pub const fn milliseconds(time: Duration) -> Self {
        Self::Number(time.as_nanos() as f64 / 1e6)
    }

    /// Converts a duration to whole milliseconds.
    #[must_use]
    pub const fn whole_milliseconds(time: Duration) -> Self {
        Self::Integer(time.as_millis())
    }

    /// Returns the value for JSON; `None` for a description.
    #[must_use]
    pub fn json(self) -> Option<Json> {
        match self {
            Self::Number(x) => Some(json!(x)),
            Self::Integer(i) => Some(json!(i)),
            Self::Word(word) => Some(json!(word)),
            Self::Flag(flag) => Some(json!(flag)),
            Self::Text(_) => None,
        }
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(x) => write!(f, "{x}"),
            Self::Integer(i) => write!(f, "{i}"),
            Self::Word(word) => write!(f, "`{word}`"),
            Self::Flag(flag) => write!(f, "`{flag}`"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Default {
    /// Returns the value, if it is a single one.
    #[must_use]
    pub const fn value(self) -> Option<Literal> {
        match self {
            Self::Required | Self::Unset | Self::Derived(_) => None,
            Self::Number(x) => Some(Literal::Number(x)),
            Self::Integer(i) => Some(Literal::Integer(i)),
            Self::Word(word) => Some(Literal::Word(word)),
            Self::Of(value, _) => Some(value),
        }
    }

    /// Returns the value that a [`Section`] has where the key is not given.
    #[must_use]
    pub const fn read(self) -> Option<Literal> {
        match self {
            Self::Of(..) => None,
            other => other.value(),
        }
    }

    /// Returns its exceptions, and a default without a single value, as the end of a description.
    #[must_use]
    pub fn remark(self) -> String {
        match self {
            Self::Of(_, exceptions) => {
                exceptions.iter().map(|e| format!("; default {}: {}", e.when, e.value)).collect()
            }
            Self::Derived(text) => format!("; default: {text}"),
            _ => String::new(),
        }
    }
}

impl fmt::Display for Default {
    /// Writes the default with its exceptions; nothing if the key must be given, or a preset has the value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Derived(text) = self {
            return f.write_str(text);
        }
        if let Some(value) = self.value() {
            write!(f, "{value}")?;
        }
        if let Self::Of(_, exceptions) = self {
            for exception in *exceptions {
                write!(f, ", {}: {}", exception.when, exception.value)?;
            }
        }
        Ok(())
    }
}

impl Takes {
    /// Returns whether `value` may be a default of such a key.
    const fn takes_default(self, value: Literal) -> bool {
        match (self, value) {
            (Self::Number(min, max) | Self::NumberOrTable(min, max, _), Literal::Number(x)) => {
                min <= x && x <= max
            }
            (Self::Integer(min, max) | Self::IntegerOr(min, max, _), Literal::Integer(i)) => {
                min <= i && i <= max
            }
            (
                Self::Word(words) | Self::WordOrUserDefined(words) | Self::IntegerOr(_, _, words),
                Literal::Word(word),
            ) => is_among(words, word),
            (Self::Flag, Literal::Flag(_)) | (Self::Text | Self::TextOrTable(_), Literal::Word(_)) => true,
            _ => false,
        }
    }
}

/// Returns whether `word` is one of `words`; constants have no iterators.
pub(super) const fn is_among(words: &[&str], word: &str) -> bool {
    let mut n = 0;
    while n < words.len() {
        if is_same(words[n].as_bytes(), word.as_bytes()) {
            return true;
        }
        n += 1;
    }
    false
}

/// Returns whether two texts are equal; constants have no `==` of texts.
const fn is_same(a: &[u8], b: &[u8]) -> bool {
    let mut n = 0;
    while n < a.len() && n < b.len() && a[n] == b[n] {
        n += 1;
    }
    n == a.len() && n == b.len()
}

impl Key {
    const fn new(name: &'static str, takes: Takes, doc: &'static str) -> Self {
        Self { name, takes, default: Default::Unset, doc, example: None, former: &[] }
    }

    /// Declares a number between `min` and `max`.
    #[must_use]
    pub const fn number(name: &'static str, min: f64, max: f64, doc: &'static str) -> Self {
        Self::new(name, Takes::Number(min, max), doc)
    }

    /// Declares a whole number between `min` and `max`.
    #[must_use]
    pub const fn integer(name: &'static str, min: u64, max: u64, doc: &'static str) -> Self {
        Self::new(name, Takes::Integer(min, max), doc)
    }

    /// Declares a whole number between `min` and `max`, or one of `words`.
    #[must_use]
    pub const fn integer_or(
        name: &'static str,
        min: u64,
        max: u64,
        words: &'static [&'static str],
        doc: &'static str,
    ) -> Self {
        Self::new(name, Takes::IntegerOr(min, max, words), doc)
    }

    /// Declares a number between `min` and `max`, or a table with `keys`.
    #[must_use]
    pub const fn number_or_table(
        name: &'static str,
        min: f64,
        max: f64,
        keys: &'static [Self],
        doc: &'static str,
    ) -> Self {
        Self::new(name, Takes::NumberOrTable(min, max, keys), doc)
    }

    /// Declares one of `words`.
    #[must_use]
    pub const fn word(name: &'static str, words: &'static [&'static str], doc: &'static str) -> Self {
        Self::new(name, Takes::Word(words), doc)
    }

    /// Declares a key that takes one of `words`, or the name of a user-defined algorithm.
    #[must_use]
    pub const fn word_or_user_defined(
        name: &'static str,
        words: &'static [&'static str],
        doc: &'static str,
    ) -> Self {
        Self::new(name, Takes::WordOrUserDefined(words), doc)
    }

    /// Declares a flag: `true` or `false`.
    #[must_use]
    pub const fn flag(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, Takes::Flag, doc)
    }

    /// Declares any string.
    #[must_use]
    pub const fn text(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, Takes::Text, doc)
    }

    /// Declares any string, or a table with `keys`.
    #[must_use]
    pub const fn text_or_table(name: &'static str, keys: &'static [Self], doc: &'static str) -> Self {
        Self::new(name, Takes::TextOrTable(keys), doc)
    }

    /// Declares a table.
    #[must_use]
    pub const fn table(name: &'static str, keys: &'static [Self], doc: &'static str) -> Self {
        Self::new(name, Takes::Table(keys), doc)
    }

    /// Declares a list of tables.
    #[must_use]
    pub const fn tables(name: &'static str, keys: &'static [Self], doc: &'static str) -> Self {
        Self::new(name, Takes::Tables(keys), doc)
    }

    /// Declares a table of lists by dotted key.
    #[must_use]
    pub const fn lists(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, Takes::Lists, doc)
    }

    /// Declares a table of values by dotted key.
    #[must_use]
    pub const fn settings(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, Takes::Settings, doc)
    }

    /// Declares a list of strings.
    #[must_use]
    pub const fn texts(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, Takes::Texts, doc)
    }

    /// Declares a list of whole numbers between `min` and `max`, at least one.
    #[must_use]
    pub const fn integers(name: &'static str, min: u64, max: u64, doc: &'static str) -> Self {
        Self::new(name, Takes::Integers(min, max), doc)
    }

    /// Returns the same key with a default.
    #[must_use]
    pub const fn with_default(self, default: Default) -> Self {
        Self { default, ..self }
    }

    /// Returns the same key, which must be given.
    #[must_use]
    pub const fn required(self) -> Self {
        self.with_default(Default::Required)
    }

    /// Returns the meaning with the default, as the help of an error.
    fn help(&self) -> String {
        match self.default {
            Default::Of(..) | Default::Derived(_) => format!("{}; default: {}", self.doc, self.default),
            _ => self.doc.to_owned(),
        }
    }

    /// Returns the same key with the default of the algorithm's configuration.
    ///
    /// # Panics
    /// When it is compiled, if the key does not take such a value.
    #[must_use]
    pub const fn default(self, value: Literal) -> Self {
        self.default_except(value, &[])
    }

    /// Returns the same key with the default of the algorithm's configuration, and its exceptions.
    ///
    /// # Panics
    /// As [`Key::default`].
    #[must_use]
    pub const fn default_except(self, value: Literal, exceptions: &'static [Exception]) -> Self {
        assert!(self.takes.takes_default(value), "a default is within the range of its key");
        self.with_default(Default::Of(value, exceptions))
    }

    /// Returns the same key with a default that follows from other keys, or the absence of a value: `text` says which.
    #[must_use]
    pub const fn derived(self, text: &'static str) -> Self {
        self.with_default(Default::Derived(text))
    }

    /// Adds the names that the key had before.
    #[must_use]
    pub const fn formerly(self, names: &'static [&'static str]) -> Self {
        Self { former: names, ..self }
    }

    /// Adds an example of its value, as it would be written.
    #[must_use]
    pub const fn example(self, value: &'static str) -> Self {
        Self { example: Some(value), ..self }
    }

    /// Returns a description of the right values.
    #[must_use]
    pub fn expects(&self) -> String {
        let words = |words: &[&str]| words.iter().map(|w| format!("\"{w}\"")).collect::<Vec<_>>().join(", ");
        match self.takes {
            Takes::Number(min, max) => format!("a number from {min} to {max}"),
            Takes::Integer(min, max) => format!("a whole number from {min} to {max}"),
            Takes::IntegerOr(min, max, other) => {
                format!("a whole number from {min} to {max}, or {}", words(other))
            }
            Takes::NumberOrTable(min, max, _) => format!("a number from {min} to {max}, or a table"),
            Takes::Word(known) => format!("one of {}", words(known)),
            Takes::WordOrUserDefined(known) => {
                format!("one of {}, or \"{USER_DEFINED_PREFIX}NAME\"", words(known))
            }
            Takes::Flag => "true or false".into(),
            Takes::Text => "a string".into(),
            Takes::TextOrTable(_) => "a string, or a table".into(),
            Takes::Texts => "a list of strings".into(),
            Takes::Integers(min, max) => format!("a list of whole numbers from {min} to {max}"),
            Takes::Table(_) | Takes::Lists | Takes::Settings => format!("a table, [{}]", self.name),
            Takes::Tables(_) => format!("a list of tables, [[{}]]", self.name),
        }
    }
}

/// Returns `keys`, each of those without a default of its own with `text`, which names the key that chooses a preset.
/// Tables and lists of tables stay as they are.
#[must_use]
pub const fn of_preset<const N: usize>(text: &'static str, mut keys: [Key; N]) -> [Key; N] {
    let mut n = 0;
    while n < N {
        let is_table = matches!(keys[n].takes, Takes::Table(_) | Takes::Tables(_));
        if matches!(keys[n].default, Default::Unset) && !is_table {
            keys[n] = keys[n].derived(text);
        }
        n += 1;
    }
    keys
}

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

/// Returns `path.name`, or `name` at the top.
#[must_use]
pub fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
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

/// Returns the name of a user-defined algorithm, if `word` names one.
#[must_use]
pub fn user_defined_name(word: &str) -> Option<&str> {
    word.strip_prefix(USER_DEFINED_PREFIX)
}
