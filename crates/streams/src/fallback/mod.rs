//! Connections over TPA with a fallback to TCP for peers without TPA (TPA §6).
//!
//! The paper's host announces TPA in the SYN of a TCP connection and "will revert to a standard TCP connection" if the
//! peer does not support TPA. A mark in the SYN needs a packet queue of the kernel, and thus root
//! (`hopline_middlebox::announce`), and the marked connection is already a TCP one. A raw socket needs root too, and has
//! to keep the kernel from resetting connections that it does not know. A [`Connector`] therefore opens both at once, TCP
//! and TPA over UDP to the same port, and decides once for one of them:
//!
//! | first event | transport of the connection |
//! |---|---|
//! | TPA is open | TPA |
//! | TCP is open, and TPA does not answer within another round trip | TCP |
//! | TCP is open, and TPA is refused (ICMP, or a reset) | TCP, at once |
//! | TCP fails, and TPA opens within [`Timeouts::tpa_only`] | TPA |
//! | both fail | none: the error is that of TCP |
//!
//! Nothing is sent before the decision, so that no byte can arrive twice or by the wrong connection.
//!
//! A losing TCP attempt is invisible to the server. The kernel withholds the ACK that would complete the handshake
//! (`TCP_QUICKACK` of 0 delays it for 200 ms, within which the decision is made), and a losing attempt is reset. The
//! server's `accept` never returns it. A losing TPA attempt is invisible too: a listener keeps no state of an unconfirmed
//! one.
//!
//! After a peer has answered over TCP but not over TPA twice in a row, only TCP is tried for ten minutes: see [`SilentPeers`].
//! Then a connection tries TPA again.
//!
//! Neither transport is encrypted. An attacker on the path can force TCP by dropping datagrams, which gives it no new
//! power.
//!
//! ```
//! # use hopline_streams::fallback::{Config, Connector, Listener, Stream};
//! # use std::io::{Read, Write};
//! let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), &Config::default(), 8)?;
//! let mut client = Connector::default().connect(listener.local_addr(), &Config::default(), None)?;
//! assert!(matches!(client, Stream::Tpa(_)));
//! client.write_all(b"hello")?;
//! client.flush()?;
//! let (mut server, _) = listener.accept()?;
//! let mut heard = [0; 5];
//! server.read_exact(&mut heard)?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! | file | idea |
//! |---|---|
//! | `race` | the decision, as a state machine |
//! | `silent_peers` | peers that do not answer TPA |
//! | `tcp_attempt` | a TCP connection that stays half open until it is taken |
//! | `connector` | both attempts, with sockets and a timer |
//! | `port` | one port number of UDP and TCP; the listener |
//! | `stream` | a connection of either kind |

mod connector;
mod port;
mod race;
mod silent_peers;
mod stream;
mod tcp_attempt;

pub use self::connector::{Connector, PendingConnection};
pub use self::port::{Listener, Port};
pub use self::race::{Decision, Event, Race, Timeouts};
pub use self::silent_peers::SilentPeers;
pub use self::stream::{Stream, close_tcp_within};

use crate::tpa;
use hopline_core::settings;

/// Maximum congestion window of the paper's measurements, in segments.
const CWND_MAX: u8 = 3;

settings! {
    /// Parameters of both attempts. Start from the default and use the setters.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Config {
        /// Parameters of TPA. Default: [`tpa::config`] with a maximum window of 3 segments (TPA §3.5).
        tpa, with_tpa: tpa::Config,
        /// Timeouts of TPA. Default as [`Timeouts`] says.
        timeouts, with_timeouts: Timeouts,
    }
}

impl Default for Config {
    fn default() -> Self {
        Self { tpa: tpa::config(CWND_MAX), timeouts: Timeouts::default() }
    }
}
