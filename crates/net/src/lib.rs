//! Linux support for the protocol state machines:
//!
//! - Emulation and scheduling: network namespaces, TUN and veth interfaces, scheduling, sockets.
//! - Packet paths: [packet queues](nfqueue), and [paths without one](tun_pair).
//! - Link-layer repair at both ends of a link: [for TCP](dproxy), or [for any traffic](opaque).
//! - [Split connections](split), [gateways](gateway), [`handoff`] and [Neighborhood RED](neighborhood).
//! - Transports over UDP: [TPA](tpa) and [TPA-wide](wide); TPA [with TCP as a fallback](fallback); TPA
//!   [announced](announce) in TCP handshakes.
//!
//! Programs that send data over lossy paths start with [`wide`]: a listener and a stream, encrypted, with keys of
//! [`key_files`]. [`transfer`] moves files over any such stream.
//!
//! This is the only crate that reads clocks, opens sockets and starts threads by itself. Apart from the C interface it is
//! also the only one with `unsafe`, all of it in one private module of system calls. The crate is empty on other systems.

#![cfg(target_os = "linux")]

pub mod accounts;
mod admission;
pub mod announce;
pub mod bench;
mod descriptors;
pub mod diversion;
pub mod dproxy;
mod ends;
mod error;
pub mod fallback;
pub mod frames;
pub mod gateway;
mod generic_netlink;
pub mod handoff;
#[cfg(feature = "gateway")]
pub mod host_stack;
pub mod in_path;
pub mod interface;
pub mod key_files;
pub mod link;
mod machine;
pub mod neighborhood;
mod netlink;
pub mod netns;
mod network;
pub mod nfqueue;
pub mod opaque;
mod own_routes;
mod pace;
mod peer_socket;
pub mod policy;
mod printable;
pub mod qdisc;
pub mod repair;
pub mod routes;
mod routing;
pub mod ruleset;
pub mod sched;
pub mod service;
pub mod split;
pub mod streams;
mod sys;
pub mod tcp;
pub mod tpa;
pub mod transfer;
pub mod transparent;
pub mod tun;
pub mod tun_pair;
pub mod veth;
mod watched;
pub mod wide;

pub use error::Error;
pub use interface::Interface;
pub use netns::Namespace;
pub use network::Network;
pub use tun::{Tun, TunLifetime};
pub use tun_pair::TunPair;

/// The example of README.md, as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
