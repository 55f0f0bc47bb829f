//! Endpoints of flows in a run: opened, notified, woken and drained, each with the application above it.

use super::connection::{App, Connection};
use super::exchange::UNLIMITED;
use super::{AppAction, Flow, FlowKind, Flows, OutgoingPacket};
use crate::custom::FailedInstance;
use crate::event::Event;
use crate::ids::Side;
use crate::kernel::Kernel;
use crate::packet::{Body, PacketAccount, header};
use crate::trace::{TraceEvent, Tracer, TransportEvent};
use hopline_core::{Instant, Length, Payload};
use hopline_transport::Signal;
use hopline_transport::any::Segment;
use hopline_wire::ipv4::{HEADER_LEN, Header};

impl Flows {
    /// Opens the connection of a flow; the data of the first message go with it.
    pub(super) fn open(&mut self, now: Instant, flow: u32) -> AppAction {
        let Some(connection) = self.connection(flow) else { return AppAction::None };
        let initiator = connection.app.initiator();
        connection.end(initiator.other()).endpoint.listen();
        connection.end(initiator).endpoint.connect(now);
        match &mut connection.app {
            App::Bulk { size } => {
                let size = *size;
                connection.send(now, initiator, size.unwrap_or(UNLIMITED));
                if size.is_some() {
                    connection.close(now, initiator);
                }
            }
            App::Exchange(exchange) => {
                let request_bytes = exchange.start_request(now);
                connection.send(now, initiator, request_bytes);
            }
            App::Recorded(_) => return AppAction::DriveEndpoint(initiator, connection.replay_due(now)),
        }
        AppAction::DriveEndpoint(initiator, None)
    }

    /// Stops the application of a flow: deliveries before now count, and a connection is aborted. Returns the
    /// side to drain.
    pub(crate) fn abort(&mut self, now: Instant, flow: u32) -> Option<Side> {
        let connection = self.connection(flow)?;
        let initiator = connection.app.initiator();
        connection.end(initiator).endpoint.abort(now);
        Some(initiator)
    }

    /// Continues an application: a client that has thought sends a request, or more of a recording is due.
    pub(super) fn continue_app(&mut self, now: Instant, flow: u32) -> AppAction {
        if now >= self.flows[flow as usize].stop {
            return AppAction::None;
        }
        let Some(connection) = self.connection(flow) else { return AppAction::None };
        match &mut connection.app {
            App::Exchange(exchange) => {
                let request_bytes = exchange.start_request(now);
                connection.send(now, Side::Sink, request_bytes);
                AppAction::DriveEndpoint(Side::Sink, None)
            }
            App::Recorded(_) => AppAction::DriveEndpoint(Side::Source, connection.replay_due(now)),
            App::Bulk { .. } => AppAction::None,
        }
    }

    /// Notifies the end at `side` about its route. Returns whether it is to be drained. Datagrams have no
    /// endpoint to notify, and a flow that has not begun or is over ignores it.
    pub(crate) fn signal<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        flow: u32,
        side: Side,
        signal: Signal,
    ) -> bool {
        let now = kernel.now;
        let state = &mut self.flows[flow as usize];
        if !(state.start..state.stop).contains(&now) {
            return false;
        }
        let FlowKind::Connection(connection) = &mut state.kind else { return false };
        connection.end(side).endpoint.handle_signal(now, signal);
        match signal {
            Signal::RouteLost => state.notifications.lost += 1,
            Signal::RouteFound => state.notifications.found += 1,
            _ => {}
        }
        if T::ENABLED {
            let node = if side == Side::Source { state.src } else { state.dst };
            kernel.tracer.trace(now, node, TraceEvent::Signalled { flow: state.id, signal });
        }
        true
    }

    /// Handles the wake-up of an endpoint. Returns whether it is to be drained.
    pub(crate) fn handle_timeout(&mut self, now: Instant, flow: u32, side: Side) -> bool {
        let Some(connection) = self.connection(flow) else { return false };
        let rings = connection.end(side).wake_up.is_due(now);
        if rings {
            connection.handle_timeout(now, side);
        }
        rings
    }

    /// Drains an endpoint until it has a packet to send: data go to the application, and in the end its wake-up is armed.
    pub(crate) fn poll<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        flow: u32,
        side: Side,
    ) -> Option<OutgoingPacket> {
        let now = kernel.now;
        let state = &mut self.flows[flow as usize];
        loop {
            let FlowKind::Connection(connection) = &mut state.kind else { return None };
            let end = connection.end(side);
            if let Some(segment) = end.endpoint.poll_transmit(now) {
                let outgoing = state.send_segment(kernel, side, segment);
                if let (true, Body::Segment(segment)) = (T::ENABLED, &outgoing.packet.body) {
                    let number = outgoing.packet.original.number;
                    state.trace(&mut kernel.tracer, now, side, TransportEvent::Sent { number, segment });
                }
                return Some(outgoing);
            } else if let Some(data) = end.endpoint.recv() {
                if let Some(at) = state.deliver_to_app(now, side, data.len()) {
                    kernel.schedule(at, Event::Application { flow });
                }
            } else if let Some(event) = end.endpoint.poll_event() {
                connection.handle_event(now, side, event);
            } else {
                if let Some(reason) = end.endpoint.take_custom_failure()
                    && let Some(id) = end.custom_congestion_control
                {
                    let node = if side == Side::Source { state.src } else { state.dst };
                    kernel.fail(FailedInstance::CongestionControl { id, flow: state.id, node }, reason);
                    return None;
                }
                let wanted = end.endpoint.poll_timeout();
                end.wake_up.set(now, wanted, &mut kernel.scheduler, Event::Endpoint { flow, side });
                state.trace(&mut kernel.tracer, now, side, TransportEvent::Drained);
                return None;
            }
        }
    }

    fn connection(&mut self, flow: u32) -> Option<&mut Connection> {
        match &mut self.flows[flow as usize].kind {
            FlowKind::Connection(connection) => Some(connection),
            FlowKind::Udp(_) => None,
        }
    }
}

impl Flow {
    /// Hands `len` bytes to the application at `side`, unless it has stopped. Returns when that wants to be woken.
    fn deliver_to_app(&mut self, now: Instant, side: Side, len: u64) -> Option<Instant> {
        if now >= self.stop {
            return None;
        }
        if side == Side::Sink {
            self.record_delivery(now, len);
        }
        match &mut self.kind {
            FlowKind::Connection(connection) => connection.deliver_to_app(now, side, len),
            FlowKind::Udp(_) => None,
        }
    }

    /// Traces an event of the endpoint at `side`.
    pub(super) fn trace<T: Tracer>(
        &self,
        tracer: &mut T,
        now: Instant,
        side: Side,
        event: TransportEvent<'_>,
    ) {
        if let (true, FlowKind::Connection(connection)) = (T::ENABLED, &self.kind) {
            let node = if side == Side::Source { self.src } else { self.dst };
            let endpoint = connection.endpoint(side);
            tracer.trace(now, node, TraceEvent::Transport { flow: self.id, side, endpoint, event });
        }
    }

    fn send_segment<T: Tracer>(
        &mut self,
        kernel: &Kernel<T>,
        side: Side,
        segment: Segment<Length>,
    ) -> OutgoingPacket {
        let (from, to) = match side {
            Side::Source => (self.src, self.dst),
            Side::Sink => (self.dst, self.src),
        };
        let ip = Header { ecn: segment.ecn(), ..header(from.ipv4(), to.ipv4(), segment.protocol()) };
        let len_bytes = (HEADER_LEN + segment.wire_len()) as u32;
        let packet = kernel.new_packet(ip, Body::Segment(segment), len_bytes, PacketAccount::Flow(self.id));
        self.send(side, packet)
    }
}
