//! Section: a table of a checked document, and the contract of keys that it is read by.

use super::document::{Node, Table, Value, as_number, as_whole};
use super::schema::{Default, Key, Takes};
use super::source::Origin;

/// Key that can be read by its declaration.
pub trait Declared {
    /// Type of the value.
    type Value<'a>;

    /// Returns the value in a checked `section`.
    ///
    /// # Panics
    /// If the section was not checked against the table of this key.
    fn read<'a>(self, section: &Section<'a>) -> Self::Value<'a>;
}

/// A table of a checked document, seen through its keys: what is not given reads as its default.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    table: Option<&'a Table>,
    keys: &'static [Key],
    /// Place of the table in the source, or of the document if the table is not written.
    pub origin: &'a Origin,
}

impl<'a> Section<'a> {
    /// Returns the whole of a document.
    #[must_use]
    pub fn new(node: &'a Node, keys: &'static [Key]) -> Self {
        let table = match &node.value {
            Value::Table(table) => Some(table),
            _ => None,
        };
        Self { table, keys, origin: &node.origin }
    }

    /// Returns whether the file has this table at all.
    #[must_use]
    pub const fn is_given(&self) -> bool {
        self.table.is_some()
    }

    /// Returns the value of a declared key: of one that always has a value, that; of others, what was given.
    ///
    /// # Panics
    /// If the document was not checked against the table of this key.
    #[must_use]
    pub fn get<D: Declared>(&self, key: D) -> D::Value<'a> {
        key.read(self)
    }

    /// Puts what was chosen into `field`, if anything was.
    pub fn set_if_given<T: Copy>(&self, key: impl Declared<Value<'a> = Option<T>>, field: &mut T) {
        *field = self.get(key).unwrap_or(*field);
    }

    /// Returns a whole number, given or by default. Its range lies within that of its type.
    #[must_use]
    pub fn integer_as<T: TryFrom<u64>>(&self, name: &str) -> Option<T> {
        self.integer(name).map(|i| T::try_from(i).ok().expect("the key's range is that of the type"))
    }

    /// Returns the place of `name` in the source: of its value if it is given, otherwise of the section.
    #[must_use]
    pub fn origin_of(&self, name: &str) -> &'a Origin {
        self.node(name).map_or(self.origin, |n| &n.origin)
    }

    /// Returns whether `name` is given.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.node(name).is_some()
    }

    /// Returns a number, given or by default; `None` also where a table is given instead.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        match (self.node(name), self.key(name).default) {
            (Some(node), _) => as_number(&node.value),
            (None, Default::Number(x)) => Some(x),
            (None, _) => None,
        }
    }

    /// Returns a whole number, given or by default; `None` also where a word is given instead.
    #[must_use]
    pub fn integer(&self, name: &str) -> Option<u64> {
        match (self.node(name).map(|n| &n.value), self.key(name).default) {
            (Some(Value::Integer(i)), _) => u64::try_from(*i).ok(),
            (None, Default::Integer(i)) => Some(i),
            _ => None,
        }
    }

    /// Returns a whole number that fits 32 bits: the key's range says that it does.
    #[must_use]
    pub fn integer_u32(&self, name: &str) -> Option<u32> {
        self.integer_as(name)
    }

    /// Returns a string or word, given or by default; `None` also where a number or a table is given instead.
    #[must_use]
    pub fn word(&self, name: &str) -> Option<&'a str> {
        match (self.node(name).map(|n| &n.value), self.key(name).default) {
            (Some(Value::Text(s)), _) => Some(s),
            (None, Default::Word(w)) => Some(w),
            _ => None,
        }
    }

    /// Returns a list of strings; empty if not given.
    #[must_use]
    pub fn texts(&self, name: &str) -> Vec<&'a str> {
        let Some(Value::Array(items)) = self.node(name).map(|n| &n.value) else { return Vec::new() };
        let text = |item: &'a Node| match &item.value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        };
        items.iter().filter_map(text).collect()
    }

    /// Returns a list of whole numbers, each with its place; `None` if not given. Their range lies within
    /// that of their type.
    #[must_use]
    pub fn integers<T: TryFrom<u64>>(&self, name: &str) -> Option<Vec<(T, &'a Origin)>> {
        let Value::Array(items) = &self.node(name)?.value else { return None };
        let read = |item: &'a Node| Some((T::try_from(as_whole(item)?).ok()?, &item.origin));
        Some(items.iter().filter_map(read).collect())
    }

    /// Returns a flag, if given.
    #[must_use]
    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.node(name)?.value {
            Value::Boolean(b) => Some(b),
            _ => None,
        }
    }

    /// Returns a table below; everything in it reads as its default if it is not given.
    #[must_use]
    pub fn section(&self, name: &str) -> Self {
        let (Takes::Table(keys) | Takes::NumberOrTable(_, _, keys) | Takes::TextOrTable(keys)) =
            self.key(name).takes
        else {
            unreachable!("`{name}` is declared as a table")
        };
        match self.node(name) {
            Some(node) => Self::new(node, keys),
            None => Self { table: None, keys, origin: self.origin },
        }
    }

    /// Returns a list of tables below; empty if not given.
    #[must_use]
    pub fn sections(&self, name: &str) -> Vec<Self> {
        let Takes::Tables(keys) = self.key(name).takes else {
            unreachable!("`{name}` is declared as tables")
        };
        match self.node(name).map(|n| &n.value) {
            Some(Value::Array(items)) => items.iter().map(|item| Self::new(item, keys)).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the value as it was written, if it was.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<&'a Node> {
        debug_assert!(self.keys.iter().any(|k| k.name == name), "no such key: {name}");
        self.table?.get(name).map(|e| &e.node)
    }

    /// Returns every key with its declaration, in the order of the table.
    pub fn keys(&self) -> impl Iterator<Item = &'static Key> + use<> {
        self.keys.iter()
    }

    fn key(&self, name: &str) -> &'static Key {
        self.keys.iter().find(|k| k.name == name).expect("only declared keys are asked for")
    }
}
