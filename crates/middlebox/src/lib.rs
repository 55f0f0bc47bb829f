//! Middleboxes of Linux routers and hosts, as services on real packets:
//!
//! - Packet paths: [packet queues](nfqueue), and [paths without one](tun_pair).
//! - Link-layer repair at both ends of a link: [for TCP](dproxy), or [for any traffic](opaque).
//! - [Split connections](split), [gateways](gateway), [`handoff`] and [Neighborhood RED](neighborhood).
//! - TPA [announced](announce) in TCP handshakes.
//!
//! Each is a [`Service`](service::Service) that runs until it is told to stop. The protocol machines are those of
//! `hopline_proxy`, which the simulator runs too. The crate is empty on systems other than Linux.

#![cfg(target_os = "linux")]

pub mod announce;
pub mod diversion;
pub mod dproxy;
mod endpoints;
pub mod gateway;
pub mod handoff;
#[cfg(feature = "gateway")]
pub mod host_stack;
pub mod middlebox_loop;
pub mod neighborhood;
pub mod nfqueue;
pub mod opaque;
mod own_routes;
mod peer_socket;
pub mod service;
pub mod split;
pub mod tun_pair;

pub use tun_pair::TunPair;
