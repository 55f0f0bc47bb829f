//! Connections over one UDP socket: listener and stream, blocking, non-blocking and asynchronous, for any
//! [protocol](Protocol). The crate has these types at its root.
//!
//! A protocol is a state machine with all connections of a socket. This module adds its clock, its socket and the
//! interface for its users. One thread serves all connections of a [`Host`]. [`tpa`](crate::tpa) is such a protocol.
//!
//! | file | idea |
//! |---|---|
//! | `protocol` | interface of a protocol |
//! | `host` | socket and thread |
//! | `driver` | loop of the thread |
//! | `table` | connections and their users, and the consequences of any input |
//! | `user` | user's half of a connection |
//! | `queue` | accept queue |
//! | `egress` | outgoing datagrams, and those that wait for room |
//! | `gso_burst` | GSO segment groups: datagrams sent by one system call |
//! | `socket` | UDP |
//! | `traffic` | datagram counters |
//! | `notice` | wake-up of users: condition variable, descriptor, task |
//! | `stream`, `listener` | blocking and non-blocking interface; `tokio`: the asynchronous one |

mod driver;
mod egress;
mod gso_burst;
mod host;
mod listener;
mod notice;
mod protocol;
mod queue;
mod socket;
mod stream;
mod table;
#[cfg(feature = "tokio")]
mod tokio;
mod traffic;
mod user;

pub use self::host::Host;
pub(crate) use self::host::unspecified;
pub use self::listener::Listener;
pub use self::protocol::{Endpoint, Fragments, GsoGrouping, Protocol, ProtocolEvent, Reason, Transmit};
pub use self::socket::{Path, PortSharing};
pub use self::stream::Stream;
#[cfg(feature = "tokio")]
pub use self::tokio::{AsyncListener, AsyncStream};
pub use self::traffic::Traffic;
pub use self::user::{Interest, Ready};
