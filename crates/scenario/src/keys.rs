//! Every key of a scenario file: name with unit, what it takes, default, meaning. Unknown keys, types, ranges, `--set` and
//! the reference in docs/scenario-keys.md all follow from these tables.

mod cell_keys;
mod limits;
mod links;
mod neighborhood;
mod node_keys;
mod programs;
mod proxies;
mod quic_keys;
mod radios;
mod routing;
mod tpa_keys;
mod transports;
mod wide_keys;

use super::schema::Default::{Integer, Number, Word};
use super::schema::Key;
use crate::choice;
use crate::choice::Chosen;
use crate::field::{self, Field};
use crate::schema::Literal;
pub use cell_keys::{CELLS, MOBILE, cells, mobile};
use hopline_config::keys::MAX_S;
pub use hopline_config::keys::{ARQ, ArqKind, NEIGHBORHOOD_RED, SnoopPreset, arq, neighborhood_red};
use limits::MAX_INTEGER;
pub use limits::MAX_NODES;
pub use links::*;
pub use neighborhood::{NOTICE_FLOOD, notice_flood};
pub use node_keys::*;
pub use programs::{PROGRAM, program};
pub use proxies::{Kind as ProxyKind, PROXY, proxy};
pub use quic_keys::QUIC;
pub use radios::*;
pub use routing::{AODV, DSR, OLSR, Protocol, ROUTING, aodv, dsr, of_routing, olsr};
pub use tpa_keys::{TPA, tpa};
pub use transports::{
    DOOR, DOOR_TIME, FEEDBACK, PACING, PROBE_INTERVAL, Preset, TCP, TRANSPORTS, door, feedback, pacing, tcp,
};
pub use wide_keys::WIDE;

/// Keys of [`SCENARIO`] that always have a value.
pub mod scenario {
    use super::*;

    /// `duration_s`.
    pub const DURATION_S: Field<f64> =
        Field::number(Key::number("duration_s", 1e-6, MAX_S, "virtual time to simulate").required());
    /// `warmup_s`.
    pub const WARMUP_S: Field<f64> = Field::number(
        Key::number("warmup_s", 0.0, MAX_S, "events before this time do not count; below duration_s")
            .with_default(Number(0.0)),
    );
    /// `seed`.
    pub const SEED: Field<u64> = Field::integer(
        Key::integer("seed", 0, MAX_INTEGER, "seed of the experiment; its runs are numbered")
            .with_default(Integer(1)),
    );
    /// `runs`.
    pub const RUNS: Field<u64> = Field::integer(
        Key::integer("runs", 1, 1_000_000, "number of paired runs of each variant in `hopline compare`")
            .with_default(Integer(1)),
    );
    /// `transport`.
    pub const TRANSPORT: Field<field::Word> = Field::word(
        Key::word("transport", TRANSPORTS, "transport of bulk flows without their own")
            .with_default(Word("tcp-newreno")),
    );
}

/// The top level.
pub const SCENARIO: &[Key] = &[
    Key::text("name", "name of the scenario in results")
        .derived("the name of its file, or of its folder if that is scenario.toml"),
    scenario::DURATION_S.key,
    scenario::WARMUP_S.key,
    scenario::SEED.key,
    scenario::RUNS.key,
    scenario::TRANSPORT.key,
    Key::table("radio", RADIO, "the radio of all wireless nodes; without it the network is wired"),
    Key::table("mac", MAC, "802.11 medium access; defaults are those of radio.preset"),
    Key::table("queue", QUEUE, "interface queue of wireless nodes, in front of the MAC"),
    Key::table(
        "neighborhood_red",
        NEIGHBORHOOD_RED,
        "Neighborhood RED of wireless nodes; without this table it is off",
    ),
    Key::table("routing", ROUTING, "routing of packets"),
    Key::table("tcp", TCP, "TCP of flows without their own table"),
    Key::table("door", DOOR, "TCP-DOOR of flows over tcp-door without their own table"),
    Key::table("tpa", TPA, "TPA of flows without their own table"),
    Key::table("wide", WIDE, "TPA-wide of flows without their own table"),
    Key::table("quic", QUIC, "QUIC of flows without their own table"),
    Key::table("pacing", PACING, "adaptive pacing, of paced flows"),
    Key::table("feedback", FEEDBACK, "feedback schemes, of flows with one"),
    Key::table("nodes", NODES_KEYS, "nodes placed by a rule, named n0, n1, …; before those of [[node]]"),
    Key::tables("node", NODE, "nodes placed one by one"),
    Key::table("mobility", MOBILITY, "movement of wireless nodes"),
    Key::tables("obstacle", OBSTACLE, "walls and buildings that attenuate signals; see above"),
    Key::table("flows", FLOWS, "flows made by a rule or listed in a file; after those of [[flow]]"),
    Key::tables("flow", FLOW, "flows listed one by one"),
    Key::tables("link", LINK, "wired full-duplex links"),
    Key::tables("route", ROUTE, "routes that override the routing protocol"),
    Key::tables("proxy", PROXY, "middleboxes in the path of TCP at some nodes; see above"),
    Key::table("cells", CELLS, "base stations, and the home agent of mobile hosts; see above"),
    Key::tables("mobile", MOBILE, "hosts that move between base stations"),
    Key::tables("outage", OUTAGE, "times during which a node does not receive from another; see above"),
    Key::tables(
        "notice_flood",
        NOTICE_FLOOD,
        "hostile or faulty nodes that send notices of Neighborhood RED without congestion; see above",
    ),
    Key::tables("program", PROGRAM, "programs that `hopline emulate` runs at nodes"),
    Key::table("question", OBJECTIVE, "metric and bound that lead tables and report; see above"),
    Key::table(
        "animation",
        ANIMATION,
        "part of a run that its report plays on the map, as `--animate` does; without this table none",
    ),
    Key::lists("sweep", "values of `hopline compare` without --vary: \"key.path\" = [values]"),
];

/// `[question]`, of a scenario or of a plan.
pub const OBJECTIVE: &[Key] = &[
    Key::text("metric", "metric of the comparison: \"goodput\", \"response_p95 of http\"")
        .derived("by what is sent"),
    Key::text("bound", "bound that a variant must keep: \"delay_p95 of voice < 50 ms\""),
];

/// Keys of [`ANIMATION`] that always have a value.
pub mod animation {
    use super::*;

    /// `from_s`.
    pub const FROM_S: Field<f64> =
        Field::number(Key::number("from_s", 0.0, MAX_S, "start; below to_s").with_default(Number(0.0)));
}

/// `[animation]`.
pub const ANIMATION: &[Key] = &[
    animation::FROM_S.key,
    Key::number("to_s", 0.0, MAX_S, "end; above from_s")
        .derived("end of the run, or the limit of the report"),
];

/// Keys of [`FLOW`] that always have a value.
pub mod flow {
    use super::*;

    /// `kind`.
    pub const KIND: Chosen<FlowKind> = choice!(
        "kind",
        {
            "bulk" => FlowKind::Bulk,
            "cbr" => FlowKind::Cbr,
            "on-off" => FlowKind::OnOff,
            "request-response" => FlowKind::RequestResponse,
            "http" => FlowKind::Http,
            "recorded" => FlowKind::Recorded,
        },
        "what is sent; see above",
    )
    .with_default("bulk");
    /// `start_s`.
    pub const START_S: Field<f64> = Field::number(
        Key::number("start_s", 0.0, MAX_S, "when the application starts").with_default(Number(0.0)),
    );
    /// `start_jitter_s`.
    pub const START_JITTER_S: Field<f64> = Field::number(
        Key::number("start_jitter_s", 0.0, MAX_S, "largest random addition to start_s, drawn for each run")
            .with_default(Number(0.0)),
    );
}

/// `[[flow]]`.
pub const FLOW: &[Key] = &[
    Key::text("name", "name, unique")
        .derived("f and the number of the flow; of pairs: what stands before their numbers"),
    Key::text_or_table("src", PLACE, "the sending node: its name, `last`, or a place; see above"),
    Key::text_or_table("dst", PLACE, "the receiving node: its name, `last`, or a place; see above"),
    Key::integer(
        "pairs",
        1,
        1_000_000,
        "number of flows between random pairs, drawn for each run, no pair twice; a given end holds for all; see above",
    ),
    flow::KIND.key,
    Key::text("class", "class of the flow in results and metrics: metric = \"delay_p95 of voice\""),
    flow::START_S.key,
    flow::START_JITTER_S.key,
    Key::number("stop_s", 0.0, MAX_S, "when it stops; above start_s").derived("never"),
    Key::word("transport", TRANSPORTS, "transport, except of cbr and on-off")
        .derived("the top level's, of recorded: none, datagrams"),
    Key::text("file", "of recorded: CSV with the header time_s,bytes, beside the scenario"),
    Key::integer("bytes", 1, MAX_INTEGER, "of bulk: bytes to transfer").derived("as many as the time allows"),
    Key::number("rate_kbps", 0.001, 1e9, "of cbr and on-off: rate of the payload, while on"),
    Key::integer("packet_bytes", 1, 65_507, "of cbr and on-off: UDP payload of a packet")
        .default(Literal::Integer(512)),
    Key::number_or_table("on_s", 0.0, MAX_S, DRAW, "of on-off: length of an on time")
        .derived("exponential, mean 0.5"),
    Key::number_or_table("off_s", 0.0, MAX_S, DRAW, "of on-off: length of an off time")
        .derived("exponential, mean 0.5"),
    Key::number_or_table(
        "request_bytes",
        1.0,
        1e12,
        DRAW,
        "of request-response and http: bytes of a request",
    )
    .derived("required, of http: 350"),
    Key::number_or_table(
        "response_bytes",
        1.0,
        1e12,
        DRAW,
        "of request-response and http: bytes of a response",
    )
    .derived("required, of http: log-normal, mean 10710, deviation 25032"),
    Key::number_or_table(
        "think_s",
        0.0,
        MAX_S,
        DRAW,
        "of request-response and http: from a response to the next request",
    )
    .derived("0; of http: exponential, mean 30"),
    Key::integer(
        "transactions",
        1,
        MAX_INTEGER,
        "of request-response and http: number of transactions, then the connection is closed",
    )
    .derived("as many as the time allows"),
    Key::table("tcp", TCP, "TCP of this flow, over [tcp]"),
    Key::table("door", DOOR, "TCP-DOOR of this flow, over [door]"),
    Key::table("tpa", TPA, "TPA of this flow, over [tpa]"),
    Key::table("wide", WIDE, "TPA-wide of this flow, over [wide]"),
    Key::table("quic", QUIC, "QUIC of this flow, over [quic]"),
];

/// Kind of traffic, chosen by [`flow::KIND`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowKind {
    /// Bulk transfer: as much data as the path takes.
    Bulk,
    /// Packets at a constant rate.
    Cbr,
    /// The same, with pauses.
    OnOff,
    /// Requests and responses.
    RequestResponse,
    /// The same, as browsing makes them.
    Http,
    /// A recording in a file.
    Recorded,
}

/// Distribution of a size or a time, chosen by [`draw::DRAW`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DistributionKind {
    /// Between two values, all alike.
    Uniform,
    /// Without memory.
    Exponential,
    /// Heavy-tailed, between two values.
    BoundedPareto,
    /// Log-normal distribution.
    LogNormal,
}

/// Keys of [`DRAW`] that always have a value.
pub mod draw {
    use super::*;

    /// `draw`.
    pub const DRAW: Chosen<DistributionKind> = choice!(
        "draw",
        {
            "uniform" => DistributionKind::Uniform,
            "exponential" => DistributionKind::Exponential,
            "bounded-pareto" => DistributionKind::BoundedPareto,
            "log-normal" => DistributionKind::LogNormal,
        },
        "distribution; its parameters have the unit of the drawn value",
    )
    .required();
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
    pub const KIND: Field<field::Word> = Field::word(
        Key::word("kind", &["bulk", "cbr"], "traffic of random flows").with_default(Word("bulk")),
    );
    /// `start_min_s`.
    pub const START_MIN_S: Field<f64> = Field::number(
        Key::number("start_min_s", 0.0, MAX_S, "earliest start of a random flow").with_default(Number(0.0)),
    );
    /// `start_max_s`.
    pub const START_MAX_S: Field<f64> = Field::number(
        Key::number("start_max_s", 0.0, MAX_S, "latest start of a random flow").with_default(Number(0.0)),
    );
}

/// `[flows]`.
pub const FLOWS: &[Key] = &[
    Key::integer("random", 1, 1_000_000, "flows between random pairs of nodes, other pairs in each run"),
    flows::KIND.key,
    Key::number("rate_kbps", 1e-3, 1e9, "of random flows of kind cbr: rate of the payload"),
    Key::integer("packet_bytes", 1, 65_507, "of random flows of kind cbr: bytes in a packet")
        .default(Literal::Integer(512)),
    flows::START_MIN_S.key,
    flows::START_MAX_S.key,
    Key::text("class", "class of random flows"),
    Key::text("file", "CSV with the keys of [[flow]] as header, beside the scenario"),
];
