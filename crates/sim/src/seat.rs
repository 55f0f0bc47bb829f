//! Middleboxes at their places in the path of packets: all kinds that there are, and when each will be woken.

use crate::alarm::Alarm;
use crate::in_path::InPath;
use crate::neighborhood::Neighborhood;
use crate::outcome::ProxyCounts;
use crate::proxy::{
    AckPacingSeat, Crossing, DProxySeat, FastRetransmitSeat, FilterSeat, Kept, LinkSeat, SplitSeat,
};
use hopline_proxy::arq::Arq;
use hopline_proxy::dproxy::opaque::Opaque;
use hopline_proxy::mtcp::Mtcp;
use hopline_proxy::nack::Nacks;
use hopline_proxy::snoop;

/// A middlebox, and the time at which it will be woken.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) machine: Sitter,
    pub(crate) alarm: Alarm,
    pub(crate) drain: Drain,
    /// Its counters at the start of counting.
    before: ProxyCounts,
}

/// State of the execution of a middlebox's actions. An action may lead back to the middlebox; the actions
/// behind it wait all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drain {
    Idle,
    UnderWay,
}

/// The machine in a seat.
#[derive(Debug)]
pub(crate) enum Sitter {
    NeighborhoodRed(Box<Neighborhood>),
    Snoop(Box<FilterSeat<snoop::Windowed<Kept>>>),
    Mtcp(Box<FilterSeat<Mtcp<Kept>>>),
    Nacks(Box<FilterSeat<Nacks<Kept>>>),
    AckPacing(Box<AckPacingSeat>),
    Split(Box<SplitSeat>),
    Arq(Box<LinkSeat<Arq<Crossing>>>),
    Opaque(Box<LinkSeat<Opaque<Crossing>>>),
    DProxy(Box<DProxySeat>),
    FastRetransmit(Box<FastRetransmitSeat>),
    /// Middlebox scripted by a test.
    #[cfg(test)]
    Scripted(Box<dyn InPath>),
}

impl Seat {
    pub(crate) fn new(machine: Sitter) -> Self {
        Self { machine, alarm: Alarm::OFF, drain: Drain::Idle, before: ProxyCounts::default() }
    }

    /// Counts anew.
    pub(crate) fn restart(&mut self) {
        self.before = self.machine.in_path().counts();
    }

    /// Returns its counters since the start of counting.
    pub(crate) fn counts(&mut self) -> ProxyCounts {
        self.machine.in_path().counts() - self.before
    }
}

impl Sitter {
    pub(crate) fn in_path(&mut self) -> &mut dyn InPath {
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
    pub(crate) fn held(&self) -> usize {
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
