//! Routing of packets: `[routing]`.

use super::super::schema::Default::Integer;
use super::{Key, MAX_S};
use crate::choice;
use crate::choice::{Choice, Chosen};
use crate::field::Field;
use crate::schema::{Exception, Literal, of_preset};
use hopline_core::Duration;
use hopline_routing::aodv::config::{HelloLiveness, HelloSchedule, HelloSenders};
use hopline_routing::dsr::config::{
    FailedControl, LearntDirections, LinkRemoval, NeighbourQueries, NoCacheJitter, NoCacheRelays,
    NoCacheSalvage, NoCacheSearches, QueuedPackets, TargetReplies, UnsalvageablePackets,
};
use hopline_routing::{aodv as of_aodv, dsr as of_dsr, olsr as of_olsr};
use hopline_sim::spec::FailureNotification;

const RFC3561: of_aodv::Config = of_aodv::Config::rfc3561();
const RFC3626: of_olsr::Config = of_olsr::Config::rfc3626();
const RFC4728: of_dsr::Config = of_dsr::Config::rfc4728();
const HYSTERESIS: of_olsr::config::Hysteresis = of_olsr::config::Hysteresis::RFC3626;
const PATHS: of_dsr::config::PathCache = of_dsr::config::PathCache::RFC4728;

/// Routing protocol of [`of_routing::PROTOCOL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Shortest paths over the first positions.
    Static,
    /// RFC 3561.
    Aodv,
    /// RFC 3626.
    Olsr,
    /// RFC 4728.
    Dsr,
}

/// Keys of [`ROUTING`] that always have a value.
pub mod of_routing {
    use super::*;

    /// `protocol`.
    pub const PROTOCOL: Chosen<Protocol> = choice!(
        "protocol",
        {
            "static" => Protocol::Static,
            "aodv" => Protocol::Aodv,
            "olsr" => Protocol::Olsr,
            "dsr" => Protocol::Dsr,
        },
        "static: shortest paths over the first positions",
    )
    .with_default("static");
    /// `extra_header_bytes`.
    pub const EXTRA_HEADER_BYTES: Field<u64> = Field::integer(
        Key::integer(
            "extra_header_bytes",
            0,
            1000,
            "bytes of each packet beyond its headers; ns-2's DSDV: 20",
        )
        .with_default(Integer(0)),
    );
    /// `failure_notification`.
    pub const FAILURE_NOTIFICATION: Chosen<FailureNotification> = choice!(
        "failure_notification",
        { "none" => FailureNotification::None, "elfn" => FailureNotification::Elfn },
        "elfn: transports are notified of lost routes: by AODV, OLSR or DSR, also of their return, or with static routes by ICMP",
    )
    .with_default("none");
}

/// `[routing]`.
pub const ROUTING: &[Key] = &[
    of_routing::PROTOCOL.key,
    of_routing::EXTRA_HEADER_BYTES.key,
    of_routing::FAILURE_NOTIFICATION.key,
    Key::text(
        "gateway",
        "with aodv, olsr and dsr: the node with a [[link]] through which packets leave the wireless network and come in",
    ).derived("of each node the nearest in hops at the start"),
    Key::table("aodv", AODV, "parameters of AODV"),
    Key::table("olsr", OLSR, "parameters of OLSR"),
    Key::table("dsr", DSR, "parameters of DSR"),
];

/// Keys of [`AODV`] that always have a value.
pub mod aodv {
    use super::*;

    /// `preset`.
    pub const PRESET: Chosen<fn() -> of_aodv::Config> = choice!(
        "preset",
        {
            "rfc3561" => of_aodv::Config::rfc3561,
            "rfc3561-hello" => of_aodv::Config::rfc3561_hello,
            "aodv-uu" => of_aodv::Config::aodv_uu,
            "ns2-2.35" => of_aodv::Config::ns2_235,
        },
        "starting point; aodv-uu: rfc3561-hello with the HELLO messages of AODV-UU",
    )
    .with_default("rfc3561");
    /// `hello_when`.
    pub const HELLO_WHEN: Choice<HelloSenders> = choice!(
        "hello_when",
        { "on-active-route" => HelloSenders::OnActiveRoute, "always" => HelloSenders::Always },
        "nodes that send HELLO",
    )
    .default_except("on-active-route", &[Exception::new("of aodv-uu", Literal::Word("always"))]);
    /// `hello_schedule`.
    pub const HELLO_SCHEDULE: Choice<HelloSchedule> = choice!(
        "hello_schedule",
        {
            "periodic" => HelloSchedule::Periodic,
            "after-broadcast" => HelloSchedule::AfterBroadcast { jitter: Duration::ZERO },
        },
        "periodic: a check each interval sends HELLO if the node has broadcast nothing for an interval, RFC 3561 §6.9; after-broadcast: one interval after its latest broadcast",
    ).default_except("after-broadcast", &[Exception::new("of rfc3561-hello", Literal::Word("periodic"))]);
    /// `neighbour_liveness`.
    pub const SIGN_OF_LIFE: Choice<HelloLiveness> = choice!(
        "neighbour_liveness",
        { "any-packet" => HelloLiveness::AnyPacket, "aodv-message" => HelloLiveness::AodvMessage },
        "packets of a neighbour, to this node or to all, that end its silence; any-packet: RFC 3561 §6.9",
    )
    .formerly(&["sign_of_life"])
    .default_except("any-packet", &[Exception::new("of aodv-uu", Literal::Word("aodv-message"))]);
}

/// `[routing.aodv]`.
pub const AODV: &[Key] = &of_preset("that of `preset`", [
    aodv::PRESET.key,
    Key::word("link_sensing", &["link-layer", "hello", "both"], "detection of link failures"),
    Key::number("hello_interval_s", 0.01, 3600.0, "HELLO_INTERVAL"),
    Key::integer("allowed_hello_loss", 1, 255, "ALLOWED_HELLO_LOSS"),
    Key::number(
        "hello_slack_s",
        0.0,
        3600.0,
        "a neighbour is removed after allowed_hello_loss silent intervals and this slack, so that one lost HELLO and the delay of the next do not break a link",
    ).derived("half an interval, of rfc3561-hello: 0, of aodv-uu: 0.05"),
    aodv::HELLO_WHEN.key,
    aodv::HELLO_SCHEDULE.key,
    Key::number(
        "hello_jitter_s",
        0.0,
        3600.0,
        "with hello_schedule = \"after-broadcast\": width of the random part of the interval; 0: the delay of other broadcasts of the node",
    ).default_except(Literal::Number(0.0), &[Exception::new("of aodv-uu", Literal::Number(0.1))]),
    aodv::SIGN_OF_LIFE.key,
    Key::number("active_route_timeout_s", 0.01, MAX_S, "ACTIVE_ROUTE_TIMEOUT"),
    Key::number("my_route_timeout_s", 0.01, MAX_S, "MY_ROUTE_TIMEOUT"),
    Key::integer("net_diameter", 1, 255, "NET_DIAMETER"),
    Key::number("node_traversal_time_s", 0.000_1, 10.0, "NODE_TRAVERSAL_TIME"),
    Key::integer("rreq_retries", 0, 255, "RREQ_RETRIES"),
    Key::integer("ttl_start", 1, 255, "TTL_START"),
    Key::number(
        "broadcast_jitter_s",
        0.0,
        10.0,
        "random delay of relayed requests and route errors, below this",
    ).default(Literal::seconds(RFC3561.broadcast_jitter)),
    Key::number(
        "originated_jitter_s",
        0.0,
        10.0,
        "random delay of broadcasts that a node originates (requests, route errors, HELLO), below this, so that synchronous broadcasts of neighbours do not always collide",
    ).default_except(Literal::seconds(RFC3561.originated_jitter), &[Exception::new("of ns2-2.35", Literal::Text("0 over a MAC that draws a back-off before each frame (mac.first_access)"))]),
    Key::integer("buffer_packets", 1, 65_535, "packets buffered for a route"),
    Key::number("buffer_time_s", 0.0, MAX_S, "longest wait of a packet for a route"),
]);

/// Keys of [`OLSR`] that always have a value.
pub mod olsr {
    use super::*;

    /// `link_sensing`.
    pub const LINK_SENSING: Choice<of_olsr::config::LinkSensing> = choice!(
        "link_sensing",
        {
            "hello" => of_olsr::config::LinkSensing::Hello,
            "hello-and-link-layer" => of_olsr::config::LinkSensing::HelloAndLinkLayer,
        },
        "detection of link failures",
    )
    .default("hello");
    /// `preset`.
    pub const PRESET: Chosen<fn() -> of_olsr::Config> = choice!(
        "preset",
        {
            "rfc3626" => of_olsr::Config::rfc3626 as fn() -> of_olsr::Config,
        },
        "starting point",
    )
    .with_default("rfc3626");
}

/// `[routing.olsr]`.
pub const OLSR: &[Key] = &[
    olsr::PRESET.key,
    olsr::LINK_SENSING.key,
    Key::number("hello_interval_s", 0.01, 1000.0, "HELLO_INTERVAL")
        .default(Literal::seconds(RFC3626.hello_interval)),
    Key::number("tc_interval_s", 0.01, 1000.0, "TC_INTERVAL").default(Literal::seconds(RFC3626.tc_interval)),
    Key::integer("neighbour_hold_intervals", 1, 255, "NEIGHB_HOLD_TIME in HELLO intervals")
        .default(Literal::Integer(RFC3626.neighbour_hold_intervals.get() as u64)),
    Key::integer("topology_hold_intervals", 1, 255, "TOP_HOLD_TIME in TC intervals")
        .default(Literal::Integer(RFC3626.topology_hold_intervals.get() as u64)),
    Key::number("duplicate_hold_time_s", 0.01, MAX_S, "DUP_HOLD_TIME")
        .default(Literal::seconds(RFC3626.duplicate_hold_time)),
    Key::number("max_jitter_s", 0.0, 1000.0, "MAXJITTER").derived("a quarter of hello_interval_s"),
    Key::integer("willingness", 0, 7, "of every node to forward for other nodes")
        .default(Literal::Integer(3)),
    Key::word("hysteresis", &["off", "on"], "whether links must prove their quality")
        .default(Literal::Word("off")),
    Key::number("hysteresis_scaling", 0.001, 0.999, "HYST_SCALING: weight of the latest packet")
        .default(Literal::Number(HYSTERESIS.scaling)),
    Key::number("hysteresis_threshold_high", 0.0, 1.0, "HYST_THRESHOLD_HIGH: a link is used")
        .default(Literal::Number(HYSTERESIS.threshold_high)),
    Key::number("hysteresis_threshold_low", 0.0, 1.0, "HYST_THRESHOLD_LOW: it no longer is")
        .default(Literal::Number(HYSTERESIS.threshold_low)),
    Key::word(
        "early_tc",
        &["never", "on-link-failure"],
        "whether a TC message reports a lost link before its time",
    )
    .default(Literal::Word("on-link-failure")),
    Key::number("early_tc_spacing_s", 0.0, 1000.0, "least time between TC messages")
        .derived("a quarter of tc_interval_s"),
];

/// Keys of [`DSR`] that always have a value.
pub mod dsr {
    use super::*;

    /// `target_replies`.
    pub const TARGET_REPLIES: Choice<TargetReplies> = choice!(
        "target_replies",
        { "all" => TargetReplies::All, "first" => TargetReplies::First },
        "copies of a request that the target answers",
    )
    .default("all");
    /// `queued_packets`.
    pub const QUEUED_PACKETS: Choice<QueuedPackets> = choice!(
        "queued_packets",
        { "salvaged" => QueuedPackets::Salvaged, "kept" => QueuedPackets::Kept },
        "packets queued for a lost neighbour",
    )
    .default("salvaged");
    /// `nonpropagating_requests`.
    pub const NEIGHBOURS_ASKED: Choice<NeighbourQueries> = choice!(
        "nonpropagating_requests",
        { "once" => NeighbourQueries::Once, "each-time" => NeighbourQueries::EachTime },
        "each-time: before each flood, and intervals count from there",
    )
    .formerly(&["neighbours_asked"])
    .default_except("once", &[Exception::new("of ns2-2.35", Literal::Word("each-time"))]);
    /// `dead_link`.
    pub const DEAD_LINK: Choice<LinkRemoval> = choice!(
        "dead_link",
        { "both-ways" => LinkRemoval::BothWays, "one-way" => LinkRemoval::OneWay },
        "directions of a failed link that are removed",
    )
    .default_except("both-ways", &[Exception::new("of ns2-2.35", Literal::Word("one-way"))]);
    /// `learned_directions`.
    pub const WAYS_LEARNT: Choice<LearntDirections> = choice!(
        "learned_directions",
        { "both" => LearntDirections::Both, "onward" => LearntDirections::Forward },
        "directions learned from a packet's path; onward: the way back only from nodes that this node answers",
    )
    .formerly(&["ways_learnt"])
    .default_except("both", &[Exception::new("of ns2-2.35", Literal::Word("onward"))]);
    /// `stranded`.
    pub const STRANDED: Choice<UnsalvageablePackets> = choice!(
        "unsalvageable_packets",
        { "dropped" => UnsalvageablePackets::Dropped, "neighbours-asked" => UnsalvageablePackets::QueryNeighbours },
        "packets of a relay with a failed next hop and no other path",
    )
    .formerly(&["stranded"])
    .default_except("dropped", &[Exception::new("of ns2-2.35", Literal::Word("neighbours-asked"))]);
    /// `failed_control_packets`.
    pub const LOST_CONTROL: Choice<FailedControl> = choice!(
        "failed_control_packets",
        { "dropped" => FailedControl::Dropped, "salvaged" => FailedControl::Salvaged },
        "replies and errors with a failed next hop and another path",
    )
    .formerly(&["lost_control"])
    .default_except("dropped", &[Exception::new("of ns2-2.35", Literal::Word("salvaged"))]);
    /// `uncached_relays`.
    pub const UNCACHED_RELAYS: Choice<NoCacheRelays> = choice!(
        "uncached_relays",
        { "follow" => NoCacheRelays::Follow, "search" => NoCacheRelays::Search },
        "without a cache: whether a relay follows the packet's route, or searches one",
    )
    .default("follow");
    /// `uncached_searches`.
    pub const UNCACHED_SEARCHES: Choice<NoCacheSearches> = choice!(
        "uncached_searches",
        { "shared" => NoCacheSearches::Shared, "per-packet" => NoCacheSearches::PerPacket },
        "without a cache: whether the first reply releases all waiting packets, or one",
    )
    .default("shared");
    /// `uncached_salvage`.
    pub const UNCACHED_SALVAGE: Choice<NoCacheSalvage> = choice!(
        "uncached_salvage",
        { "source-only" => NoCacheSalvage::SourceOnly, "everywhere" => NoCacheSalvage::Everywhere },
        "without a cache: nodes that search another route when a link fails",
    )
    .default("source-only");
    /// `uncached_jitter`.
    pub const UNCACHED_JITTER: Choice<NoCacheJitter> = choice!(
        "uncached_jitter",
        { "fresh" => NoCacheJitter::Fresh, "by-moment" => NoCacheJitter::ByTimeSlot },
        "without a cache: random delays are drawn for each packet, or given by node and tenth of a second",
    )
    .default("fresh");
    /// `preset`.
    pub const PRESET: Chosen<fn() -> of_dsr::Config> = choice!(
        "preset",
        {
            "rfc4728" => of_dsr::Config::rfc4728,
            "ns2-2.35" => of_dsr::Config::ns2,
        },
        "starting point",
    )
    .with_default("rfc4728");
}

/// `[routing.dsr]`.
pub const DSR: &[Key] = &of_preset("that of `preset`", [
    dsr::PRESET.key,
    Key::word(
        "cache",
        &["paths", "off"],
        "off: no cache, and a search for every packet",
    ).default(Literal::Word("paths")),
    Key::integer("cache_paths", 1, 65_535, "paths in a node's cache").default(Literal::Integer(PATHS.capacity.get() as u64)),
    Key::number("cache_timeout_s", 0.01, MAX_S, "RouteCacheTimeout").default(Literal::seconds(PATHS.timeout)),
    Key::word("tap", &["on", "off"], "whether a node learns from overheard packets").default(Literal::Word("on")),
    Key::word("cached_replies", &["on", "off"], "whether a node replies from its cache").default(Literal::Word("on")),
    Key::number(
        "cached_reply_delay_s",
        0.0,
        10.0,
        "H: delay of such a reply for each hop of its route",
    ).default_except(Literal::Number(0.01), &[Exception::new("of ns2-2.35", Literal::Number(0.0))]),
    Key::word("gratuitous_replies", &["on", "off"], "whether a node reports shorter routes that it overhears").default(Literal::Word("on")),
    Key::number("gratuitous_holdoff_s", 0.0, MAX_S, "GratReplyHoldoff").default(Literal::Number(1.0)),
    dsr::UNCACHED_RELAYS.key,
    dsr::UNCACHED_SEARCHES.key,
    dsr::UNCACHED_SALVAGE.key,
    dsr::UNCACHED_JITTER.key,
    Key::integer("max_path", 1, 61, "nodes between source and target of a route").default(Literal::Integer(RFC4728.max_path.get() as u64)),
    Key::number("broadcast_jitter_s", 0.0, 10.0, "BroadcastJitter").default(Literal::seconds(RFC4728.broadcast_jitter)),
    Key::number(
        "originated_jitter_s",
        0.0,
        10.0,
        "random delay of requests that a node originates, below this, so that synchronous requests of neighbours do not always collide",
    ).default_except(Literal::seconds(RFC4728.originated_jitter), &[Exception::new("of ns2-2.35", Literal::Text("0 over a MAC that draws a back-off before each frame (mac.first_access)"))]),
    Key::number("reply_jitter_s", 0.0, 10.0, "the same of targets' replies").default(Literal::seconds(RFC4728.reply_jitter)),
    Key::number(
        "gratuitous_jitter_s",
        0.0,
        10.0,
        "the same of gratuitous replies",
    ).default_except(Literal::seconds(RFC4728.gratuitous_jitter), &[Exception::new("of ns2-2.35", Literal::Number(0.0))]),
    Key::number("buffer_time_s", 0.0, MAX_S, "SendBufferTimeout").default(Literal::seconds(RFC4728.buffer_time)),
    Key::integer("buffer_packets", 1, 65_535, "packets buffered for a route").default(Literal::Integer(RFC4728.buffer_packets.get() as u64)),
    Key::number(
        "release_spacing_s",
        0.0,
        10.0,
        "time between buffered packets",
    ).default_except(Literal::seconds(RFC4728.release_spacing), &[Exception::new("of ns2-2.35", Literal::Number(0.03))]),
    Key::word(
        "nonpropagating_first",
        &["on", "off"],
        "whether the first request is non-propagating",
    ).formerly(&["neighbours_first"]).default(Literal::Word("on")),
    Key::number(
        "nonpropagating_timeout_s",
        0.000_1,
        60.0,
        "NonpropRequestTimeout",
    ).formerly(&["neighbours_first_s"]).default(Literal::Number(0.03)),
    dsr::NEIGHBOURS_ASKED.key,
    Key::number("request_period_s", 0.001, 600.0, "RequestPeriod").default_except(Literal::seconds(RFC4728.request_period), &[Exception::new("of ns2-2.35", Literal::Number(2.0))]),
    Key::integer(
        "request_backoff",
        1,
        255,
        "factor of the period after each request",
    ).default_except(Literal::Integer(RFC4728.request_backoff.get() as u64), &[Exception::new("of ns2-2.35", Literal::Integer(4))]),
    Key::number("max_request_period_s", 0.001, MAX_S, "MaxRequestPeriod").default(Literal::seconds(RFC4728.max_request_period)),
    Key::integer("max_request_retries", 1, 255, "MaxRequestRexmt").default(Literal::Integer(RFC4728.max_request_retries.get() as u64)),
    dsr::TARGET_REPLIES.key,
    Key::integer("max_salvage", 0, 15, "MAX_SALVAGE_COUNT").default(Literal::Integer(RFC4728.max_salvage as u64)),
    dsr::DEAD_LINK.key,
    dsr::WAYS_LEARNT.key,
    dsr::STRANDED.key,
    dsr::LOST_CONTROL.key,
    Key::word(
        "source_routes",
        &["in-each", "announced"],
        "announced: three packets of a route and then one in 5 s carry it for overhearing nodes, as with flow state",
    ).default_except(Literal::Word("in-each"), &[Exception::new("of ns2-2.35", Literal::Word("announced"))]),
    dsr::QUEUED_PACKETS.key,
]);
