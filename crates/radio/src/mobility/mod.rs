//! Positions and movement of nodes.

mod area;
mod position;
mod random_waypoint;
mod trajectory;

pub use area::Area;
pub use position::{Position, Velocity};
pub use random_waypoint::{RandomWaypoint, RandomWaypointError, SetdestWaypoint, StationaryWaypoint};
pub use trajectory::{Cursor, SetdestCommand, Trajectory, WaypointError};
