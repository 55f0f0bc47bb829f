//! What goes into and comes out of the machine.

use super::channel::ChannelTime;
use hopline_core::TimerKind;
use hopline_wire::ncn::Notice;
use std::net::Ipv4Addr;

/// A notice that was received or overheard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// The neighbour that sent it over this hop.
    pub from: Ipv4Addr,
    /// The notice.
    pub notice: Notice,
}

/// A notice to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Where to.
    pub to: To,
    /// The notice.
    pub notice: Notice,
}

/// Where a notice goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// To a neighbour; the others overhear it.
    Neighbour(Ipv4Addr),
    /// To all.
    Everyone,
}

/// A packet of a flow that comes to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coming {
    /// From above, or from another interface, to leave for a neighbour: it comes to the outgoing queue.
    Down {
        /// The neighbour.
        next_hop: Ipv4Addr,
    },
    /// From a neighbour, for this node or to be passed on: it leaves the virtual incoming queue.
    Up,
}

/// What neighbouring layers report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// What the radio has done up to now; the answer to [`Event::Sample`].
    Channel(ChannelTime),
    /// A frame of a neighbour was heard, whoever it was for.
    Heard(Ipv4Addr),
}

/// What the machine asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An interval is over: [`Signal::Channel`] is wanted.
    Sample,
}

/// Why the machine wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// An interval of radio time is over.
    Sample,
    /// A notice may be due.
    Notice,
    /// The jitter of a notice that is passed on has passed.
    Relay,
}

impl TimerKind for Timer {
    const ALL: &'static [Self] = &[Self::Sample, Self::Notice, Self::Relay];
    fn index(self) -> usize {
        self as usize
    }
}

/// Why a notice was not heeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// A larger one of another node holds.
    Smaller,
    /// The neighbour's last one was too short a time ago ([`Guard`](super::config::Guard)).
    TooSoon,
    /// It is about this node.
    AboutUs,
    /// It was passed on, and notices are not passed on here, or the node that suffers is a neighbour itself.
    NotForUs,
    /// No frame of who sent it was heard, or so many others are heard that it is not remembered
    /// ([`Guard`](super::config::Guard)).
    Stranger,
    /// So many were passed on that there is no room for one more.
    NoRoom,
}

/// What the machine counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Notices of its own that went out.
    pub notices_sent: u64,
    /// Notices of others that it passed on.
    pub notices_relayed: u64,
    /// Notices that came, heeded or not.
    pub notices_received: u64,
    /// Of these, not heeded: a larger one held.
    pub ignored_smaller: u64,
    /// Not heeded: too soon after the last.
    pub ignored_too_soon: u64,
    /// Not heeded: about this node.
    pub ignored_about_us: u64,
    /// Not heeded: passed on for others.
    pub ignored_not_for_us: u64,
    /// Not heeded: from who is no neighbour.
    pub ignored_strangers: u64,
    /// Not heeded: no room.
    pub ignored_no_room: u64,
    /// Heeded, and believed less than they said.
    pub capped: u64,
    /// Packets of flows that came.
    pub packets: u64,
    /// Of these, chosen on their way down.
    pub chosen_outgoing: u64,
    /// Chosen on their way up.
    pub chosen_incoming: u64,
}

impl Stats {
    /// Notices that came and were not heeded, for whatever reason.
    #[must_use]
    pub const fn ignored(&self) -> u64 {
        self.ignored_smaller
            + self.ignored_too_soon
            + self.ignored_about_us
            + self.ignored_not_for_us
            + self.ignored_strangers
            + self.ignored_no_room
    }

    pub(super) fn ignore(&mut self, why: Ignored) {
        let counter = match why {
            Ignored::Smaller => &mut self.ignored_smaller,
            Ignored::TooSoon => &mut self.ignored_too_soon,
            Ignored::AboutUs => &mut self.ignored_about_us,
            Ignored::NotForUs => &mut self.ignored_not_for_us,
            Ignored::Stranger => &mut self.ignored_strangers,
            Ignored::NoRoom => &mut self.ignored_no_room,
        };
        *counter += 1;
    }
}
