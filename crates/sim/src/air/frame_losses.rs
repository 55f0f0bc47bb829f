//! Reports to the tracer about frames that were not received.

use super::medium::Receiver;
use super::{Air, Station};
use crate::kernel::Kernel;
use crate::trace::{FrameLossReason, Signal, TraceEvent, Tracer};
use hopline_core::LinkId;

impl Air {
    /// Reports to the tracer a frame that was not received by a station that it was for. A weak one is
    /// reported only if it was for this station alone: every node is out of reach of some other.
    pub(super) fn trace_lost_frame<T: Tracer>(
        &mut self,
        kernel: &mut Kernel<T>,
        flight: u32,
        heard: Receiver,
        why: FrameLossReason,
    ) {
        let (at, flight) = (heard.station, self.medium.transmission(flight));
        let Station { node, address, .. } = self.stations[at.index()];
        let ra = flight.frame.ra();
        if ra != address && !(ra.is_group() && why != FrameLossReason::BelowSensitivity) {
            return;
        }
        let others = self.signals.overlapping_signals(at, flight, heard.delay);
        let why = match why {
            FrameLossReason::Collision if others.iter().any(|other| other.node == node) => {
                FrameLossReason::Transmitting
            }
            // The noise alone was too much for a frame that nothing else met.
            FrameLossReason::Collision if others.is_empty() => FrameLossReason::Errors,
            why => why,
        };
        let frame = &flight.frame.map(|body| kernel.packets.view(body));
        let signal = Signal { node: flight.from, since: flight.start };
        let link = LinkId(u32::from(self.interfaces[at.index()].number));
        kernel.tracer.trace(
            kernel.now,
            node,
            TraceEvent::FrameLost { link, frame, signal, reason: why, others },
        );
    }
}
