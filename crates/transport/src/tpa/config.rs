//! Every parameter of a TPA endpoint, with unit, range, default, effect and source.
//!
//! "B1" to "B13" are the ambiguities of the paper as `docs/protocols/tpa.md` lists them.

use crate::ConfigError;
use crate::pacing::Pacing;
use hopline_core::Duration;
use hopline_wire::tpa::{Opening, POSITIONS, Tag};

/// Every end of a connection with tags takes segments with this many bytes of data, whatever it says: what fits into the
/// 576 bytes of IPv4 that every host takes (RFC 1122 §3.3.2), with the longest of our headers. A peer that could ask for
/// less would make each byte cost a packet.
pub const LEAST_MSS: u16 = 576 - 20 - 8 - 12 - 12 - 16;

/// Parameters of an [`Endpoint`](super::Endpoint). Start from [`Config::tpa`] or [`Config::tpa_star`] and change fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Largest payload of a segment, bytes. Range 1–65 000, default 1460 (TPA §4.1).
    pub mss: u16,
    /// K: segments in a block. Range 1–12, default 12 (TPA appendix B).
    pub block_segments: u8,
    /// How long data wait for a block to fill. Default 100 ms (ours; TPA §3.2 names no value).
    pub block_fill: Duration,
    /// Width of block numbers on the wire. Default 16 bits, the UDP form.
    pub block_numbers: BlockNumbers,
    /// cwndmax: segments in flight while all is well. Range 1–12, default 3 (TPA §3.5: 2 or 3).
    pub cwnd_max: u8,
    /// What lies at the end of a round. Default [`RoundStart::AllSent`].
    pub rounds: RoundStart,
    /// When to acknowledge.
    pub ack: AckConfig,
    /// The retransmission timer and the detection of route changes.
    pub rto: RtoConfig,
    /// What silence is taken for.
    pub failures: FailureConfig,
    /// How the segments that the window allows are spaced. Default not at all; adaptive: TPA-AP (TPA §5.2).
    pub pacing: Pacing,
    /// Received data kept for the user, in order and not, bytes. At least a block of full segments; default 64 KiB.
    pub receive_buffer: u32,
    /// Data taken from the user and not yet acknowledged, bytes. `None`: no limit. Default none.
    pub send_buffer: Option<u64>,
    /// How long the end that closed first answers late segments. Default 10 s.
    pub time_wait: Duration,
    /// How soon a SYN is repeated the first time; `None` (default): after the RTO, as all other times.
    pub call_again: Option<Duration>,
    /// Retransmissions of a SYN before giving up; `None`: never. Default 6, as our TCP.
    pub syn_retries: Option<u32>,
    /// How long the peer may be silent while something is due from it; `None`: for ever. Default 120 s (RFC 9293 §3.8.3
    /// asks TCP for at least 100 s).
    pub silence_limit: Option<Duration>,
    /// Silence after which the peer is asked for a sign of life; `None`: never (default, as TCP).
    pub keep_alive: Option<Duration>,
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

/// When the round over the timed-out segments begins (TPA §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundStart {
    /// Once every segment of the round before was sent.
    AllSent,
    /// Once every segment of the round before is acknowledged or timed out.
    AllSettled,
}

/// When a receiver acknowledges (TPA §3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckConfig {
    /// Segments for one ACK while the sender is not congested. Default [`AckEvery::Other`].
    pub every: AckEvery,
    /// How long a segment may wait for its ACK. Default 100 ms (TPA §3.6).
    pub timer: Duration,
    /// Whether a complete block is acknowledged at once (B6). Default at once.
    pub complete_block: CompleteBlock,
    /// Which segment the AckTxSeqNumber names (B8). Default the last.
    pub echo: Echo,
}

/// Segments for one ACK while the sender is not congested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckEvery {
    /// Every other segment: TPA.
    Other,
    /// Every cwndmax segments, the cwndmax that the peer announced: TPA*.
    Window,
}

/// What the last missing segment of a block brings about (B6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompleteBlock {
    /// An ACK at once: the sender can do nothing before it has it.
    AckAtOnce,
    /// An ACK by the rules for any segment.
    AckAsUsual,
}

/// Which segment the AckTxSeqNumber names when one ACK answers several (B8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// The last one received, which brought the ACK about.
    Last,
    /// The first one not yet acknowledged: the sample contains the delay of the ACK.
    First,
}

/// The retransmission timer (TPA §3.4).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RtoConfig {
    /// RTO before the first sample. Above zero, default 1 s (ours).
    pub initial: Duration,
    /// Least RTO before back-off. Above zero, default 200 ms (ours, for a user-space prototype).
    pub min: Duration,
    /// Largest RTO, back-off included. At least `min`, default 60 s (ours).
    pub max: Duration,
    /// g: weight of a sample in the mean. Above 0, at most 1; default 1/8 (TCP's).
    pub g: f64,
    /// h: weight of a sample in the deviation. Above 0, at most 1; default 1/4 (TCP's).
    pub h: f64,
    /// g1: the same as `g` after a route change. Default 1/2 (ours).
    pub g1: f64,
    /// h1: the same as `h` after a route change. Default 1/2 (ours).
    pub h1: f64,
    /// thRC: samples in a row outside mean ± deviation, all late or all early, that stand for a route change. At least
    /// 1, default 3 (ours).
    pub th_rc: u8,
    /// nRC: updates with `g1` and `h1`. Default 5 (ours).
    pub n_rc: u8,
}

/// What silence is taken for (TPA §3.3, §3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureConfig {
    /// What the network layer tells of routes. Default nothing.
    pub notification: Notification,
    /// thCONG: timeouts in a row after which the sender is congested; without ELFN also thROUTE. At least 1, default 1
    /// (TPA appendix B).
    pub th_cong: u8,
    /// thROUTE with ELFN: timeouts in a row after which the sender freezes although nothing was told. At least 1;
    /// default `None`, never.
    pub th_route: Option<u8>,
    /// thACK: ACKs in a row that end the congested state. At least 1, default 1 (ours).
    pub th_ack: u8,
    /// Which ACKs end a row of timeouts (B1). Default any with news.
    pub row_ends: RowEnds,
    /// Several timers that expire at once (B3). Default each counts.
    pub simultaneous: Simultaneous,
    /// Whether the timer doubles in the congested state (B2). Default where it is the freeze state as well.
    pub congested_backoff: CongestedBackoff,
    /// Which ACK ends the freeze state (B5). Default that of the latest transmission.
    pub freeze_exit: FreezeExit,
    /// Whether leaving the one state that stands for both counts as a route change (§3.4 (i)). Default yes.
    pub merged_exit: MergedExit,
}

/// What the network layer tells of routes (TPA §3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notification {
    /// Nothing: route failure and congestion cannot be told apart, and their states are one.
    None,
    /// When a route fails. The sender probes for the new one.
    Elfn,
    /// When a route fails and when there is one again. The sender is silent in between. Not for routing on demand: there
    /// silence finds no route. Scenarios have it over OLSR only.
    ElfnAndRecovery,
}

/// Which ACKs end a row of timeouts (B1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowEnds {
    /// Any that acknowledges something new.
    AnyNews,
    /// That of the latest transmission.
    LatestTransmission,
}

/// How timers that expire at the same instant count (B3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Simultaneous {
    /// Each.
    Each,
    /// Once.
    Once,
}

/// Whether the timer doubles with each expiry in the congested state (B2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestedBackoff {
    /// Only where the congested state is the freeze state too.
    WhenMerged,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Which ACK ends the freeze state (B5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreezeExit {
    /// That of the latest transmission, by its AckTxSeqNumber.
    LatestTransmission,
    /// Any that acknowledges something new.
    AnyNews,
}

/// What leaving the merged state is (§3.4, §3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergedExit {
    /// A route change: samples weigh more for a while.
    RouteChange,
    /// The end of a congestion and nothing more.
    Plain,
}

impl Config {
    /// TPA with a largest window of `cwnd_max` segments: TPA-2, TPA-3.
    #[must_use]
    pub fn tpa(cwnd_max: u8) -> Self {
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
                echo: Echo::Last,
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
                row_ends: RowEnds::AnyNews,
                simultaneous: Simultaneous::Each,
                congested_backoff: CongestedBackoff::WhenMerged,
                freeze_exit: FreezeExit::LatestTransmission,
                merged_exit: MergedExit::RouteChange,
            },
            pacing: Pacing::None,
            receive_buffer: 64 * 1024,
            send_buffer: None,
            time_wait: Duration::from_secs(10),
            call_again: None,
            syn_retries: Some(6),
            silence_limit: Some(Duration::from_secs(120)),
            keep_alive: None,
        }
    }

    /// TPA*: the same with one ACK for each window.
    #[must_use]
    pub fn tpa_star(cwnd_max: u8) -> Self {
        let mut config = Self::tpa(cwnd_max);
        config.ack.every = AckEvery::Window;
        config
    }

    /// Whether every parameter is in its range.
    ///
    /// # Errors
    /// The first parameter that is not.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let check = |ok, field, must| if ok { Ok(()) } else { Err(ConfigError { field, must }) };
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
        check(self.call_again != Some(Duration::ZERO), "call_again", "above zero")?;
        check(self.silence_limit != Some(Duration::ZERO), "silence_limit", "above zero")?;
        self.pacing.validate()
    }

    /// Bytes of a block of full segments.
    fn full_block(&self) -> u32 {
        u32::from(self.mss) * u32::from(self.block_segments)
    }

    /// Data of a segment that is taken, at most.
    pub(super) fn longest_taken(&self, tag: Option<Tag>) -> u16 {
        if tag.is_some() { self.mss.max(LEAST_MSS) } else { self.mss }
    }

    /// What the peer must know, with the tag it is to use.
    pub(super) fn opening(&self, tag: Option<Tag>) -> Opening {
        Opening {
            tag,
            mss: self.longest_taken(tag),
            block_segments: self.block_segments,
            cwnd_max: self.cwnd_max,
        }
    }
}
