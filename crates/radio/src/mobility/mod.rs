//! Where nodes are, and how they move.

mod area;
pub mod ns_movements;
mod position;
mod random_waypoint;
mod trajectory;

pub use area::Area;
pub use ns_movements::{MovementError, Movements, to_ns_movements};
pub use position::{Position, Velocity};
pub use random_waypoint::{RandomWaypoint, RandomWaypointError, SetdestWaypoint, StationaryWaypoint};
pub use trajectory::{Cursor, SetDest, Trajectory, WaypointError};
