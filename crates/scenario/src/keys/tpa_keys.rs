//! TPA: `[tpa]` and `flow.tpa`.

use super::Key;
use crate::choice;
use crate::choice::Choice;
use crate::schema::{Exception, Literal};
use hopline_transport::tpa::{
    AckEvery, CompleteBlock, Config, CongestedBackoff, CountReset, EchoRule, FreezeExit, MergedExit,
    Notification, RoundStart, RtoConfig, SimultaneousTimeouts,
};

const DEFAULT: Config = Config::TPA_3;
const RTO: RtoConfig = DEFAULT.rto();

/// Keys of [`TPA`] that choose.
pub mod tpa {
    use super::*;

    /// `rounds`.
    pub const ROUNDS: Choice<RoundStart> = choice!(
        "rounds",
        { "all-sent" => RoundStart::AllSent, "all-settled" => RoundStart::AllResolved },
        "state of a round's segments before timed-out ones are retransmitted",
    )
    .default("all-sent");
    /// `ack_every`.
    pub const ACK_EVERY: Choice<AckEvery> = choice!(
        "ack_every",
        { "other" => AckEvery::Other, "window" => AckEvery::Window },
        "segments for one ACK: two, or cwndmax",
    )
    .default_except("other", &[Exception::new("of tpa-star", Literal::Word("window"))]);
    /// `complete_block`.
    pub const COMPLETE_BLOCK: Choice<CompleteBlock> = choice!(
        "complete_block",
        { "ack-at-once" => CompleteBlock::AckAtOnce, "ack-as-usual" => CompleteBlock::AckAsUsual },
        "ACK of the last missing segment of a block (B6)",
    )
    .default("ack-at-once");
    /// `echo`.
    pub const ECHO: Choice<EchoRule> = choice!(
        "echo",
        { "last" => EchoRule::Last, "first" => EchoRule::First },
        "the segment that an ACK names (B8)",
    )
    .default("last");
    /// `notification`.
    pub const NOTIFICATION: Choice<Notification> = choice!(
        "notification",
        {
            "none" => Notification::None,
            "elfn" => Notification::Elfn,
            "elfn-and-recovery" => Notification::ElfnAndRecovery,
        },
        "route notifications to the sender (see routing.failure_notification); elfn: of a loss; elfn-and-recovery: also of the return, for which it waits in silence, with routing.protocol = \"olsr\" only",
    ).default("none");
    /// `timeout_run_end`.
    pub const ROW_ENDS: Choice<CountReset> = choice!(
        "timeout_run_end",
        { "any-news" => CountReset::AnyNewAck, "latest-transmission" => CountReset::LatestTransmission },
        "ACKs that end a series of timeouts (B1)",
    )
    .formerly(&["count_reset"])
    .default("any-news");
    /// `simultaneous`.
    pub const SIMULTANEOUS: Choice<SimultaneousTimeouts> = choice!(
        "simultaneous_timeouts",
        { "each" => SimultaneousTimeouts::Each, "once" => SimultaneousTimeouts::Once },
        "count of timers that expire together (B3)",
    )
    .formerly(&["simultaneous"])
    .default("each");
    /// `congested_backoff`.
    pub const CONGESTED_BACKOFF: Choice<CongestedBackoff> = choice!(
        "congested_backoff",
        {
            "when-merged" => CongestedBackoff::WhenMerged,
            "always" => CongestedBackoff::Always,
            "never" => CongestedBackoff::Never,
        },
        "whether the timer doubles while congested (B2); when-merged: without notifications",
    )
    .default("when-merged");
    /// `freeze_exit`.
    pub const FREEZE_EXIT: Choice<FreezeExit> = choice!(
        "freeze_exit",
        { "latest-transmission" => FreezeExit::LatestTransmission, "any-news" => FreezeExit::AnyNewAck },
        "the ACK that ends the freeze state (B5)",
    )
    .default("latest-transmission");
    /// `merged_exit`.
    pub const MERGED_EXIT: Choice<MergedExit> = choice!(
        "merged_exit",
        { "route-change" => MergedExit::RouteChange, "plain" => MergedExit::Plain },
        "transition out of the merged state",
    )
    .default("route-change");
}

/// `[tpa]` and `flow.tpa`. B1 to B8: see docs/protocols/tpa.md.
pub const TPA: &[Key] = &[
    Key::integer("cwnd_max", 1, 12, "cwndmax, segments in flight without congestion")
        .default(Literal::Integer(DEFAULT.cwnd_max() as u64)),
    Key::integer("mss_bytes", 1, 65_000, "largest segment").default(Literal::Integer(DEFAULT.mss() as u64)),
    Key::integer("block_segments", 1, 12, "K, segments in a block")
        .default(Literal::Integer(DEFAULT.block_segments() as u64)),
    Key::integer("block_fill_ms", 0, 60_000, "time for which data wait for a full block")
        .default(Literal::whole_milliseconds(DEFAULT.block_fill())),
    tpa::ROUNDS.key,
    tpa::ACK_EVERY.key,
    Key::integer("ack_timer_ms", 0, 10_000, "longest delay of an ACK")
        .default(Literal::whole_milliseconds(DEFAULT.ack().timer())),
    tpa::COMPLETE_BLOCK.key,
    tpa::ECHO.key,
    Key::number("min_rto_s", 0.001, 600.0, "smallest retransmission timeout")
        .default(Literal::seconds(RTO.min())),
    Key::number("initial_rto_s", 0.001, 60.0, "retransmission timeout before the first sample")
        .default(Literal::seconds(RTO.initial())),
    Key::number("max_rto_s", 0.001, 1e6, "largest retransmission timeout")
        .default(Literal::seconds(RTO.max())),
    Key::number("g", 0.001, 1.0, "weight of a sample in the mean round trip")
        .default(Literal::Number(RTO.g())),
    Key::number("h", 0.001, 1.0, "weight of a sample in its deviation").default(Literal::Number(RTO.h())),
    Key::number("g1", 0.001, 1.0, "g after a route change").default(Literal::Number(RTO.g1())),
    Key::number("h1", 0.001, 1.0, "h after a route change").default(Literal::Number(RTO.h1())),
    Key::integer("th_rc", 1, 255, "thRC, consecutive samples off the mean that indicate a route change")
        .default(Literal::Integer(RTO.th_rc() as u64)),
    Key::integer("n_rc", 0, 255, "nRC, updates with g1 and h1").default(Literal::Integer(RTO.n_rc() as u64)),
    tpa::NOTIFICATION.key,
    Key::integer("th_cong", 1, 255, "thCONG, consecutive timeouts that indicate congestion")
        .default(Literal::Integer(DEFAULT.failures().th_cong() as u64)),
    Key::integer_or(
        "th_route",
        1,
        255,
        &["none"],
        "thROUTE beside notifications: consecutive timeouts that indicate a lost route",
    )
    .default(Literal::Word("none")),
    Key::integer("th_ack", 1, 255, "thACK, consecutive ACKs that end congestion")
        .default(Literal::Integer(DEFAULT.failures().th_ack() as u64)),
    tpa::ROW_ENDS.key,
    tpa::SIMULTANEOUS.key,
    tpa::CONGESTED_BACKOFF.key,
    tpa::FREEZE_EXIT.key,
    tpa::MERGED_EXIT.key,
    Key::word("pacing", &["none", "adaptive"], "adaptive: as tpa-ap")
        .default_except(Literal::Word("none"), &[Exception::new("of tpa-ap", Literal::Word("adaptive"))]),
    Key::integer("receive_buffer_bytes", 1, 1 << 30, "received data kept for the application")
        .default(Literal::Integer(DEFAULT.receive_buffer() as u64)),
    Key::integer_or(
        "user_timeout_s",
        1,
        1_000_000,
        &["none"],
        "longest time without a due answer of the peer before the sender gives up",
    )
    .formerly(&["silence_limit_s"])
    .default(Literal::Word("none")),
];
