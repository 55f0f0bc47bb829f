//! A TOML document in which every key and value knows where it was written.

use super::source::{Origin, Problem, Source};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// A value and where it was written.
#[derive(Clone, Debug)]
pub struct Node {
    /// Place in the source.
    pub origin: Origin,
    /// The value.
    pub value: Value,
}

/// Content of a value.
#[derive(Clone, Debug)]
pub enum Value {
    /// A string.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// `true` or `false`.
    Boolean(bool),
    /// A list.
    Array(Vec<Node>),
    /// A table.
    Table(Table),
    /// A TOML date or time; no key takes one.
    Datetime,
}

/// Entries by key.
pub type Table = BTreeMap<String, Entry>;

/// A key and its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Place of the key in the source.
    pub key: Origin,
    /// Its value.
    pub node: Node,
}

impl Value {
    /// Returns the kind of value, with its article.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Boolean(_) => "true or false",
            Self::Array(_) => "a list",
            Self::Table(_) => "a table",
            Self::Datetime => "a date",
        }
    }
}

/// Parses a whole document.
///
/// # Errors
///
/// The first place at which the text is not TOML.
pub fn parse(source: &Arc<Source>) -> Result<Node, Problem> {
    let table = DeTable::parse(&source.text).map_err(|e| syntax(source, 0, &e))?;
    let span = table.span();
    let value = Value::Table(convert_table(source, 0, table.into_inner())?);
    Ok(Node { origin: origin(source, 0, span), value })
}

/// Parses the value that `source.text[start..]` spells, as the command line does: a TOML value, or any other text as a
/// string without its quotes.
///
/// # Errors
///
/// A number that does not fit.
pub fn parse_word(source: &Arc<Source>, span: Range<usize>) -> Result<Node, Problem> {
    let text = &source.text[span.clone()];
    match DeValue::parse(text) {
        Ok(value) => convert(source, span.start, value.span(), value.into_inner()),
        Err(_) => Ok(Node { origin: origin(source, 0, span.clone()), value: Value::Text(text.to_owned()) }),
    }
}

fn origin(source: &Arc<Source>, base: usize, span: Range<usize>) -> Origin {
    Origin { source: source.clone(), span: base + span.start..base + span.end }
}

fn syntax(source: &Arc<Source>, base: usize, error: &toml::de::Error) -> Problem {
    let end = source.text.len();
    let span = error.span().unwrap_or(end..end);
    Problem::new(format!("invalid TOML: {}", error.message())).at(&origin(source, base, span))
}

fn convert_table(source: &Arc<Source>, base: usize, table: DeTable<'_>) -> Result<Table, Problem> {
    let entry = |(key, value): (toml::Spanned<std::borrow::Cow<'_, str>>, toml::Spanned<DeValue<'_>>)| {
        let name = key.get_ref().to_string();
        let node = convert(source, base, value.span(), value.into_inner())?;
        Ok((name, Entry { key: origin(source, base, key.span()), node }))
    };
    table.into_iter().map(entry).collect()
}

fn convert(
    source: &Arc<Source>,
    base: usize,
    span: Range<usize>,
    value: DeValue<'_>,
) -> Result<Node, Problem> {
    let origin = origin(source, base, span);
    let too_large = || Problem::new("a number too large to be stored").at(&origin);
    let value = match value {
        DeValue::String(s) => Value::Text(s.into_owned()),
        DeValue::Boolean(b) => Value::Boolean(b),
        DeValue::Datetime(_) => Value::Datetime,
        DeValue::Integer(i) => {
            Value::Integer(i64::from_str_radix(i.as_str(), i.radix()).map_err(|_| too_large())?)
        }
        DeValue::Float(x) => Value::Float(x.as_str().parse().map_err(|_| too_large())?),
        DeValue::Array(items) => Value::Array(
            items
                .into_iter()
                .map(|item| convert(source, base, item.span(), item.into_inner()))
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => Value::Table(convert_table(source, base, table)?),
    };
    Ok(Node { origin, value })
}

/// One setting of a dotted path: `tcp.window` = 8. A number in the path picks an entry of a list, from 0.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The path.
    pub path: String,
    /// Place of the path in the source.
    pub key: Origin,
    /// The value.
    pub node: Node,
}

impl Setting {
    /// Reads `path=value` as given to the option `option`, such as `--set`.
    ///
    /// # Errors
    ///
    /// Text without `=` or without a path.
    pub fn parse(option: &str, text: &str) -> Result<Self, Problem> {
        let source = Arc::new(Source { name: option.to_owned(), text: text.to_owned() });
        let whole = origin(&source, 0, 0..text.len());
        let Some((path, value)) = text.split_once('=').filter(|(path, _)| !path.trim().is_empty()) else {
            return Err(Problem::new(format!("`{option} {text}` is not of the form key=value"))
                .at(&whole)
                .help(format!("for example: {option} tcp.window=8")));
        };
        let start = path.len() + 1 + (value.len() - value.trim_start().len());
        let span = start..start + value.trim().len();
        let key = origin(&source, 0, 0..path.len());
        let node = parse_word(&source, span)?;
        Ok(Self { path: path.trim().to_owned(), key, node })
    }

    /// Returns the setting of `path` that an option of its own makes: `--seed 7`.
    #[must_use]
    pub fn of_option(option: &str, path: &str, value: u64) -> Self {
        let text = value.to_string();
        let value = i64::try_from(value).map_or(Value::Text(text.clone()), Value::Integer);
        let source = Arc::new(Source { name: option.to_owned(), text });
        let whole = origin(&source, 0, 0..source.text.len());
        Self { path: path.to_owned(), key: whole.clone(), node: Node { origin: whole, value } }
    }

    /// Returns the value as it would be written on the command line.
    #[must_use]
    pub fn text(&self) -> String {
        self.node.value.to_string()
    }

    /// Returns the value in a result file.
    #[must_use]
    pub fn json(&self) -> Json {
        self.node.json_value()
    }
}

impl Node {
    /// Returns the value without its places.
    #[must_use]
    pub fn json_value(&self) -> Json {
        match &self.value {
            Value::Text(s) => json!(s),
            Value::Integer(i) => json!(i),
            Value::Float(x) => json!(x),
            Value::Boolean(b) => json!(b),
            Value::Array(items) => items.iter().map(Self::json_value).collect(),
            Value::Table(table) => table.iter().map(|(k, e)| (k.clone(), e.node.json_value())).collect(),
            Value::Datetime => Json::Null,
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(s) => f.write_str(s),
            Self::Integer(i) => i.fmt(f),
            Self::Float(x) => x.fmt(f),
            Self::Boolean(b) => b.fmt(f),
            Self::Array(items) => {
                let items: Vec<String> = items.iter().map(|i| i.value.to_string()).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Self::Table(t) => write!(f, "{{{}}}", t.keys().cloned().collect::<Vec<_>>().join(", ")),
            Self::Datetime => f.write_str("a date"),
        }
    }
}

/// Most keys of a path: more than any scenario has, and few enough to go through by recursion.
const MAX_PATH_KEYS: usize = 32;

/// Sets a path of the document, making the tables on the way where they are missing.
///
/// # Errors
///
/// A path that goes through something that is neither a table nor a list, past the end of a list, or very deep.
pub fn set(root: &mut Node, setting: &Setting) -> Result<(), Problem> {
    let mut here = root;
    let parts: Vec<&str> = setting.path.split('.').map(str::trim).collect();
    if parts.len() > MAX_PATH_KEYS {
        return Err(Problem::new(format!("a path of {} keys", parts.len()))
            .at(&setting.key)
            .help(format!("no key is deeper than {MAX_PATH_KEYS}")));
    }
    for (depth, part) in parts.iter().enumerate() {
        let so_far = parts[..depth].join(".");
        here = match &mut here.value {
            Value::Table(table) => {
                let empty = || Entry {
                    key: setting.key.clone(),
                    node: Node { origin: setting.key.clone(), value: Value::Table(Table::new()) },
                };
                &mut table.entry((*part).to_owned()).or_insert_with(empty).node
            }
            Value::Array(items) => {
                let last = items.len().saturating_sub(1);
                let item = part.parse().ok().and_then(|i: usize| items.get_mut(i));
                item.ok_or_else(|| {
                    Problem::new(format!("`{so_far}` has no entry `{part}`"))
                        .at(&setting.key)
                        .help(format!("its entries are numbered 0 to {last}"))
                })?
            }
            other => {
                let kind = other.kind();
                return Err(
                    Problem::new(format!("`{so_far}` is {kind}; it has no key `{part}`")).at(&setting.key)
                );
            }
        };
    }
    *here = setting.node.clone();
    Ok(())
}

/// Returns a whole number, if it is one.
pub(crate) fn as_whole(node: &Node) -> Option<u64> {
    match node.value {
        Value::Integer(i) => u64::try_from(i).ok(),
        _ => None,
    }
}

/// Returns a number, if it is one.
pub(crate) fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::Float(x) => Some(*x),
        Value::Integer(i) => Some(*i as f64),
        _ => None,
    }
}

/// Returns `path.name`, or `name` at the top.
#[must_use]
pub fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
