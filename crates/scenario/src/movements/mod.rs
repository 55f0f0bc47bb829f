//! Movement files of other programs: as paths of nodes, and written from them.

pub mod bonnmotion;
pub mod csv;
mod format;
pub mod gpx;
pub mod ns_movements;
mod quantity;
mod recording;
pub mod sumo;
#[cfg(test)]
mod testing;
mod text_error;
mod xml;

pub use format::MovementFormat;
pub use ns_movements::{Movements, to_ns_movements};
pub use recording::{MAX_NODES, MAX_SAMPLES, RecordedNode, Recording};
pub use text_error::MovementError;
