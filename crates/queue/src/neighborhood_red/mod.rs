//! Neighborhood RED: random early detection over the queue that a node and its neighbours share (K. Xu, M. Gerla, L. Qi,
//! Y. Shu, "Enhancing TCP Fairness in Ad Hoc Wireless Networks Using Neighborhood RED", MobiCom 2003).
//!
//! Each node times its radio and makes an average of it that stands for the packets waiting around it (NCD, `channel.rs`).
//! A node that sees congestion and has little of the channel itself sends notices (NCN, `notices.rs`). A node that receives
//! one drops its own share of packets for a while (DNPD, `machine.rs`). Nodes without it lose nothing: they ignore the
//! notices.
//!
//! [`NeighborhoodRed`] is a state machine. Its inputs are radio times, notices and arrivals of packets; its outputs are
//! notices and verdicts.
//! The packets stay where they are.

mod channel;
pub mod config;
mod limiter;
mod neighbours;
mod node;
mod notices;
#[cfg(test)]
mod tests;
mod types;

pub use channel::ChannelTime;
pub use config::Config;
pub use node::NeighborhoodRed;
pub use types::{
    Arrival, Destination, Event, IgnoredReason, OutgoingNotice, ReceivedNotice, Signal, Stats, Timer,
};
