//! What makes up a node. Transport endpoints belong to the flows.

use crate::air::StationId;
use crate::alarm::Alarm;
use crate::packet::Handle;
use crate::seat::Seat;
use crate::spec::{NodeSpec, RoutingSpec, Spec};
use crate::wired::WireEnd;
use hopline_core::{LinkId, NodeId, Purpose, Stream};
use hopline_routing::aodv::Aodv;
use hopline_routing::dsr::Dsr;
use hopline_routing::olsr::Olsr;
use hopline_routing::router;

/// A node: its interfaces, its routing agent, and what stands in the path of its packets.
#[derive(Debug)]
pub(crate) struct Node {
    /// By [`LinkId`]: radios, wires in the order in which the network names them, a tap.
    pub(crate) interfaces: Vec<Interface>,
    /// Boxed: most events of a node do not touch it.
    pub(crate) agent: Option<Box<Agent>>,
    /// What packets pass, from the interfaces inward.
    pub(crate) path: Vec<Seat>,
}

/// What a node sends and receives by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interface {
    Radio(StationId),
    Wire {
        neighbour: NodeId,
        end: WireEnd,
    },
    /// Where packets from outside come in and leave.
    Tap,
}

/// An interface as a packet passes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) link: LinkId,
    pub(crate) interface: Interface,
}

/// A routing agent and when it will be woken.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) machine: router::Agent<Handle>,
    pub(crate) alarm: Alarm,
}

impl Node {
    /// The interface that `is` says.
    pub(crate) fn port(&self, is: impl Fn(&Interface) -> bool) -> Option<Port> {
        let at = self.interfaces.iter().position(is)?;
        Some(Port { link: LinkId(at as u32), interface: self.interfaces[at] })
    }
}

impl Agent {
    /// The agent of `node`, if those of `spec` with a radio have one.
    fn of(spec: &Spec, node: NodeId, run: u64) -> Option<Box<Self>> {
        let (address, stream) = (node.ipv4(), || Stream::new(spec.seed, run, node, Purpose::Routing));
        let machine = match &spec.routing {
            RoutingSpec::Static => return None,
            RoutingSpec::Aodv(config) => router::Agent::Aodv(Aodv::new(*config, address, stream())),
            RoutingSpec::Olsr(config) => router::Agent::Olsr(Olsr::new(*config, address, stream())),
            RoutingSpec::Dsr(config) => router::Agent::Dsr(Dsr::new(*config, address, stream())),
        };
        Some(Box::new(Self { machine, alarm: Alarm::OFF }))
    }
}

/// All nodes of `spec`. `seats`: what stands in the path of a node.
pub(crate) fn nodes(spec: &Spec, run: u64, seats: impl Fn(NodeId) -> Vec<Seat>) -> Vec<Node> {
    let mut stations = (0..).map(StationId);
    let node = |(id, of): (NodeId, &NodeSpec)| Node {
        interfaces: stations.by_ref().take(of.radios.len()).map(Interface::Radio).collect(),
        agent: of.is_wireless().then(|| Agent::of(spec, id, run)).flatten(),
        path: seats(id),
    };
    let mut nodes: Vec<Node> = (0..).map(NodeId).zip(&spec.nodes).map(node).collect();
    for (link, ends) in (0..).zip(&spec.links) {
        for (side, at, neighbour) in [(0, ends.a, ends.b), (1, ends.b, ends.a)] {
            let end = WireEnd { link, side };
            nodes[at.index()].interfaces.push(Interface::Wire { neighbour, end });
        }
    }
    for tap in &spec.taps {
        nodes[tap.index()].interfaces.push(Interface::Tap);
    }
    nodes
}
