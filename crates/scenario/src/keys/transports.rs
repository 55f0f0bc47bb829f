//! What flows go over: `[tcp]`, `[door]`, `[tpa]`, `[pacing]`, `[feedback]`.

use super::Key;

/// Transports of bulk flows.
pub const TRANSPORTS: &[&str] = &[
    "tcp-newreno",
    "tcp-sack",
    "tcp-reno",
    "tcp-cubic",
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
];

/// `[tcp]` and `flow.tcp`.
pub const TCP: &[Key] = &[
    Key::word(
        "preset",
        &["modern", "linux", "ns2-2.35", "ns2-2006", "ns2-2001", "qualnet"],
        "starting point; default: modern, of tcp-cubic: linux",
    ),
    Key::word(
        "law",
        &["aimd", "cubic"],
        "how the window grows and what a loss leaves of it, whatever the recovery; default: aimd, of tcp-cubic: cubic",
    ),
    Key::word(
        "recovery_window",
        &["at-once", "prr", "prr-conservative", "prr-slow-start"],
        "of tcp-sack and tcp-cubic: how the window comes down in recovery; prr: RFC 9937, the others RFC 6937; default: at-once, of preset linux: prr",
    ),
    Key::word(
        "ecn",
        &["off", "if-asked", "ask"],
        "whether data may be marked in place of being dropped (RFC 3168); both ends of a flow are alike, so it takes ask; default: off, of preset linux: if-asked, of atcp: ask",
    ),
    Key::number("cubic_c", 1e-6, 1000.0, "of cubic: C, segments per second cubed; default: 0.4"),
    Key::number("cubic_beta", 0.01, 0.99, "of cubic: what a loss leaves of the window; default: 0.7"),
    Key::word(
        "cubic_arithmetic",
        &["real", "linux"],
        "of cubic: how windows follow the function; real: with each ACK, linux: in whole segments, at a pace that lasts for up to 1/32 s; default: real, of preset linux: linux",
    ),
    Key::flag(
        "fast_convergence",
        "of cubic: whether a flow that shrinks makes room for others; default: true",
    ),
    Key::integer_or("window", 1, 1 << 20, &["unclamped"], "most segments in flight, whatever cwnd says"),
    Key::integer("mss_bytes", 48, 65_495, "largest segment"),
    Key::integer_or(
        "delayed_ack_ms",
        1,
        500,
        &["off"],
        "longest delay of an ACK; off: every segment at once",
    ),
    Key::number("min_rto_s", 0.0, 600.0, "smallest retransmission timeout, or as rto_floor says"),
    Key::word(
        "rto_floor",
        &["rto", "variance"],
        "what min_rto_s is the least of; rto: RFC 6298; variance: what the timeout is above the smoothed round trip, as Linux; default: rto, of preset linux: variance",
    ),
    Key::word(
        "recovery_timeout",
        &["reduce", "keep"],
        "what a time-out during fast recovery does to ssthresh; reduce: lower it again (RFC 5681), keep: Linux; default: reduce, of preset linux: keep",
    ),
    Key::number("initial_rto_s", 0.001, 60.0, "retransmission timeout before the first sample"),
    Key::number("max_rto_s", 0.1, 1e6, "largest retransmission timeout"),
    Key::number("clock_granularity_s", 1e-6, 1.0, "tick of the retransmission clock"),
    Key::integer_or(
        "backoff_limit",
        1,
        1 << 16,
        &["none"],
        "largest factor of the timeout's back-off, a power of two; 1: no back-off; default of tcp-ap: 1",
    ),
    Key::integer_or("initial_window", 1, 1 << 20, &["rfc3390", "rfc6928"], "segments in flight at the start"),
    Key::integer("dup_ack_threshold", 1, 255, "duplicate ACKs that stand for a loss"),
    Key::word(
        "loss_detection",
        &["dup-acks", "rack", "rack-without-tlp"],
        "how losses are told; rack: by time, with a probe of the tail (RFC 8985), for tcp-sack only",
    ),
    Key::word(
        "limited_transmit",
        &["off", "new-data", "next-data"],
        "what the first duplicate ACKs release (RFC 3042)",
    ),
    Key::word(
        "frto",
        &["off", "first-timeout", "every-timeout"],
        "time-outs after which the next ACKs tell whether it was spurious; then it is undone (RFC 5682)",
    ),
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
    Key::word(
        "timestamp_echo",
        &["earliest", "latest"],
        "which segment's timestamp an ACK echoes; RFC 7323: earliest, ns-2: latest",
    ),
    Key::word(
        "pacing",
        &["none", "adaptive"],
        "adaptive: as tcp-ap, whatever the recovery; default: none, of tcp-ap: adaptive",
    ),
    Key::word(
        "feedback",
        &["none", "tcp-f", "elfn", "atcp", "tcp-bus", "fixed-rto"],
        "how a lost route is told from congestion, whatever the recovery; default: none, of tcp-f and its like: theirs",
    ),
    Key::integer("receive_buffer_bytes", 1, 1 << 30, "received data kept for the application"),
];

/// `[door]` and `flow.door`. A1 to A10: see docs/protocols/tcp-door.md.
pub const DOOR: &[Key] = &[
    Key::word(
        "config",
        &["all", "sd", "rd", "td", "ir"],
        "all: sender and receiver detect, both responses; sd, rd: only the sender, the receiver detects; td: only temporary \
         disabling; ir: only instant recovery; default: all",
    ),
    Key::number(
        "t1",
        0.001,
        1000.0,
        "T1, how long congestion control is disabled, in retransmission timeouts; not of ir; default: 2",
    ),
    Key::number(
        "t2",
        0.001,
        1000.0,
        "T2, how old the slowing down that is undone may be, in retransmission timeouts; not of td; default: 2",
    ),
    Key::word(
        "ack_order",
        &["adsn", "numbers"],
        "what tells the sender the order of ACKs; numbers: nothing is seen of duplicates, and no option is needed; not of rd; \
         default: adsn",
    ),
    Key::word(
        "data_order",
        &["tpsn", "timestamps"],
        "what tells the receiver the order of data; not of sd; default: tpsn",
    ),
    Key::word(
        "late",
        &["once-per-switch", "each", "after-previous"],
        "which late packets are events (A1): those sent after the last event was noticed, each, those sent before the packet \
         that arrived last; default: once-per-switch",
    ),
    Key::integer(
        "feedback_acks",
        1,
        255,
        "ACKs that tell the sender of one event of the receiver (A6); not of sd; default: 1",
    ),
    Key::word(
        "held",
        &["everything", "reductions"],
        "what is disabled during T1 (A7): any change of window and timeout, or only reductions; not of ir; default: everything",
    ),
    Key::word(
        "resends",
        &["as-usual", "first"],
        "what is resent during T1 (A7): what recovery and timeouts resend at other times, with the window that is held, or the \
         first unacknowledged segment alone; not of ir, nor with tcp.loss_detection = rack; default: as-usual",
    ),
    Key::word(
        "held_timer",
        &["constant", "backs-off"],
        "what a timeout during T1 does to the timer (A8); not of ir; default: constant",
    ),
    Key::word(
        "again",
        &["restart", "continue"],
        "what an event during T1 does to T1 (A9); not of ir; default: restart",
    ),
    Key::word(
        "reach",
        &["first", "latest"],
        "how much is undone of several reductions within T2 (A10): all since the first, or the latest; not of td; default: first",
    ),
    Key::word(
        "recovery",
        &["sack", "newreno", "reno"],
        "the TCP below, as tcp-sack, tcp-newreno and tcp-reno have it; default: sack",
    ),
];

/// `[feedback]`.
pub const FEEDBACK: &[Key] = &[
    Key::number(
        "failure_timer_s",
        0.001,
        1e6,
        "of tcp-f: how long it snoozes if nobody tells of the return; default: 10",
    ),
    Key::word(
        "probing",
        &["interval", "persist-timer"],
        "of elfn, atcp and tcp-bus: probes each probe_interval_s, or after one RTO, two, four and so on; default: interval, \
         of atcp: persist-timer unless probe_interval_s is given",
    ),
    Key::number("probe_interval_s", 0.001, 1e6, "of elfn, atcp and tcp-bus: time between probes; default: 2"),
    Key::word(
        "returns",
        &["by-probe", "told"],
        "of elfn and atcp: whether being told of the return ends the wait, too; default: by-probe",
    ),
    Key::word(
        "cwnd_after",
        &["restored", "initial", "one-segment"],
        "of elfn: the congestion window on the new route; default: restored",
    ),
    Key::word("rto_after", &["restored", "initial"], "of elfn: the RTO on the new route; default: restored"),
    Key::word(
        "in_flight",
        &["resent", "inquired", "awaited"],
        "of elfn: what becomes of what was in flight: all resent, the first segment resent, left to loss recovery; default: \
         awaited",
    ),
    Key::integer(
        "timeouts",
        1,
        255,
        "of fixed-rto: the time-out in a row that no longer doubles the RTO; default: 2",
    ),
];

/// `[pacing]`.
pub const PACING: &[Key] = &[
    Key::integer("spatial_factor", 1, 255, "hops between nodes that can transmit at once; default: 4"),
    Key::integer("overhead_bytes", 0, 10_000, "bytes of a packet beside its data; default: 112"),
    Key::number("link_rate_mbps", 0.001, 1e6, "rate of the links on the path; default: 2"),
    Key::number("history_weight", 0.0, 0.999_999, "weight of the past in the average delay; default: 0.7"),
    Key::integer("history_samples", 1, 1000, "samples of which the variability is taken; default: 50"),
    Key::word(
        "variability",
        &["mad-fhd", "cov-rtt"],
        "mad-fhd: mean absolute deviation of four-hop delays, the authors' code and default; cov-rtt: coefficient of \
         variation of round-trip times, the papers",
    ),
    Key::number("contention_factor", 0.0, 1000.0, "how much the variability counts: K; default: 1"),
    Key::word(
        "short_paths",
        &["one-hop", "fewer-hops"],
        "the delay that counts on paths of fewer hops than spatial_factor; default: one-hop, the authors' code",
    ),
    Key::number("sample_limit_s", 0.000_001, 60.0, "four-hop delays from here on do not count; default: 0.5"),
    Key::number("queueing_limit_s", 0.0, 60.0, "queueing delays above this are smoothed; default: 0.5"),
    Key::number("queueing_gain", 0.01, 1.0, "weight of a new queueing delay when smoothed; default: 0.5"),
    Key::number("initial_interval_s", 0.000_001, 60.0, "spacing before the first sample; default: 0.05"),
];

/// `[tpa]` and `flow.tpa`. B1 to B8: see docs/protocols/tpa.md.
pub const TPA: &[Key] = &[
    Key::integer("cwnd_max", 1, 12, "cwndmax, segments in flight while all is well; default: 3"),
    Key::integer("mss_bytes", 1, 65_000, "largest segment; default: 1460"),
    Key::integer("block_segments", 1, 12, "K, segments in a block; default: 12"),
    Key::integer("block_fill_ms", 0, 60_000, "how long data wait for a block to fill; default: 100"),
    Key::word(
        "rounds",
        &["all-sent", "all-settled"],
        "what the segments of a round must be before those that timed out are sent again; default: all-sent",
    ),
    Key::word(
        "ack_every",
        &["other", "window"],
        "segments for one ACK: two, or cwndmax; default: other, of tpa-star: window",
    ),
    Key::integer("ack_timer_ms", 0, 10_000, "longest delay of an ACK; default: 100"),
    Key::word(
        "complete_block",
        &["ack-at-once", "ack-as-usual"],
        "what the last missing segment of a block brings about (B6); default: ack-at-once",
    ),
    Key::word("echo", &["last", "first"], "the segment that an ACK names (B8); default: last"),
    Key::number("min_rto_s", 0.001, 600.0, "smallest retransmission timeout; default: 0.2"),
    Key::number("initial_rto_s", 0.001, 60.0, "retransmission timeout before the first sample; default: 1"),
    Key::number("max_rto_s", 0.001, 1e6, "largest retransmission timeout; default: 60"),
    Key::number("g", 0.001, 1.0, "weight of a sample in the mean round trip; default: 0.125"),
    Key::number("h", 0.001, 1.0, "weight of a sample in its deviation; default: 0.25"),
    Key::number("g1", 0.001, 1.0, "g after a route change; default: 0.5"),
    Key::number("h1", 0.001, 1.0, "h after a route change; default: 0.5"),
    Key::integer("th_rc", 1, 255, "thRC, samples in a row off the mean that are a route change; default: 3"),
    Key::integer("n_rc", 0, 255, "nRC, updates with g1 and h1; default: 5"),
    Key::word(
        "notification",
        &["none", "elfn", "elfn-and-recovery"],
        "what the sender believes to be told of routes (see routing.failure_notification); default: none",
    ),
    Key::integer("th_cong", 1, 255, "thCONG, timeouts in a row that are congestion; default: 1"),
    Key::integer_or(
        "th_route",
        1,
        255,
        &["none"],
        "thROUTE beside notifications: timeouts in a row that are a lost route; default: none",
    ),
    Key::integer("th_ack", 1, 255, "thACK, ACKs in a row that end congestion; default: 1"),
    Key::word(
        "row_ends",
        &["any-news", "latest-transmission"],
        "the ACKs that end a row of timeouts (B1); default: any-news",
    ),
    Key::word("simultaneous", &["each", "once"], "how timers that expire together count (B3); default: each"),
    Key::word(
        "congested_backoff",
        &["when-merged", "always", "never"],
        "whether the timer doubles while congested (B2); default: when-merged, that is without notifications",
    ),
    Key::word(
        "freeze_exit",
        &["latest-transmission", "any-news"],
        "the ACK that ends the freeze state (B5); default: latest-transmission",
    ),
    Key::word(
        "merged_exit",
        &["route-change", "plain"],
        "what leaving the merged state is; default: route-change",
    ),
    Key::word("pacing", &["none", "adaptive"], "adaptive: as tpa-ap; default: none, of tpa-ap: adaptive"),
    Key::integer(
        "receive_buffer_bytes",
        1,
        1 << 30,
        "received data kept for the application; default: 65536",
    ),
    Key::integer_or(
        "silence_limit_s",
        1,
        1_000_000,
        &["none"],
        "how long the peer may owe an answer before the sender gives up; default: none",
    ),
];
