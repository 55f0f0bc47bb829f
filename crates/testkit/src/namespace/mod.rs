//! Tests over the emulated link in real time ([`hopline_tools::link`]).

mod harness;
pub mod host;
pub mod last_hop;
mod running;
mod sockets;

pub use harness::{LINK, at_once, if_on_time};
pub use hopline_tools::link::{Damage, Lateness, LinkStats, NamespaceLink, Setup};
pub use running::Running;
pub use sockets::{OverSockets, READ_TIMEOUT, Sockets};
