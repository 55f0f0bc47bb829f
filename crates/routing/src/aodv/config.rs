//! Every parameter of an AODV machine, and the presets.

use core::num::NonZeroU16;
use hopline_core::Duration;
use hopline_wire::aodv::Message;

/// Detection of a lost neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkSensing {
    /// Link-layer feedback: a unicast frame that was given up (RFC 3561 §6.10).
    LinkLayer,
    /// Missing HELLO messages (§6.9). Reports of the link layer are ignored, except that a packet they bring back is
    /// dropped.
    Hello(Hello),
    /// Link-layer feedback or missing HELLO messages, whichever comes first.
    Both(Hello),
}

impl LinkSensing {
    /// The HELLO parameters, if HELLO is used.
    #[must_use]
    pub const fn hello(&self) -> Option<&Hello> {
        match self {
            Self::LinkLayer => None,
            Self::Hello(hello) | Self::Both(hello) => Some(hello),
        }
    }
}

/// HELLO messages (RFC 3561 §6.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// HELLO_INTERVAL: a node without a broadcast for this long sends a HELLO. Not zero. Default 1 s.
    pub interval: Duration,
    /// ALLOWED_HELLO_LOSS: a neighbour that was silent for this many intervals, and for `slack`, is lost. Default 2.
    pub allowed_loss: u8,
    /// Addition to the permitted silence, so that a HELLO delayed by jitter, a queue or the medium does not count as lost.
    /// With half an interval, the default, a delay below half an interval never counts as a loss, and the loss of
    /// `allowed_loss` HELLOs in a row always does. RFC 3561: 0. AODV-UU: 50 ms (`HELLO_DELAY` in `aodv_hello.c`).
    pub slack: Duration,
    /// Nodes that send HELLO messages. Default [`HelloSenders::OnActiveRoute`].
    pub senders: HelloSenders,
    /// Instants at which a node may send a HELLO message. Default [`HelloSchedule::AfterBroadcast`].
    pub schedule: HelloSchedule,
    /// Packets of a neighbour that end its silence. Default [`HelloLiveness::AnyPacket`].
    pub liveness: HelloLiveness,
}

impl Hello {
    /// The letter of §6.9 with the defaults of §10. Checks follow each other after exactly HELLO_INTERVAL, and a neighbour
    /// may be silent for exactly ALLOWED_HELLO_LOSS intervals: after one lost HELLO the next must not be late.
    pub const RFC3561: Self = Self {
        interval: Duration::from_secs(1),
        allowed_loss: 2,
        slack: Duration::ZERO,
        senders: HelloSenders::OnActiveRoute,
        schedule: HelloSchedule::Periodic,
        liveness: HelloLiveness::AnyPacket,
    };

    /// AODV-UU 0.9.6 on Linux with its default options: `aodv_hello.c`, `aodv_neighbor.c`, `params.h`, `main.c`. Two
    /// jittered intervals are 0 to 100 ms longer than 2 s. In half of all cases its slack is therefore too short for one
    /// lost HELLO.
    pub const AODV_UU: Self = Self {
        slack: Duration::from_millis(50),
        senders: HelloSenders::Always,
        schedule: HelloSchedule::AfterBroadcast { jitter: Duration::from_millis(100) },
        liveness: HelloLiveness::AodvMessage,
        ..Self::RFC3561
    };

    /// Returns HELLO messages with this interval; a neighbour is given up after two losses in a row.
    #[must_use]
    pub const fn every(interval: Duration) -> Self {
        Self {
            interval,
            slack: Duration::from_nanos(interval.as_nanos() / 2),
            schedule: HelloSchedule::AfterBroadcast { jitter: Duration::ZERO },
            ..Self::RFC3561
        }
    }

    /// Lifetime in HELLO messages: ALLOWED_HELLO_LOSS · HELLO_INTERVAL (§6.9).
    #[must_use]
    pub const fn lifetime(&self) -> Duration {
        self.interval.saturating_mul(self.allowed_loss as u64)
    }

    /// Returns the permitted silence of a neighbour.
    #[must_use]
    pub fn allowed_silence(&self) -> Duration {
        self.lifetime() + self.slack
    }
}

/// Packets of a neighbour that end its silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelloLiveness {
    /// Every packet that it transmits to this node or to all: HELLO messages or otherwise (RFC 3561 §6.9).
    AnyPacket,
    /// AODV messages only. In AODV-UU the lines that would count data packets are commented out (`routing_table.c`).
    AodvMessage,
}

/// Instants at which a node may say HELLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelloSchedule {
    /// At a check every interval, unless the node has broadcast a message within the last interval (RFC 3561 §6.9). Almost
    /// two intervals may pass between such a broadcast and the next HELLO.
    Periodic,
    /// One interval after the latest broadcast of any kind (AODV-UU).
    AfterBroadcast {
        /// Width of the random part of the HELLO interval, centred on the interval. A HELLO that is due sooner than one
        /// interval after the latest broadcast is postponed. 0: HELLO messages have the jitter of other broadcasts. AODV-UU:
        /// 100 ms (`JITTER_INTERVAL`).
        jitter: Duration,
    },
}

/// Nodes that send HELLO messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelloSenders {
    /// Nodes on an active route, as RFC 3561 §6.9 recommends.
    OnActiveRoute,
    /// All nodes, always.
    Always,
}

/// Reach and timeout of each attempt to find a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscoverySchedule {
    /// RFC 3561 §6.4 and §6.3: rings from `ttl_start` (or beyond the last known distance) up to `ttl_threshold`, each
    /// waiting RING_TRAVERSAL_TIME; then the whole network, waiting NET_TRAVERSAL_TIME, doubled for every retry.
    Rfc,
    /// ns-2.35: the whole network at once for a destination without any earlier route (its "last hop count" starts at
    /// infinity); rings around the last known distance otherwise. The timeout is twice the time to live, times the mean time
    /// per hop in the last three discoveries (at first NODE_TRAVERSAL_TIME), times the number of network-wide attempts so
    /// far, at most `longest_wait`. After the last attempt no request is sent for `longest_wait`.
    Ns2 {
        /// MAX_RREQ_TIMEOUT. ns-2: 10 s.
        longest_wait: Duration,
    },
}

/// Time at which expiry takes effect on routes and discoveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiryGranularity {
    /// At the instant itself.
    Exact,
    /// At multiples of this period: an expired route is used, and an unanswered request not repeated, before the
    /// next tick. A packet that asks for a route repeats an overdue request at once. ns-2: 0.5 s.
    Ticks(Duration),
}

/// Lifetime of the reverse route to the originator of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReverseLifetime {
    /// RFC 3561 §6.5: 2 · NET_TRAVERSAL_TIME − 2 · hops · NODE_TRAVERSAL_TIME.
    Rfc,
    /// A fixed time. ns-2: 6 s (REV_ROUTE_LIFE).
    Fixed(Duration),
}

/// Route to the neighbour that transmitted an AODV message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreviousHopRoute {
    /// A route to it, without sequence number (RFC 3561 §6.5, §6.7).
    Learnt,
    /// Nothing (ns-2).
    Ignored,
}

/// Routes that a forwarded data packet renews.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewedRoutes {
    /// The routes to destination, source, next hop and previous hop (RFC 3561 §6.2).
    WholePath,
    /// The route to the destination (ns-2).
    Destination,
}

/// Sequence number that a destination puts into its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplySequence {
    /// RFC 3561 §6.6.1: one more, only if the request asks for exactly one more than the current number; never less
    /// than the request's.
    Rfc,
    /// One more than the larger of its own and the request's, in every reply (ns-2), so that the latest reply always
    /// wins over earlier, shorter ones.
    AlwaysAdvance,
}

/// Nodes that may answer a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyPolicy {
    /// Relays with a fresh route, and the destination.
    Intermediate,
    /// The same. A relay that answers also informs the destination (G flag, RFC 3561 §6.6.3).
    IntermediateGratuitous,
    /// The destination only (D flag).
    DestinationOnly,
}

/// Acknowledgement of replies by RREP-ACK (RFC 3561 §6.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyAck {
    /// No reply asks for it.
    Never,
    /// Each reply asks for it; a neighbour that does not answer within NEXT_HOP_WAIT is put on the blacklist.
    Always,
}

/// Repair of a broken route by the node at the break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalRepair {
    /// No repair: the route is given up and its precursors are informed.
    Off,
    /// RFC 3561 §6.12.
    Rfc {
        /// MAX_REPAIR_TTL: routes longer than this are not repaired, in hops. Default 0.3 · NET_DIAMETER.
        max_hops: u8,
        /// LOCAL_ADD_TTL: margin of the request's time to live. Default 2.
        add_ttl: u8,
    },
    /// As ns-2.35: an ordinary discovery, if the packet has travelled farther than it has still to go. The queue and other
    /// routes over the lost neighbour are left as they are. No node is told of a failure before another packet arrives for
    /// the destination.
    PastHalfway {
        /// Sequence number in the request of the repair.
        number: RepairSequence,
        /// Time at which an unsuccessful repair ends.
        end: RepairEnd,
    },
}

impl LocalRepair {
    /// Returns whether a route under repair keeps its sequence number and counts as known.
    pub(super) const fn keeps_sequence(&self) -> bool {
        matches!(self, Self::PastHalfway { number: RepairSequence::Ns2Kept, .. })
    }
}

/// Sequence number in the request of a repairing node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairSequence {
    /// One more than that of the broken route, as after any break (RFC 3561 §6.12). A node with a route through the broken
    /// link cannot answer.
    Advanced,
    /// That of the broken route, which still counts as known. Requests are answered with it, and only a higher number or
    /// fewer hops replace it. The neighbours on both sides therefore answer from their tables, their answers are refused as
    /// no better, and no neighbour relays the request. Unless the broken link was the last one, the repair cannot succeed
    /// before the neighbours' routes have expired. ns-2.35 changes nothing but the flag of the entry (`local_rt_repair` in
    /// `aodv.cc`). In an idle table, the pause is about 10 s.
    Ns2Kept,
}

/// Time at which an unsuccessful repair ends; from then on packets are refused instead of buffered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairEnd {
    /// With its discovery.
    WithDiscovery,
    /// After as long as the run had lasted when the wait for its request was to end. Until then, the packets that keep
    /// arriving cause one discovery after another, and their source is not informed. ns-2.35 sets a timer to an absolute
    /// time in place of an interval. Each packet that meets the broken link sets a timer of its own. One that expires during
    /// a later repair ends that repair.
    Ns2AbsoluteTimer,
}

/// Broken routes that a route error lists after a link failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorScope {
    /// Routes with precursors; sent by unicast if there is only one precursor (RFC 3561 §6.11).
    Precursors,
    /// All, by broadcast, even without known precursors (ns-2).
    AllBroadcast,
}

/// Time at which packets for a lost neighbour are removed from the interface queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuePurge {
    /// Never: each packet fails by itself.
    Never,
    /// At the link failure.
    OnLinkFailure,
    /// At the link failure, and also when that neighbour reports a broken route (ns-2).
    OnLinkFailureAndRouteError,
}

/// Reaction to the failed transmission of an AODV message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlFailure {
    /// The link is broken; if it was a reply, the neighbour goes on the blacklist (RFC 3561 §6.8, §6.11).
    LinkBreak,
    /// Nothing (ns-2: only data packets report failures).
    Ignored,
}

/// Length of an AODV message as an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    /// RFC 3561 bytes in UDP in IPv4: 28 bytes more.
    UdpIpv4,
    /// The sizes ns-2 charges: no UDP header, and 28-byte requests and 24-byte replies under a 20-byte IP header.
    Ns2,
}

impl Encapsulation {
    /// Bytes of `message` including the IP header.
    #[must_use]
    pub fn packet_len(self, message: &Message) -> usize {
        match (self, message) {
            (Self::UdpIpv4, _) => 28 + message.wire_len(),
            (Self::Ns2, Message::Rreq(_) | Message::Rrep(_)) => 20 + 4 + message.wire_len(),
            (Self::Ns2, _) => 20 + message.wire_len(),
        }
    }
}

/// Bounds on memory. Entries beyond them are refused and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Routes. Default 65,536.
    pub routes: u32,
    /// Originators for which request ids are remembered. Default 65,536.
    pub originators: u32,
    /// Concurrent route discoveries. Default 1,024.
    pub searches: u32,
    /// Neighbours watched by HELLO, on the blacklist, or owing an RREP-ACK; each. Default 1,024.
    pub neighbours: u32,
    /// Messages waiting for their jitter to pass. Default 256.
    pub departures: u32,
    /// Precursors of one route. Default 256.
    pub precursors: u32,
    /// Timers of repairs ([`RepairEnd::Ns2AbsoluteTimer`]). Default 1,024.
    pub repair_ends: u32,
}

impl Limits {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        routes: 65_536,
        originators: 65_536,
        searches: 1_024,
        neighbours: 1_024,
        departures: 256,
        precursors: 256,
        repair_ends: 1_024,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Parameters of an AODV machine. Names in capitals are those of RFC 3561 §10; [`Config::rfc3561`] has its defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Detection of link failures. Default: link layer.
    pub link_sensing: LinkSensing,
    /// ACTIVE_ROUTE_TIMEOUT: lifetime of a route after its last use. RFC 3 s, ns-2 10 s.
    pub active_route_timeout: Duration,
    /// MY_ROUTE_TIMEOUT: lifetime in the replies of a destination. RFC 6 s, ns-2 10 s.
    pub my_route_timeout: Duration,
    /// DELETE_PERIOD: time for which a broken route is kept. RFC 5 · max(ACTIVE_ROUTE_TIMEOUT, HELLO_INTERVAL) = 15 s; ns-2
    /// for ever ([`Duration::MAX`]). Too short a period endangers loop freedom.
    pub delete_period: Duration,
    /// NET_DIAMETER: most hops of any path, and the time to live of network-wide requests. RFC 35, ns-2 30.
    pub net_diameter: u8,
    /// NODE_TRAVERSAL_TIME: conservative time for one hop. RFC 40 ms, ns-2 30 ms.
    pub node_traversal_time: Duration,
    /// PATH_DISCOVERY_TIME: time for which a request is remembered. RFC 2 · NET_TRAVERSAL_TIME = 5.6 s, ns-2 6 s.
    pub path_discovery_time: Duration,
    /// BLACKLIST_TIMEOUT: time for which requests of a neighbour with a unidirectional link are ignored. RFC 5.6 s.
    pub blacklist_timeout: Duration,
    /// NEXT_HOP_WAIT: timeout of an RREP-ACK. RFC NODE_TRAVERSAL_TIME + 10 ms.
    pub next_hop_wait: Duration,
    /// Reach and timeouts of discoveries.
    pub discovery_schedule: DiscoverySchedule,
    /// RREQ_RETRIES: network-wide attempts after the first. RFC 2, ns-2 3.
    pub rreq_retries: u8,
    /// TTL_START: reach of the first ring. RFC 1 (2 with HELLO); without effect under [`DiscoverySchedule::Ns2`].
    pub ttl_start: u8,
    /// TTL_INCREMENT: growth of the ring. 2.
    pub ttl_increment: u8,
    /// TTL_THRESHOLD: largest ring. 7.
    pub ttl_threshold: u8,
    /// TIMEOUT_BUFFER: extra hops in RING_TRAVERSAL_TIME. 2.
    pub timeout_buffer: u8,
    /// RREQ_RATELIMIT: own requests per second; `None`: no limit. RFC 10, ns-2 none.
    pub rreq_rate_limit: Option<NonZeroU16>,
    /// RERR_RATELIMIT: route errors per second; `None`: no limit. RFC 10, ns-2 none.
    pub rerr_rate_limit: Option<NonZeroU16>,
    /// Jitter of broadcasts that respond to a broadcast (relayed requests and route errors): each waits a random time below
    /// this. It keeps neighbours that received the same broadcast from colliding (RFC 5148 §5.3). RFC 3561 says nothing; 10
    /// ms as ns-2.
    pub broadcast_jitter: Duration,
    /// Jitter of broadcasts that this node originates (requests, route errors, HELLO messages): each waits a random time
    /// below this. It keeps neighbours from colliding each time if their applications or timers act at the same instant (RFC
    /// 5148 §5.2). RFC 3561 says nothing; 10 ms as ns-3. ns-2: zero, as its MAC draws a back-off before each frame.
    pub originated_jitter: Duration,
    /// Nodes that may answer requests of this node. Default [`ReplyPolicy::Intermediate`].
    pub reply_policy: ReplyPolicy,
    /// Lifetime of routes back to originators.
    pub reverse_lifetime: ReverseLifetime,
    /// Routes to transmitters of AODV messages.
    pub previous_hop: PreviousHopRoute,
    /// Routes that data packets renew.
    pub renewed_routes: RenewedRoutes,
    /// A destination's sequence number.
    pub reply_sequence: ReplySequence,
    /// RREP-ACK. Default never.
    pub reply_ack: ReplyAck,
    /// Local repair. Default off; ns-2.35 has it compiled in.
    pub local_repair: LocalRepair,
    /// Contents of route errors.
    pub error_scope: ErrorScope,
    /// Clearing of the interface queue.
    pub queue_purge: QueuePurge,
    /// Failed AODV messages.
    pub control_failure: ControlFailure,
    /// Time at which expiry takes effect.
    pub expiry_granularity: ExpiryGranularity,
    /// Packets that wait for routes, all destinations together; a new one displaces the oldest. 64, as ns-2 (the RFC leaves
    /// it open).
    pub buffer_packets: NonZeroU16,
    /// Longest time a packet waits for a route. 30 s, as ns-2 (the RFC leaves it open).
    pub buffer_time: Duration,
    /// Spacing of buffered packets once a reply arrives. RFC 0, ns-2 10 ms (ARP_DELAY).
    pub release_spacing: Duration,
    /// Size of messages on the network.
    pub encapsulation: Encapsulation,
    /// Bounds on memory.
    pub limits: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self::rfc3561()
    }
}

impl Config {
    /// Returns RFC 3561 with the defaults of its §10, link-layer feedback, and without local repair.
    #[must_use]
    pub const fn rfc3561() -> Self {
        Self {
            link_sensing: LinkSensing::LinkLayer,
            active_route_timeout: Duration::from_secs(3),
            my_route_timeout: Duration::from_secs(6),
            delete_period: Duration::from_secs(15),
            net_diameter: 35,
            node_traversal_time: Duration::from_millis(40),
            path_discovery_time: Duration::from_millis(5_600),
            blacklist_timeout: Duration::from_millis(5_600),
            next_hop_wait: Duration::from_millis(50),
            discovery_schedule: DiscoverySchedule::Rfc,
            rreq_retries: 2,
            ttl_start: 1,
            ttl_increment: 2,
            ttl_threshold: 7,
            timeout_buffer: 2,
            rreq_rate_limit: NonZeroU16::new(10),
            rerr_rate_limit: NonZeroU16::new(10),
            broadcast_jitter: Duration::from_millis(10),
            originated_jitter: Duration::from_millis(10),
            reply_policy: ReplyPolicy::Intermediate,
            reverse_lifetime: ReverseLifetime::Rfc,
            previous_hop: PreviousHopRoute::Learnt,
            renewed_routes: RenewedRoutes::WholePath,
            reply_sequence: ReplySequence::Rfc,
            reply_ack: ReplyAck::Never,
            local_repair: LocalRepair::Off,
            error_scope: ErrorScope::Precursors,
            queue_purge: QueuePurge::OnLinkFailure,
            control_failure: ControlFailure::LinkBreak,
            expiry_granularity: ExpiryGranularity::Exact,
            buffer_packets: NonZeroU16::new(64).expect("not zero"),
            buffer_time: Duration::from_secs(30),
            release_spacing: Duration::ZERO,
            encapsulation: Encapsulation::UdpIpv4,
            limits: Limits::DEFAULT,
        }
    }

    /// RFC 3561 with links sensed by HELLO to the letter, and the first ring of 2 hops that §10 then recommends.
    #[must_use]
    pub fn rfc3561_hello() -> Self {
        Self { link_sensing: LinkSensing::Hello(Hello::RFC3561), ttl_start: 2, ..Self::rfc3561() }
    }

    /// Returns RFC 3561 with the HELLO messages and the permitted silence of AODV-UU ([`Hello::AODV_UU`]).
    #[must_use]
    pub fn aodv_uu() -> Self {
        Self { link_sensing: LinkSensing::Hello(Hello::AODV_UU), ..Self::rfc3561_hello() }
    }

    /// The AODV of ns-2.35 as it is compiled by default (`aodv/aodv.h`, `aodv.cc`, `aodv_rqueue.h`): link-layer
    /// feedback, local repair, no gratuitous replies.
    ///
    /// Some oddities are left out. Lifetimes in the replies of relays are cut to whole seconds there. It measures how
    /// long a hop took by a time stamp carried in request and reply; here by the time of the latest request.
    #[must_use]
    pub fn ns2_235() -> Self {
        Self {
            active_route_timeout: Duration::from_secs(10),
            my_route_timeout: Duration::from_secs(10),
            delete_period: Duration::MAX,
            net_diameter: 30,
            node_traversal_time: Duration::from_millis(30),
            path_discovery_time: Duration::from_secs(6),
            discovery_schedule: DiscoverySchedule::Ns2 { longest_wait: Duration::from_secs(10) },
            rreq_retries: 3,
            ttl_start: 5,
            rreq_rate_limit: None,
            rerr_rate_limit: None,
            originated_jitter: Duration::ZERO,
            reverse_lifetime: ReverseLifetime::Fixed(Duration::from_secs(6)),
            previous_hop: PreviousHopRoute::Ignored,
            renewed_routes: RenewedRoutes::Destination,
            reply_sequence: ReplySequence::AlwaysAdvance,
            local_repair: LocalRepair::PastHalfway {
                number: RepairSequence::Ns2Kept,
                end: RepairEnd::Ns2AbsoluteTimer,
            },
            error_scope: ErrorScope::AllBroadcast,
            queue_purge: QueuePurge::OnLinkFailureAndRouteError,
            control_failure: ControlFailure::Ignored,
            expiry_granularity: ExpiryGranularity::Ticks(Duration::from_millis(500)),
            release_spacing: Duration::from_millis(10),
            encapsulation: Encapsulation::Ns2,
            ..Self::rfc3561()
        }
    }

    /// NET_TRAVERSAL_TIME: 2 · NODE_TRAVERSAL_TIME · NET_DIAMETER.
    #[must_use]
    pub const fn net_traversal_time(&self) -> Duration {
        self.node_traversal_time.saturating_mul(2 * self.net_diameter as u64)
    }

    /// RING_TRAVERSAL_TIME: 2 · NODE_TRAVERSAL_TIME · (`ttl` + TIMEOUT_BUFFER).
    #[must_use]
    pub const fn ring_traversal_time(&self, ttl: u8) -> Duration {
        self.node_traversal_time.saturating_mul(2 * (ttl as u64 + self.timeout_buffer as u64))
    }
}
