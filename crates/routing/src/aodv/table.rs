//! The routing table (RFC 3561 §2, §6.1, §6.2).

use super::config::{Config, ExpiryGranularity};
use super::neighbour_cache::NeighbourCache;
use crate::address_map::AddressMap;
use hopline_core::{Duration, Instant, Seq32};
use std::net::Ipv4Addr;

/// Period at which memory of forgotten routes is reclaimed if expiry itself is exact.
const RECLAIM_PERIOD: Duration = Duration::from_secs(5);

/// State of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteState {
    /// Valid: packets may use it.
    Valid,
    /// Expired or broken; only its sequence number and length are still of use.
    Invalid,
    /// Broken and under local repair (§6.12).
    Repairing,
    /// Under local repair, but still known for all purposes except data packets ([`RepairSequence::Ns2Kept`]).
    ///
    /// [`RepairSequence::Ns2Kept`]: super::config::RepairSequence::Ns2Kept
    RepairingKept,
}

/// State of the destination's sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SeqState {
    Known,
    Unknown,
}

/// Origin of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RouteRole {
    /// Learnt from a neighbour's message, without a discovery.
    Neighbour,
    /// Learnt from a discovery or used by data: the node is on an active route (§6.9).
    Path,
}

/// Neighbours that use a route (§6.2), in order of address.
#[derive(Clone, Debug, Default)]
pub(super) struct Precursors(Vec<Ipv4Addr>);

/// One route. 40 bytes with its destination: a large network has millions of these.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub(super) next_hop: Ipv4Addr,
    seq: Seq32,
    seq_state: SeqState,
    /// Hops to the destination; of an invalid route, hops when it was last valid.
    pub(super) hops: u8,
    pub(super) state: RouteState,
    pub(super) role: RouteRole,
    /// Hops when it last became invalid; 255: never. Differs from `hops` while it is valid or under repair.
    pub(super) last_hops: u8,
    /// Time at which a valid route becomes invalid and any other is forgotten.
    pub(super) expires: Instant,
    precursors: Option<Box<Precursors>>,
}

/// A route as offered by a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct RouteOffer {
    pub(super) next_hop: Ipv4Addr,
    pub(super) hops: u8,
    pub(super) seq: Seq32,
    pub(super) expiry: Expiry,
}

/// Lifetime of a route according to a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expiry {
    /// Lower bound, from a request: it applies even if the rest of the offer is refused (§6.5).
    AtLeast(Instant),
    /// New lifetime, from a reply (§6.7).
    At(Instant),
}

/// Result of offering a route to the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfferResult {
    /// The offer has become the route.
    Better,
    /// The offer equals the route in use.
    Same,
    /// The offer was refused.
    Worse,
    /// There is no room for another route.
    TableFull,
}

impl Expiry {
    const fn instant(self) -> Instant {
        match self {
            Self::AtLeast(at) | Self::At(at) => at,
        }
    }
}

impl Route {
    fn new(next_hop: Ipv4Addr, hops: u8, expires: Instant) -> Self {
        Self {
            next_hop,
            seq: Seq32(0),
            seq_state: SeqState::Unknown,
            hops,
            state: RouteState::Valid,
            role: RouteRole::Neighbour,
            last_hops: u8::MAX,
            expires,
            precursors: None,
        }
    }

    pub(super) fn seq(&self) -> Option<Seq32> {
        (self.seq_state == SeqState::Known).then_some(self.seq)
    }

    pub(super) fn is_valid(&self) -> bool {
        self.state == RouteState::Valid
    }

    /// Returns whether requests may be answered with the route and messages may use it.
    pub(super) fn is_known(&self) -> bool {
        matches!(self.state, RouteState::Valid | RouteState::RepairingKept)
    }

    /// Returns whether data packets wait for its repair.
    pub(super) fn is_repairing(&self) -> bool {
        matches!(self.state, RouteState::Repairing | RouteState::RepairingKept)
    }

    /// Extends the lifetime of the route to at least `until`; never shortens it.
    pub(super) fn renew(&mut self, until: Instant) {
        if self.is_valid() {
            self.expires = self.expires.max(until);
        }
    }

    pub(super) fn precursors(&self) -> &[Ipv4Addr] {
        self.precursors.as_ref().map_or(&[], |precursors| &precursors.0)
    }

    pub(super) fn add_precursor(&mut self, neighbour: Ipv4Addr, limit: u32) {
        let list = &mut self.precursors.get_or_insert_default().0;
        if let Err(at) = list.binary_search(&neighbour)
            && list.len() < limit as usize
        {
            list.insert(at, neighbour);
        }
    }

    pub(super) fn remove_precursor(&mut self, neighbour: Ipv4Addr) {
        if let Some(precursors) = &mut self.precursors {
            precursors.0.retain(|other| *other != neighbour);
        }
    }

    pub(super) fn clear_precursors(&mut self) {
        self.precursors = None;
    }

    /// Ends a route that expired or broke. The sequence number is incremented (RFC 3561 §6.1, §6.11), so that a node with a
    /// route through this one cannot offer it back.
    pub(super) fn invalidate(&mut self, state: RouteState, forget: Instant) {
        if self.is_known() {
            self.seq += 1;
        }
        if state == RouteState::Invalid {
            self.last_hops = self.hops;
        }
        (self.state, self.expires) = (state, forget);
    }

    /// Marks a broken route as under repair, and changes nothing else.
    pub(super) fn begin_kept_repair(&mut self) {
        (self.state, self.expires) = (RouteState::RepairingKept, Instant::FAR_FUTURE);
    }

    /// Ends a route after a failed repair. The sequence number stays.
    pub(super) fn end_repair(&mut self, forget: Instant) {
        (self.state, self.expires, self.last_hops) = (RouteState::Invalid, forget, self.hops);
    }

    /// Starts a new lifetime. Precursors from before its end are dropped, unless it was under repair.
    fn restart(&mut self) {
        if self.state == RouteState::Invalid {
            self.precursors = None;
        }
        if !self.is_valid() {
            (self.state, self.expires) = (RouteState::Valid, Instant::ZERO);
        }
    }

    /// Raises the sequence number to at least `seq`, the number known to the node that reports a broken route.
    pub(super) fn raise_seq(&mut self, seq: Seq32) {
        if self.seq_state == SeqState::Unknown || seq.after(self.seq) {
            (self.seq, self.seq_state) = (seq, SeqState::Known);
        }
    }

    /// Takes the number of a route error as it is, even if it is no higher: a consequence of [`RepairSequence::Ns2Kept`].
    ///
    /// [`RepairSequence::Ns2Kept`]: super::config::RepairSequence::Ns2Kept
    pub(super) fn copy_seq(&mut self, seq: Seq32) {
        (self.seq, self.seq_state) = (seq, SeqState::Known);
    }

    /// Returns whether an offer is better than this route (RFC 3561 §6.2, §6.7).
    fn is_worse_than(&self, offer: &RouteOffer) -> bool {
        self.seq_state == SeqState::Unknown
            || offer.seq.after(self.seq)
            || (offer.seq == self.seq && (!self.is_known() || offer.hops < self.hops))
    }

    fn equals(&self, offer: &RouteOffer) -> bool {
        self.is_valid()
            && (self.next_hop, self.hops, self.seq()) == (offer.next_hop, offer.hops, Some(offer.seq))
    }
}

/// The routes of one node.
#[derive(Clone, Debug)]
pub(super) struct RouteTable {
    routes: AddressMap<Route>,
    /// Renewals that are not in `routes` yet.
    neighbour_cache: NeighbourCache,
    ageing: ExpiryGranularity,
    delete_period: Duration,
    /// No route expires before this.
    next_expiry: Instant,
}

impl RouteTable {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            routes: AddressMap::new(config.limits.routes),
            neighbour_cache: NeighbourCache::new(),
            ageing: config.expiry_granularity,
            delete_period: config.delete_period,
            next_expiry: Instant::FAR_FUTURE,
        }
    }

    /// Returns the route to `destination`, in its state at `now`.
    pub(super) fn get(&mut self, now: Instant, destination: Ipv4Addr) -> Option<&mut Route> {
        let renewed = self.neighbour_cache.take(destination);
        let route = self.routes.get_mut(destination)?;
        if let Some(until) = renewed {
            route.renew(until);
        }
        if self.ageing == ExpiryGranularity::Exact && route.is_valid() && route.expires <= now {
            let forget = route.expires + self.delete_period;
            route.invalidate(RouteState::Invalid, forget);
        }
        Some(route)
    }

    /// Returns the route to `destination` without ageing it; [`Self::expiry_of`] gives its expiry.
    pub(super) fn find(&self, destination: Ipv4Addr) -> Option<&Route> {
        self.routes.get(destination)
    }

    /// The route to `destination` if packets may take it.
    pub(super) fn valid(&mut self, now: Instant, destination: Ipv4Addr) -> Option<&mut Route> {
        self.get(now, destination).filter(|route| route.is_valid())
    }

    /// The route to `destination` if messages may take it and requests be answered with it.
    pub(super) fn known(&mut self, now: Instant, destination: Ipv4Addr) -> Option<&mut Route> {
        self.get(now, destination).filter(|route| route.is_known())
    }

    /// Accepts a route with a sequence number if it is better than the known one.
    pub(super) fn offer(&mut self, now: Instant, destination: Ipv4Addr, offer: RouteOffer) -> OfferResult {
        self.update_next_expiry(offer.expiry.instant());
        let Some(route) = self.get(now, destination) else {
            let route = Route::new(offer.next_hop, offer.hops, offer.expiry.instant());
            if !self.routes.insert_new(destination, route) {
                return OfferResult::TableFull;
            }
            return self.offer(now, destination, offer);
        };
        let better = route.is_worse_than(&offer);
        if better {
            route.restart();
            (route.next_hop, route.hops) = (offer.next_hop, offer.hops);
            (route.seq, route.seq_state) = (offer.seq, SeqState::Known);
            route.role = RouteRole::Path;
        }
        let verdict = match better {
            true => OfferResult::Better,
            false if route.equals(&offer) => OfferResult::Same,
            false => OfferResult::Worse,
        };
        match (offer.expiry, verdict) {
            (Expiry::At(at), OfferResult::Better) => route.expires = at,
            (Expiry::AtLeast(at), _) | (Expiry::At(at), OfferResult::Same) => route.renew(at),
            (Expiry::At(_), _) => {}
        }
        verdict
    }

    /// Accepts the route to a neighbour that was just heard (§6.5, §6.7): one hop, no sequence number of its own. A known
    /// sequence number stays. Returns whether the neighbour was unreachable before, or only over a longer route.
    pub(super) fn offer_neighbour(&mut self, now: Instant, neighbour: Ipv4Addr, expires: Instant) -> bool {
        if self.neighbour_cache.extend(now, neighbour, expires) {
            return false;
        }
        let Some(route) = self.get(now, neighbour) else {
            let new = self.routes.insert_new(neighbour, Route::new(neighbour, 1, expires));
            if new {
                self.update_next_expiry(expires);
                self.cache_neighbour(neighbour, expires);
            }
            return new;
        };
        let known = route.is_valid() && route.next_hop == neighbour;
        if !route.is_valid() {
            route.restart();
            route.role = RouteRole::Neighbour;
        }
        (route.next_hop, route.hops) = (neighbour, 1);
        route.renew(expires);
        let until = route.expires;
        if !known {
            self.update_next_expiry(expires);
        }
        self.cache_neighbour(neighbour, until);
        !known
    }

    /// Starts to keep renewals of the valid route to `neighbour` beside the table.
    fn cache_neighbour(&mut self, neighbour: Ipv4Addr, until: Instant) {
        if let Some((other, until)) = self.neighbour_cache.insert(neighbour, until)
            && let Some(route) = self.routes.get_mut(other)
        {
            route.renew(until);
        }
    }

    /// Moves all renewals into the table.
    fn flush_neighbour_cache(&mut self) {
        for (neighbour, until) in self.neighbour_cache.take_all() {
            if let Some(route) = self.routes.get_mut(neighbour) {
                route.renew(until);
            }
        }
    }

    /// Returns the time at which a route that ends now is to be forgotten.
    pub(super) fn deletion_time(&self, now: Instant) -> Instant {
        now + self.delete_period
    }

    /// Calls `visit` for every route that counts as known at `now`.
    pub(super) fn for_each_known(&mut self, now: Instant, mut visit: impl FnMut(Ipv4Addr, &mut Route)) {
        self.flush_neighbour_cache();
        let ageing = self.ageing;
        for (destination, route) in self.routes.iter_mut() {
            if is_route_usable(ageing, now, route, route.expires) || route.state == RouteState::RepairingKept
            {
                visit(destination, route);
            }
        }
    }

    pub(super) fn set_role(&mut self, destination: Ipv4Addr, role: RouteRole) {
        if let Some(route) = self.routes.get_mut(destination) {
            route.role = role;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, &Route)> {
        self.routes.iter()
    }

    /// Returns the time at which `route`, which leads to `destination`, ends or is forgotten.
    pub(super) fn expiry_of(&self, destination: Ipv4Addr, route: &Route) -> Instant {
        self.neighbour_cache.get(destination).unwrap_or(route.expires)
    }

    /// Returns whether packets for `destination` may use `route` at `now`.
    pub(super) fn is_usable(&self, now: Instant, destination: Ipv4Addr, route: &Route) -> bool {
        is_route_usable(self.ageing, now, route, self.expiry_of(destination, route))
    }

    /// Records that a route ends or is forgotten at `at`.
    pub(super) fn update_next_expiry(&mut self, at: Instant) {
        self.next_expiry = self.next_expiry.min(at);
    }

    /// Returns the time at which [`purge`](Self::purge) has something to do.
    pub(super) fn next_purge(&self) -> Option<Instant> {
        let period = match self.ageing {
            ExpiryGranularity::Exact => RECLAIM_PERIOD,
            ExpiryGranularity::Ticks(period) => period.max(Duration::from_millis(1)),
        };
        (self.next_expiry != Instant::FAR_FUTURE).then(|| next_tick_after(self.next_expiry, period))
    }

    /// Ends the routes that expired and forgets those that ended long ago, except those for which `keep` holds.
    pub(super) fn purge(&mut self, now: Instant, keep: impl Fn(Ipv4Addr) -> bool) {
        self.flush_neighbour_cache();
        let mut earliest = Instant::FAR_FUTURE;
        let delete_period = self.delete_period;
        self.routes.retain(|destination, route| {
            if route.state != RouteState::Invalid && route.expires < now {
                // Exact ageing would have ended it at its expiry; a tick ends it now.
                let end = if self.ageing == ExpiryGranularity::Exact { route.expires } else { now };
                route.invalidate(RouteState::Invalid, end + delete_period);
            }
            let forget = route.state == RouteState::Invalid && route.expires < now && !keep(destination);
            if !forget {
                earliest = earliest.min(route.expires);
            }
            !forget
        });
        self.next_expiry = earliest.max(now);
    }
}

/// Returns whether packets may use `route`, which expires at `until` if it is valid.
fn is_route_usable(ageing: ExpiryGranularity, now: Instant, route: &Route, until: Instant) -> bool {
    route.is_valid() && (ageing != ExpiryGranularity::Exact || until > now)
}

/// The first multiple of `period` after `at`.
pub(super) fn next_tick_after(at: Instant, period: Duration) -> Instant {
    Instant::from_nanos(
        (at.as_nanos() / period.as_nanos()).saturating_add(1).saturating_mul(period.as_nanos()),
    )
}

/// The first multiple of `period` not before `at`.
pub(super) fn next_tick_from(at: Instant, period: Duration) -> Instant {
    Instant::from_nanos(at.as_nanos().div_ceil(period.as_nanos()).saturating_mul(period.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_route_with_its_destination_takes_40_bytes() {
        assert_eq!(size_of::<(Ipv4Addr, Route)>(), 40);
    }

    #[test]
    fn ticks_are_multiples_of_the_period_and_do_not_overflow() {
        let (at, period) = (Instant::from_millis, Duration::from_millis(500));
        assert_eq!((next_tick_after(at(499), period), next_tick_from(at(499), period)), (at(500), at(500)));
        assert_eq!((next_tick_after(at(500), period), next_tick_from(at(500), period)), (at(1_000), at(500)));
        assert_eq!(next_tick_after(Instant::FAR_FUTURE, period), Instant::FAR_FUTURE);
    }

    fn neighbour(n: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(n + 1)
    }

    /// Returns the visible content of a table. Reading it puts nothing into it.
    fn visible_routes(table: &RouteTable, now: Instant) -> Vec<(Ipv4Addr, RouteState, Instant, bool)> {
        let view = |(to, route): (Ipv4Addr, &Route)| {
            (to, route.state, table.expiry_of(to, route), table.is_usable(now, to, route))
        };
        table.iter().map(view).collect()
    }

    proptest! {
        /// Compares with a table that applies every renewal at once.
        #[test]
        fn cached_renewals_do_not_change_visible_routes(
            ticks: bool,
            ops in prop::collection::vec((0u32..6, 0u32..24, 0u64..5), 0..400),
        ) {
            let ageing = if ticks { ExpiryGranularity::Ticks(Duration::from_millis(500)) } else { ExpiryGranularity::Exact };
            let config = Config { expiry_granularity: ageing, ..Config::rfc3561() };
            let (mut lazy, mut plain) = (RouteTable::new(&config), RouteTable::new(&config));
            let mut now = Instant::from_secs(1);
            for (op, n, pause) in ops {
                now += Duration::from_millis(300 * pause);
                for (table, settles) in [(&mut lazy, false), (&mut plain, true)] {
                    let expires = now + Duration::from_millis(1_000 + 400 * u64::from(n % 3));
                    match op {
                        0..=2 => _ = table.offer_neighbour(now, neighbour(n), expires),
                        3 => _ = table.get(now, neighbour(n)),
                        4 => table.for_each_known(now, |_, route| route.remove_precursor(neighbour(n))),
                        _ => table.purge(now, |_| false),
                    }
                    if settles {
                        table.flush_neighbour_cache();
                    }
                }
                prop_assert_eq!(visible_routes(&lazy, now), visible_routes(&plain, now));
                prop_assert_eq!(lazy.next_purge(), plain.next_purge());
            }
        }
    }
}
