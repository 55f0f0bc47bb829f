//! What the layers below tell a transport endpoint.

/// A report of the network layer about the path to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// There is no route: an explicit link failure notification (ELFN; TPA §3.3).
    RouteLost,
    /// There is a route again after [`RouteLost`](Self::RouteLost).
    RouteFound,
    /// The peer's packets arrive over this many hops, at least 1. Told when it changes.
    PathLength {
        /// Hops between the peer and us.
        hops: u8,
    },
}
