//! Common parts of comparisons over emulated links: transports, sessions, concurrent runs, tables.

pub mod cpu;
pub mod kernel;
pub mod output;
pub mod peer;
pub mod pool;
pub mod table;
pub mod talk;

pub use kernel::Kernel;
pub use peer::{Caller, Failure, Peer};
pub use talk::{Crowd, Hosts, Nature, Talk, crowd, talk};
