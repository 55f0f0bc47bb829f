//! The encryption of TPA-wide, between a socket and a transport: handshakes by Noise, sealed datagrams, validation of paths, and keys that people
//! can handle.
//!
//! Nothing here opens a socket, reads a clock or a file, or asks the operating system for randomness: time, bytes and
//! [seeds](Seed) are handed in. Whoever drives it looks at [`Kind::of`](hopline_wire::secure::Kind) each datagram and gives it to the [`Opener`], the
//! [`Answerer`], or the [`Session`] whose connection id it bears. `docs/protocols/secure.md` has the whole protocol.

mod aead;
mod answerer;
mod config;
mod cookie;
mod credentials;
mod entropy;
mod half_open;
pub mod keys;
mod noise;
mod number;
mod opener;
mod path;
mod replay;
mod session;
mod stats;

#[cfg(test)]
mod tests;

pub use answerer::{Accepted, Answerer, AnswererEvent};
pub use config::{AnswererConfig, ConfigError, OpenerConfig, PARAMETERS_MAX, PathConfig, SessionConfig};
pub use credentials::{Credentials, Trust};
pub use entropy::Seed;
pub use hopline_wire::secure::{Cipher, ConnectionId, Control, Kind, Method, Reason, Versions};
pub use keys::{Fingerprint, PreSharedKey, PrivateKey, PublicKey};
pub use opener::{Failure, Opener, OpenerEvent};
pub use path::{Abandoned, PathEvent, Paths};
pub use session::{Established, Opened, Order, SealError, Sealer, Session, Unsealer};
pub use stats::{Cause, Counts, Refusals, Refused, Rejection, Rejections};
