//! Every parameter of a DSR machine, and the presets.

use core::num::{NonZeroU8, NonZeroU16};
use hopline_core::Duration;

/// Whether routes are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteCache {
    /// Whole paths, as they were learnt (RFC 4728 §4.1, "path cache"); the shortest is taken.
    Paths(PathCache),
    /// None. Every packet that a node sends makes it look for a route, and the first that is found is taken:
    /// "DSR-Cache-off" of the TCP-DOOR paper (§4.2).
    Off(Uncached),
}

/// The path cache, and what lives on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathCache {
    /// Paths it holds; the one that was not used for the longest time makes room. Default 64.
    pub capacity: NonZeroU16,
    /// RouteCacheTimeout: a path that was not used for this long is forgotten. Default 300 s.
    pub timeout: Duration,
    /// What routes are learnt of packets that are for others. Default [`Tap::On`].
    pub tap: Tap,
    /// Which ways along the path of a packet are learnt. Default [`WaysLearnt::Both`].
    pub ways_learnt: WaysLearnt,
    /// What becomes of a packet of another node whose next hop fails where no other path is known. Default
    /// [`Stranded::Dropped`].
    pub stranded: Stranded,
    /// What becomes of replies and errors whose next hop fails. Default [`LostControl::Dropped`].
    pub lost_control: LostControl,
    /// Whether a node that knows a route answers in the target's stead. Default after a delay of 10 ms a hop.
    pub cached_replies: CachedReplies,
    /// Whether a node that hears a packet on a detour tells its source. Default not twice within 1 s.
    pub gratuitous_replies: GratuitousReplies,
}

impl PathCache {
    /// RFC 4728 §9, with a capacity that it leaves open.
    pub const RFC4728: Self = Self {
        capacity: NonZeroU16::new(64).expect("not zero"),
        timeout: Duration::from_secs(300),
        tap: Tap::On,
        ways_learnt: WaysLearnt::Both,
        stranded: Stranded::Dropped,
        lost_control: LostControl::Dropped,
        cached_replies: CachedReplies::After { per_hop: Duration::from_millis(10) },
        gratuitous_replies: GratuitousReplies::On { holdoff: Duration::from_secs(1) },
    };
}

/// Whether a node listens to packets for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tap {
    /// It takes routes, errors and detours from all that it hears (§3.4.1).
    On,
    /// It does not.
    Off,
}

/// Which ways a node learns along the path of a packet that it has or hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaysLearnt {
    /// Onward to its destination and back to its source: links work both ways (§3.3.1).
    Both,
    /// Onward. Back along the record of a request when it is answered, and along a detour when its source is told; a reply's path
    /// by whom the reply is for, and by nodes of the path that hear it pass (ns-2).
    Onward,
}

/// What becomes of a packet of another node whose next hop fails where no other path is known (§8.3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stranded {
    /// It is dropped.
    Dropped,
    /// It waits for a path, and neighbours are asked for one, once; one such packet is dropped each time that another request
    /// would be due (ns-2).
    NeighboursAsked,
}

/// What becomes of replies and errors whose next hop fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostControl {
    /// They are dropped.
    Dropped,
    /// They take another path if one is known, but for replies that tell of the dead link (ns-2).
    Salvaged,
}

/// Whether a node that knows a route answers in the target's stead (§8.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachedReplies {
    /// It does not.
    Off,
    /// It does, after `per_hop` · (h − 1 + r), h being the length of the route and r random below 1; unless it hears that the
    /// initiator uses a route as short (§8.2.5). Zero: at once, as ns-2 does.
    After {
        /// "H". RFC 4728 names no value but a bound that is below a microsecond. Default 10 ms, the jitter of broadcasts.
        per_hop: Duration,
    },
}

/// Whether a node that hears a packet on a detour tells its source of the shorter way (§3.4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GratuitousReplies {
    /// It does not.
    Off,
    /// It does.
    On {
        /// GratReplyHoldoff: not again for the same source and transmitter within this time. Default 1 s.
        holdoff: Duration,
    },
}

/// What is done where no routes are remembered, which the TCP-DOOR paper has in two sentences (§4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uncached {
    /// Who looks for a route. Default [`UncachedRelays::Follow`].
    pub relays: UncachedRelays,
    /// What a search is for. Default [`UncachedSearches::Shared`].
    pub searches: UncachedSearches,
    /// Of packets whose next hop fails. Default [`UncachedSalvage::SourceOnly`].
    pub salvage: UncachedSalvage,
    /// Where random delays come from. Default [`UncachedJitter::Fresh`].
    pub jitter: UncachedJitter,
}

impl Uncached {
    /// What is left of DSR if no search of the cache finds anything, "by disabling all the findRoute() routines": ns-2's relays
    /// call none for a packet that has a source route.
    pub const DOOR: Self = Self {
        relays: UncachedRelays::Follow,
        searches: UncachedSearches::Shared,
        salvage: UncachedSalvage::SourceOnly,
        jitter: UncachedJitter::Fresh,
    };
}

/// Where random delays come from, where no routes are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UncachedJitter {
    /// Each is drawn anew.
    Fresh,
    /// From the node and a tenth of a second alone, so that what a flood finds depends on when it happens, and not on what was
    /// sent before (TCP-DOOR §4.2).
    ByMoment,
}

/// What a node does with a packet that it passes on, where no routes are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UncachedRelays {
    /// It follows the source route of the packet.
    Follow,
    /// It looks for a route, as for a packet of its own: "each time a node sends or forwards a packet".
    Search,
}

/// Which packets a search finds a route for, where no routes are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UncachedSearches {
    /// All that wait for its target when the first reply comes.
    Shared,
    /// The one that has waited longest; then the next is looked for.
    PerPacket,
}

/// What becomes of a packet whose next hop does not answer, where no routes are remembered. Where they are, a node takes
/// another route that it knows (§8.3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UncachedSalvage {
    /// Its source looks for a route again; a relay, whose search of its cache finds nothing, drops it.
    SourceOnly,
    /// Whoever has it looks for a route again, as often as [`Config::max_salvage`] allows.
    Everywhere,
}

/// To which copies of a request its target replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetReplies {
    /// To each, since each has come another way (§8.2.2).
    All,
    /// To the first.
    First,
}

/// What is forgotten of a link that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadLink {
    /// Both its directions: links work both ways or not at all.
    BothWays,
    /// The direction that failed (ns-2).
    OneWay,
}

/// Which packets tell their source route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceRoutes {
    /// Each.
    InEach,
    /// The first ones over a way, and then one now and again: the flow is established (RFC 4728 §7). Nodes learn nothing of the
    /// others; detours are told by relays, which know the flow, and not by the target. On the air they are as long as ever.
    Announced {
        /// Packets that tell, before the flow is established.
        packets: u8,
        /// Time after which one tells again.
        every: Duration,
    },
}

/// Whom a search that goes on asks first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighboursAsked {
    /// Its first request goes to neighbours alone, and no later one.
    Once,
    /// Before each request to everybody one goes to neighbours alone, and intervals are counted from that one (ns-2).
    EachTime,
}

/// What happens to the packets that wait in the interface queue for a neighbour that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuedPackets {
    /// They are treated as the one that failed (§8.3.5).
    Salvaged,
    /// They are tried.
    Kept,
}

/// Bounds on memory. What does not fit is refused or displaces the oldest, and is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// RequestTableSize: initiators whose requests are remembered, and targets that are looked for. Default 64.
    pub request_table: u32,
    /// Messages waiting for their jitter to pass. Default 256.
    pub departures: u32,
    /// Sources and transmitters told of detours. Default 64.
    pub gratuitous_table: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { request_table: 64, departures: 256, gratuitous_table: 64 }
    }
}

/// Parameters of a DSR machine. Names in capitals or run together are those of RFC 4728 §9, whose values
/// [`Config::rfc4728`] has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Whether routes are remembered. Default: paths.
    pub cache: RouteCache,
    /// Most nodes between source and target of a route, 1 to 61. RFC 4728: what fits (DiscoveryHopLimit 255); default 16, ns-2.
    pub max_path: NonZeroU8,
    /// BroadcastJitter: a request is passed on after a random time below this. 10 ms.
    pub broadcast_jitter: Duration,
    /// Requests that this node originates wait a random time below this, so that neighbours whose applications or timers act at the
    /// same instant do not collide each time (RFC 5148 §5.2). RFC 4728 says nothing; default BroadcastJitter, 10 ms. ns-2: zero, as
    /// its MAC draws a back-off before each frame.
    pub originated_jitter: Duration,
    /// The target of a request replies after a random time below this. RFC 4728 §8.2.4: BroadcastJitter, 10 ms.
    pub reply_jitter: Duration,
    /// The same of whoever hears a packet on a detour. 10 ms; ns-2: at once.
    pub gratuitous_jitter: Duration,
    /// SendBufferTimeout: how long a packet waits for a route. 30 s.
    pub buffer_time: Duration,
    /// Packets that wait for routes. RFC 4728 names no number; default 64, ns-2.
    pub buffer_packets: NonZeroU16,
    /// Time from one packet to the next where several that waited have a route at last. None; ns-2: 30 ms, so that packets made
    /// meanwhile overtake them.
    pub release_spacing: Duration,
    /// RequestTableIds: requests remembered of each initiator. 16.
    pub request_ids: NonZeroU8,
    /// Whether the first request goes to neighbours only, and for how long they may answer. 30 ms
    /// (NonpropRequestTimeout); `None`: the first request is flooded.
    pub neighbours_first: Option<Duration>,
    /// Whether that is repeated. Default once.
    pub neighbours_asked: NeighboursAsked,
    /// RequestPeriod: time from the first flooded request to the next. 500 ms; ns-2: 2 s.
    pub request_period: Duration,
    /// Factor from each such time to the following. 2; ns-2: 4.
    pub request_backoff: NonZeroU8,
    /// MaxRequestPeriod: longest time between two requests. 10 s.
    pub max_request_period: Duration,
    /// MaxRequestRexmt: requests, the first one included, before packets for the target are dropped. 16.
    pub max_request_retries: NonZeroU8,
    /// To which copies of a request its target replies. Default all.
    pub target_replies: TargetReplies,
    /// MAX_SALVAGE_COUNT: how often a packet may be given another route. At most 15. 15.
    pub max_salvage: u8,
    /// What is forgotten of a link that failed. Default both its directions.
    pub dead_link: DeadLink,
    /// Which packets tell their source route. Default each.
    pub source_routes: SourceRoutes,
    /// Of packets queued for a neighbour that is gone. Default salvaged.
    pub queued_packets: QueuedPackets,
    /// Bounds on memory.
    pub limits: Limits,
}

impl Config {
    /// RFC 4728 §9.
    #[must_use]
    pub fn rfc4728() -> Self {
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
            neighbours_first: Some(Duration::from_millis(30)),
            neighbours_asked: NeighboursAsked::Once,
            request_period: Duration::from_millis(500),
            request_backoff: NonZeroU8::new(2).expect("not zero"),
            max_request_period: Duration::from_secs(10),
            max_request_retries: NonZeroU8::new(16).expect("not zero"),
            target_replies: TargetReplies::All,
            max_salvage: 15,
            dead_link: DeadLink::BothWays,
            source_routes: SourceRoutes::InEach,
            queued_packets: QueuedPackets::Salvaged,
            limits: Limits::default(),
        }
    }

    /// As ns-2.35 behaves, by its source and traces: a search asks neighbours and, 30 ms later, everybody; again after 2 s, 8 s and
    /// then 10 s each. Whoever knows a route answers at once. Packets that waited leave 30 ms apart. Three packets and then one in
    /// 5 s tell their source route, for flow state is on.
    #[must_use]
    pub fn ns2() -> Self {
        let at_once = CachedReplies::After { per_hop: Duration::ZERO };
        Self {
            cache: RouteCache::Paths(PathCache {
                cached_replies: at_once,
                ways_learnt: WaysLearnt::Onward,
                stranded: Stranded::NeighboursAsked,
                lost_control: LostControl::Salvaged,
                ..PathCache::RFC4728
            }),
            gratuitous_jitter: Duration::ZERO,
            originated_jitter: Duration::ZERO,
            release_spacing: Duration::from_millis(30),
            dead_link: DeadLink::OneWay,
            source_routes: SourceRoutes::Announced { packets: 3, every: Duration::from_secs(5) },
            neighbours_asked: NeighboursAsked::EachTime,
            request_period: Duration::from_secs(2),
            request_backoff: NonZeroU8::new(4).expect("not zero"),
            ..Self::rfc4728()
        }
    }

    /// Whether the machine wants to hear packets for others.
    #[must_use]
    pub const fn is_tapped(&self) -> bool {
        matches!(self.cache, RouteCache::Paths(PathCache { tap: Tap::On, .. }))
    }

    /// The same with no routes remembered, as [`Uncached::DOOR`].
    #[must_use]
    pub const fn without_cache(self) -> Self {
        Self { cache: RouteCache::Off(Uncached::DOOR), ..self }
    }
}
