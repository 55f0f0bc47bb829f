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

use super::recording::{MAX_NODES, MAX_SAMPLES, too_many_nodes, too_many_samples};
use super::text_error::{MovementError, TextError};
use core::ops::Range;
use hopline_radio::mobility::{Position, SetdestCommand, Trajectory};
use line::{Axis, NodeRef, Statement};
use std::collections::BTreeMap;

pub use write::to_ns_movements;

#[cfg(test)]
mod tests;

/// A movement file as values: for each node, from 0, its start and its commands.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Movements {
    /// Movements, by node index.
    pub nodes: Vec<Movement>,
}

/// The movement of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Movement {
    /// Position at time 0.
    pub start: Position,
    /// Its orders, in the order of the file.
    pub set_destinations: Vec<SetdestCommand>,
    /// The bytes of the text that mention it first.
    pub first: Range<usize>,
}

impl Movements {
    /// Reads the text of a movement file, which has as many nodes as its highest index says.
    ///
    /// # Errors
    ///
    /// The first line that is wrong, or a node that is not placed.
    pub fn parse(text: &str) -> Result<Self, MovementError> {
        let mut reader = Reader::default();
        let mut start = 0;
        for with_end in text.split_inclusive('\n') {
            let line = with_end.trim_end_matches(['\n', '\r']);
            let read = line::parse(line).and_then(|statement| reader.handle_statement(statement, start));
            read.map_err(|flaw| flaw.offset_by(start).in_text(text))?;
            start += with_end.len();
        }
        reader.finish(text).map_err(|flaw| flaw.in_text(text))
    }

    /// Returns the paths of all nodes, by index.
    #[must_use]
    pub fn trajectories(&self) -> Vec<Trajectory> {
        self.nodes.iter().map(|node| Trajectory::from_setdest(node.start, &node.set_destinations)).collect()
    }
}

/// Partial description of a node.
struct Draft {
    /// The bytes of the text that mention it first.
    first: Range<usize>,
    x_m: Option<f64>,
    y_m: Option<f64>,
    orders: Vec<SetdestCommand>,
}

#[derive(Default)]
struct Reader {
    nodes: BTreeMap<u32, Draft>,
    orders: usize,
}

impl Reader {
    /// Takes a statement of the line that begins at byte `start`.
    fn handle_statement(&mut self, statement: Statement, start: usize) -> Result<(), TextError> {
        match statement {
            Statement::Nothing => {}
            Statement::SetDest(node, order) => {
                self.orders += 1;
                if self.orders > MAX_SAMPLES {
                    return Err(too_many_samples(node.range));
                }
                self.node(&node, start)?.orders.push(order);
            }
            Statement::Place(node, axis, value) => {
                let draft = self.node(&node, start)?;
                let (slot, name) = match axis {
                    Axis::X => (&mut draft.x_m, "X_"),
                    Axis::Y => (&mut draft.y_m, "Y_"),
                    Axis::Z => return Ok(()),
                };
                if slot.replace(value).is_some() {
                    let message = format!("{name} of node {} is set twice", node.index);
                    return Err(TextError::new(node.range, message, "keep one of the two lines"));
                }
            }
        }
        Ok(())
    }

    fn node(&mut self, node: &NodeRef, start: usize) -> Result<&mut Draft, TextError> {
        if self.nodes.len() == MAX_NODES && !self.nodes.contains_key(&node.index) {
            return Err(too_many_nodes(node.range.clone()));
        }
        let first = node.range.start + start..node.range.end + start;
        let new = || Draft { first, x_m: None, y_m: None, orders: Vec::new() };
        Ok(self.nodes.entry(node.index).or_insert_with(new))
    }

    fn finish(self, text: &str) -> Result<Movements, TextError> {
        let mut nodes = Vec::new();
        let end = text.trim_end().len();
        for (expected, (index, draft)) in (0..).zip(self.nodes) {
            if index != expected {
                return Err(missing_position(expected, end..end));
            }
            let (Some(x_m), Some(y_m)) = (draft.x_m, draft.y_m) else {
                return Err(missing_position(index, draft.first));
            };
            nodes.push(Movement {
                start: Position { x_m, y_m },
                set_destinations: draft.orders,
                first: draft.first,
            });
        }
        Ok(Movements { nodes })
    }
}

fn missing_position(index: u32, range: Range<usize>) -> TextError {
    let help = format!(
        "each node from 0 to the last needs both: `$node_({index}) set X_ 83.4` and `$node_({index}) set Y_ 239.4`"
    );
    TextError::new(range, format!("node {index} is not placed"), help)
}
