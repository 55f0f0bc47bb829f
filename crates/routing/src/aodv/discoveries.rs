//! Searches for routes: reach and timeout of each attempt (RFC 3561 §6.3, §6.4).

use super::config::{self, Config};
use super::table::next_tick_from;
use hopline_core::{Duration, Instant};
use std::net::Ipv4Addr;

/// Minimum timeout of a discovery.
const MIN_WAIT: Duration = Duration::from_millis(1);
/// Discoveries over which ns-2 takes the mean time of a hop.
const HISTORY: usize = 3;

/// Purpose of a route discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DiscoveryPurpose {
    /// Packets of this node wait for the route.
    Origin,
    /// Local repair of a route that broke here, when it had this many hops (§6.12).
    Repair { hops: u8 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DiscoveryState {
    /// Nothing is awaited. Kept for what ns-2 remembers of earlier discoveries.
    Idle,
    /// At `deadline` the next attempt is due.
    Waiting,
}

/// The search for one destination.
#[derive(Clone, Debug)]
pub(super) struct Discovery {
    pub(super) destination: Ipv4Addr,
    pub(super) purpose: DiscoveryPurpose,
    pub(super) state: DiscoveryState,
    /// Earliest time of a new attempt.
    pub(super) deadline: Instant,
    /// Time of the latest request.
    last_request: Instant,
    /// Reach of the latest request, or the length of the route it found; 0: none yet.
    ttl: u8,
    /// Network-wide attempts since the last success.
    network_wide: u8,
    /// Time per hop in the latest discoveries; zero where there was none.
    hop_times: [Duration; HISTORY],
    hop_time_slot: usize,
}

/// Next step of a discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextAttempt {
    Request { ttl: u8, wait: Duration },
    GiveUp,
}

impl Discovery {
    fn new(destination: Ipv4Addr) -> Self {
        Self {
            destination,
            purpose: DiscoveryPurpose::Origin,
            state: DiscoveryState::Idle,
            deadline: Instant::ZERO,
            last_request: Instant::ZERO,
            ttl: 0,
            network_wide: 0,
            hop_times: [Duration::ZERO; HISTORY],
            hop_time_slot: 0,
        }
    }

    /// Decides on the next attempt. `last_hops`: length of the latest route, if one was ever known.
    pub(super) fn next_attempt(&self, config: &Config, last_hops: Option<u8>) -> NextAttempt {
        match config.discovery_schedule {
            config::DiscoverySchedule::Rfc => self.next_rfc(config, last_hops),
            config::DiscoverySchedule::Ns2 { longest_wait } => self.next_ns2(config, last_hops, longest_wait),
        }
    }

    fn next_rfc(&self, config: &Config, last_hops: Option<u8>) -> NextAttempt {
        if self.network_wide > config.rreq_retries {
            return NextAttempt::GiveUp;
        }
        // §6.4: the first ring lies beyond the last known distance.
        let ring = match (self.ttl, last_hops) {
            (0, None) => config.ttl_start,
            (0, Some(hops)) => hops.saturating_add(config.ttl_increment),
            (ttl, _) => ttl.saturating_add(config.ttl_increment),
        };
        if ring <= config.ttl_threshold && self.network_wide == 0 {
            return NextAttempt::Request { ttl: ring, wait: config.ring_traversal_time(ring) };
        }
        // §6.3: binary exponential back-off.
        let doubled = 1u64.checked_shl(u32::from(self.network_wide)).unwrap_or(u64::MAX);
        NextAttempt::Request {
            ttl: config.net_diameter,
            wait: config.net_traversal_time().saturating_mul(doubled),
        }
    }

    fn next_ns2(&self, config: &Config, last_hops: Option<u8>, longest_wait: Duration) -> NextAttempt {
        if self.network_wide > config.rreq_retries {
            return NextAttempt::GiveUp;
        }
        let reach = self.ttl.max(last_hops.unwrap_or(u8::MAX));
        let (ttl, network_wide) = if reach < config.ttl_threshold {
            (reach.saturating_add(config.ttl_increment), self.network_wide)
        } else {
            (config.net_diameter, self.network_wide + 1)
        };
        let hop_time = self.mean_hop_time().unwrap_or(config.node_traversal_time);
        let wait = hop_time.saturating_mul(2 * u64::from(ttl) * u64::from(network_wide.max(1)));
        NextAttempt::Request { ttl, wait: wait.min(longest_wait) }
    }

    /// Records that a request leaves at `due`.
    pub(super) fn on_request_sent(&mut self, due: Instant, ttl: u8, wait: Duration, config: &Config) {
        self.network_wide = self.network_wide.saturating_add(u8::from(ttl >= config.net_diameter));
        self.ttl = ttl;
        self.last_request = due;
        self.wait_until(due + wait.max(MIN_WAIT));
    }

    pub(super) fn wait_until(&mut self, deadline: Instant) {
        (self.state, self.deadline) = (DiscoveryState::Waiting, deadline);
    }

    /// Records that a route of `hops` hops was found; `answered` tells by which event.
    pub(super) fn on_route_found(&mut self, now: Instant, hops: u8, answered: FoundBy) {
        if answered == FoundBy::OwnReply && hops > 0 {
            self.hop_times[self.hop_time_slot] = now.since(self.last_request) / u64::from(hops);
            self.hop_time_slot = (self.hop_time_slot + 1) % HISTORY;
        }
        (self.state, self.deadline, self.purpose) =
            (DiscoveryState::Idle, Instant::ZERO, DiscoveryPurpose::Origin);
        (self.network_wide, self.ttl) = (0, hops);
    }

    /// Records that no reply arrived; no request is sent for the destination until `until`.
    pub(super) fn on_failure(&mut self, until: Instant) {
        (self.state, self.deadline, self.purpose) =
            (DiscoveryState::Waiting, until, DiscoveryPurpose::Origin);
        self.network_wide = 0;
    }

    fn mean_hop_time(&self) -> Option<Duration> {
        let known = self.hop_times.iter().filter(|time| !time.is_zero());
        let count = known.clone().count() as u64;
        (count > 0).then(|| known.fold(Duration::ZERO, |sum, time| sum + *time) / count)
    }
}

/// Event by which a route was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoundBy {
    /// By a reply to this node's request.
    OwnReply,
    /// By a reply that this node passes on.
    ForwardedReply,
    /// By another AODV message.
    OtherMessage,
}

/// All searches of a node in a list, as they are few.
#[derive(Clone, Debug)]
pub(super) struct Discoveries {
    list: Vec<Discovery>,
    limit: usize,
}

impl Discoveries {
    pub(super) fn new(limit: u32) -> Self {
        Self { list: Vec::new(), limit: limit as usize }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn get(&mut self, destination: Ipv4Addr) -> Option<&mut Discovery> {
        self.list.iter_mut().find(|search| search.destination == destination)
    }

    pub(super) fn is_waiting_for(&self, destination: Ipv4Addr) -> bool {
        self.list
            .iter()
            .any(|search| search.destination == destination && search.state == DiscoveryState::Waiting)
    }

    /// Returns the search for `destination`, and creates it if necessary. `None` if there are too many.
    pub(super) fn get_or_create(&mut self, destination: Ipv4Addr) -> Option<&mut Discovery> {
        let at = match self.list.iter().position(|search| search.destination == destination) {
            Some(at) => at,
            None => {
                if self.list.len() >= self.limit {
                    let idle = self.list.iter().position(|search| search.state == DiscoveryState::Idle)?;
                    self.list.remove(idle);
                }
                self.list.push(Discovery::new(destination));
                self.list.len() - 1
            }
        };
        self.list.get_mut(at)
    }

    pub(super) fn remove(&mut self, destination: Ipv4Addr) {
        self.list.retain(|search| search.destination != destination);
    }

    /// Returns a destination for which the next attempt is due.
    pub(super) fn due(&self, now: Instant) -> Option<Ipv4Addr> {
        let due = |search: &&Discovery| search.state == DiscoveryState::Waiting && search.deadline <= now;
        self.list.iter().find(due).map(|search| search.destination)
    }

    /// Returns the time at which the next attempt is due.
    pub(super) fn next_deadline(&self, ageing: config::ExpiryGranularity) -> Option<Instant> {
        let waiting = self.list.iter().filter(|search| search.state == DiscoveryState::Waiting);
        let earliest = waiting.map(|search| search.deadline).min()?;
        Some(match ageing {
            config::ExpiryGranularity::Exact => earliest,
            config::ExpiryGranularity::Ticks(period) => next_tick_from(earliest, period.max(MIN_WAIT)),
        })
    }
}
