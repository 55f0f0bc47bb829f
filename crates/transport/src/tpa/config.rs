//! Every parameter of a TPA endpoint, with unit, range, default, effect and source.
//!
//! "B1" to "B13" are the ambiguities of the paper, as listed in `docs/protocols/tpa.md`.

use crate::ConfigError;
use crate::pacing::Pacing;
use hopline_core::{Duration, settings};
use hopline_wire::tpa::{Opening, POSITIONS, Tag};

/// Data bytes that every end of a connection with tags accepts in a segment, whatever its announced maximum. They fit
/// into the 576 bytes of IPv4 that every host accepts (RFC 1122 §3.3.2), with the longest header. A smaller limit would
/// let a peer force a packet per byte.
pub const MIN_MSS: u16 = 576 - 20 - 8 - 12 - 12 - 16;

settings! {
    /// Parameters of an [`Endpoint`](super::Endpoint). Start from [`Config::tpa`] or [`Config::tpa_star`] and use the setters.
    /// An endpoint checks the ranges when it is made; the error names the field and its range.
    ///
    /// # Example
    ///
    /// ```
    /// use hopline_transport::tpa::Config;
    ///
    /// let config = Config::tpa(3).with_block_segments(8);
    /// let rto = config.rto().with_min(std::time::Duration::from_millis(20));
    /// assert!(config.with_rto(rto).validate().is_ok());
    /// let error = config.with_cwnd_max(13).validate().expect_err("too large");
    /// assert_eq!(error.to_string(), "cwnd_max must be 1 to 12");
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Config {
        /// Largest payload of a segment, bytes. Range 1–65 000, default 1460 (TPA §4.1).
        mss, with_mss: u16,
        /// K: segments in a block. Range 1–12, default 12 (TPA appendix B).
        block_segments, with_block_segments: u8,
        /// Time for which data wait for a block to fill. Default 100 ms (ours; TPA §3.2 names no value).
        block_fill, with_block_fill: Duration as into,
        /// Width of block numbers on the wire. Default 16 bits, the UDP form.
        block_numbers, with_block_numbers: BlockNumbers,
        /// cwndmax: number of segments in flight in the normal state. Range 1–12, default 3 (TPA §3.5: 2 or 3).
        cwnd_max, with_cwnd_max: u8,
        /// End of a round. Default [`RoundStart::AllSent`].
        rounds, with_rounds: RoundStart,
        /// Acknowledgment policy.
        ack, with_ack: AckConfig,
        /// Retransmission timer and detection of route changes.
        rto, with_rto: RtoConfig,
        /// Interpretation of silence: thresholds of congestion and route failure.
        failures, with_failures: FailureConfig,
        /// Pacing of the segments that the window allows. Default none; adaptive: TPA-AP (TPA §5.2).
        pacing, with_pacing: Pacing,
        /// Received data kept for the user, in order and not, bytes. At least a block of full segments; default 64 KiB.
        receive_buffer, with_receive_buffer: u32,
        /// Data taken from the user and not yet acknowledged, bytes. `None`: no limit. Default none.
        send_buffer, with_send_buffer: Option<u64>,
        /// Time for which the end that closed first answers late segments. Default 10 s.
        time_wait, with_time_wait: Duration as into,
        /// Delay before the first retransmission of a SYN; `None` (default): the RTO, as for all others.
        syn_rto, with_syn_rto: Option<Duration>,
        /// Retransmissions of a SYN before giving up; `None`: never. Default 6, as our TCP.
        syn_retries, with_syn_retries: Option<u32>,
        /// Longest silence of a peer that has to answer; `None`: unlimited. Default 120 s (RFC 9293 §3.8.3 asks TCP for at
        /// least 100 s).
        silence_limit, with_silence_limit: Option<Duration>,
        /// Keep-alive interval: silence after which the peer is probed; `None`: never (default, as TCP).
        keep_alive, with_keep_alive: Option<Duration>,
    }
}

/// Width of block numbers on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockNumbers {
    /// 8 bits: the native form.
    Bits8,
    /// 16 bits: the UDP form.
    Bits16,
}

impl BlockNumbers {
    pub(super) const fn mask(self) -> u16 {
        match self {
            Self::Bits8 => 0xff,
            Self::Bits16 => 0xffff,
        }
    }
}

/// Start of the round with the timed-out segments (TPA §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundStart {
    /// All segments of the previous round were sent.
    AllSent,
    /// All segments of the previous round are acknowledged or timed out.
    AllResolved,
}

settings! {
    /// Acknowledgment policy of a receiver (TPA §3.6).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct AckConfig {
        /// Segments per ACK while the sender is not congested. Default [`AckEvery::Other`].
        every, with_every: AckEvery,
        /// Longest delay of an ACK. Default 100 ms (TPA §3.6).
        timer, with_timer: Duration as into,
        /// Acknowledgment of a complete block (B6). Default at once.
        complete_block, with_complete_block: CompleteBlock,
        /// Segment that the AckTxSeqNumber names (B8). Default the last.
        echo, with_echo: EchoRule,
    }
}

/// Segments per ACK while the sender is not congested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckEvery {
    /// Every other segment: TPA.
    Other,
    /// Every cwndmax segments, the cwndmax that the peer announced: TPA*.
    Window,
}

/// Acknowledgment of the last missing segment of a block (B6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompleteBlock {
    /// At once, since the sender can send nothing before this ACK.
    AckAtOnce,
    /// By the rules for any segment.
    AckAsUsual,
}

/// Segment that the AckTxSeqNumber names if one ACK answers several (B8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EchoRule {
    /// The last one received, which triggered the ACK.
    Last,
    /// The first one not yet acknowledged, so that the sample contains the delay of the ACK.
    First,
}

settings! {
    /// Parameters of the retransmission timer (TPA §3.4).
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct RtoConfig {
        /// RTO before the first sample. Above zero, default 1 s (ours).
        initial, with_initial: Duration as into,
        /// Least RTO before back-off. Above zero, default 200 ms (ours, for a user-space prototype).
        min, with_min: Duration as into,
        /// Largest RTO, back-off included. At least `min`, default 60 s (ours).
        max, with_max: Duration as into,
        /// g: weight of a sample in the mean. Above 0, at most 1; default 1/8 (TCP's).
        g, with_g: f64,
        /// h: weight of a sample in the deviation. Above 0, at most 1; default 1/4 (TCP's).
        h, with_h: f64,
        /// g1: value of `g` after a route change. Default 1/2 (ours).
        g1, with_g1: f64,
        /// h1: value of `h` after a route change. Default 1/2 (ours).
        h1, with_h1: f64,
        /// thRC: number of consecutive samples outside mean ± deviation, all late or all early, that indicate a route change.
        /// At least 1, default 3 (ours).
        th_rc, with_th_rc: u8,
        /// nRC: number of updates with `g1` and `h1`. Default 5 (ours).
        n_rc, with_n_rc: u8,
    }
}

settings! {
    /// Interpretation of silence (TPA §3.3, §3.5).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FailureConfig {
        /// Route notifications of the network layer. Default none.
        notification, with_notification: Notification,
        /// thCONG: number of consecutive timeouts that indicate congestion; without ELFN also thROUTE. At least 1, default 1
        /// (TPA appendix B).
        th_cong, with_th_cong: u8,
        /// thROUTE with ELFN: number of consecutive timeouts after which the sender freezes without a notification. At least
        /// 1; default `None`, never.
        th_route, with_th_route: Option<u8>,
        /// thACK: number of consecutive ACKs that end the congested state. At least 1, default 1 (ours).
        th_ack, with_th_ack: u8,
        /// ACKs that reset the count of consecutive timeouts (B1). Default any ACK of new data.
        count_reset, with_count_reset: CountReset,
        /// Count of timers that expire at the same instant (B3). Default each.
        simultaneous, with_simultaneous: SimultaneousTimeouts,
        /// Back-off of the timer in the congested state (B2). Default only if it is the freeze state as well.
        congested_backoff, with_congested_backoff: CongestedBackoff,
        /// ACK that ends the freeze state (B5). Default that of the latest transmission.
        freeze_exit, with_freeze_exit: FreezeExit,
        /// Treatment of the exit from the merged state as a route change (§3.4 (i)). Default yes.
        merged_exit, with_merged_exit: MergedExit,
    }
}

/// Route notifications of the network layer (TPA §3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notification {
    /// None: route failure and congestion cannot be told apart, and their states are merged.
    None,
    /// Notification of a route failure. The sender probes for the new route.
    Elfn,
    /// Notifications of a route failure and of the recovery. The sender is silent in between. Not for on-demand routing,
    /// which looks for a route only if there are packets. Scenarios allow it over OLSR only.
    ElfnAndRecovery,
}

/// ACKs that reset the count of consecutive timeouts (B1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountReset {
    /// Any ACK of new data.
    AnyNewAck,
    /// The ACK of the latest transmission.
    LatestTransmission,
}

/// Count of timers that expire at the same instant (B3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimultaneousTimeouts {
    /// Each timer counts.
    Each,
    /// All timers count once.
    Once,
}

/// Back-off of the timer in the congested state (B2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestedBackoff {
    /// Only if the congested state is the freeze state too.
    WhenMerged,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// ACK that ends the freeze state (B5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreezeExit {
    /// The ACK of the latest transmission, by its AckTxSeqNumber.
    LatestTransmission,
    /// Any ACK of new data.
    AnyNewAck,
}

/// Treatment of the exit from the merged state (§3.4, §3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergedExit {
    /// Route change: the following samples have a greater weight for a while.
    RouteChange,
    /// End of congestion only.
    Plain,
}

impl Config {
    /// TPA-3, the default of scenarios.
    pub const TPA_3: Self = Self::tpa(3);

    /// Returns TPA with a largest window of `cwnd_max` segments: TPA-2, TPA-3.
    #[must_use]
    pub const fn tpa(cwnd_max: u8) -> Self {
        Self {
            mss: 1460,
            block_segments: POSITIONS,
            block_fill: Duration::from_millis(100),
            block_numbers: BlockNumbers::Bits16,
            cwnd_max,
            rounds: RoundStart::AllSent,
            ack: AckConfig {
                every: AckEvery::Other,
                timer: Duration::from_millis(100),
                complete_block: CompleteBlock::AckAtOnce,
                echo: EchoRule::Last,
            },
            rto: RtoConfig {
                initial: Duration::from_secs(1),
                min: Duration::from_millis(200),
                max: Duration::from_secs(60),
                g: 1.0 / 8.0,
                h: 1.0 / 4.0,
                g1: 0.5,
                h1: 0.5,
                th_rc: 3,
                n_rc: 5,
            },
            failures: FailureConfig {
                notification: Notification::None,
                th_cong: 1,
                th_route: None,
                th_ack: 1,
                count_reset: CountReset::AnyNewAck,
                simultaneous: SimultaneousTimeouts::Each,
                congested_backoff: CongestedBackoff::WhenMerged,
                freeze_exit: FreezeExit::LatestTransmission,
                merged_exit: MergedExit::RouteChange,
            },
            pacing: Pacing::None,
            receive_buffer: 64 * 1024,
            send_buffer: None,
            time_wait: Duration::from_secs(10),
            syn_rto: None,
            syn_retries: Some(6),
            silence_limit: Some(Duration::from_secs(120)),
            keep_alive: None,
        }
    }

    /// Returns TPA*: as [`Self::tpa`], with one ACK for each window.
    #[must_use]
    pub fn tpa_star(cwnd_max: u8) -> Self {
        let mut config = Self::tpa(cwnd_max);
        config.ack.every = AckEvery::Window;
        config
    }

    /// Checks every parameter against its range.
    ///
    /// # Errors
    /// The first parameter that is out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let check = |ok, field, must| if ok { Ok(()) } else { Err(ConfigError { field, requirement: must }) };
        let weight = |w: f64| w > 0.0 && w <= 1.0;
        let (rto, failures) = (&self.rto, &self.failures);
        check((1..=65_000).contains(&self.mss), "mss", "1 to 65000")?;
        check((1..=POSITIONS).contains(&self.block_segments), "block_segments", "1 to 12")?;
        check((1..=POSITIONS).contains(&self.cwnd_max), "cwnd_max", "1 to 12")?;
        check(rto.initial > Duration::ZERO, "rto.initial", "above zero")?;
        check(rto.min > Duration::ZERO, "rto.min", "above zero")?;
        check(rto.max >= rto.min, "rto.max", "at least rto.min")?;
        check(weight(rto.g) && weight(rto.h), "rto.g, rto.h", "above 0 and at most 1")?;
        check(weight(rto.g1) && weight(rto.h1), "rto.g1, rto.h1", "above 0 and at most 1")?;
        check(rto.th_rc > 0, "rto.th_rc", "at least 1")?;
        check(failures.th_cong > 0, "th_cong", "at least 1")?;
        check(failures.th_route != Some(0), "th_route", "at least 1")?;
        check(
            failures.th_route.is_none() || failures.notification != Notification::None,
            "th_route",
            "left out where nothing is told of routes: there th_cong is both",
        )?;
        check(failures.th_ack > 0, "th_ack", "at least 1")?;
        check(self.receive_buffer >= self.full_block(), "receive_buffer", "at least block_segments · mss")?;
        check(self.keep_alive != Some(Duration::ZERO), "keep_alive", "above zero")?;
        check(self.syn_rto != Some(Duration::ZERO), "syn_rto", "above zero")?;
        check(self.silence_limit != Some(Duration::ZERO), "silence_limit", "above zero")?;
        self.pacing.validate()
    }

    /// Returns the bytes of a block of full segments.
    fn full_block(&self) -> u32 {
        u32::from(self.mss) * u32::from(self.block_segments)
    }

    /// Returns the largest number of data bytes of a segment that is accepted.
    pub(super) fn max_accepted_len(&self, tag: Option<Tag>) -> u16 {
        if tag.is_some() { self.mss.max(MIN_MSS) } else { self.mss }
    }

    /// Returns the opening parameters for the peer, with the tag that it has to use.
    pub(super) fn opening_parameters(&self, tag: Option<Tag>) -> Opening {
        Opening {
            tag,
            mss: self.max_accepted_len(tag),
            block_segments: self.block_segments,
            cwnd_max: self.cwnd_max,
        }
    }
}
