//! What an emulated link does to packets, and when, as a machine without packets: for two machines in virtual time, and for
//! real sockets.

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

/// What becomes of the ports by which a host was known before its address translator was started anew.
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
