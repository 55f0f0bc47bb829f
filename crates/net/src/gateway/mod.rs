//! A pair of gateways: applications speak TCP, unmodified, and TPA or TPA-wide carries their bytes over the part of the way that loses packets
//! (TPA §6: a TPA trunk and a TCP trunk, as Indirect-TCP has two of TCP).
//!
//! The entrance takes TCP connections, asks the exit over a TPA stream to connect onward by TCP, and both pass on what comes: bytes,
//! ends, resets, and the lack of room. Where no exit answers, the entrance resets connections or connects by TCP alone.
//! `docs/protocols/gateway.md` has the bytes, and what crosses in clear.
//!
//! | file | idea |
//! |---|---|
//! | `greeting` | what two gateways say to each other, as bytes |
//! | `socks` | SOCKS version 5, without I/O |
//! | `destination` | where connections go, and where they may; `embedded`: IPv4 addresses within those of IPv6 |
//! | `key` | names and secrets |
//! | `config`, `error` | what gateways are told, and what they say when they cannot open |
//! | `entrance` | takes connections of applications; `doors`: where they come in, `ways`: how they say where to |
//! | `exit` | serves entrances; `sessions`: the trunks that stand; `remarks`: what it says of entrances |
//! | `carrier` | what carries the trunk: TPA or TPA-wide |
//! | `trunk` | the trunk that an entrance keeps up; `presence`: whether there is an exit; `spare`: streams that are ready |
//! | `asking`, `early` | a request on its way to the exit, and what the client says meanwhile |
//! | `onward` | connections onward by TCP |
//! | `leg`, `relay` | one side of a connection; both sides joined |
//! | `service`, `figures` | one thread for all connections, and what they count |

#[cfg(feature = "gateway")]
mod asking;
#[cfg(feature = "gateway")]
mod carrier;
#[cfg(feature = "gateway")]
mod config;
pub mod destination;
#[cfg(feature = "gateway")]
pub(crate) mod doors;
#[cfg(feature = "gateway")]
mod early;
mod embedded;
#[cfg(feature = "gateway")]
mod entrance;
#[cfg(feature = "gateway")]
mod error;
#[cfg(feature = "gateway")]
mod exit;
#[cfg(feature = "gateway")]
mod figures;
pub mod greeting;
pub mod key;
#[cfg(feature = "gateway")]
pub(crate) mod leg;
#[cfg(feature = "gateway")]
pub(crate) mod onward;
#[cfg(feature = "gateway")]
mod presence;
#[cfg(feature = "gateway")]
pub(crate) mod relay;
#[cfg(feature = "gateway")]
mod remarks;
#[cfg(feature = "gateway")]
pub(crate) mod service;
#[cfg(feature = "gateway")]
mod sessions;
pub mod socks;
#[cfg(feature = "gateway")]
mod spare;
#[cfg(feature = "gateway")]
mod trunk;
#[cfg(feature = "gateway")]
pub(crate) mod ways;

#[cfg(feature = "gateway")]
pub use self::{
    config::{EntranceConfig, ExitConfig, Fallback, Sources, Transport, Way},
    entrance::Entrance,
    error::Error,
    exit::Exit,
};
pub use destination::{Allowed, Destination, Rule, Subnet};
pub use key::{Key, Name, Peer};
