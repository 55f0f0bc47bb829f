//! The path of one node through time: straight legs at constant speed.

use super::{Position, Velocity};
use hopline_core::{Duration, Instant};

#[cfg(test)]
mod tests;

/// A piecewise-linear path, defined for all times: before its first corner and after its last the node stands still.
///
/// Immutable and without a clock of its own, so that paired runs can share it; each reader keeps a [`Cursor`].
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// At least one; times strictly increase.
    corners: Vec<Corner>,
}

/// Position of the node at a change of its velocity.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Corner {
    at: Instant,
    position: Position,
}

/// A place in a trajectory that makes lookups at non-decreasing times O(1), amortised. Going back is correct but
/// costs a search.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor(usize);

/// The order that ns-2 writes `at t "$node setdest x y speed"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SetdestCommand {
    /// Time at which the order takes effect.
    pub at: Instant,
    /// Destination, reached in a straight line from the node's position at `at`.
    pub to: Position,
    /// Speed in m/s. The node stops where it is if this is not positive.
    pub speed_mps: f64,
}

/// Reason for which a list of waypoints is not a trajectory. `index` counts waypoints from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WaypointError {
    /// There are no waypoints.
    #[error("a list of waypoints needs at least one")]
    Empty,
    /// The time is not after that of the waypoint before.
    #[error("waypoint {index} is not later than the one before it")]
    NotLater {
        /// The offending waypoint.
        index: usize,
    },
    /// A coordinate is not a finite number.
    #[error("waypoint {index} has a coordinate that is not a finite number")]
    NotFinite {
        /// The offending waypoint.
        index: usize,
    },
}

impl Trajectory {
    /// A node that never moves.
    #[must_use]
    pub fn fixed(position: Position) -> Self {
        Self { corners: vec![Corner { at: Instant::ZERO, position }] }
    }

    /// A node that is at each waypoint at its time and moves in a straight line at constant speed in between.
    pub fn through(waypoints: &[(Instant, Position)]) -> Result<Self, WaypointError> {
        if waypoints.is_empty() {
            return Err(WaypointError::Empty);
        }
        if let Some(index) = waypoints.iter().position(|(_, position)| !position.is_finite()) {
            return Err(WaypointError::NotFinite { index });
        }
        if let Some(before) = waypoints.windows(2).position(|pair| pair[1].0 <= pair[0].0) {
            return Err(WaypointError::NotLater { index: before + 1 });
        }
        Ok(Self { corners: waypoints.iter().map(|&(at, position)| Corner { at, position }).collect() })
    }

    /// A node that starts at `start` and obeys `orders` in the order of their times; of orders for the same time the
    /// last in the list wins. An order cuts short what is still under way.
    #[must_use]
    pub fn from_setdest(start: Position, orders: &[SetdestCommand]) -> Self {
        let mut sorted = orders.to_vec();
        sorted.sort_by_key(|order| order.at); // stable
        let mut path = Self::fixed(start);
        for order in sorted {
            path.apply(order);
        }
        path
    }

    /// The position at `at`. `cursor` is the reader's own, [`Cursor::default`] at first.
    #[must_use]
    pub fn position(&self, at: Instant, cursor: &mut Cursor) -> Position {
        self.seek(at, cursor);
        self.position_on_leg(cursor.0, at)
    }

    /// The position at `at`, by binary search.
    #[must_use]
    pub fn position_at(&self, at: Instant) -> Position {
        self.position_on_leg(self.leg_at(at), at)
    }

    /// The velocity at `at`; at a corner, that of the leg that begins there.
    #[must_use]
    pub fn velocity_at(&self, at: Instant) -> Velocity {
        let leg = self.leg_at(at);
        if at < self.corners[leg].at { Velocity::ZERO } else { self.velocity_on_leg(leg) }
    }

    /// The next corner after `after`: until then the velocity is what it is at `after`.
    #[must_use]
    pub fn next_change_after(&self, after: Instant) -> Option<Instant> {
        let next = self.corners.partition_point(|corner| corner.at <= after);
        // A path of one corner has no legs, and so nothing changes there.
        self.corners.get(next).filter(|_| self.corners.len() > 1).map(|corner| corner.at)
    }

    /// The highest speed on any leg, in m/s.
    #[must_use]
    pub fn max_speed(&self) -> f64 {
        (0..self.corners.len()).map(|leg| self.velocity_on_leg(leg).speed_mps()).fold(0.0, f64::max)
    }

    /// Returns whether the node never moves.
    #[must_use]
    pub fn is_static(&self) -> bool {
        self.corners.iter().all(|corner| corner.position == self.corners[0].position)
    }

    /// The corners: when the velocity changes, and where the node is then. At least one.
    pub fn corners(&self) -> impl ExactSizeIterator<Item = (Instant, Position)> + '_ {
        self.corners.iter().map(|corner| (corner.at, corner.position))
    }

    /// Goes on to `to`, arriving `travel` after the last corner.
    pub fn extend(&mut self, travel: Duration, to: Position) {
        let last = self.corners.last_mut().expect("a trajectory has a corner");
        let at = last.at + travel;
        if at == last.at {
            last.position = to;
        } else {
            self.corners.push(Corner { at, position: to });
        }
    }

    /// Returns the end of the last leg.
    #[must_use]
    pub fn end(&self) -> Instant {
        self.corners.last().expect("a trajectory has a corner").at
    }

    /// Takes an order that is not earlier than those before it.
    fn apply(&mut self, order: SetdestCommand) {
        let from = self.position_at(order.at);
        let done = self.corners.partition_point(|corner| corner.at < order.at);
        self.corners.truncate(done);
        self.corners.push(Corner { at: order.at, position: from });
        if order.speed_mps > 0.0 && order.to != from {
            let (travel, reached) = leg(from, order.to, order.speed_mps, order.at);
            self.extend(travel, reached);
        }
    }

    fn seek(&self, at: Instant, cursor: &mut Cursor) {
        if self.corners.get(cursor.0).is_none_or(|corner| at < corner.at) {
            cursor.0 = self.leg_at(at);
        }
        while self.corners.get(cursor.0 + 1).is_some_and(|next| next.at <= at) {
            cursor.0 += 1;
        }
    }

    /// The last corner not after `at`, or the first corner.
    fn leg_at(&self, at: Instant) -> usize {
        self.corners.partition_point(|corner| corner.at <= at).saturating_sub(1)
    }

    fn position_on_leg(&self, leg: usize, at: Instant) -> Position {
        let from = self.corners[leg];
        match self.corners.get(leg + 1) {
            Some(to) if to.position != from.position && at > from.at => {
                let share = at.since(from.at).as_nanos() as f64 / to.at.since(from.at).as_nanos() as f64;
                from.position.towards(to.position, share)
            }
            _ => from.position,
        }
    }

    fn velocity_on_leg(&self, leg: usize) -> Velocity {
        let from = self.corners[leg];
        let Some(to) = self.corners.get(leg + 1) else { return Velocity::ZERO };
        let seconds = to.at.since(from.at).as_secs_f64();
        Velocity {
            x_mps: (to.position.x_m - from.position.x_m) / seconds,
            y_mps: (to.position.y_m - from.position.y_m) / seconds,
        }
    }
}

/// The longest leg: 31.7 years. A slower walk is cut there, so that its end is still an instant.
const MAX_LEG: Duration = Duration::from_secs(1_000_000_000);

/// Returns the duration and the end position of the leg from `from` to `to` at `speed_mps` > 0 that begins at `start`.
pub(super) fn leg(from: Position, to: Position, speed_mps: f64, start: Instant) -> (Duration, Position) {
    let exact = from.distance_m(to) / speed_mps;
    let limit = MAX_LEG.as_nanos().min(Instant::FAR_FUTURE.since(start).as_nanos());
    let limit = Duration::from_nanos(limit);
    if exact <= limit.as_secs_f64() {
        return (Duration::from_secs_f64(exact), to);
    }
    (limit, from.towards(to, limit.as_secs_f64() / exact))
}
