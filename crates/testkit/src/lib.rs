//! What tests of several crates share.
//!
//! [`Pair`] drives two machines of any kind in virtual time over an emulated link; [`oracle`] says what must hold
//! whatever the link does; `NamespaceLink` (feature `namespaces`) is the same link in real time, for
//! real sockets; [`cases`] are test bodies for both; [`fuzz`] holds the bodies of the fuzz targets, so that ordinary tests run them too.

pub mod cases;
pub mod emulation;
pub mod fuzz;
mod loss;
#[cfg(all(target_os = "linux", feature = "namespaces"))]
pub mod namespace;
pub mod oracle;
pub mod packet;
pub mod pair;
pub mod transfer;
pub mod tshark;

pub use emulation::{Counts, Emulation, Extra};
#[cfg(all(target_os = "linux", feature = "namespaces"))]
pub use namespace::NamespaceLink;
pub use packet::Packet;
pub use pair::{Pair, Recording, Side};
