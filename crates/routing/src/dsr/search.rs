//! Searches of this node for routes (the initiator's half of the route request table, RFC 4728 §4.3).

use super::config::{Config, NeighbourQueries};
use crate::address_map::AddressMap;
use hopline_core::{Duration, Instant};
use hopline_wire::dsr::Addresses;
use std::net::Ipv4Addr;

/// Time to live of a flooded request: DiscoveryHopLimit (§9).
const DISCOVERY_HOP_LIMIT: u8 = 255;

/// Searches by destination.
#[derive(Clone, Debug)]
pub(super) struct Searches(AddressMap<Search>);

/// State of the search for a destination.
#[derive(Clone, Debug)]
pub(super) struct Search {
    pub(super) phase: Phase,
    pub(super) reachability: Reachability,
    /// While waiting: time of the next request. Otherwise: earliest time of a request.
    deadline: Instant,
    /// Unanswered requests since the search began.
    requests: u8,
    /// Latest interval of a flooded request, if no reply arrived since.
    period: Option<Duration>,
    /// Time of the latest request, if it went to neighbours alone.
    neighbours_since: Option<Instant>,
    /// Without a route cache: the path found last, to recognise a route error about one of its links.
    pub(super) last_path: Addresses,
}

/// State of a search: whether packets wait for a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    Waiting,
}

/// Reachability of a destination, as reported to this node as a source of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reachability {
    /// This node sends nothing there.
    Unused,
    /// No report yet.
    Unknown,
    Found,
    Lost,
}

/// Result of asking for a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchStart {
    /// A request is due.
    Due,
    /// A request is outstanding, or must not be sent yet.
    Waiting,
    /// There is no room for the search.
    Refused,
}

/// Next step of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextAttempt {
    Request {
        ttl: u8,
    },
    /// Drop one waiting packet, which has exceeded its waiting time.
    DropOne,
    GiveUp,
}

impl Searches {
    pub(super) fn new(limit: u32) -> Self {
        Self(AddressMap::new(limit))
    }

    pub(super) fn get(&self, destination: Ipv4Addr) -> Option<&Search> {
        self.0.get(destination)
    }

    pub(super) fn get_mut(&mut self, destination: Ipv4Addr) -> Option<&mut Search> {
        self.0.get_mut(destination)
    }

    /// Returns the entry of `destination`, and creates it if there is room.
    pub(super) fn entry(&mut self, now: Instant, destination: Ipv4Addr) -> Option<&mut Search> {
        if self.0.get(destination).is_none() {
            self.evict_oldest();
            self.0.insert_new(destination, Search::new(now));
        }
        self.0.get_mut(destination)
    }

    pub(super) fn start(&mut self, now: Instant, destination: Ipv4Addr) -> SearchStart {
        let Some(search) = self.entry(now, destination) else { return SearchStart::Refused };
        match search.phase {
            Phase::Waiting => SearchStart::Waiting,
            Phase::Idle => {
                search.phase = Phase::Waiting;
                if search.deadline > now { SearchStart::Waiting } else { SearchStart::Due }
            }
        }
    }

    /// Returns a destination for which the next request is due.
    pub(super) fn due(&self, now: Instant) -> Option<Ipv4Addr> {
        self.0
            .iter()
            .find(|(_, s)| s.phase == Phase::Waiting && s.deadline <= now)
            .map(|(address, _)| address)
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.0.iter().filter(|(_, s)| s.phase == Phase::Waiting).map(|(_, s)| s.deadline).min()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (Ipv4Addr, &mut Search)> {
        self.0.iter_mut()
    }

    pub(super) fn len(&self) -> usize {
        self.0.iter().count()
    }

    /// Makes room in a full table: forgets the destination searched for longest ago, of those that no packet waits for.
    fn evict_oldest(&mut self) {
        if !self.0.is_full() {
            return;
        }
        let idle = self.0.iter().filter(|(_, search)| search.phase == Phase::Idle);
        if let Some((oldest, _)) = idle.min_by_key(|(_, search)| search.deadline) {
            self.0.retain(|address, _| address != oldest);
        }
    }
}

impl Search {
    fn new(now: Instant) -> Self {
        Self {
            phase: Phase::Idle,
            reachability: Reachability::Unused,
            deadline: now,
            requests: 0,
            period: None,
            neighbours_since: None,
            last_path: Addresses::new(),
        }
    }

    /// Returns whether a route to the destination is to be reported or used.
    pub(super) fn is_wanted(&self) -> bool {
        self.phase == Phase::Waiting || self.reachability == Reachability::Lost
    }

    /// Returns whether a request was flooded already.
    pub(super) const fn was_flooded(&self) -> bool {
        self.period.is_some()
    }

    /// Returns the next attempt, for a request that leaves at `now` (§8.2.1): neighbours first, then floods at growing
    /// intervals.
    pub(super) fn attempt(&mut self, now: Instant, config: &Config) -> NextAttempt {
        if self.requests >= config.max_request_retries.get() {
            return NextAttempt::GiveUp;
        }
        self.requests += 1;
        if let Some(wait) = config.neighbour_query_timeout
            && self.queries_neighbours(config.neighbour_queries)
        {
            self.neighbours_since = Some(now);
            self.deadline = now + wait;
            return NextAttempt::Request { ttl: 1 };
        }
        let period = self.next_period(config);
        let since = match config.neighbour_queries {
            NeighbourQueries::Once => now,
            NeighbourQueries::EachTime => self.neighbours_since.unwrap_or(now),
        };
        self.period = Some(period);
        self.neighbours_since = None;
        self.deadline = (since + period).max(now);
        NextAttempt::Request { ttl: DISCOVERY_HOP_LIMIT }
    }

    /// Returns the next attempt if only packets of other nodes wait that this node could not forward: neighbours are asked
    /// once.
    pub(super) fn attempt_for_forwarded(&mut self, now: Instant, config: &Config) -> NextAttempt {
        let asked = self.requests > 0;
        let period = self.next_period(config);
        self.requests = self.requests.saturating_add(1);
        self.period = Some(period);
        self.deadline = now + period;
        self.neighbours_since = (!asked).then_some(now);
        if asked { NextAttempt::DropOne } else { NextAttempt::Request { ttl: 1 } }
    }

    /// Allows a flooded request as soon as neighbours had time to reply.
    pub(super) fn shorten_neighbour_query(&mut self, config: &Config) {
        if let (Some(since), Some(wait)) = (self.neighbours_since, config.neighbour_query_timeout) {
            self.deadline = self.deadline.min(since + wait);
        }
    }

    fn next_period(&self, config: &Config) -> Duration {
        let next = |period: Duration| period.saturating_mul(config.request_backoff.get().into());
        self.period.map_or(config.request_period, next).min(config.max_request_period)
    }

    fn queries_neighbours(&self, asked: NeighbourQueries) -> bool {
        match asked {
            NeighbourQueries::Once => self.requests == 1 && self.period.is_none(),
            NeighbourQueries::EachTime => self.neighbours_since.is_none(),
        }
    }

    /// Ends the search with success.
    pub(super) fn on_success(&mut self, now: Instant) {
        *self = Self {
            reachability: self.reachability,
            last_path: core::mem::take(&mut self.last_path),
            ..Self::new(now)
        };
    }

    /// Ends the wait of the search, as no packet waits any more. The intervals continue (§8.2).
    pub(super) fn pause(&mut self) {
        self.phase = Phase::Idle;
    }

    /// Ends the wait of the search without a reply. The intervals continue.
    pub(super) fn on_failure(&mut self) {
        self.phase = Phase::Idle;
        self.requests = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const C: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn intervals_grow_to_a_bound_and_restart_after_a_reply() {
        let config = Config::rfc4728();
        let mut search = Search::new(at(0));
        let mut waits = Vec::new();
        let mut ttls = Vec::new();
        while let NextAttempt::Request { ttl } = search.attempt(at(0), &config) {
            waits.push(search.deadline.since(at(0)).as_millis());
            ttls.push(ttl);
        }
        assert_eq!(waits[..7], [30, 500, 1000, 2000, 4000, 8000, 10_000]);
        assert_eq!((waits.len(), waits[15]), (16, 10_000));
        assert_eq!(ttls[..3], [1, 255, 255]);
        search.on_failure();
        assert_eq!(search.attempt(at(0), &config), NextAttempt::Request { ttl: 255 });
        assert_eq!(search.deadline, at(10_000), "a failure does not shorten the interval");
        search.on_success(at(0));
        assert_eq!(search.attempt(at(0), &config), NextAttempt::Request { ttl: 1 });
    }

    #[test]
    fn without_neighbour_queries_the_first_request_is_flooded() {
        let config = Config { neighbour_query_timeout: None, ..Config::rfc4728() };
        let mut search = Search::new(at(0));
        assert_eq!(search.attempt(at(0), &config), NextAttempt::Request { ttl: 255 });
        assert_eq!(search.deadline, at(500));
        search.attempt(at(0), &config);
        assert_eq!(search.deadline, at(1000));
    }

    #[test]
    fn in_ns2_each_flood_is_preceded_by_a_neighbour_query() {
        let mut search = Search::new(at(0));
        let mut asked = Vec::new();
        while asked.len() < 8 {
            let now = search.deadline;
            let NextAttempt::Request { ttl } = search.attempt(now, &Config::ns2()) else { panic!("gave up") };
            asked.push((now.since(at(0)).as_millis(), ttl));
        }
        let flood = |from: u64| [(from, 1), (from + 30, 255)];
        assert_eq!(asked, [flood(0), flood(2000), flood(10_000), flood(20_000)].concat());
    }

    #[test]
    fn a_search_with_waiting_packets_is_joined_and_never_evicted() {
        let mut searches = Searches::new(2);
        assert_eq!(searches.start(at(0), A), SearchStart::Due);
        assert_eq!(searches.start(at(0), A), SearchStart::Waiting);
        assert_eq!(searches.start(at(0), B), SearchStart::Due);
        assert_eq!(searches.start(at(0), C), SearchStart::Refused);
        searches.get_mut(B).unwrap().pause();
        assert_eq!(searches.start(at(0), C), SearchStart::Due);
        assert!(searches.get(B).is_none() && searches.get(A).is_some());
    }
}
