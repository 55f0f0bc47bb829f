//! CSV files of nodes and flows: the header names keys of `[[node]]` or `[[flow]]`, each line is one entry. Quotes are not
//! part of the format.

use super::document::{Entry, Node, Table, Value};
use super::schema::{Key, Takes, check};
use super::source::{Origin, Problem, Problems, Source, nearest};
use std::sync::Arc;

/// The entries of a file, each a table of checked values that know their place.
///
/// # Errors
///
/// Everything that is wrong with the file: unknown columns, missing cells, values out of range.
pub fn entries(source: &Arc<Source>, keys: &'static [Key], what: &str) -> Result<Vec<Node>, Problems> {
    let mut lines = lines(source);
    let Some(header) = lines.next() else {
        let start = Origin { source: source.clone(), span: 0..0 };
        let names: Vec<&str> = keys.iter().map(|k| k.name).collect();
        return Err(Problem::new("an empty file")
            .at(&start)
            .help(format!("its first line names columns: {}", names.join(",")))
            .into());
    };
    let columns = columns(&header, keys)?;
    let mut problems = Vec::new();
    let mut entries = Vec::new();
    for (number, line) in lines.enumerate() {
        match entry(&line, &columns) {
            Ok(table) => {
                check(&table, &line.origin, &format!("{what}.{number}"), keys, &mut problems);
                entries.push(Node { origin: line.origin, value: Value::Table(table) });
            }
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(entries) } else { Err(Problems(problems)) }
}

struct Line {
    origin: Origin,
}

/// Lines that are neither empty nor comments (`#`).
fn lines(source: &Arc<Source>) -> impl Iterator<Item = Line> {
    let mut start = 0;
    let spans: Vec<_> = source
        .text
        .split_inclusive('\n')
        .map(|line| {
            let span = start..start + line.trim_end().len();
            start += line.len();
            span
        })
        .filter(|span| {
            let text = source.text[span.clone()].trim_start();
            !text.is_empty() && !text.starts_with('#')
        })
        .collect();
    spans.into_iter().map(|span| Line { origin: Origin { source: source.clone(), span } })
}

impl Line {
    /// The cells, without the white space around them.
    fn cells(&self) -> impl Iterator<Item = Origin> {
        let mut start = self.origin.span.start;
        self.origin.source.text[self.origin.span.clone()].split(',').map(move |cell| {
            let begin = start + (cell.len() - cell.trim_start().len());
            start += cell.len() + 1;
            Origin { source: self.origin.source.clone(), span: begin..begin + cell.trim().len() }
        })
    }
}

fn text(origin: &Origin) -> &str {
    &origin.source.text[origin.span.clone()]
}

fn columns(header: &Line, keys: &'static [Key]) -> Result<Vec<&'static Key>, Problem> {
    let mut columns: Vec<&Key> = Vec::new();
    for cell in header.cells() {
        let key = column(&cell, keys)?;
        if columns.iter().any(|known| known.name == key.name) {
            return Err(Problem::new(format!("a second column `{}`", key.name))
                .at(&cell)
                .help("remove one of the two"));
        }
        columns.push(key);
    }
    Ok(columns)
}

fn column(cell: &Origin, keys: &'static [Key]) -> Result<&'static Key, Problem> {
    let name = text(cell);
    let is_cell = |key: &&Key| {
        !matches!(key.takes, Takes::Table(_) | Takes::Tables(_) | Takes::Lists | Takes::Integers(..))
    };
    let known = || keys.iter().filter(is_cell);
    known().find(|k| k.name == name).ok_or_else(|| {
        let problem = Problem::new(format!("unknown column `{name}`")).at(cell);
        match nearest(name, known().map(|k| k.name)) {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None => problem
                .help(format!("known columns: {}", known().map(|k| k.name).collect::<Vec<_>>().join(", "))),
        }
    })
}

fn entry(line: &Line, columns: &[&'static Key]) -> Result<Table, Problem> {
    let cells: Vec<Origin> = line.cells().collect();
    if cells.len() != columns.len() {
        return Err(Problem::new(format!("{} columns in the header, {} here", columns.len(), cells.len()))
            .at(&line.origin)
            .help("every line has one value for each column of the header"));
    }
    let pairs = columns.iter().zip(cells).filter(|(_, cell)| !cell.span.is_empty());
    Ok(pairs
        .map(|(key, cell)| {
            let node = Node { value: value(text(&cell), key.takes), origin: cell.clone() };
            (key.name.to_owned(), Entry { key: cell, node })
        })
        .collect())
}

fn value(text: &str, takes: Takes) -> Value {
    let number = || text.parse().map(Value::Integer).or_else(|_| text.parse().map(Value::Float));
    match takes {
        Takes::Number(..) | Takes::NumberOrTable(..) | Takes::Integer(..) | Takes::IntegerOr(..) => {
            number().unwrap_or_else(|_| Value::Text(text.to_owned()))
        }
        Takes::Flag if text == "true" || text == "false" => Value::Boolean(text == "true"),
        _ => Value::Text(text.to_owned()),
    }
}
