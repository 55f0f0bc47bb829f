//! What tests of several crates share.
//!
//! [`Pair`] drives two machines of any kind in virtual time over an emulated link; [`oracle`] says what must hold
//! whatever the link does; [`cases`] over `NamespaceLink` (feature `namespaces`) are the same in real time, for
//! real sockets; [`cases`] are test bodies for both. [`in_path`] has those for whatever brings packets to a machine in the path.

pub mod cases;
pub mod in_path;
pub mod middle;
#[cfg(all(target_os = "linux", feature = "namespaces"))]
pub mod namespace;
pub mod oracle;
pub mod packet;
pub mod pair;
#[cfg(all(target_os = "linux", feature = "namespaces"))]
pub mod streams;
pub mod transfer;

pub use hopline_link::{Counts, Emulation, Extra, Side};
#[cfg(all(target_os = "linux", feature = "namespaces"))]
pub use hopline_net::link::NamespaceLink;
pub use middle::{Middle, Station};
pub use packet::Packet;
pub use pair::{Pair, Recording};
