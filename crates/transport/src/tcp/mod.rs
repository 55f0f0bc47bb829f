//! TCP (RFC 9293) as a sans-IO machine.
//!
//! [`Endpoint`] is one end of one connection. It speaks [`Segment`](hopline_wire::tcp::Segment)s, generic over the
//! payload: a length in the simulator, real bytes on Linux. [`Config`] names every choice that the RFCs leave open and
//! where ns-2 differs from them; start from [`Config::modern`] or one of the ns-2 presets.
//!
//! | file | idea |
//! |---|---|
//! | `config`, `presets` | parameters, and their values by period |
//! | `timer`, `stats` | timers, counters |
//! | `endpoint` | the machine: application calls and getters |
//! | `input` | segment arrives (RFC 9293 §3.10.7) |
//! | `acknowledge` | the ACK field: window, round trip, congestion control |
//! | `receive` | the data: reassembly, when to acknowledge, the window to announce |
//! | `selective` | the SACK option of an acknowledgment |
//! | `output` | what to send next |
//! | `expire` | what timers do |
//! | `host` | calls for a host stack: path MTU, pieces that wait |
//! | `ecn` | explicit congestion notification (RFC 3168) |
//! | `reassembly`, `scoreboard`, `rto` | the data structures |
//! | `rack`, `tlp`, `transmissions` | RACK-TLP: losses told by time (RFC 8985), and its records; `detect`: what an endpoint does then |
//! | `spurious`, `frto` | reductions that were wrong: how they are found out and undone |
//! | `pacing` | when segments leave, if they are spaced |
//! | `delivery_rate`, `steer` | samples of the rate of delivery; what an endpoint does for BBR, which goes by them |
//! | `congestion` | RFC 5681 and the recovery strategies, undoing what they did, holding the window, laws of somebody's own |
//! | `door` | TCP-DOOR: what the order of packets tells, and what is done about it |
//! | `feedback` | what is made of being told about routes: TCP-F, ELFN, ATCP, TCP-BuS, fixed RTO |
//!
//! Inside, positions in a stream are `u64` offsets from the initial sequence number: the SYN is 0, the first byte 1.
//! They are turned into sequence numbers and back at the edge, so wrap-around is dealt with in one place.

mod acknowledge;
mod config;
pub mod congestion;
mod delivery_rate;
mod detect;
mod door;
mod ecn;
mod endpoint;
mod expire;
mod feedback;
mod frto;
mod host;
mod input;
mod keep_alive;
mod output;
mod pacing;
mod presets;
mod rack;
mod receive;
mod rto;
mod scoreboard;
mod selective;
mod spurious;
mod stance;
mod stats;
mod steer;
mod timer;
mod tlp;
mod transmissions;

#[cfg(test)]
mod tests;

pub use crate::ConfigError;
pub use crate::connection::{CloseError, CloseReason, Event, OpenError, SendError, State};
pub use config::{
    AckPolicy, ClosedWindow, Config, Dsack, EcnUse, Estimator, Growth, GrowthCondition, IdleRestart,
    InitialSsthresh, InitialWindow, LimitedTransmit, LossDetection, Nagle, Offer, RecoveryTimeout, Reduction,
    RepeatedTimeout, RtoConfig, RtoFloor, TimestampEcho,
};
pub use congestion::{
    BbrConfig, BbrModel, BbrState, BbrVersion, CubicArithmetic, CubicConfig, FastConvergence, LawAck,
    LawLoss, LawState, LawTimeout, LossSign, OwnLaw, OwnLawId, Phase, Policed, PolicerDetection, PrrBound,
    RecoveryWindow, TimeoutAnswer, Variant, WindowLaw,
};
pub use door::{
    AckOrder, Again, DataOrder, Detection, DoorConfig, DoorResponse, Held, HeldTimer, Late, Reach, Resends,
};
pub use endpoint::{Endpoint, Ports};
pub use feedback::{
    AtcpConfig, BusConfig, ElfnConfig, Feedback, FeedbackState, FixedRtoConfig, InFlight, Probing, Return,
    RtoAfter, TcpFConfig, WindowAfter,
};
pub use frto::Frto;
pub use host::{ReceiveLimits, ReceiveUse};
pub use keep_alive::KeepAlive;
pub use rack::RackConfig;
pub use spurious::{Detector, Spurious};
pub use stats::{DoorStats, DropReason, Drops, FeedbackStats, Stats};
pub use timer::Timer;
pub use tlp::TailProbe;
