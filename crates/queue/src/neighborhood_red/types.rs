//! Inputs and outputs of the machine.

use super::channel::ChannelTime;
use hopline_core::TimerKind;
use hopline_wire::ncn::Notice;
use std::net::Ipv4Addr;

/// A notice that was received or overheard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedNotice {
    /// The neighbour that sent it over this hop.
    pub from: Ipv4Addr,
    /// The notice.
    pub notice: Notice,
}

/// A notice to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingNotice {
    /// Destination.
    pub to: Destination,
    /// The notice.
    pub notice: Notice,
}

/// Destination of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A neighbour; all other neighbours overhear it.
    Neighbour(Ipv4Addr),
    /// All neighbours.
    AllNeighbours,
}

/// An arriving packet of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// From above, or from another interface, to a neighbour: the packet arrives at the outgoing queue.
    Outgoing {
        /// The neighbour.
        next_hop: Ipv4Addr,
    },
    /// From a neighbour, for this node or to be forwarded: the packet leaves the virtual incoming queue.
    Incoming,
}

/// Report of a neighbouring layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Radio times up to now; the response to [`Event::Sample`].
    Channel(ChannelTime),
    /// A frame of a neighbour was received, whatever its destination.
    FrameReceived(Ipv4Addr),
}

/// Request of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// End of an interval; the machine needs [`Signal::Channel`].
    Sample,
}

/// Reason for which the machine asks to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// An interval of radio time is over.
    Sample,
    /// A notice may be due.
    Notice,
    /// The jitter of a relayed notice has passed.
    Relay,
}

impl TimerKind for Timer {
    const ALL: &'static [Self] = &[Self::Sample, Self::Notice, Self::Relay];
    fn index(self) -> usize {
        self as usize
    }
}

/// Reason for which a notice was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredReason {
    /// A larger one of another node is in force.
    Smaller,
    /// The neighbour's last notice was too short a time ago ([`NoticeLimits`](super::config::NoticeLimits)).
    TooSoon,
    /// The notice is about this node.
    AboutUs,
    /// The notice was relayed, and this node ignores relayed notices, or the starved node is a neighbour itself.
    NotRelevant,
    /// No frame of the sender was received, or the sender is unknown because the neighbour table is full
    /// ([`NoticeLimits`](super::config::NoticeLimits)).
    UnknownNeighbour,
    /// There is no room for one more relayed notice.
    TableFull,
}

/// Counters of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Notices sent about this node.
    pub notices_sent: u64,
    /// Notices of other nodes relayed.
    pub notices_relayed: u64,
    /// Notices received, accepted or ignored.
    pub notices_received: u64,
    /// Of these, ignored: a larger one is in force.
    pub ignored_smaller: u64,
    /// Ignored: too soon after the last.
    pub ignored_too_soon: u64,
    /// Ignored: about this node.
    pub ignored_about_us: u64,
    /// Ignored: relayed for other nodes.
    pub ignored_not_for_us: u64,
    /// Ignored: the sender is no neighbour.
    pub ignored_strangers: u64,
    /// Ignored: no room.
    pub ignored_no_room: u64,
    /// Accepted with a smaller effect than requested.
    pub capped: u64,
    /// Packets of flows that arrived.
    pub packets: u64,
    /// Of these, chosen in the outgoing queue.
    pub selected_outgoing: u64,
    /// Chosen in the virtual incoming queue.
    pub selected_incoming: u64,
}

impl Stats {
    /// Returns the number of ignored notices, for any reason.
    #[must_use]
    pub const fn ignored(&self) -> u64 {
        self.ignored_smaller
            + self.ignored_too_soon
            + self.ignored_about_us
            + self.ignored_not_for_us
            + self.ignored_strangers
            + self.ignored_no_room
    }

    pub(super) fn ignore(&mut self, why: IgnoredReason) {
        let counter = match why {
            IgnoredReason::Smaller => &mut self.ignored_smaller,
            IgnoredReason::TooSoon => &mut self.ignored_too_soon,
            IgnoredReason::AboutUs => &mut self.ignored_about_us,
            IgnoredReason::NotRelevant => &mut self.ignored_not_for_us,
            IgnoredReason::UnknownNeighbour => &mut self.ignored_strangers,
            IgnoredReason::TableFull => &mut self.ignored_no_room,
        };
        *counter += 1;
    }
}
