//! Flow state (RFC 4728 §7): selects the packets of this node that announce their source route.
//!
//! The nodes on the path of an established flow know it. Its packets need no source route, and a node that overhears them
//! learns nothing. Here packets carry their source route nonetheless; the model restricts the nodes that read it.

use super::config::SourceRoutes;
use super::types::Flow;
use crate::address_map::AddressMap;
use hopline_core::Instant;
use hopline_wire::dsr::Addresses;
use std::net::Ipv4Addr;

/// The flow to each destination, over the path used last.
#[derive(Clone, Debug)]
pub(super) struct FlowTable(AddressMap<AnnouncedFlow>);

#[derive(Clone, Debug)]
struct AnnouncedFlow {
    path: Addresses,
    packets: u8,
    last_announced: Instant,
}

impl FlowTable {
    pub(super) fn new(limit: u32) -> Self {
        Self(AddressMap::new(limit))
    }

    /// Returns the flow state of a packet that leaves along `path`. A flow without room in the table is never established.
    pub(super) fn record_packet(&mut self, now: Instant, path: &[Ipv4Addr], routes: SourceRoutes) -> Flow {
        let (SourceRoutes::Announced { packets, every }, Some(&destination)) = (routes, path.last()) else {
            return Flow::Announced;
        };
        let Some(flow) = self.0.get_mut(destination) else {
            let path = Addresses::from_slice(path);
            self.0.insert_new(destination, AnnouncedFlow { path, packets: 1, last_announced: now });
            return Flow::Announced;
        };
        if flow.path.as_slice() != path {
            *flow = AnnouncedFlow { path: Addresses::from_slice(path), packets: 0, last_announced: now };
        } else if flow.packets >= packets && now.since(flow.last_announced) <= every {
            return Flow::Established;
        }
        flow.packets = flow.packets.saturating_add(1);
        flow.last_announced = now;
        Flow::Announced
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_core::Duration;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const ROUTES: SourceRoutes = SourceRoutes::Announced { packets: 3, every: Duration::from_secs(5) };

    #[test]
    fn a_route_is_announced_by_the_first_packets_and_then_periodically() {
        let mut flows = FlowTable::new(4);
        let told = |flows: &mut FlowTable, tenths: u64, path: &[Ipv4Addr]| {
            flows.record_packet(Instant::from_millis(tenths * 100), path, ROUTES) == Flow::Announced
        };
        let found: Vec<u64> = (0..200).filter(|&tenths| told(&mut flows, tenths, &[A, B])).collect();
        assert_eq!(found, [0, 1, 2, 53, 104, 155]);
        assert!(told(&mut flows, 200, &[B]), "another way is another flow");
        assert!(told(&mut flows, 200, &[A]), "and so is another destination");
    }

    #[test]
    fn every_packet_announces_its_route_without_flows_or_table_space() {
        let mut flows = FlowTable::new(1);
        for _ in 0..9 {
            assert_eq!(flows.record_packet(Instant::ZERO, &[A], SourceRoutes::InEach), Flow::Announced);
        }
        flows.record_packet(Instant::ZERO, &[A], ROUTES);
        for _ in 0..9 {
            assert_eq!(flows.record_packet(Instant::ZERO, &[B], ROUTES), Flow::Announced);
        }
    }
}
