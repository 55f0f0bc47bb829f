//! Shared code of the tests of several crates.
//!
//! - [`Pair`] drives two machines of any kind in virtual time over an emulated link.
//! - [`oracle`] checks that a stream arrives in order and complete.
//! - [`cases`] are test bodies for machines in virtual time, and for real sockets in real time over a `NamespaceLink`
//!   (feature `namespaces`).
//! - [`in_path`] has test bodies for packet sources and sinks of a middlebox.

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
pub use hopline_tools::link::NamespaceLink;
pub use middle::{Middle, Station};
pub use packet::Packet;
pub use pair::{Pair, Recording};
