//! What the protocol machines need of Linux: network namespaces, TUN and veth interfaces, [queues of packets](nfqueue), scheduling,
//! sockets; and [TPA over UDP](tpa).
//!
//! The one crate that reads clocks, opens sockets and starts threads on its own account, and the only one with
//! `unsafe`, all of it in one private module of system calls. Empty on other systems.

#![cfg(target_os = "linux")]

pub mod bench;
mod error;
pub mod in_path;
pub mod interface;
pub mod link;
mod netlink;
pub mod netns;
pub mod nfqueue;
mod printable;
pub mod qdisc;
pub mod sched;
pub mod service;
mod sys;
pub mod tcp;
pub mod tpa;
pub mod transfer;
pub mod tun;
pub mod veth;

pub use error::Error;
pub use interface::Interface;
pub use netns::Namespace;
pub use tun::Tun;
