//! Handoff of mobile hosts between base stations without loss (Balakrishnan, Seshan, Katz, Wireless Networks 1(4), 1995, §4).
//!
//! A mobile host keeps its home address. Its [`HomeAgent`] sends packets for it to a multicast group. The
//! base stations near the host are members: one [forwards](Station), the other ones buffer the last packets.
//! The [`Mobile`] host receives the beacons of stations, selects the one that forwards, and tells it which
//! packets it has received last. That station sends the rest at once.
//!
//! The paper defines no messages, no handoff rule and no timeouts. Those of hopline are documented with the
//! code: messages in [`hopline_wire::handoff`], the rule at [`HandoffRule`].
//!
//! The baseline is Mobile IP ([`Scheme::Registration`]): the host registers the station with its home agent,
//! which tunnels to that station alone, and no station buffers packets.

mod home;
mod key;
mod mobile;
mod station;

pub use home::{HomeAgent, HomeStats};
pub use key::{HOST_KEY_LEN, Key};
pub use mobile::{Event, HandoffRule, Mobile, MobileConfig, MobileStats};
pub use station::{StartState, Station, StationAction, StationConfig, StationStats};

use hopline_core::{Duration, Instant};
use hopline_wire::handoff::TaggedMessage;
use std::net::Ipv4Addr;

/// Routing of packets to the station of a mobile host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// To all stations near the host (§4).
    Multicast,
    /// To the station that the host has registered with its home agent: Mobile IP (RFC 5944), without its
    /// wire format.
    Registration,
}

/// A message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Destination; [`Ipv4Addr::BROADCAST`]: all hosts in range.
    pub to: Ipv4Addr,
    /// The message.
    pub message: TaggedMessage,
}

/// Address and key of a station, home agent or mobile host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Own address; for a mobile host its home address.
    pub address: Ipv4Addr,
    /// Key of the network, or of the mobile host. `None`: messages are not authenticated, and an attacker
    /// that can send packets can redirect those of a mobile host.
    pub key: Option<Key>,
    /// Clock reading at time zero, µs. Message numbers follow the clock, so that they continue to rise after
    /// a restart. With a key the clock may have gone back: a mobile host is told which numbers it has used.
    /// Default 0.
    pub epoch_us: u64,
}

impl Identity {
    /// Creates an identity with this address, without a key.
    #[must_use]
    pub const fn new(address: Ipv4Addr) -> Self {
        Self { address, key: None, epoch_us: 0 }
    }

    /// Returns the number of the next message, after `last`.
    fn number(&self, now: Instant, last: u64) -> u64 {
        (self.epoch_us + now.as_nanos() / 1000).max(last + 1)
    }
}

/// Returns the multicast group of a mobile host: 239.x.y.z for the home address w.x.y.z, of local scope (RFC
/// 2365 §5). Two home addresses that differ in their first octet only share one.
#[must_use]
pub const fn group_of(mobile: Ipv4Addr) -> Ipv4Addr {
    let [_, b, c, d] = mobile.octets();
    Ipv4Addr::new(239, b, c, d)
}

/// Time between two beacons of a station (§4).
pub const BEACON_INTERVAL: Duration = Duration::from_secs(1);
/// Number of packets that a station buffers for a host (§4).
pub const BUFFER_PACKETS: u16 = 12;

#[cfg(test)]
mod tests;
