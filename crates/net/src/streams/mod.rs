//! Connections over one UDP socket: listener and stream, blocking, non-blocking and asynchronous, whatever the
//! [protocol](Protocol).
//!
//! A protocol is a machine that has all connections of a socket; here are its clock, its socket and its users. One thread
//! serves all connections of a [`Host`]. [`tpa`](crate::tpa) is one.
//!
//! | file | idea |
//! |---|---|
//! | `protocol` | what a protocol adds |
//! | `host` | a socket and its thread, made |
//! | `driver` | the thread |
//! | `table` | a protocol and its users, and what follows from any input |
//! | `user` | one connection, and what its user asks of it |
//! | `queue` | who waits to be accepted |
//! | `egress` | what goes out, and what waits for room |
//! | `train` | datagrams that leave with one system call |
//! | `socket` | UDP |
//! | `traffic` | what is counted |
//! | `notice` | waking users: condition, descriptor, task |
//! | `stream`, `listener` | the user's side; `tokio`: the asynchronous one |

mod driver;
mod egress;
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
mod train;
mod user;

pub use self::host::Host;
pub(crate) use self::host::unspecified;
pub use self::listener::Listener;
pub use self::protocol::{Company, Endpoint, Fragments, News, Protocol, Reason, Transmit};
pub use self::socket::{Path, Sharing};
pub use self::stream::Stream;
#[cfg(feature = "tokio")]
pub use self::tokio::{AsyncListener, AsyncStream};
pub use self::traffic::Traffic;
pub use self::user::{Interest, Ready};
