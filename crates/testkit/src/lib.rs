//! What tests of several crates share.
//!
//! [`Pair`] drives two machines of any kind in virtual time over an emulated link; [`oracle`] says what must hold
//! whatever the link does; [`cases`] over `NamespaceLink` (feature `namespaces`) are the same in real time, for
//! real sockets; [`cases`] are test bodies for both; [`fuzz`] holds the bodies of the fuzz targets, so that ordinary tests run
//! them too. `harness` (feature `harness`) reports tests as ignored where the machine lacks what they need.

pub mod cases;
pub mod fuzz;
#[cfg(feature = "harness")]
pub mod harness;
#[cfg(all(target_os = "linux", feature = "namespaces"))]
pub mod namespace;
pub mod oracle;
pub mod packet;
pub mod pair;
pub mod transfer;
pub mod tshark;

pub use hopline_link::{Counts, Emulation, Extra, Side};
#[cfg(all(target_os = "linux", feature = "namespaces"))]
pub use hopline_net::link::NamespaceLink;
pub use packet::Packet;
pub use pair::{Pair, Recording};
