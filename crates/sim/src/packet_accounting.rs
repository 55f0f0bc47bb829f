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
    pub(crate) fn check_packet_conservation(&self) {
        if self.kernel.failure.is_some() {
            return;
        }
        let (accounted, found) = (self.kernel.packets.holders(), self.held_packets());
        assert_eq!(
            accounted, found,
            "of {accounted} packets that are under way, {found} are somewhere: a defect of hopline"
        );
        let untold = self.kernel.packets.unaccounted();
        assert_eq!(
            untold, 0,
            "{untold} packets of flows or frames of taps have neither arrived nor been counted as dropped: a defect of hopline"
        );
        for tap in self.taps.nodes() {
            let counts = self.tap_counts(tap);
            let known = counts.delivered + counts.dropped.total() + counts.held;
            assert_eq!(
                counts.accepted, known,
                "of {} frames that came in at {tap}, {known} are accounted for: a defect of hopline",
                counts.accepted
            );
        }
    }

    /// Returns the number of packets that all parts of the network have. A copy counts as one.
    fn held_packets(&self) -> usize {
        let of_nodes = self.nodes.iter().map(|node| {
            let agent = node.agent.as_ref().map_or(0, |agent| agent.agent.held_packets());
            let path = node.middleboxes.iter().map(|seat| seat.middlebox.held_packets()).sum::<usize>();
            let station = node
                .mobility_role()
                .and_then(|role| role.station.as_ref())
                .map_or(0, |station| station.buffered_packets());
            agent + path + station
        });
        let of_air = self.air.as_ref().map_or(0, |air| air.held_packets());
        of_nodes.sum::<usize>() + of_air + self.wires.held_packets() + self.kernel.packets.inner_holders()
    }
}
