//! Address resolution at a radio (RFC 826), as ns-2 does it: a node asks for a neighbour's address when it
//! first sends to it, keeps one packet meanwhile, which the next one pushes out, and never forgets. With the
//! third request unanswered it gives the neighbour up as the MAC would.
//!
//! A request is a broadcast, which no MAC repeats. It can wait a random time, so that requests of neighbours
//! that create packets at the same instant do not collide each time (RFC 5148 §5.2). A packet that comes
//! meanwhile makes no further request.

use crate::queue_access::QueuedPacket;
use hopline_core::{Duration, RandomStream};
use hopline_wire::dot11::MacAddr;
use std::collections::{BTreeMap, BTreeSet};

/// Requests for an address after which the packets for it fail.
const MAX_REQUESTS: u8 = 3;

/// The addresses that a station knows.
#[derive(Clone, Debug)]
pub(crate) struct ArpCache {
    resolved: BTreeSet<MacAddr>,
    pending: BTreeMap<MacAddr, PendingEntry>,
    /// Requests wait a random time below this.
    jitter: Duration,
    stream: RandomStream,
}

/// An address that is not known yet.
#[derive(Clone, Copy, Debug, Default)]
struct PendingEntry {
    /// The one that waits included.
    requests: u8,
    latest: RequestState,
    waiting: Option<QueuedPacket>,
}

/// The latest request for an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RequestState {
    /// It has left.
    #[default]
    Sent,
    /// It waits for its jitter to pass.
    Waiting,
}

/// Outcome of a packet for a neighbour.
pub(super) enum LookupResult {
    /// It leaves.
    Send,
    /// It waits for an answer, in place of another one. The request leaves after `request`; `None`: one waits already.
    Wait { displaced: Option<QueuedPacket>, request: Option<Duration> },
    /// There is no answer, for this packet or for the one that waited.
    Fail { held: Option<QueuedPacket> },
}

impl ArpCache {
    pub(super) const fn new(jitter: Duration, stream: RandomStream) -> Self {
        Self { resolved: BTreeSet::new(), pending: BTreeMap::new(), jitter, stream }
    }

    pub(super) fn look_up(&mut self, to: MacAddr, packet: QueuedPacket) -> LookupResult {
        if self.resolved.contains(&to) {
            return LookupResult::Send;
        }
        let asked = self.pending.entry(to).or_default();
        if asked.latest == RequestState::Waiting {
            return LookupResult::Wait { displaced: asked.waiting.replace(packet), request: None };
        }
        if asked.requests >= MAX_REQUESTS {
            return LookupResult::Fail { held: core::mem::take(asked).waiting };
        }
        asked.requests += 1;
        let delay = self.stream.duration_below(self.jitter);
        asked.latest = if delay.is_zero() { RequestState::Sent } else { RequestState::Waiting };
        LookupResult::Wait { displaced: asked.waiting.replace(packet), request: Some(delay) }
    }

    /// Sends the deferred request for an address, unless the address has become known meanwhile. Returns
    /// whether it is sent.
    pub(super) fn send_deferred_request(&mut self, of: MacAddr) -> bool {
        self.pending.get_mut(&of).is_some_and(|asked| {
            core::mem::replace(&mut asked.latest, RequestState::Sent) == RequestState::Waiting
        })
    }

    /// Returns the number of packets that wait for an address.
    pub(super) fn waiting_packets(&self) -> usize {
        self.pending.values().filter(|asked| asked.waiting.is_some()).count()
    }

    /// Records that the address of `of` is known now. Returns the packet that waited for it.
    pub(super) fn learn(&mut self, of: MacAddr) -> Option<QueuedPacket> {
        self.resolved.insert(of);
        self.pending.remove(&of)?.waiting
    }
}

/// Result of address resolution for a packet.
pub(super) enum Resolution {
    Known,
    /// It waits.
    Waiting,
    /// It waits, and this request goes in its place.
    Requesting(QueuedPacket),
    /// There is no answer, for this packet or for the one that waited.
    Failed {
        waiting: Option<QueuedPacket>,
    },
}
