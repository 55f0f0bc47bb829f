//! One socket of the kernel's TCP, taken out of one machine and put into another (`TCP_REPAIR`, tcp(7), `net/ipv4/tcp.c`).
//!
//! A socket is [frozen](Frozen::freeze) first. A filter drops all that comes for it, silently, and its window ends at the last byte that was
//! sent, so that it sends nothing new. It still is an ordinary socket: if this process is killed, the kernel resets the connection.
//! Repair mode, in which `close` is silent, lasts for the reading of its state alone.
//!
//! | read | by |
//! |---|---|
//! | next byte to receive, last byte written | `TCP_QUEUE_SEQ` of both queues |
//! | bytes that the peer has not acknowledged | `MSG_PEEK` of the send queue; `SIOCOUTQ`, `SIOCOUTQNSD` say which were sent |
//! | bytes that were not read | `MSG_PEEK` |
//! | windows | `TCP_REPAIR_WINDOW` |
//! | MSS, window scale, SACK, timestamps | `TCP_MAXSEG`, `TCP_INFO`; they are set by `TCP_REPAIR_OPTIONS` |
//! | the clock of timestamps | `TCP_TIMESTAMP` |
//!
//! Not read, as the kernel has no call for it: data out of order, the scoreboard, estimates of the round-trip time, the congestion window, ECN.
//! Both peers send again what was not acknowledged, and the new socket begins as a new connection does.

mod frozen;
mod restored;
mod syscalls;

pub use frozen::{Frozen, Retired};
pub use restored::Restored;
pub use syscalls::Windows;

use std::io;
use std::net::TcpStream;
use syscalls::{RepairExit, with_repair_mode};

/// State of a connection at one socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// First byte that the peer has not acknowledged.
    pub unacknowledged: u32,
    /// The bytes from there on that have been sent.
    pub sent: Vec<u8>,
    /// Next byte to receive.
    pub next: u32,
    /// The bytes before it that were not read.
    pub unread: Vec<u8>,
    /// Windows of both directions.
    pub windows: Windows,
    /// Largest segment that the peer takes (`TCP_MAXSEG`).
    pub mss: u32,
    /// Shift of the peer's window and of ours (RFC 7323 §2).
    pub scales: Option<(u8, u8)>,
    /// `true` if both hosts permit SACK (RFC 2018).
    pub sack: bool,
    /// Clock of timestamps as the kernel tells and takes it.
    pub timestamp: Option<u32>,
    /// Sizes of the send buffer and of the receive buffer, in bytes.
    pub buffer_sizes: [u32; 2],
}

/// State read from a frozen socket.
#[derive(Debug)]
pub struct Dump {
    /// State for another socket.
    pub state: State,
    /// Bytes that were written to it and not sent.
    pub unsent: Vec<u8>,
}

/// Marking of the packets of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marking {
    /// As its options say.
    FromOptions,
    /// As those of an onward connection ([`crate::transparent::ONWARD_MARK`]).
    Onward,
}

/// Has the peer of a socket say what it has received and how much more it takes. The peer does not learn the window of this socket by it, though
/// the kernel takes that for told.
///
/// # Errors
/// Error of the system.
pub fn probe_peer(stream: &TcpStream) -> io::Result<()> {
    with_repair_mode(stream, RepairExit::WithProbe, || Ok(()))
}
