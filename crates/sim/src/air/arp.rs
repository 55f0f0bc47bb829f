//! Address resolution at a radio (RFC 826), as ns-2 does it: a node asks for a neighbour's address when it
//! first sends to it, keeps one packet meanwhile, which the next one pushes out, and never forgets. With the
//! third request unanswered it gives the neighbour up as the MAC would.
//!
//! A request is a broadcast, which no MAC repeats. It can wait a random time, so that requests of neighbours
//! that create packets at the same instant do not collide each time (RFC 5148 §5.2). A packet that comes
//! meanwhile makes no further request.

use super::{Air, Queued, Sent, Station, StationId};
use crate::event::Event;
use crate::kernel::Kernel;
use crate::packet::{Account, Body, Packet, header};
use crate::trace::{DropReason, Place, Tracer};
use hopline_core::{Duration, NodeId, Stream};
use hopline_queue::drop_tail::Class;
use hopline_wire::arp::{LEN, Message, Operation};
use hopline_wire::dot11::MacAddr;
use hopline_wire::ipv4::{Header, Protocol};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

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
enum Fate {
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

    fn look_up(&mut self, to: MacAddr, packet: Queued) -> Fate {
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
    fn request_leaves(&mut self, of: MacAddr) -> bool {
        self.asked
            .get_mut(&of)
            .is_some_and(|asked| core::mem::replace(&mut asked.latest, Request::Sent) == Request::Waiting)
    }

    /// Returns the number of packets that wait for an address.
    pub(super) fn held(&self) -> usize {
        self.asked.values().filter(|asked| asked.held.is_some()).count()
    }

    /// Records that the address of `of` is known now. Returns the packet that waited for it.
    fn learn(&mut self, of: MacAddr) -> Option<Queued> {
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

impl Air {
    /// Returns whether a packet for a neighbour may leave now.
    pub(super) fn resolve<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        at: StationId,
        packet: Queued,
    ) -> Resolved {
        let Station { node, addresses, .. } = &mut self.stations[at.index()];
        // Broadcasts need no address.
        let (Some(addresses), false) = (addresses, packet.to.is_group()) else { return Resolved::Known };
        match addresses.look_up(packet.to, packet) {
            Fate::Leaves => Resolved::Known,
            Fate::Fails { held } => Resolved::Failed { held },
            Fate::Waits { displaced, request } => {
                if let Some(displaced) = displaced {
                    kernel.drop_at(Place::Radio, *node, displaced.handle, DropReason::Unresolved);
                }
                match request {
                    None => Resolved::Waits,
                    Some(delay) if delay.is_zero() => Resolved::Asks(self.request(kernel, at, packet.to)),
                    Some(delay) => {
                        let event = Event::ArpRequest { station: at, of: packet.to };
                        kernel.schedule(kernel.now + delay, event);
                        Resolved::Waits
                    }
                }
            }
        }
    }

    /// Handles the end of the jitter of a request for an address.
    pub(crate) fn arp_request_due<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        at: StationId,
        of: MacAddr,
    ) -> Sent {
        let addresses = self.stations[at.index()].addresses.as_mut();
        if !addresses.is_some_and(|addresses| addresses.request_leaves(of)) {
            return Sent::Waits;
        }
        let request = self.request(kernel, at, of);
        self.descend(kernel, at, request)
    }

    /// Returns a request of a station for an address.
    fn request<T: Tracer>(&self, kernel: &mut Kernel<T>, at: StationId, of: MacAddr) -> Queued {
        let Station { node, address, .. } = &self.stations[at.index()];
        let asked = self.node_of(of).map_or(Ipv4Addr::UNSPECIFIED, NodeId::ipv4);
        let (sender, target) = ((*address, node.ipv4()), (MacAddr::default(), asked));
        made(kernel, Message { operation: Operation::Request, sender, target })
    }

    /// Handles a message at a station: every station that receives it learns its sender's address. Returns
    /// what is now to [descend](Self::descend).
    pub(crate) fn receive_arp<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        at: StationId,
        message: Message,
    ) -> [Option<Queued>; 2] {
        let Station { node, address, addresses, .. } = &mut self.stations[at.index()];
        let Some(addresses) = addresses else { return [None; 2] };
        let held = addresses.learn(message.sender.0);
        let sender = (*address, node.ipv4());
        let is_asked = message.operation == Operation::Request && message.target.1 == sender.1;
        let reply = Message { operation: Operation::Reply, sender, target: message.sender };
        [held, is_asked.then(|| made(kernel, reply))]
    }
}

/// Returns a message as a packet.
fn made<T: Tracer>(kernel: &mut Kernel<T>, message: Message) -> Queued {
    // It has no IP header; this one gives traces the sender and the target.
    let ip = Header { ttl: 1, ..header(message.sender.1, message.target.1, Protocol::Udp) };
    let to = match message.operation {
        Operation::Request => MacAddr::BROADCAST,
        Operation::Reply => message.target.0,
    };
    let packet = Packet { len_bytes: LEN as u32, ..kernel.made(ip, Body::Arp(message), 0, Account::Control) };
    Queued { handle: kernel.packets.insert(packet), to, class: Class::Data }
}
