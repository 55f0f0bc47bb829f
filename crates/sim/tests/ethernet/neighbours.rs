//! Taps beside the simulator's own agents and protocols.

use super::{Dialogue, experiment, near, tap};
use crate::support::{SpecBuilder, chain};
use hopline_core::NodeId;
use hopline_routing::{aodv, dsr, olsr};
use hopline_sim::spec::AddressResolution;
use hopline_sim::{Spec, simulate};
use hopline_wire::dot11::MacAddr;

/// A network of three nodes in a row with each kind of agent.
fn with_each_agent() -> [Spec; 3] {
    [
        chain(2).aodv(aodv::Config::rfc3561()),
        chain(2).olsr(olsr::Config::rfc3626()),
        chain(2).dsr(dsr::Config::rfc4728()),
    ]
}

#[test]
fn nodes_with_a_tap_run_no_routing_agent() {
    for spec in with_each_agent() {
        let spec = spec.cbr(1, 2, 100, hopline_core::Duration::from_millis(100));
        let routing = |spec: Spec| simulate(&spec, 1).nodes.iter().map(|node| node.routing_packets).sum();
        let (with, without): (u64, u64) = (routing(spec.clone()), routing(spec.ethernet_taps(0..3)));
        assert!(with > 0 && without == 0, "{with} and {without} routing packets");
    }
}

#[test]
fn agents_of_other_nodes_leave_frames_alone() {
    for spec in with_each_agent() {
        // Node 0 is out of range of node 2, and no agent finds a route for it.
        let mut talk = Dialogue::new(&spec.ethernet_taps([0, 2]));
        talk.inject(3_000, 0, &experiment(tap(0), tap(2), 50));
        talk.inject(4_000, 0, &experiment(tap(0), tap(1), 50));
        talk.inject(5_000, 0, &experiment(tap(0), MacAddr::BROADCAST, 50));
        assert_eq!(talk.left_at(6_000), [] as [u32; 0]);
        let dropped = talk.world.tap_counts(NodeId(0)).dropped;
        // Node 1, without a tap, has heard the other two.
        assert_eq!((dropped.retry_limit, dropped.no_route, dropped.total()), (1, 2, 3));
    }
}

#[test]
fn the_simulator_resolves_no_address_for_frames() {
    let spec = near(2).radio(|radio| radio.address_resolution = AddressResolution::Arp);
    let mut talk = Dialogue::new(&spec);
    talk.inject(100, 0, &experiment(tap(0), tap(1), 50));
    assert_eq!(talk.left_at(110), [1]);
    assert_eq!(talk.finish().nodes[0].frames.data, 1, "no request");
}
