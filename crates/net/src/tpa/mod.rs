//! TPA over UDP: listener and stream, blocking, non-blocking and asynchronous.
//!
//! The machine is [`hopline_transport::tpa::Endpoint`]; its clock, its socket and its user are those of
//! [`streams`]. All connections of a [`Host`] share a UDP socket; segments find their connection by the tag in
//! them. So a connection survives its peer's change of address: answers go where the peer has shown to be.
//!
//! A peer that has not shown that it receives what is sent to its address costs no memory: its SYN is answered and forgotten.
//! While the accept queue is full SYNs are refused. What is written leaves once it fills a block, after
//! [`Config::block_fill`], or on `flush`; writing blocks while [`Config::send_buffer`] is full. An attempt to connect ends
//! after [`Config::syn_retries`].
//!
//! The paper has a library like that of sockets (appendix A); the list of its functions, table A1, is lost. For C see
//! `docs/c.md`, "TPA as published". The functions of sockets, and what they are here:
//!
//! | sockets | here |
//! |---|---|
//! | `socket`, `bind` | [`Host::bind`] |
//! | `listen` | [`Host::listen`], [`TpaListener::bind`] |
//! | `accept` | [`TpaListener::accept`] |
//! | `connect` | [`TpaStream::connect`], [`Host::connect`]; with TCP where the peer lacks TPA (§6): [`fallback`](crate::fallback) |
//! | `send`, `recv` | [`Write`](std::io::Write), [`Read`](std::io::Read) |
//! | `close` | [`TpaStream::close`], [`TpaStream::shutdown`], or drop |
//!
//! | file | idea |
//! |---|---|
//! | `protocol` | TPA as a protocol of streams |
//! | `table` | connections by tag, timers, what goes out |
//! | `input` | what comes in |
//! | `backlog` | whom connections are made for, and how many nobody has accepted |
//! | `route` | where the peer is, how long datagrams to it may be, whether they may leave several at once |
//! | `trust` | secrets, and what can be told again without having been kept |
//! | `stream` | what streams have here beside those of others |

mod backlog;
mod input;
mod protocol;
mod route;
mod stats;
mod stream;
mod table;
mod trust;

pub use self::stats::{HostStats, Info};
pub use self::table::Tpa;
pub use crate::streams::Sharing;
pub use hopline_transport::connection::State;
pub use hopline_transport::tpa::Config;

use crate::streams;
use hopline_core::Duration;

/// A UDP socket with connections of TPA.
pub type Host = streams::Host<Tpa>;
/// Accepts connections of TPA.
pub type TpaListener = streams::Listener<Tpa>;
/// A connection of TPA.
pub type TpaStream = streams::Stream<Tpa>;
/// A [`TpaListener`] for asynchronous code.
#[cfg(feature = "tokio")]
pub type AsyncListener = streams::AsyncListener<Tpa>;
/// A [`TpaStream`] for asynchronous code.
#[cfg(feature = "tokio")]
pub type AsyncStream = streams::AsyncStream<Tpa>;

/// Data of a segment so that IP (20 bytes), UDP (8), header (12), tag (8) and receipt (4) fit into 1500 bytes with it.
const MSS: u16 = 1448;
/// Bytes written and not acknowledged before a write blocks.
const SEND_BUFFER: u64 = 256 * 1024;
/// Shorter than translators of addresses remember a silent connection, and than a user's patience.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// How soon a call is repeated the first time: it may be one of too many, of which those are answered that come twice.
const CALL_AGAIN: Duration = Duration::from_millis(50);
/// RTO before the first sample: a call that is lost is soon repeated.
const FIRST_RTO: Duration = Duration::from_millis(300);
/// How rarely a path that seems dead is probed: rarely enough to cost nothing, often enough to find it soon, and to outlast
/// any burst of losses within the silence limit.
const MOST_RTO: Duration = Duration::from_secs(5);

/// TPA for real networks, with a largest window of `cwnd_max` segments (1 to 12; the paper: 2 or 3): [`Config::tpa`]
/// with segments of 1448 bytes of data (over IPv6 a host takes 20 off) where the path has room for them, a send buffer of 256 KiB, an RTO of 300 ms before the first sample and of 5 s at most, a call that is repeated after 50 ms,
/// and a sign of life asked for after 5 s of silence, so that a peer whose address has changed is found again.
#[must_use]
pub fn config(cwnd_max: u8) -> Config {
    let mut config = Config::tpa(cwnd_max);
    (config.mss, config.send_buffer, config.keep_alive) = (MSS, Some(SEND_BUFFER), Some(KEEP_ALIVE));
    (config.rto.initial, config.rto.max) = (FIRST_RTO, MOST_RTO);
    config.call_again = Some(CALL_AGAIN);
    config
}
