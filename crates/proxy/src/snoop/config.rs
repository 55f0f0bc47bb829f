//! Rules and limits of a [`Snoop`](super::Snoop).

use crate::hop_window;
use crate::pep::QueuePosition;
use crate::table::TableLimits;
use core::num::NonZeroU16;
use hopline_core::Duration;

/// A configuration of Snoop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Rules of repair and suppression.
    pub rules: Rules,
    /// High-water mark: maximum number of cached packets of a connection. Beyond it new packets are forwarded
    /// uncached; packets that close a gap are cached, up to twice as many (§3.1.1). [`Config::published`]:
    /// 45, 64 KB of full segments (S13).
    pub high_water: NonZeroU16,
    /// Maximum number of local retransmissions of a packet between two of the sender. Then it is left to the
    /// sender (S3). Default 10.
    pub max_local_retransmissions: u8,
    /// Limits of the connection table.
    pub limits: TableLimits,
    /// Maximum size of all cached packets and their state, over all connections, bytes. Beyond it connections
    /// are evicted, the longest silent first. Default 256 MiB.
    pub max_cached_bytes: u64,
    /// Window on the last hop, for packets to wait here instead of in a queue that does not report its drops;
    /// used by [`windowed`](super::windowed). Default none.
    pub hop_window: Option<hop_window::Config>,
}

/// Rules by which Snoop repairs losses and suppresses ACKs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rules {
    /// Rules of the paper, based on duplicate ACKs.
    Classic(ClassicRules),
    /// Rules for senders with SACK, RACK, tail loss probes and timestamps.
    Modern(ModernRules),
}

/// Choices that the paper's rules leave open, or that ns-2's agent makes differently.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassicRules {
    /// Pure ACKs with the last number that count as duplicates (S1). Paper: all of them (§3.1.2: "the same as
    /// the highest cumulative ACK seen so far").
    pub duplicate_acks: DuplicateAcks,
    /// Number of unexpected duplicate ACKs that indicate a loss (S4); earlier ones pass. Paper: 1; ns-2: 2,
    /// counted on from one loss to the next.
    pub dup_ack_threshold: u8,
    /// Handling of a duplicate ACK after a local retransmission, when no more are expected (S3).
    pub repeated_duplicates: RepeatedDuplicates,
    /// Number of duplicate ACKs expected as the echo of one loss.
    pub expected_duplicates: ExpectedDuplicates,
    /// Detection of the next of several losses in a window (S7). Paper: by its own duplicate ACKs.
    pub next_hole: NextHole,
    /// Handling of an ACK below the last one (S2). Paper: absorbed; ns-2: forwarded.
    pub spurious_acks: PassPolicy,
    /// Packets marked as retransmitted by the sender (S9): their duplicate ACKs pass.
    pub sender_retransmissions: SenderRetransmissionMarks,
    /// Handling of data that the mobile host has acknowledged.
    pub old_data: OldData,
    /// Caching of packets that the queue of the last hop has no room for. Paper: cached; ns-2: not cached, so
    /// that the sender learns of congestion.
    pub overflow: QueueDropHandling,
    /// Timer of retransmissions without a duplicate ACK.
    pub timer: LocalTimer,
    /// Packets that sample the round trip of the last hop.
    pub sampling: Sampling,
    /// Turn of local retransmissions. Paper: first; ns-2: last.
    pub queue_position: QueuePosition,
    /// Silence of both ends after which the first cached packet is retransmitted (§4). Paper: 200 ms; ns-2:
    /// never.
    pub persist_timeout: Option<Duration>,
}

/// Pure ACKs with the last number that count as duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DuplicateAcks {
    /// All of them, whatever their window.
    SameNumber,
    /// Those with the last window too (RFC 5681 §2). Today's senders count no others: an ACK with another
    /// window indicates no loss, and is for the sender.
    SameWindow,
}

/// Number of duplicate ACKs absorbed after a local retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedDuplicates {
    /// One for each packet sent after the lost one (§3.1.2).
    SentAfter,
    /// As ns-2's agent counts: one less at first, two less once that is used up. If the count is below zero
    /// by one, a packet is retransmitted with each duplicate, twice at most; if it is lower, they pass.
    Ns2,
}

/// Handling of a duplicate ACK after a local retransmission, when no more are expected (S3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatedDuplicates {
    /// The packet is retransmitted, up to the limit.
    UpToLimit,
    /// The ACK passes; only the timer retransmits the packet (ns-2).
    TimerOnly,
}

/// Detection of losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossDetection {
    /// By ACKs of the mobile host, and by time.
    Inferred,
    /// By negative acknowledgments of a base station only ([`crate::nack`]). Snoop runs on the sending host,
    /// and behind the base station are networks with congestive losses. Duplicate ACKs for requested data are
    /// suppressed for two round trips.
    ByNack,
}

/// Detection of the next hole after a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextHole {
    /// By a duplicate ACK. If nothing is in flight behind the hole, none comes until the sender sends more.
    ByDuplicate,
    /// By that, or once the packet at which the repair's ACK stops is older than the local timeout.
    ByAge,
}

/// Packets that sample the round trip of the last hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// One of a window; none of a window with a retransmission (§3.1.2).
    OncePerWindow,
    /// The last one that a new ACK covers, from its last transmission (ns-2).
    EachAck,
}

/// Packets that are marked as retransmitted by the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderRetransmissionMarks {
    /// Uncached packets out of sequence (§3.1.1): those that close a gap, and new ones beyond a gap, which
    /// the flowchart has "marked as cong. loss".
    Uncached,
    /// The former of these only. A new packet beyond a gap is no retransmission.
    UncachedRetransmissions,
    /// All repeated packets, cached or not (ns-2). After a go-back-N timeout of the sender nothing of its
    /// window is repaired.
    Retransmissions,
}

/// Handling of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassPolicy {
    /// It is forwarded.
    Forward,
    /// It is dropped.
    Absorb,
}

/// Handling of data that the mobile host has acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldData {
    /// They are absorbed, and acknowledged on behalf of the mobile host, as its ACK was probably lost
    /// (§3.1.1). After 100 s without a packet of the mobile host they are forwarded. The paper has no limit.
    /// Keep-alives of the fixed host (RFC 9293 §3.8.4) are old data too; without a limit they would be
    /// answered for ever on behalf of a mobile host that is gone.
    Acknowledged,
    /// As `Acknowledged`, for 2 s.
    AcknowledgedWhileAlive,
    /// They are forwarded (ns-2).
    Forwarded,
}

/// Silence of a mobile host up to which the paper's rule answers for it: the minimum time for which a sender
/// without ACKs retransmits (R2 of RFC 1122 §4.2.3.5).
pub(super) const MAX_ANSWERED_SILENCE: Duration = Duration::from_secs(100);
/// Silence of a mobile host up to which it counts as present: longer than a sender waits for a lost ACK.
pub(super) const MAX_ALIVE_SILENCE: Duration = Duration::from_secs(2);

/// Handling of packets that the full queue of the last hop drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueDropHandling {
    /// They are cached, and retransmitted like other packets.
    Cached,
    /// They are not cached: the loss is congestion, and left to the sender.
    LeftToSender,
}

/// Local retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LocalTimer {
    /// `factor` times the smoothed round trip of the last hop, at least `min`; it runs from the first local
    /// retransmission of a packet on (§4). Paper: 2 and 40 ms, samples of weight 0.25, 100 ms before the
    /// first (S5, S6).
    Smoothed {
        /// Number of round trips.
        factor: f64,
        /// Minimum timeout.
        min: Duration,
        /// Weight of a sample.
        gain: f64,
        /// Round trip before the first sample.
        initial: Duration,
    },
    /// The smoothed round trip and four times its deviation, at least `min`; it runs whenever packets are
    /// cached. ns-2: 100 ms; samples of weight 7/8 in the round trip (its gain of 1/8 is applied the other
    /// way round), and 1/8 in the deviation; 100 and 250 ms before the first.
    Deviation {
        /// Minimum timeout.
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
pub struct ModernRules {
    /// Detection of losses. Default by ACKs of the mobile host, and by time.
    pub loss_detection: LossDetection,
    /// With [`LossDetection::ByNack`]: `true` if connections are announced to base stations that only send requests
    /// to hosts that announce ([`NackPolicy`](crate::nack::NackPolicy)). Default `false`.
    pub announces_cache: bool,
    /// Minimum timeout of a local retransmission, or of the tail of a window. Default 5 ms.
    pub min_timer: Duration,
    /// Timeout before the first sample of the last hop. Default 100 ms.
    pub initial_timer: Duration,
    /// Rules for connections without SACK, in which the holes of a window are not visible. Default the
    /// paper's, with these differences: ACKs with another window are no duplicates; new packets beyond a gap
    /// are not marked; packets that the queue refuses are left to the sender; the next hole is also detected
    /// by age; old data are acknowledged only for a host that is present.
    pub without_sack: ClassicRules,
}

impl Rules {
    /// Returns the rules for connections without SACK, where these differ; otherwise those for all.
    pub(super) const fn classic(&self) -> &ClassicRules {
        match self {
            Self::Classic(rules) => rules,
            Self::Modern(rules) => &rules.without_sack,
        }
    }
}

impl ClassicRules {
    /// Parameters of the paper.
    pub const PUBLISHED: Self = Self {
        duplicate_acks: DuplicateAcks::SameNumber,
        dup_ack_threshold: 1,
        repeated_duplicates: RepeatedDuplicates::UpToLimit,
        next_hole: NextHole::ByDuplicate,
        expected_duplicates: ExpectedDuplicates::SentAfter,
        spurious_acks: PassPolicy::Absorb,
        sender_retransmissions: SenderRetransmissionMarks::Uncached,
        old_data: OldData::Acknowledged,
        overflow: QueueDropHandling::Cached,
        timer: LocalTimer::Smoothed {
            factor: 2.0,
            min: Duration::from_millis(40),
            gain: 0.25,
            initial: Duration::from_millis(100),
        },
        sampling: Sampling::OncePerWindow,
        queue_position: QueuePosition::Front,
        persist_timeout: Some(Duration::from_millis(200)),
    };

    /// Parameters of ns-2.35's agent (`tcp/snoop.cc`).
    pub const NS2: Self = Self {
        duplicate_acks: DuplicateAcks::SameNumber,
        dup_ack_threshold: 2,
        repeated_duplicates: RepeatedDuplicates::TimerOnly,
        next_hole: NextHole::ByDuplicate,
        expected_duplicates: ExpectedDuplicates::Ns2,
        spurious_acks: PassPolicy::Forward,
        sender_retransmissions: SenderRetransmissionMarks::Retransmissions,
        old_data: OldData::Forwarded,
        overflow: QueueDropHandling::LeftToSender,
        timer: LocalTimer::Deviation {
            min: Duration::from_millis(100),
            gains: [0.875, 0.125],
            initial: Duration::from_millis(100),
            initial_deviation: Duration::from_millis(250),
        },
        sampling: Sampling::EachAck,
        queue_position: QueuePosition::Back,
        persist_timeout: None,
    };
}

impl ModernRules {
    /// Default parameters.
    pub const DEFAULT: Self = Self {
        loss_detection: LossDetection::Inferred,
        announces_cache: false,
        min_timer: Duration::from_millis(5),
        initial_timer: Duration::from_millis(100),
        without_sack: ClassicRules {
            duplicate_acks: DuplicateAcks::SameWindow,
            sender_retransmissions: SenderRetransmissionMarks::UncachedRetransmissions,
            old_data: OldData::AcknowledgedWhileAlive,
            overflow: QueueDropHandling::LeftToSender,
            next_hole: NextHole::ByAge,
            ..ClassicRules::PUBLISHED
        },
    };
}

impl Config {
    /// Returns the configuration of the paper.
    #[must_use]
    pub const fn published() -> Self {
        Self::with_rules(
            Rules::Classic(ClassicRules::PUBLISHED),
            const { NonZeroU16::new(45).expect("not zero") },
        )
    }

    /// Returns the configuration of ns-2.35's agent: a ring of 100 packets.
    #[must_use]
    pub const fn ns2() -> Self {
        Self::with_rules(Rules::Classic(ClassicRules::NS2), const { NonZeroU16::new(100).expect("not zero") })
    }

    /// Returns the configuration of a sending host that is connected to a base station with [`crate::nack`].
    #[must_use]
    pub fn nack_host() -> Self {
        let rules =
            Rules::Modern(ModernRules { loss_detection: LossDetection::ByNack, ..ModernRules::DEFAULT });
        Self { rules, ..Self::modern() }
    }

    /// Returns the configuration of a sending host that announces itself to base stations.
    #[must_use]
    pub fn announcing_host() -> Self {
        let rules = Rules::Modern(ModernRules {
            loss_detection: LossDetection::ByNack,
            announces_cache: true,
            ..ModernRules::DEFAULT
        });
        Self { rules, ..Self::modern() }
    }

    /// Returns the configuration for today's senders, with room for the windows of fast paths.
    #[must_use]
    pub const fn modern() -> Self {
        Self::with_rules(
            Rules::Modern(ModernRules::DEFAULT),
            const { NonZeroU16::new(2000).expect("not zero") },
        )
    }

    const fn with_rules(rules: Rules, high_water: NonZeroU16) -> Self {
        Self {
            rules,
            high_water,
            max_local_retransmissions: 10,
            limits: TableLimits::DEFAULT,
            max_cached_bytes: 256 << 20,
            hop_window: None,
        }
    }
}
