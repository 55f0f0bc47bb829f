//! TPA, the Transport Protocol for Ad hoc networks (Anastasi, Ancillotti, Conti, Passarella 2009), as a sans-I/O state
//! machine.
//!
//! [`Endpoint`] is one end of one connection. It sends and receives [`Segment`](hopline_wire::tpa::Segment)s, generic
//! over the payload. [`Config`] has a field for every parameter and every choice that the paper leaves open; start from
//! [`Config::tpa`] or [`Config::tpa_star`]. `docs/protocols/tpa.md` lists the choices.
//!
//! | file | idea |
//! |---|---|
//! | `config` | parameters |
//! | `timer`, `stats` | timers, counters |
//! | `endpoint` | the endpoint: application calls and getters |
//! `parts` | its parts: opening, pending segments, sending half |
//! `input` | arriving segments: opening, data, closing |
//! `acknowledge` | the ACK in a segment |
//! `receive` | the data in a segment: order, ACK policy, window announcements |
//! `output` | choice of the next segment, forming of blocks |
//! `expire` | expiry of timers |
//! `block` | rounds, the retransmission stream, timed-out segments |
//! `window` | congestion window: normal, congested, frozen |
//! `rto` | round-trip time, route changes, timeout |
//! `receipts` | proof of receipt of the acknowledged data |
//! `path_mtu` | path MTU discovery, for the driver of an endpoint |
//! `listener` | opening without state for unverified addresses |

mod acknowledge;
mod block;
mod config;
mod endpoint;
mod input;
mod listener;
mod nonces;
mod output;
mod path_mtu;
mod receive;
mod rto;
mod secret;
mod state;
mod stats;
mod timeouts;
mod timer;
mod window;

#[cfg(test)]
mod tests;

pub use crate::ConfigError;
pub use crate::connection::{CloseError, CloseReason, Event, OpenError, SendError, State};
pub use config::{
    AckConfig, AckEvery, BlockNumbers, CompleteBlock, Config, CongestedBackoff, CountReset, EchoRule,
    FailureConfig, FreezeExit, MIN_MSS, MergedExit, Notification, RoundStart, RtoConfig,
    SimultaneousTimeouts,
};
pub use endpoint::Endpoint;
pub use listener::{Listener, Refusal, Verdict};
pub use path_mtu::PathMtuSearch;
pub use secret::Secret;
pub use state::Identity;
pub use stats::{DropReason, Drops, Stats};
pub use timer::Timer;
pub use window::PathState;
