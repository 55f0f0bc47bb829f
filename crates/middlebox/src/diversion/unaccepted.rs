//! Connections that were diverted to a listener and that it has not accepted yet.
//!
//! The kernel answers each SYN and keeps the connection in the listener's queue until the handshake is complete. A client
//! that never completes it, for instance one with a forged address, occupies its place for 7 s. While the queue is full,
//! the kernel answers with SYN cookies. The ACK with a cookie does not reach a listener of diverted connections, so that
//! new connections would hang. The queue is therefore never filled: each network prefix has a share of its free places.
//! prefix has a share of what is free of it.

use crate::endpoints::{FlowEndpoints, source};
use hopline_core::PrefixCounter;
use hopline_linux::Error;
use hopline_linux::transparent::TransparentListener;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum wait for a client's answer to the SYN-ACK: the 7 s of [`TransparentListener`], and one second for the kernel's
/// timers. A slower client is diverted again with its next SYN.
pub(crate) const SYN_ACK_TIMEOUT: Duration = Duration::from_secs(8);

/// Connections that were diverted to listeners and not accepted yet. Clones share the state.
#[derive(Clone, Debug)]
pub struct Unaccepted(Arc<Mutex<PendingTable>>);

impl Unaccepted {
    /// Creates the state for the queues of these listeners.
    pub(crate) fn of<'a>(
        listeners: impl IntoIterator<Item = &'a TransparentListener>,
    ) -> Result<Self, Error> {
        let lengths = listeners.into_iter().map(TransparentListener::queue_length);
        let lengths: Vec<usize> = lengths.collect::<Result<_, _>>()?;
        let shortest = lengths.into_iter().min().unwrap_or(0);
        // A quarter is reserved for connections that no rule diverts, and for differences between this count and the
        // kernel's.
        Ok(Self(Arc::new(Mutex::new(PendingTable::new(shortest - shortest / 4)))))
    }

    /// Returns whether a new connection of `client` may be diverted to the listener.
    pub(crate) fn has_room(&self, now: Instant, client: IpAddr) -> bool {
        let mut table = self.table();
        table.expire(now);
        table.has_room(client)
    }

    /// Records a SYN that is to be diverted. Returns whether it may be: there is room for its connection, or it is a
    /// retransmission.
    pub(crate) fn enter(&self, now: Instant, syn: &[u8]) -> bool {
        source(syn).is_some_and(|client| self.table().enter(now, client, FlowEndpoints::of(syn)))
    }

    /// Records that the listener has accepted a connection.
    pub(crate) fn accepted(&self, ends: FlowEndpoints) {
        self.table().accepted(ends);
    }

    fn table(&self) -> MutexGuard<'_, PendingTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connections by number, in ascending order of time.
#[derive(Debug)]
struct PendingTable {
    max: usize,
    next: u64,
    by_number: BTreeMap<u64, Pending>,
    by_ends: BTreeMap<FlowEndpoints, u64>,
    by_prefix: PrefixCounter,
}

#[derive(Debug)]
struct Pending {
    client: IpAddr,
    /// `None` if there are IPv6 extension headers.
    ends: Option<FlowEndpoints>,
    until: Instant,
}

impl PendingTable {
    fn new(most: usize) -> Self {
        Self {
            max: most.max(1),
            next: 0,
            by_number: BTreeMap::new(),
            by_ends: BTreeMap::new(),
            by_prefix: PrefixCounter::default(),
        }
    }

    /// Returns whether a new connection of `client` is within its shares. The widest prefix (/24, /48) may have as many
    /// as are free, which is at most half. One host (an address, a /64) may have half as many, which is a third. A host
    /// without connections is admitted as long as a quarter is free, so that a flood with its neighbours' addresses
    /// leaves room for it.
    fn has_room(&self, client: IpAddr) -> bool {
        let free = self.max.saturating_sub(self.by_number.len());
        let [wide, _, host] = self.by_prefix.counts(client);
        (wide < free && host < free.div_ceil(2)) || (host == 0 && free > self.max / 4)
    }

    fn enter(&mut self, now: Instant, client: IpAddr, ends: Option<FlowEndpoints>) -> bool {
        self.expire(now);
        // The kernel answers a retransmitted SYN and restarts its timer.
        let repeated = ends.and_then(|ends| self.by_ends.get(&ends).copied());
        if let Some(repeated) = repeated {
            self.remove(repeated);
        } else if !self.has_room(client) {
            return false;
        }
        let number = self.next;
        self.next += 1;
        self.by_number.insert(number, Pending { client, ends, until: now + SYN_ACK_TIMEOUT });
        self.by_prefix.insert(client, number);
        if let Some(ends) = ends {
            self.by_ends.insert(ends, number);
        }
        true
    }

    fn accepted(&mut self, ends: FlowEndpoints) {
        if let Some(number) = self.by_ends.get(&ends).copied() {
            self.remove(number);
        }
    }

    /// Removes connections that the kernel has given up.
    fn expire(&mut self, now: Instant) {
        while let Some((&number, call)) = self.by_number.first_key_value()
            && call.until <= now
        {
            self.remove(number);
        }
    }

    fn remove(&mut self, number: u64) {
        let Some(call) = self.by_number.remove(&number) else { return };
        self.by_prefix.remove(call.client, number);
        if let Some(ends) = call.ends {
            self.by_ends.remove(&ends);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    #[expect(clippy::disallowed_methods, reason = "any instant will do")]
    fn start() -> Instant {
        Instant::now()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn ends(client: IpAddr, port: u16) -> FlowEndpoints {
        FlowEndpoints::new(SocketAddr::new(client, port), "10.8.0.1:80".parse().unwrap())
    }

    /// Sends `number` SYNs from each of these addresses in turn. Returns the number of diverted ones.
    fn flood(table: &mut PendingTable, now: Instant, addresses: &[String], number: u16) -> usize {
        let calls = (0..number).flat_map(|port| addresses.iter().map(move |address| (ip(address), port)));
        calls.filter(|&(client, port)| table.enter(now, client, Some(ends(client, port)))).count()
    }

    #[test]
    fn a_host_is_limited_to_a_third_and_a_network_to_half() {
        let (now, host) = (start(), ["10.9.0.1".into()]);
        assert_eq!(flood(&mut PendingTable::new(96), now, &host, 200), 32);
        let site: Vec<String> = (0..4).map(|at| format!("2001:db8:1:{at}::1")).collect();
        assert_eq!(flood(&mut PendingTable::new(96), now, &site, 200), 48);
    }

    #[test]
    fn a_flood_from_neighbours_leaves_room_for_hosts_without_a_connection() {
        let (mut table, now) = (PendingTable::new(3072), start());
        let neighbours: Vec<String> = (0..200).map(|at| format!("10.9.0.{at}")).collect();
        let sent = flood(&mut table, now, &neighbours, 100);
        assert_eq!(sent, 1536);
        for honest in ["10.9.0.250", "10.9.1.1", "2001:db8::1"] {
            assert!(table.enter(now, ip(honest), Some(ends(ip(honest), 1))), "{honest}");
        }
        assert!(!table.has_room(ip("10.9.0.7")));
    }

    #[test]
    fn a_flood_from_all_networks_is_bounded_by_the_limit() {
        let (mut table, now) = (PendingTable::new(64), start());
        let all: Vec<String> = (0..200).map(|at| format!("10.{at}.0.1")).collect();
        assert_eq!(flood(&mut table, now, &all, 1), 64);
        assert_eq!((table.by_number.len(), table.has_room(ip("192.0.2.1"))), (64, false));
    }

    #[test]
    fn accepted_and_expired_connections_free_their_slots() {
        let (mut table, now) = (PendingTable::new(96), start());
        let host = ip("10.9.0.1");
        flood(&mut table, now, &["10.9.0.1".into()], 200);
        assert!(!table.enter(now, host, Some(ends(host, 500))));
        table.accepted(ends(host, 3));
        table.accepted(ends(host, 3));
        assert!(table.enter(now, host, Some(ends(host, 500))) && !table.has_room(host));
        table.expire(now + SYN_ACK_TIMEOUT);
        assert!(table.by_number.is_empty() && table.by_ends.is_empty());
        assert_eq!(table.by_prefix.counts(host), [0; 3]);
    }

    #[test]
    fn a_retransmitted_syn_takes_no_second_slot_and_restarts_the_timeout() {
        let (mut table, now) = (PendingTable::new(3), start());
        let host = ip("10.9.0.1");
        let later = now + SYN_ACK_TIMEOUT / 2;
        assert!(table.enter(now, host, Some(ends(host, 1))) && table.enter(later, host, Some(ends(host, 1))));
        assert_eq!(table.by_number.len(), 1);
        table.expire(now + SYN_ACK_TIMEOUT);
        assert_eq!(table.by_number.len(), 1, "the kernel waits for it from its last SYN on");
    }

    #[test]
    fn connections_without_readable_ports_count_for_their_address() {
        let (mut table, now) = (PendingTable::new(96), start());
        let client = ip("2001:db8::1");
        assert_eq!((0..200).filter(|_| table.enter(now, client, None)).count(), 32);
    }
}
