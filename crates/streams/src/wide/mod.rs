//! TPA-wide over UDP, encrypted: listener and stream, blocking, non-blocking and asynchronous.
//!
//! The state machine is [`hopline_sealed::Host`]; [`Stream`](crate::Stream) adds its clock, its socket and the interface for its users.
//! All connections of a [`Host`] share a UDP socket and are distinguished by identifiers, so that a peer may change its
//! address. Only peers that prove an identity permitted by [`Credentials`] are connected. With [`Trust::Anyone`], check
//! [`Info::peer`] before trusting any data.
//!
//! ```
//! # use hopline_streams::wide::{Credentials, PreSharedKey, WideListener, WideStream, config};
//! # use std::io::{Read, Write};
//! let shared = || config(Credentials::Shared(PreSharedKey::new([7; 32]))); // From `key_files::load_key`, not like this.
//! let listener = WideListener::bind("127.0.0.1:0", &shared())?;
//! let mut client = WideStream::connect(listener.local_addr()?, &shared())?;
//! let (mut server, _) = listener.accept()?;
//! client.write_all(b"hello")?;
//! let mut heard = [0; 5];
//! server.read_exact(&mut heard)?;
//! assert_eq!(&heard, b"hello");
//! client.close()?; // Waits until the server has everything.
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Keys come from files: [`load_key`](crate::key_files::load_key) reads a shared key for [`Credentials::Shared`], or a private key for
//! [`Credentials::Keys`] with [`Trust::Only`] of the public keys that [`load_peers`](crate::key_files::load_peers) reads. Whole programs
//! are in `examples/` of this crate, and `docs/rust.md` explains them.
//!
//! While the accept queue is full, a connection attempt is not answered, and the peer retries by itself.
//!
//! | file | idea |
//! |---|---|
//! | `config` | defaults for real networks |
//! | `protocol` | implementation of the protocol interface of streams |
//! | `stats` | statistics |

mod config;
mod protocol;
mod stats;

pub use self::config::{Config, config, reset_key};
pub use self::protocol::Wide;
pub use self::stats::{HostStats, Info};
pub use crate::udp::PortSharing;
pub use hopline_sealed::{
    Credentials, Fingerprint, HostConfig, Peer, PreSharedKey, PrivateKey, PublicKey, ResetKey,
    ResponderConfig, Seed, State, TransportConfig, Trust,
};

use crate::udp;

/// A UDP socket with connections of TPA-wide.
pub type Host = udp::Host<Wide>;
/// Accepts connections of TPA-wide.
pub type WideListener = udp::Listener<Wide>;
/// A connection of TPA-wide.
pub type WideStream = udp::Stream<Wide>;
/// A [`WideListener`] for asynchronous code.
#[cfg(feature = "tokio")]
pub type AsyncListener = udp::AsyncListener<Wide>;
/// A [`WideStream`] for asynchronous code.
#[cfg(feature = "tokio")]
pub type AsyncStream = udp::AsyncStream<Wide>;
