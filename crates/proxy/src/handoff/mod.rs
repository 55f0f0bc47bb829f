//! Handoff of mobile hosts between base stations without loss (Balakrishnan, Seshan, Katz, Wireless Networks 1(4), 1995, §4).
//!
//! A mobile host keeps its home address. Its [`HomeAgent`] sends what comes for it to a multicast group. The stations near the host are
//! members: one [forwards](Station), the others keep the last packets. The [`Mobile`] host hears the beacons of stations, decides
//! which one is to forward, and tells it which packets it has received last; that station sends the rest at once.
//!
//! The text has no messages, no rule of decision and no time-outs. Ours are documented where they stand: messages in
//! [`hopline_wire::handoff`], the rule at [`Decide`].
//!
//! The baseline beside it is Mobile IP's way ([`Scheme::Registration`]): the host registers the station with its home agent, which
//! tunnels to that station alone, and nobody keeps anything.

mod home;
mod key;
mod mobile;
mod station;

pub use home::{HomeAgent, HomeStats};
pub use key::{HOST_KEY_LEN, Key};
pub use mobile::{Decide, Event, Mobile, MobileConfig, MobileStats};
pub use station::{Cold, Does, Station, StationConfig, StationStats};

use hopline_core::{Duration, Instant};
use hopline_wire::handoff::Tagged;
use std::net::Ipv4Addr;

/// How packets find the station of a mobile host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// They go to all stations near it (§4).
    Multicast,
    /// They go to the one that it has registered with its home agent: Mobile IP (RFC 5944), without its bytes.
    Registration,
}

/// A message to somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// To whom; [`Ipv4Addr::BROADCAST`]: whoever hears it.
    pub to: Ipv4Addr,
    /// The message.
    pub message: Tagged,
}

/// What everybody who speaks has in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its address; a mobile host's home address.
    pub address: Ipv4Addr,
    /// The network's key, or that of the mobile host. `None`: messages have no proof, and whoever can send packets can redirect others'.
    pub key: Option<Key>,
    /// Microseconds of a clock at time zero. The numbers of messages follow the clock, so that those of a process that starts again are
    /// above its earlier ones. With a key it may have gone back: a mobile host learns which numbers it has used. Default 0.
    pub epoch_us: u64,
}

impl Identity {
    /// Somebody with this address, without a key.
    #[must_use]
    pub const fn new(address: Ipv4Addr) -> Self {
        Self { address, key: None, epoch_us: 0 }
    }

    /// The number of the next message, after `last`.
    fn number(&self, now: Instant, last: u64) -> u64 {
        (self.epoch_us + now.as_nanos() / 1000).max(last + 1)
    }
}

/// The multicast group of a mobile host: 239.x.y.z of the home address w.x.y.z, of local scope (RFC 2365 §5). Two home addresses that
/// differ in their first number alone share one.
#[must_use]
pub const fn group_of(mobile: Ipv4Addr) -> Ipv4Addr {
    let [_, b, c, d] = mobile.octets();
    Ipv4Addr::new(239, b, c, d)
}

/// Time between two beacons of a station (§4).
pub const BEACON_INTERVAL: Duration = Duration::from_secs(1);
/// Packets that a station keeps for a host (§4).
pub const BUFFER_PACKETS: u16 = 12;

#[cfg(test)]
mod tests;
