//! What the protocol machines need of Linux: network namespaces, TUN and veth interfaces, [queues of packets](nfqueue) and
//! [paths without one](tun_pair), both ends of links that repair their losses ([reading TCP](dproxy), or [whatever crosses](opaque)),
//! [split connections](split), [gateways](gateway), [`handoff`], [Neighborhood RED](neighborhood), scheduling, sockets;
//! [TPA](tpa) and [TPA-wide](wide) over UDP, TPA [with TCP where the peer lacks it](fallback), and TPA [announced](announce) in TCP's handshakes.
//!
//! Programs that send bytes over lossy paths begin with [`wide`]: a listener and a stream, encrypted, with keys of [`key_files`].
//! [`transfer`] moves files over any such stream.
//!
//! The one crate that reads clocks, opens sockets and starts threads on its own account, and, beside the functions for C, the only one with
//! `unsafe`, all of it in one private module of system calls. Empty on other systems.

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
