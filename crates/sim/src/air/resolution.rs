//! Address resolution of the air: packets that wait for an address, requests and replies.

use super::arp::{LookupResult, Resolution};
use super::{Air, HandDownResult, Station};
use crate::event::Event;
use crate::ids::StationId;
use crate::kernel::Kernel;
use crate::packet::{Body, Packet, PacketAccount, header};
use crate::queue_access::QueuedPacket;
use crate::trace::{DropLocation, DropReason, Tracer};
use hopline_core::NodeId;
use hopline_queue::drop_tail::Class;
use hopline_wire::arp::{LEN, Message, Operation};
use hopline_wire::dot11::MacAddr;
use hopline_wire::ipv4::{Header, Protocol};
use std::net::Ipv4Addr;

impl Air {
    /// Returns whether a packet for a neighbour may leave now.
    pub(super) fn resolve<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        at: StationId,
        packet: QueuedPacket,
    ) -> Resolution {
        let Station { node, arp_cache: addresses, .. } = &mut self.stations[at.index()];
        // Broadcasts need no address.
        let (Some(addresses), false) = (addresses, packet.to.is_group()) else { return Resolution::Known };
        // Programs outside have resolved it by frames of their own.
        if let Body::Ethernet(_) = kernel.packets.get(packet.handle).body {
            return Resolution::Known;
        }
        match addresses.look_up(packet.to, packet) {
            LookupResult::Send => Resolution::Known,
            LookupResult::Fail { held } => Resolution::Failed { waiting: held },
            LookupResult::Wait { displaced, request } => {
                if let Some(displaced) = displaced {
                    kernel.drop_at(DropLocation::Radio, *node, displaced.handle, DropReason::Unresolved);
                }
                match request {
                    None => Resolution::Waiting,
                    Some(delay) if delay.is_zero() => {
                        Resolution::Requesting(self.arp_request(kernel, at, packet.to))
                    }
                    Some(delay) => {
                        let event = Event::ArpRequest { station: at, of: packet.to };
                        kernel.schedule(kernel.now + delay, event);
                        Resolution::Waiting
                    }
                }
            }
        }
    }

    /// Handles the end of the jitter of a request for an address.
    pub(crate) fn on_arp_request_timer<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        at: StationId,
        of: MacAddr,
    ) -> HandDownResult {
        let addresses = self.stations[at.index()].arp_cache.as_mut();
        if !addresses.is_some_and(|addresses| addresses.send_deferred_request(of)) {
            return HandDownResult::Waiting;
        }
        let request = self.arp_request(kernel, at, of);
        self.send_through_link_layer(kernel, at, request)
    }

    /// Returns a request of a station for an address.
    fn arp_request<T: Tracer>(&self, kernel: &mut Kernel<T>, at: StationId, of: MacAddr) -> QueuedPacket {
        let Station { node, address, .. } = &self.stations[at.index()];
        let asked = self.node_of(of).map_or(Ipv4Addr::UNSPECIFIED, NodeId::ipv4);
        let (sender, target) = ((*address, node.ipv4()), (MacAddr::default(), asked));
        arp_packet(kernel, Message { operation: Operation::Request, sender, target })
    }

    /// Handles a message at a station: every station that receives it learns its sender's address. Returns
    /// what is now to [descend](Self::send_through_link_layer).
    pub(crate) fn receive_arp<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        at: StationId,
        message: Message,
    ) -> [Option<QueuedPacket>; 2] {
        let Station { node, address, arp_cache: addresses, .. } = &mut self.stations[at.index()];
        let Some(addresses) = addresses else { return [None; 2] };
        let held = addresses.learn(message.sender.0);
        let sender = (*address, node.ipv4());
        let is_asked = message.operation == Operation::Request && message.target.1 == sender.1;
        let reply = Message { operation: Operation::Reply, sender, target: message.sender };
        [held, is_asked.then(|| arp_packet(kernel, reply))]
    }
}

/// Returns a message as a packet.
fn arp_packet<T: Tracer>(kernel: &mut Kernel<T>, message: Message) -> QueuedPacket {
    // It has no IP header; this one gives traces the sender and the target.
    let ip = Header { ttl: 1, ..header(message.sender.1, message.target.1, Protocol::Udp) };
    let to = match message.operation {
        Operation::Request => MacAddr::BROADCAST,
        Operation::Reply => message.target.0,
    };
    let packet = Packet {
        len_bytes: LEN as u32,
        ..kernel.new_packet(ip, Body::Arp(message), 0, PacketAccount::Control)
    };
    QueuedPacket { handle: kernel.packets.insert(packet), to, class: Class::Data }
}
