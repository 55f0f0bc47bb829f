//! Tests over the emulated link in real time ([`hopline_tools::link`]).

mod harness;
pub mod host;
pub mod last_hop;
mod running_service;
mod sockets;

pub use harness::{LINK, concurrent_link_tests, unless_late};
pub use hopline_tools::link::{Damage, Lateness, LinkStats, NamespaceLink, Setup};
pub use running_service::RunningService;
pub use sockets::{OverSockets, READ_TIMEOUT, Sockets};
