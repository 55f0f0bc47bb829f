//! Address resolution at a radio (RFC 826), as ns-2 does it: a node asks for a neighbour's address when it
//! first sends to it, keeps one packet meanwhile, which the next one pushes out, and never forgets. With the
//! third request unanswered it gives the neighbour up as the MAC would.
//!
//! A request is a broadcast, which no MAC repeats. It can wait a random time, so that requests of neighbours
//! that create packets at the same instant do not collide each time (RFC 5148 §5.2). A packet that comes
//! meanwhile makes no further request.

use crate::queueing::Queued;
use hopline_core::{Duration, Stream};
use hopline_wire::dot11::MacAddr;
use std::collections::{BTreeMap, BTreeSet};

/// Requests for an address after which the packets for it fail.
const MOST_REQUESTS: u8 = 3;

/// The addresses that a station knows.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    known: BTreeSet<MacAddr>,
    asked: BTreeMap<MacAddr, Asked>,
    /// Requests wait a random time below this.
    jitter: Duration,
    stream: Stream,
}

/// An address that is not known yet.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    /// The one that waits included.
    requests: u8,
    latest: Request,
    held: Option<Queued>,
}

/// The latest request for an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Request {
    /// It has left.
    #[default]
    Sent,
    /// It waits for its jitter to pass.
    Waiting,
}

/// Outcome of a packet for a neighbour.
pub(super) enum Fate {
    /// It leaves.
    Leaves,
    /// It waits for an answer, in place of another one. The request leaves after `request`; `None`: one waits already.
    Waits { displaced: Option<Queued>, request: Option<Duration> },
    /// There is no answer, for this packet or for the one that waited.
    Fails { held: Option<Queued> },
}

impl Addresses {
    pub(super) const fn new(jitter: Duration, stream: Stream) -> Self {
        Self { known: BTreeSet::new(), asked: BTreeMap::new(), jitter, stream }
    }

    pub(super) fn look_up(&mut self, to: MacAddr, packet: Queued) -> Fate {
        if self.known.contains(&to) {
            return Fate::Leaves;
        }
        let asked = self.asked.entry(to).or_default();
        if asked.latest == Request::Waiting {
            return Fate::Waits { displaced: asked.held.replace(packet), request: None };
        }
        if asked.requests >= MOST_REQUESTS {
            return Fate::Fails { held: core::mem::take(asked).held };
        }
        asked.requests += 1;
        let delay = self.stream.duration_below(self.jitter);
        asked.latest = if delay.is_zero() { Request::Sent } else { Request::Waiting };
        Fate::Waits { displaced: asked.held.replace(packet), request: Some(delay) }
    }

    /// Sends the deferred request for an address, unless the address has become known meanwhile. Returns
    /// whether it is sent.
    pub(super) fn request_leaves(&mut self, of: MacAddr) -> bool {
        self.asked
            .get_mut(&of)
            .is_some_and(|asked| core::mem::replace(&mut asked.latest, Request::Sent) == Request::Waiting)
    }

    /// Returns the number of packets that wait for an address.
    pub(super) fn held(&self) -> usize {
        self.asked.values().filter(|asked| asked.held.is_some()).count()
    }

    /// Records that the address of `of` is known now. Returns the packet that waited for it.
    pub(super) fn learn(&mut self, of: MacAddr) -> Option<Queued> {
        self.known.insert(of);
        self.asked.remove(&of)?.held
    }
}

/// Result of address resolution for a packet.
pub(super) enum Resolved {
    Known,
    /// It waits.
    Waits,
    /// It waits, and this request goes in its place.
    Asks(Queued),
    /// There is no answer, for this packet or for the one that waited.
    Failed {
        held: Option<Queued>,
    },
}
