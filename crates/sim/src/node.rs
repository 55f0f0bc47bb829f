//! Parts of a node. Transport endpoints belong to the flows.

use crate::alarm::WakeUp;
use crate::cells::{self, MobilityRole};
use crate::ids::{Interface, Port, StationId, WireEnd};
use crate::middlebox_slot::MiddleboxSlot;
use crate::outcome::HandoffLog;
use crate::packet::Handle;
use crate::spec::{NodeSpec, RoutingSpec, Spec};
use hopline_core::{LinkId, NodeId, Purpose, RandomStream};
use hopline_routing::aodv::Aodv;
use hopline_routing::dsr::Dsr;
use hopline_routing::olsr::Olsr;
use hopline_routing::router;

/// A node: its interfaces, its routing agent, and what stands in the path of its packets.
#[derive(Debug)]
pub(crate) struct Node {
    /// Interfaces, by [`LinkId`]: radios, wires in the order in which the network names them, a tap.
    pub(crate) interfaces: Vec<Interface>,
    /// Boxed: most events of a node do not touch it.
    pub(crate) agent: Option<Box<RoutingAgent>>,
    /// Middleboxes that packets pass, from the interfaces inward.
    pub(crate) middleboxes: Vec<MiddleboxSlot>,
    /// Its role for mobile hosts.
    mobility_role: Option<Box<MobilityRole>>,
    /// The IP identification of the last packet that it made.
    last_id: u16,
}

/// A routing agent and when it will be woken.
#[derive(Debug)]
pub(crate) struct RoutingAgent {
    pub(crate) agent: router::Agent<Handle>,
    pub(crate) wake_up: WakeUp,
}

impl Node {
    pub(crate) fn mobility_role(&self) -> Option<&MobilityRole> {
        self.mobility_role.as_deref()
    }

    pub(crate) fn mobility_role_mut(&mut self) -> Option<&mut MobilityRole> {
        self.mobility_role.as_deref_mut()
    }

    /// Returns the log of a mobile host.
    pub(crate) fn handoff_log(&mut self) -> Option<&mut HandoffLog> {
        self.mobility_role_mut()?.mobile.as_mut().map(|host| &mut host.log)
    }

    /// Returns the identification of the next packet that it makes: never zero, which stands for none.
    pub(crate) fn next_id(&mut self) -> u16 {
        self.last_id = self.last_id.checked_add(1).unwrap_or(1);
        self.last_id
    }

    /// Returns the interface that `is` says.
    pub(crate) fn port(&self, is: impl Fn(&Interface) -> bool) -> Option<Port> {
        let at = self.interfaces.iter().position(is)?;
        Some(Port { link: LinkId(at as u32), interface: self.interfaces[at] })
    }
}

impl RoutingAgent {
    /// Returns the agent of `node`, if those of `spec` with a radio have one.
    fn from_spec(spec: &Spec, node: NodeId, run: u64) -> Option<Box<Self>> {
        let (address, stream) = (node.ipv4(), || RandomStream::new(spec.seed, run, node, Purpose::Routing));
        let machine = match &spec.routing {
            RoutingSpec::Static => return None,
            RoutingSpec::Aodv(config) => router::Agent::Aodv(Aodv::new(*config, address, stream())),
            RoutingSpec::Olsr(config) => router::Agent::Olsr(Olsr::new(*config, address, stream())),
            RoutingSpec::Dsr(config) => router::Agent::Dsr(Dsr::new(*config, address, stream())),
        };
        Some(Box::new(Self { agent: machine, wake_up: WakeUp::OFF }))
    }
}

/// Returns all nodes of `spec`. `seats`: the middleboxes of a node.
pub(crate) fn nodes(spec: &Spec, run: u64, seats: impl Fn(NodeId) -> Vec<MiddleboxSlot>) -> Vec<Node> {
    let mut stations = (0..).map(StationId);
    let node = |(id, of): (NodeId, &NodeSpec)| Node {
        interfaces: stations.by_ref().take(of.radio_channels.len()).map(Interface::Radio).collect(),
        agent: spec.has_agent(id).then(|| RoutingAgent::from_spec(spec, id, run)).flatten(),
        middleboxes: seats(id),
        mobility_role: spec.cells.as_ref().and_then(|cells| cells::role(cells, id, (spec.seed, run))),
        last_id: RandomStream::new(spec.seed, run, id, Purpose::Identification).bits() as u16,
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
