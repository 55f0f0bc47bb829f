//! Content of a movement file of any format, as paths of nodes.

use super::quantity::TOP_SPEED_MPS;
use super::text_error::{TextError, shorten};
use crate::degrees::{HELP, MESSAGE, look_like_degrees};
use core::ops::Range;
use hopline_core::Instant;
use hopline_radio::mobility::{Position, Trajectory};

#[cfg(test)]
mod tests;

/// Most nodes of a movement file; bounds memory.
pub const MAX_NODES: usize = 1 << 20;
/// Most positions, or orders, of a movement file, of all nodes together; bounds memory to a few gigabytes.
pub const MAX_SAMPLES: usize = 40_000_000;
/// Longest name of a node, in bytes.
const MAX_NAME: usize = 255;

/// Content of a movement file: the path of each node.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// In the order of their numbers where the format has numbers, otherwise as they first occur. At least one.
    pub nodes: Vec<RecordedNode>,
}

/// One node of a movement file.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedNode {
    /// Its name, if the file has names. Unique in the file.
    pub name: Option<String>,
    /// The bytes of the text that mention it first.
    pub first: Range<usize>,
    /// Position at each moment. Before its first position and after its last one it stands there.
    pub trajectory: Trajectory,
}

impl Recording {
    /// Refuses longitudes and latitudes.
    pub(super) fn check_metres(&self) -> Result<(), TextError> {
        let corners = self.nodes.iter().flat_map(|node| node.trajectory.corners());
        match self.nodes.first() {
            Some(first) if look_like_degrees(corners.map(|(_, at)| (at.x_m, at.y_m))) => {
                Err(TextError::new(first.first.clone(), MESSAGE, HELP))
            }
            _ => Ok(()),
        }
    }
}

/// A recording that is being made, position by position.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    nodes: Vec<Draft>,
    samples: usize,
}

#[derive(Debug)]
struct Draft {
    name: Option<String>,
    first: Range<usize>,
    path: Option<Trajectory>,
}

/// A node of a recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Track(usize);

impl Recorder {
    /// Adds a new node, first mentioned at `first`. The caller sees to it that names are unique.
    pub(super) fn node(&mut self, name: Option<&str>, first: Range<usize>) -> Result<Track, TextError> {
        if self.nodes.len() == MAX_NODES {
            return Err(too_many_nodes(first));
        }
        if let Some(name) = name {
            check_name(name, &first)?;
        }
        self.nodes.push(Draft { name: name.map(str::to_owned), first, path: None });
        Ok(Track(self.nodes.len() - 1))
    }

    /// Records that `node` is at `position` at `at`, which the text gives at `range`.
    pub(super) fn sample(
        &mut self,
        node: Track,
        at: Instant,
        position: Position,
        range: Range<usize>,
    ) -> Result<(), TextError> {
        self.samples += 1;
        if self.samples > MAX_SAMPLES {
            return Err(too_many_samples(range));
        }
        let path = &mut self.nodes[node.0].path;
        let Some(path) = path else {
            let start = path.insert(Trajectory::fixed(position));
            start.extend(at.since(Instant::ZERO), position);
            return Ok(());
        };
        let end = path.end();
        if at <= end {
            let help = format!("a node's times increase, by a nanosecond at least; before it is {end}");
            return Err(TextError::new(range, "this time is not later than the one before it", help));
        }
        let travel = at.since(end);
        if path.position_at(end).distance_m(position) > TOP_SPEED_MPS * travel.as_secs_f64() {
            return Err(TextError::new(
                range,
                "the node would have to be faster than light to be here",
                format!("it was elsewhere at {end}; positions are in metres, times in seconds"),
            ));
        }
        path.extend(travel, position);
        Ok(())
    }

    /// Returns the time and place of the last position of `node`, if it has one.
    pub(super) fn last(&self, node: Track) -> Option<(Instant, Position)> {
        self.nodes[node.0].path.as_ref().map(|path| (path.end(), path.position_at(path.end())))
    }

    /// Returns the recording. A node without a position is left out.
    pub(super) fn finish(self) -> Recording {
        let node = |draft: Draft| {
            Some(RecordedNode { name: draft.name, first: draft.first, trajectory: draft.path? })
        };
        Recording { nodes: self.nodes.into_iter().filter_map(node).collect() }
    }
}

fn check_name(name: &str, range: &Range<usize>) -> Result<(), TextError> {
    let help = "a name is 1 to 255 bytes long";
    if name.is_empty() {
        return Err(TextError::new(range.clone(), "a node without a name", help));
    }
    if name.len() > MAX_NAME {
        return Err(TextError::new(range.clone(), format!("`{}` is too long a name", shorten(name)), help));
    }
    Ok(())
}

pub(super) fn too_many_nodes(range: Range<usize>) -> TextError {
    let help = "leave out nodes that are not simulated";
    TextError::new(range, format!("more than {MAX_NODES} nodes"), help)
}

pub(super) fn too_many_samples(range: Range<usize>) -> TextError {
    let help = "sample less often: nodes move straight between two positions";
    TextError::new(range, format!("more than {MAX_SAMPLES} positions"), help)
}
