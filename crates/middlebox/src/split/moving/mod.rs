//! Split connections that follow their mobile host from one station to another (I-TCP: Bakre, Badrinath 1995).
//!
//! The station to which the host has come, the claimant, asks the station where it was, the holder, for its connections, over a TCP
//! connection that the network's key proves ([`channel`]). Connections move one after another:
//!
//! ```text
//!  holder                                     claimant
//!  Open                                       –
//!    │ freezes both sockets, reads them
//!  Frozen ───────── Offer, state ───────────▶ makes both sockets, in repair mode
//!    │       ◀──────── Ready ───────────────  Staged
//!    │ reads them again: they are as before
//!  Committed ────── Commit ─────────────────▶ the sockets go on
//!    │       ◀──────── Done ────────────────  Open
//!  Retired: closed without a reset
//! ```
//!
//! Never two stations hold a connection, and no stream has a hole:
//!
//! | what happens | holder | claimant |
//! |---|---|---|
//! | a refusal, silence or the end of the channel before `Commit` was sent | goes on | closes the staged sockets, which have sent nothing |
//! | the holder is killed while it is frozen | its kernel resets both hosts | the same |
//! | no `Done` after `Commit` | resets both hosts: it cannot know | has the connection, or closed the staged sockets |
//! | the claimant cannot go on after `Commit` | resets both hosts | resets both hosts |
//!
//! Packets that come while a connection is frozen or staged are dropped in silence, by filters of its sockets at both stations; both hosts
//! send again what was not acknowledged. Where a station has no socket for a connection, yet or any more, rules of [`split`](super) do not find one,
//! and packets are forwarded: not answered by a reset, but sent to the host at the other end. Its half has other sequence numbers. It ignores
//! a segment unless number and acknowledgment are both in its windows by chance. Stations of one kernel, in namespaces, choose
//! nearly the same numbers for both halves. So a station between which connections move drops such packets of its mobile hosts, here
//! 10.9.0.0/16 (for IPv6 the same with `ip6tables`):
//!
//! ```text
//! iptables -t mangle -A FORWARD -p tcp ! --syn -s 10.9.0.0/16 -j DROP
//! iptables -t mangle -A FORWARD -p tcp ! --syn -d 10.9.0.0/16 -j DROP
//! ```
//!
//! With them, connections of mobile hosts that are not split do not pass the station: those that were there before the proxy, and those
//! beyond its limits. Connection tracking that translates sources, or chooses other ports for onward connections, does not move with a connection:
//! use neither at such a station.
//!
//! With a base station on the same machine ([`BaseStation`]) claims make themselves ([`claims`]).
//!
//! A connection stays if one of its hosts has ended its direction, or if the server has not answered. It moves without: data out of order, the scoreboard, the
//! estimates and the congestion window, ECN.

mod channel;
mod claimant;
mod claims;
mod holder;
mod state;

pub(super) use claims::Claimant;
pub(super) use holder::ClaimListener;

use super::Control;
use crate::handoff::VisitorList;
use claimant::ClaimResult;
use hopline_proxy::handoff::Key;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Silence of the other station after which a move is given up.
const STATION_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest time between `Ready` and `Commit`. A staged socket sends nothing for a second (`TCP_TIMEOUT_INIT`).
const MAX_STAGED_TIME: Duration = Duration::from_millis(800);

/// Reads the state of a connection that moves, and returns it as it would be written; for a fuzz target.
#[doc(hidden)]
#[must_use]
pub fn moved_state(bytes: &[u8]) -> Option<Vec<u8>> {
    state::ConnectionState::parse(bytes).map(|moved| moved.emit())
}

/// Key by which stations prove that they are of one network.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MoveKey([u8; 32]);

/// Other stations from which mobile hosts come, and to which they go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveConfig {
    /// Address at which other stations claim connections of their hosts, in the wired network. This one claims by the same address.
    pub listen: SocketAddr,
    /// Key of the network.
    pub key: MoveKey,
    /// The other stations, as they listen: no other address may claim. Empty: every address may.
    pub stations: Vec<SocketAddr>,
    /// The base station of this machine. Its hosts' connections are claimed from all `stations` when a host comes. `None`: claims are made by
    /// [`Control::claim`] alone.
    pub base_station: Option<BaseStation>,
}

/// A base station ([`handoff`](crate::handoff)) on the same machine, as a split proxy knows it.
///
/// Packets of mobile hosts come to it by a tunnel, and the routes of this machine lead to the tunnel's other end. So all that the proxy sends to mobile hosts
/// has the mark by which the station's rule leads packets to the radio: the proxy's listener and the halves towards mobile hosts
/// ([`LegOptions::mark`](hopline_linux::transparent::LegOptions::mark) of [`LegPolicy::mobile`](super::LegPolicy::mobile)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseStation {
    /// Its visitors ([`BaseStation::write_visitors`](crate::handoff::BaseStation::write_visitors)).
    pub visitors: VisitorList,
    /// Interface with its radio ([`StationConfig::wireless`](crate::handoff::StationConfig::wireless)).
    pub wireless: String,
    /// Mark by which its rule leads packets to the radio ([`StationConfig::mark`](crate::handoff::StationConfig::mark)).
    pub mark: u32,
}

/// Connections that have come from another station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClaimReport {
    /// Connections that go on here.
    pub connections: u64,
    /// Bytes of their state.
    pub bytes: u64,
    /// Connections that were offered and stayed there, or were lost.
    pub refused: u64,
}

impl MoveKey {
    /// Returns the key of stations of a network. `None`: `key` is not the network's but a mobile host's.
    #[must_use]
    pub fn of(key: &Key) -> Option<Self> {
        key.derive_station_key().map(Self)
    }
}

/// Shows the type alone, and not the key.
impl std::fmt::Debug for MoveKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MoveKey")
    }
}

impl Control {
    /// Has the connections of the mobile host `host` move here from the station that listens at `from`, and waits until they have. The
    /// routes of both hosts must lead by this machine; rules keep segments of connections that are not here from being forwarded
    /// (`crates/middlebox/src/split/moving/mod.rs`). The calling thread is in the namespace of the [`Split`](super::Split). Takes `CAP_NET_ADMIN`, at
    /// both stations, and `CAP_NET_BIND_SERVICE` for ports below 1024.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] without [`Config::moves`](super::Config::moves); why the other station cannot be asked, or what
    /// ended the conversation. Connections that have come before that are here.
    pub fn claim(&self, host: IpAddr, from: SocketAddr) -> io::Result<ClaimReport> {
        match claimant::claim(&self.0, host, None, from)? {
            ClaimResult::Arrived(arrived) => Ok(arrived),
            // That answers a claim with a number.
            ClaimResult::Returned => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}
