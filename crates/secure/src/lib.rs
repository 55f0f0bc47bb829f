//! The encryption of TPA-wide, between a socket and a transport: handshakes by Noise, sealed datagrams,
//! validation of paths, and keys that people can handle.
//!
//! Nothing here opens a socket, reads a clock or a file, or asks the operating system for randomness: time,
//! bytes and [seeds](Seed) are handed in. The caller looks at [`secure::DatagramKind`](hopline_wire::secure::DatagramKind) each
//! datagram and gives it to the [`Initiator`], the [`Responder`], or the [`Session`] with the connection id that
//! it bears. `docs/protocols/secure.md` has the whole protocol.
//!
//! ```
//! # use bytes::Bytes;
//! # use core::net::SocketAddr;
//! # use hopline_core::Instant;
//! # use hopline_secure::*;
//! # let (now, from) = (Instant::ZERO, SocketAddr::from(([10, 0, 0, 1], 4433)));
//! // Seeds and keys come from the system's generator; these are for show.
//! let seed = |byte| Seed::new([byte; 32]);
//! let shared = || Credentials::Shared(PreSharedKey::new([7; 32]));
//! let mut initiator = Initiator::open(now, InitiatorConfig::default(), shared(), Bytes::from("mine"), &seed(1))?;
//! let mut responder = Responder::new(ResponderConfig::default(), shared(), Bytes::from("theirs"), &seed(2))?;
//!
//! let initial = initiator.poll_transmit().expect("opening sends a message");
//! responder.handle_datagram(now, from, &mut initial.to_vec());
//! let (_, second) = responder.poll_transmit().expect("it is answered");
//! initiator.handle_datagram(now, &second);
//! let Some(InitiatorEvent::Completed(mut established)) = initiator.poll_event() else { panic!("no keys") };
//! assert_eq!(established.parameters, "theirs");
//!
//! // 12 bytes for the header, the payload, 16 for the tag.
//! let mut datagram = [&[0; 12][..], b"hello", &[0; 16]].concat();
//! established.session.sealer.seal(&mut datagram)?;
//! responder.handle_datagram(now, from, &mut datagram);
//! let Some(ResponderEvent::Accepted(mut accepted)) = responder.poll_event() else { panic!("not accepted") };
//! assert_eq!(accepted.initial.map(|initial| initial.payload).as_deref(), Some(&b"hello"[..]));
//!
//! let mut datagram = [&[0; 12][..], b"welcome", &[0; 16]].concat();
//! accepted.established.session.sealer.seal(&mut datagram)?;
//! let opened = established.session.unsealer.open(&mut datagram).expect("it was sealed by the peer");
//! assert_eq!((opened.number, opened.order, &*opened.payload), (0, Order::Newest, &b"welcome"[..]));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod admission;
mod aead;
mod config;
mod cookie;
mod credentials;
mod deferred;
mod entropy;
mod half_open;
mod initiator;
pub mod keys;
mod noise;
mod number;
mod path;
mod replay;
mod reset;
mod responder;
mod session;
mod stats;

#[cfg(test)]
mod tests;

pub use config::{ConfigError, InitiatorConfig, PARAMETERS_MAX, PathConfig, ResponderConfig, SessionConfig};
pub use credentials::{Credentials, Trust};
pub use entropy::Seed;
pub use hopline_wire::secure::{
    Cipher, ConnectionId, Control, DatagramKind, Method, RefusalReason, Versions,
};
pub use initiator::{Failure, Initiator, InitiatorEvent};
pub use keys::{Fingerprint, PreSharedKey, PrivateKey, PublicKey};
pub use path::{Abandoned, PathEvent, Paths};
pub use reset::{Announcement, ResetKey};
pub use responder::{Accepted, Initial, Responder, ResponderEvent};
pub use session::{Established, Opened, Order, SealError, Sealer, Session, Unsealer};
pub use stats::{Counts, DropReason, Refusals, Refused, Rejection, Rejections};
