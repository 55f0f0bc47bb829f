//! Limit on connections that have not authenticated or sent a request yet.
//!
//! An attacker that opens idle connections must not keep other callers out. When the limit is reached, the oldest connection
//! of the [heaviest](PrefixCounter::heaviest) prefix is closed in favour of the next one. A newcomer therefore always gets in,
//! and an attacker with one prefix, however wide, displaces its own connections. A quarter of the limit is reserved for
//! hosts from which a trusted peer authenticated recently.

use crate::prefix::{Prefix, PrefixCounter};
use core::net::IpAddr;
use std::collections::{BTreeMap, VecDeque};

/// Size of the list of hosts of trusted peers.
const TRUSTED_HOSTS: usize = 256;

/// Relation of a connection's address to peers that have authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressClass {
    /// A trusted peer authenticated from this host recently, and less than a quarter of the limit is taken by such
    /// connections.
    Trusted,
    /// Any other.
    Unknown,
}

/// Connections that have not authenticated or sent a request yet, by number: the lower, the older.
///
/// # Example
///
/// ```
/// use hopline_core::PreAuthLimit;
///
/// let mut limit = PreAuthLimit::new(2);
/// let address = |text: &str| text.parse().expect("an address");
/// let (first, _) = limit.admit(address("192.0.2.1"));
/// limit.admit(address("192.0.2.2"));
/// // The prefix of the two has the most connections: its oldest one is closed for the newcomer.
/// let (_, closed) = limit.admit(address("198.51.100.1"));
/// assert_eq!(closed, Some(first));
/// ```
#[derive(Clone, Debug)]
pub struct PreAuthLimit {
    limit: usize,
    next_number: u64,
    connections: BTreeMap<u64, (IpAddr, AddressClass)>,
    /// Connections from hosts without a trusted peer.
    unknown: PrefixCounter,
    trusted: usize,
    /// Hosts at which a trusted peer has authenticated, the last one last.
    trusted_hosts: VecDeque<Prefix>,
}

impl PreAuthLimit {
    /// Returns a limit of `most` connections, at least one.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            limit: most.max(1),
            next_number: 0,
            connections: BTreeMap::new(),
            unknown: PrefixCounter::default(),
            trusted: 0,
            trusted_hosts: VecDeque::new(),
        }
    }

    /// Returns the number of connections.
    #[must_use]
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Returns whether a connection has to be closed before the next one is added.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.connections.len() >= self.limit
    }

    /// Returns the standing of a new connection from `address`.
    #[must_use]
    pub fn classify(&self, address: IpAddr) -> AddressClass {
        let room = self.trusted < self.limit.div_ceil(4);
        if room && self.trusted_hosts.contains(&Prefix::of_host(address)) {
            AddressClass::Trusted
        } else {
            AddressClass::Unknown
        }
    }

    /// Returns the connection to close when the limit is reached: the oldest of the heaviest prefix.
    #[must_use]
    pub fn eviction_candidate(&self) -> Option<u64> {
        self.unknown.heaviest().next().or_else(|| self.connections.keys().next().copied())
    }

    /// Adds a connection, and returns its number.
    pub fn insert(&mut self, address: IpAddr, standing: AddressClass) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        match standing {
            AddressClass::Trusted => self.trusted += 1,
            AddressClass::Unknown => self.unknown.insert(address, number),
        }
        self.connections.insert(number, (address, standing));
        number
    }

    /// Adds a connection from `address`. Returns its number, and that of the connection to close for it.
    pub fn admit(&mut self, address: IpAddr) -> (u64, Option<u64>) {
        let gone = self.is_full().then(|| self.eviction_candidate()).flatten();
        if let Some(gone) = gone {
            self.remove(gone);
        }
        (self.insert(address, self.classify(address)), gone)
    }

    /// Removes a connection, if it is there.
    pub fn remove(&mut self, number: u64) {
        let Some((address, standing)) = self.connections.remove(&number) else { return };
        match standing {
            AddressClass::Trusted => self.trusted -= 1,
            AddressClass::Unknown => self.unknown.remove(address, number),
        }
    }

    /// Records that a trusted peer is at `address`.
    pub fn trust_host(&mut self, address: IpAddr) {
        let host = Prefix::of_host(address);
        self.trusted_hosts.retain(|known| *known != host);
        self.trusted_hosts.push_back(host);
        if self.trusted_hosts.len() > TRUSTED_HOSTS {
            self.trusted_hosts.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    /// Admits connections from these addresses; returns those to close.
    fn admit(limit: &mut PreAuthLimit, addresses: &[&str]) -> Vec<u64> {
        addresses.iter().filter_map(|address| limit.admit(ip(address)).1).collect()
    }

    #[test]
    fn connections_of_two_addresses_that_fill_the_limit_are_evicted_for_a_third() {
        let mut limit = PreAuthLimit::new(8);
        assert_eq!(admit(&mut limit, &["127.0.0.2"; 4]), [0; 0]);
        assert_eq!(admit(&mut limit, &["127.0.1.3"; 4]), [0; 0]);
        assert_eq!(admit(&mut limit, &["10.0.0.1"]), [0], "the oldest of two equals");
        assert_eq!(admit(&mut limit, &["10.0.0.2"]), [4], "the other one is the heavier now");
        assert_eq!(limit.len(), 8);
    }

    #[test]
    fn a_flood_evicts_its_own_connections_only() {
        let mut limit = PreAuthLimit::new(4);
        admit(&mut limit, &["2001:db8:1::1", "2001:db8:1:1::1", "2001:db8:1:2::1", "10.0.0.1"]);
        let flood: Vec<String> = (0..1000).map(|at| format!("2001:db8:1:{at:x}::1")).collect();
        for address in &flood {
            let (_, gone) = limit.admit(ip(address));
            assert!(gone.is_some_and(|gone| gone != 3), "10.0.0.1 stays");
        }
        assert_eq!(limit.len(), 4);
    }

    #[test]
    fn removed_connections_free_their_slots() {
        let mut limit = PreAuthLimit::new(2);
        let (first, _) = limit.admit(ip("10.0.0.1"));
        admit(&mut limit, &["10.0.0.1"]);
        limit.remove(first);
        limit.remove(first);
        assert_eq!(admit(&mut limit, &["10.0.0.1"]), [0; 0]);
        assert!(limit.is_full() && !limit.is_empty());
    }

    #[test]
    fn a_quarter_is_reserved_for_hosts_of_trusted_peers() {
        let mut limit = PreAuthLimit::new(8);
        limit.trust_host(ip("10.0.0.1"));
        assert_eq!(admit(&mut limit, &["10.0.0.1"; 3]), [0; 0]);
        assert_eq!(limit.classify(ip("10.0.0.1")), AddressClass::Unknown, "a quarter is two");
        let flood: Vec<String> = (1..=100).map(|at| format!("10.{at}.0.1")).collect();
        let gone: Vec<u64> = flood.iter().filter_map(|address| limit.admit(ip(address)).1).collect();
        assert!(!gone.contains(&0) && !gone.contains(&1) && gone.contains(&2));
        limit.remove(0);
        assert_eq!(limit.classify(ip("10.0.0.1")), AddressClass::Trusted);
    }

    #[test]
    fn the_last_256_hosts_are_remembered() {
        let mut limit = PreAuthLimit::new(8);
        for at in 0..=TRUSTED_HOSTS {
            limit.trust_host(ip(&format!("10.0.{}.{}", at / 256, at % 256)));
        }
        assert_eq!(limit.classify(ip("10.0.0.0")), AddressClass::Unknown);
        assert_eq!(limit.classify(ip("10.0.0.1")), AddressClass::Trusted);
    }
}
