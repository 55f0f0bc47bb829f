//! Every parameter of a TCP endpoint, with unit, range, default, effect and source.
//!
//! "Default" in the field descriptions is the value of [`Config::modern`].

use super::congestion::{CongestionControl, MarkReduction, SackRules, SlowStart, Variant};
use super::door::DoorConfig;
use super::feedback::RouteFeedback;
use super::rack::RackConfig;
use super::receiver_rules::ReceiverRules;
use super::spurious::{SpuriousDetection, SpuriousDetector};
use super::tlp::TailProbe;
use crate::ConfigError;
use crate::pacing::Pacing;
use hopline_core::{Duration, settings};

settings! {
    /// Parameters of an [`Endpoint`](super::Endpoint). Start from a preset and use the setters. An
    /// endpoint checks the ranges when it is made; the error names the field and its range.
    ///
    /// # Example
    ///
    /// ```
    /// use hopline_transport::tcp::Config;
    ///
    /// let config = Config::linux().with_mss(1200).with_window_clamp(Some(64));
    /// let rto = config.rto().with_min(std::time::Duration::from_millis(100));
    /// assert!(config.with_rto(rto).validate().is_ok());
    /// let error = config.with_mss(20).validate().expect_err("too small");
    /// assert_eq!(error.to_string(), "mss must be 48 to 65495 bytes");
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Config {
        /// Largest payload of a segment without options, bytes; announced in the SYN and, lowered to the peer's announcement,
        /// kept when sending (options are subtracted, RFC 6691). Range 48–65 495, default 1460.
        mss, with_mss: u32,
        /// Recovery strategy. Default SACK.
        variant, with_variant: Variant,
        /// Loss detection. Default by duplicate acknowledgments.
        loss_detection, with_loss_detection: LossDetection,
        /// Congestion control algorithm. Default Reno: one segment per round trip, halved by a loss (RFC 5681).
        congestion_control, with_congestion_control: CongestionControl,
        /// Detection and undoing of spurious window reductions. Default none.
        spurious, with_spurious: SpuriousDetection,
        /// Congestion window after the handshake. Default ten segments (RFC 6928).
        initial_window, with_initial_window: InitialWindow,
        /// Slow start threshold before the first loss. Default unlimited (RFC 5681 §3.1: "arbitrarily high").
        initial_ssthresh, with_initial_ssthresh: InitialSsthresh,
        /// Upper limit of data in flight, segments of the negotiated size, whatever `cwnd` and the peer allow. At least 1.
        /// Default none. ns-2's `window_`.
        window_clamp, with_window_clamp: Option<u32>,
        /// Increase of `cwnd` per acknowledgment. Default byte counting with limit 2 (RFC 3465).
        growth, with_growth: Growth,
        /// End of slow start before the first loss. Default none (RFC 5681).
        slow_start, with_slow_start: SlowStart,
        /// Condition for growth of `cwnd`. Default only while the sender fills it (RFC 7661 §4.3 in spirit, as Linux does).
        growth_condition, with_growth_condition: GrowthCondition,
        /// Quantity that a loss halves, or cuts to `beta`. Default the data in flight (RFC 5681 §3.1 (4)).
        reduction, with_reduction: Reduction,
        /// Reduction of the window for an ECN mark. Default at once (RFC 3168 §6.1.2).
        mark_reduction, with_mark_reduction: MarkReduction,
        /// Effect of a second time-out in a row on `ssthresh`. Default keep (RFC 5681 §3.1).
        repeated_timeout, with_repeated_timeout: RepeatedTimeout,
        /// Effect of a time-out during fast recovery on `ssthresh`. Default lower it again (RFC 5681 §4.3).
        recovery_timeout, with_recovery_timeout: RecoveryTimeout,
        /// Contents of a probe of the peer's closed window. Default the next byte of data (RFC 9293 §3.8.6.1).
        window_probe, with_window_probe: WindowProbe,
        /// Effect of a reset in TIME-WAIT. Default it ends the connection (RFC 9293 §3.10.7.4).
        time_wait_reset, with_time_wait_reset: TimeWaitReset,
        /// Treatment of data in flight after the peer closes its window over them. Default they time out; 4.4BSD probes.
        closed_window, with_closed_window: ClosedWindow,
        /// Number of duplicate acknowledgments that indicate a loss. Range 1–255, default 3 (RFC 5681 §3.2).
        dup_ack_threshold, with_dup_ack_threshold: u32,
        /// Limited transmit: segments sent on the first duplicate acknowledgments. Default new data (RFC 3042).
        limited_transmit, with_limited_transmit: LimitedTransmit,
        /// Treatment of `cwnd` after one RTO without sending. Default restart from the initial window (RFC 5681 §4.1).
        idle_restart, with_idle_restart: IdleRestart,
        /// Small segments while data is in flight. Default hold back (RFC 9293 §3.7.4).
        nagle, with_nagle: Nagle,
        /// Acknowledgments sent at once at the start of the peer's stream and after a pause of one RTO, before delayed ones
        /// begin; a host that answers soon after it receives sends none. Range 0–255, default 0. Linux: 16
        /// (`TCP_MAX_QUICKACKS`).
        quick_acks, with_quick_acks: u8,
        /// Lost SYNs or SYN-ACKs after which the connection still starts with the initial window. Range 0–255, default 0
        /// (RFC 5681 §3.1: then the window is one segment). Linux: 1.
        tolerated_lost_syns, with_tolerated_lost_syns: u8,
        /// Treatment of a segment without timestamps where they were negotiated. Default dropped (RFC 7323 §3.2: SHOULD).
        missing_timestamp, with_missing_timestamp: MissingTimestamp,
        /// Acknowledgment policy for in-order data. Default every second segment or after 40 ms (RFC 1122 §4.2.3.2; 40 ms as
        /// Linux).
        ack_policy, with_ack_policy: AckPolicy,
        /// In-order segments that a delayed acknowledgment waits for at most. Range 1–255, default 2 (RFC 1122 §4.2.3.2); more are a
        /// stretch ACK, as hosts with receive offload send them.
        ack_every, with_ack_every: u8,
        /// Retransmission timer. Default as [`RtoConfig`] says.
        rto, with_rto: RtoConfig,
        /// Pacing of the segments that the window allows. Default none.
        pacing, with_pacing: Pacing,
        /// TCP-DOOR: detects route changes by out-of-order packets and does not treat them as congestion. Default none.
        door, with_door: Option<DoorConfig>,
        /// Route failure notification: a scheme that tells a lost route from congestion. Default none.
        feedback, with_feedback: RouteFeedback,
        /// Use of timestamps, with PAWS (RFC 7323). Default offered.
        timestamps, with_timestamps: OptionOffer,
        /// Choice of the timestamp that an acknowledgment echoes. Default as RFC 7323.
        timestamp_echo, with_timestamp_echo: TimestampEcho,
        /// Reports of duplicate segments in acknowledgments (D-SACK), where SACK is in use. Default silent.
        dsack, with_dsack: DsackReports,
        /// Explicit congestion notification (RFC 3168, RFC 9768). Default never.
        ecn, with_ecn: EcnMode,
        /// Use of window scaling (RFC 7323 §2). The shift is the smallest that can express `receive_buffer`. Default offered.
        window_scale, with_window_scale: OptionOffer,
        /// Rules for segments beyond the window, and for the FIN. Default those of RFC 9293.
        receiver_rules, with_receiver_rules: ReceiverRules,
        /// Received data kept for the user, in order and not, bytes; the largest window announced. Range 1–2³⁰,
        /// default 4 MiB.
        receive_buffer, with_receive_buffer: u32,
        /// Data taken from the user and not yet acknowledged, bytes. `None`: no limit. Default none.
        send_buffer, with_send_buffer: Option<u64>,
        /// Duration of TIME-WAIT: twice the maximum segment lifetime. Default 60 s (as Linux; RFC 9293 §3.4.2 names 4 min).
        time_wait, with_time_wait: Duration as into,
        /// Retransmissions of a SYN or SYN-ACK before giving up; `None`: never. Default 6 (as Linux).
        syn_retries, with_syn_retries: Option<u32>,
        /// Time-outs in a row of the same data, or unanswered window probes, before giving up (R2 of RFC 9293 §3.8.3);
        /// `None`: never. Default 15 (as Linux).
        data_retries, with_data_retries: Option<u32>,
        /// Least time between two challenge ACKs (RFC 5961 §7). Zero: no limit. Default 500 ms (as Linux).
        challenge_ack_interval, with_challenge_ack_interval: Duration as into,
    }
}

settings! {
    /// Parameters of the retransmission timer (RFC 6298). Start from [`Config::rto`] of a preset and use the setters.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct RtoConfig {
        /// RTO before the first round-trip sample. Above zero, default 1 s (RFC 6298 §2.1).
        initial, with_initial: Duration as into,
        /// Least RTO before back-off, or least variance term, as `floor` says. Default 200 ms (as Linux; RFC 6298 §2.4 wants 1 s).
        min, with_min: Duration as into,
        /// Quantity that `min` bounds from below. Default the RTO.
        floor, with_floor: RtoFloor,
        /// Largest RTO, back-off included. At least `min`, default 60 s (RFC 6298 §2.5).
        max, with_max: Duration as into,
        /// Clock granularity `G`: the RTO is a multiple of it, and the variance term is at least `G`
        /// (RFC 6298 §2). Above zero, default 1 ms.
        granularity, with_granularity: Duration as into,
        /// Largest back-off factor, a power of two; 1: no back-off; `None`: doubles until `max`. Default none. ns-2 of 2001: 64.
        backoff_limit, with_backoff_limit: Option<u32>,
        /// Back-off factor above which the smoothed estimate is forgotten and the next sample starts afresh
        /// (RFC 6298 §5, last paragraph). `None`: never. Default none. ns-2 and BSD: 8.
        reset_above, with_reset_above: Option<u32>,
        /// Measurement and smoothing of round-trip times. Default exact.
        estimator, with_estimator: Estimator,
    }
}

/// Quantity that [`RtoConfig::min`] bounds from below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoFloor {
    /// The RTO (RFC 6298 §2.4).
    Rto,
    /// The variance term: RTO = SRTT + max(`min`, 4·RTTVAR), so that even a path without any jitter has `min` to spare (Linux,
    /// `tcp_rtt_estimator`). Before the first sample, the RTO.
    Variance,
}

/// Measurement and smoothing of round-trip times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// Real-valued arithmetic on nanoseconds (RFC 6298 §2).
    Exact,
    /// Whole ticks of [`RtoConfig::granularity`] with the scaled integers of Jacobson (1988), as BSD and ns-2 do it:
    /// a sample is the number of ticks that passed, at least one.
    Ticks {
        /// Offset of the ticking clock, below one tick. ns-2 draws it per connection (`boot_time_`).
        phase: Duration,
    },
}

/// Congestion window after the handshake. A lost SYN makes it one segment (RFC 5681 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialWindow {
    /// Number of segments, at least 1.
    Segments(u32),
    /// Two to four segments, about 4380 bytes (RFC 3390).
    Rfc3390,
    /// Ten segments, at most 14 600 bytes (RFC 6928).
    Rfc6928,
}

/// Slow start threshold before the first loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialSsthresh {
    /// None: slow start until the first loss.
    Unlimited,
    /// Number of segments, at least 2.
    Segments(u32),
    /// [`Config::window_clamp`], if there is one: ns-2.
    WindowClamp,
}

/// Increase of `cwnd` for an acknowledgment of new data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// One segment per ACK in slow start, `SMSS²/cwnd` per ACK afterwards, however much the ACK covers
    /// (RFC 5681 §3.1 (2), (3)); ns-2.
    PerAck,
    /// By the bytes acknowledged, at most `limit` segments per ACK in slow start (RFC 3465; `limit` is its L).
    Bytes {
        /// Most segments that one ACK adds. 1 or more.
        limit: u32,
    },
    /// By the bytes newly delivered, cumulatively or selectively, without a limit (Linux).
    Delivered,
}

/// Condition for growth of `cwnd`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrowthCondition {
    /// On every acknowledgment of new data (RFC 5681; ns-2).
    Always,
    /// Only if the window was full when the acknowledgment came.
    WindowFull,
    /// Only if the window was full at any time of the last round trip, or in slow start if more than half of it was in use
    /// (Linux, `tcp_is_cwnd_limited`).
    WindowUsed,
}

/// Treatment of a segment without timestamps where they were negotiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingTimestamp {
    /// Dropped (RFC 7323 §3.2).
    Dropped,
    /// Taken (Linux).
    Accepted,
}

/// Contents of a probe of the peer's closed window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowProbe {
    /// The next byte of data (RFC 9293 §3.8.6.1).
    NextByte,
    /// No data, with the sequence number before the first unacknowledged one, so that the peer has to answer (Linux,
    /// `tcp_xmit_probe_skb`).
    OldSequence,
}

/// Effect of a reset in TIME-WAIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeWaitReset {
    /// It ends the connection (RFC 9293 §3.10.7.4).
    Ends,
    /// None, so that a delayed segment cannot cut TIME-WAIT short (RFC 1337 §3, F1; FreeBSD; Linux with `tcp_rfc1337`).
    Ignored,
}

/// Quantity that a loss halves. [`CongestionControl::Cubic`] multiplies by its `beta` in place of one half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Data in flight: `ssthresh = max(FlightSize/2, 2·SMSS)`, `cwnd = ssthresh` in recovery (RFC 5681 §3.1 (4), §3.2).
    FlightSize,
    /// The window, `min(cwnd, clamp)`: `ssthresh` is half of it in whole segments, at least two, and `cwnd` in recovery is
    /// half of it exactly (ns-2, `slowdown()` with `precisionReduce_`).
    Window,
    /// As `Window`, with `cwnd` in recovery cut to whole segments too (ns-2 before January 2006).
    WholeWindow,
}

/// Effect of a second time-out in a row on `ssthresh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatedTimeout {
    /// No change: the timer has retransmitted the segment before (RFC 5681 §3.1).
    Keep,
    /// Halves again, which with `cwnd` at one segment means two segments (ns-2).
    Reduce,
}

/// Effect of a time-out during fast recovery on `ssthresh`, which fast retransmit has lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryTimeout {
    /// Lowers it again: the loss of a retransmission is a second indication of congestion (RFC 5681 §4.3).
    Reduce,
    /// No change: one reduction per window (Linux, `tcp_enter_loss`).
    Keep,
}

/// Treatment of data in flight after the peer closes its window over them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosedWindow {
    /// The data time out as usual (RFC 9293 §3.8.6.1); then the window is probed.
    TimeOut,
    /// The data count as unsent, and the window is probed. When it opens, the data are sent again under the unchanged
    /// congestion window (4.4BSD, `tcp_output`). M-TCP relies on this.
    Persist,
}

/// Limited transmit: segments sent on duplicate acknowledgments below the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedTransmit {
    /// None.
    Off,
    /// One segment of new data for each duplicate (RFC 3042).
    NewData,
    /// One segment for each duplicate from the next position, which may be a retransmission after a time-out (ns-2,
    /// `singledup_`).
    NextData,
}

/// Loss detection algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossDetection {
    /// Duplicate acknowledgments, or SACK blocks above a hole ([`Config::dup_ack_threshold`]).
    DupAcks,
    /// Time-based detection with a tail loss probe (RACK-TLP, RFC 8985). Needs [`Variant::Sack`] as of RFC 6675. Falls
    /// back to duplicate acknowledgments if the peer does not offer SACK.
    Rack(RackConfig),
}

/// Treatment of `cwnd` after one RTO without sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleRestart {
    /// No change.
    Never,
    /// At most the initial window (RFC 5681 §4.1).
    InitialWindow,
    /// One segment (ns-2, `slow_start_restart_`).
    OneSegment,
}

/// Small segments while data is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nagle {
    /// Held back (RFC 9293 §3.7.4).
    On,
    /// Held back while an earlier small segment is in flight; full-sized segments hold nothing back (Minshall's variant,
    /// Linux).
    Minshall,
    /// Sent at once.
    Off,
}

/// Acknowledgment policy for in-order data. All other segments are acknowledged at once (RFC 5681 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckPolicy {
    /// Every segment at once.
    EverySegment,
    /// Every second segment, or every [`Config::ack_every`]-th, or after the delay (RFC 1122 §4.2.3.2).
    Delayed {
        /// Longest delay. Above zero, at most 500 ms.
        timer: Duration,
    },
}

/// Negotiation of an option in the SYN. The option is used if both sides offer it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionOffer {
    /// Offered.
    Offered,
    /// Neither offered nor accepted.
    NotOffered,
}

/// Reports of duplicate segments in acknowledgments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DsackReports {
    /// No reports.
    Off,
    /// One report per duplicate, as the first block of the SACK option (D-SACK, RFC 2883 §4).
    On,
}

/// Negotiation of explicit congestion notification (RFC 3168, RFC 9768). ECN is used if both sides agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnMode {
    /// Neither requested nor accepted.
    Never,
    /// Accepted if the peer's SYN requests it. Default of Linux.
    Accept,
    /// Also requested in our SYN.
    Request,
    /// Accurate ECN, requested and accepted (RFC 9768): the peer reports each mark. With a peer that knows only RFC 3168, as
    /// [`Self::Request`].
    AccEcn,
}

/// Choice of the timestamp that an acknowledgment echoes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampEcho {
    /// Timestamp of the earliest segment that the ACK covers, so that the round-trip time includes the delay of the ACK.
    /// A duplicate ACK repeats the previous echo. RFC 7323 §4.3, and ns-2's sinks since 2003 (`ts_echo_bugfix_`), where a
    /// segment counts up to `last_ack_sent_ + 1`.
    Earliest,
    /// Timestamp of the latest segment that arrived: ns-2's sinks before 2003.
    Latest,
}

/// Least MSS that leaves room for data beside the longest options (48 − 40 bytes, as Linux).
pub(crate) const MIN_MSS: u32 = 48;

impl Config {
    /// Checks every field against its range.
    ///
    /// # Errors
    /// The first field that is out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let segments = |n: Option<u32>| n.is_none_or(|n| (1..=1 << 20).contains(&n));
        let rules: [(bool, &'static str, &'static str); 24] = [
            ((MIN_MSS..=65_495).contains(&self.mss), "mss", "48 to 65495 bytes"),
            (
                !matches!(self.congestion_control, CongestionControl::Cubic(cubic) if !(cubic.c > 0.0 && cubic.c <= 1000.0)),
                "law.c",
                "above 0 and at most 1000",
            ),
            (
                !matches!(self.congestion_control, CongestionControl::Cubic(cubic) if !(cubic.beta > 0.0 && cubic.beta < 1.0)),
                "law.beta",
                "above 0 and below 1",
            ),
            (
                self.initial_window.segments().is_none_or(|n| segments(Some(n))),
                "initial_window",
                "1 to 1048576 segments",
            ),
            (
                !matches!(self.initial_ssthresh, InitialSsthresh::Segments(n) if !(2..=1 << 20).contains(&n)),
                "initial_ssthresh",
                "2 to 1048576 segments",
            ),
            (segments(self.window_clamp), "window_clamp", "1 to 1048576 segments"),
            (
                !matches!(self.growth, Growth::Bytes { limit } if !(1..=255).contains(&limit)),
                "growth.limit",
                "1 to 255 segments",
            ),
            (self.ack_every >= 1, "ack_every", "1 to 255 segments"),
            ((1..=255).contains(&self.dup_ack_threshold), "dup_ack_threshold", "1 to 255"),
            (
                !matches!(self.ack_policy, AckPolicy::Delayed { timer }
                    if timer.is_zero() || timer > Duration::from_millis(500)),
                "ack_policy.timer",
                "above 0 and at most 500 ms",
            ),
            (!self.rto.initial.is_zero(), "rto.initial", "above 0"),
            (
                self.rto.max >= self.rto.min && !self.rto.max.is_zero(),
                "rto.max",
                "above 0 and at least rto.min",
            ),
            (!self.rto.granularity.is_zero(), "rto.granularity", "above 0"),
            (self.rto.backoff_limit.is_none_or(u32::is_power_of_two), "rto.backoff_limit", "a power of two"),
            (
                !matches!(self.rto.estimator, Estimator::Ticks { phase } if phase >= self.rto.granularity),
                "rto.estimator.phase",
                "below rto.granularity",
            ),
            (
                self.loss_detection == LossDetection::DupAcks
                    || matches!(self.variant, Variant::Sack(sack) if sack.rules == SackRules::Rfc6675),
                "loss_detection",
                "by duplicate ACKs unless recovery is SACK as of RFC 6675: RACK goes by what the peer holds",
            ),
            (
                self.closed_window == ClosedWindow::TimeOut || self.loss_detection == LossDetection::DupAcks,
                "closed_window",
                "retransmit with RACK, which remembers what was sent when",
            ),
            (
                !matches!(self.loss_detection, LossDetection::Rack(rack)
                    if rack.min_rtt_window.is_zero() || rack.reo_wnd_persist == 0),
                "loss_detection.rack",
                "a min_rtt_window above 0 and a reo_wnd_persist of at least 1",
            ),
            (
                !matches!(self.loss_detection, LossDetection::Rack(RackConfig { tail_probe: TailProbe::On { max_ack_delay }, .. })
                    if max_ack_delay > Duration::from_millis(500)),
                "loss_detection.rack.tail_probe.max_ack_delay",
                "at most 500 ms",
            ),
            (
                self.spurious.eifel == SpuriousDetector::Off || self.timestamps == OptionOffer::Offered,
                "spurious.eifel",
                "off without timestamps: it goes by what an ACK echoes",
            ),
            (
                self.spurious.dsack == SpuriousDetector::Off || matches!(self.variant, Variant::Sack(_)),
                "spurious.dsack",
                "off without SACK, which carries the reports",
            ),
            (
                self.pacing == Pacing::None || self.timestamps == OptionOffer::Offered,
                "timestamps",
                "offered where pacing is adaptive: it takes a round trip from each ACK",
            ),
            ((1..=1 << 30).contains(&self.receive_buffer), "receive_buffer", "1 to 2^30 bytes"),
            (self.send_buffer != Some(0), "send_buffer", "at least 1 byte"),
        ];
        if let Some(&(_, field, must)) = rules.iter().find(|(ok, ..)| !ok) {
            return Err(ConfigError { field, requirement: must });
        }
        self.pacing.validate()?;
        self.slow_start.validate().map_err(|(field, requirement)| ConfigError { field, requirement })?;
        self.validate_bbr()?;
        self.validate_prague()?;
        self.feedback.validate(self.loss_detection)?;
        match (self.door, self.feedback) {
            (None, _) => Ok(()),
            (Some(door), RouteFeedback::None) => door.validate(self.timestamps, self.loss_detection),
            (Some(_), _) => {
                let must = "none where TCP-DOOR tells lost routes by itself";
                Err(ConfigError { field: "feedback", requirement: must })
            }
        }
    }

    /// Checks that BBR has the RACK records that it needs, and that nothing else sets the window or the pacing rate.
    fn validate_bbr(&self) -> Result<(), ConfigError> {
        let CongestionControl::Bbr(bbr) = self.congestion_control else { return Ok(()) };
        let rules: [(bool, &'static str, &'static str); 5] = [
            (
                self.loss_detection != LossDetection::DupAcks,
                "loss_detection",
                "RACK with BBR, which takes its samples of what RACK records",
            ),
            (self.pacing == Pacing::None, "pacing", "none with BBR, which paces at the rate it measures"),
            (self.ecn == EcnMode::Never, "ecn", "off with BBR, which makes nothing of marks"),
            (self.door.is_none(), "door", "none with BBR, whose window nobody holds"),
            (self.feedback == RouteFeedback::None, "feedback", "none with BBR, whose window nobody holds"),
        ];
        match rules.iter().find(|(ok, ..)| !ok) {
            Some(&(_, field, must)) => Err(ConfigError { field, requirement: must }),
            None => bbr.validate(),
        }
    }
}

impl InitialWindow {
    /// Returns the window in bytes for segments of `mss` bytes.
    #[must_use]
    pub fn bytes(self, mss: u32) -> u32 {
        match self {
            Self::Segments(n) => n.saturating_mul(mss),
            Self::Rfc3390 => (4 * mss).min((2 * mss).max(4380)),
            Self::Rfc6928 => (10 * mss).min((2 * mss).max(14_600)),
        }
    }

    fn segments(self) -> Option<u32> {
        match self {
            Self::Segments(n) => Some(n),
            Self::Rfc3390 | Self::Rfc6928 => None,
        }
    }
}
