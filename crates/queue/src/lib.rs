//! Packet queues: what stands between a node's network layer and its medium access.

pub mod drop_tail;
pub mod interface;
pub mod red;

pub use drop_tail::{Class, Counters, DropTail, Enqueued, Service};
pub use interface::{Arriving, Capability, InterfaceQueue};
pub use red::{Red, RedConfig};
