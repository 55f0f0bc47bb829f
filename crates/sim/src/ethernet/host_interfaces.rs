//! Interfaces of the host outside that is joined to an Ethernet tap.

use super::Medium;
use crate::Spec;
use hopline_core::NodeId;

/// An interface of the host at a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostInterface {
    /// Its name: [`NAME`](Self::NAME), `wire0`, `wire1` and so on.
    pub name: String,
    /// The only medium that its frames use. `None`: all interfaces of the node.
    pub medium: Option<Medium>,
}

impl HostInterface {
    /// Name of the first interface of each host. At a node with radios and wires, it is that of the radios.
    pub const NAME: &str = "air0";

    /// Returns the interfaces of the host at `node`. A node with radios and wires has one for each medium, so that a program
    /// at a base station can tell its sides apart; any other node has one.
    ///
    /// Wires are in the order of [`Spec::links`]. One that leads to a node without an Ethernet tap has no interface, as no
    /// frame from outside comes over it.
    #[must_use]
    pub fn at(spec: &Spec, node: NodeId) -> Vec<Self> {
        let mut wired = Vec::new();
        for link in &spec.links {
            for (end, other) in [(link.a, link.b), (link.b, link.a)] {
                if end == node && spec.ethernet_taps.contains(&other) && !wired.contains(&other) {
                    wired.push(other);
                }
            }
        }
        let first = |medium| Self { name: Self::NAME.into(), medium };
        if spec.nodes[node.index()].radio_channels.is_empty() || wired.is_empty() {
            return vec![first(None)];
        }
        let wire = |(number, to)| Self { name: format!("wire{number}"), medium: Some(Medium::Wire(to)) };
        [first(Some(Medium::Radio))].into_iter().chain(wired.into_iter().enumerate().map(wire)).collect()
    }
}
