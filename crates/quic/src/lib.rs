//! QUIC endpoints of `quinn-proto` in virtual time.
//!
//! [`Endpoint`] wraps an endpoint and a connection of [`quinn_proto`] behind the contract of hopline's other transports, so that
//! the simulator drives it. Packets, acknowledgments, loss detection, pacing and congestion control are quinn's. Two things are
//! replaced:
//!
//! - **Cryptography** ([`crypto`]): packets have the sizes of encrypted ones and a tag that detects damage, and are not encrypted.
//! - **Time and randomness**: both come from the caller, so that the same inputs give the same datagrams.
//!
//! Never use this over a real network: it protects nothing.

mod clock;
mod controllers;
pub mod crypto;
mod endpoint;
mod frames;
#[cfg(feature = "s2n-quic")]
mod packets;
#[cfg(feature = "s2n-quic")]
mod s2n;
mod settings;
mod stream_data;

pub use controllers::{ControllerFactory, Controllers, built_in_controllers};
pub use endpoint::Endpoint;
pub use quinn_proto;
#[cfg(feature = "s2n-quic")]
pub use s2n_quic_core;
pub use stream_data::StreamData;
