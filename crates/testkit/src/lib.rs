//! What tests of several crates share.
//!
//! [`Pair`] drives two machines of any kind in virtual time over an emulated link; [`oracle`] says what must hold
//! whatever the link does; [`fuzz`] holds the bodies of the fuzz targets, so that ordinary tests run them too.

pub mod emulation;
pub mod fuzz;
pub mod oracle;
pub mod packet;
pub mod pair;
pub mod tshark;

pub use emulation::Emulation;
pub use packet::Packet;
pub use pair::{Pair, Recording, Side};
