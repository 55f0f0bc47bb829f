//! Searches for routes: reach and timeout of each attempt (RFC 3561 §6.3, §6.4).

use super::config::{self, Config};
use super::table::tick_from;
use hopline_core::{Duration, Instant};
use std::net::Ipv4Addr;

/// Minimum timeout of a discovery.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);
/// Discoveries over which ns-2 takes the mean time of a hop.
const HISTORY: usize = 3;

/// Purpose of a route discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// Packets of this node wait for the route.
    Origin,
    /// Local repair of a route that broke here, when it had this many hops (§6.12).
    Repair { hops: u8 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing is awaited. Kept for what ns-2 remembers of earlier discoveries.
    Idle,
    /// At `deadline` the next attempt is due.
    Waiting,
}

/// The search for one destination.
#[derive(Clone, Debug)]
pub(super) struct Search {
    pub(super) destination: Ipv4Addr,
    pub(super) goal: Goal,
    pub(super) phase: Phase,
    /// Earliest time of a new attempt.
    pub(super) deadline: Instant,
    /// Time of the latest request.
    sent: Instant,
    /// Reach of the latest request, or the length of the route it found; 0: none yet.
    ttl: u8,
    /// Network-wide attempts since the last success.
    network_wide: u8,
    /// Time per hop in the latest discoveries; zero where there was none.
    hop_times: [Duration; HISTORY],
    slot: usize,
}

/// Next step of a discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    Request { ttl: u8, wait: Duration },
    GiveUp,
}

impl Search {
    fn new(destination: Ipv4Addr) -> Self {
        Self {
            destination,
            goal: Goal::Origin,
            phase: Phase::Idle,
            deadline: Instant::ZERO,
            sent: Instant::ZERO,
            ttl: 0,
            network_wide: 0,
            hop_times: [Duration::ZERO; HISTORY],
            slot: 0,
        }
    }

    /// Decides on the next attempt. `last_hops`: length of the latest route, if one was ever known.
    pub(super) fn next(&self, config: &Config, last_hops: Option<u8>) -> Attempt {
        match config.search {
            config::Search::Rfc => self.next_rfc(config, last_hops),
            config::Search::Ns2 { longest_wait } => self.next_ns2(config, last_hops, longest_wait),
        }
    }

    fn next_rfc(&self, config: &Config, last_hops: Option<u8>) -> Attempt {
        if self.network_wide > config.rreq_retries {
            return Attempt::GiveUp;
        }
        // §6.4: the first ring lies beyond the last known distance.
        let ring = match (self.ttl, last_hops) {
            (0, None) => config.ttl_start,
            (0, Some(hops)) => hops.saturating_add(config.ttl_increment),
            (ttl, _) => ttl.saturating_add(config.ttl_increment),
        };
        if ring <= config.ttl_threshold && self.network_wide == 0 {
            return Attempt::Request { ttl: ring, wait: config.ring_traversal_time(ring) };
        }
        // §6.3: binary exponential back-off.
        let doubled = 1u64.checked_shl(u32::from(self.network_wide)).unwrap_or(u64::MAX);
        Attempt::Request {
            ttl: config.net_diameter,
            wait: config.net_traversal_time().saturating_mul(doubled),
        }
    }

    fn next_ns2(&self, config: &Config, last_hops: Option<u8>, longest_wait: Duration) -> Attempt {
        if self.network_wide > config.rreq_retries {
            return Attempt::GiveUp;
        }
        let reach = self.ttl.max(last_hops.unwrap_or(u8::MAX));
        let (ttl, network_wide) = if reach < config.ttl_threshold {
            (reach.saturating_add(config.ttl_increment), self.network_wide)
        } else {
            (config.net_diameter, self.network_wide + 1)
        };
        let hop_time = self.mean_hop_time().unwrap_or(config.node_traversal_time);
        let wait = hop_time.saturating_mul(2 * u64::from(ttl) * u64::from(network_wide.max(1)));
        Attempt::Request { ttl, wait: wait.min(longest_wait) }
    }

    /// Records that a request leaves at `due`.
    pub(super) fn sent(&mut self, due: Instant, ttl: u8, wait: Duration, config: &Config) {
        self.network_wide = self.network_wide.saturating_add(u8::from(ttl >= config.net_diameter));
        self.ttl = ttl;
        self.sent = due;
        self.wait_until(due + wait.max(SHORTEST_WAIT));
    }

    pub(super) fn wait_until(&mut self, deadline: Instant) {
        (self.phase, self.deadline) = (Phase::Waiting, deadline);
    }

    /// Records that a route of `hops` hops was found; `answered` tells by which event.
    pub(super) fn found(&mut self, now: Instant, hops: u8, answered: Answered) {
        if answered == Answered::ByReply && hops > 0 {
            self.hop_times[self.slot] = now.since(self.sent) / u64::from(hops);
            self.slot = (self.slot + 1) % HISTORY;
        }
        (self.phase, self.deadline, self.goal) = (Phase::Idle, Instant::ZERO, Goal::Origin);
        (self.network_wide, self.ttl) = (0, hops);
    }

    /// Records that no reply arrived; no request is sent for the destination until `until`.
    pub(super) fn failed(&mut self, until: Instant) {
        (self.phase, self.deadline, self.goal) = (Phase::Waiting, until, Goal::Origin);
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
pub(super) enum Answered {
    /// By a reply to this node's request.
    ByReply,
    /// By a reply that this node passes on.
    ByReplyToOther,
    /// By another AODV message.
    Otherwise,
}

/// All searches of a node in a list, as they are few.
#[derive(Clone, Debug)]
pub(super) struct Searches {
    list: Vec<Search>,
    limit: usize,
}

impl Searches {
    pub(super) fn new(limit: u32) -> Self {
        Self { list: Vec::new(), limit: limit as usize }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn get(&mut self, destination: Ipv4Addr) -> Option<&mut Search> {
        self.list.iter_mut().find(|search| search.destination == destination)
    }

    pub(super) fn is_waiting_for(&self, destination: Ipv4Addr) -> bool {
        self.list.iter().any(|search| search.destination == destination && search.phase == Phase::Waiting)
    }

    /// Returns the search for `destination`, and creates it if necessary. `None` if there are too many.
    pub(super) fn begin(&mut self, destination: Ipv4Addr) -> Option<&mut Search> {
        let at = match self.list.iter().position(|search| search.destination == destination) {
            Some(at) => at,
            None => {
                if self.list.len() >= self.limit {
                    let idle = self.list.iter().position(|search| search.phase == Phase::Idle)?;
                    self.list.remove(idle);
                }
                self.list.push(Search::new(destination));
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
        let due = |search: &&Search| search.phase == Phase::Waiting && search.deadline <= now;
        self.list.iter().find(due).map(|search| search.destination)
    }

    /// Returns the time at which the next attempt is due.
    pub(super) fn next_deadline(&self, ageing: config::Ageing) -> Option<Instant> {
        let waiting = self.list.iter().filter(|search| search.phase == Phase::Waiting);
        let earliest = waiting.map(|search| search.deadline).min()?;
        Some(match ageing {
            config::Ageing::Exact => earliest,
            config::Ageing::Ticks(period) => tick_from(earliest, period.max(SHORTEST_WAIT)),
        })
    }
}
