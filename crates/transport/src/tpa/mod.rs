//! TPA, the Transport Protocol for Ad hoc networks (Anastasi, Ancillotti, Conti, Passarella 2009), as a sans-IO machine.
//!
//! [`Endpoint`] is one end of one connection. It speaks [`Segment`](hopline_wire::tpa::Segment)s, generic over the
//! payload. [`Config`] names every parameter and every choice that the paper leaves open; start from [`Config::tpa`] or
//! [`Config::tpa_star`]. `docs/protocols/tpa.md` lists the choices.
//!
//! | file | idea |
//! |---|---|
//! | `config` | parameters |
//! | `timer`, `stats` | timers, counters |
//! | `endpoint` | the machine: application calls and getters |
//! | `parts` | what it is made of: how it is opened, what it owes, what it sends |
//! | `input` | a segment arrives: opening, data, closing |
//! | `acknowledge` | the ACK in it |
//! | `receive` | the data in it: order, when to acknowledge, the window to announce |
//! | `output` | what to send next, when a block is made |
//! | `expire` | what timers do |
//! | `block` | rounds, the retransmission stream, who is lost when |
//! | `window` | how many segments may be in flight: normal, congested, frozen |
//! | `rto` | round-trip time, route changes, timeout |
//! | `receipts` | proof that what is acknowledged was received |
//! | `path_mtu` | how long datagrams may be, for whoever drives an endpoint |
//! | `listener` | opening without state for whoever has not proved where it is |

mod acknowledge;
mod block;
mod config;
mod endpoint;
mod expire;
mod input;
mod listener;
mod output;
mod parts;
mod path_mtu;
mod receipts;
mod receive;
mod rto;
mod stats;
mod timer;
mod window;

#[cfg(test)]
mod tests;

pub use crate::ConfigError;
pub use crate::connection::{CloseError, CloseReason, Event, OpenError, SendError, State};
pub use config::{
    AckConfig, AckEvery, BlockNumbers, CompleteBlock, Config, CongestedBackoff, Echo, FailureConfig,
    FreezeExit, LEAST_MSS, MergedExit, Notification, RoundStart, RowEnds, RtoConfig, Simultaneous,
};
pub use endpoint::Endpoint;
pub use listener::{Listener, Refusal, Secret, Verdict};
pub use parts::Identity;
pub use path_mtu::PathMtu;
pub use stats::{DropReason, Drops, Stats};
pub use timer::Timer;
pub use window::Path;
