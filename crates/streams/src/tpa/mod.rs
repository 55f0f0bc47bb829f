//! TPA over UDP: listener and stream, blocking, non-blocking and asynchronous.
//!
//! The state machine is [`hopline_transport::tpa::Endpoint`]; [`Stream`](crate::Stream) adds its clock, its socket and the interface
//! for its users. All connections of a [`Host`] share a UDP socket. Segments are assigned to connections by a tag. A
//! connection therefore survives a change of its peer's address: segments go to the address that the peer has proved to
//! have.
//!
//! A peer that has not proved its address takes no memory: its SYN is answered and forgotten. While the accept queue is
//! full, SYNs are rejected. Written data leave once they fill a block, after [`Config::block_fill`], or on `flush`.
//! Writing blocks while [`Config::send_buffer`] is full. A connection attempt ends after [`Config::syn_retries`].
//!
//! ```
//! use hopline_streams::tpa::{TpaListener, TpaStream, config};
//! use std::io::{Read, Write};
//!
//! // At most 12 segments in flight: all of a block.
//! let listener = TpaListener::bind("127.0.0.1:0", &config(12))?;
//! let mut client = TpaStream::connect(listener.local_addr()?, &config(12))?;
//! let (mut server, _) = listener.accept()?;
//! client.write_all(b"hello")?;
//! client.flush()?;
//! let mut received = [0; 5];
//! server.read_exact(&mut received)?;
//! assert_eq!(&received, b"hello");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The paper describes a library in the manner of sockets (appendix A); the list of its functions, table A1, is lost. For
//! C see `docs/c.md`, "TPA as published". Correspondence to the socket functions:
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
//! | `table` | connections by tag, timers, output |
//! | `input` | received datagrams |
//! | `backlog` | admission of new connections |
//! | `path_state` | address of the peer, path MTU, use of GSO |
//! | `tokens` | keys, and tokens that can be verified without state |
//! | `stream` | operations of TPA streams only |

mod backlog;
mod input;
mod path_state;
mod protocol;
mod stats;
mod stream;
mod table;
mod tokens;

pub use self::stats::{HostStats, Info};
pub use self::table::Tpa;
pub use crate::udp::PortSharing;
pub use hopline_transport::connection::State;
pub use hopline_transport::tpa::Config;

use crate::udp;
use hopline_core::Duration;

/// A UDP socket with connections of TPA.
pub type Host = udp::Host<Tpa>;
/// Accepts connections of TPA.
pub type TpaListener = udp::Listener<Tpa>;
/// A connection of TPA.
pub type TpaStream = udp::Stream<Tpa>;
/// A [`TpaListener`] for asynchronous code.
#[cfg(feature = "tokio")]
pub type AsyncListener = udp::AsyncListener<Tpa>;
/// A [`TpaStream`] for asynchronous code.
#[cfg(feature = "tokio")]
pub type AsyncStream = udp::AsyncStream<Tpa>;

/// Maximum data of a segment, so that IP (20 bytes), UDP (8), header (12), tag (8) and receipt (4) fit into 1500 bytes
/// with it.
const MSS: u16 = 1448;
/// Bytes written and not acknowledged after which a write blocks.
const SEND_BUFFER: u64 = 256 * 1024;
/// Interval of keep-alive probes, shorter than the timeout of address translators and a user's patience.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Delay before the first repetition of a SYN. Under a flood, the listener answers only SYNs that come twice.
const SYN_RETRY: Duration = Duration::from_millis(50);
/// RTO before the first sample: a lost SYN is soon repeated.
const INITIAL_RTO: Duration = Duration::from_millis(300);
/// Maximum RTO. Probes of a path that seems dead are then rare enough to cost nothing. They are frequent enough to detect
/// its recovery soon, and to outlast any burst of losses within the idle timeout.
const MAX_RTO: Duration = Duration::from_secs(5);

/// Returns the configuration of TPA for real networks, with a maximum window of `cwnd_max` segments (1 to 12; the paper:
/// 2 or 3). It differs from [`Config::tpa`] in the following:
///
/// - Segments have 1448 bytes of data where the path MTU permits; over IPv6, 20 fewer.
/// - The send buffer has 256 KiB.
/// - The RTO is 300 ms before the first sample, and at most 5 s.
/// - A SYN is repeated after 50 ms.
/// - A keep-alive probe is sent after 5 s of silence, so that a peer with a changed address is found again.
#[must_use]
pub fn config(cwnd_max: u8) -> Config {
    let config = Config::tpa(cwnd_max);
    config
        .with_mss(MSS)
        .with_send_buffer(Some(SEND_BUFFER))
        .with_keep_alive(Some(KEEP_ALIVE))
        .with_rto(config.rto().with_initial(INITIAL_RTO).with_max(MAX_RTO))
        .with_syn_rto(Some(SYN_RETRY))
}
