//! Configuration files in TOML: values with their places, keys declared with type, range, unit and default, and errors that
//! point at the place and say what would be right.
//!
//! | module | content |
//! |---|---|
//! | [`source`] | texts, places in them, problems, the nearest known word |
//! | [`document`] | TOML values with the place of each; settings that override them |
//! | [`schema`], `default` | declarations of keys, and their defaults |
//! | `check` | check of a document against its keys |
//! | `section` | a table of a checked document, read by its keys |
//! | [`field`], [`mod@choice`] | keys that are read by their declaration, as numbers and as values of an enum |
//! | [`json_schema`] | JSON Schema and reference of a kind of file |
//! | [`keys`], [`middlebox`] | keys of middleboxes, and their configurations: the same in a scenario and behind real packets |
//! | [`separated`] | lines of separated values |
//! | [`mod@unit`] | units of keys |
//!
//! Nothing here knows of a simulator: scenario files and files of daemons are built on it alike.

mod check;
pub mod choice;
mod default;
pub mod document;
pub mod field;
pub mod from_json;
pub mod json_schema;
pub mod key_owners;
pub mod keys;
pub mod middlebox;
mod reference;
pub mod schema;
mod section;
pub mod separated;
pub mod source;
pub mod unit;
