//! What a [`Snoop`](super::Snoop) does, and how much it keeps.

use crate::filter::Turn;
use crate::hop_window;
use crate::table::Bounds;
use core::num::NonZeroU16;
use hopline_core::Duration;

/// A configuration of Snoop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Which rules.
    pub rules: Rules,
    /// High-water mark: most packets that are kept of a connection. Beyond it new ones are forwarded and not kept; those that close
    /// a gap are, up to twice as many (§3.1.1). [`Config::published`]: 45, 64 KB of full segments (S13).
    pub high_water: NonZeroU16,
    /// Most local retransmissions of a packet between two of the sender. Then it is left to the sender (S3). Default 10.
    pub local_limit: u8,
    /// How much is remembered of connections.
    pub bounds: Bounds,
    /// Most bytes of kept packets and of what is known of each, over all connections; more than one of them may keep. Beyond it
    /// connections are forgotten, the one silent for longest first. Default 256 MiB.
    pub kept_bytes: u64,
    /// Whether packets wait here rather than in a queue that tells nobody what it drops: [`windowed`](super::windowed) heeds it. Default
    /// not.
    pub hop_window: Option<hop_window::Config>,
}

/// By which rules Snoop repairs and hides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rules {
    /// Those of the paper, by duplicate ACKs.
    Classic(Classic),
    /// Those for senders with SACK, RACK, tail loss probes and timestamps.
    Modern(Modern),
}

/// What the paper's rules leave open, and where ns-2's agent reads them otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Classic {
    /// ACKs without data that repeat the last number and count as duplicates (S1). Paper: all of them (§3.1.2: "the same as the highest
    /// cumulative ACK seen so far").
    pub duplicate_acks: DuplicateAcks,
    /// Which unexpected duplicate ACK is taken for a loss (S4); those before it pass. Paper: the first; ns-2: each second one, counted
    /// on from one loss to the next.
    pub dup_ack_threshold: u8,
    /// What a duplicate ACK does that comes when a packet has been sent again already and no echo is left (S3).
    pub repeats: Repeats,
    /// How many duplicate ACKs are taken for the echo of one loss.
    pub expected: Expected,
    /// Of several losses in a window, how the next is found (S7). Paper: by its own duplicates.
    pub next_hole: NextHole,
    /// An ACK below the last one (S2). Paper: absorbed; ns-2: forwarded.
    pub spurious_acks: Passing,
    /// Packets that are marked as retransmitted by the sender (S9): their duplicate ACKs pass.
    pub marks: Marks,
    /// What to do with data of the sender that the mobile host has.
    pub old_data: OldData,
    /// Whether packets are kept that the queue of the last hop has no room for. Paper: yes; ns-2: no, so that the sender learns of
    /// congestion.
    pub overflow: Overflow,
    /// When a packet is sent again without a duplicate ACK.
    pub timer: LocalTimer,
    /// Which packets measure the last hop.
    pub sampling: Sampling,
    /// When what is sent again has its turn. Paper: first; ns-2: last.
    pub turn: Turn,
    /// Without anything from either end for so long, and packets kept, the first is sent again (§4). Paper: 200 ms; ns-2: not.
    pub persist: Option<Duration>,
}

/// ACKs without data that repeat the last number and count as duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DuplicateAcks {
    /// All of them, whatever window they announce.
    SameNumber,
    /// Those that repeat the window too (RFC 5681 §2). Senders of today count no others: one that announces another window tells of no
    /// loss, and is for the sender.
    SameWindow,
}

/// How many duplicate ACKs are absorbed after a local retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// One for each packet sent after the lost one (§3.1.2).
    SentAfter,
    /// As ns-2's agent counts: one less at first, two less when that is used up. Where that is one too few to count, a packet is sent
    /// again with each duplicate, twice at most; where it is fewer still they pass.
    Ns2,
}

/// What a duplicate ACK does that comes when a packet has been sent again already and no echo is left (S3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// The packet is sent again, up to the limit.
    UpToLimit,
    /// It passes; only the timer sends the packet again (ns-2).
    ByTimerAlone,
}

/// How a loss is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repairs {
    /// By what the mobile host says, and by time.
    Inferred,
    /// By a station that asks ([`crate::nack`]), and by nothing else: the machine stands in the host that sends, and behind the station
    /// are networks whose losses are congestion. What it is asked for is hidden for two round trips.
    Told,
}

/// How the next hole is found when one has been repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextHole {
    /// By a duplicate ACK. Where nothing is under way behind it any more, none comes until the sender sends more.
    ByDuplicate,
    /// By that, or as soon as the packet where the repair's ACK stops has been on its way for longer than the local timer waits.
    ByAge,
}

/// Which packets measure the last hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// One of a window, and none of a window in which something was sent again (§3.1.2).
    OncePerWindow,
    /// The last one that a new ACK lets go of, from when it was sent last (ns-2).
    EachAck,
}

/// Packets that are marked as retransmitted by the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// Those out of sequence that are not kept (§3.1.1): one that closes a gap, and a new one beyond a gap, which the flowchart has
    /// "marked as cong. loss".
    Uncached,
    /// The first kind of these alone. A new packet beyond a gap is no retransmission.
    UncachedRetransmissions,
    /// All that come again, kept or not (ns-2). After a go-back-N time-out of the sender nothing of its window is repaired.
    Retransmissions,
}

/// Whether something goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// It does.
    Forwarded,
    /// It goes no further.
    Absorbed,
}

/// What becomes of a packet of the sender that the mobile host has acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldData {
    /// It is absorbed, and acknowledged in the name of the mobile host, whose ACK was probably lost (§3.1.1), while something has come
    /// from the mobile host within 100 s; then it is forwarded. The paper knows no bound. Keep-alives of the fixed host (RFC 9293
    /// §3.8.4) are old data too, and without one they would be answered for ever for a mobile host that is gone.
    Acknowledged,
    /// The same, but for 2 s.
    AcknowledgedWhileAlive,
    /// It is forwarded (ns-2).
    Forwarded,
}

/// Time after the last packet of a mobile host for which the paper's rule answers for it: so long at least a sender goes on asking whose
/// ACKs are lost (R2 of RFC 1122 §4.2.3.5).
pub(super) const ANSWERED: Duration = Duration::from_secs(100);
/// Time after its last packet for which a mobile host is taken to be there: longer than a sender waits for an ACK that was lost.
pub(super) const ALIVE: Duration = Duration::from_secs(2);

/// What becomes of packets that find the queue of the last hop full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// They are kept, and sent again as others.
    Kept,
    /// They are not: their loss is congestion, and the sender's business.
    LeftToSender,
}

/// How long a local retransmission is waited for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LocalTimer {
    /// `factor` times the smoothed round trip of the last hop, at least `min`; from the first local retransmission of a packet on
    /// (§4). Paper: 2 and 40 ms, samples of weight 0.25, 100 ms before the first (S5, S6).
    Smoothed {
        /// How many round trips.
        factor: f64,
        /// At least so long.
        min: Duration,
        /// Weight of a sample.
        gain: f64,
        /// Round trip before the first sample.
        initial: Duration,
    },
    /// The smoothed round trip and four times its deviation, at least `min`; whenever packets are kept (ns-2: 100 ms; samples of weight
    /// 7/8 in the round trip, its gain of 1/8 being applied the other way round, and 1/8 in the deviation; 100 and 250 ms before the
    /// first).
    Deviation {
        /// At least so long.
        min: Duration,
        /// Weight of a sample in the round trip, and in its deviation.
        gains: [f64; 2],
        /// Round trip before the first sample.
        initial: Duration,
        /// Deviation before the first sample.
        initial_deviation: Duration,
    },
}

/// Parameters of the rules for today's senders.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Modern {
    /// How a loss is found. Default by what the mobile host says, and by time.
    pub repairs: Repairs,
    /// With [`Repairs::Told`]: whether connections are announced to stations, which ask no other hosts
    /// ([`Asks::Announced`](crate::nack::Asks)). Default not.
    pub announces: bool,
    /// Least time in which a local retransmission, or the tail of a window, is waited for. Default 5 ms.
    pub min_timer: Duration,
    /// The same before the first sample of the last hop. Default 100 ms.
    pub initial_timer: Duration,
    /// The rules for connections that have not agreed on SACK: without it nothing tells the holes of a window. Default the paper's, but
    /// for ACKs with another window, which are no duplicates, new packets beyond a gap, which are not marked, what the queue refuses, which
    /// is left to the sender, the next hole, which is found by its age as well, and old data, which are acknowledged only for a host that
    /// is there.
    pub without_sack: Classic,
}

impl Rules {
    /// The rules for connections without SACK, where it makes a difference; otherwise those for all.
    pub(super) const fn classic(&self) -> &Classic {
        match self {
            Self::Classic(rules) => rules,
            Self::Modern(rules) => &rules.without_sack,
        }
    }
}

impl Classic {
    /// The paper.
    pub const PUBLISHED: Self = Self {
        duplicate_acks: DuplicateAcks::SameNumber,
        dup_ack_threshold: 1,
        repeats: Repeats::UpToLimit,
        next_hole: NextHole::ByDuplicate,
        expected: Expected::SentAfter,
        spurious_acks: Passing::Absorbed,
        marks: Marks::Uncached,
        old_data: OldData::Acknowledged,
        overflow: Overflow::Kept,
        timer: LocalTimer::Smoothed {
            factor: 2.0,
            min: Duration::from_millis(40),
            gain: 0.25,
            initial: Duration::from_millis(100),
        },
        sampling: Sampling::OncePerWindow,
        turn: Turn::First,
        persist: Some(Duration::from_millis(200)),
    };

    /// ns-2.35's agent (`tcp/snoop.cc`).
    pub const NS2: Self = Self {
        duplicate_acks: DuplicateAcks::SameNumber,
        dup_ack_threshold: 2,
        repeats: Repeats::ByTimerAlone,
        next_hole: NextHole::ByDuplicate,
        expected: Expected::Ns2,
        spurious_acks: Passing::Forwarded,
        marks: Marks::Retransmissions,
        old_data: OldData::Forwarded,
        overflow: Overflow::LeftToSender,
        timer: LocalTimer::Deviation {
            min: Duration::from_millis(100),
            gains: [0.875, 0.125],
            initial: Duration::from_millis(100),
            initial_deviation: Duration::from_millis(250),
        },
        sampling: Sampling::EachAck,
        turn: Turn::Last,
        persist: None,
    };
}

impl Modern {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        repairs: Repairs::Inferred,
        announces: false,
        min_timer: Duration::from_millis(5),
        initial_timer: Duration::from_millis(100),
        without_sack: Classic {
            duplicate_acks: DuplicateAcks::SameWindow,
            marks: Marks::UncachedRetransmissions,
            old_data: OldData::AcknowledgedWhileAlive,
            overflow: Overflow::LeftToSender,
            next_hole: NextHole::ByAge,
            ..Classic::PUBLISHED
        },
    };
}

impl Config {
    /// The paper.
    #[must_use]
    pub fn published() -> Self {
        Self::with(Rules::Classic(Classic::PUBLISHED), const { NonZeroU16::new(45).expect("not zero") })
    }

    /// ns-2.35's agent: a ring of 100 packets.
    #[must_use]
    pub fn ns2() -> Self {
        Self::with(Rules::Classic(Classic::NS2), const { NonZeroU16::new(100).expect("not zero") })
    }

    /// In a host that sends over a last hop with [`crate::nack`] behind it.
    #[must_use]
    pub fn told() -> Self {
        let rules = Rules::Modern(Modern { repairs: Repairs::Told, ..Modern::DEFAULT });
        Self { rules, ..Self::modern() }
    }

    /// Returns the configuration of a sending host that announces itself to stations.
    #[must_use]
    pub fn announcing() -> Self {
        let rules = Rules::Modern(Modern { repairs: Repairs::Told, announces: true, ..Modern::DEFAULT });
        Self { rules, ..Self::modern() }
    }

    /// For today's senders: room for the windows of fast paths.
    #[must_use]
    pub fn modern() -> Self {
        Self::with(Rules::Modern(Modern::DEFAULT), const { NonZeroU16::new(2000).expect("not zero") })
    }

    fn with(rules: Rules, high_water: NonZeroU16) -> Self {
        Self {
            rules,
            high_water,
            local_limit: 10,
            bounds: Bounds::default(),
            kept_bytes: 256 << 20,
            hop_window: None,
        }
    }
}
