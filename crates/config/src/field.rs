//! Keys that always have a value: they must be given, or have a default. Such a key is declared once, with
//! the type of its value, and read by that declaration: [`Section::get`](super::schema::Section::get) has
//! nothing to doubt.

use super::document::Value;
use super::schema::{Default, Key, Takes};
use super::section::Section;
use core::marker::PhantomData;

pub use super::section::Declared;

/// A key of type `T` that always has a value.
#[derive(Debug)]
pub struct Field<T> {
    /// Declaration of the key.
    pub key: Key,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for Field<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Field<T> {}

/// The type of words and other texts.
#[derive(Debug)]
pub enum Word {}

impl<T: Type> Declared for Field<T> {
    type Value<'a> = T::Value<'a>;

    fn read<'a>(self, section: &Section<'a>) -> T::Value<'a> {
        T::read(section, &self.key).expect("a checked document has what must be given, of the right kind")
    }
}

/// The type of a value that is there.
pub trait Type {
    /// Type of the value.
    type Value<'a>;

    /// Returns the value of `key` in a checked `section`.
    fn read<'a>(section: &Section<'a>, key: &Key) -> Option<Self::Value<'a>>;
}

impl Field<f64> {
    /// Declares a number.
    ///
    /// # Panics
    /// When it is compiled, if `key` is of another kind, or need not have a value.
    #[must_use]
    pub const fn number(key: Key) -> Self {
        assert!(
            matches!((key.takes, key.default), (Takes::Number(..), Default::Required | Default::Number(_))),
            "a number that must be given or has a default"
        );
        Self { key, of: PhantomData }
    }
}

impl Field<u64> {
    /// Declares a whole number.
    ///
    /// # Panics
    /// As [`Field::number`].
    #[must_use]
    pub const fn integer(key: Key) -> Self {
        assert!(
            matches!((key.takes, key.default), (Takes::Integer(..), Default::Required | Default::Integer(_))),
            "a whole number that must be given or has a default"
        );
        Self { key, of: PhantomData }
    }
}

impl Field<Word> {
    /// Declares a word or another text.
    ///
    /// # Panics
    /// As [`Field::number`].
    #[must_use]
    pub const fn word(key: Key) -> Self {
        assert!(
            matches!(
                (key.takes, key.default),
                (
                    Takes::Word(_) | Takes::WordOrUserDefined(_) | Takes::Text,
                    Default::Required | Default::Word(_)
                )
            ),
            "a word or text that must be given or has a default"
        );
        Self { key, of: PhantomData }
    }
}

impl Type for f64 {
    type Value<'a> = f64;

    fn read<'a>(section: &Section<'a>, key: &Key) -> Option<f64> {
        match (section.node(key.name).map(|node| &node.value), key.default) {
            (Some(Value::Float(x)), _) => Some(*x),
            (Some(Value::Integer(i)), _) => Some(*i as f64),
            (None, Default::Number(x)) => Some(x),
            _ => None,
        }
    }
}

impl Type for u64 {
    type Value<'a> = u64;

    fn read<'a>(section: &Section<'a>, key: &Key) -> Option<u64> {
        match (section.node(key.name).map(|node| &node.value), key.default) {
            (Some(Value::Integer(i)), _) => u64::try_from(*i).ok(),
            (None, Default::Integer(i)) => Some(i),
            _ => None,
        }
    }
}

impl Type for Word {
    type Value<'a> = &'a str;

    fn read<'a>(section: &Section<'a>, key: &Key) -> Option<&'a str> {
        match (section.node(key.name).map(|node| &node.value), key.default) {
            (Some(Value::Text(text)), _) => Some(text),
            (None, Default::Word(word)) => Some(word),
            _ => None,
        }
    }
}
