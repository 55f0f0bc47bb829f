//! Calls with a SYN that is held while the server is called, and calls with a released SYN that have not been accepted yet.

use crate::endpoints::FlowEndpoints;
use hopline_core::Prefix;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// A bounded table of calls. `S`: a SYN that is held. `O`: the onward connection.
///
/// A new call that finds the table full takes the place of the oldest one. A client network has half of the places at most. Servers that
/// answer do so within a round trip; calls to servers that do not are the oldest, and a flood of them replaces itself.
#[derive(Debug)]
pub(super) struct PendingConnections<S, O> {
    max: usize,
    /// Number of the next call: calls are numbered by age.
    next: u64,
    by_number: BTreeMap<u64, Pending<S, O>>,
    by_ends: BTreeMap<FlowEndpoints, u64>,
    by_network: BTreeMap<Prefix, BTreeSet<u64>>,
    by_due: BTreeSet<(Instant, u64)>,
}

#[derive(Debug)]
struct Pending<S, O> {
    ends: FlowEndpoints,
    deadline: Instant,
    /// `None`: it was let go.
    syn: Option<S>,
    onward: O,
}

/// A call that left the table before it was accepted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Removed<S, O> {
    pub(super) syn: Option<S>,
    pub(super) onward: O,
}

/// State of a call when a SYN for it comes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SynState<S> {
    /// Nothing: the server is to be called.
    New(S),
    /// The server has not answered. This older SYN is not needed any more.
    Connecting(S),
    /// The server has answered: the SYN passes.
    Released(S),
}

impl<S, O> PendingConnections<S, O> {
    /// A table with this many places, at least one.
    pub(super) fn new(most: usize) -> Self {
        Self {
            max: most.max(1),
            next: 0,
            by_number: BTreeMap::new(),
            by_ends: BTreeMap::new(),
            by_network: BTreeMap::new(),
            by_due: BTreeSet::new(),
        }
    }

    /// Takes a SYN. The latest one of a call is held: its timestamp gives the client the best sample of the round-trip time
    /// (RFC 7323 §4.2), and its sequence number is right where the client has begun anew.
    pub(super) fn handle_syn(&mut self, ends: FlowEndpoints, syn: S) -> SynState<S> {
        let call = self.by_ends.get(&ends).and_then(|number| self.by_number.get_mut(number));
        match call {
            None => SynState::New(syn),
            Some(call) => match &mut call.syn {
                Some(held) => SynState::Connecting(std::mem::replace(held, syn)),
                None => SynState::Released(syn),
            },
        }
    }

    /// Adds a new call, which is given up at `due`. Returns its number, and the call that it replaces, if any.
    pub(super) fn insert(
        &mut self,
        ends: FlowEndpoints,
        syn: S,
        onward: O,
        due: Instant,
    ) -> (u64, Option<Removed<S, O>>) {
        let network = network(ends);
        let of_network = self.by_network.get(&network);
        let oldest = if of_network.is_some_and(|calls| calls.len() >= self.max.div_ceil(2)) {
            of_network.and_then(BTreeSet::first)
        } else if self.by_number.len() >= self.max {
            self.by_number.keys().next()
        } else {
            None
        };
        let replaced = oldest.copied().and_then(|number| self.remove(number));
        let number = self.next;
        self.next += 1;
        self.by_number.insert(number, Pending { ends, deadline: due, syn: Some(syn), onward });
        self.by_ends.insert(ends, number);
        self.by_network.entry(network).or_default().insert(number);
        self.by_due.insert((due, number));
        (number, replaced)
    }

    /// Notes that the server has answered; returns the SYN, which is to pass. The call is given up if it is not accepted until `due`.
    pub(super) fn release(&mut self, number: u64, due: Instant) -> Option<S> {
        let call = self.by_number.get_mut(&number)?;
        self.by_due.remove(&(call.deadline, number));
        self.by_due.insert((due, number));
        call.deadline = due;
        call.syn.take()
    }

    /// The onward connection of a call that was accepted.
    pub(super) fn take_accepted(&mut self, ends: FlowEndpoints) -> Option<O> {
        let number = *self.by_ends.get(&ends)?;
        // An earlier SYN that had passed unheld is accepted: the server has not answered this one.
        self.by_number.get(&number).filter(|call| call.syn.is_none())?;
        self.remove(number).map(|call| call.onward)
    }

    pub(super) fn onward(&self, number: u64) -> Option<&O> {
        self.by_number.get(&number).map(|call| &call.onward)
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Removed<S, O>> {
        let Pending { ends, deadline: due, syn, onward } = self.by_number.remove(&number)?;
        self.by_ends.remove(&ends);
        if let Some(of_network) = self.by_network.get_mut(&network(ends)) {
            of_network.remove(&number);
            if of_network.is_empty() {
                self.by_network.remove(&network(ends));
            }
        }
        self.by_due.remove(&(due, number));
        Some(Removed { syn, onward })
    }

    /// Returns the time at which the next call is given up.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.by_due.first().map(|(due, _)| *due)
    }

    /// A call that is to be given up now.
    pub(super) fn pop_expired(&mut self, now: Instant) -> Option<Removed<S, O>> {
        let &(due, number) = self.by_due.first()?;
        (due <= now).then(|| self.remove(number)).flatten()
    }

    /// Removes all calls; returns their number.
    pub(super) fn clear(&mut self) -> usize {
        let left = self.len();
        *self = Self { next: self.next, ..Self::new(self.max) };
        left
    }

    pub(super) fn len(&self) -> usize {
        self.by_number.len()
    }
}

fn network(ends: FlowEndpoints) -> Prefix {
    Prefix::of_host(ends.client().ip())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;
    use std::time::Duration;

    #[expect(clippy::disallowed_methods, reason = "any instant will do")]
    fn start() -> Instant {
        Instant::now()
    }

    fn ends(client: &str, port: u16) -> FlowEndpoints {
        FlowEndpoints::new(SocketAddr::new(client.parse().unwrap(), port), "10.8.0.1:80".parse().unwrap())
    }

    /// Calls from this address take places in their order; returns what was replaced.
    fn flood(
        held: &mut PendingConnections<u16, u16>,
        client: &str,
        ports: std::ops::Range<u16>,
        due: Instant,
    ) -> Vec<u16> {
        let replaced = ports.filter_map(|port| held.insert(ends(client, port), port, port, due).1);
        replaced.map(|removed| removed.onward).collect()
    }

    #[test]
    fn the_latest_repeated_syn_is_held_and_released_when_the_server_answers() {
        let (mut held, due) = (PendingConnections::new(4), start());
        let call = ends("10.9.0.1", 1);
        assert_eq!(held.handle_syn(call, 'a'), SynState::New('a'));
        let (number, _) = held.insert(call, 'a', "onward", due);
        assert_eq!(held.handle_syn(call, 'b'), SynState::Connecting('a'));
        assert_eq!(held.take_accepted(call), None, "nothing has passed");
        assert_eq!(held.release(number, due), Some('b'));
        assert_eq!(held.handle_syn(call, 'c'), SynState::Released('c'));
        assert_eq!(held.take_accepted(call), Some("onward"));
        assert_eq!((held.take_accepted(call), held.len(), held.next_deadline()), (None, 0, None));
        assert_eq!(held.handle_syn(call, 'd'), SynState::New('d'));
    }

    #[test]
    fn a_flood_from_one_network_replaces_its_own_oldest_and_leaves_half_to_others() {
        let (mut held, due) = (PendingConnections::new(8), start());
        assert_eq!(flood(&mut held, "10.9.0.1", 0..7, due), [0, 1, 2]);
        assert_eq!(flood(&mut held, "10.9.0.2", 100..104, due), [0u16; 0]);
        assert_eq!(held.len(), 8);
        // All places are taken: the oldest of all goes.
        assert_eq!(flood(&mut held, "10.9.0.3", 200..201, due), [3]);
        assert_eq!(flood(&mut held, "2001:db8::1", 300..301, due), [4]);
        assert_eq!(
            flood(&mut held, "2001:db8::2", 400..404, due),
            [5, 6, 100, 300],
            "a network of IPv6 is one client"
        );
        assert_eq!(held.len(), 8);
    }

    #[test]
    fn pending_connections_expire_before_and_after_their_release() {
        let (mut held, now) = (PendingConnections::new(8), start());
        let at = |seconds| now + Duration::from_secs(seconds);
        let (first, _) = held.insert(ends("10.9.0.1", 1), 1, 1, at(3));
        held.insert(ends("10.9.0.1", 2), 2, 2, at(5));
        assert_eq!(held.release(first, at(9)), Some(1));
        assert_eq!((held.next_deadline(), held.pop_expired(at(4))), (Some(at(5)), None));
        assert_eq!(held.pop_expired(at(5)), Some(Removed { syn: Some(2), onward: 2 }));
        assert_eq!(held.pop_expired(at(8)), None);
        assert_eq!(held.pop_expired(at(9)), Some(Removed { syn: None, onward: 1 }));
        assert_eq!((held.release(first, at(9)), held.len()), (None, 0));
    }
}
