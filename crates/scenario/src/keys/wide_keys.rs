//! TPA-wide: `[wide]` and `flow.wide`.

use super::Key;
use crate::schema::Literal;
use hopline_transport::wide::{AckConfig, CompetingConfig, Config, ControlConfig};

const DEFAULT: Config = Config::DEFAULT;
const ACK: AckConfig = DEFAULT.ack();
const CONTROL: ControlConfig = DEFAULT.control();
const COMPETING: CompetingConfig = CONTROL.competing();

const fn whole(value: u32) -> Literal {
    Literal::Integer(value as u64)
}

/// `[wide]` and `flow.wide`; see docs/protocols/tpa-wide.md.
pub const WIDE: &[Key] = &[
    Key::integer("mss_bytes", 64, 65_000, "largest number of data bytes in a packet")
        .default(whole(DEFAULT.mss() as u32)),
    Key::integer("receive_buffer_bytes", 256, 1 << 30, "received data kept for the application")
        .default(Literal::Integer(DEFAULT.receive_buffer())),
    Key::integer("ack_every", 1, 1000, "packets per acknowledgment").default(whole(ACK.every())),
    Key::number("ack_delay_ms", 0.0, 1000.0, "longest delay of an acknowledgment")
        .default(Literal::milliseconds(ACK.delay())),
    Key::number(
        "relaxed_ack_delay_ms",
        0.0,
        10_000.0,
        "the same at little loss, if ack_every packets take longer than twice ack_delay_ms",
    )
    .formerly(&["ack_late_ms"])
    .default(Literal::milliseconds(ACK.relaxed_delay())),
    Key::integer(
        "low_rate_ack_every",
        1,
        1000,
        "packets per acknowledgment at intervals above low_rate_interval_ms",
    )
    .formerly(&["ack_rare_every"])
    .default(whole(ACK.low_rate_every())),
    Key::number("low_rate_interval_ms", 0.0, 10_000.0, "packet interval above which the packet rate is low")
        .formerly(&["ack_rare_ms"])
        .default(Literal::milliseconds(ACK.low_rate_interval())),
    Key::number(
        "relaxed_ack_max_loss",
        0.0,
        1.0,
        "baseline loss rate below which relaxed_ack_delay_ms applies",
    )
    .formerly(&["ack_late_below"])
    .default(Literal::Number(ACK.relaxed_max_loss())),
    Key::integer(
        "reordering_window_divisor",
        1,
        1000,
        "divisor of the minimum round-trip time that gives the reordering window, until reordering is observed",
    )
    .formerly(&["reordering_share"])
    .default(whole(DEFAULT.loss_detection().reordering_divisor())),
    Key::integer("initial_window", 1, 100, "packets sent before the first acknowledgment")
        .default(whole(CONTROL.initial_window())),
    Key::number("max_queueing_delay_ms", 0.1, 10_000.0, "standing queue that indicates congestion: fixed part")
        .formerly(&["queue_high_ms"])
        .default(Literal::milliseconds(CONTROL.queue_high())),
    Key::number(
        "max_queueing_delay_packets",
        0.0,
        1000.0,
        "the same: part that is added, in packets of the flow at their interval",
    )
    .formerly(&["queue_packets"])
    .default(Literal::Number(CONTROL.queue_packets())),
    Key::number("empty_queue_fraction", 0.001, 1.0, "share of both parts below which the queue counts as empty")
        .formerly(&["queue_low"])
        .default(Literal::Number(CONTROL.queue_low())),
    Key::number(
        "jitter_weight",
        0.0,
        100.0,
        "weight of delay jitter that is not attributed to a queue; 4: as much as uniform jitter explains",
    )
    .formerly(&["jitter"])
    .default(Literal::Number(CONTROL.jitter())),
    Key::number("decrease_factor", 0.01, 1.0, "factor of the rate after congestion")
        .formerly(&["keep"])
        .default(Literal::Number(CONTROL.decrease_factor())),
    Key::number("drain_gain", 0.01, 1.0, "share of the rate while a queue drains, or losses are tested")
        .formerly(&["drain"])
        .default(Literal::Number(CONTROL.drain_gain())),
    Key::integer(
        "futile_drains",
        1,
        1_000_000_000,
        "consecutive drains without relief that indicate competing traffic",
    )
    .formerly(&["undrained"])
    .default(whole(COMPETING.futile_drains())),
    Key::number("drain_fraction", 0.01, 1.0, "a drain brings relief if less than this share of the queue is left")
        .formerly(&["relief"])
        .default(Literal::Number(COMPETING.drain_fraction())),
    Key::integer(
        "probe_rounds",
        1,
        1_000_000_000,
        "round trips with a queue and without a drain, before the rate is reduced as a probe for competing traffic; also until high losses are first tested",
    )
    .formerly(&["look_rounds"])
    .default(whole(COMPETING.probe_rounds())),
    Key::number(
        "headroom",
        1.0,
        100.0,
        "largest sending rate as a multiple of the recent delivery rate, and most data in flight in bandwidth-delay products",
    )
    .formerly(&["delivery_headroom", "ahead", "cwnd_gain", "in_flight"])
    .default(Literal::Number(CONTROL.headroom())),
    Key::number(
        "growth_interval_ms",
        0.001,
        100_000.0,
        "in the first round trip without a queue the rate grows by one packet per interval, per interval",
    )
    .formerly(&["growth_ms"])
    .default(Literal::milliseconds(CONTROL.growth_interval())),
    Key::number("max_growth", 0.0001, 1.0, "largest first step of growth, as a share of the rate")
        .formerly(&["growth_max"])
        .default(Literal::Number(CONTROL.growth_max())),
    Key::number(
        "loss_threshold",
        0.0,
        100.0,
        "standard deviations above the loss baseline from which losses may indicate congestion",
    )
    .formerly(&["excess"])
    .default(Literal::Number(CONTROL.loss_threshold())),
    Key::number(
        "max_unobserved_loss",
        0.0,
        1.0,
        "largest loss rate that is attributed to the path unless it was observed while the queue was short",
    )
    .formerly(&["max_loss_with_queue", "max_loss_without_queue", "max_unverified_loss", "unproven"])
    .default(Literal::Number(CONTROL.max_unobserved_loss())),
    Key::integer_or(
        "user_timeout_s",
        1,
        1_000_000,
        &["none"],
        "longest silence of a peer that has to answer",
    )
    .formerly(&["silence_limit_s"])
    .default(Literal::Word("none")),
];
