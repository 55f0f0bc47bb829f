//! Link emulation without packets: a state machine that decides the fate and the timing of each packet of an emulated link.
//! It serves two endpoints in virtual time and real sockets.

mod conditions;
mod emulation;
mod loss;

pub use conditions::{Condition, Opportunities, TraceError, TraceLineError};
pub use emulation::{
    Copies, CopyState, DelayDistribution, Direction, DirectionStats, Emulation, EmulationError,
};

/// End of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// First end.
    A,
    /// Second end.
    B,
}

impl Side {
    /// Returns the other end.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// Handling of a host's old ports after its address translator (NAT) was restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NatPortPolicy {
    /// Forgotten by the translator: packets to them are dropped. A restarted home router does this.
    Forgotten,
    /// Still valid: they lead to the host, though its packets come from the new ones.
    Kept,
}

/// The example of README.md, as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
