//! Uniform cell grid that finds the nodes within a distance of a point.
//!
//! The plane is cut into square cells, and the cells are folded onto a torus of 64 × 64 buckets. Folding needs no
//! bounds, no hashing and no growth: positions may be anywhere, and what lands in the same bucket from far away
//! fails the distance test like any other node that is too far.

use crate::mobility::Position;
use hopline_core::NodeId;

#[cfg(test)]
mod tests;

/// Buckets along each side of the torus; a power of two.
const SIDE: i64 = 64;

/// Node positions, indexed by cell.
#[derive(Clone, Debug)]
pub struct CellGrid {
    cell_m: f64,
    buckets: Vec<Vec<(NodeId, Position)>>,
    /// Positions by node index.
    positions: Vec<Option<Position>>,
    len: usize,
}

impl CellGrid {
    /// An empty grid of square cells, `cell_m` > 0 metres on a side. Queries are fastest when that is about the usual
    /// query radius.
    #[must_use]
    pub fn new(cell_m: f64) -> Self {
        assert!(cell_m > 0.0, "cells have a size");
        Self { cell_m, buckets: vec![Vec::new(); (SIDE * SIDE) as usize], positions: Vec::new(), len: 0 }
    }

    /// Puts `node` at `position`, which must be finite; moves it there if it is already in the grid.
    pub fn place(&mut self, node: NodeId, position: Position) {
        if self.positions.len() <= node.index() {
            self.positions.resize(node.index() + 1, None);
        }
        let bucket = self.bucket_of(position);
        match self.positions[node.index()].replace(position) {
            Some(old) if self.bucket_of(old) == bucket => {
                let slot = self.slot(bucket, node);
                self.buckets[bucket][slot].1 = position;
                return;
            }
            Some(old) => self.remove_from_bucket(self.bucket_of(old), node),
            None => self.len += 1,
        }
        self.buckets[bucket].push((node, position));
    }

    /// Removes `node`; does nothing if it is not in the grid.
    pub fn remove(&mut self, node: NodeId) {
        if let Some(old) = self.positions.get_mut(node.index()).and_then(Option::take) {
            self.remove_from_bucket(self.bucket_of(old), node);
            self.len -= 1;
        }
    }

    /// Returns the last position of `node`.
    #[must_use]
    pub fn position(&self, node: NodeId) -> Option<Position> {
        self.positions.get(node.index()).copied().flatten()
    }

    /// Number of nodes in the grid.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether no node is in the grid.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Fills `found` with all nodes at most `radius_m` from `centre`, in the order of their ids. The previous content of
    /// `found` is dropped. A node at `centre` counts; a negative or NaN radius finds no node.
    pub fn within(&self, centre: Position, radius_m: f64, found: &mut Vec<NodeId>) {
        found.clear();
        if radius_m.is_nan() || radius_m < 0.0 {
            return;
        }
        let reach = radius_m * radius_m;
        for row in self.cell_range(centre.y_m, radius_m) {
            for column in self.cell_range(centre.x_m, radius_m) {
                let bucket = &self.buckets[bucket_index(column, row)];
                let near = bucket.iter().filter(|(_, at)| at.distance_squared_m2(centre) <= reach);
                found.extend(near.map(|&(node, _)| node));
            }
        }
        found.sort_unstable();
    }

    /// The cells along one axis that touch `around ± radius_m`; each bucket of the torus once if they wrap round it.
    fn cell_range(&self, around: f64, radius_m: f64) -> core::ops::Range<i64> {
        let first = self.cell(around - radius_m);
        let last = self.cell(around + radius_m);
        if last.saturating_sub(first) < SIDE { first..last.saturating_add(1) } else { 0..SIDE }
    }

    fn cell(&self, coordinate_m: f64) -> i64 {
        // Saturates far out; i64::MAX is kept free for the end of a range.
        ((coordinate_m / self.cell_m).floor() as i64).min(i64::MAX - 1)
    }

    fn bucket_of(&self, position: Position) -> usize {
        bucket_index(self.cell(position.x_m), self.cell(position.y_m))
    }

    fn slot(&self, bucket: usize, node: NodeId) -> usize {
        let slot = self.buckets[bucket].iter().position(|&(other, _)| other == node);
        slot.expect("a placed node is in the bucket of its position")
    }

    fn remove_from_bucket(&mut self, bucket: usize, node: NodeId) {
        let slot = self.slot(bucket, node);
        self.buckets[bucket].swap_remove(slot);
    }
}

/// The bucket of a cell; negative cells fold like positive ones.
const fn bucket_index(column: i64, row: i64) -> usize {
    (row.rem_euclid(SIDE) * SIDE + column.rem_euclid(SIDE)) as usize
}
