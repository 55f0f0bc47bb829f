//! Events of a MAC: packets for the network layer, and transmissions that are over.

use super::{Air, StationEvent};
use crate::event::Event;
use crate::ids::StationId;
use crate::kernel::Kernel;
use crate::packet::Handle;
use crate::trace::{DropLocation, DropReason, Tracer};
use hopline_core::{Instant, NodeId};
use hopline_radio::mac;
use hopline_wire::dot11::MacAddr;

impl Air {
    pub(super) fn handle_mac_event<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        at: StationId,
        event: mac::Event<Handle>,
    ) -> Option<StationEvent> {
        match event {
            mac::Event::Deliver { body, from, .. } => {
                kernel.packets.retain(body);
                self.pass_up(kernel, at, body, from)
            }
            mac::Event::Buffered { body } => {
                kernel.packets.retain(body);
                None
            }
            mac::Event::DeliverBuffered { body, from } => self.pass_up(kernel, at, body, from),
            mac::Event::Sent(msdu) => {
                kernel.packets.release(msdu.body);
                None
            }
            mac::Event::Failed(msdu) => {
                Some(StationEvent::Failed { handle: msdu.body, to: self.node_of(msdu.to) })
            }
            mac::Event::Overheard { body, from, to } => self.overhear(kernel.now, at, body, (from, to)),
        }
    }

    /// Hands a packet upward, through the link layer, and with it the share that was taken in it.
    fn pass_up<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        at: StationId,
        handle: Handle,
        from: MacAddr,
    ) -> Option<StationEvent> {
        if self.link_layer_delay.is_zero() {
            return self.deliver_up(kernel, at, handle, from);
        }
        self.stations[at.index()].receiving_delay.push_back((handle, from));
        kernel.schedule(kernel.now + self.link_layer_delay, Event::LinkLayerUp { station: at });
        None
    }

    /// Hands a packet from the link layer of a station to the network layer.
    pub(super) fn deliver_up<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        at: StationId,
        handle: Handle,
        from: MacAddr,
    ) -> Option<StationEvent> {
        let node = self.node(at);
        let Some(from) = self.node_of(from) else {
            kernel.packets.release(handle);
            return None;
        };
        if self.is_filtered(kernel.now, from, node) {
            kernel.drop_at(DropLocation::Radio, node, handle, DropReason::Outage);
            return None;
        }
        Some(StationEvent::Arrived { handle, from })
    }

    fn overhear(
        &self,
        now: Instant,
        at: StationId,
        handle: Handle,
        (from, to): (MacAddr, MacAddr),
    ) -> Option<StationEvent> {
        let (from, to) = (self.node_of(from)?, self.node_of(to)?);
        let heard = !self.is_filtered(now, from, self.node(at));
        heard.then_some(StationEvent::Overheard { handle, from, to })
    }

    fn is_filtered(&self, now: Instant, from: NodeId, to: NodeId) -> bool {
        !self.filters.is_empty() && self.filters.covers(now, from, to)
    }
}
