//! Every parameter of a DSR machine, and the presets.

use core::num::{NonZeroU8, NonZeroU16};
use hopline_core::Duration;

/// Route cache of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteCache {
    /// Whole paths, as they were learnt (RFC 4728 §4.1, "path cache"); the shortest is taken.
    Paths(PathCache),
    /// No cache. Every packet that a node sends starts a search for a route, and the first route found is used:
    /// "DSR-Cache-off" of the TCP-DOOR paper (§4.2).
    Off(NoCache),
}

/// Path cache, and the features that depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathCache {
    /// Capacity in paths; a new one replaces the least recently used. Default 64.
    pub capacity: NonZeroU16,
    /// RouteCacheTimeout: a path that was unused for this long is removed. Default 300 s.
    pub timeout: Duration,
    /// Learning from overheard packets for other nodes. Default [`Tap::On`].
    pub tap: Tap,
    /// Directions learnt along the path of a packet. Default [`LearntDirections::Both`].
    pub learnt_directions: LearntDirections,
    /// Treatment of a packet of another node if its next hop fails and no other path is known. Default
    /// [`UnsalvageablePackets::Dropped`].
    pub unsalvageable_packets: UnsalvageablePackets,
    /// Treatment of replies and errors if their next hop fails. Default [`FailedControl::Dropped`].
    pub failed_control: FailedControl,
    /// Replies from the cache of a relay, in the target's stead. Default after a delay of 10 ms per hop.
    pub cached_replies: CachedReplies,
    /// Gratuitous replies: a node that overhears a packet on a detour informs its source. Default at most once in 1 s.
    pub gratuitous_replies: GratuitousReplies,
}

impl PathCache {
    /// RFC 4728 §9, with a capacity that it leaves open.
    pub const RFC4728: Self = Self {
        capacity: NonZeroU16::new(64).expect("not zero"),
        timeout: Duration::from_secs(300),
        tap: Tap::On,
        learnt_directions: LearntDirections::Both,
        unsalvageable_packets: UnsalvageablePackets::Dropped,
        failed_control: FailedControl::Dropped,
        cached_replies: CachedReplies::After { per_hop: Duration::from_millis(10) },
        gratuitous_replies: GratuitousReplies::On { holdoff: Duration::from_secs(1) },
    };
}

/// Promiscuous listening: use of overheard packets for other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tap {
    /// The node takes routes, errors and detours from all packets that it overhears (§3.4.1).
    On,
    /// The node ignores them.
    Off,
}

/// Directions that a node learns along the path of a packet that it has or overhears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearntDirections {
    /// Onward to its destination and back to its source: links are bidirectional (§3.3.1).
    Both,
    /// Onward. Backward in three cases: along the record of a request when it is answered, along a detour when its source is
    /// informed, and along a reply's path by its destination and by nodes of the path that overhear it (ns-2).
    Forward,
}

/// Treatment of a packet of another node if its next hop fails and no other path is known (§8.3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnsalvageablePackets {
    /// Dropped.
    Dropped,
    /// Kept in the buffer. Neighbours are asked once for a path, and one such packet is dropped each time that another
    /// request would be due (ns-2).
    QueryNeighbours,
}

/// Treatment of replies and errors if their next hop fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedControl {
    /// Dropped.
    Dropped,
    /// Sent over another path if one is known, except for replies that contain the failed link (ns-2).
    Salvaged,
}

/// Replies by a node that knows a route, in the target's stead (§8.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachedReplies {
    /// No replies from the cache.
    Off,
    /// Replies after `per_hop` · (h − 1 + r), with the length h of the route and a random r below 1, unless the node
    /// overhears that the initiator uses a route as short (§8.2.5). Zero: at once, as ns-2 does.
    After {
        /// "H". RFC 4728 names no value but a bound below a microsecond. Default 10 ms, the jitter of broadcasts.
        per_hop: Duration,
    },
}

/// Gratuitous replies: a node that overhears a packet on a detour informs its source of the shorter path (§3.4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GratuitousReplies {
    /// No gratuitous replies.
    Off,
    /// Gratuitous replies with a holdoff.
    On {
        /// GratReplyHoldoff: least time between two such replies for the same source and transmitter. Default 1 s.
        holdoff: Duration,
    },
}

/// Behaviour without a route cache. The TCP-DOOR paper describes it in two sentences (§4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoCache {
    /// Nodes that look for a route. Default [`NoCacheRelays::Follow`].
    pub relays: NoCacheRelays,
    /// Packets that a search serves. Default [`NoCacheSearches::Shared`].
    pub searches: NoCacheSearches,
    /// Treatment of packets after a failure of the next hop. Default [`NoCacheSalvage::SourceOnly`].
    pub salvage: NoCacheSalvage,
    /// Source of random delays. Default [`NoCacheJitter::Fresh`].
    pub jitter: NoCacheJitter,
}

impl NoCache {
    /// DSR with all cache lookups failing, "by disabling all the findRoute() routines": ns-2's relays call none for a packet
    /// that has a source route.
    pub const DOOR: Self = Self {
        relays: NoCacheRelays::Follow,
        searches: NoCacheSearches::Shared,
        salvage: NoCacheSalvage::SourceOnly,
        jitter: NoCacheJitter::Fresh,
    };
}

/// Source of random delays without a route cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoCacheJitter {
    /// A new draw for each delay.
    Fresh,
    /// The node and the current tenth of a second alone. The result of a flood then depends on its time, and not on earlier
    /// transmissions (TCP-DOOR §4.2).
    ByTimeSlot,
}

/// Treatment of a forwarded packet without a route cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoCacheRelays {
    /// Follows the source route of the packet.
    Follow,
    /// Looks for a route, as for a packet of its own: "each time a node sends or forwards a packet".
    Search,
}

/// Packets that a search serves without a route cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoCacheSearches {
    /// All packets that wait for its target when the first reply arrives.
    Shared,
    /// The packet that has waited longest; then the next search starts.
    PerPacket,
}

/// Treatment of a packet without a route cache if its next hop does not answer. With a cache, a node uses another route that
/// it knows (§8.3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoCacheSalvage {
    /// The source looks for a route again. A relay drops the packet, because the search of its cache finds nothing.
    SourceOnly,
    /// Any node that has the packet looks for a route again, as often as [`Config::max_salvage`] allows.
    Everywhere,
}

/// Copies of a request to which the target replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetReplies {
    /// Each, since each has arrived over another path (§8.2.2).
    All,
    /// The first.
    First,
}

/// Directions of a failed link that are forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkRemoval {
    /// Both directions: links are bidirectional.
    BothWays,
    /// The direction that failed (ns-2).
    OneWay,
}

/// Packets that announce their source route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceRoutes {
    /// All.
    InEach,
    /// The first ones over a path, and then one at intervals: the flow is established (RFC 4728 §7). Nodes learn nothing
    /// from the other packets. Relays, which know the flow, report detours, and the target does not. The packets keep their
    /// length on the air.
    Announced {
        /// Packets that announce it before the flow is established.
        packets: u8,
        /// Time after which one packet announces it again.
        every: Duration,
    },
}

/// Scope of the first requests of a continued search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighbourQueries {
    /// Only the first request goes to neighbours alone.
    Once,
    /// A request to neighbours alone precedes each flooded request. Intervals are counted from the former (ns-2).
    EachTime,
}

/// Treatment of the packets in the interface queue for a lost neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuedPackets {
    /// Treated as the packet that failed (§8.3.5).
    Salvaged,
    /// Transmitted all the same.
    Kept,
}

/// Bounds on memory. Entries beyond them are refused or displace the oldest, and are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// RequestTableSize: initiators remembered with their requests, and targets searched for. Default 64.
    pub request_table: u32,
    /// Messages waiting for their jitter to pass. Default 256.
    pub departures: u32,
    /// Sources and transmitters of reported detours. Default 64.
    pub gratuitous_table: u32,
}

impl Limits {
    /// The defaults.
    pub const DEFAULT: Self = Self { request_table: 64, departures: 256, gratuitous_table: 64 };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Parameters of a DSR machine. Names in capitals or run together are those of RFC 4728 §9; [`Config::rfc4728`] has its
/// values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Route cache. Default: paths.
    pub cache: RouteCache,
    /// Most nodes between source and target of a route, 1 to 61. RFC 4728: as many as fit (DiscoveryHopLimit 255); default
    /// 16, ns-2.
    pub max_path: NonZeroU8,
    /// BroadcastJitter: a request is relayed after a random time below this. 10 ms.
    pub broadcast_jitter: Duration,
    /// Jitter of requests that this node originates: each waits a random time below this. It keeps neighbours from colliding
    /// each time if their applications or timers act at the same instant (RFC 5148 §5.2). RFC 4728 says nothing; default
    /// BroadcastJitter, 10 ms. ns-2: zero, as its MAC draws a back-off before each frame.
    pub originated_jitter: Duration,
    /// The target of a request replies after a random time below this. RFC 4728 §8.2.4: BroadcastJitter, 10 ms.
    pub reply_jitter: Duration,
    /// Jitter of the gratuitous reply by a node that overhears a packet on a detour. 10 ms; ns-2: at once.
    pub gratuitous_jitter: Duration,
    /// SendBufferTimeout: longest time a packet waits for a route. 30 s.
    pub buffer_time: Duration,
    /// Packets that wait for routes. RFC 4728 names no number; default 64, ns-2.
    pub buffer_packets: NonZeroU16,
    /// Spacing of buffered packets once a route is found. None; ns-2: 30 ms, so that packets made meanwhile overtake them.
    pub release_spacing: Duration,
    /// RequestTableIds: requests remembered of each initiator. 16.
    pub request_ids: NonZeroU8,
    /// Time for replies to a first request that goes to neighbours only (NonpropRequestTimeout). 30 ms; `None`: the first
    /// request is flooded.
    pub neighbour_query_timeout: Option<Duration>,
    /// Repetition of the request to neighbours. Default once.
    pub neighbour_queries: NeighbourQueries,
    /// RequestPeriod: time from the first flooded request to the next. 500 ms; ns-2: 2 s.
    pub request_period: Duration,
    /// Factor from each interval to the next. 2; ns-2: 4.
    pub request_backoff: NonZeroU8,
    /// MaxRequestPeriod: longest time between two requests. 10 s.
    pub max_request_period: Duration,
    /// MaxRequestRexmt: requests, the first one included, before packets for the target are dropped. 16.
    pub max_request_retries: NonZeroU8,
    /// Copies of a request to which its target replies. Default all.
    pub target_replies: TargetReplies,
    /// MAX_SALVAGE_COUNT: how many times a packet may be salvaged. At most 15. 15.
    pub max_salvage: u8,
    /// Directions of a failed link that are forgotten. Default both.
    pub link_removal: LinkRemoval,
    /// Packets that announce their source route. Default each.
    pub source_routes: SourceRoutes,
    /// Treatment of packets queued for a lost neighbour. Default salvaged.
    pub queued_packets: QueuedPackets,
    /// Bounds on memory.
    pub limits: Limits,
}

impl Config {
    /// RFC 4728 §9.
    #[must_use]
    pub const fn rfc4728() -> Self {
        Self {
            cache: RouteCache::Paths(PathCache::RFC4728),
            max_path: NonZeroU8::new(16).expect("not zero"),
            broadcast_jitter: Duration::from_millis(10),
            originated_jitter: Duration::from_millis(10),
            reply_jitter: Duration::from_millis(10),
            gratuitous_jitter: Duration::from_millis(10),
            buffer_time: Duration::from_secs(30),
            buffer_packets: NonZeroU16::new(64).expect("not zero"),
            release_spacing: Duration::ZERO,
            request_ids: NonZeroU8::new(16).expect("not zero"),
            neighbour_query_timeout: Some(Duration::from_millis(30)),
            neighbour_queries: NeighbourQueries::Once,
            request_period: Duration::from_millis(500),
            request_backoff: NonZeroU8::new(2).expect("not zero"),
            max_request_period: Duration::from_secs(10),
            max_request_retries: NonZeroU8::new(16).expect("not zero"),
            target_replies: TargetReplies::All,
            max_salvage: 15,
            link_removal: LinkRemoval::BothWays,
            source_routes: SourceRoutes::InEach,
            queued_packets: QueuedPackets::Salvaged,
            limits: Limits::DEFAULT,
        }
    }

    /// Returns the behaviour of ns-2.35, by its source and traces. A search asks neighbours, floods a request 30 ms later,
    /// and again after 2 s, 8 s and then every 10 s. Any node that knows a route answers at once. Packets that waited leave
    /// 30 ms apart. Flow state is on: three packets and then one in 5 s announce their source route.
    #[must_use]
    pub fn ns2() -> Self {
        let at_once = CachedReplies::After { per_hop: Duration::ZERO };
        Self {
            cache: RouteCache::Paths(PathCache {
                cached_replies: at_once,
                learnt_directions: LearntDirections::Forward,
                unsalvageable_packets: UnsalvageablePackets::QueryNeighbours,
                failed_control: FailedControl::Salvaged,
                ..PathCache::RFC4728
            }),
            gratuitous_jitter: Duration::ZERO,
            originated_jitter: Duration::ZERO,
            release_spacing: Duration::from_millis(30),
            link_removal: LinkRemoval::OneWay,
            source_routes: SourceRoutes::Announced { packets: 3, every: Duration::from_secs(5) },
            neighbour_queries: NeighbourQueries::EachTime,
            request_period: Duration::from_secs(2),
            request_backoff: NonZeroU8::new(4).expect("not zero"),
            ..Self::rfc4728()
        }
    }

    /// Returns whether the machine wants to receive packets for other nodes.
    #[must_use]
    pub const fn is_tapped(&self) -> bool {
        matches!(self.cache, RouteCache::Paths(PathCache { tap: Tap::On, .. }))
    }

    /// Returns the same configuration without a route cache, as [`NoCache::DOOR`].
    #[must_use]
    pub const fn without_cache(self) -> Self {
        Self { cache: RouteCache::Off(NoCache::DOOR), ..self }
    }
}
