//! Transports over UDP for programs that send data over lossy paths: [TPA](tpa), [TPA-wide](wide), and TPA
//! [with TCP as a fallback](fallback).
//!
//! Programs start with [`wide`]: a listener and a stream, encrypted, with keys of [`key_files`]. The crate is empty on
//! systems other than Linux.
//!
//! A transport is a [`Protocol`]: a state machine with all connections of a UDP socket. [`Host`], [`Listener`] and
//! [`Stream`] add a clock, a socket and blocking, non-blocking and asynchronous calls. One thread serves all connections of
//! a host. The modules [`tpa`] and [`wide`] have these types for their protocol; code that is generic runs over both:
//!
//! ```
//! use hopline_streams::tpa::{self, Tpa};
//! use hopline_streams::{Listener, Protocol, Stream};
//! use std::io::{self, Read, Write};
//!
//! fn ping<P: Protocol>(config: &P::Config) -> io::Result<[u8; 4]> {
//!     let listener = Listener::<P>::bind("127.0.0.1:0", config)?;
//!     let client = Stream::<P>::connect(listener.local_addr()?, config)?;
//!     (&client).write_all(b"ping")?;
//!     (&client).flush()?;
//!     let mut received = [0; 4];
//!     listener.accept()?.0.read_exact(&mut received)?;
//!     Ok(received)
//! }
//! assert_eq!(ping::<Tpa>(&tpa::config(12))?, *b"ping");
//! # Ok::<(), io::Error>(())
//! ```

#![cfg(target_os = "linux")]

pub mod admission;
pub mod fallback;
pub mod key_files;
pub mod tpa;
mod udp;
pub mod wide;

#[cfg(feature = "tokio")]
pub use self::udp::{AsyncListener, AsyncStream};
pub use self::udp::{
    Endpoint, Fragments, GsoGrouping, Host, Interest, Listener, Path, PortSharing, Protocol, ProtocolEvent,
    Ready, Reason, Stream, Traffic, Transmit,
};

/// The example of README.md, as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
