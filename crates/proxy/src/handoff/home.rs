//! Home agent: forwards packets for a mobile host to its current place.

use super::key::is_genuine;
use super::{Identity, Scheme, Transmit, group_of, key};
use hopline_core::Instant;
use hopline_wire::handoff::{Message, MessageBody, RequestAction, RequestKind, TaggedMessage};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// Forwards the packets of the mobile hosts of a network.
#[derive(Debug)]
pub struct HomeAgent {
    identity: Identity,
    scheme: Scheme,
    /// Mobile hosts of this home network. With registration: their bindings.
    bindings: BTreeMap<Ipv4Addr, Option<Binding>>,
    /// Stations at which hosts may be registered; empty: any.
    stations: Vec<Ipv4Addr>,
    outgoing: VecDeque<Transmit>,
    stats: HomeStats,
}

#[derive(Clone, Copy, Debug)]
struct Binding {
    care_of: Ipv4Addr,
    number: u64,
    expires: Instant,
}

/// Counters of a [`HomeAgent`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HomeStats {
    /// Registrations, including repeated ones.
    pub registrations: u64,
    /// Messages without a valid tag.
    pub forged: u64,
    /// Messages with a number that is not above the last one.
    pub replayed: u64,
    /// Messages of a wrong kind, messages of hosts with another home network, and registrations at addresses
    /// that are not a station's.
    pub unexpected: u64,
}

impl HomeAgent {
    /// Creates the agent of these mobile hosts.
    #[must_use]
    pub fn new(identity: Identity, scheme: Scheme, mobiles: impl IntoIterator<Item = Ipv4Addr>) -> Self {
        let bindings = mobiles.into_iter().map(|mobile| (mobile, None)).collect();
        let (stations, out) = (Vec::new(), VecDeque::new());
        Self { identity, scheme, bindings, stations, outgoing: out, stats: HomeStats::default() }
    }

    /// Restricts registrations to these stations.
    #[must_use]
    pub fn with_stations(self, stations: impl IntoIterator<Item = Ipv4Addr>) -> Self {
        Self { stations: stations.into_iter().collect(), ..self }
    }

    /// Returns the tunnel destination of packets for a mobile host; `None`: it has another home network, or
    /// no valid binding.
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

    /// Handles a message.
    pub fn handle_message(&mut self, now: Instant, tagged: &TaggedMessage) {
        if !is_genuine(self.identity.key.as_ref(), tagged) {
            self.stats.forged += 1;
            return;
        }
        let Message { number, body: says } = tagged.message;
        let MessageBody::Request { mobile, lifetime, action: RequestAction::Register { care_of, .. } } = says
        else {
            self.stats.unexpected += 1;
            return;
        };
        let is_station = self.stations.is_empty() || self.stations.contains(&care_of);
        let Some(binding) = self.bindings.get_mut(&mobile).filter(|_| is_station) else {
            self.stats.unexpected += 1;
            return;
        };
        if let Some(known) = binding.filter(|known| number < known.number) {
            self.stats.replayed += 1;
            if let Some(message) =
                key::stale_number_reply(self.identity.key.as_ref(), known.number, (mobile, number))
            {
                self.outgoing.push_back(Transmit { to: care_of, message });
            }
            return;
        }
        *binding = Some(Binding { care_of, number, expires: now + lifetime });
        self.stats.registrations += 1;
        let message =
            Message { number, body: MessageBody::Reply { mobile, lifetime, kind: RequestKind::Register } };
        let message = key::seal(self.identity.key.as_ref(), message);
        self.outgoing.push_back(Transmit { to: care_of, message });
    }

    /// Returns the next message to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.outgoing.pop_front()
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> &HomeStats {
        &self.stats
    }
}
