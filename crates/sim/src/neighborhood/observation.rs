//! The queue that a node and its neighbours share, as it really is, beside the node's estimate of it.

use super::{Neighborhood, OBSERVATION_INTERVAL};
use crate::engine::Engine;
use crate::event::Event;
use crate::node::Node;
use crate::trace::Tracer;
use hopline_core::NodeId;
use std::collections::BTreeSet;

impl<T: Tracer> Engine<T> {
    /// Looks at the neighbourhoods of the nodes that are observed.
    pub(crate) fn sample_neighborhoods(&mut self) {
        let now = self.kernel.now;
        for node in 0..self.nodes.len() {
            if self.nodes[node].is_observed() {
                let queue_packets = self.neighborhood_queue(NodeId(node as u32));
                if let Some(Neighborhood { red: machine, series: Some(series), .. }) =
                    self.nodes[node].neighborhood_mut()
                {
                    series.add(now, queue_packets, (machine.average(), machine.latest()));
                }
            }
        }
        self.kernel.scheduler.schedule_last(now + OBSERVATION_INTERVAL, Event::Observe);
    }

    /// Returns the neighbourhood queue (NRED §4.2): the packets of flows that wait at `node` and at its 1-hop
    /// neighbours, and those at its 2-hop neighbours that are for one of the 1-hop neighbours. A neighbour is
    /// a node that can decode the other's frames at this moment.
    fn neighborhood_queue(&mut self, node: NodeId) -> u32 {
        let near = self.in_range(node);
        let within: BTreeSet<NodeId> = near.iter().copied().chain([node]).collect();
        let beyond: BTreeSet<NodeId> = near.iter().flat_map(|&neighbour| self.in_range(neighbour)).collect();
        let beyond = beyond.difference(&within);
        let of_all = within.iter().map(|&n| self.waiting_flow_packets(n, |_to| true)).sum::<u32>();
        let for_near = |to: Option<NodeId>| to.is_some_and(|to| near.contains(&to));
        of_all + beyond.map(|&n| self.waiting_flow_packets(n, for_near)).sum::<u32>()
    }

    /// Returns the nodes that decode the frames of a node, were nothing else on the air now.
    fn in_range(&mut self, node: NodeId) -> BTreeSet<NodeId> {
        let now = self.kernel.now;
        let Some(air) = &mut self.air else { return BTreeSet::new() };
        let mut near = BTreeSet::new();
        for station in air.stations(node) {
            near.extend(air.in_range(now, station));
        }
        near
    }

    /// Returns the number of packets of flows that wait for a radio of `node`, and for a next hop that
    /// `counts`. A packet that waits for a route does not wait for the channel.
    fn waiting_flow_packets(&self, node: NodeId, counts: impl Fn(Option<NodeId>) -> bool) -> u32 {
        let Some(air) = &self.air else { return 0 };
        let waiting = air.stations(node).flat_map(|station| air.waiting_packets(station));
        let counted =
            waiting.filter(|&(handle, to)| self.kernel.packets.get(handle).is_traffic() && counts(to));
        counted.count() as u32
    }
}

impl Node {
    /// Returns whether its neighbourhood is sampled.
    pub(crate) fn is_observed(&self) -> bool {
        self.neighborhood().is_some_and(|neighborhood| neighborhood.series.is_some())
    }
}
