//! TCP host stack as a sans-I/O machine.
//!
//! A [`Stack`] takes IP packets and gives IP packets. Between them stand connections of hopline's TCP
//! ([`hopline_transport::tcp`]), found by their addresses and ports. The stack adds what an endpoint leaves to its host: demultiplexing,
//! initial sequence numbers and ports that cannot be guessed, resets for unknown segments, ICMP, path MTU, and limits on connections and
//! memory. It opens no socket and reads no clock; `hopline tcp` drives it behind a TUN interface.
//!
//! After each call that takes a packet or changes a connection, drain [`poll_transmit`](Stack::poll_transmit), then
//! [`poll_event`](Stack::poll_event), and arrange [`handle_timeout`](Stack::handle_timeout) for [`poll_timeout`](Stack::poll_timeout). TCP
//! counts duplicate acknowledgments, so packets that are taken together without draining in between are acknowledged as one.
//!
//! | file | idea |
//! |---|---|
//! | `config` | limits, and where sequence numbers come from |
//! | `stack` | the tables, and calls of the application |
//! | `input` | a packet arrives |
//! | `output` | a packet leaves; timers |
//! | `icmp` | reports of routers, and echo requests |
//! | `memory` | the memory of all connections, and the share of each; `guarantee`: the least share; `window`: growth of a receive window |
//! | `connection` | one connection, and how it ended |
//! | `secret` | keyed hashes: sequence numbers, ports |
//! | `stats` | counters |

mod config;
mod connection;
mod guarantee;
mod icmp;
mod input;
mod memory;
mod output;
mod secret;
mod stack;
mod stats;
mod window;

pub use config::{InitialSequence, StackConfig, StackConfigError};
pub use connection::{ConnectionId, EndReason, Status};
pub use hopline_transport::tcp::KeepAlive;
pub use icmp::UnreachableReason;
pub use secret::Secret;
pub use stack::{ConnectError, Event, Stack};
pub use stats::StackStats;
