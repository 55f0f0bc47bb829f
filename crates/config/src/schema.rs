//! Declarations of keys: accepted values, default and meaning. The keys themselves are in [`keys`](super::keys), and in the
//! `keys` of plans and claims.

pub use super::check::{check, check_document, unknown};
pub use super::default::{Default, Exception, Literal};
pub use super::document::join;
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
    pub(super) fn help(&self) -> String {
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

/// Returns the name of a user-defined algorithm, if `word` names one.
#[must_use]
pub fn user_defined_name(word: &str) -> Option<&str> {
    word.strip_prefix(USER_DEFINED_PREFIX)
}
