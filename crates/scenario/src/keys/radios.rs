//! `[radio]`, `[mac]`, `[queue]`, and the errors of radios and links.

use super::{FAR_M, LONGEST_S};
use crate::field::{self, Field};
use crate::schema::Default::{Number, Word};
use crate::schema::Key;

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
