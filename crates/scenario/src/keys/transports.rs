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
    HyStartConfig, HyStartPlusPlusConfig, InFlightAfterFreeze, LateRule, LimitedTransmit, LossDetection,
    PragueConfig, PrrBound, RackConfig, RecoveryReduction, RecoveryTimeout, RepeatedEvent, RouteReturn,
    RtoAfterFreeze, RtoFloor, SlowStart, TailProbe, TcpFConfig, TimestampEcho, UndoReach,
};

/// T1 and T2 of TCP-DOOR, in retransmission timeouts.
pub const DOOR_TIME: f64 = 2.0;
/// Time between probes of ELFN, ATCP and TCP-BuS where they are sent at intervals.
pub const PROBE_INTERVAL: Duration = Duration::from_secs(2);

const MODERN: Config = Config::modern();
const CUBIC: CubicConfig = CubicConfig::RFC9438;
const PRAGUE: PragueConfig = PragueConfig::DRAFT;
const AUTHORS: pacing_of::Config = pacing_of::Config::AUTHORS;
/// Loss threshold, beta and headroom of BBR version 3.
const BBR3: (f64, f64, f64) = match BbrConfig::V3.version() {
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
    "tcp-prague",
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
    "quic",
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
        &[Exception::new("of tcp-cubic, tcp-bbr, tcp-bbr3 and tcp-prague", Literal::Word("linux"))],
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
        "of tcp-sack and tcp-cubic: reduction of the window in recovery; prr: RFC 9937, the other two RFC 6937",
    ).default_except("at-once", &[Exception::new("of preset linux", Literal::Word("prr"))]);
    /// `slow_start`.
    pub const SLOW_START: Choice<SlowStart> = choice!(
        "slow_start",
        {
            "rfc5681" => SlowStart::Rfc5681,
            "hystart" => SlowStart::HyStart(HyStartConfig::LINUX),
            "hystart++" => SlowStart::HyStartPlusPlus(HyStartPlusPlusConfig::RFC9406),
        },
        "of aimd and cubic: end of the first slow start; rfc5681: a loss; hystart: ACK trains or a rise of the delay, as Linux; hystart++: a rise of the delay (RFC 9406)",
    ).default("rfc5681");
    /// `ecn`.
    pub const ECN: Choice<EcnMode> = choice!(
        "ecn",
        {
            "off" => EcnMode::Never,
            "if-asked" => EcnMode::Accept,
            "ask" => EcnMode::Request,
            "accurate" => EcnMode::AccEcn,
        },
        "ECN (RFC 3168); both ends of a flow are configured alike, so it needs ask; accurate: accurate ECN (RFC 9768), which reports each mark",
    )
    .default_except(
        "off",
        &[
            Exception::new("of preset linux", Literal::Word("if-asked")),
            Exception::new("of atcp", Literal::Word("ask")),
            Exception::new("of prague", Literal::Word("accurate")),
        ],
    );
    /// `cubic_arithmetic`.
    pub const CUBIC_ARITHMETIC: Choice<CubicArithmetic> = choice!(
        "cubic_arithmetic",
        { "real" => CubicArithmetic::Real, "linux" => CubicArithmetic::Linux },
        "of cubic: arithmetic of the window; real: with each ACK, linux: in whole segments, at a rate that is updated each 1/32 s at most",
    ).default_except("real", &[Exception::new("of preset linux", Literal::Word("linux"))]);
    /// `rto_floor`.
    pub const RTO_FLOOR: Choice<RtoFloor> = choice!(
        "rto_floor",
        { "rto" => RtoFloor::Rto, "variance" => RtoFloor::Variance },
        "quantity that min_rto_s limits; rto: RFC 6298; variance: the excess over the smoothed round-trip time, as Linux",
    ).default_except("rto", &[Exception::new("of preset linux", Literal::Word("variance"))]);
    /// `recovery_timeout`.
    pub const RECOVERY_TIMEOUT: Choice<RecoveryTimeout> = choice!(
        "recovery_timeout",
        { "reduce" => RecoveryTimeout::Reduce, "keep" => RecoveryTimeout::Keep },
        "effect of a timeout during fast recovery on ssthresh; reduce: lower it again (RFC 5681), keep: Linux",
    ).default_except("reduce", &[Exception::new("of preset linux", Literal::Word("keep"))]);
    /// `closed_window`.
    pub const CLOSED_WINDOW: Choice<ClosedWindow> = choice!(
        "closed_window",
        { "retransmit" => ClosedWindow::TimeOut, "persist" => ClosedWindow::Persist },
        "data in flight when the peer closes its window over them; persist: the window is probed instead, as 4.4BSD",
    ).default_except("retransmit", &[Exception::new("of preset bsd", Literal::Word("persist"))]);
    /// `loss_detection`.
    pub const LOSS_DETECTION: Choice<LossDetection> = choice!(
        "loss_detection",
        {
            "dup-acks" => LossDetection::DupAcks,
            "rack" => LossDetection::Rack(RackConfig::RFC8985),
            "rack-without-tlp" => LossDetection::Rack(RackConfig::RFC8985.with_tail_probe(TailProbe::Off)),
        },
        "loss detection; rack: by time, with tail loss probes (RFC 8985), for tcp-sack only",
    );
    /// `limited_transmit`.
    pub const LIMITED_TRANSMIT: Choice<LimitedTransmit> = choice!(
        "limited_transmit",
        {
            "off" => LimitedTransmit::Off,
            "new-data" => LimitedTransmit::NewData,
            "next-data" => LimitedTransmit::NextData,
        },
        "segments that the first duplicate ACKs release (RFC 3042)",
    );
    /// `frto`.
    pub const FRTO: Choice<Frto> = choice!(
        "frto",
        {
            "off" => Frto::Off,
            "first-timeout" => Frto::FirstTimeout,
            "every-timeout" => Frto::EveryTimeout,
        },
        "timeouts that are checked for being spurious by the next ACKs, and then undone (RFC 5682)",
    );
    /// `timestamp_echo`.
    pub const TIMESTAMP_ECHO: Choice<TimestampEcho> = choice!(
        "timestamp_echo",
        { "earliest" => TimestampEcho::Earliest, "latest" => TimestampEcho::Latest },
        "segment that gives the timestamp of an ACK; RFC 7323, ns-2 since 2003: earliest, ns-2 before: latest",
    );
}

/// `[tcp]` and `flow.tcp`.
pub const TCP: &[Key] = &of_preset("that of `preset`", [
    tcp::PRESET.key,
    Key::word_or_user_defined(
        "congestion_control",
        &["aimd", "cubic", "bbr", "bbr3", "prague"],
        "congestion control algorithm, with any recovery; bbr, bbr3, prague: BBR of Linux, BBR version 3, and Prague for L4S, paced, for SACK with loss_detection = \"rack\"; own: user-defined, see docs/own-machines.md",
    ).formerly(&["law"]).default_except(Literal::Word("aimd"), &[Exception::new("of tcp-cubic", Literal::Word("cubic")), Exception::new("of tcp-bbr", Literal::Word("bbr")), Exception::new("of tcp-bbr3", Literal::Word("bbr3")), Exception::new("of tcp-prague", Literal::Word("prague"))]),
    tcp::RECOVERY_WINDOW.key,
    tcp::SLOW_START.key,
    tcp::ECN.key,
    Key::number("cubic_c", 1e-6, 1000.0, "of cubic: C, segments per second cubed").default(Literal::Number(CUBIC.c())),
    Key::number("cubic_beta", 0.01, 0.99, "of cubic: factor of the window after a loss").default(Literal::Number(CUBIC.beta())),
    tcp::CUBIC_ARITHMETIC.key,
    Key::flag(
        "fast_convergence",
        "of cubic: whether a shrinking flow releases bandwidth (RFC 9438 §4.7)",
    ).default(Literal::Flag(true)),
    Key::number(
        "bbr_cwnd_gain",
        1.0,
        10.0,
        "of bbr and bbr3: limit of data in flight, in bandwidth-delay products",
    ).default(Literal::Number(BbrConfig::V1.cwnd_gain())),
    Key::number(
        "bbr_pacing_margin",
        0.0,
        0.5,
        "of bbr and bbr3: share by which the pacing rate is below the bandwidth",
    ).default(Literal::Number(BbrConfig::V1.pacing_margin())),
    Key::number(
        "bbr_probe_rtt_interval_s",
        0.001,
        3600.0,
        "of bbr and bbr3: time without a new minimum round-trip time before ProbeRTT",
    ).default_except(Literal::seconds(BbrConfig::V1.probe_rtt_interval()), &[Exception::new("of bbr3", Literal::seconds(BbrConfig::V3.probe_rtt_interval()))]),
    Key::number(
        "bbr_probe_rtt_s",
        0.0,
        60.0,
        "of bbr and bbr3: duration of ProbeRTT; of bbr, 0: no ProbeRTT",
    ).default(Literal::seconds(BbrConfig::V1.probe_rtt_duration())),
    Key::flag(
        "bbr_policer",
        "of bbr: whether steady delivery with a fifth lost indicates a policer, and limits the rate",
    ).default(Literal::Flag(true)),
    Key::number(
        "bbr_loss_threshold",
        0.0,
        0.99,
        "of bbr3: loss rate of a flight that bounds data in flight",
    ).default(Literal::Number(BBR3.0)),
    Key::number(
        "bbr_beta",
        0.01,
        1.0,
        "of bbr3: least factor of the short-term bounds after a round with losses",
    ).default(Literal::Number(BBR3.1)),
    Key::number(
        "bbr_headroom",
        0.0,
        0.99,
        "of bbr3: share of the bound on data in flight that is left to competing flows between probes",
    ).default(Literal::Number(BBR3.2)),
    Key::number(
        "prague_gain",
        1e-6,
        1.0,
        "of prague: gain of the moving average of the marked fraction",
    ).default(Literal::Number(PRAGUE.gain())),
    Key::number(
        "prague_rtt_reference_ms",
        0.0,
        1000.0,
        "of prague: round-trip time as if which shorter ones count; 0: none",
    ).default(Literal::milliseconds(PRAGUE.rtt_reference())),
    Key::integer(
        "prague_rtt_dependent_rounds",
        0,
        1 << 20,
        "of prague: round trips before prague_rtt_reference_ms is used",
    ).default(Literal::Integer(PRAGUE.rtt_dependent_rounds() as u64)),
    Key::number(
        "prague_loss_beta",
        0.01,
        0.99,
        "of prague: factor of the window after a loss",
    ).default(Literal::Number(PRAGUE.loss_beta())),
    Key::number(
        "prague_max_burst_ms",
        0.0,
        10.0,
        "of prague: largest burst, as time at the pacing rate",
    ).default(Literal::milliseconds(PRAGUE.max_burst())),
    Key::integer_or("window", 1, 1 << 20, &["unclamped"], "window clamp: most segments in flight"),
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
    ).default(Literal::Integer(MODERN.ack_every() as u64)),
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
    Key::integer("dup_ack_threshold", 1, 255, "duplicate ACKs that indicate a loss"),
    tcp::LOSS_DETECTION.key,
    tcp::LIMITED_TRANSMIT.key,
    tcp::FRTO.key,
    Key::flag(
        "eifel",
        "whether spurious reductions are detected by timestamps and undone (RFC 3522); needs timestamps",
    ),
    Key::flag(
        "dsack_undo",
        "whether spurious reductions are detected by D-SACK and undone (RFC 3708)",
    ),
    Key::flag("dsack", "whether ACKs report duplicates (RFC 2883), with SACK"),
    Key::flag("timestamps", "whether to offer timestamps (RFC 7323)"),
    tcp::TIMESTAMP_ECHO.key,
    Key::word(
        "pacing",
        &["none", "adaptive"],
        "adaptive: as tcp-ap, with any recovery",
    ).default_except(Literal::Word("none"), &[Exception::new("of tcp-ap", Literal::Word("adaptive"))]),
    Key::word(
        "feedback",
        &["none", "tcp-f", "elfn", "atcp", "tcp-bus", "fixed-rto"],
        "scheme that distinguishes route failures from congestion, with any recovery",
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
        "detection of reordered ACKs at the sender; numbers: without duplicates and without an option; not of rd",
    ).default("adsn");
    /// `data_order`.
    pub const DATA_ORDER: Choice<DataOrder> = choice!(
        "data_order",
        { "tpsn" => DataOrder::Tpsn, "timestamps" => DataOrder::Timestamps },
        "detection of reordered data at the receiver; not of sd",
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
        "late packets that are events (A1): those sent after the last event was noticed, each, those sent before the packet that arrived last",
    ).formerly(&["late"]).default("once-per-switch");
    /// `held`.
    pub const HELD: Choice<HeldVariables> = choice!(
        "disabled_changes",
        { "everything" => HeldVariables::Everything, "reductions" => HeldVariables::Reductions },
        "changes that T1 disables (A7): any change of window and timeout, or only reductions; not of ir",
    )
    .formerly(&["held"])
    .default("everything");
    /// `resends`.
    pub const RESENDS: Choice<DisabledRetransmissions> = choice!(
        "disabled_retransmissions",
        { "as-usual" => DisabledRetransmissions::Normal, "first" => DisabledRetransmissions::FirstSegment },
        "retransmissions during T1 (A7): those of recovery and timeouts as usual, with the held window, or the first unacknowledged segment alone; not of ir, nor with tcp.loss_detection = rack",
    ).formerly(&["resends"]).default("as-usual");
    /// `disabled_timer`.
    pub const HELD_TIMER: Choice<HeldTimerBackoff> = choice!(
        "disabled_timer",
        { "constant" => HeldTimerBackoff::Constant, "backs-off" => HeldTimerBackoff::Exponential },
        "timer after a timeout during T1 (A8); not of ir",
    )
    .formerly(&["held_timer"])
    .default("constant");
    /// `again`.
    pub const AGAIN: Choice<RepeatedEvent> = choice!(
        "repeated_event",
        { "restart" => RepeatedEvent::Restart, "continue" => RepeatedEvent::Continue },
        "effect of an event during T1 on T1 (A9); not of ir",
    )
    .formerly(&["again"])
    .default("restart");
    /// `reach`.
    pub const REACH: Choice<UndoReach> = choice!(
        "undo_scope",
        { "first" => UndoReach::All, "latest" => UndoReach::Latest },
        "reductions within T2 that are undone (A10): all since the first, or the latest; not of td",
    )
    .formerly(&["reach"])
    .default("first");
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
        "T1, time for which congestion control is disabled, in retransmission timeouts; not of ir",
    ).default(Literal::Number(DOOR_TIME)),
    Key::number(
        "t2",
        0.001,
        1000.0,
        "T2, greatest age of a reduction that is undone, in retransmission timeouts; not of td",
    ).default(Literal::Number(DOOR_TIME)),
    door::ACK_ORDER.key,
    door::DATA_ORDER.key,
    door::LATE.key,
    Key::integer(
        "feedback_acks",
        1,
        255,
        "ACKs that report one event of the receiver (A6); not of sd",
    ).default(Literal::Integer(1)),
    door::HELD.key,
    door::RESENDS.key,
    door::HELD_TIMER.key,
    door::AGAIN.key,
    door::REACH.key,
    Key::word(
        "recovery",
        &["sack", "newreno", "reno"],
        "TCP variant below, that of tcp-sack, tcp-newreno or tcp-reno",
    ).default(Literal::Word("sack")),
];

/// Keys of [`FEEDBACK`] that choose.
pub mod feedback {
    use super::*;

    /// `returns`.
    pub const RETURNS: Choice<RouteReturn> = choice!(
        "returns",
        { "by-probe" => RouteReturn::ByProbe, "told" => RouteReturn::ByNotification },
        "of elfn and atcp: told: a recovery notification ends the wait, too",
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
        "of elfn: data in flight: all retransmitted, the first segment retransmitted, left to loss recovery",
    )
    .default("awaited");
}

/// `[feedback]`.
pub const FEEDBACK: &[Key] = &[
    Key::number("failure_timer_s", 0.001, 1e6, "of tcp-f: longest snooze without a recovery notification")
        .default(Literal::seconds(TcpFConfig::PAPER.failure_timer())),
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
    Key::integer(
        "timeouts",
        1,
        255,
        "of fixed-rto: consecutive timeout from which on the RTO is not doubled",
    )
    .default(Literal::Integer(FixedRtoConfig::PAPER.timeouts() as u64)),
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
        "delay on paths of fewer hops than spatial_factor; one-hop: the authors' code",
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
        .default(Literal::Integer(AUTHORS.spatial_factor() as u64)),
    Key::integer("overhead_bytes", 0, 10_000, "bytes of a packet beyond its data")
        .default(Literal::Integer(AUTHORS.overhead_bytes() as u64)),
    Key::number("link_rate_mbps", 0.001, 1e6, "rate of the links on the path")
        .derived("mac.data_rate_mbps, or 2 without [radio]"),
    Key::number("history_weight", 0.0, 0.999_999, "weight of the past in the average delay")
        .default(Literal::Number(AUTHORS.history_weight())),
    Key::integer("history_samples", 1, 1000, "samples in the variability")
        .default(Literal::Integer(AUTHORS.history() as u64)),
    pacing::VARIABILITY.key,
    Key::number("contention_factor", 0.0, 1000.0, "K, weight of the variability")
        .default(Literal::Number(AUTHORS.contention_factor())),
    pacing::SHORT_PATHS.key,
    pacing::DUPLICATE_ACKS.key,
    Key::number("sample_limit_s", 0.000_001, 60.0, "limit from which four-hop delays do not count")
        .default(Literal::seconds(AUTHORS.sample_limit())),
    Key::number("queueing_limit_s", 0.0, 60.0, "queueing delays above this are smoothed")
        .default(Literal::seconds(AUTHORS.queueing_limit())),
    Key::number("queueing_gain", 0.01, 1.0, "weight of a new queueing delay when smoothed")
        .default(Literal::Number(AUTHORS.queueing_gain())),
    Key::number("initial_interval_s", 0.000_001, 60.0, "spacing before the first sample")
        .default(Literal::seconds(AUTHORS.initial_interval())),
];
