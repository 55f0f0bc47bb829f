//! Tests over the emulated link in real time ([`hopline_net::link`]).

mod harness;
mod sockets;

pub(crate) use harness::why_no_link;
pub use harness::{Needing, if_on_time, run_long_tests, run_tests, run_tests_needing};
pub use hopline_net::link::{Damage, Lateness, LinkStats, NamespaceLink, Setup};
pub use sockets::{OverSockets, READ_TIMEOUT, Sockets};
