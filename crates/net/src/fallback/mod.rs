//! Connections over TPA where the peer knows it, and over TCP where it does not (TPA §6).
//!
//! The paper's host announces TPA in the SYN of a TCP connection and "will revert to a standard TCP connection" if the peer does not know
//! TPA. A mark in the SYN takes a packet queue of the kernel, thus root ([`announce`](crate::announce)), and the marked connection is
//! already TCP's. A raw socket takes root, too, and has to keep the kernel from resetting what it does not know. So a [`Connector`] opens
//! both at once, TCP and TPA over UDP to the same port, and decides once for one of them:
//!
//! | what comes first | the connection is |
//! |---|---|
//! | TPA is open | TPA's |
//! | TCP is open, and TPA does not answer within another round trip | TCP's |
//! | TCP is open, and TPA is refused (ICMP, or a reset) | TCP's, at once |
//! | TCP fails, and TPA opens within [`Patience::alone`] | TPA's |
//! | both fail | none: the error is TCP's |
//!
//! Nothing is sent before the decision, so that no byte can arrive twice or by the wrong connection.
//!
//! TCP loses in silence: the kernel withholds the ACK that would complete the handshake (`TCP_QUICKACK` of 0 delays it for 200 ms, within
//! which the decision falls), and a call that has lost is reset. The server's `accept` never returns a connection that was given up. TPA
//! loses in silence, too: a listener keeps nothing of a call that has not been confirmed.
//!
//! A peer that answers TCP and not TPA, twice in a row, is called by TCP alone for ten minutes: see [`Silent`]. Then a call tries TPA
//! again.
//!
//! Neither transport is encrypted. An attacker on the path can force TCP by dropping datagrams, and gains nothing that it did not have.
//!
//! ```
//! # use hopline_net::fallback::{Config, Connector, Listener, Stream};
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
//! | `race` | the decision, as a machine |
//! | `silent` | peers that do not answer TPA |
//! | `call` | a TCP connection that stays half open until it is taken |
//! | `opening` | both attempts, with sockets and a timer |
//! | `port` | one port number of UDP and TCP; the listener |
//! | `stream` | a connection of either kind |

mod call;
mod opening;
mod port;
mod race;
mod silent;
mod stream;

pub use self::opening::{Connector, Opening};
pub use self::port::{Listener, Port};
pub use self::race::{Decision, Event, Patience, Race};
pub use self::silent::Silent;
pub use self::stream::{Stream, close_tcp_within};

use crate::tpa;

/// Largest window of the paper's measurements, segments.
const CWND_MAX: u8 = 3;

/// Parameters of both attempts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Parameters of TPA. Default: [`tpa::config`] with a largest window of 3 segments (TPA §3.5).
    pub tpa: tpa::Config,
    /// Time that TPA has to answer.
    pub patience: Patience,
}

impl Default for Config {
    fn default() -> Self {
        Self { tpa: tpa::config(CWND_MAX), patience: Patience::default() }
    }
}
