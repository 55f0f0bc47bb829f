//! Columns and cells.

use std::fmt::Write as _;

/// Type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// Whole numbers.
    Whole,
    /// Numbers.
    Real,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name, with the unit in it.
    pub name: String,
    /// Type of its values.
    pub kind: Kind,
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Text.
    Text(&'a str),
    /// A whole number.
    Whole(u64),
    /// A number.
    Real(f64),
    /// No value.
    Empty,
}

impl Column {
    pub(super) fn new(name: &str, kind: Kind) -> Self {
        Self { name: name.to_owned(), kind }
    }
}

impl<'a> Cell<'a> {
    /// Returns the cell as text; a number is written into `number`.
    pub(crate) fn text<'t>(&self, number: &'t mut String) -> &'t str
    where
        'a: 't,
    {
        number.clear();
        match self {
            Self::Text(text) => return text,
            Self::Whole(i) => write!(number, "{i}").expect("strings take everything"),
            Self::Real(x) => write!(number, "{x}").expect("strings take everything"),
            Self::Empty => {}
        }
        number
    }
}

impl<'a> From<Option<u64>> for Cell<'a> {
    fn from(value: Option<u64>) -> Self {
        value.map_or(Self::Empty, Self::Whole)
    }
}

impl<'a> From<Option<f64>> for Cell<'a> {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::Empty, Self::Real)
    }
}
