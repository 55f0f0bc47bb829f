//! Walls between the nodes: what they take of the power that passes through them.
//!
//! Each wall that the straight line from antenna to antenna crosses takes its loss. Reflection and diffraction are not
//! modelled: nothing goes around a wall.

use super::propagation::db_to_ratio;
use crate::mobility::Position;

#[cfg(test)]
mod tests;

/// Walls of the same loss: one between two corners, or those all around a building of three corners or more.
#[derive(Clone, Debug, PartialEq)]
pub struct Obstacle {
    /// At least two. From three on the last is joined with the first.
    pub corners: Vec<Position>,
    /// Attenuation of each wall, in dB, ≥ 0.
    pub loss_db: f64,
}

/// All obstacles of a network.
#[derive(Clone, Debug, Default)]
pub struct Obstacles {
    obstacles: Vec<PreparedObstacle>,
}

/// An obstacle as it is looked at.
#[derive(Clone, Debug)]
struct PreparedObstacle {
    walls: Vec<[Position; 2]>,
    /// Bounding box: least and greatest coordinates.
    min: Position,
    max: Position,
    /// Share of the power that passes through one wall.
    wall_gain: f64,
}

impl Obstacles {
    /// Creates the obstacles of a network.
    #[must_use]
    pub fn new(obstacles: &[Obstacle]) -> Self {
        Self { obstacles: obstacles.iter().map(PreparedObstacle::new).collect() }
    }

    /// Returns whether there are no obstacles.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.obstacles.is_empty()
    }

    /// The factor on power that passes from `a` to `b`: the same in both directions.
    #[must_use]
    pub fn gain(&self, a: Position, b: Position) -> f64 {
        // A line that touches a corner must be judged alike in both directions.
        let (from, to) = if (a.x_m, a.y_m) <= (b.x_m, b.y_m) { (a, b) } else { (b, a) };
        self.obstacles.iter().map(|solid| solid.gain(from, to)).product()
    }
}

impl PreparedObstacle {
    fn new(obstacle: &Obstacle) -> Self {
        let corners = &obstacle.corners;
        let mut walls: Vec<[Position; 2]> = corners.windows(2).map(|pair| [pair[0], pair[1]]).collect();
        if let ([first, _, .., last], true) = (corners.as_slice(), corners.len() > 2) {
            walls.push([*last, *first]);
        }
        let of_all = |pick: fn(f64, f64) -> f64, start: f64| {
            let by = |of: fn(&Position) -> f64| corners.iter().map(of).fold(start, pick);
            Position::new(by(|corner| corner.x_m), by(|corner| corner.y_m))
        };
        Self {
            walls,
            min: of_all(f64::min, f64::INFINITY),
            max: of_all(f64::max, f64::NEG_INFINITY),
            wall_gain: db_to_ratio(-obstacle.loss_db),
        }
    }

    fn gain(&self, from: Position, to: Position) -> f64 {
        if self.misses_bounding_box(from, to) {
            return 1.0;
        }
        self.walls.iter().filter(|wall| crosses(from, to, **wall)).map(|_| self.wall_gain).product()
    }

    /// Returns whether the line is certain to miss the obstacle.
    fn misses_bounding_box(&self, from: Position, to: Position) -> bool {
        from.x_m.max(to.x_m) < self.min.x_m
            || from.x_m.min(to.x_m) > self.max.x_m
            || from.y_m.max(to.y_m) < self.min.y_m
            || from.y_m.min(to.y_m) > self.max.y_m
    }
}

/// Returns whether the line between two points crosses a wall. A corner belongs to one side of the line, and a point on a
/// wall to one side of the wall. A line through the corner of a building therefore crosses both of its walls or none.
fn crosses(from: Position, to: Position, [one, other]: [Position; 2]) -> bool {
    let left_of_line = |point| doubled_area(from, to, point) > 0.0;
    let left_of_wall = |point| doubled_area(one, other, point) > 0.0;
    left_of_line(one) != left_of_line(other) && left_of_wall(from) != left_of_wall(to)
}

/// Twice the area of a triangle; above zero if `c` is to the left of the way from `a` to `b`.
fn doubled_area(a: Position, b: Position, c: Position) -> f64 {
    (b.x_m - a.x_m) * (c.y_m - a.y_m) - (b.y_m - a.y_m) * (c.x_m - a.x_m)
}
