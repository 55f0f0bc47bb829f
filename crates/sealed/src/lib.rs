//! Host of encrypted TPA-wide connections over one UDP port.
//!
//! [`Host`] handles received datagrams and produces datagrams to send. It does no I/O: the caller passes times, bytes and a
//! [`Seed`]. `docs/protocols/secure.md`, "Connections", explains how the handshake of the encryption also opens
//! the connection of the transport.
//!
//! ```
//! # use bytes::Bytes;
//! # use core::net::SocketAddr;
//! # use hopline_core::Instant;
//! # use hopline_sealed::*;
//! let seed = |byte| Seed::new([byte; 32]); // In a program, take it from the random generator of the system.
//! let shared = || Credentials::Shared(PreSharedKey::new([7; 32]));
//! let [here, there] = [4000, 7174].map(|port| SocketAddr::from(([10, 0, 0, 1], port)));
//! let now = Instant::ZERO;
//! let mut initiator = Host::new(HostConfig::default(), seed(1))?;
//! let mut responder = Host::new(HostConfig::default(), seed(2))?;
//! responder.listen(shared(), TransportConfig::DEFAULT, 16)?;
//!
//! let key = initiator.connect(now, Path::to(there), shared(), TransportConfig::DEFAULT)?;
//! let connection = initiator.connection_mut(key).expect("it was just made");
//! connection.send(now, Bytes::from("hello"))?;
//!
//! // A network without delays.
//! let carry = |from: &mut Host, to: &mut Host, address| {
//!     let mut buffer = Vec::new();
//!     while let Some(transmit) = from.poll_transmit(now, &mut buffer) {
//!         to.handle_datagram(now, Path::to(address), transmit.ecn, &mut buffer);
//!         buffer.clear();
//!     }
//! };
//! carry(&mut initiator, &mut responder, here);
//! carry(&mut responder, &mut initiator, there);
//! carry(&mut initiator, &mut responder, here);
//! let Some(HostEvent::Accepted(key)) = responder.poll_event() else { panic!("no connection") };
//! let accepted = responder.connection_mut(key).expect("it was just accepted");
//! assert_eq!(accepted.recv().as_deref(), Some(&b"hello"[..]));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod config;
mod conn;
mod encryption;
mod event;
mod host;
mod input;
mod memory;
mod output;
mod schedule;
mod stats;

#[cfg(test)]
mod tests;

pub use config::{ConfigError, ConnectError, HostConfig, ListenError};
pub use conn::{Conn, Peer};
pub use event::{ConnectionKey, HostEvent, OpenFailure, Path, Transmit};
pub use hopline_secure::{
    Cipher, Credentials, Failure, Fingerprint, InitiatorConfig, PathConfig, PreSharedKey, PrivateKey,
    PublicKey, Refusals, Rejections, ResetKey, ResponderConfig, Seed, SessionConfig, Trust,
};
pub use hopline_transport::wide::{
    CloseError, CloseReason, Config as TransportConfig, Event, SendError, State, Stats as TransportStats,
};
pub use hopline_wire::ipv4::Ecn;
pub use host::Host;
pub use stats::{Dropped, Drops, HostStats};
