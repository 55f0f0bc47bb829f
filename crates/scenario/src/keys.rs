//! Every key of a scenario file: name with unit, what it takes, default, meaning. Unknown keys, types, ranges, `--set` and
//! the reference in scenarios/README.md all follow from these tables.

mod neighborhood;
mod routing;
mod transports;

use super::schema::Default::{Integer, Number, Word};
use super::schema::Key;
use crate::field::{self, Field};
pub use neighborhood::{NEIGHBORHOOD_RED, NOTICE_FLOOD, neighborhood_red, notice_flood};
pub use routing::{AODV, DSR, OLSR, ROUTING, aodv, dsr, of_routing, olsr};
pub use transports::{DOOR, FEEDBACK, PACING, TCP, TPA, TRANSPORTS};

/// Longest run: about 116 days.
const LONGEST_S: f64 = 1e7;
/// Farthest coordinate: a thousand kilometres from the origin.
const FAR_M: f64 = 1e6;
/// Whole numbers that TOML can write.
const MANY: u64 = i64::MAX as u64;
/// Most nodes of a network, however they are placed; bounds memory. A node takes 3 to 4 KB before it sends anything (measured:
/// 200,000 nodes of a grid in 630 to 700 MB), so that these take some 3.5 GB. As many as a movement file may have.
pub const NODES: u64 = 1 << 20;

/// Keys of [`SCENARIO`] that always have a value.
pub mod scenario {
    use super::*;

    /// `duration_s`.
    pub const DURATION_S: Field<f64> =
        Field::number(Key::number("duration_s", 1e-6, LONGEST_S, "virtual time to simulate").required());
    /// `warmup_s`.
    pub const WARMUP_S: Field<f64> = Field::number(
        Key::number(
            "warmup_s",
            0.0,
            LONGEST_S,
            "what happens before this moment does not count; below duration_s",
        )
        .or(Number(0.0)),
    );
    /// `seed`.
    pub const SEED: Field<u64> = Field::integer(
        Key::integer("seed", 0, MANY, "seed of the experiment; its runs are numbered").or(Integer(1)),
    );
    /// `runs`.
    pub const RUNS: Field<u64> = Field::integer(
        Key::integer("runs", 1, 1_000_000, "how many paired runs `hopline compare` makes of each variant")
            .or(Integer(1)),
    );
    /// `transport`.
    pub const TRANSPORT: Field<field::Word> = Field::word(
        Key::word("transport", TRANSPORTS, "transport of every bulk flow that names none")
            .or(Word("tcp-newreno")),
    );
}

/// The top level.
pub const SCENARIO: &[Key] = &[
    Key::text("name", "what the scenario is called in results; default: the name of its folder"),
    scenario::DURATION_S.key,
    scenario::WARMUP_S.key,
    scenario::SEED.key,
    scenario::RUNS.key,
    scenario::TRANSPORT.key,
    Key::table("radio", RADIO, "the radio of all wireless nodes; without it the network is wired"),
    Key::table("mac", MAC, "802.11 medium access; what is not given is as radio.preset says"),
    Key::table("queue", QUEUE, "interface queue of wireless nodes, in front of the MAC"),
    Key::table(
        "neighborhood_red",
        NEIGHBORHOOD_RED,
        "Neighborhood RED: wireless nodes share their congestion; without it they do not",
    ),
    Key::table("routing", ROUTING, "how packets find their way"),
    Key::table("tcp", TCP, "TCP of every flow that does not say otherwise"),
    Key::table("door", DOOR, "TCP-DOOR of every flow over tcp-door that does not say otherwise"),
    Key::table("tpa", TPA, "TPA of every flow that does not say otherwise"),
    Key::table("pacing", PACING, "adaptive pacing, of every flow that is paced"),
    Key::table("feedback", FEEDBACK, "feedback schemes, of every flow that has one"),
    Key::table("nodes", NODES_KEYS, "nodes placed by a rule, named n0, n1, …; before those of [[node]]"),
    Key::tables("node", NODE, "nodes placed one by one"),
    Key::table("mobility", MOBILITY, "how wireless nodes move"),
    Key::table("flows", FLOWS, "flows made by a rule or listed in a file; after those of [[flow]]"),
    Key::tables("flow", FLOW, "flows listed one by one"),
    Key::tables("link", LINK, "wired full-duplex links"),
    Key::tables("route", ROUTE, "packets for a node that go another way than routing knows"),
    Key::tables("outage", OUTAGE, "times during which one node does not hear another; see above"),
    Key::tables(
        "notice_flood",
        NOTICE_FLOOD,
        "hostile or careless nodes, which send notices of Neighborhood RED that no congestion asked for; see above",
    ),
    Key::lists(
        "sweep",
        "values that `hopline compare` tries when no --vary is given: \"key.path\" = [values]",
    ),
];

/// Keys of [`RADIO`] that always have a value.
pub mod radio {
    use super::*;

    /// `preset`.
    pub const PRESET: Field<field::Word> = Field::word(
        Key::word(
            "preset",
            &["ns2-wavelan", "ns3-wavelan", "dot11b", "dot11a", "qualnet-367"],
            "starting point for all of [radio], [mac] and [queue]; see above",
        )
        .or(Word("ns2-wavelan")),
    );
}

/// `[radio]`.
pub const RADIO: &[Key] = &[
    radio::PRESET.key,
    Key::word(
        "propagation",
        &["two-ray", "free-space", "log-distance", "shadowing", "range-disk"],
        "how power falls with distance",
    ),
    Key::number("range_m", 1.0, FAR_M, "distance up to which a frame is received, absent interference"),
    Key::number("carrier_sense_range_m", 1.0, FAR_M, "distance up to which a frame is sensed"),
    Key::number(
        "interference_range_m",
        1.0,
        FAR_M,
        "of range-disk: distance up to which a frame destroys another",
    ),
    Key::number("path_loss_exponent", 1.0, 10.0, "of log-distance and shadowing"),
    Key::number("reference_distance_m", 0.01, 1000.0, "of log-distance and shadowing: free space up to here"),
    Key::number("shadowing_deviation_db", 0.0, 50.0, "of shadowing: standard deviation"),
    Key::word("shadowing_draw", &["per-frame", "per-link"], "of shadowing: what gets a deviation of its own"),
    Key::number("tx_power_dbm", -100.0, 60.0, "transmitted power"),
    Key::number("frequency_mhz", 1.0, 300_000.0, "carrier frequency"),
    Key::number("antenna_height_m", 0.01, 1000.0, "of two-ray: height of both antennas"),
    Key::word("reception", RECEPTIONS, "what a radio does with several frames at once"),
    Key::number("capture_db", 0.0, 100.0, "how much stronger a frame must be to survive another"),
    Key::word(
        "address_resolution",
        &["known", "arp"],
        "how nodes come by the link-layer addresses of neighbours; arp: they ask the first time, and keep one packet meanwhile, as ns-2; default: known, with routing.dsr.preset = ns2-2.35: arp",
    ),
    Key::number("link_layer_delay_us", 0.0, 1e6, "time from the network layer to the interface queue"),
    Key::integers(
        "channels",
        0,
        65_535,
        "a radio for each of these channels, at every wireless node that does not say otherwise; default: one radio, channel 0",
    ),
    Key::table("errors", ERRORS, "errors on frames received otherwise intact"),
];

/// Reception models.
pub const RECEPTIONS: &[&str] = &["lock-on-sensed", "lock-on-decodable", "cumulative-sinr"];

/// `[mac]`.
pub const MAC: &[Key] = &[
    Key::number(
        "data_rate_mbps",
        1.0,
        54.0,
        "rate of unicast data: 1, 2, 5.5, 11 (b) or 6, 9, 12, 18, 24, 36, 48, 54 (a)",
    ),
    Key::number("basic_rate_mbps", 1.0, 54.0, "rate of RTS, CTS, ACK and broadcast"),
    Key::integer_or(
        "rts_threshold_bytes",
        0,
        65_535,
        &["always", "never"],
        "longest MAC frame that goes without RTS",
    ),
    Key::integer("short_retry_limit", 1, 255, "attempts of RTS and of frames up to the RTS threshold"),
    Key::integer("long_retry_limit", 1, 255, "attempts of frames above the RTS threshold"),
    Key::integer("cw_min", 1, 1023, "smallest contention window, 2^n - 1"),
    Key::integer("cw_max", 1, 32_767, "largest contention window, 2^n - 1"),
    Key::word(
        "ack_policy",
        &["normal", "no-ack", "block-ack"],
        "how unicast frames are acknowledged: each, none, or a block of them at once",
    ),
    Key::integer("block_size", 1, 64, "most packets in a block; block-ack: 12 if not given"),
    Key::integer(
        "txop_limit_us",
        1,
        32_767,
        "longest block, BlockAck included; block-ack: no limit if not given",
    ),
    Key::word("preamble", &["long", "short"], "of 802.11b frames"),
    Key::word(
        "first_access",
        &["immediate", "idle-on-arrival", "always-backoff"],
        "a frame on an idle medium; ns-2: always-backoff, ns-3: idle-on-arrival",
    ),
    Key::word("eifs", &["standard", "as-nav"], "after a frame not decoded; ns-2: as-nav"),
    Key::word(
        "response_timeout",
        &["standard", "whole-response"],
        "wait for CTS and ACK; ns-2: whole-response",
    ),
    Key::word("reservation", &["standard", "medium-idle"], "what must be idle for a CTS; ns-2: medium-idle"),
    Key::word("backoff_range", &["inclusive", "exclusive"], "0 to CW, or to CW - 1; ns-2: exclusive"),
    Key::word("nav_reset", &["never", "after-silent-rts"], "a NAV set by an RTS that nothing follows"),
];

/// `[queue]` and `link.queue`.
pub const QUEUE: &[Key] = &[
    Key::integer(
        "capacity_packets",
        1,
        65_535,
        "packets that the queue holds; default: 50, as ns-2 counts them: 49; of qualnet-367: 66",
    ),
    Key::word(
        "service",
        &["fifo", "routing-first"],
        "whether routing packets overtake; default: fifo, ns-2: yes",
    ),
    Key::word(
        "discipline",
        &["drop-tail", "red", "codel", "fq-codel"],
        "what tells of congestion before the queue is full, never by routing messages: red: random early detection; codel: \
         long waits; fq-codel: those of each flow, and flows are served by turns, routing messages first",
    )
    .or(Word("drop-tail")),
    Key::number(
        "min_threshold_packets",
        0.0,
        65_535.0,
        "of red: average queue below which all enter; default: 5",
    ),
    Key::number(
        "max_threshold_packets",
        0.001,
        65_535.0,
        "of red: average queue from which on none do; default: 15",
    ),
    Key::number("weight", 1e-6, 1.0, "of red: weight of the present queue in the average; default: 0.002"),
    Key::number(
        "max_probability",
        1e-6,
        1.0,
        "of red: share chosen as the average reaches max_threshold_packets; default: 0.02",
    ),
    Key::word("measure", &["packets", "bytes"], "of red: what the queue is measured in; default: packets"),
    Key::integer(
        "mean_packet_bytes",
        1,
        65_535,
        "of red measured in bytes: what counts as a packet; default: 1000",
    ),
    Key::flag(
        "gentle",
        "of red: beyond max_threshold_packets the share rises, to all at twice that; default: false",
    ),
    Key::number(
        "idle_packet_ms",
        0.0,
        1000.0,
        "of red: an empty queue counts as seen empty once in this time; 0: not at all; default: 1",
    ),
    Key::word(
        "action",
        &["drop", "mark"],
        "of red, codel and fq-codel: what becomes of a chosen packet; mark: those of flows with tcp.ecn are marked; \
         default: drop",
    ),
    Key::number(
        "target_ms",
        0.001,
        10_000.0,
        "of codel and fq-codel: wait that may stand; above the time of a packet on the air; default: 5",
    ),
    Key::number(
        "interval_ms",
        0.001,
        100_000.0,
        "of codel and fq-codel: how long it may stand, some round-trip times; default: 100",
    ),
    Key::integer(
        "packet_bytes",
        0,
        65_535,
        "of codel and fq-codel: a backlog that is no congestion, a full packet; default: 1514",
    ),
    Key::integer("flows", 1, 65_535, "of fq-codel: queues that flows are hashed onto; default: 1024"),
    Key::integer("quantum_bytes", 1, 65_535, "of fq-codel: bytes of a turn, a full packet; default: 1514"),
];

/// Keys of [`NODES_KEYS`] that always have a value.
pub mod nodes {
    use super::*;

    /// `layout`.
    pub const LAYOUT: Field<field::Word> = Field::word(
        Key::word("layout", &["chain", "grid", "random", "movements", "file"], "where nodes are put")
            .required(),
    );
}

/// `[nodes]`.
pub const NODES_KEYS: &[Key] = &[
    nodes::LAYOUT.key,
    Key::integer("count", 1, NODES, "nodes of a chain or a random network"),
    Key::integer("columns", 1, NODES, "nodes in a row of a grid"),
    Key::integer("rows", 1, NODES, "rows of a grid"),
    Key::number("spacing_m", 0.001, FAR_M, "distance between neighbours of a chain or grid"),
    Key::number("width_m", 0.001, FAR_M, "width of the area of a random network"),
    Key::number("height_m", 0.001, FAR_M, "height of the area of a random network"),
    Key::text("file", "CSV with the keys of [[node]] as header, beside the scenario"),
];

/// Keys of [`NODE`] that always have a value.
pub mod node {
    use super::*;

    /// `x_m`.
    pub const X_M: Field<f64> =
        Field::number(Key::number("x_m", -FAR_M, FAR_M, "position to the east").or(Number(0.0)));
    /// `y_m`.
    pub const Y_M: Field<f64> =
        Field::number(Key::number("y_m", -FAR_M, FAR_M, "position to the north").or(Number(0.0)));
}

/// `[[node]]`.
pub const NODE: &[Key] = &[
    Key::text("name", "name, unique; default: n and the number of the node"),
    node::X_M.key,
    node::Y_M.key,
    Key::word("interface", &["wireless", "wired"], "default: wireless if there is a [radio]"),
    Key::integers(
        "channels",
        0,
        65_535,
        "a radio for each of these channels; what is sent on one is not sensed on another; default: radio.channels",
    ),
    Key::text(
        "gateway",
        "where agents route: the node with a [[link]] through which what this one sends leaves the wireless network, and what is for it comes in; default: routing.gateway",
    ),
    Key::flag("fixed", "whether the node stands where it is, however others move; default: false"),
    Key::tables("waypoints", WAYPOINT, "moves, in the order of time"),
];

/// Keys of [`WAYPOINT`] that always have a value.
pub mod waypoint {
    use super::*;

    /// `at_s`.
    pub const AT_S: Field<f64> =
        Field::number(Key::number("at_s", 0.0, LONGEST_S, "when the node sets out").required());
    /// `x_m`.
    pub const X_M: Field<f64> = Field::number(Key::number("x_m", -FAR_M, FAR_M, "where to").required());
    /// `y_m`.
    pub const Y_M: Field<f64> = Field::number(Key::number("y_m", -FAR_M, FAR_M, "where to").required());
    /// `speed_mps`.
    pub const SPEED_MPS: Field<f64> =
        Field::number(Key::number("speed_mps", 0.0, 1000.0, "how fast").required());
}

/// `node.waypoints`.
pub const WAYPOINT: &[Key] =
    &[waypoint::AT_S.key, waypoint::X_M.key, waypoint::Y_M.key, waypoint::SPEED_MPS.key];

/// Keys of [`MOBILITY`] that always have a value.
pub mod mobility {
    use super::*;

    /// `model`.
    pub const MODEL: Field<field::Word> = Field::word(
        Key::word(
            "model",
            &["static", "random-waypoint", "random-waypoint-stationary", "ns2", "bonnmotion", "sumo", "csv"],
            "how nodes move; random-waypoint is what setdest does, the last four read a file",
        )
        .or(Word("static")),
    );
    /// `pause_s`.
    pub const PAUSE_S: Field<f64> =
        Field::number(Key::number("pause_s", 0.0, LONGEST_S, "rest at each destination").or(Number(0.0)));
}

/// `[mobility]`.
pub const MOBILITY: &[Key] = &[
    mobility::MODEL.key,
    Key::number("width_m", 0.001, FAR_M, "width of the area; default: that of [nodes]"),
    Key::number("height_m", 0.001, FAR_M, "height of the area; default: that of [nodes]"),
    Key::number("min_speed_mps", 0.000_001, 10_000.0, "of random-waypoint-stationary: slowest speed drawn"),
    Key::number("max_speed_mps", 0.000_001, 10_000.0, "fastest speed drawn"),
    mobility::PAUSE_S.key,
    Key::text(
        "file",
        "movement file, beside the scenario: .ns_movements (ns2), .movements (bonnmotion), FCD XML (sumo) or CSV with \
         the header node,time_s,x_m,y_m",
    ),
];

/// Keys of [`FLOW`] that always have a value.
pub mod flow {
    use super::*;

    /// `src`.
    pub const SRC: Field<field::Word> = Field::word(Key::text("src", "name of the sending node").required());
    /// `dst`.
    pub const DST: Field<field::Word> =
        Field::word(Key::text("dst", "name of the receiving node").required());
    /// `kind`.
    pub const KIND: Field<field::Word> =
        Field::word(Key::word("kind", FLOW_KINDS, "what is sent; see above").or(Word("bulk")));
    /// `start_s`.
    pub const START_S: Field<f64> =
        Field::number(Key::number("start_s", 0.0, LONGEST_S, "when the application starts").or(Number(0.0)));
    /// `start_jitter_s`.
    pub const START_JITTER_S: Field<f64> = Field::number(
        Key::number(
            "start_jitter_s",
            0.0,
            LONGEST_S,
            "drawn for each run, from 0 to this, and added to start_s",
        )
        .or(Number(0.0)),
    );
}

/// `[[flow]]`.
pub const FLOW: &[Key] = &[
    Key::text("name", "name, unique; default: f and the number of the flow"),
    flow::SRC.key,
    flow::DST.key,
    flow::KIND.key,
    flow::START_S.key,
    flow::START_JITTER_S.key,
    Key::number("stop_s", 0.0, LONGEST_S, "when it stops; default: never"),
    Key::word("transport", TRANSPORTS, "transport, except of cbr and on-off; default: the top level's"),
    Key::integer("bytes", 1, MANY, "of bulk: bytes to transfer; default: as many as the time allows"),
    Key::number("rate_kbps", 0.001, 1e9, "of cbr and on-off: rate of the payload, while on"),
    Key::integer("packet_bytes", 1, 65_507, "of cbr and on-off: UDP payload of a packet; default: 512"),
    Key::number_or_table(
        "on_s",
        0.0,
        LONGEST_S,
        DRAW,
        "of on-off: length of an on time; default: exponential, mean 0.5",
    ),
    Key::number_or_table(
        "off_s",
        0.0,
        LONGEST_S,
        DRAW,
        "of on-off: length of an off time; default: exponential, mean 0.5",
    ),
    Key::number_or_table(
        "request_bytes",
        1.0,
        1e12,
        DRAW,
        "of request-response and http: bytes of a request; default of http: 350",
    ),
    Key::number_or_table(
        "response_bytes",
        1.0,
        1e12,
        DRAW,
        "of request-response and http: bytes of a response; default of http: log-normal, mean 10710, deviation 25032",
    ),
    Key::number_or_table(
        "think_s",
        0.0,
        LONGEST_S,
        DRAW,
        "of request-response and http: from a response to the next request; default: 0; of http: exponential, mean 30",
    ),
    Key::integer(
        "transactions",
        1,
        MANY,
        "of request-response and http: how many, then the connection is closed; default: as many as the time allows",
    ),
    Key::table("tcp", TCP, "TCP of this flow, over [tcp]"),
    Key::table("door", DOOR, "TCP-DOOR of this flow, over [door]"),
    Key::table("tpa", TPA, "TPA of this flow, over [tpa]"),
];

/// Kinds of traffic.
pub const FLOW_KINDS: &[&str] = &["bulk", "cbr", "on-off", "request-response", "http"];

/// Keys of [`DRAW`] that always have a value.
pub mod draw {
    use super::*;

    /// `draw`.
    pub const DRAW: Field<field::Word> = Field::word(
        Key::word(
            "draw",
            &["uniform", "exponential", "bounded-pareto", "log-normal"],
            "distribution; its parameters have the unit of what is drawn",
        )
        .required(),
    );
}

/// A size or a time that is drawn.
pub const DRAW: &[Key] = &[
    draw::DRAW.key,
    Key::number("min", 0.0, 1e12, "of uniform and bounded-pareto: least value"),
    Key::number("max", 0.0, 1e12, "of uniform and bounded-pareto: greatest value"),
    Key::number("mean", 0.0, 1e12, "of exponential and log-normal: mean"),
    Key::number("deviation", 0.0, 1e12, "of log-normal: standard deviation"),
    Key::number("shape", 0.01, 100.0, "of bounded-pareto: shape; the smaller, the heavier the tail"),
];

/// Keys of [`FLOWS`] that always have a value.
pub mod flows {
    use super::*;

    /// `kind`.
    pub const KIND: Field<field::Word> =
        Field::word(Key::word("kind", &["bulk", "cbr"], "what random flows send").or(Word("bulk")));
    /// `start_min_s`.
    pub const START_MIN_S: Field<f64> = Field::number(
        Key::number("start_min_s", 0.0, LONGEST_S, "earliest start of a random flow").or(Number(0.0)),
    );
    /// `start_max_s`.
    pub const START_MAX_S: Field<f64> = Field::number(
        Key::number("start_max_s", 0.0, LONGEST_S, "latest start of a random flow").or(Number(0.0)),
    );
}

/// `[flows]`.
pub const FLOWS: &[Key] = &[
    Key::integer("random", 1, 1_000_000, "flows between random pairs of nodes, other pairs in each run"),
    flows::KIND.key,
    Key::number("rate_kbps", 1e-3, 1e9, "of random flows of kind cbr: rate of the payload"),
    Key::integer("packet_bytes", 1, 65_507, "of random flows of kind cbr: bytes in a packet; default: 512"),
    flows::START_MIN_S.key,
    flows::START_MAX_S.key,
    Key::text("file", "CSV with the keys of [[flow]] as header, beside the scenario"),
];

/// Keys of [`LINK`] that always have a value.
pub mod link {
    use super::*;

    /// `a`.
    pub const A: Field<field::Word> = Field::word(Key::text("a", "name of the node at one end").required());
    /// `b`.
    pub const B: Field<field::Word> =
        Field::word(Key::text("b", "name of the node at the other end").required());
    /// `rate_mbps`.
    pub const RATE_MBPS: Field<f64> =
        Field::number(Key::number("rate_mbps", 1e-6, 1e6, "rate of each direction").required());
    /// `delay_ms`.
    pub const DELAY_MS: Field<f64> =
        Field::number(Key::number("delay_ms", 0.0, 1e6, "propagation delay").required());
}

/// `[[link]]`.
pub const LINK: &[Key] = &[
    link::A.key,
    link::B.key,
    link::RATE_MBPS.key,
    link::DELAY_MS.key,
    Key::table("queue", QUEUE, "queue in front of each direction"),
    Key::table("errors", LINK_ERRORS, "errors on each direction, or on one; drawn independently"),
];

/// Keys of [`ROUTE`] that always have a value.
pub mod route {
    use super::*;

    /// `at`.
    pub const AT: Field<field::Word> =
        Field::word(Key::text("at", "name of the node that sends so").required());
    /// `to`.
    pub const TO: Field<field::Word> =
        Field::word(Key::text("to", "name of the node that the packets are for").required());
    /// `via`.
    pub const VIA: Field<field::Word> = Field::word(
        Key::text(
            "via",
            "name of the neighbour that gets them: over a [[link]], or a channel that both have",
        )
        .required(),
    );
}

/// `[[route]]`.
pub const ROUTE: &[Key] = &[route::AT.key, route::TO.key, route::VIA.key];

/// Keys of [`OUTAGE`] that always have a value.
pub mod outage {
    use super::*;

    /// `from`.
    pub const FROM: Field<field::Word> =
        Field::word(Key::text("from", "name of the node that is not heard").required());
    /// `to`.
    pub const TO: Field<field::Word> =
        Field::word(Key::text("to", "name of the node that does not hear it").required());
    /// `start_s`.
    pub const START_S: Field<f64> =
        Field::number(Key::number("start_s", 0.0, LONGEST_S, "when it begins").or(Number(0.0)));
    /// `blocks`.
    pub const BLOCKS: Field<field::Word> = Field::word(Key::word(
        "blocks",
        &["frames", "packets"],
        "frames: a link too weak to decode; packets: a filter by MAC address above the MAC, which goes on answering",
    )
    .or(Word("frames")));
}

/// `[[outage]]`.
pub const OUTAGE: &[Key] = &[
    outage::FROM.key,
    outage::TO.key,
    outage::START_S.key,
    Key::number("end_s", 0.0, LONGEST_S, "when it is over; default: never"),
    Key::flag("both_ways", "whether `from` does not hear `to` either; default: false"),
    outage::BLOCKS.key,
];

/// Keys of [`ERRORS`] that always have a value.
pub mod errors {
    use super::*;

    /// `model`.
    pub const MODEL: Field<field::Word> = Field::word(
        Key::word("model", &["none", "bit", "packet", "gilbert-packet", "gilbert-elliott"], "what is drawn")
            .or(Word("none")),
    );
}

/// `radio.errors`, and with a direction `link.errors`.
pub const ERRORS: &[Key] = &[
    errors::MODEL.key,
    Key::number("bit_error_rate", 0.0, 1.0, "of bit: probability that a bit is damaged"),
    Key::number("packet_loss", 0.0, 1.0, "of packet: probability that a packet is lost"),
    Key::number("good_to_bad", 0.0, 1.0, "of gilbert-packet: probability per packet that a burst begins"),
    Key::number("bad_to_good", 0.0, 1.0, "of gilbert-packet: probability per packet that a burst ends"),
    Key::number("loss_good", 0.0, 1.0, "of gilbert-packet: packet loss outside bursts").or(Number(0.0)),
    Key::number("loss_bad", 0.0, 1.0, "of gilbert-packet: packet loss in bursts").or(Number(1.0)),
    Key::number("mean_good_s", 0.0, LONGEST_S, "of gilbert-elliott: mean time between bursts"),
    Key::number("mean_bad_s", 0.0, LONGEST_S, "of gilbert-elliott: mean length of a burst"),
    Key::number("bit_error_rate_good", 0.0, 1.0, "of gilbert-elliott: outside bursts").or(Number(0.0)),
    Key::number("bit_error_rate_bad", 0.0, 1.0, "of gilbert-elliott: in bursts"),
];

/// Keys of [`LINK_ERRORS`] that always have a value, beside those of [`ERRORS`].
pub mod link_errors {
    use super::*;

    /// `direction`.
    pub const DIRECTION: Field<field::Word> = Field::word(
        Key::word(
            "direction",
            &["both", "a-to-b", "b-to-a"],
            "what errs: what both ends send, or one alone, as data may be lost and their ACKs not",
        )
        .or(Word("both")),
    );
}

/// `link.errors`.
pub const LINK_ERRORS: &[Key] = &{
    let mut keys = [link_errors::DIRECTION.key; ERRORS.len() + 1];
    let mut n = 0;
    while n < ERRORS.len() {
        keys[n] = ERRORS[n];
        n += 1;
    }
    keys
};
