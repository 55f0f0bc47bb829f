//! Address resolution at a radio (RFC 826), as ns-2 does it: a node asks for a neighbour's address when it first sends to it,
//! keeps one packet meanwhile, which the next one pushes out, and never forgets. With the third request unanswered it gives the
//! neighbour up as the MAC would.

use crate::node::Queued;
use crate::packet::{Account, Body, Packet};
use crate::stack::header;
use crate::trace::{DropReason, Place, Tracer};
use crate::world::World;
use hopline_core::NodeId;
use hopline_queue::drop_tail::Class;
use hopline_wire::arp::{LEN, Message, Operation};
use hopline_wire::dot11::MacAddr;
use hopline_wire::ipv4::{Header, Protocol};
use std::collections::{BTreeMap, BTreeSet};

/// Requests for an address after which the packets for it fail.
const MOST_REQUESTS: u8 = 3;

/// Whose addresses a node knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addresses {
    known: BTreeSet<NodeId>,
    asked: BTreeMap<NodeId, Asked>,
}

/// An address that is not known yet.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    requests: u8,
    held: Option<Queued>,
}

/// What becomes of a packet for a neighbour.
enum Fate {
    /// It leaves.
    Leaves,
    /// It waits for an answer, in place of another one.
    Waits { displaced: Option<Queued> },
    /// There is no answer. So for the packet that waited.
    Fails { held: Option<Queued> },
}

impl Addresses {
    fn look_up(&mut self, to: NodeId, packet: Queued) -> Fate {
        if self.known.contains(&to) {
            return Fate::Leaves;
        }
        let asked = self.asked.entry(to).or_default();
        if asked.requests >= MOST_REQUESTS {
            return Fate::Fails { held: core::mem::take(asked).held };
        }
        asked.requests += 1;
        Fate::Waits { displaced: asked.held.replace(packet) }
    }

    /// The address of `of` is known now. Returns the packet that waited for it.
    fn learn(&mut self, of: NodeId) -> Option<Queued> {
        self.known.insert(of);
        self.asked.remove(&of)?.held
    }
}

impl<T: Tracer> World<T> {
    /// Whether a packet for a neighbour may leave `node` now; else it is seen to.
    pub(crate) fn is_resolved(&mut self, node: u32, packet: Queued) -> bool {
        let Some(addresses) = self.addresses(node) else { return true };
        // Broadcasts need no address.
        let Some(to) = packet.to.node() else { return true };
        match addresses.look_up(to, packet) {
            Fate::Leaves => true,
            Fate::Waits { displaced } => {
                if let Some(displaced) = displaced {
                    self.drop_at(Place::Radio, node, displaced.handle, DropReason::Unresolved);
                }
                self.ask_for_address(node, to);
                false
            }
            Fate::Fails { held } => {
                for packet in held.into_iter().chain([packet]) {
                    self.link_failed(node, packet.handle, packet.to);
                }
                false
            }
        }
    }

    /// A message arrived at `node`: whoever hears it learns its sender's address.
    pub(crate) fn receive_arp(&mut self, node: u32, message: Message) {
        let (Some(sender), Some(addresses)) = (message.sender.0.node(), self.addresses(node)) else { return };
        if let Some(held) = addresses.learn(sender) {
            self.descend(node, held);
        }
        if message.operation == Operation::Request && message.target.1 == NodeId(node).ipv4() {
            let sender = (MacAddr::of_node(NodeId(node)), NodeId(node).ipv4());
            self.send_arp(node, Message { operation: Operation::Reply, sender, target: message.sender });
        }
    }

    fn ask_for_address(&mut self, node: u32, of: NodeId) {
        let sender = (MacAddr::of_node(NodeId(node)), NodeId(node).ipv4());
        let target = (MacAddr::default(), of.ipv4());
        self.send_arp(node, Message { operation: Operation::Request, sender, target });
    }

    fn send_arp(&mut self, node: u32, message: Message) {
        // It has no IP header; this one says who speaks to whom, for traces.
        let ip = Header { ttl: 1, ..header(message.sender.1, message.target.1, Protocol::Udp) };
        let body = Body::Arp(message);
        let packet =
            Packet { ip, body, len_bytes: LEN as u32, account: Account::Control, made: self.now, serial: 0 };
        let handle = self.packets.insert(packet);
        let to = match message.operation {
            Operation::Request => MacAddr::BROADCAST,
            Operation::Reply => message.target.0,
        };
        self.descend(node, Queued { handle, to, class: Class::Data });
    }

    fn addresses(&mut self, node: u32) -> Option<&mut Addresses> {
        self.nodes[node as usize].radio.as_mut()?.addresses.as_deref_mut()
    }
}
