//! The home agent: where what comes for a mobile host is sent on to.

use super::key::is_genuine;
use super::{Identity, Scheme, Transmit, group_of, key};
use hopline_core::Instant;
use hopline_wire::handoff::{Asks, Kind, Message, Says, Tagged};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// Sends on what comes for the mobile hosts of a network.
#[derive(Debug)]
pub struct HomeAgent {
    identity: Identity,
    scheme: Scheme,
    /// Whose home this is. With registration: where they are.
    bindings: BTreeMap<Ipv4Addr, Option<Binding>>,
    /// Stations at which hosts may be registered; empty: all.
    stations: Vec<Ipv4Addr>,
    out: VecDeque<Transmit>,
    stats: HomeStats,
}

#[derive(Clone, Copy, Debug)]
struct Binding {
    care_of: Ipv4Addr,
    number: u64,
    expires: Instant,
}

/// What a [`HomeAgent`] has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HomeStats {
    /// Registrations, those repeated included.
    pub registrations: u64,
    /// Messages without the right proof.
    pub forged: u64,
    /// Messages with a number that is not above the last one.
    pub replayed: u64,
    /// Messages that are none of its concern, such of hosts whose home is elsewhere, and registrations at addresses that are no station's.
    pub foreign: u64,
}

impl HomeAgent {
    /// The agent of these mobile hosts.
    #[must_use]
    pub fn new(identity: Identity, scheme: Scheme, mobiles: impl IntoIterator<Item = Ipv4Addr>) -> Self {
        let bindings = mobiles.into_iter().map(|mobile| (mobile, None)).collect();
        let (stations, out) = (Vec::new(), VecDeque::new());
        Self { identity, scheme, bindings, stations, out, stats: HomeStats::default() }
    }

    /// The same; hosts may register at these stations alone.
    #[must_use]
    pub fn at(self, stations: impl IntoIterator<Item = Ipv4Addr>) -> Self {
        Self { stations: stations.into_iter().collect(), ..self }
    }

    /// Where a packet for a mobile host is to be tunnelled to; `None`: its home is elsewhere, or nobody knows where it is.
    #[must_use]
    pub fn destination(&self, now: Instant, mobile: Ipv4Addr) -> Option<Ipv4Addr> {
        let binding = self.bindings.get(&mobile)?;
        match self.scheme {
            Scheme::Multicast => Some(group_of(mobile)),
            Scheme::Registration => {
                binding.filter(|binding| binding.expires > now).map(|binding| binding.care_of)
            }
        }
    }

    /// Takes a message.
    pub fn handle_message(&mut self, now: Instant, tagged: &Tagged) {
        if !is_genuine(self.identity.key.as_ref(), tagged) {
            self.stats.forged += 1;
            return;
        }
        let Message { number, says } = tagged.message;
        let Says::Request { mobile, lifetime, asks: Asks::Register { care_of, .. } } = says else {
            self.stats.foreign += 1;
            return;
        };
        let is_station = self.stations.is_empty() || self.stations.contains(&care_of);
        let Some(binding) = self.bindings.get_mut(&mobile).filter(|_| is_station) else {
            self.stats.foreign += 1;
            return;
        };
        if let Some(known) = binding.filter(|known| number < known.number) {
            self.stats.replayed += 1;
            if let Some(message) = key::behind(self.identity.key.as_ref(), known.number, (mobile, number)) {
                self.out.push_back(Transmit { to: care_of, message });
            }
            return;
        }
        *binding = Some(Binding { care_of, number, expires: now + lifetime });
        self.stats.registrations += 1;
        let message = Message { number, says: Says::Answer { mobile, lifetime, to: Kind::Register } };
        let message = key::seal(self.identity.key.as_ref(), message);
        self.out.push_back(Transmit { to: care_of, message });
    }

    /// The next message to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.out.pop_front()
    }

    /// What it has done.
    #[must_use]
    pub const fn stats(&self) -> &HomeStats {
        &self.stats
    }
}
