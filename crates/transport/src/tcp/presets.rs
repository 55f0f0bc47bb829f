//! Presets: a present-day host, ns-2 by period, and QualNet.
//!
//! The ns-2 values are those of `ns-default.tcl` of ns-2.35 and of its remarks about when a default changed.

use super::config::{
    AckPolicy, ClosedWindow, Config, DsackReports, EcnMode, Estimator, Growth, GrowthCondition, IdleRestart,
    InitialSsthresh, InitialWindow, LimitedTransmit, LossDetection, MissingTimestamp, Nagle, OptionOffer,
    RecoveryTimeout, Reduction, RepeatedTimeout, RtoConfig, RtoFloor, TimeWaitReset, TimestampEcho,
    WindowProbe,
};
use super::congestion::{
    BbrConfig, CongestionControl, CubicConfig, HyStartConfig, MarkReduction, NewRenoConfig, PragueConfig,
    RenoConfig, SackConfig, SackRules, SlowStart, Variant,
};
use super::feedback::RouteFeedback;
use super::frto::Frto;
use super::rack::{RackConfig, RackRttSource};
use super::receiver_rules::ReceiverRules;
use super::spurious::{SpuriousDetection, SpuriousDetector};

use crate::pacing::{self, Pacing};
use hopline_core::Duration;

impl Config {
    /// Returns a present-day host, close to Linux in its numbers and to the RFCs in its rules.
    #[must_use]
    pub const fn modern() -> Self {
        Self {
            mss: 1460,
            variant: Variant::Sack(SackConfig::RFC6675),
            loss_detection: LossDetection::DupAcks,
            congestion_control: CongestionControl::Reno,
            spurious: SpuriousDetection::NONE,
            initial_window: InitialWindow::Rfc6928,
            initial_ssthresh: InitialSsthresh::Unlimited,
            window_clamp: None,
            growth: Growth::Bytes { limit: 2 },
            slow_start: SlowStart::Rfc5681,
            growth_condition: GrowthCondition::WindowFull,
            reduction: Reduction::FlightSize,
            mark_reduction: MarkReduction::AtOnce,
            repeated_timeout: RepeatedTimeout::Keep,
            recovery_timeout: RecoveryTimeout::Reduce,
            window_probe: WindowProbe::NextByte,
            time_wait_reset: TimeWaitReset::Ends,
            closed_window: ClosedWindow::TimeOut,
            dup_ack_threshold: 3,
            limited_transmit: LimitedTransmit::NewData,
            idle_restart: IdleRestart::InitialWindow,
            nagle: Nagle::On,
            quick_acks: 0,
            tolerated_lost_syns: 0,
            missing_timestamp: MissingTimestamp::Dropped,
            ack_policy: AckPolicy::Delayed { timer: Duration::from_millis(40) },
            ack_every: 2,
            rto: RtoConfig {
                initial: Duration::from_secs(1),
                min: Duration::from_millis(200),
                floor: RtoFloor::Rto,
                max: Duration::from_secs(60),
                granularity: Duration::from_millis(1),
                backoff_limit: None,
                reset_above: None,
                estimator: Estimator::Exact,
            },
            pacing: Pacing::None,
            door: None,
            feedback: RouteFeedback::None,
            timestamps: OptionOffer::Offered,
            timestamp_echo: TimestampEcho::Earliest,
            dsack: DsackReports::Off,
            ecn: EcnMode::Never,
            window_scale: OptionOffer::Offered,
            receive_buffer: 4 << 20,
            send_buffer: None,
            receiver_rules: ReceiverRules::Rfc9293,
            time_wait: Duration::from_secs(60),
            syn_retries: Some(6),
            data_retries: Some(15),
            challenge_ack_interval: Duration::from_millis(500),
        }
    }

    /// Returns loss recovery and congestion control of a present-day Linux host, as far as they are implemented:
    /// [`Self::modern`] with CUBIC, proportional rate reduction, ECN where the peer asks for it, [`Self::with_linux_rto`]
    /// and [`Self::with_linux_recovery`].
    #[must_use]
    pub const fn linux() -> Self {
        let mut config = Self::modern().with_cubic();
        config.congestion_control = CongestionControl::Cubic(CubicConfig::LINUX);
        config.variant = Variant::Sack(SackConfig::RFC9937);
        config.ecn = EcnMode::Accept;
        config.recovery_timeout = RecoveryTimeout::Keep;
        config.with_linux_rto().with_linux_recovery()
    }

    /// As `self`, with what else a Linux host does: the window grows by delivered bytes while it was in use in the last round
    /// trip, a loss cuts the window, sixteen immediate ACKs, Minshall's Nagle, a first lost SYN forgiven, segments without
    /// timestamps accepted, window probes without data, RTO up to 120 s, [HyStart](HyStartConfig::LINUX), a gradual reduction for
    /// ECN marks, RACK's round trip of the last segment in the stream, and the [receiver](ReceiverRules::Linux). Scripts of
    /// packetdrill are run with it. [`Self::linux`] is without it: its agreement with the kernel was measured so.
    #[must_use]
    pub const fn with_linux_host(mut self) -> Self {
        self.growth = Growth::Delivered;
        self.growth_condition = GrowthCondition::WindowUsed;
        self.reduction = Reduction::Window;
        self.nagle = Nagle::Minshall;
        self.quick_acks = 16;
        self.tolerated_lost_syns = 1;
        self.missing_timestamp = MissingTimestamp::Accepted;
        self.window_probe = WindowProbe::OldSequence;
        self.slow_start = SlowStart::HyStart(HyStartConfig::LINUX);
        self.mark_reduction = MarkReduction::Proportional;
        self.receiver_rules = ReceiverRules::Linux;
        if let LossDetection::Rack(mut rack) = self.loss_detection {
            rack.rtt_source = RackRttSource::LastInStream;
            self.loss_detection = LossDetection::Rack(rack);
        }
        self.rto.max = Duration::from_secs(120);
        self
    }

    /// ns-2.35 (2011): `Agent/TCP/Newreno` with the defaults of `ns-default.tcl` and a plain sink, segments of 1460 bytes.
    ///
    /// Choose the agent with [`Self::variant`] and the `NS2` constants of the strategies, the sink with
    /// [`Self::ack_policy`] (`DelAck`: 100 ms) and `window_` with [`Self::window_clamp`] (20).
    #[must_use]
    pub const fn ns2_235() -> Self {
        Self {
            mss: 1460,
            variant: Variant::NewReno(NewRenoConfig::NS2),
            loss_detection: LossDetection::DupAcks,
            congestion_control: CongestionControl::Reno,
            spurious: SpuriousDetection::NONE,
            initial_window: InitialWindow::Segments(2),
            initial_ssthresh: InitialSsthresh::WindowClamp,
            window_clamp: Some(20),
            growth: Growth::PerAck,
            slow_start: SlowStart::Rfc5681,
            growth_condition: GrowthCondition::Always,
            reduction: Reduction::Window,
            mark_reduction: MarkReduction::AtOnce,
            repeated_timeout: RepeatedTimeout::Reduce,
            recovery_timeout: RecoveryTimeout::Reduce,
            window_probe: WindowProbe::NextByte,
            time_wait_reset: TimeWaitReset::Ends,
            closed_window: ClosedWindow::TimeOut,
            dup_ack_threshold: 3,
            limited_transmit: LimitedTransmit::NextData,
            idle_restart: IdleRestart::OneSegment,
            nagle: Nagle::Off,
            quick_acks: 0,
            tolerated_lost_syns: 0,
            missing_timestamp: MissingTimestamp::Dropped,
            ack_policy: AckPolicy::EverySegment,
            ack_every: 2,
            rto: RtoConfig {
                initial: Duration::from_secs(3),
                min: Duration::from_millis(200),
                floor: RtoFloor::Rto,
                max: Duration::from_secs(60),
                granularity: Duration::from_millis(10),
                backoff_limit: None,
                reset_above: Some(8),
                estimator: Estimator::Ticks { phase: Duration::ZERO },
            },
            pacing: Pacing::None,
            door: None,
            feedback: RouteFeedback::None,
            timestamps: OptionOffer::NotOffered,
            timestamp_echo: TimestampEcho::Earliest,
            dsack: DsackReports::Off,
            ecn: EcnMode::Never,
            window_scale: OptionOffer::Offered,
            // ns-2 knows no receive window.
            receive_buffer: 1 << 30,
            send_buffer: None,
            receiver_rules: ReceiverRules::Rfc9293,
            time_wait: Duration::ZERO,
            syn_retries: None,
            data_retries: None,
            challenge_ack_interval: Duration::from_millis(500),
        }
    }

    /// ns-2.30 (2006), as the TPA study used it: as [`Self::ns2_235`], but the largest RTO is still 100 000 s
    /// (the default became 60 s on 2007-03-28).
    #[must_use]
    pub const fn ns2_2006() -> Self {
        let mut config = Self::ns2_235();
        config.rto.max = Duration::from_secs(100_000);
        config
    }

    /// ns-2.1b7a (2000–01), as the TCP-DOOR study used it: tick 100 ms, initial RTO 6 s, no least RTO but two ticks,
    /// back-off at most 64, initial window 1, no limited transmit, NewReno as of RFC 2582 without window deflation, the latest
    /// timestamp echoed.
    #[must_use]
    pub const fn ns2_2001() -> Self {
        let mut config = Self::ns2_235();
        config.variant = Variant::NewReno(NewRenoConfig::NS2_2001);
        config.initial_window = InitialWindow::Segments(1);
        config.reduction = Reduction::WholeWindow;
        config.limited_transmit = LimitedTransmit::Off;
        config.timestamp_echo = TimestampEcho::Latest;
        config.rto.initial = Duration::from_secs(6);
        config.rto.min = Duration::from_millis(200);
        config.rto.max = Duration::from_secs(100_000);
        config.rto.granularity = Duration::from_millis(100);
        config.rto.backoff_limit = Some(64);
        config
    }

    /// QualNet around 2003, as the Neighborhood RED study used it: NewReno of the RFCs with the clock and the numbers of 4.4BSD
    /// (a tick of 500 ms, RTO at least 1 s and first 3 s, ACKs delayed by 200 ms, a first window of one, probes in place of time-outs while the window is closed), segments of 512 bytes
    /// and buffers of 16,384: a window of 32. No timestamps, no limited transmit. What has no number in 4.4BSD is as in
    /// [`Self::modern`].
    #[must_use]
    pub const fn qualnet() -> Self {
        let mut config = Self::modern().with_newreno();
        config.mss = 512;
        config.window_clamp = Some(32);
        config.initial_window = InitialWindow::Segments(1);
        config.limited_transmit = LimitedTransmit::Off;
        config.timestamps = OptionOffer::NotOffered;
        config.ack_policy = AckPolicy::Delayed { timer: Duration::from_millis(200) };
        config.rto.initial = Duration::from_secs(3);
        config.rto.min = Duration::from_secs(1);
        config.rto.granularity = Duration::from_millis(500);
        config
    }

    /// BSD/OS 2.0 around 1995, as the Snoop study used it: Reno with the clock of 4.4BSD (a tick of 500 ms, RTO at least 1 s and
    /// first 3 s, ACKs delayed by 200 ms, a first window of one) and windows of at most 64 KB. Otherwise as [`Self::qualnet`].
    #[must_use]
    pub const fn bsd() -> Self {
        let mut config = Self::qualnet().with_reno();
        config.mss = 1460;
        config.window_clamp = Some(44);
        config.closed_window = ClosedWindow::Persist;
        config.rto.estimator = Estimator::Ticks { phase: Duration::ZERO };
        config
    }

    /// As `self`, with time-based loss detection (RACK-TLP). Sets SACK as of RFC 6675, and closed windows over which data
    /// time out.
    #[must_use]
    pub const fn with_rack(mut self) -> Self {
        self.variant = match self.variant {
            Variant::Sack(SackConfig { rules: SackRules::Rfc6675, .. }) => self.variant,
            _ => Variant::Sack(SackConfig::RFC6675),
        };
        self.loss_detection = LossDetection::Rack(RackConfig::RFC8985);
        self.closed_window = ClosedWindow::TimeOut;
        self
    }

    /// As `self`, with loss detection and spurious loss detection of Linux: RACK-TLP, F-RTO after every time-out, Eifel
    /// with timestamps, and D-SACK in both directions.
    #[must_use]
    pub const fn with_linux_recovery(mut self) -> Self {
        self = self.with_rack();
        self.dsack = DsackReports::On;
        self.timestamps = OptionOffer::Offered;
        self.spurious = SpuriousDetection {
            frto: Frto::EveryTimeout,
            eifel: SpuriousDetector::On,
            dsack: SpuriousDetector::On,
        };
        self
    }

    /// As `self`, with the retransmission timeout of Linux: the least value applies to the term above the smoothed
    /// round-trip time.
    #[must_use]
    pub const fn with_linux_rto(mut self) -> Self {
        self.rto.floor = RtoFloor::Variance;
        self
    }

    /// As `self`, with plain Reno, as this preset reads it.
    #[must_use]
    pub const fn with_reno(mut self) -> Self {
        self.loss_detection = LossDetection::DupAcks;
        self.spurious.dsack = SpuriousDetector::Off;
        self.variant = Variant::Reno(match self.reduction {
            Reduction::FlightSize => RenoConfig::RFC5681,
            Reduction::Window | Reduction::WholeWindow => RenoConfig::NS2,
        });
        self
    }

    /// As `self`, with NewReno, as this preset reads it.
    #[must_use]
    pub const fn with_newreno(mut self) -> Self {
        self.loss_detection = LossDetection::DupAcks;
        self.spurious.dsack = SpuriousDetector::Off;
        self.variant = match self.variant {
            Variant::NewReno(_) => self.variant,
            Variant::Reno(_) | Variant::Sack(_) => Variant::NewReno(match self.reduction {
                Reduction::FlightSize => NewRenoConfig::RFC6582,
                Reduction::Window => NewRenoConfig::NS2,
                Reduction::WholeWindow => NewRenoConfig::NS2_2001,
            }),
        };
        self
    }

    /// As `self`, with SACK, as this preset reads it.
    #[must_use]
    pub const fn with_sack(mut self) -> Self {
        self.variant = match self.variant {
            Variant::Sack(_) => self.variant,
            Variant::Reno(_) | Variant::NewReno(_) => Variant::Sack(match self.reduction {
                Reduction::FlightSize => SackConfig::RFC6675,
                Reduction::Window | Reduction::WholeWindow => SackConfig::NS2,
            }),
        };
        self
    }

    /// As `self`, with CUBIC (RFC 9438).
    #[must_use]
    pub const fn with_cubic(mut self) -> Self {
        self.congestion_control = CongestionControl::Cubic(CubicConfig::RFC9438);
        self
    }

    /// As `self`, with BBR. Sets SACK and RACK, and switches ECN off.
    #[must_use]
    pub const fn with_bbr(mut self, bbr: BbrConfig) -> Self {
        if let LossDetection::DupAcks = self.loss_detection {
            self = self.with_rack();
        }
        self.congestion_control = CongestionControl::Bbr(bbr);
        self.ecn = EcnMode::Never;
        self
    }

    /// As `self`, with Prague. Sets SACK, RACK and accurate ECN.
    #[must_use]
    pub const fn with_prague(mut self, prague: PragueConfig) -> Self {
        if let LossDetection::DupAcks = self.loss_detection {
            self = self.with_rack();
        }
        self.congestion_control = CongestionControl::Prague(prague);
        self.ecn = EcnMode::AccEcn;
        self.dsack = DsackReports::On; // RFC 9768 §3.1.1
        self
    }

    /// As `self`, with the pacing of TCP-AP: timestamps for the round-trip times, no window clamp, and no back-off of the
    /// retransmission timer. Its authors built it on NewReno.
    #[must_use]
    pub const fn with_adaptive_pacing(mut self, pacing: pacing::Config) -> Self {
        self.pacing = Pacing::Adaptive(pacing);
        self.timestamps = OptionOffer::Offered;
        self.window_clamp = None;
        self.rto.backoff_limit = Some(1);
        self
    }
}
