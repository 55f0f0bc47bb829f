//! Middleboxes at their places in the path of packets: all kinds that there are, and when each will be woken.

use crate::alarm::WakeUp;
use crate::middlebox::Middlebox;
use crate::neighborhood::Neighborhood;
use crate::outcome::MiddleboxCounts;
use crate::proxy::{
    AckPacingMiddlebox, CachedSegment, CrossingPacket, DProxyMiddlebox, FastRetransmitMiddlebox,
    FilterMiddlebox, LinkMiddlebox, SplitMiddlebox,
};
use hopline_proxy::arq::Arq;
use hopline_proxy::dproxy::opaque::Opaque;
use hopline_proxy::mtcp::Mtcp;
use hopline_proxy::nack::NackStation;
use hopline_proxy::snoop;

/// A middlebox, and the time at which it will be woken.
#[derive(Debug)]
pub(crate) struct MiddleboxSlot {
    pub(crate) middlebox: MiddleboxKind,
    pub(crate) wake_up: WakeUp,
    pub(crate) drain: DrainState,
    /// Its counters at the start of counting.
    warmup_counts: MiddleboxCounts,
}

/// State of the execution of a middlebox's actions. An action may lead back to the middlebox; the actions
/// behind it wait all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DrainState {
    Idle,
    Draining,
}

/// The machine in a seat.
#[derive(Debug)]
pub(crate) enum MiddleboxKind {
    NeighborhoodRed(Box<Neighborhood>),
    Snoop(Box<FilterMiddlebox<snoop::WindowedSnoop<CachedSegment>>>),
    Mtcp(Box<FilterMiddlebox<Mtcp<CachedSegment>>>),
    Nacks(Box<FilterMiddlebox<NackStation<CachedSegment>>>),
    AckPacing(Box<AckPacingMiddlebox>),
    Split(Box<SplitMiddlebox>),
    Arq(Box<LinkMiddlebox<Arq<CrossingPacket>>>),
    Opaque(Box<LinkMiddlebox<Opaque<CrossingPacket>>>),
    DProxy(Box<DProxyMiddlebox>),
    FastRetransmit(Box<FastRetransmitMiddlebox>),
    /// Middlebox scripted by a test.
    #[cfg(test)]
    Scripted(Box<dyn Middlebox>),
}

impl MiddleboxSlot {
    pub(crate) fn new(machine: MiddleboxKind) -> Self {
        Self {
            middlebox: machine,
            wake_up: WakeUp::OFF,
            drain: DrainState::Idle,
            warmup_counts: MiddleboxCounts::default(),
        }
    }

    /// Counts anew.
    pub(crate) fn restart(&mut self) {
        self.warmup_counts = self.middlebox.as_middlebox().counts();
    }

    /// Returns its counters since the start of counting.
    pub(crate) fn counts(&mut self) -> MiddleboxCounts {
        self.middlebox.as_middlebox().counts() - self.warmup_counts
    }
}

impl MiddleboxKind {
    pub(crate) fn as_middlebox(&mut self) -> &mut dyn Middlebox {
        match self {
            Self::NeighborhoodRed(machine) => machine.as_mut(),
            Self::Snoop(machine) => machine.as_mut(),
            Self::Mtcp(machine) => machine.as_mut(),
            Self::Nacks(machine) => machine.as_mut(),
            Self::AckPacing(machine) => machine.as_mut(),
            Self::Split(machine) => machine.as_mut(),
            Self::Arq(machine) => machine.as_mut(),
            Self::Opaque(machine) => machine.as_mut(),
            Self::DProxy(machine) => machine.as_mut(),
            Self::FastRetransmit(machine) => machine.as_mut(),
            #[cfg(test)]
            Self::Scripted(machine) => machine.as_mut(),
        }
    }

    /// Returns the number of packets that the machine has.
    pub(crate) fn held_packets(&self) -> usize {
        match self {
            Self::AckPacing(machine) => machine.held(),
            Self::Arq(machine) => machine.held(),
            Self::Opaque(machine) => machine.held(),
            Self::DProxy(machine) => machine.held(),
            Self::NeighborhoodRed(_)
            | Self::Snoop(_)
            | Self::Mtcp(_)
            | Self::Nacks(_)
            | Self::Split(_)
            | Self::FastRetransmit(_) => 0,
            #[cfg(test)]
            Self::Scripted(machine) => machine.held(),
        }
    }
}
