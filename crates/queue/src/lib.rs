//! Packet queues between a node's network layer and its medium access.

pub mod codel;
pub mod custom;
pub mod drop_tail;
pub mod dual_pi2;
pub mod fq_codel;
pub mod interface;
pub mod neighborhood_red;
pub mod packet_access;
pub mod pie;
pub mod red;

pub use codel::{CoDel, CoDelConfig};
pub use custom::{CustomDiscipline, CustomDisciplineId, CustomQueue};
pub use drop_tail::{Class, DropTail, DropTailStats, EnqueueResult, Service};
pub use dual_pi2::{DualPi2, DualPi2Config};
pub use fq_codel::{FqCoDel, FqCoDelConfig};
pub use interface::InterfaceQueue;
pub use neighborhood_red::NeighborhoodRed;
pub use packet_access::{EcnCapability, PacketAccess, SignalAction};
pub use pie::{Pie, PieConfig};
pub use red::{Red, RedConfig};
