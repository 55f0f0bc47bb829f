//! Linux system interfaces that hopline needs, behind safe functions:
//!
//! - Emulation: [network namespaces](netns), [TUN and TAP](tun) and [veth] interfaces, [scheduling](sched) of threads.
//! - Routing and queues by [netlink]: [routes](route_lookup), [rules](policy), [queue statistics](qdisc), [nftables](ruleset).
//! - TCP of the kernel: [parameters and statistics](tcp), [transparent sockets](transparent), [`repair`].
//! - [System calls](sys) that no crate wraps safely.
//!
//! Apart from the C interface, this is the only crate with `unsafe`, all of it in [`sys`]. The crate is empty on other
//! systems.

#![cfg(target_os = "linux")]

pub mod accounts;
pub mod descriptors;
mod error;
pub mod event_loop;
pub mod frames;
pub mod generic_netlink;
pub mod host_id;
pub mod interface;
pub mod netlink;
pub mod netns;
mod network;
pub mod policy;
pub mod qdisc;
pub mod repair;
pub mod route_config;
pub mod route_lookup;
pub mod ruleset;
pub mod sched;
pub mod sys;
pub mod tcp;
pub mod transparent;
pub mod tun;
pub mod veth;
pub mod watched;

pub use error::Error;
pub use interface::Interface;
pub use netns::Namespace;
pub use network::Network;
pub use tun::{Tun, TunLifetime};

/// The example of README.md, as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
