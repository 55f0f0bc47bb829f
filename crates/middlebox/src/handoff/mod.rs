//! Handoff on real packets: [home agents](HomeAgent), [base stations](BaseStation) and [mobile hosts](MobileHost), with the machines of
//! [`hopline_proxy::handoff`] within.
//!
//! ```text
//!                 ┌──────────────┐  IP in IP, to 239.x.y.z   ┌──────────────┐
//!  ── routed ──▶ TUN home agent ─┼──────────────────────────▶│ base station TUN ─▶ FORWARD, NFQUEUE ─▶ radio ─▶ mobile host
//!                 └──────────────┘                           └──────────────┘
//! ```
//!
//! The tunnel is IP in IP (RFC 2003, protocol 4) by raw sockets, multicast by the kernel's own (IGMP). What a station takes out of it the
//! kernel forwards like anything else, so that rules and [queues](crate::nfqueue) see it. What a mobile host sends goes by ordinary
//! routing. IPv4 only.
//!
//! A mobile host tells by IP identifications what it has received. Linux gives many packets the identification 0, which RFC 6864 allows
//! where they must not be fragmented; the home agent numbers those.

mod ack_repeater;
mod clock;
mod groups;
mod home;
mod messenger;
mod mobile;
mod notifications;
mod radio_route;
mod signals;
mod station;
mod tap;
mod tunnel;
mod visitors;

pub use home::{HomeAgent, HomeConfig};
pub use hopline_proxy::handoff::{HOST_KEY_LEN, HandoffRule, Key, Scheme, StartState};
pub use mobile::{MobileConfig, MobileHost};
pub use notifications::NotifiedMiddlebox;
pub use signals::SignalSource;
pub use station::{BaseStation, StationConfig};
pub(crate) use visitors::{Arrival, ClaimResult};
pub use visitors::{MovePolicy, VisitorList};

/// Messages or packets taken from a socket before the next socket has its turn.
const BATCH: usize = 64;
/// Longest IP packet there is.
const MAX_PACKET: usize = 65_535;
