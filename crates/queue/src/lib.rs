//! Packet queues between a node's network layer and its medium access.

pub mod codel;
pub mod contents;
pub mod drop_tail;
pub mod fq_codel;
pub mod interface;
pub mod neighborhood_red;
pub mod own;
pub mod red;

pub use codel::{CoDel, CoDelConfig};
pub use contents::{Action, Capability, Contents};
pub use drop_tail::{Class, Counters, DropTail, Enqueued, Service};
pub use fq_codel::{FqCoDel, FqCoDelConfig};
pub use interface::InterfaceQueue;
pub use neighborhood_red::NeighborhoodRed;
pub use own::{OwnDiscipline, OwnDisciplineId, OwnQueue};
pub use red::{Red, RedConfig};
