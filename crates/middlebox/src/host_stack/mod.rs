//! User-space TCP host stack behind a TUN interface: `hopline tcp`.
//!
//! ```text
//! program ── kernel's TCP ── [forward or SOCKS] ── relay ── our TCP ── TUN ── kernel's routes ── … ── kernel's TCP of the peer
//! ```
//!
//! Programs reach the stack by a local port, as they reach a [gateway](crate::gateway). The stack reaches the network as
//! a host behind a router, which is the kernel.
//!
//! | file | idea |
//! |---|---|
//! | `config` | parameters |
//! | `shared` | the stack, and the tasks that wait for events |
//! | `driver` | packets from and to the TUN interface, timers |
//! | `leg` | one connection of the stack, as a side of a relayed connection |
//! | `service` | connections from programs, and to them |

mod config;
mod driver;
mod leg;
mod service;
mod shared;

pub use config::{AcceptPort, HostStackConfig};
pub use hopline_stack::{InitialSequence, KeepAlive, StackConfig};
pub use service::{HostStack, is_forwarding};
