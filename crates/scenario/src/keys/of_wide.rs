//! TPA-wide: `[wide]` and `flow.wide`.

use super::Key;

/// `[wide]` and `flow.wide`; see docs/protocols/tpa-wide.md.
pub const WIDE: &[Key] = &[
    Key::integer("mss_bytes", 64, 65_000, "most data in a packet; default: 1437"),
    Key::integer(
        "receive_buffer_bytes",
        256,
        1 << 30,
        "received data kept for the application; default: 16777216",
    ),
    Key::integer("ack_every", 1, 1000, "packets for one acknowledgment; default: 4"),
    Key::number("ack_delay_ms", 0.0, 1000.0, "longest delay of an acknowledgment; default: 5"),
    Key::number(
        "ack_late_ms",
        0.0,
        10_000.0,
        "the same where little is lost and packets are rare; default: 100",
    ),
    Key::number("ack_late_below", 0.0, 1.0, "share of packets that is little in this; default: 0.1"),
    Key::integer(
        "reordering_share",
        1,
        1000,
        "the reordering window is the least round trip divided by this, while nothing comes late; default: 8",
    ),
    Key::integer("initial_window", 1, 100, "packets sent before anything is known of the path; default: 10"),
    Key::number("queue_high_ms", 0.1, 10_000.0, "standing queue that is congestion; default: 2"),
    Key::number(
        "queue_packets",
        0.0,
        1000.0,
        "packets of the flow to be added to that, in the time between them; default: 2.5",
    ),
    Key::number("queue_low", 0.001, 1.0, "share of that below which there is no queue; default: 0.2"),
    Key::number(
        "jitter",
        0.0,
        100.0,
        "how much of what jitter does to delays is no queue: 4 what uniform jitter explains; default: 8",
    ),
    Key::number("keep", 0.01, 1.0, "what congestion leaves of the rate; default: 0.95"),
    Key::number("drain", 0.01, 1.0, "share of that rate while a queue drains; default: 0.75"),
    Key::integer("drain_rounds", 1, 100, "most round trips for that; default: 6"),
    Key::integer(
        "undrained",
        1,
        1_000_000_000,
        "queues in a row that do not drain before it competes with those that fill them; default: 4",
    ),
    Key::number("ahead", 1.0, 100.0, "how much more than what arrived of late is sent at most; default: 1.5"),
    Key::number(
        "growth_ms",
        0.001,
        100_000.0,
        "in the first round trip without queue the rate grows by a packet in this time, in this time; default: 50",
    ),
    Key::number(
        "growth_max",
        0.0001,
        1.0,
        "share of the rate by which it grows in a round trip at most; default: 0.25",
    ),
    Key::number("spare", 1.0, 1000.0, "packets that may be in flight beyond those; default: 4"),
    Key::number("in_flight", 1.0, 100.0, "most bandwidth-delay products in flight; default: 2"),
    Key::number(
        "excess",
        0.0,
        100.0,
        "standard deviations beyond the usual from which losses may be congestion; default: 2.5",
    ),
    Key::number(
        "unproven",
        0.0,
        1.0,
        "more losses than this share are not believed to be the path's before a queue has drained while they stayed; default: 0.05",
    ),
    Key::number("proof_s", 0.0, 1e6, "how long such a proof holds, or 256 round trips; default: 15"),
    Key::number(
        "credit_s",
        0.0,
        1e6,
        "how long more is believed without one, and then not, in turn, or 64 round trips; default: 3",
    ),
    Key::number(
        "unproven_floor",
        0.0,
        1.0,
        "what losses that are not believed leave of the rate at least; default: 0.25",
    ),
    Key::number("unproven_ahead", 1.0, 100.0, "ahead, without a proof; default: 1.1"),
    Key::number(
        "decided",
        0.0,
        100.0,
        "how much likelier one cause of losses is than the other when a test ends, as a logarithm; default: 0.5",
    ),
    Key::integer_or(
        "silence_limit_s",
        1,
        1_000_000,
        &["none"],
        "how long the peer may be silent while something is due from it; default: none",
    ),
];
