//! Transports of flows: `[tcp]`, `[door]`, `[pacing]`, `[feedback]`.

use super::Key;
use crate::choice;
use crate::choice::Choice;
use crate::schema::{Exception, Literal, of_preset};
use hopline_core::Duration;
use hopline_transport::pacing as pacing_of;
use hopline_transport::pacing::{DuplicateAcks, ShortPaths, Variability};
use hopline_transport::tcp::{
    AckOrder, BbrConfig, BbrVersion, ClosedWindow, Config, CubicArithmetic, CubicConfig, CwndAfterFreeze,
    DataOrder, DisabledRetransmissions, EcnMode, FixedRtoConfig, Frto, HeldTimerBackoff, HeldVariables,
    InFlightAfterFreeze, LateRule, LimitedTransmit, LossDetection, PrrBound, RackConfig, RecoveryReduction,
    RecoveryTimeout, RepeatedEvent, RouteReturn, RtoAfterFreeze, RtoFloor, TailProbe, TcpFConfig,
    TimestampEcho, UndoReach,
};

/// T1 and T2 of TCP-DOOR, in retransmission timeouts.
pub const DOOR_TIME: f64 = 2.0;
/// Time between probes of ELFN, ATCP and TCP-BuS where they are sent at intervals.
pub const PROBE_INTERVAL: Duration = Duration::from_secs(2);

const MODERN: Config = Config::modern();
const CUBIC: CubicConfig = CubicConfig::RFC9438;
const AUTHORS: pacing_of::Config = pacing_of::Config::AUTHORS;
/// Loss threshold, beta and headroom of BBR version 3.
const BBR3: (f64, f64, f64) = match BbrConfig::V3.version {
    BbrVersion::V3 { loss_threshold, beta, headroom } => (loss_threshold, beta, headroom),
    BbrVersion::V1 { .. } => panic!("it is version 3"),
};

/// Constructor of a preset of TCP.
pub type Preset = fn() -> Config;

/// Transports of bulk flows.
pub const TRANSPORTS: &[&str] = &[
    "tcp-newreno",
    "tcp-sack",
    "tcp-reno",
    "tcp-cubic",
    "tcp-bbr",
    "tcp-bbr3",
    "tcp-ap",
    "tcp-door",
    "tcp-f",
    "tcp-elfn",
    "atcp",
    "tcp-bus",
    "tcp-fixed-rto",
    "tpa",
    "tpa-star",
    "tpa-ap",
    "tpa-wide",
];

/// Keys of [`TCP`] that choose.
pub mod tcp {
    use super::*;

    /// `preset`.
    pub const PRESET: Choice<Preset> = choice!(
        "preset",
        {
            "modern" => Config::modern,
            "linux" => Config::linux,
            "ns2-2.35" => Config::ns2_235,
            "ns2-2006" => Config::ns2_2006,
            "ns2-2001" => Config::ns2_2001,
            "qualnet" => Config::qualnet,
            "bsd" => Config::bsd,
        },
        "starting point",
    )
    .default_except(
        "modern",
        &[Exception::new("of tcp-cubic, tcp-bbr and tcp-bbr3", Literal::Word("linux"))],
    );
    /// `recovery_window`.
    pub const RECOVERY_WINDOW: Choice<RecoveryReduction> = choice!(
        "recovery_window",
        {
            "at-once" => RecoveryReduction::AtOnce,
            "prr" => RecoveryReduction::Prr(PrrBound::SafeAck),
            "prr-conservative" => RecoveryReduction::Prr(PrrBound::Conservative),
            "prr-slow-start" => RecoveryReduction::Prr(PrrBound::SlowStart),
        },
        "of tcp-sack and tcp-cubic: how the window comes down in recovery; prr: RFC 9937, the others RFC 6937",
    ).default_except("at-once", &[Exception::new("of preset linux", Literal::Word("prr"))]);
    /// `ecn`.
    pub const ECN: Choice<EcnMode> = choice!(
        "ecn",
        { "off" => EcnMode::Never, "if-asked" => EcnMode::Accept, "ask" => EcnMode::Request },
        "whether data may be marked in place of being dropped (RFC 3168); both ends of a flow are alike, so it takes ask",
    ).default_except("off", &[Exception::new("of preset linux", Literal::Word("if-asked")), Exception::new("of atcp", Literal::Word("ask"))]);
    /// `cubic_arithmetic`.
    pub const CUBIC_ARITHMETIC: Choice<CubicArithmetic> = choice!(
        "cubic_arithmetic",
        { "real" => CubicArithmetic::Real, "linux" => CubicArithmetic::Linux },
        "of cubic: how windows follow the function; real: with each ACK, linux: in whole segments, at a pace that lasts for up to 1/32 s",
    ).default_except("real", &[Exception::new("of preset linux", Literal::Word("linux"))]);
    /// `rto_floor`.
    pub const RTO_FLOOR: Choice<RtoFloor> = choice!(
        "rto_floor",
        { "rto" => RtoFloor::Rto, "variance" => RtoFloor::Variance },
        "what min_rto_s is the least of; rto: RFC 6298; variance: what the timeout is above the smoothed round trip, as Linux",
    ).default_except("rto", &[Exception::new("of preset linux", Literal::Word("variance"))]);
    /// `recovery_timeout`.
    pub const RECOVERY_TIMEOUT: Choice<RecoveryTimeout> = choice!(
        "recovery_timeout",
        { "reduce" => RecoveryTimeout::Reduce, "keep" => RecoveryTimeout::Keep },
        "what a time-out during fast recovery does to ssthresh; reduce: lower it again (RFC 5681), keep: Linux",
    ).default_except("reduce", &[Exception::new("of preset linux", Literal::Word("keep"))]);
    /// `closed_window`.
    pub const CLOSED_WINDOW: Choice<ClosedWindow> = choice!(
        "closed_window",
        { "retransmit" => ClosedWindow::TimeOut, "persist" => ClosedWindow::Persist },
        "what becomes of data in flight when the peer closes its window over them; persist: the window is probed in their place, as 4.4BSD",
    ).default_except("retransmit", &[Exception::new("of preset bsd", Literal::Word("persist"))]);
    /// `loss_detection`.
    pub const LOSS_DETECTION: Choice<LossDetection> = choice!(
        "loss_detection",
        {
            "dup-acks" => LossDetection::DupAcks,
            "rack" => LossDetection::Rack(RackConfig::RFC8985),
            "rack-without-tlp" => LossDetection::Rack(RackConfig { tail_probe: TailProbe::Off, ..RackConfig::RFC8985 }),
        },
        "how losses are told; rack: by time, with a probe of the tail (RFC 8985), for tcp-sack only",
    );
    /// `limited_transmit`.
    pub const LIMITED_TRANSMIT: Choice<LimitedTransmit> = choice!(
        "limited_transmit",
        {
            "off" => LimitedTransmit::Off,
            "new-data" => LimitedTransmit::NewData,
            "next-data" => LimitedTransmit::NextData,
        },
        "what the first duplicate ACKs release (RFC 3042)",
    );
    /// `frto`.
    pub const FRTO: Choice<Frto> = choice!(
        "frto",
        {
            "off" => Frto::Off,
            "first-timeout" => Frto::FirstTimeout,
            "every-timeout" => Frto::EveryTimeout,
        },
        "time-outs after which the next ACKs tell whether it was spurious; then it is undone (RFC 5682)",
    );
    /// `timestamp_echo`.
    pub const TIMESTAMP_ECHO: Choice<TimestampEcho> = choice!(
        "timestamp_echo",
        { "earliest" => TimestampEcho::Earliest, "latest" => TimestampEcho::Latest },
        "which segment's timestamp an ACK echoes; RFC 7323, ns-2 since 2003: earliest, ns-2 before: latest",
    );
}

/// `[tcp]` and `flow.tcp`.
pub const TCP: &[Key] = &of_preset("that of `preset`", [
    tcp::PRESET.key,
    Key::word_or_user_defined(
        "congestion_control",
        &["aimd", "cubic", "bbr", "bbr3"],
        "how the window grows and what a loss leaves of it, whatever the recovery; bbr, bbr3: BBR of Linux and BBR version 3, paced, for SACK with loss_detection = \"rack\"; own: as a machine of your own says, see docs/own-machines.md",
    ).formerly(&["law"]).default_except(Literal::Word("aimd"), &[Exception::new("of tcp-cubic", Literal::Word("cubic")), Exception::new("of tcp-bbr", Literal::Word("bbr")), Exception::new("of tcp-bbr3", Literal::Word("bbr3"))]),
    tcp::RECOVERY_WINDOW.key,
    tcp::ECN.key,
    Key::number("cubic_c", 1e-6, 1000.0, "of cubic: C, segments per second cubed").default(Literal::Number(CUBIC.c)),
    Key::number("cubic_beta", 0.01, 0.99, "of cubic: what a loss leaves of the window").default(Literal::Number(CUBIC.beta)),
    tcp::CUBIC_ARITHMETIC.key,
    Key::flag(
        "fast_convergence",
        "of cubic: whether a flow that shrinks makes room for others",
    ).default(Literal::Flag(true)),
    Key::number(
        "bbr_cwnd_gain",
        1.0,
        10.0,
        "of bbr and bbr3: most in flight, in products of bandwidth and least round trip",
    ).default(Literal::Number(BbrConfig::V1.cwnd_gain)),
    Key::number(
        "bbr_pacing_margin",
        0.0,
        0.5,
        "of bbr and bbr3: by how much less than the bandwidth data are sent, a share",
    ).default(Literal::Number(BbrConfig::V1.pacing_margin)),
    Key::number(
        "bbr_probe_rtt_interval_s",
        0.001,
        3600.0,
        "of bbr and bbr3: time without a round trip as short as the least one, after which the window is small for a while",
    ).default_except(Literal::seconds(BbrConfig::V1.probe_rtt_interval), &[Exception::new("of bbr3", Literal::seconds(BbrConfig::V3.probe_rtt_interval))]),
    Key::number(
        "bbr_probe_rtt_s",
        0.0,
        60.0,
        "of bbr and bbr3: how long the window is small then; of bbr, 0: it never is",
    ).default(Literal::seconds(BbrConfig::V1.probe_rtt_duration)),
    Key::flag(
        "bbr_policer",
        "of bbr: whether even delivery with a fifth lost is taken for a policer's, and its rate kept to",
    ).default(Literal::Flag(true)),
    Key::number(
        "bbr_loss_threshold",
        0.0,
        0.99,
        "of bbr3: share of a flight whose loss bounds what may be in flight",
    ).default(Literal::Number(BBR3.0)),
    Key::number(
        "bbr_beta",
        0.01,
        1.0,
        "of bbr3: what a round with losses leaves of the short-term bounds at least",
    ).default(Literal::Number(BBR3.1)),
    Key::number(
        "bbr_headroom",
        0.0,
        0.99,
        "of bbr3: share of what may be in flight that is left to others between probes",
    ).default(Literal::Number(BBR3.2)),
    Key::integer_or("window", 1, 1 << 20, &["unclamped"], "most segments in flight, whatever cwnd says"),
    Key::integer("mss_bytes", 48, 65_495, "largest segment"),
    Key::integer_or(
        "delayed_ack_ms",
        1,
        500,
        &["off"],
        "longest delay of an ACK; off: every segment at once",
    ),
    Key::integer(
        "ack_every",
        1,
        255,
        "segments that a delayed ACK waits for; above 2: stretch ACKs",
    ).default(Literal::Integer(MODERN.ack_every as u64)),
    Key::number("min_rto_s", 0.0, 600.0, "smallest retransmission timeout, or as rto_floor says"),
    tcp::RTO_FLOOR.key,
    tcp::RECOVERY_TIMEOUT.key,
    tcp::CLOSED_WINDOW.key,
    Key::number("initial_rto_s", 0.001, 60.0, "retransmission timeout before the first sample"),
    Key::number("max_rto_s", 0.1, 1e6, "largest retransmission timeout"),
    Key::number("clock_granularity_s", 1e-6, 1.0, "tick of the retransmission clock"),
    Key::integer_or(
        "backoff_limit",
        1,
        1 << 16,
        &["none"],
        "largest factor of the timeout's back-off, a power of two; 1: no back-off",
    ).derived("that of `preset`, of tcp-ap: 1"),
    Key::integer_or("initial_window", 1, 1 << 20, &["rfc3390", "rfc6928"], "segments in flight at the start"),
    Key::integer("dup_ack_threshold", 1, 255, "duplicate ACKs that stand for a loss"),
    tcp::LOSS_DETECTION.key,
    tcp::LIMITED_TRANSMIT.key,
    tcp::FRTO.key,
    Key::flag(
        "eifel",
        "whether timestamps tell spurious reductions, which are undone (RFC 3522); needs timestamps",
    ),
    Key::flag(
        "dsack_undo",
        "whether reports of duplicates tell spurious reductions, which are undone (RFC 3708)",
    ),
    Key::flag("dsack", "whether ACKs report what arrived twice (RFC 2883), where SACK is in use"),
    Key::flag("timestamps", "whether to offer timestamps (RFC 7323)"),
    tcp::TIMESTAMP_ECHO.key,
    Key::word(
        "pacing",
        &["none", "adaptive"],
        "adaptive: as tcp-ap, whatever the recovery",
    ).default_except(Literal::Word("none"), &[Exception::new("of tcp-ap", Literal::Word("adaptive"))]),
    Key::word(
        "feedback",
        &["none", "tcp-f", "elfn", "atcp", "tcp-bus", "fixed-rto"],
        "how a lost route is told from congestion, whatever the recovery",
    ).default_except(Literal::Word("none"), &[Exception::new("of tcp-f", Literal::Word("tcp-f")), Exception::new("of tcp-elfn", Literal::Word("elfn")), Exception::new("of atcp", Literal::Word("atcp")), Exception::new("of tcp-bus", Literal::Word("tcp-bus")), Exception::new("of tcp-fixed-rto", Literal::Word("fixed-rto"))]),
    Key::integer("receive_buffer_bytes", 1, 1 << 30, "received data kept for the application"),
]);

/// Keys of [`DOOR`] that choose.
pub mod door {
    use super::*;

    /// `ack_order`.
    pub const ACK_ORDER: Choice<AckOrder> = choice!(
        "ack_order",
        { "adsn" => AckOrder::Adsn, "numbers" => AckOrder::Numbers },
        "what tells the sender the order of ACKs; numbers: nothing is seen of duplicates, and no option is needed; not of rd",
    ).default("adsn");
    /// `data_order`.
    pub const DATA_ORDER: Choice<DataOrder> = choice!(
        "data_order",
        { "tpsn" => DataOrder::Tpsn, "timestamps" => DataOrder::Timestamps },
        "what tells the receiver the order of data; not of sd",
    )
    .default("tpsn");
    /// `late`.
    pub const LATE: Choice<LateRule> = choice!(
        "reordering_events",
        {
            "once-per-switch" => LateRule::OncePerRouteChange,
            "each" => LateRule::Each,
            "after-previous" => LateRule::AfterPrevious,
        },
        "which late packets are events (A1): those sent after the last event was noticed, each, those sent before the packet that arrived last",
    ).formerly(&["late"]).default("once-per-switch");
    /// `held`.
    pub const HELD: Choice<HeldVariables> = choice!(
        "disabled_changes",
        { "everything" => HeldVariables::Everything, "reductions" => HeldVariables::Reductions },
        "what is disabled during T1 (A7): any change of window and timeout, or only reductions; not of ir",
    )
    .formerly(&["held"])
    .default("everything");
    /// `resends`.
    pub const RESENDS: Choice<DisabledRetransmissions> = choice!(
        "disabled_retransmissions",
        { "as-usual" => DisabledRetransmissions::Normal, "first" => DisabledRetransmissions::FirstSegment },
        "what is resent during T1 (A7): what recovery and timeouts resend at other times, with the window that is held, or the first unacknowledged segment alone; not of ir, nor with tcp.loss_detection = rack",
    ).formerly(&["resends"]).default("as-usual");
    /// `disabled_timer`.
    pub const HELD_TIMER: Choice<HeldTimerBackoff> = choice!(
        "disabled_timer",
        { "constant" => HeldTimerBackoff::Constant, "backs-off" => HeldTimerBackoff::Exponential },
        "what a timeout during T1 does to the timer (A8); not of ir",
    )
    .formerly(&["held_timer"])
    .default("constant");
    /// `again`.
    pub const AGAIN: Choice<RepeatedEvent> = choice!(
        "repeated_event",
        { "restart" => RepeatedEvent::Restart, "continue" => RepeatedEvent::Continue },
        "what an event during T1 does to T1 (A9); not of ir",
    )
    .formerly(&["again"])
    .default("restart");
    /// `reach`.
    pub const REACH: Choice<UndoReach> = choice!(
        "undo_scope",
        { "first" => UndoReach::All, "latest" => UndoReach::Latest },
        "how much is undone of several reductions within T2 (A10): all since the first, or the latest; not of td",
    ).formerly(&["reach"]).default("first");
}

/// `[door]` and `flow.door`. A1 to A10: see docs/protocols/tcp-door.md.
pub const DOOR: &[Key] = &[
    Key::word(
        "config",
        &["all", "sd", "rd", "td", "ir"],
        "all: sender and receiver detect, both responses; sd, rd: only the sender, the receiver detects; td: only temporary disabling; ir: only instant recovery",
    ).default(Literal::Word("all")),
    Key::number(
        "t1",
        0.001,
        1000.0,
        "T1, how long congestion control is disabled, in retransmission timeouts; not of ir",
    ).default(Literal::Number(DOOR_TIME)),
    Key::number(
        "t2",
        0.001,
        1000.0,
        "T2, how old the slowing down that is undone may be, in retransmission timeouts; not of td",
    ).default(Literal::Number(DOOR_TIME)),
    door::ACK_ORDER.key,
    door::DATA_ORDER.key,
    door::LATE.key,
    Key::integer(
        "feedback_acks",
        1,
        255,
        "ACKs that tell the sender of one event of the receiver (A6); not of sd",
    ).default(Literal::Integer(1)),
    door::HELD.key,
    door::RESENDS.key,
    door::HELD_TIMER.key,
    door::AGAIN.key,
    door::REACH.key,
    Key::word(
        "recovery",
        &["sack", "newreno", "reno"],
        "the TCP below, as tcp-sack, tcp-newreno and tcp-reno have it",
    ).default(Literal::Word("sack")),
];

/// Keys of [`FEEDBACK`] that choose.
pub mod feedback {
    use super::*;

    /// `returns`.
    pub const RETURNS: Choice<RouteReturn> = choice!(
        "returns",
        { "by-probe" => RouteReturn::ByProbe, "told" => RouteReturn::ByNotification },
        "of elfn and atcp: whether being told of the return ends the wait, too",
    )
    .default("by-probe");
    /// `cwnd_after`.
    pub const CWND_AFTER: Choice<CwndAfterFreeze> = choice!(
        "cwnd_after",
        {
            "restored" => CwndAfterFreeze::Restored,
            "initial" => CwndAfterFreeze::Initial,
            "one-segment" => CwndAfterFreeze::OneSegment,
        },
        "of elfn: the congestion window on the new route",
    )
    .default("restored");
    /// `rto_after`.
    pub const RTO_AFTER: Choice<RtoAfterFreeze> = choice!(
        "rto_after",
        { "restored" => RtoAfterFreeze::Restored, "initial" => RtoAfterFreeze::Initial },
        "of elfn: the RTO on the new route",
    )
    .default("restored");
    /// `in_flight`.
    pub const IN_FLIGHT: Choice<InFlightAfterFreeze> = choice!(
        "in_flight",
        {
            "resent" => InFlightAfterFreeze::Retransmitted,
            "inquired" => InFlightAfterFreeze::Queried,
            "awaited" => InFlightAfterFreeze::Awaited,
        },
        "of elfn: what becomes of what was in flight: all resent, the first segment resent, left to loss recovery",
    ).default("awaited");
}

/// `[feedback]`.
pub const FEEDBACK: &[Key] = &[
    Key::number("failure_timer_s", 0.001, 1e6, "of tcp-f: how long it snoozes if nobody tells of the return")
        .default(Literal::seconds(TcpFConfig::PAPER.failure_timer)),
    Key::word(
        "probing",
        &["interval", "persist-timer"],
        "of elfn, atcp and tcp-bus: probes each probe_interval_s, or after one RTO, two, four and so on",
    )
    .default_except(
        Literal::Word("interval"),
        &[Exception::new("of atcp", Literal::Text("persist-timer unless probe_interval_s is given"))],
    ),
    Key::number("probe_interval_s", 0.001, 1e6, "of elfn, atcp and tcp-bus: time between probes")
        .default_except(
            Literal::seconds(PROBE_INTERVAL),
            &[Exception::new("of atcp", Literal::Text("by persist-timer"))],
        ),
    feedback::RETURNS.key,
    feedback::CWND_AFTER.key,
    feedback::RTO_AFTER.key,
    feedback::IN_FLIGHT.key,
    Key::integer("timeouts", 1, 255, "of fixed-rto: the time-out in a row that no longer doubles the RTO")
        .default(Literal::Integer(FixedRtoConfig::PAPER.timeouts as u64)),
];

/// Keys of [`PACING`] that choose.
pub mod pacing {
    use super::*;

    /// `variability`.
    pub const VARIABILITY: Choice<Variability> = choice!(
        "variability",
        { "mad-fhd" => Variability::MadFhd, "cov-rtt" => Variability::CovRtt },
        "mad-fhd: mean absolute deviation of four-hop delays, the authors' code; cov-rtt: coefficient of \
         variation of round-trip times, the papers",
    )
    .default("mad-fhd");
    /// `short_paths`.
    pub const SHORT_PATHS: Choice<ShortPaths> = choice!(
        "short_paths",
        { "one-hop" => ShortPaths::OneHop, "fewer-hops" => ShortPaths::FewerHops },
        "the delay that counts on paths of fewer hops than spatial_factor; one-hop: the authors' code",
    )
    .default("one-hop");
    /// `duplicate_acks`.
    pub const DUPLICATE_ACKS: Choice<DuplicateAcks> = choice!(
        "duplicate_acks",
        { "sample" => DuplicateAcks::Sampled, "ignored" => DuplicateAcks::Ignored },
        "of TCP: whether the echo of a duplicate ACK is a sample of the round trip; sample: the authors' code",
    ).default("sample");
}

/// `[pacing]`.
pub const PACING: &[Key] = &[
    Key::integer("spatial_factor", 1, 255, "hops between nodes that can transmit at once")
        .default(Literal::Integer(AUTHORS.spatial_factor as u64)),
    Key::integer("overhead_bytes", 0, 10_000, "bytes of a packet beside its data")
        .default(Literal::Integer(AUTHORS.overhead_bytes as u64)),
    Key::number("link_rate_mbps", 0.001, 1e6, "rate of the links on the path")
        .derived("mac.data_rate_mbps, or 2 without [radio]"),
    Key::number("history_weight", 0.0, 0.999_999, "weight of the past in the average delay")
        .default(Literal::Number(AUTHORS.history_weight)),
    Key::integer("history_samples", 1, 1000, "samples of which the variability is taken")
        .default(Literal::Integer(AUTHORS.history as u64)),
    pacing::VARIABILITY.key,
    Key::number("contention_factor", 0.0, 1000.0, "how much the variability counts: K")
        .default(Literal::Number(AUTHORS.contention_factor)),
    pacing::SHORT_PATHS.key,
    pacing::DUPLICATE_ACKS.key,
    Key::number("sample_limit_s", 0.000_001, 60.0, "four-hop delays from here on do not count")
        .default(Literal::seconds(AUTHORS.sample_limit)),
    Key::number("queueing_limit_s", 0.0, 60.0, "queueing delays above this are smoothed")
        .default(Literal::seconds(AUTHORS.queueing_limit)),
    Key::number("queueing_gain", 0.01, 1.0, "weight of a new queueing delay when smoothed")
        .default(Literal::Number(AUTHORS.queueing_gain)),
    Key::number("initial_interval_s", 0.000_001, 60.0, "spacing before the first sample")
        .default(Literal::seconds(AUTHORS.initial_interval)),
];
