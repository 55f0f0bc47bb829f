//! DSR, dynamic source routing (RFC 4728), as a machine for one node.

pub mod config;
mod types;

pub use config::Config;
pub use types::{Event, Packet, Received, Receiver, Signal, Timer, Transmit};
