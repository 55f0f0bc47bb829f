//! Random waypoint: go to a random point in a straight line, rest, repeat. In two forms: as ns-2's `setdest` version 1
//! does it, and in its stationary law from the first instant on.

use super::trajectory::leg;
use super::{Area, Trajectory};
use hopline_core::{Duration, Instant, RandomStream};

#[cfg(test)]
mod tests;

/// Random waypoint mobility model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RandomWaypoint {
    /// `setdest` version 1: not stationary.
    Setdest(SetdestWaypoint),
    /// Perfect simulation: stationary.
    Stationary(StationaryWaypoint),
}

/// Random waypoint of ns-2's `setdest -v 1`: the node starts at a uniform point with a pause, then draws a uniform
/// destination and a speed in (0, max], goes there, pauses, and so on.
///
/// **Not stationary**: slow legs last long, so the mean speed falls with time, for ever. Kept to reproduce published
/// results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SetdestWaypoint {
    /// Area in which nodes move.
    pub area: Area,
    /// Speeds are uniform in (0, `max_speed_mps`] m/s. Range: (0, [`MAX_SPEED_MPS`](Self::MAX_SPEED_MPS)].
    pub max_speed_mps: f64,
    /// Rest at each destination, and before the first trip.
    pub pause: Duration,
}

/// Random waypoint in its time-stationary law from the first instant on (perfect simulation: Le Boudec and Vojnović,
/// INFOCOM 2005): no warm-up, no decay of speed. Exists because the minimum speed is positive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StationaryWaypoint {
    /// Area in which nodes move.
    pub area: Area,
    /// Least speed in m/s, > 0.
    pub min_speed_mps: f64,
    /// Speeds are uniform in [`min_speed_mps`, `max_speed_mps`] per trip. At most
    /// [`SetdestWaypoint::MAX_SPEED_MPS`].
    pub max_speed_mps: f64,
    /// Rest at each destination.
    pub pause: Duration,
}

/// Reason for which a random waypoint model cannot be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RandomWaypointError {
    /// A side of the area is not a positive number.
    #[error("both sides of the area must be positive numbers of metres")]
    Area,
    /// A speed is out of range.
    #[error("speeds must be positive, at most 10000 m/s, and the minimum not above the maximum")]
    Speed,
    /// The area is so small, or the speed so high, that a node would make more than ten million trips.
    #[error("the area is too small for this speed: a node would make more than ten million trips")]
    TooManyTrips,
}

/// Trips a node may make in a run; bounds memory.
const MAX_TRIPS: f64 = 1e7;

impl RandomWaypoint {
    /// Limit of the trips of all nodes together, for callers that draw many paths: about a gigabyte of trips.
    pub const MAX_TOTAL_TRIPS: f64 = 2e7;

    /// Returns the approximate number of trips of a node in `duration`, if all are at the highest speed.
    #[must_use]
    pub fn estimated_trips(&self, duration: Duration) -> f64 {
        match *self {
            Self::Setdest(SetdestWaypoint { area, max_speed_mps, pause })
            | Self::Stationary(StationaryWaypoint { area, max_speed_mps, pause, .. }) => {
                estimated_trips(area, max_speed_mps, pause, duration)
            }
        }
    }

    /// The path of one node over [0, `duration`], drawn from its mobility stream. The last trip is drawn to its end.
    pub fn trajectory(
        &self,
        duration: Duration,
        stream: &mut RandomStream,
    ) -> Result<Trajectory, RandomWaypointError> {
        match self {
            Self::Setdest(model) => model.trajectory(duration, stream),
            Self::Stationary(model) => model.trajectory(duration, stream),
        }
    }
}

impl SetdestWaypoint {
    /// The fastest a node may be: 10 km/s.
    pub const MAX_SPEED_MPS: f64 = 10_000.0;

    /// See [`RandomWaypoint::trajectory`].
    pub fn trajectory(
        &self,
        duration: Duration,
        stream: &mut RandomStream,
    ) -> Result<Trajectory, RandomWaypointError> {
        validate(self.area, (self.max_speed_mps, self.max_speed_mps), self.pause, duration)?;
        let mut path = Trajectory::fixed(self.area.uniform(stream));
        // 1 − unit() is in (0, 1]: never speed 0.
        let speed = |stream: &mut RandomStream| self.max_speed_mps * (1.0 - stream.unit());
        add_pause(&mut path, self.pause);
        add_trips(&mut path, self.area, self.pause, duration, stream, speed);
        Ok(path)
    }
}

impl StationaryWaypoint {
    /// See [`RandomWaypoint::trajectory`].
    pub fn trajectory(
        &self,
        duration: Duration,
        stream: &mut RandomStream,
    ) -> Result<Trajectory, RandomWaypointError> {
        validate(self.area, (self.min_speed_mps, self.max_speed_mps), self.pause, duration)?;
        let mut path = if stream.bernoulli(self.paused_share()) {
            // Seen at a random time, a constant pause has a uniform rest.
            let mut path = Trajectory::fixed(self.area.uniform(stream));
            add_pause(&mut path, stream.duration_below(self.pause));
            path
        } else {
            self.begin_mid_trip(stream)
        };
        let speed = |stream: &mut RandomStream| stream.uniform(self.min_speed_mps, self.max_speed_mps);
        add_trips(&mut path, self.area, self.pause, duration, stream, speed);
        Ok(path)
    }

    /// Mean duration of a trip in s: mean distance times the mean of 1/speed.
    #[must_use]
    pub fn mean_trip_s(&self) -> f64 {
        let spread = (self.max_speed_mps - self.min_speed_mps) / self.min_speed_mps;
        // ln(max/min)/(max − min), which is 1/min for equal speeds.
        let slowness = if spread > 0.0 { libm::log1p(spread) / spread } else { 1.0 } / self.min_speed_mps;
        self.area.mean_distance_m() * slowness
    }

    /// The share of time, and so of nodes, at rest: pause/(pause + mean trip).
    #[must_use]
    pub fn paused_share(&self) -> f64 {
        let pause = self.pause.as_secs_f64();
        pause / (pause + self.mean_trip_s())
    }

    /// A node seen at a random time while it moves: trips count by their length, speeds by the time they take, and
    /// the node is anywhere on its way.
    fn begin_mid_trip(&self, stream: &mut RandomStream) -> Trajectory {
        let diagonal = self.area.diagonal_m();
        let (from, to) = loop {
            let (from, to) = (self.area.uniform(stream), self.area.uniform(stream));
            if stream.bernoulli(from.distance_m(to) / diagonal) {
                break (from, to);
            }
        };
        let here = from.towards(to, stream.unit());
        // Density ∝ 1/v, by inversion.
        let speed = self.min_speed_mps * libm::pow(self.max_speed_mps / self.min_speed_mps, stream.unit());
        let mut path = Trajectory::fixed(here);
        let (travel, reached) = leg(here, to, speed, Instant::ZERO);
        path.extend(travel, reached);
        add_pause(&mut path, self.pause);
        path
    }
}

fn validate(
    area: Area,
    (min_mps, max_mps): (f64, f64),
    pause: Duration,
    duration: Duration,
) -> Result<(), RandomWaypointError> {
    if !area.is_valid() {
        return Err(RandomWaypointError::Area);
    }
    if !(min_mps > 0.0 && min_mps <= max_mps && max_mps <= SetdestWaypoint::MAX_SPEED_MPS) {
        return Err(RandomWaypointError::Speed);
    }
    if estimated_trips(area, max_mps, pause, duration) > MAX_TRIPS {
        return Err(RandomWaypointError::TooManyTrips);
    }
    Ok(())
}

fn estimated_trips(area: Area, max_mps: f64, pause: Duration, duration: Duration) -> f64 {
    duration.as_secs_f64() / (pause.as_secs_f64() + area.mean_distance_m() / max_mps)
}

/// Trips and pauses from the end of `path` on until it covers `duration`.
fn add_trips(
    path: &mut Trajectory,
    area: Area,
    rest: Duration,
    duration: Duration,
    stream: &mut RandomStream,
    mut speed: impl FnMut(&mut RandomStream) -> f64,
) {
    let stop = Instant::ZERO + duration;
    while path.end() < stop {
        let from = path.position_at(path.end());
        let to = area.uniform(stream);
        let (travel, reached) = leg(from, to, speed(stream), path.end());
        path.extend(travel, reached);
        add_pause(path, rest);
    }
}

fn add_pause(path: &mut Trajectory, rest: Duration) {
    if !rest.is_zero() {
        path.extend(rest, path.position_at(path.end()));
    }
}
