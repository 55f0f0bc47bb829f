//! Hosts of an emulation: a network namespace with a TAP interface for each node.

use hopline_core::NodeId;
use hopline_linux::{Error, Interface, Namespace, Network, Tap, netns};
use hopline_wire::dot11::MacAddr;
use std::fs;

/// Name of the interface of each node.
pub const INTERFACE: &str = "air0";

/// Prefix of the network of all nodes: those that a radio reaches answer ARP requests.
const PREFIX: u8 = 8;

/// Settings of a host, before its interface exists. A node forwards packets of others over the interface by which they
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
}

impl Host {
    /// Creates the host of a node, with the node's addresses. Returns its interface too.
    pub(crate) fn new(node: NodeId, name: &str) -> Result<(Self, Tap), Error> {
        let namespace = Namespace::new()?;
        let tap = namespace.run(|| interface(node))??;
        Ok((Self { node, name: name.to_owned(), namespace }, tap))
    }

    /// Adds routes to nodes, each through a neighbour.
    pub(crate) fn add_routes(&self, routes: impl Iterator<Item = (NodeId, NodeId)>) -> Result<(), Error> {
        let routes: Vec<_> = routes.collect();
        self.namespace.run(|| {
            let interface = Interface::named(INTERFACE)?;
            for (to, next) in routes {
                let network = Network { address: to.ipv4().into(), prefix: 32 };
                interface.route(network, Some(next.ipv4().into()))?;
            }
            Ok(())
        })?
    }
}

/// Creates the interface of a node in the namespace of this thread.
fn interface(node: NodeId) -> Result<Tap, Error> {
    netns::make_settings_writable()?;
    for (name, value) in SETTINGS {
        set(name, value)?;
    }
    for (name, value) in SETTINGS_V6 {
        // Without IPv6 there is no such file.
        let _ = set(name, value);
    }
    let tap = Tap::open(INTERFACE)?;
    let interface = Interface::named(tap.name())?;
    interface.set_mac_address(MacAddr::of_node(node).0)?;
    interface.set_address(node.ipv4(), PREFIX)?;
    interface.up_with_multicast()?;
    Ok(tap)
}

fn set(name: &str, value: &str) -> Result<(), Error> {
    let path = format!("/proc/sys/net/{name}");
    fs::write(&path, value).map_err(|e| Error::new(format!("writing {path}"), e))
}
