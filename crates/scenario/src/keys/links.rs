//! `[[link]]`, `[[route]]` and `[[outage]]`.

use super::{ARQ, LINK_ERRORS, MAX_S, QUEUE};
use crate::field::{self, Field};
use crate::schema::Default::{Integer, Number, Word};
use crate::schema::{Key, Literal};

/// Keys of [`LINK`] that always have a value.
pub mod link {
    use super::*;

    /// `a`.
    pub const A: Field<field::Word> = Field::word(Key::text("a", "name of the node at one end").required());
    /// `b`.
    pub const B: Field<field::Word> =
        Field::word(Key::text("b", "name of the node at the other end").required());
    /// `delay_ms`.
    pub const DELAY_MS: Field<f64> =
        Field::number(Key::number("delay_ms", 0.0, 1e6, "propagation delay").required());
}

/// `[[link]]`.
pub const LINK: &[Key] = &[
    link::A.key,
    link::B.key,
    Key::number("rate_mbps", 1e-6, 1e6, "rate of each direction, except for those with a rate_trace")
        .derived("required without a rate_trace"),
    link::DELAY_MS.key,
    Key::table("queue", QUEUE, "queue in front of each direction"),
    Key::table("arq", ARQ, "retransmission by the link itself"),
    Key::table("jitter", JITTER, "delay jitter that keeps the order of packets"),
    Key::table(
        "slots",
        SLOTS,
        "packets leave together at certain times only, as by aggregation or a schedule",
    ),
    Key::table("reordering", REORDERING, "packets with an additional delay, as over another path")
        .formerly(&["late"]),
    Key::table("policer", POLICER, "token bucket in front of the queue that drops packets beyond a rate"),
    Key::table("shaper", SHAPER, "shaper between queue and link that delays packets beyond a rate"),
    Key::tables("rate", RATE, "other rates, from a time on"),
    Key::tables("rate_trace", RATE_TRACE, "rates from a file, repeated until the run ends"),
    Key::tables("delay", DELAY, "other propagation delays, from a time on, as after a change of the path"),
    Key::table("errors", LINK_ERRORS, "errors on each direction, or on one; drawn independently"),
];

/// `link.jitter.direction`, `link.slots.direction`, `link.reordering.direction`, `link.policer.direction`,
/// `link.shaper.direction`, `link.rate_trace.direction`.
pub const DIRECTION: Field<field::Word> = Field::word(
    Key::word("direction", &["both", "a-to-b", "b-to-a"], "direction of the affected packets")
        .with_default(Word("both")),
);

/// `link.jitter`.
pub const JITTER: &[Key] = &[
    Key::number("max_ms", 0.001, 1e6, "largest additional delay, drawn uniformly for each packet")
        .formerly(&["up_to_ms"])
        .required(),
    DIRECTION.key,
];

/// `link.slots`.
pub const SLOTS: &[Key] = &[
    Key::number("interval_ms", 0.001, 1e6, "interval between such times").formerly(&["every_ms"]).required(),
    DIRECTION.key,
];

/// `link.reordering`.
pub const REORDERING: &[Key] = &[
    Key::number("fraction", 0.0, 1.0, "share of the packets that are delayed, drawn for each")
        .formerly(&["share"])
        .required(),
    Key::number("extra_delay_ms", 0.001, 1e6, "additional delay of these packets")
        .formerly(&["by_ms"])
        .required(),
    DIRECTION.key,
];

/// `link.policer`.
pub const POLICER: &[Key] = &[
    Key::number("rate_mbps", 1e-6, 1e6, "rate of its tokens").required(),
    Key::integer("burst_bytes", 1, 1 << 40, "capacity in tokens, full at first").required(),
    DIRECTION.key,
];

/// `link.shaper`.
pub const SHAPER: &[Key] = &[
    Key::number("rate_mbps", 1e-6, 1e6, "rate of packets that leave the queue").required(),
    shaper::BURST_BYTES.key,
    shaper::OVERHEAD_BYTES.key,
    shaper::MPU_BYTES.key,
    DIRECTION.key,
];

/// Keys of [`SHAPER`] that always have a value.
pub mod shaper {
    use super::*;

    /// `burst_bytes`.
    pub const BURST_BYTES: Field<u64> = Field::integer(
        Key::integer(
            "burst_bytes",
            0,
            1 << 40,
            "credit of an idle link: so many bytes and a packet leave at once; 0: all are spaced",
        )
        .with_default(Integer(0)),
    );
    /// `overhead_bytes`.
    pub const OVERHEAD_BYTES: Field<u64> = Field::integer(
        Key::integer("overhead_bytes", 0, 256, "added to the length of each packet, as framing behind")
            .with_default(Integer(0)),
    );
    /// `mpu_bytes`.
    pub const MPU_BYTES: Field<u64> = Field::integer(
        Key::integer("mpu_bytes", 0, 1500, "least length that a packet counts as, overhead included")
            .with_default(Integer(0)),
    );
}

/// `link.rate_trace`.
pub const RATE_TRACE: &[Key] = &[
    Key::text(
        "file",
        "times of opportunities as mahimahi has them, or a CSV with the header `time_s,rate_mbps`",
    )
    .required(),
    rate_trace::INTERVAL_MS.key,
    rate_trace::OFFSET_S.key,
    DIRECTION.key,
];

/// Keys of [`RATE_TRACE`] that always have a value.
pub mod rate_trace {
    use super::*;

    /// `interval_ms`.
    pub const INTERVAL_MS: Field<u64> = Field::integer(
        Key::integer(
            "interval_ms",
            1,
            3_600_000,
            "of opportunities: interval over which they are counted to give a rate",
        )
        .with_default(Integer(20)),
    );
    /// `offset_s`.
    pub const OFFSET_S: Field<f64> = Field::number(
        Key::number("offset_s", 0.0, MAX_S, "time of the trace at which a run starts")
            .with_default(Number(0.0)),
    );
}

/// `link.rate`.
pub const RATE: &[Key] = &[
    Key::number("from_s", 0.0, MAX_S, "start of this rate").required(),
    Key::number("rate_mbps", 1e-6, 1e6, "rate of each direction").required(),
];

/// `link.delay`.
pub const DELAY: &[Key] = &[
    Key::number("from_s", 0.0, MAX_S, "start of this delay, for packets that leave from then on").required(),
    Key::number("delay_ms", 0.0, 1e6, "propagation delay").required(),
];

/// Keys of [`ROUTE`] that always have a value.
pub mod route {
    use super::*;

    /// `at`.
    pub const AT: Field<field::Word> =
        Field::word(Key::text("at", "name of the node with this route").required());
    /// `to`.
    pub const TO: Field<field::Word> = Field::word(Key::text("to", "name of the destination").required());
    /// `via`.
    pub const VIA: Field<field::Word> = Field::word(
        Key::text("via", "name of the next hop: over a [[link]], or a common channel").required(),
    );
}

/// `[[route]]`.
pub const ROUTE: &[Key] = &[route::AT.key, route::TO.key, route::VIA.key];

/// Keys of [`OUTAGE`] that always have a value.
pub mod outage {
    use super::*;

    /// `from`.
    pub const FROM: Field<field::Word> =
        Field::word(Key::text("from", "name of the sending node").required());
    /// `to`.
    pub const TO: Field<field::Word> =
        Field::word(Key::text("to", "name of the node that does not receive from it").required());
    /// `start_s`.
    pub const START_S: Field<f64> =
        Field::number(Key::number("start_s", 0.0, MAX_S, "start").with_default(Number(0.0)));
    /// `blocks`.
    pub const BLOCKS: Field<field::Word> = Field::word(Key::word(
        "blocks",
        &["frames", "packets"],
        "frames: a link too weak to decode; packets: a filter by MAC address above the MAC, which goes on answering",
    )
    .with_default(Word("frames")));
}

/// `[[outage]]`.
pub const OUTAGE: &[Key] = &[
    outage::FROM.key,
    outage::TO.key,
    outage::START_S.key,
    Key::number("end_s", 0.0, MAX_S, "end; above start_s").derived("never"),
    Key::number("every_s", 1e-6, MAX_S, "interval of repetitions, until the run ends")
        .derived("it comes once"),
    Key::flag("both_ways", "whether `from` does not receive from `to` either").default(Literal::Flag(false)),
    outage::BLOCKS.key,
];
