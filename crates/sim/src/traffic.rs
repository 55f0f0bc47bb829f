//! Flows and the network beneath them: what endpoints and applications send goes to the network layer of their nodes.

use crate::engine::Engine;
use crate::event::Event;
use crate::flow::AppAction;
use crate::ids::Side;
use crate::trace::Tracer;
use hopline_core::Instant;
use hopline_transport::Signal;

impl<T: Tracer> Engine<T> {
    /// Starts the application of a flow.
    pub(crate) fn start_flow(&mut self, flow: u32) {
        let does = self.flows.start(&self.kernel, flow);
        self.perform_app_action(flow, does);
    }

    /// Handles the wake-up of an application.
    pub(crate) fn wake_application(&mut self, flow: u32) {
        let does = self.flows.wake_application(&self.kernel, flow);
        self.perform_app_action(flow, does);
    }

    /// Notifies an end of a flow about its route.
    pub(crate) fn signal(&mut self, flow: u32, side: Side, signal: Signal) {
        if self.flows.signal(&mut self.kernel, flow, side, signal) {
            self.process_endpoint(flow, side);
        }
    }

    /// Drains an endpoint: each packet is sent on before the next is made.
    pub(crate) fn process_endpoint(&mut self, flow: u32, side: Side) {
        while let Some(outgoing) = self.flows.poll(&mut self.kernel, flow, side) {
            self.originate(outgoing.from, outgoing.packet);
        }
    }

    fn perform_app_action(&mut self, flow: u32, does: AppAction) {
        match does {
            AppAction::None => {}
            AppAction::WaitUntil(due) => self.kernel.schedule(due, Event::Application { flow }),
            AppAction::DriveEndpoint(side, due) => {
                self.process_endpoint(flow, side);
                self.schedule_app_wake_up(flow, due);
            }
            AppAction::SendDatagram(outgoing, due) => {
                self.originate(outgoing.from, outgoing.packet);
                self.schedule_app_wake_up(flow, due);
            }
        }
    }

    fn schedule_app_wake_up(&mut self, flow: u32, due: Option<Instant>) {
        if let Some(due) = due {
            self.kernel.schedule(due, Event::Application { flow });
        }
    }
}
