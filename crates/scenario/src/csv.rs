//! CSV files of nodes and flows: the header names keys of `[[node]]` or `[[flow]]`, each line is one entry. Semicolons stand
//! for the commas if the header has any. Quotes are not part of the format.

use super::document::{Entry, Node, Table, Value};
use super::schema::{Key, Takes, check};
use super::separated::{Separator, decimal_comma, rows};
use hopline_config::source::{Origin, Problem, Problems, Source, nearest};
use std::sync::Arc;

/// Returns the entries of a file, each a table of checked values that know their place.
///
/// # Errors
///
/// Everything that is wrong with the file: unknown columns, missing cells, values out of range.
pub fn entries(source: &Arc<Source>, keys: &'static [Key], what: &str) -> Result<Vec<Node>, Problems> {
    let place = |span| Origin { source: source.clone(), span };
    let mut lines = rows(&source.text).map(place);
    let Some(header) = lines.next() else {
        let names: Vec<&str> = keys.iter().map(|k| k.name).collect();
        return Err(Problem::new("an empty file")
            .at(&place(0..0))
            .help(format!("its first line names columns: {}", names.join(",")))
            .into());
    };
    let separator = Separator::of(text(&header));
    let columns = columns(cells(&header, separator), keys)?;
    let mut problems = Vec::new();
    let mut entries = Vec::new();
    for (number, line) in lines.enumerate() {
        match entry(&line, separator, &columns) {
            Ok(table) => {
                let before = problems.len();
                check(&table, &line, &format!("{what}.{number}"), keys, &mut problems);
                problems[before..].iter_mut().for_each(explain_decimal_comma);
                entries.push(Node { origin: line, value: Value::Table(table) });
            }
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(entries) } else { Err(Problems(problems)) }
}

/// Returns the cells of a line, without the white space around them.
fn cells(line: &Origin, separator: Separator) -> impl Iterator<Item = Origin> {
    let place = |span| Origin { source: line.source.clone(), span };
    separator.cells(&line.source.text, line.span.clone()).map(place)
}

/// Spreadsheets write numbers as people do where they are.
fn explain_decimal_comma(problem: &mut Problem) {
    if let Some(help) = problem.at.as_ref().and_then(|at| decimal_comma(text(at))) {
        problem.help = Some(help);
    }
}

fn text(origin: &Origin) -> &str {
    &origin.source.text[origin.span.clone()]
}

fn columns(header: impl Iterator<Item = Origin>, keys: &'static [Key]) -> Result<Vec<&'static Key>, Problem> {
    let mut columns: Vec<&Key> = Vec::new();
    for cell in header {
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

fn entry(line: &Origin, separator: Separator, columns: &[&'static Key]) -> Result<Table, Problem> {
    let cells: Vec<Origin> = cells(line, separator).collect();
    if cells.len() != columns.len() {
        return Err(Problem::new(format!("{} columns in the header, {} here", columns.len(), cells.len()))
            .at(line)
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
