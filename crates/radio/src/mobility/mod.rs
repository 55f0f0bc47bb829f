//! Where nodes are, and how they move.

mod area;
pub mod bonnmotion;
pub mod csv;
mod flaw;
pub mod ns_movements;
mod position;
mod quantity;
mod random_waypoint;
mod recording;
pub mod sumo;
#[cfg(test)]
mod testing;
mod trajectory;

pub use area::Area;
pub use flaw::MovementError;
pub use ns_movements::{Movements, to_ns_movements};
pub use position::{Position, Velocity};
pub use random_waypoint::{RandomWaypoint, RandomWaypointError, SetdestWaypoint, StationaryWaypoint};
pub use recording::{MOST_RECORDED_NODES, MOST_SAMPLES, MovementFormat, RecordedNode, Recording};
pub use trajectory::{Cursor, SetDest, Trajectory, WaypointError};
