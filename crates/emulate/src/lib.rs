//! Real programs over simulated radios, in real time.
//!
//! [`Emulation::start`] makes a network namespace for each node of a network, with a TAP interface for each of its
//! [`HostInterface`]s. One thread carries the frames of all TAPs through a simulated [`World`](hopline_sim::World), which
//! it runs by the real clock. [`Emulation::finish`] returns what the network did, and how late the thread was. All
//! namespaces and interfaces vanish with the value, or with the process.
//!
//! The crate is empty on systems other than Linux.

#![cfg(target_os = "linux")]

mod carrier;
mod flows;
mod host;
mod links;
mod observers;
mod page_request;
mod report;
mod tap_set;
mod writer;

pub use carrier::Progress;
#[doc(hidden)]
pub use flows::flow_in_frame;
pub use flows::{FlowProtocol, RealFlow, RealFlows};
pub use links::{LinkSecond, RecordedLink};
pub use observers::{Capture, EventFunction, LinkMeasurement, Observation, Observed, Observer, Observers};
pub use page_request::{PageAnswer, answer_to_request};
pub use report::{HostReport, NetworkReport, Report};
pub use writer::{BackgroundWriter, BlockSink, background_writer};

use carrier::Carrier;
use hopline_core::NodeId;
use hopline_linux::{Error, Namespace};
use hopline_sim::{HostInterface, Spec};
use host::Host;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// Largest number of nodes with hosts: each has a namespace, which takes some milliseconds to create.
pub const MAX_NODES: usize = 500;

/// Routes that the kernels of the nodes have at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelRoutes {
    /// To each node along the shortest path over the first positions, as static routing of simulated runs.
    Shortest,
    /// To neighbours alone. A routing daemon adds others.
    Neighbours,
}

/// A network with a real host at each node, joined by a simulated medium.
#[derive(Debug)]
pub struct Emulation {
    // Dropped in this order: the thread and its interfaces, then the namespaces.
    carrier: Carrier,
    hosts: Vec<Host>,
}

impl Emulation {
    /// Creates hosts at these nodes of `spec`, and starts its run number `run` now, as `observed`. These nodes become
    /// Ethernet taps; other nodes are simulated alone.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without privileges: it needs root or a user namespace, and `/dev/net/tun`.
    ///
    /// # Panics
    /// If these are more than [`MAX_NODES`] nodes.
    pub fn start(
        spec: &Spec,
        run: u64,
        at: &BTreeSet<NodeId>,
        routes: KernelRoutes,
        observed: Observation,
    ) -> Result<Self, Error> {
        assert!(at.len() <= MAX_NODES, "the caller checks the number of nodes");
        let spec = Spec { ethernet_taps: at.clone(), ..spec.clone() };
        let (mut hosts, mut taps) = (Vec::new(), Vec::new());
        for &node in at {
            let interfaces = HostInterface::at(&spec, node);
            let (host, of_host) = Host::new(node, &spec.nodes[node.index()].name, interfaces)?;
            hosts.push(host);
            taps.extend(of_host);
        }
        if routes == KernelRoutes::Shortest {
            // Routes are computed to the nodes that send or receive: here to all.
            let every = Spec { taps: at.clone(), ..spec.clone() };
            let routes = hopline_sim::routes::shortest(&every);
            for host in &hosts {
                let to_others = hosts.iter().filter(|other| other.node != host.node);
                host.add_routes(to_others.filter_map(|to| {
                    let next = routes.next_hop(host.node, to.node)?;
                    // A simulated node alone forwards no frames.
                    (next != to.node && at.contains(&next)).then_some((to.node, next))
                }))?;
            }
        }
        Ok(Self { carrier: Carrier::start(spec, run, taps, observed)?, hosts })
    }

    /// Returns the name, the IPv4 address and the namespace of each node with a host.
    pub fn hosts(&self) -> impl Iterator<Item = (&str, Ipv4Addr, &Namespace)> {
        self.hosts.iter().map(|host| (&*host.name, host.node.ipv4(), &host.namespace))
    }

    /// Returns the state, at most some hundred milliseconds old while the network has events.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.carrier.progress()
    }

    /// Returns whether the thread that carries the frames has ended by itself: a defect, or a failed algorithm.
    #[must_use]
    pub fn has_stopped(&self) -> bool {
        self.carrier.has_stopped()
    }

    /// Ends the emulation. `None` if its thread panicked, which it has reported on stderr.
    #[must_use]
    pub fn finish(self) -> Option<Report> {
        let names = self.hosts.iter().map(|host| host.name.clone()).collect();
        self.carrier.finish(names)
    }
}
