//! Signals of the lower layers to a transport endpoint.

/// Report of the network layer about the path to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signal {
    /// There is no route: an explicit link failure notification (ELFN; TPA §3.3).
    RouteLost,
    /// There is a route again after [`RouteLost`](Self::RouteLost).
    RouteFound,
    /// The peer's packets arrive over this many hops, at least 1. Reported when it changes.
    PathLength {
        /// Number of hops between the peer and us.
        hops: u8,
    },
}
