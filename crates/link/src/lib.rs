//! Link emulation without packets: a state machine that decides the fate and the timing of each packet of an emulated link.
//! It serves two endpoints in virtual time and real sockets.

mod course;
mod emulation;
mod loss;

pub use course::{Condition, NoOpportunities, Opportunities};
pub use emulation::{Copies, Counts, Direction, Emulation, Extra, Fate};

/// One of the two ends of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
}

impl Side {
    /// The other one.
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
pub enum OldPorts {
    /// The translator has forgotten them: what is sent there is dropped. A restarted home router does this.
    Forgotten,
    /// They still lead to the host, though its packets come from the new ones.
    Kept,
}

/// The example of README.md, as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
