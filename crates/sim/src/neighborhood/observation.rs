//! The queue that a node and its neighbours share, as it really is, beside the node's estimate of it.

use super::Neighborhood;
use crate::node::Node;
use crate::outcome::NeighborhoodSample;
use crate::packet::{Handle, Slab};
use crate::trace::Tracer;
use crate::world::{Event, World};
use hopline_core::Duration;
use hopline_wire::dot11::MacAddr;
use std::collections::BTreeSet;

/// Time between two looks: Tinterval as published. Each is the last thing that happens at its moment, so that it meets what the
/// node has made of the interval that ends there.
pub(crate) const OBSERVATION_INTERVAL: Duration = Duration::from_millis(100);

impl<T: Tracer> World<T> {
    /// Looks at the neighbourhoods of the nodes that are observed.
    pub(crate) fn observe_neighborhoods(&mut self) {
        for node in 0..self.nodes.len() as u32 {
            if self.nodes[node as usize].is_observed() {
                let queue_packets = self.neighborhood_queue(node);
                let neighborhood = self.nodes[node as usize].neighborhood.as_deref_mut();
                if let Some(Neighborhood { machine, series: Some(series), .. }) = neighborhood {
                    let (average, latest) = (machine.average(), machine.latest());
                    series.samples.push(NeighborhoodSample { at: self.now, queue_packets, average, latest });
                }
            }
        }
        self.scheduler.schedule_last(self.now + OBSERVATION_INTERVAL, Event::Observe);
    }

    /// NRED §4.2: packets of flows that wait at `node` and at its 1-hop neighbours, and those at its 2-hop neighbours that are
    /// for one of the 1-hop neighbours. A neighbour is who can decode the other's frames at this moment.
    fn neighborhood_queue(&mut self, node: u32) -> u32 {
        let near: BTreeSet<u32> = self.in_range(node).into_iter().collect();
        let within: BTreeSet<u32> = near.iter().copied().chain([node]).collect();
        let beyond: BTreeSet<u32> = near
            .iter()
            .flat_map(|&neighbour| self.in_range(neighbour))
            .filter(|n| !within.contains(n))
            .collect();
        let count = |node: u32, counts: &dyn Fn(MacAddr) -> bool| {
            let waiting = self.nodes[node as usize].waiting(&self.packets);
            waiting.filter(|to| counts(*to)).count() as u32
        };
        let for_near = |to: MacAddr| to.node().is_some_and(|to| near.contains(&to.0));
        let of_all = within.iter().map(|&n| count(n, &|_to| true)).sum::<u32>();
        of_all + beyond.iter().map(|&n| count(n, &for_near)).sum::<u32>()
    }
}

impl Node {
    /// Whether its neighbourhood is looked at.
    pub(crate) fn is_observed(&self) -> bool {
        self.neighborhood.as_ref().is_some_and(|neighborhood| neighborhood.series.is_some())
    }

    /// Next hops of the packets of flows that wait for the radio: on their way to the interface queue, in it, and with the MAC,
    /// which holds a packet until it is acknowledged or given up. What waits for a route does not wait for the channel.
    fn waiting(&self, packets: &Slab) -> impl Iterator<Item = MacAddr> {
        let is_traffic = |handle: Handle| packets.get(handle).is_traffic();
        self.radio.iter().flat_map(move |radio| {
            let queued = radio.down.iter().chain(radio.queue.iter()).map(|queued| (queued.handle, queued.to));
            let held = radio.mac.held().map(|msdu| (msdu.body, msdu.to));
            queued.chain(held).filter(move |(handle, _)| is_traffic(*handle)).map(|(_, to)| to)
        })
    }
}
