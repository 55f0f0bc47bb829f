//! Movement as CSV: a line for each position of a node.
//!
//! ```csv
//! node,time_s,x_m,y_m
//! # a comment
//! car,0,10,20
//! bus,0,0,0
//! car,1.5,12.5,20
//! ```
//!
//! The columns may come in any order, the lines of different nodes may be mixed; those of one node are in the
//! order of time. A node goes from each position to its next in a straight line and at constant speed, and
//! stands at its first one before and at its last one afterwards. Nodes have names, or numbers: if all are
//! whole numbers, they are 0, 1, … without a gap. Quotes are not part of the format. Semicolons stand for the
//! commas if the header has any.

use super::quantity::Quantity;
use super::recording::{Recorder, Recording, Track};
use super::text_error::{TextError, shorten};
use crate::separated::{Separator, rows};
use core::ops::Range;
use hopline_radio::mobility::Position;
use std::collections::BTreeMap;

#[cfg(test)]
mod tests;

const COLUMNS: [&str; 4] = ["node", "time_s", "x_m", "y_m"];
const HEADER: &str = "node,time_s,x_m,y_m";

pub(super) fn read(text: &str) -> Result<Recording, TextError> {
    let mut rows = rows(text);
    let Some(header) = rows.next() else {
        return Err(TextError::new(0..0, "an empty file", format!("its first line is `{HEADER}`")));
    };
    let separator = Separator::of(&text[header.clone()]);
    let order = columns(text, separator, header)?;
    let mut recorder = Recorder::default();
    let mut nodes: BTreeMap<&str, Track> = BTreeMap::new();
    for row in rows {
        let [node, time, x, y] = cells(text, separator, row, order)?;
        let track = match nodes.get(&text[node.clone()]) {
            Some(track) => *track,
            None => {
                let name = &text[node.clone()];
                let track = recorder.node(Some(name), node.clone())?;
                reject_quotes(name, &node)?;
                nodes.insert(name, track);
                track
            }
        };
        let at = Quantity::read_instant(&text[time.clone()], time.start)?;
        let number = |cell: Range<usize>, quantity: Quantity| quantity.read(&text[cell.clone()], cell.start);
        let position = Position { x_m: number(x, Quantity::X)?, y_m: number(y, Quantity::Y)? };
        recorder.sample(track, at, position, time)?;
    }
    by_number(recorder.finish())
}

/// Returns, for each column of the file, its index in [`COLUMNS`].
fn columns(text: &str, separator: Separator, header: Range<usize>) -> Result<[usize; 4], TextError> {
    let help = format!("the header is `{HEADER}`, in any order");
    let mut order = Vec::new();
    for cell in separator.cells(text, header.clone()) {
        let name = &text[cell.clone()];
        let Some(column) = COLUMNS.iter().position(|known| *known == name) else {
            return Err(TextError::new(cell, format!("unknown column `{}`", shorten(name)), help));
        };
        if order.contains(&column) {
            return Err(TextError::new(cell, format!("a second column `{name}`"), help));
        }
        order.push(column);
    }
    let missing = COLUMNS.iter().enumerate().find(|(column, _)| !order.contains(column));
    order.try_into().map_err(|_| {
        let (_, name) = missing.expect("known columns that are not repeated and not four lack one");
        TextError::new(header, format!("no column `{name}`"), help)
    })
}

/// Returns the cells of a row, in the order of [`COLUMNS`].
fn cells(
    text: &str,
    separator: Separator,
    row: Range<usize>,
    order: [usize; 4],
) -> Result<[Range<usize>; 4], TextError> {
    let mut cells = [const { 0..0 }; 4];
    let mut count = 0;
    for cell in separator.cells(text, row.clone()) {
        if let Some(&column) = order.get(count) {
            cells[column] = cell;
        }
        count += 1;
    }
    if count == order.len() {
        return Ok(cells);
    }
    let help = format!("every line has a node, a time, x and y, separated by {}", separator.plural());
    Err(TextError::new(row, format!("4 columns in the header, {count} here"), help))
}

fn reject_quotes(name: &str, cell: &Range<usize>) -> Result<(), TextError> {
    if name.contains('"') {
        let help = "quotes are not part of the format: write the name as it is, without commas";
        return Err(TextError::new(cell.clone(), format!("`{}` has quotes", shorten(name)), help));
    }
    Ok(())
}

/// Orders the nodes by number, without names, if all names are numbers.
fn by_number(recording: Recording) -> Result<Recording, TextError> {
    let mut numbered = BTreeMap::new();
    for (index, node) in recording.nodes.iter().enumerate() {
        let Some(number) = node.name.as_deref().and_then(number) else { return Ok(recording) };
        numbered.insert(number, index);
    }
    let gap = (0..).zip(&numbered).find(|(expected, (number, _))| expected != *number);
    if let Some((expected, (number, index))) = gap {
        return Err(TextError::new(
            recording.nodes[*index].first.clone(),
            format!("there is a node {number}, but no node {expected}"),
            "nodes are numbered 0, 1, … without a gap, or have names",
        ));
    }
    let mut nodes: Vec<_> = recording.nodes.into_iter().map(Some).collect();
    let take = |index: usize| nodes[index].take().expect("every node has one number");
    let in_order = numbered.into_values().map(take).map(|node| super::RecordedNode { name: None, ..node });
    Ok(Recording { nodes: in_order.collect() })
}

/// Parses a whole number without leading zeros: each number has one spelling.
fn number(name: &str) -> Option<u64> {
    let number: u64 = name.parse().ok()?;
    (number.to_string() == name).then_some(number)
}
