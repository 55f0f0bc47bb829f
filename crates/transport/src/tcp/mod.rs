//! TCP (RFC 9293) as a sans-I/O state machine.
//!
//! [`Endpoint`] is one end of one connection. It sends and receives [`Segment`](hopline_wire::tcp::Segment)s, generic
//! over the payload: a length in the simulator, real bytes on Linux. [`Config`] has a field for every choice that the
//! RFCs leave open, and for every difference of ns-2. Start from [`Config::modern`] or one of the ns-2 presets.
//!
//! | file | idea |
//! |---|---|
//! | `config`, `presets` | parameters, and their values by period |
//! | `timer`, `stats`, `info` | timers, counters, a snapshot in the units of `TCP_INFO` |
//! | `endpoint` | the endpoint: application calls and getters |
//! | `input` | segment arrives (RFC 9293 §3.10.7) |
//! | `acknowledge` | the ACK field: window, round trip, congestion control |
//! | `receive` | the data: reassembly, ACK policy, window announcements |
//! | `sack_option` | the SACK option of an acknowledgment |
//! | `output` | choice of the next segment |
//! | `socket_options`, `activity`, `socket_calls` | corking, records and user timeout; times of being busy and limited; calls for both |
//! | `window_usage`, `quick_ack` | use of the window over a round trip, immediate ACKs at the start |
//! | `timeouts` | expiry of timers |
//! | `host_limits` | calls for a host stack: path MTU, unread pieces |
//! | `ecn`, `acc_ecn` | explicit congestion notification (RFC 3168), and its accurate feedback (RFC 9768) |
//! | `reassembly`, `scoreboard`, `rto` | the data structures |
//! | `rack`, `tlp`, `sent_segments` | RACK-TLP: time-based loss detection (RFC 8985), and its records; `loss_detection`: its use
//! by an endpoint |
//! | `spurious`, `frto` | detection and undoing of spurious reductions |
//! | `pacing` | pacing of segments |
//! | `delivery_rate`, `rate_control` | delivery rate samples; their use by BBR; `prague`: round trips and pacing of Prague |
//! | `congestion` | congestion control, loss recovery, undoing and holding of reductions, user-defined algorithms |
//! | `door` | TCP-DOOR: detection of out-of-order packets, and the response |
//! | `feedback` | reactions to route notifications: TCP-F, ELFN, ATCP, TCP-BuS, fixed RTO |
//!
//! Inside, positions in a stream are `u64` offsets from the initial sequence number: the SYN is 0, the first byte 1. They
//! are converted to and from sequence numbers at the edge, so that wrap-around is handled in one place.

mod acc_ecn;
mod acknowledge;
mod activity;
mod config;
pub mod congestion;
pub(crate) mod delivery_rate;
mod door;
mod ecn;
mod endpoint;
mod feedback;
mod frto;
mod host_limits;
mod info;
mod input;
mod keep_alive;
mod loss_detection;
mod output;
mod pacing;
mod prague;
mod presets;
mod quick_ack;
mod rack;
mod rate_control;
mod receive;
mod receiver_rules;
mod recovery_policy;
mod rto;
mod sack_option;
mod scoreboard;
mod sent_segments;
mod socket_calls;
mod socket_options;
mod spurious;
mod stats;
mod timeouts;
mod timer;
mod tlp;
mod window_usage;

#[cfg(test)]
mod tests;

pub use crate::ConfigError;
pub use crate::connection::{CloseError, CloseReason, Event, OpenError, SendError, State};
pub use activity::Activity;
pub use config::{
    AckPolicy, ClosedWindow, Config, DsackReports, EcnMode, Estimator, Growth, GrowthCondition, IdleRestart,
    InitialSsthresh, InitialWindow, LimitedTransmit, LossDetection, MissingTimestamp, Nagle, OptionOffer,
    RecoveryTimeout, Reduction, RepeatedTimeout, RtoConfig, RtoFloor, TimeWaitReset, TimestampEcho,
    WindowProbe,
};
pub use congestion::{
    BbrConfig, BbrModel, BbrState, BbrVersion, CongestionControl, CongestionSignal, CubicArithmetic,
    CubicConfig, CustomCcAck, CustomCcLoss, CustomCcState, CustomCcTimeout, CustomCongestionControl,
    CustomCongestionControlId, FastConvergence, HyStartConfig, HyStartDetection, HyStartPlusPlusConfig,
    HyStartScope, MarkReduction, PolicerDetection, PolicerState, PragueConfig, PrrBound, RecoveryPhase,
    RecoveryReduction, SlowStart, TimeoutResultUse, Variant,
};
pub use door::{
    AckOrder, DataOrder, Detection, DisabledRetransmissions, DoorConfig, DoorResponse, HeldTimerBackoff,
    HeldVariables, LateRule, RepeatedEvent, UndoReach,
};
pub use endpoint::{Endpoint, Ports};
pub use feedback::{
    AtcpConfig, BusConfig, CwndAfterFreeze, ElfnConfig, FeedbackState, FixedRtoConfig, InFlightAfterFreeze,
    ProbeSchedule, RouteFeedback, RouteReturn, RtoAfterFreeze, TcpFConfig,
};
pub use frto::Frto;
pub use host_limits::{ReceiveLimits, ReceiveMemory};
pub use info::{CaState, Info};
pub use keep_alive::KeepAlive;
pub use rack::{RackConfig, RackRttSource};
pub use receiver_rules::ReceiverRules;
pub use spurious::{SpuriousDetection, SpuriousDetector};
pub use stats::{DoorStats, DropReason, Drops, FeedbackStats, Stats};
pub use timer::Timer;
pub use tlp::TailProbe;
