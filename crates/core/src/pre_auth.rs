//! Limit on connections that have not authenticated or sent a request yet.
//!
//! An attacker that opens idle connections must not keep other callers out. When the limit is reached, the oldest connection
//! of the [heaviest](ByPrefix::heaviest) prefix is closed in favour of the next one. A newcomer therefore always gets in,
//! and an attacker with one prefix, however wide, displaces its own connections. A quarter of the limit is reserved for
//! hosts from which a trusted peer authenticated recently.

use crate::prefix::{ByPrefix, Prefix};
use core::net::IpAddr;
use std::collections::{BTreeMap, VecDeque};

/// Size of the list of hosts of trusted peers.
const FAMILIAR_HOSTS: usize = 256;

/// Relation of a connection's address to peers that have authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A trusted peer authenticated from this host recently, and less than a quarter of the limit is taken by such
    /// connections.
    Familiar,
    /// Any other.
    Stranger,
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
    most: usize,
    next: u64,
    all: BTreeMap<u64, (IpAddr, Standing)>,
    /// Connections from hosts without a trusted peer.
    may_go: ByPrefix,
    familiar: usize,
    /// Hosts at which a trusted peer has authenticated, the last one last.
    hosts: VecDeque<Prefix>,
}

impl PreAuthLimit {
    /// Returns a limit of `most` connections, at least one.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            next: 0,
            all: BTreeMap::new(),
            may_go: ByPrefix::default(),
            familiar: 0,
            hosts: VecDeque::new(),
        }
    }

    /// Returns the number of connections.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns whether a connection has to be closed before the next one is added.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.all.len() >= self.most
    }

    /// Returns the standing of a new connection from `address`.
    #[must_use]
    pub fn standing(&self, address: IpAddr) -> Standing {
        let room = self.familiar < self.most.div_ceil(4);
        if room && self.hosts.contains(&Prefix::of_host(address)) {
            Standing::Familiar
        } else {
            Standing::Stranger
        }
    }

    /// Returns the connection to close when the limit is reached: the oldest of the heaviest prefix.
    #[must_use]
    pub fn first_to_go(&self) -> Option<u64> {
        self.may_go.heaviest().next().or_else(|| self.all.keys().next().copied())
    }

    /// Adds a connection, and returns its number.
    pub fn insert(&mut self, address: IpAddr, standing: Standing) -> u64 {
        let number = self.next;
        self.next += 1;
        match standing {
            Standing::Familiar => self.familiar += 1,
            Standing::Stranger => self.may_go.insert(address, number),
        }
        self.all.insert(number, (address, standing));
        number
    }

    /// Adds a connection from `address`. Returns its number, and that of the connection to close for it.
    pub fn admit(&mut self, address: IpAddr) -> (u64, Option<u64>) {
        let gone = self.is_full().then(|| self.first_to_go()).flatten();
        if let Some(gone) = gone {
            self.remove(gone);
        }
        (self.insert(address, self.standing(address)), gone)
    }

    /// Removes a connection, if it is there.
    pub fn remove(&mut self, number: u64) {
        let Some((address, standing)) = self.all.remove(&number) else { return };
        match standing {
            Standing::Familiar => self.familiar -= 1,
            Standing::Stranger => self.may_go.remove(address, number),
        }
    }

    /// Records that a trusted peer is at `address`.
    pub fn remember(&mut self, address: IpAddr) {
        let host = Prefix::of_host(address);
        self.hosts.retain(|known| *known != host);
        self.hosts.push_back(host);
        if self.hosts.len() > FAMILIAR_HOSTS {
            self.hosts.pop_front();
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
    fn two_addresses_that_fill_it_give_way_to_a_third() {
        let mut limit = PreAuthLimit::new(8);
        assert_eq!(admit(&mut limit, &["127.0.0.2"; 4]), [0; 0]);
        assert_eq!(admit(&mut limit, &["127.0.1.3"; 4]), [0; 0]);
        assert_eq!(admit(&mut limit, &["10.0.0.1"]), [0], "the oldest of two equals");
        assert_eq!(admit(&mut limit, &["10.0.0.2"]), [4], "the other one is the heavier now");
        assert_eq!(limit.len(), 8);
    }

    #[test]
    fn a_flood_replaces_its_own_and_a_light_newcomer_stays() {
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
    fn what_has_left_gives_room() {
        let mut limit = PreAuthLimit::new(2);
        let (first, _) = limit.admit(ip("10.0.0.1"));
        admit(&mut limit, &["10.0.0.1"]);
        limit.remove(first);
        limit.remove(first);
        assert_eq!(admit(&mut limit, &["10.0.0.1"]), [0; 0]);
        assert!(limit.is_full() && !limit.is_empty());
    }

    #[test]
    fn a_quarter_is_kept_for_hosts_of_trusted_peers() {
        let mut limit = PreAuthLimit::new(8);
        limit.remember(ip("10.0.0.1"));
        assert_eq!(admit(&mut limit, &["10.0.0.1"; 3]), [0; 0]);
        assert_eq!(limit.standing(ip("10.0.0.1")), Standing::Stranger, "a quarter is two");
        let flood: Vec<String> = (1..=100).map(|at| format!("10.{at}.0.1")).collect();
        let gone: Vec<u64> = flood.iter().filter_map(|address| limit.admit(ip(address)).1).collect();
        assert!(!gone.contains(&0) && !gone.contains(&1) && gone.contains(&2));
        limit.remove(0);
        assert_eq!(limit.standing(ip("10.0.0.1")), Standing::Familiar);
    }

    #[test]
    fn the_last_256_hosts_are_remembered() {
        let mut limit = PreAuthLimit::new(8);
        for at in 0..=FAMILIAR_HOSTS {
            limit.remember(ip(&format!("10.0.{}.{}", at / 256, at % 256)));
        }
        assert_eq!(limit.standing(ip("10.0.0.0")), Standing::Stranger);
        assert_eq!(limit.standing(ip("10.0.0.1")), Standing::Familiar);
    }
}
