//! The reference of all keys, for people.

use super::json_schema::FileKind;
use super::schema::{Default, Key, Takes, USER_DEFINED_PREFIX};
use std::fmt::Write;

impl FileKind {
    /// Returns every key of such a file as Markdown: a table for the top level and one for each section.
    #[must_use]
    pub fn reference(&self) -> String {
        let mut text = String::new();
        // Tables that occur in several places, such as error models, are written once.
        let mut written: Vec<&'static [Key]> = Vec::new();
        section(&mut text, "Top level", self.keys);
        write_subsections(&mut text, "", self.keys, &mut written);
        text
    }
}

fn write_subsections(text: &mut String, path: &str, keys: &'static [Key], written: &mut Vec<&'static [Key]>) {
    for key in keys {
        let path = super::schema::join(path, key.name);
        let (table, title) = match key.takes {
            Takes::Table(table) | Takes::NumberOrTable(_, _, table) | Takes::TextOrTable(table) => {
                (table, format!("`[{path}]`"))
            }
            Takes::Tables(table) => (table, format!("`[[{path}]]`")),
            _ => continue,
        };
        if written.contains(&table) {
            let names: Vec<&str> = table.iter().map(|k| k.name).take(2).collect();
            writeln!(text, "\n### {title}\n\n{}: keys as above (`{}`, …).", key.doc, names.join("`, `"))
                .expect("strings take everything");
            continue;
        }
        written.push(table);
        section(text, &format!("{title}: {}", key.doc), table);
        write_subsections(text, &path, table, written);
    }
}

fn section(text: &mut String, title: &str, keys: &'static [Key]) {
    let mut say = |line: String| writeln!(text, "{line}").expect("strings take everything");
    say(format!("\n### {title}\n"));
    say("| key | takes | default | meaning |".into());
    say("|---|---|---|---|".into());
    for key in keys {
        let default = match key.default {
            Default::Required => "**required**".to_owned(),
            default => default.to_string(),
        };
        say(format!("| `{}` | {} | {default} | {} |", key.name, key.takes.in_markdown(), key.doc));
    }
}

impl Takes {
    /// Returns its text in a cell of a table.
    #[must_use]
    pub fn in_markdown(self) -> String {
        let words = |words: &[&str]| words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", ");
        match self {
            Self::Number(min, max) => format!("{min} to {max}"),
            Self::Integer(min, max) => format!("whole, {min} to {max}"),
            Self::IntegerOr(min, max, other) => format!("whole, {min} to {max}, or {}", words(other)),
            Self::NumberOrTable(min, max, _) => format!("{min} to {max}, or table, below"),
            Self::Word(known) => words(known),
            Self::WordOrUserDefined(known) => format!("{}, `{USER_DEFINED_PREFIX}NAME`", words(known)),
            Self::Flag => "`true`, `false`".into(),
            Self::Text => "text".into(),
            Self::TextOrTable(_) => "text, or table, below".into(),
            Self::Table(_) => "table, below".into(),
            Self::Tables(_) => "list of tables, below".into(),
            Self::Lists => "table of lists".into(),
            Self::Settings => "table of keys and values".into(),
            Self::Texts => "list of texts".into(),
            Self::Integers(min, max) => format!("list of whole numbers, {min} to {max}"),
        }
    }
}
