//! Hosts of an emulation: a network namespace with TAP interfaces for each node.

use crate::tap_set::HostTap;
use hopline_core::NodeId;
use hopline_linux::{Error, Interface, Namespace, Network, Tun, netns};
use hopline_sim::{HostInterface, Medium};
use hopline_wire::dot11::MacAddr;
use std::fs;

/// Prefix of the network of all nodes: those that a radio reaches answer ARP requests.
const PREFIX: u8 = 8;
/// Prefix of the same address at the interface of a wire, which reaches one node.
const WIRE_PREFIX: u8 = 32;

/// Settings of a host, before its interfaces exist. A node forwards packets of others over the interface by which they
/// came, which an ordinary router reports to the sender as a detour (ICMP Redirect).
const SETTINGS: [(&str, &str); 5] = [
    ("ipv4/ip_forward", "1"),
    ("ipv4/conf/all/send_redirects", "0"),
    ("ipv4/conf/default/send_redirects", "0"),
    ("ipv4/conf/all/accept_redirects", "0"),
    ("ipv4/conf/default/accept_redirects", "0"),
];

/// The same of IPv6, which a kernel may lack. An idle host sends as little as possible.
const SETTINGS_V6: [(&str, &str); 3] = [
    ("ipv6/conf/all/forwarding", "1"),
    ("ipv6/conf/default/accept_dad", "0"),
    ("ipv6/conf/default/router_solicitations", "0"),
];

/// Host at a node.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) node: NodeId,
    pub(crate) name: String,
    pub(crate) namespace: Namespace,
    interfaces: Vec<HostInterface>,
}

impl Host {
    /// Creates the host of a node, with the node's addresses and routes over its wires. Returns its interfaces too.
    pub(crate) fn new(
        node: NodeId,
        name: &str,
        interfaces: Vec<HostInterface>,
    ) -> Result<(Self, Vec<HostTap>), Error> {
        let namespace = Namespace::new()?;
        let taps = namespace.run(|| {
            prepare()?;
            interfaces.iter().map(|interface| open(node, interface)).collect::<Result<_, Error>>()
        })??;
        Ok((Self { node, name: name.to_owned(), namespace, interfaces }, taps))
    }

    /// Adds routes to nodes, each through a neighbour.
    pub(crate) fn add_routes(&self, routes: impl Iterator<Item = (NodeId, NodeId)>) -> Result<(), Error> {
        let routes: Vec<_> = routes.collect();
        self.namespace.run(|| {
            for (to, next) in routes {
                Interface::named(self.towards(next))?.route(host_network(to), Some(next.ipv4().into()))?;
            }
            Ok(())
        })?
    }

    /// Returns the name of the interface that leads to a neighbour.
    fn towards(&self, neighbour: NodeId) -> &str {
        let wire = |interface: &&HostInterface| interface.medium == Some(Medium::Wire(neighbour));
        self.interfaces.iter().find(wire).map_or(HostInterface::NAME, |interface| &interface.name)
    }
}

/// Returns the network of a node alone.
fn host_network(node: NodeId) -> Network {
    Network { address: node.ipv4().into(), prefix: 32 }
}

/// Applies the settings of a host to the namespace of this thread.
fn prepare() -> Result<(), Error> {
    netns::make_settings_writable()?;
    for (name, value) in SETTINGS {
        set(name, value)?;
    }
    for (name, value) in SETTINGS_V6 {
        // Without IPv6 there is no such file.
        let _ = set(name, value);
    }
    Ok(())
}

/// Opens an interface of a node in the namespace of this thread. All interfaces of the node have its addresses.
fn open(node: NodeId, of_host: &HostInterface) -> Result<HostTap, Error> {
    let tap = Tun::open_tap(&of_host.name)?;
    let interface = Interface::named(tap.name())?;
    interface.set_mac_address(MacAddr::of_node(node).0)?;
    let prefix = if let Some(Medium::Wire(_)) = of_host.medium { WIRE_PREFIX } else { PREFIX };
    interface.set_address(node.ipv4(), prefix)?;
    interface.up_with_multicast()?;
    if let Some(Medium::Wire(neighbour)) = of_host.medium {
        interface.route(host_network(neighbour), None)?;
    }
    Ok(HostTap::new(node, of_host.medium, tap))
}

fn set(name: &str, value: &str) -> Result<(), Error> {
    let path = format!("/proc/sys/net/{name}");
    fs::write(&path, value).map_err(|e| Error::new(format!("writing {path}"), e))
}
