//! Conservation of packets, checked at the end of every run: what was made was received, was dropped for a reason that is
//! counted, or is still in some part of the network.

use crate::engine::Engine;
use crate::trace::Tracer;

impl<T: Tracer> Engine<T> {
    /// Checks that no packet has vanished.
    ///
    /// # Panics
    /// Packets are missing: a defect of the simulator, which makes every count of the run wrong. A run that a user-defined
    /// algorithm has ended in the middle of an event is not checked.
    pub(crate) fn check_accounts(&self) {
        if self.kernel.failure.is_some() {
            return;
        }
        let (accounted, found) = (self.kernel.packets.holders(), self.held_by_parts());
        assert_eq!(
            accounted, found,
            "of {accounted} packets that are under way, {found} are somewhere: a defect of hopline"
        );
        let untold = self.kernel.packets.untold();
        assert_eq!(
            untold, 0,
            "{untold} packets of flows have neither arrived nor been counted as dropped: a defect of hopline"
        );
    }

    /// Returns the number of packets that all parts of the network have. A copy counts as one.
    fn held_by_parts(&self) -> usize {
        let of_nodes = self.nodes.iter().map(|node| {
            let agent = node.agent.as_ref().map_or(0, |agent| agent.machine.held());
            let path = node.path.iter().map(|seat| seat.machine.held()).sum::<usize>();
            let station =
                node.role().and_then(|role| role.station.as_ref()).map_or(0, |station| station.held());
            agent + path + station
        });
        let of_air = self.air.as_ref().map_or(0, |air| air.held());
        of_nodes.sum::<usize>() + of_air + self.wires.held() + self.kernel.packets.within_packets()
    }
}
