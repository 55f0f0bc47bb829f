//! Shared code of the tests of several crates.
//!
//! - [`Pair`] drives two machines of any kind in virtual time over an emulated link.
//! - [`reference_stream`] checks that a stream arrives in order and complete.
//! - [`cases`] are test bodies for machines in virtual time, and for real sockets in real time over a `NamespaceLink`
//!   (feature `namespaces`).
//! - [`middlebox`] has test bodies for packet sources and sinks of a middlebox.

pub mod cases;
pub mod middlebox;
#[cfg(all(target_os = "linux", feature = "namespaces"))]
pub mod namespace;
pub mod packet;
pub mod pair;
pub mod reference_stream;
#[cfg(all(target_os = "linux", feature = "namespaces"))]
pub mod streams;
pub mod transfer;
pub mod two_links;

pub use hopline_link::{DelayDistribution, DirectionStats, Emulation, Side};
#[cfg(all(target_os = "linux", feature = "namespaces"))]
pub use hopline_tools::link::NamespaceLink;
pub use packet::Packet;
pub use pair::{Pair, Recording};
pub use two_links::{Station, TwoLinks};
