//! Keys that take one of some words, each declared with what it means: no reader asks for a word again.

use super::document::Value;
use super::schema::{Default, Exception, Key, Literal, Takes, is_among};
use super::section::{Declared, Section};

/// A key with words that stand for values of type `T`. Made by [`choice!`](crate::choice!).
#[derive(Clone, Copy, Debug)]
pub struct Choice<T: 'static> {
    /// Declaration of the key.
    pub key: Key,
    values: &'static [T],
}

/// A [`Choice`] that always has a value: it must be given, or has a default.
#[derive(Clone, Copy, Debug)]
pub struct Chosen<T: 'static> {
    /// Declaration of the key.
    pub key: Key,
    choice: Choice<T>,
}

/// A [`Choice`]: its name, its words with what they mean, and its documentation.
#[macro_export]
macro_rules! choice {
    ($name:literal, { $($word:literal => $meaning:expr),+ $(,)? }, $doc:expr $(,)?) => {
        $crate::choice::Choice::new($crate::schema::Key::word($name, &[$($word),+], $doc), &[$($meaning),+])
    };
}

impl<T: Copy> Choice<T> {
    /// Creates a choice for `key`. The words of the key mean `meanings`, in their order.
    ///
    /// # Panics
    /// When it is compiled, if the key does not take as many words as there are meanings.
    #[must_use]
    pub const fn new(key: Key, meanings: &'static [T]) -> Self {
        let Takes::Word(words) = key.takes else { panic!("a choice takes words") };
        assert!(words.len() == meanings.len(), "each word has its meaning");
        Self { key, values: meanings }
    }

    /// Returns the same key, which reads as `word` where it is not given.
    ///
    /// # Panics
    /// When it is compiled, if the key does not have this word.
    #[must_use]
    pub const fn with_default(self, word: &'static str) -> Chosen<T> {
        let Takes::Word(words) = self.key.takes else { panic!("a choice takes words") };
        assert!(is_among(words, word), "the default is one of the words");
        let key = self.key.with_default(Default::Word(word));
        Chosen { key, choice: Self { key, ..self } }
    }

    /// Returns the same key with the default of the algorithm's configuration.
    ///
    /// # Panics
    /// As [`Key::default`].
    #[must_use]
    pub const fn default(self, word: &'static str) -> Self {
        self.default_except(word, &[])
    }

    /// Returns the same key with the default of the algorithm's configuration, and its exceptions.
    ///
    /// # Panics
    /// As [`Key::default`].
    #[must_use]
    pub const fn default_except(self, word: &'static str, exceptions: &'static [Exception]) -> Self {
        Self { key: self.key.default_except(Literal::Word(word), exceptions), ..self }
    }

    /// Returns the same key with a default that `text` describes.
    #[must_use]
    pub const fn derived(self, text: &'static str) -> Self {
        Self { key: self.key.derived(text), ..self }
    }

    /// Adds the names that the key had before.
    #[must_use]
    pub const fn formerly(self, names: &'static [&'static str]) -> Self {
        Self { key: self.key.formerly(names), ..self }
    }

    /// Returns the same key, which must be given.
    #[must_use]
    pub const fn required(self) -> Chosen<T> {
        let key = self.key.required();
        Chosen { key, choice: Self { key, ..self } }
    }

    fn value_of(&self, word: &str) -> Option<T> {
        let Takes::Word(words) = self.key.takes else { return None };
        words.iter().zip(self.values).find(|(known, _)| **known == word).map(|(_, meaning)| *meaning)
    }
}

impl<T: Copy> Chosen<T> {
    /// Returns all words.
    #[must_use]
    pub fn words(&self) -> &'static [&'static str] {
        let Takes::Word(words) = self.key.takes else { return &[] };
        words
    }

    /// Returns the word itself: given in a checked `section`, or by default.
    ///
    /// # Panics
    /// As [`Declared::read`].
    #[must_use]
    pub fn word<'a>(&self, section: &Section<'a>) -> &'a str {
        section.word(self.key.name).expect("a checked document has what must be given, and a word")
    }
}

impl<T: Copy> Declared for Choice<T> {
    type Value<'a> = Option<T>;

    fn read<'a>(self, section: &Section<'a>) -> Option<T> {
        match (section.node(self.key.name).map(|node| &node.value), self.key.default) {
            (Some(Value::Text(word)), _) => self.value_of(word),
            (None, Default::Word(word)) => self.value_of(word),
            _ => None,
        }
    }
}

impl<T: Copy> Declared for Chosen<T> {
    type Value<'a> = T;

    fn read<'a>(self, section: &Section<'a>) -> T {
        self.choice.read(section).expect("a checked document has what must be given, and one of the words")
    }
}
