//! Packet queues: what stands between a node's network layer and its medium access.

pub mod drop_tail;

pub use drop_tail::{Class, Counters, DropTail, Enqueued, Service};
