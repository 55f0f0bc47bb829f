//! Notifications of the ends of flows at a node, and reports to sources elsewhere.

use super::{FlowEnd, NodeNotifications};
use crate::engine::Engine;
use crate::packet::{Body, Handle, PacketAccount, header};
use crate::trace::{Tracer, emit};
use hopline_core::NodeId;
use hopline_routing::Router;
use hopline_transport::Signal;
use hopline_wire::icmp::{Unreachable, UnreachableCode};
use hopline_wire::ipv4::{HEADER_LEN, Protocol};
use std::net::Ipv4Addr;

impl<T: Tracer> Engine<T> {
    /// Records that the agent of `node` has no route to `destination` any more. Its ends are notified once
    /// the agent is drained, each time. An end that had nothing in flight at the first notification has
    /// ignored it, and one that has acted on it does nothing.
    pub(crate) fn record_broken_route(&mut self, node: NodeId, destination: Ipv4Addr) {
        if let Some(notifier) = &mut self.notifier {
            let bulletin = &mut notifier.by_node[node.index()];
            let concerns_us = bulletin.ends.iter().any(|end| end.routed_destination == Some(destination));
            if concerns_us && !bulletin.pending_losses.contains(&destination) {
                bulletin.pending_losses.push(destination);
            }
        }
    }

    /// Notifies the ends at `node` about changes of routes, after its agent has been drained.
    #[inline]
    pub(crate) fn notify_of_route_changes(&mut self, node: NodeId) {
        if self.notifier.is_some() {
            self.notify_of_losses(node);
            self.notify_of_recoveries(node);
        }
    }

    fn notify_of_losses(&mut self, node: NodeId) {
        while let Some(bulletin) = self.notifications_of(node)
            && let Some(towards) = bulletin.pending_losses.pop()
        {
            if !bulletin.reported_losses.contains(&towards) {
                bulletin.reported_losses.push(towards);
            }
            self.notify_ends(node, towards, Signal::RouteLost);
        }
    }

    fn notify_of_recoveries(&mut self, node: NodeId) {
        let now = self.kernel.now;
        loop {
            let Some(notifier) = &mut self.notifier else { return };
            let lost = &mut notifier.by_node[node.index()].reported_losses;
            let Some(agent) = &self.nodes[node.index()].agent else { return };
            let Some(at) = lost.iter().position(|towards| agent.agent.has_route(now, *towards)) else {
                return;
            };
            let towards = lost.remove(at);
            self.notify_ends(node, towards, Signal::RouteFound);
        }
    }

    fn notify_ends(&mut self, node: NodeId, towards: Ipv4Addr, signal: Signal) {
        let mut next = 0;
        // By index: an end that is notified may send, and the list is the world's.
        while let Some(bulletin) = self.notifications_of(node)
            && let Some(&end) = bulletin.ends.get(next)
        {
            next += 1;
            if end.routed_destination == Some(towards) {
                self.signal(end.flow, end.side, signal);
            }
        }
    }

    /// Reports to a packet's source that `node`, which still holds the packet, cannot pass it on, and no
    /// routing agent is to blame.
    pub(crate) fn report_unreachable(&mut self, node: NodeId, handle: Handle, reason: UnreachableCode) {
        if self.notifier.is_none() {
            return;
        }
        let packet = self.kernel.packets.get(handle);
        // RFC 1812 §4.3.2.7: nothing is said about ICMP errors. A packet of no flow has no end to notify.
        let (source, Some(flow)) = (packet.ip.src, packet.account.flow()) else { return };
        if source == node.ipv4() {
            let side = self.flows.side_of(flow, source);
            self.signal(flow.0, side, Signal::RouteLost);
            return;
        }
        let now = self.kernel.now;
        if self.notifications_of(node).is_none_or(|bulletin| bulletin.icmp_limit.take(now).is_err()) {
            return;
        }
        let mut bytes = Vec::new();
        emit(self.kernel.packets.view(handle), &mut bytes);
        if let Ok(report) = Unreachable::for_packet(reason, &bytes) {
            self.send_icmp(node, source, report);
        }
    }

    fn send_icmp(&mut self, node: NodeId, to: Ipv4Addr, report: Unreachable) {
        let ip = header(node.ipv4(), to, Protocol::Icmp);
        let len_bytes = (HEADER_LEN + Unreachable::LEN) as u32;
        let packet = self.kernel.new_packet(ip, Body::Icmp(report), len_bytes, PacketAccount::Control);
        self.originate(node, packet);
    }

    /// Handles a report to `node` that a packet it sent did not arrive: its end that sent it is notified (RFC
    /// 1122 §4.2.3.9).
    pub(crate) fn receive_icmp(&mut self, node: NodeId, report: &Unreachable) {
        let Some(ports) = report.ports() else { return };
        if report.ip.src != node.ipv4() {
            return;
        }
        let Some(notifier) = &self.notifier else { return };
        let sender = notifier.by_node[node.index()]
            .ends
            .iter()
            .find(|end| end.peer == report.ip.dst && self.flows.ports_from(end.flow, end.side) == ports);
        if let Some(&FlowEnd { flow, side, .. }) = sender {
            self.signal(flow, side, Signal::RouteLost);
        }
    }

    fn notifications_of(&mut self, node: NodeId) -> Option<&mut NodeNotifications> {
        self.notifier.as_mut().map(|notifier| &mut notifier.by_node[node.index()])
    }
}
