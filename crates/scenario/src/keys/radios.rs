//! `[radio]`, `[mac]`, `[queue]`, and the errors of radios and links.

use super::MAX_S;
use super::limits::MAX_COORDINATE_M;
use crate::choice;
use crate::choice::{Choice, Chosen};
use crate::field::{self, Field};
use crate::schema::Default::{Number, Word};
use crate::schema::{Exception, Key, Literal, of_preset};
use core::num::NonZeroU16;
use hopline_queue::{
    CoDelConfig, DropTail, DualPi2Config, FqCoDelConfig, PieConfig, RedConfig, Service, SignalAction,
};
use hopline_radio::mac::config::{
    AckPolicy, BackoffRange, BlockAckSetup, EifsRule, FirstAccess, NavReset, Reservation, ResponseTimeout,
};
use hopline_radio::phy::propagation::ShadowingDraw;
use hopline_radio::rate::Preamble;
use hopline_sim::spec::AddressResolution;

/// Buffers of the Neighborhood RED paper, in packets.
pub const QUALNET_CAPACITY: NonZeroU16 = NonZeroU16::new(66).expect("not zero");
/// Size that counts as a packet where RED measures in bytes.
pub const RED_PACKET_BYTES: u32 = 1000;

/// Preset of [`radio::PRESET`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RadioPreset {
    /// ns-2's 914 MHz WaveLAN.
    Ns2Wavelan,
    /// ns-3's 802.11b at the ranges of ns-2.
    Ns3Wavelan,
    /// 802.11b.
    Dot11b,
    /// 802.11a.
    Dot11a,
    /// 802.11b, each rate with its own range.
    Dot11bRanges,
    /// 802.11a, each rate with its own range.
    Dot11aRanges,
    /// 802.11a with the defaults of the MadWifi driver at an access point.
    Madwifi,
    /// QualNet's 802.11 with a range of 367 m.
    Qualnet367,
}

/// Error model of [`errors::MODEL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Nothing.
    None,
    /// Bits, each by itself.
    Bit,
    /// Packets, each by itself.
    Packet,
    /// Packets, at equal distances.
    EveryNth,
    /// Packets, in bursts of packets.
    GilbertPacket,
    /// Bits, in bursts of time.
    GilbertElliott,
}

/// Keys of [`RADIO`]: one that always has a value, and those that choose.
pub mod radio {
    use super::*;

    /// `shadowing_draw`.
    pub const SHADOWING_DRAW: Choice<ShadowingDraw> = choice!(
        "shadowing_draw",
        { "per-frame" => ShadowingDraw::PerFrame, "per-link" => ShadowingDraw::PerLink },
        "of shadowing: unit of a draw, each frame or each link",
    );
    /// `address_resolution`.
    pub const ADDRESS_RESOLUTION: Choice<AddressResolution> = choice!(
        "address_resolution",
        { "known" => AddressResolution::Known, "arp" => AddressResolution::Arp },
        "source of the neighbours' link-layer addresses; arp: requested at first use, with one packet buffered meanwhile, as ns-2",
    ).default_except("known", &[Exception::new("with routing.dsr.preset = ns2-2.35", Literal::Word("arp"))]);
    /// `transmit_draw_w`.
    pub const TRANSMIT_DRAW_W: Field<f64> = Field::number(
        Key::number("transmit_draw_w", 0.0, 1e3, "power consumption while sending; affects energy alone")
            .with_default(Number(1.327)),
    );
    /// `receive_draw_w`.
    pub const RECEIVE_DRAW_W: Field<f64> = Field::number(
        Key::number("receive_draw_w", 0.0, 1e3, "the same while it receives or senses")
            .with_default(Number(0.967)),
    );
    /// `idle_draw_w`.
    pub const IDLE_DRAW_W: Field<f64> = Field::number(
        Key::number("idle_draw_w", 0.0, 1e3, "the same while it does neither").with_default(Number(0.843)),
    );
    /// `preset`.
    pub const PRESET: Chosen<RadioPreset> = choice!(
        "preset",
        {
            "ns2-wavelan" => RadioPreset::Ns2Wavelan,
            "ns3-wavelan" => RadioPreset::Ns3Wavelan,
            "dot11b" => RadioPreset::Dot11b,
            "dot11a" => RadioPreset::Dot11a,
            "dot11b-ranges" => RadioPreset::Dot11bRanges,
            "dot11a-ranges" => RadioPreset::Dot11aRanges,
            "madwifi" => RadioPreset::Madwifi,
            "qualnet-367" => RadioPreset::Qualnet367,
        },
        "starting point for all of [radio], [mac] and [queue]; see above",
    )
    .with_default("ns2-wavelan");
}

/// `[radio]`.
pub const RADIO: &[Key] = &of_preset("that of `preset`", [
    radio::PRESET.key,
    Key::word(
        "propagation",
        &["two-ray", "free-space", "log-distance", "shadowing", "range-disk"],
        "model of path loss",
    ),
    Key::number(
        "range_m",
        1.0,
        MAX_COORDINATE_M,
        "distance up to which a frame is received without interference; if each rate has its own: of data frames, and other rates scale with it",
    ),
    Key::number("carrier_sense_range_m", 1.0, MAX_COORDINATE_M, "distance up to which a frame is sensed"),
    Key::number(
        "interference_range_m",
        1.0,
        MAX_COORDINATE_M,
        "of range-disk: distance up to which a frame destroys another",
    ),
    Key::number("path_loss_exponent", 1.0, 10.0, "of log-distance and shadowing"),
    Key::number("reference_distance_m", 0.01, 1000.0, "of log-distance and shadowing: free space up to here"),
    Key::number("shadowing_deviation_db", 0.0, 50.0, "of shadowing: standard deviation"),
    radio::SHADOWING_DRAW.key,
    Key::number("tx_power_dbm", -100.0, 60.0, "transmitted power"),
    Key::number("frequency_mhz", 1.0, 300_000.0, "carrier frequency"),
    Key::number("antenna_height_m", 0.01, 1000.0, "of two-ray: height of both antennas"),
    Key::word("reception", RECEPTIONS, "treatment of simultaneous frames by a receiver"),
    Key::number("capture_db", 0.0, 100.0, "power by which a frame must exceed another to survive it"),
    radio::ADDRESS_RESOLUTION.key,
    Key::number(
        "arp_jitter_s",
        0.0,
        10.0,
        "of arp: requests have a random delay below this, so that synchronous requests of neighbours do not always collide",
    ).default_except(Literal::Number(0.01), &[Exception::new("of ns2-wavelan", Literal::Text("0 over a MAC that draws a back-off before each frame (mac.first_access)"))]),
    Key::number("link_layer_delay_us", 0.0, 1e6, "time from the network layer to the interface queue"),
    Key::integers(
        "channels",
        0,
        65_535,
        "a radio for each of these channels, at wireless nodes without their own list",
    ).derived("one radio, channel 0"),
    Key::number(
        "noise_figure_db",
        0.0,
        60.0,
        "of cumulative-sinr: receiver noise above thermal noise",
    ).default(Literal::Number(10.0)),
    Key::number(
        "noise_bandwidth_mhz",
        0.1,
        1000.0,
        "of cumulative-sinr: noise bandwidth; 802.11b: 22, 802.11a: 20",
    ).default(Literal::Number(22.0)),
    radio::TRANSMIT_DRAW_W.key,
    radio::RECEIVE_DRAW_W.key,
    radio::IDLE_DRAW_W.key,
    Key::table("errors", ERRORS, "errors on frames received otherwise intact"),
    Key::tables("loss", LOSS, "additional errors, on frames from one node to another; see above"),
]);

/// Reception models.
pub const RECEPTIONS: &[&str] = &["lock-on-sensed", "lock-on-decodable", "cumulative-sinr"];

/// Keys of [`MAC`] that choose.
pub mod mac {
    use super::*;

    /// `block_ack_setup`.
    pub const BLOCK_ACK_SETUP: Choice<BlockAckSetup> = choice!(
        "block_ack_setup",
        { "none" => BlockAckSetup::None, "addba" => BlockAckSetup::Addba },
        "of block-ack: agreement from the start, or by ADDBA Request and Response, with an ACK for each frame until then",
    ).default("none");
    /// `preamble`.
    pub const PREAMBLE: Choice<Preamble> =
        choice!("preamble", { "long" => Preamble::Long, "short" => Preamble::Short }, "of 802.11b frames");
    /// `first_access`.
    pub const FIRST_ACCESS: Choice<FirstAccess> = choice!(
        "first_access",
        {
            "immediate" => FirstAccess::Immediate,
            "idle-on-arrival" => FirstAccess::IdleOnArrival,
            "always-backoff" => FirstAccess::AlwaysBackoff,
        },
        "a frame on an idle medium; ns-2: always-backoff, ns-3: idle-on-arrival",
    );
    /// `eifs`.
    pub const EIFS: Choice<EifsRule> = choice!(
        "eifs",
        { "standard" => EifsRule::Standard, "as-nav" => EifsRule::AsNav },
        "after a frame not decoded; ns-2: as-nav",
    );
    /// `response_timeout`.
    pub const RESPONSE_TIMEOUT: Choice<ResponseTimeout> = choice!(
        "response_timeout",
        { "standard" => ResponseTimeout::Standard, "whole-response" => ResponseTimeout::WholeResponse },
        "wait for CTS and ACK; ns-2: whole-response",
    );
    /// `reservation`.
    pub const RESERVATION: Choice<Reservation> = choice!(
        "reservation",
        { "standard" => Reservation::Standard, "medium-idle" => Reservation::MediumIdle },
        "condition for a CTS; ns-2: medium-idle",
    );
    /// `backoff_range`.
    pub const BACKOFF_RANGE: Choice<BackoffRange> = choice!(
        "backoff_range",
        { "inclusive" => BackoffRange::Inclusive, "exclusive" => BackoffRange::Exclusive },
        "0 to CW, or to CW - 1; ns-2: exclusive",
    );
    /// `nav_reset`.
    pub const NAV_RESET: Choice<NavReset> = choice!(
        "nav_reset",
        { "never" => NavReset::Never, "after-silent-rts" => NavReset::AfterSilentRts },
        "a NAV set by an RTS that nothing follows",
    );
}

/// `[mac]`.
pub const MAC: &[Key] = &of_preset("that of `radio.preset`", [
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
        "longest MAC frame without RTS",
    ),
    Key::integer("short_retry_limit", 1, 255, "attempts of RTS and of frames up to the RTS threshold"),
    Key::integer("long_retry_limit", 1, 255, "attempts of frames above the RTS threshold"),
    Key::integer("cw_min", 1, 1023, "smallest contention window, 2^n - 1"),
    Key::integer("cw_max", 1, 32_767, "largest contention window, 2^n - 1"),
    Key::word(
        "ack_policy",
        &["normal", "no-ack", "block-ack"],
        "acknowledgment of unicast frames: each, none, or a block at once",
    ),
    Key::integer(
        "no_ack_min_bytes",
        0,
        65_535,
        "of no-ack: shortest unacknowledged packet, IP header included",
    ).default(Literal::Integer(0)),
    Key::integer("no_ack_max_bytes", 0, 65_535, "of no-ack: longest unacknowledged packet").derived("no limit"),
    Key::integer(
        "burst_limit_us",
        1,
        100_000,
        "of normal and no-ack, without effect with block-ack: longest time for which a station that has won the medium may send frames SIFS apart, ACKs included; 1: no bursts",
    ).derived("no bursts, of madwifi: 2048"),
    Key::integer("block_size", 1, 64, "of block-ack: most packets in a block").default(Literal::Integer(AckPolicy::DEFAULT_BLOCK_SIZE as u64)),
    Key::integer(
        "txop_limit_us",
        1,
        32_767,
        "of block-ack: longest block, BlockAck included",
    ).derived("no limit"),
    Key::number(
        "block_ack_timeout_ms",
        0.001,
        1e6,
        "of block-ack: silence after which a receiver drops the agreement and delivers waiting packets",
    ).derived("never"),
    Key::number(
        "msdu_lifetime_ms",
        0.001,
        1e6,
        "lifetime of a packet in the MAC",
    ).derived("no limit but that of attempts"),
    mac::BLOCK_ACK_SETUP.key,
    mac::PREAMBLE.key,
    mac::FIRST_ACCESS.key,
    mac::EIFS.key,
    mac::RESPONSE_TIMEOUT.key,
    mac::RESERVATION.key,
    mac::BACKOFF_RANGE.key,
    mac::NAV_RESET.key,
]);

/// Keys of [`QUEUE`] that choose.
pub mod queue {
    use super::*;

    /// `service`.
    pub const SERVICE: Choice<Service> = choice!(
        "service",
        { "fifo" => Service::Fifo, "routing-first" => Service::RoutingPriority },
        "service order; routing-first: routing packets have priority",
    )
    .default_except("fifo", &[Exception::new("of ns2-wavelan", Literal::Word("routing-first"))]);
    /// `action`.
    pub const ACTION: Choice<SignalAction> = choice!(
        "action",
        { "drop" => SignalAction::Drop, "mark" => SignalAction::Mark },
        "of red, codel, fq-codel and pie: action on a chosen packet; mark: ECN-capable packets are marked (TPA-wide, TCP with tcp.ecn), others dropped",
    ).default("drop");
}

/// `[queue]` and `link.queue`.
pub const QUEUE: &[Key] = &[
    Key::integer(
        "capacity_packets",
        1,
        65_535,
        "packets that the queue holds",
    ).default_except(Literal::Integer(DropTail::<()>::DEFAULT_CAPACITY.get() as u64), &[Exception::new("of ns2-wavelan", Literal::Integer(DropTail::<()>::NS2_CAPACITY.get() as u64)), Exception::new("of qualnet-367", Literal::Integer(QUALNET_CAPACITY.get() as u64))]),
    queue::SERVICE.key,
    Key::word_or_user_defined(
        "discipline",
        &["drop-tail", "red", "codel", "fq-codel", "pie", "dualpi2"],
        "queue discipline; red, codel, fq-codel, pie and dualpi2 drop or mark before the queue is full, but no routing messages; fq-codel: by flow, in turns, routing messages first; dualpi2: a queue for L4S and one for other traffic, routing messages first; own: user-defined, see docs/own-machines.md",
    )
    .with_default(Word("drop-tail")),
    Key::number(
        "min_threshold_packets",
        0.0,
        65_535.0,
        "of red: average queue below which all enter; below max_threshold_packets",
    ).default(Literal::Number(RedConfig::PAPER.min_threshold)),
    Key::number(
        "max_threshold_packets",
        0.001,
        65_535.0,
        "of red: average queue from which on none do",
    ).default(Literal::Number(RedConfig::PAPER.max_threshold)),
    Key::number("weight", 1e-6, 1.0, "of red: weight of the present queue in the average").default(Literal::Number(RedConfig::PAPER.weight)),
    Key::number(
        "max_probability",
        1e-6,
        1.0,
        "of red: share chosen as the average reaches max_threshold_packets",
    ).default(Literal::Number(RedConfig::PAPER.max_probability)),
    Key::word("measure", &["packets", "bytes"], "of red: unit of the queue length").default(Literal::Word("packets")),
    Key::integer(
        "mean_packet_bytes",
        1,
        65_535,
        "of red measured in bytes: bytes that count as a packet; of pie: half the backlog up to which no packet is dropped",
    ).default_except(Literal::Integer(RED_PACKET_BYTES as u64), &[Exception::new("of pie", Literal::Integer(PieConfig::RFC8033.mean_packet_bytes as u64))]),
    Key::flag(
        "gentle",
        "of red: above max_threshold_packets the share rises, up to all packets at twice that length",
    ).default(Literal::Flag(false)),
    Key::number(
        "idle_packet_ms",
        0.0,
        1000.0,
        "of red: interval at which an empty queue updates the average; 0: never",
    ).default(Literal::Number(1.0)),
    queue::ACTION.key,
    Key::number(
        "target_ms",
        0.001,
        10_000.0,
        "of codel, fq-codel, pie and dualpi2: target of the standing queueing delay; above the airtime of a packet",
    ).default_except(Literal::milliseconds(CoDelConfig::RFC8289.target), &[Exception::new("of pie and dualpi2", Literal::milliseconds(PieConfig::RFC8033.target))]),
    Key::number(
        "interval_ms",
        0.001,
        100_000.0,
        "of codel and fq-codel: time that the delay may exceed the target, some round-trip times",
    ).default(Literal::milliseconds(CoDelConfig::RFC8289.interval)),
    Key::integer(
        "packet_bytes",
        0,
        65_535,
        "of codel and fq-codel: backlog that is never congestion, a full packet",
    ).default(Literal::Integer(CoDelConfig::RFC8289.packet_bytes as u64)),
    Key::integer("flows", 1, 65_535, "of fq-codel: queues that flows are hashed onto").default(Literal::Integer(FqCoDelConfig::RFC8290.flows.get() as u64)),
    Key::integer("quantum_bytes", 1, 65_535, "of fq-codel: bytes in a turn, a full packet").default(Literal::Integer(FqCoDelConfig::RFC8290.quantum_bytes as u64)),
    Key::number(
        "update_interval_ms",
        0.1,
        1000.0,
        "of pie and dualpi2: interval between updates of the drop probability",
    ).default(Literal::milliseconds(PieConfig::RFC8033.update_interval)),
    Key::number(
        "alpha_hz",
        0.0,
        100.0,
        "of pie and dualpi2: change of the drop probability per update and second of delay above the target",
    ).default_except(Literal::Number(PieConfig::RFC8033.alpha_hz), &[Exception::new("of dualpi2", Literal::Number(DualPi2Config::RFC9332.alpha_hz))]),
    Key::number(
        "beta_hz",
        0.0,
        1000.0,
        "of pie and dualpi2: change of the drop probability per update and second by which the delay has grown",
    ).default_except(Literal::Number(PieConfig::RFC8033.beta_hz), &[Exception::new("of dualpi2", Literal::Number(DualPi2Config::RFC9332.beta_hz))]),
    Key::number("max_burst_ms", 0.0, 10_000.0, "of pie: time for which a burst enters without drops").default(Literal::milliseconds(PieConfig::RFC8033.max_burst)),
    Key::number(
        "mark_threshold",
        0.0,
        1.0,
        "of pie with action mark: drop probability from which on packets are dropped instead",
    ).default(Literal::Number(PieConfig::RFC8033.mark_threshold)),
    Key::word(
        "delay_estimate",
        &["timestamps", "dequeue-rate"],
        "of pie: measurement of the queueing delay; timestamps: time of the last packet in the queue; dequeue-rate: backlog divided by the rate at which it is served",
    ).default(Literal::Word("timestamps")),
    Key::integer(
        "dequeue_threshold_bytes",
        1,
        10_000_000,
        "of pie with delay_estimate dequeue-rate: length of a measurement, and backlog at which one starts",
    ).default(Literal::Integer(PieConfig::DEQUEUE_THRESHOLD_BYTES as u64)),
    Key::number(
        "activation_share",
        0.0,
        1.0,
        "of pie: share of the capacity at which it becomes active, until the congestion is over; 0: always active; RFC 8033 recommends 1/3",
    ).default(Literal::Number(0.0)),
    Key::flag(
        "derandomization",
        "of pie: no packet is chosen before the drop probabilities since the last drop add up to 0.85, and one is at 8.5; on in Linux",
    ).default(Literal::Flag(false)),
    Key::flag(
        "cap_drop_adjustment",
        "of pie: the drop probability grows by at most 0.02 per update from 0.1 on; on in Linux",
    ).default(Literal::Flag(false)),
    Key::number(
        "coupling_factor",
        1.0,
        100.0,
        "of dualpi2: ratio of the marking probability of L4S packets to the square root of the drop probability of other packets",
    ).default(Literal::Number(DualPi2Config::RFC9332.coupling)),
    Key::number(
        "l4s_threshold_ms",
        0.0,
        1000.0,
        "of dualpi2: queueing delay above which L4S packets are marked in any case",
    ).default(Literal::milliseconds(DualPi2Config::RFC9332.l4s_threshold)),
    Key::number(
        "l4s_ramp_ms",
        0.0,
        1000.0,
        "of dualpi2: range of delay above l4s_threshold_ms over which the probability of these marks rises to 1; 0: a step",
    ).default(Literal::milliseconds(DualPi2Config::RFC9332.l4s_ramp)),
    Key::integer(
        "l4s_min_backlog_packets",
        0,
        65_535,
        "of dualpi2: L4S packets that must be left in the queue for these marks",
    ).default(Literal::Integer(DualPi2Config::RFC9332.l4s_min_backlog_packets as u64)),
    Key::word(
        "scheduler",
        &["wrr", "ts-fifo"],
        "of dualpi2: choice of the queue; wrr: weighted round robin, L4S packets first; ts-fifo: the packet that has waited longest, with a time shift for L4S packets",
    ).default(Literal::Word("wrr")),
    Key::number(
        "classic_weight",
        0.001,
        0.999,
        "of dualpi2 with scheduler wrr: share of the link that other than L4S traffic has at least",
    ).default(Literal::Number(DualPi2Config::CLASSIC_WEIGHT)),
    Key::number(
        "time_shift_ms",
        0.0,
        10_000.0,
        "of dualpi2 with scheduler ts-fifo: time by which L4S packets count as older",
    ).default(Literal::milliseconds(DualPi2Config::TIME_SHIFT)),
];

/// Keys of [`ERRORS`] that always have a value.
pub mod errors {
    use super::*;

    /// `model`.
    pub const MODEL: Chosen<ErrorKind> = choice!(
        "model",
        {
            "none" => ErrorKind::None,
            "bit" => ErrorKind::Bit,
            "packet" => ErrorKind::Packet,
            "every-nth" => ErrorKind::EveryNth,
            "gilbert-packet" => ErrorKind::GilbertPacket,
            "gilbert-elliott" => ErrorKind::GilbertElliott,
        },
        "error model; gilbert-packet: bursts counted in packets: a burst lasts while nothing is sent, also during a timeout of TCP; gilbert-elliott: bursts in time, as of radios",
    )
    .with_default("none");
}

/// `radio.errors`, and with a direction `link.errors`.
pub const ERRORS: &[Key] = &[
    errors::MODEL.key,
    Key::number("bit_error_rate", 0.0, 1.0, "of bit: probability that a bit is damaged"),
    Key::number("packet_loss", 0.0, 1.0, "of packet: probability that a packet is lost"),
    Key::integer("nth", 1, 1_000_000_000, "of every-nth: every nth packet is lost"),
    Key::number("good_to_bad", 0.0, 1.0, "of gilbert-packet: probability per packet that a burst begins"),
    Key::number("bad_to_good", 0.0, 1.0, "of gilbert-packet: probability per packet that a burst ends"),
    Key::number("loss_good", 0.0, 1.0, "of gilbert-packet: packet loss outside bursts")
        .with_default(Number(0.0)),
    Key::number("loss_bad", 0.0, 1.0, "of gilbert-packet: packet loss in bursts").with_default(Number(1.0)),
    Key::number("mean_good_s", 0.0, MAX_S, "of gilbert-elliott: mean time between bursts"),
    Key::number("mean_bad_s", 0.0, MAX_S, "of gilbert-elliott: mean length of a burst"),
    Key::number("bit_error_rate_good", 0.0, 1.0, "of gilbert-elliott: outside bursts")
        .with_default(Number(0.0)),
    Key::number("bit_error_rate_bad", 0.0, 1.0, "of gilbert-elliott: in bursts"),
];

/// Keys of [`LOSS`] that always have a value, beside those of [`ERRORS`].
pub mod loss {
    use super::*;

    /// `from`.
    pub const FROM: Field<field::Word> =
        Field::word(Key::text("from", "name of the node that sends the lost frames").required());
    /// `to`.
    pub const TO: Field<field::Word> =
        Field::word(Key::text("to", "name of the node that does not decode them").required());
}

/// `[[radio.loss]]`.
pub const LOSS: &[Key] = &{
    let mut keys = [loss::FROM.key; ERRORS.len() + 3];
    keys[1] = loss::TO.key;
    keys[2] = Key::flag("both_ways", "whether `from` loses frames of `to` too, drawn independently")
        .default(Literal::Flag(false));
    let mut n = 0;
    while n < ERRORS.len() {
        keys[n + 3] = ERRORS[n];
        n += 1;
    }
    keys
};

/// Keys of [`LINK_ERRORS`] that always have a value, beside those of [`ERRORS`].
pub mod link_errors {
    use super::*;

    /// `direction`.
    pub const DIRECTION: Field<field::Word> = Field::word(
        Key::word(
            "direction",
            &["both", "a-to-b", "b-to-a"],
            "direction of the errors: both, or one, to lose data but not their ACKs",
        )
        .with_default(Word("both")),
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
