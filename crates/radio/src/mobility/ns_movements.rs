//! ns-2 movement files (`.ns_movements`), as written by `setdest` and by many generators: read and write.
//!
//! What is read, one statement a line:
//!
//! ```tcl
//! # a comment
//! $node_(0) set X_ 83.4
//! $node_(0) set Y_ 239.4
//! $node_(0) set Z_ 0.0
//! $god_ set-dist 0 1 2
//! $ns_ at 2.0 "$node_(0) setdest 90.4 44.8 1.3"
//! $ns_ at 2.5 "$god_ set-dist 0 1 3"
//! ```
//!
//! Variables may have any names. `set-dist` tells ns-2 what it cannot know by itself; it is checked and ignored. Every
//! node from 0 to the last must be placed. A line that is none of these is an error, never skipped: silently different
//! movement is worse than none.

mod line;
mod write;

use super::{Position, SetDest, Trajectory};
use core::ops::Range;
use line::{Axis, Flaw, NodeRef, Statement};
use std::collections::BTreeMap;

pub use write::to_ns_movements;

#[cfg(test)]
mod tests;

/// The fastest order that is read, and written: the speed of light in m/s.
const TOP_SPEED_MPS: f64 = 299_792_458.0;

/// A movement file as values: for each node, from 0, where it starts and what it is told.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Movements {
    /// By node index.
    pub nodes: Vec<Movement>,
}

/// The movement of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Movement {
    /// Where it is at time 0.
    pub start: Position,
    /// Its orders, in the order of the file.
    pub orders: Vec<SetDest>,
}

/// What is wrong with a movement file, where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}; {help}")]
pub struct MovementError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The bytes of the text that are wrong; may be empty.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: String,
}

impl Movements {
    /// Reads the text of a movement file. With `declared`, the file must place exactly that many nodes; without, it has
    /// as many as its highest index says.
    pub fn parse(text: &str, declared: Option<u32>) -> Result<Self, MovementError> {
        let mut reader = Reader { declared, nodes: BTreeMap::new() };
        let mut last = SourceLine { line: 1, start: 0, text: "" };
        let mut start = 0;
        for (index, with_end) in text.split_inclusive('\n').enumerate() {
            let text = with_end.trim_end_matches(['\n', '\r']);
            last = SourceLine { line: index + 1, start, text };
            let statement = line::parse(text).map_err(|flaw| last.error(flaw))?;
            reader.take(statement, last).map_err(|flaw| last.error(flaw))?;
            start += with_end.len();
        }
        reader.finish(last)
    }

    /// The paths of all nodes, by index.
    #[must_use]
    pub fn trajectories(&self) -> Vec<Trajectory> {
        self.nodes.iter().map(|node| Trajectory::from_orders(node.start, &node.orders)).collect()
    }
}

/// A line of the file, without its end.
#[derive(Clone, Copy)]
struct SourceLine<'a> {
    line: usize,
    /// Bytes of the text before it.
    start: usize,
    text: &'a str,
}

impl SourceLine<'_> {
    fn error(&self, flaw: Flaw) -> MovementError {
        MovementError {
            line: self.line,
            column: self.text[..flaw.range.start].chars().count() + 1,
            span: self.start + flaw.range.start..self.start + flaw.range.end,
            message: flaw.message,
            help: flaw.help,
        }
    }
}

/// What is known of a node so far.
struct Draft<'a> {
    /// Where it is first mentioned.
    place: SourceLine<'a>,
    range: Range<usize>,
    x_m: Option<f64>,
    y_m: Option<f64>,
    orders: Vec<SetDest>,
}

struct Reader<'a> {
    declared: Option<u32>,
    nodes: BTreeMap<u32, Draft<'a>>,
}

impl<'a> Reader<'a> {
    fn take(&mut self, statement: Statement, place: SourceLine<'a>) -> Result<(), Flaw> {
        match statement {
            Statement::Nothing => {}
            Statement::SetDest(node, order) => self.node(node, place)?.orders.push(order),
            Statement::Place(node, axis, value) => {
                let range = node.range.clone();
                let index = node.index;
                let draft = self.node(node, place)?;
                let (slot, name) = match axis {
                    Axis::X => (&mut draft.x_m, "X_"),
                    Axis::Y => (&mut draft.y_m, "Y_"),
                    Axis::Z => return Ok(()),
                };
                if slot.replace(value).is_some() {
                    let message = format!("{name} of node {index} is set twice");
                    return Err(Flaw::new(range, message, "keep one of the two lines"));
                }
            }
        }
        Ok(())
    }

    fn node(&mut self, node: NodeRef, place: SourceLine<'a>) -> Result<&mut Draft<'a>, Flaw> {
        if let Some(count) = self.declared.filter(|&count| node.index >= count) {
            let help = match count.checked_sub(1) {
                None => "the scenario has no nodes".to_owned(),
                Some(last) => format!("the scenario has {count} nodes, 0 to {last}"),
            };
            return Err(Flaw::new(node.range, format!("there is no node {}", node.index), help));
        }
        let range = node.range;
        let new = || Draft { place, range, x_m: None, y_m: None, orders: Vec::new() };
        Ok(self.nodes.entry(node.index).or_insert_with(new))
    }

    fn finish(self, last: SourceLine<'_>) -> Result<Movements, MovementError> {
        let highest = self.nodes.keys().next_back().copied();
        let count = self.declared.map_or_else(|| highest.map_or(0, |n| u64::from(n) + 1), u64::from);
        let mut drafts = self.nodes.into_iter().peekable();
        let mut nodes = Vec::new();
        for index in 0..count {
            // Ends at the first gap: no more turns than the file has nodes.
            let Some((_, draft)) = drafts.next_if(|(n, _)| u64::from(*n) == index) else {
                let end = last.text.len()..last.text.len();
                return Err(last.error(not_placed(index, count, end)));
            };
            let (Some(x_m), Some(y_m)) = (draft.x_m, draft.y_m) else {
                return Err(draft.place.error(not_placed(index, count, draft.range)));
            };
            nodes.push(Movement { start: Position { x_m, y_m }, orders: draft.orders });
        }
        Ok(Movements { nodes })
    }
}

fn not_placed(index: u64, count: u64, range: Range<usize>) -> Flaw {
    let help = format!(
        "each of the {count} nodes needs both: `$node_({index}) set X_ 83.4` and `$node_({index}) set Y_ 239.4`"
    );
    Flaw::new(range, format!("node {index} is not placed"), help)
}
