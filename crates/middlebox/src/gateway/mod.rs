//! A pair of gateways: applications use unmodified TCP, and TPA or TPA-wide carries their data over the lossy part of the
//! path (TPA §6: a TPA trunk and a TCP trunk, as Indirect-TCP has two TCP connections).
//!
//! The entrance accepts TCP connections and asks the exit over a TPA stream to connect onward by TCP. Both relay data,
//! ends of streams, resets and back-pressure. If no exit answers, the entrance resets connections or connects by TCP
//! itself. `docs/protocols/gateway.md` has the message formats, and describes the parts that are not encrypted.
//!
//! | file | idea |
//! |---|---|
//! | `handshake` | messages between two gateways |
//! | `socks` | SOCKS version 5, without I/O |
//! | `destination` | destinations and the rules for them; `embedded`: IPv4 addresses within IPv6 addresses |
//! | `key` | names and secrets |
//! | `config`, `error` | configuration, and errors of opening |
//! | `entrance` | accepts connections of applications; `listeners`: listeners, `outcome`: destinations of clients |
//! | `exit` | serves entrances; `sessions`: open trunks; `exit_log`: log lines about entrances |
//! | `carrier` | transports of the trunk: TPA or TPA-wide |
//! | `trunk` | trunk of an entrance; `exit_state`: state of the exit; `spare_pool`: spare streams |
//! | `request`, `early_data` | a request in progress, and the client's data meanwhile |
//! | `onward` | connections onward by TCP |
//! | `leg`, `relay` | one side of a connection; both sides joined |
//! | `service`, `metrics` | event loop, and metrics |

#[cfg(feature = "gateway")]
mod carrier;
#[cfg(feature = "gateway")]
mod config;
pub mod destination;
#[cfg(feature = "gateway")]
mod early_data;
mod embedded;
#[cfg(feature = "gateway")]
mod entrance;
#[cfg(feature = "gateway")]
mod error;
#[cfg(feature = "gateway")]
mod exit;
#[cfg(feature = "gateway")]
mod exit_log;
#[cfg(feature = "gateway")]
mod exit_state;
pub mod handshake;
pub mod key;
#[cfg(feature = "gateway")]
pub(crate) mod leg;
#[cfg(feature = "gateway")]
pub(crate) mod listeners;
#[cfg(feature = "gateway")]
mod metrics;
#[cfg(feature = "gateway")]
pub(crate) mod onward;
#[cfg(feature = "gateway")]
pub(crate) mod outcome;
#[cfg(feature = "gateway")]
pub(crate) mod relay;
#[cfg(feature = "gateway")]
mod request;
#[cfg(feature = "gateway")]
pub(crate) mod service;
#[cfg(feature = "gateway")]
mod sessions;
pub mod socks;
#[cfg(feature = "gateway")]
mod spare_pool;
#[cfg(feature = "gateway")]
mod trunk;

#[cfg(feature = "gateway")]
pub use self::{
    config::{EntranceConfig, ExitConfig, Fallback, ListenerConfig, SourceAddress, Transport},
    entrance::Entrance,
    error::Error,
    exit::Exit,
};
pub use destination::{Allowed, Destination, Rule, Subnet};
pub use key::{Key, Name, Peer};
