//! The visitor list of a base station (RFC 5944 §1.5), shared with the split proxy of the same machine.
//!
//! A host that comes is an arrival, for which the proxy claims connections from other stations. Each host has the number of its last request.
//! Numbers of one host rise from request to request, whichever station a request goes to. So of two stations that both believe to have the
//! host, the one with the higher number is right.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Mobile hosts to which a base station forwards. Clones are of one list.
#[derive(Clone, Default)]
pub struct VisitorList(Arc<Shared>);

#[derive(Default)]
struct Shared {
    list: Mutex<List>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct List {
    visitors: BTreeMap<Ipv4Addr, Visitor>,
    /// Hosts that have come so far.
    arrivals: u64,
    move_policy: MovePolicy,
}

#[derive(Clone, Copy, Debug)]
struct Visitor {
    number: u64,
    arrival: u64,
}

/// Permission of connections to move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MovePolicy {
    /// They follow their hosts. The default.
    #[default]
    Allowed,
    /// They stay, whatever hosts do.
    Suspended,
}

/// Arrival of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// The host.
    pub(crate) host: Ipv4Addr,
    /// Place of the arrival among all.
    pub(crate) arrival: u64,
}

/// Outcome of a claim by another station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimResult {
    /// The host is there, and no visitor here any more.
    Gone,
    /// The host has come back since.
    Returned,
}

impl VisitorList {
    /// Sets whether connections move.
    pub fn set_move_policy(&self, moving: MovePolicy) {
        self.lock().move_policy = moving;
    }

    /// Returns whether connections move.
    pub(crate) fn move_policy(&self) -> MovePolicy {
        self.lock().move_policy
    }

    /// Records that the station forwards to a host, by this request.
    pub(super) fn record_visitor(&self, host: Ipv4Addr, number: u64) {
        let mut list = self.lock();
        let arrival = list.arrivals + 1;
        let visitor = list.visitors.entry(host).or_insert(Visitor { number, arrival });
        visitor.number = visitor.number.max(number);
        if visitor.arrival == arrival {
            list.arrivals = arrival;
            self.0.changed.notify_all();
        }
    }

    /// Records that the station does not forward to a host.
    pub(super) fn remove_visitor(&self, host: Ipv4Addr) {
        self.lock().visitors.remove(&host);
    }

    /// Records that there is no station any more.
    pub(super) fn clear(&self) {
        self.lock().visitors.clear();
    }

    /// Takes notice that another station claims a host, to which the host's request of this number went.
    pub(crate) fn handle_claim(&self, host: Ipv4Addr, number: u64) -> ClaimResult {
        let mut list = self.lock();
        if list.visitors.get(&host).is_some_and(|visitor| visitor.number > number) {
            return ClaimResult::Returned;
        }
        list.visitors.remove(&host);
        ClaimResult::Gone
    }

    /// Records that the host of an arrival has gone on, as another station answers to a claim by the request `number`. A host that
    /// has sent a later request since is here.
    pub(crate) fn record_departure(&self, Arrival { host, arrival }: Arrival, number: u64) {
        let mut list = self.lock();
        let is_asked = |visitor: &Visitor| visitor.arrival == arrival && visitor.number == number;
        if list.visitors.get(&host).is_some_and(is_asked) {
            list.visitors.remove(&host);
        }
    }

    /// Returns the number of the last request of a host that has not gone since that arrival.
    pub(crate) fn request_number(&self, Arrival { host, arrival }: Arrival) -> Option<u64> {
        self.lock().visitors.get(&host).filter(|visitor| visitor.arrival == arrival).map(|v| v.number)
    }

    /// Returns the arrivals after the first `seen` ones, of hosts that are still here, and how many there were in all.
    pub(crate) fn arrivals(&self, seen: u64) -> (Vec<Arrival>, u64) {
        let list = self.lock();
        let new = list.visitors.iter().filter(|(_, visitor)| visitor.arrival > seen);
        (new.map(|(&host, visitor)| Arrival { host, arrival: visitor.arrival }).collect(), list.arrivals)
    }

    /// Waits for an arrival after the first `seen` ones, for `longest`, or until [`VisitorList::wake`] while `is_over` is true.
    pub(crate) fn wait(&self, seen: u64, longest: Duration, is_over: impl Fn() -> bool) {
        let waits = |list: &mut List| list.arrivals == seen && !is_over();
        let _ = self.0.changed.wait_timeout_while(self.lock(), longest, waits);
    }

    /// Has all that wait look at whether it is over.
    pub(crate) fn wake(&self) {
        let _list = self.lock();
        self.0.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.0.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Two are equal if they are one list.
impl PartialEq for VisitorList {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for VisitorList {}

impl fmt::Debug for VisitorList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock().visitors.fmt(f)
    }
}

/// The list as the station writes it. Without the station it is empty.
#[derive(Debug)]
pub(super) struct VisitorListWriter(pub(super) VisitorList);

impl Drop for VisitorListWriter {
    fn drop(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 7);
    const OTHER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 8);

    #[test]
    fn repeated_requests_of_a_host_are_one_arrival_until_it_leaves() {
        let list = VisitorList::default();
        list.record_visitor(HOST, 5);
        list.record_visitor(HOST, 6);
        list.record_visitor(OTHER, 1);
        let (new, seen) = list.arrivals(0);
        assert_eq!((new.len(), seen), (2, 2));
        assert_eq!(list.request_number(new[0]), Some(6));
        list.remove_visitor(HOST);
        assert_eq!((list.request_number(new[0]), list.arrivals(seen).0.len()), (None, 0));
        list.record_visitor(HOST, 7);
        let (again, seen) = list.arrivals(seen);
        assert_eq!((again.len(), seen), (1, 3));
        assert_eq!(
            (list.request_number(new[0]), list.request_number(again[0])),
            (None, Some(7)),
            "it is another arrival"
        );
    }

    #[test]
    fn a_claim_with_an_older_request_comes_from_a_station_that_the_host_has_left() {
        let list = VisitorList::default();
        list.record_visitor(HOST, 5);
        assert_eq!(list.handle_claim(HOST, 4), ClaimResult::Returned);
        assert_eq!(list.arrivals(0).0.len(), 1);
        assert_eq!(list.handle_claim(HOST, 6), ClaimResult::Gone);
        assert_eq!(list.arrivals(0).0.len(), 0);
        assert_eq!(list.handle_claim(HOST, 1), ClaimResult::Gone, "it was not here");
        // A request that was late is an arrival, which the station that has the host does not take for one.
        list.record_visitor(HOST, 5);
        assert_eq!(list.arrivals(1).0.len(), 1);
    }

    #[test]
    fn a_departed_host_is_no_visitor_until_it_returns() {
        let list = VisitorList::default();
        list.record_visitor(HOST, 5);
        let first = list.arrivals(0).0[0];
        list.remove_visitor(HOST);
        list.record_visitor(HOST, 9);
        list.record_departure(first, 5);
        assert_eq!(list.arrivals(1).0.len(), 1);
        list.record_departure(list.arrivals(1).0[0], 9);
        assert_eq!(list.arrivals(0).0.len(), 0);
    }

    #[test]
    fn a_host_that_returns_during_a_claim_stays_a_visitor() {
        let list = VisitorList::default();
        list.record_visitor(HOST, 5);
        let arrival = list.arrivals(0).0[0];
        // It has been at the other station (6), and is back.
        list.record_visitor(HOST, 7);
        list.record_departure(arrival, 5);
        assert_eq!(list.request_number(arrival), Some(7));
    }

    #[test]
    fn an_arrival_or_the_end_ends_a_wait() {
        let list = VisitorList::default();
        std::thread::scope(|scope| {
            scope.spawn(|| list.wait(0, Duration::from_secs(60), || false));
            list.record_visitor(HOST, 1);
        });
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let over = &over;
            scope.spawn(|| {
                list.wait(1, Duration::from_secs(60), || over.load(std::sync::atomic::Ordering::SeqCst))
            });
            over.store(true, std::sync::atomic::Ordering::SeqCst);
            list.wake();
        });
    }

    #[test]
    fn without_its_station_the_list_is_empty() {
        let list = VisitorList::default();
        let written = VisitorListWriter(list.clone());
        written.0.record_visitor(HOST, 1);
        drop(written);
        assert_eq!(list.arrivals(0), (vec![], 1));
    }
}
