//! Movement files of other programs: as paths of nodes, and written from them.

pub mod bonnmotion;
pub mod csv;
mod flaw;
mod format;
pub mod gpx;
pub mod ns_movements;
mod quantity;
mod recording;
pub mod sumo;
#[cfg(test)]
mod testing;
mod xml;

pub use flaw::MovementError;
pub use format::MovementFormat;
pub use ns_movements::{Movements, to_ns_movements};
pub use recording::{MOST_RECORDED_NODES, MOST_SAMPLES, RecordedNode, Recording};
