//! TPA-wide, the successor of TPA for paths with many packets in flight, as a sans-IO machine. `docs/protocols/tpa-wide.md` says what
//! is kept of TPA and what replaced the rest.
//!
//! | file | is |
//! |---|---|
//! | `config` | every parameter |
//! | `endpoint` | application calls and getters |
//! | `input`, `output`, `timeouts` | packets that arrive, packets that leave, timers |
//! | `outstanding`, `loss_detection` | what is under way, what of it is lost |
//! | `receive` | what arrived, when to acknowledge |
//! | `rtt` | round trips, one-way delays |
//! | `controller` | congestion control: the interface, and CUBIC and BBR behind it |
//! | `control` | TPA-wide's own congestion control: rate, queue, losses |

mod config;
mod control;
mod controller;
mod endpoint;
mod input;
mod loss_detection;
mod observed;
mod output;
mod outstanding;
mod ranges;
mod receive;
mod rtt;
mod stats;
mod timeouts;
mod timer;

#[cfg(test)]
mod tests;

pub use crate::ConfigError;
pub use crate::connection::{CloseError, CloseReason, Event, OpenError, SendError, State};
pub use config::{AckConfig, CompetingConfig, Config, ControlConfig, LossDetectionConfig, TimeoutConfig};
pub use control::RateController;
pub use controller::{
    AckSample, Arrival, BbrController, Controller, CubicController, RoundOutcome, SendLimit, SentPacket,
};
pub use endpoint::Endpoint;
pub use stats::{DropReason, Drops, Stats};
pub use timer::Timer;
