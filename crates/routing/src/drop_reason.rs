//! Reasons for which a routing agent drops a data packet.

use core::fmt;

/// Reason for which a data packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// No route at a relay (RFC 3561 §6.11 case ii; RFC 4728 §8.3.6: and no route for salvaging).
    NoRoute,
    /// No reply answered the route requests (RFC 3561 §6.3; RFC 4728 §8.2.1).
    DiscoveryFailed,
    /// The route was not repaired (RFC 3561 §6.12).
    RepairFailed,
    /// The oldest packet in a full buffer.
    BufferFull,
    /// Waited too long for a route.
    BufferTimeout,
    /// The link layer could not deliver it to the next hop.
    LinkFailure,
    /// Came back to its source.
    RoutingLoop,
    /// Destination is this node, or no host.
    Unroutable,
    /// Invalid source route (RFC 4728 §8.1.5).
    BadRoute,
    /// Time to live expired.
    TtlExpired,
}

impl DropReason {
    /// Short text for traces and packet comments.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoRoute => "no route",
            Self::DiscoveryFailed => "route discovery failed",
            Self::RepairFailed => "local repair failed",
            Self::BufferFull => "send buffer full",
            Self::BufferTimeout => "waited too long for a route",
            Self::LinkFailure => "link failure",
            Self::RoutingLoop => "routing loop",
            Self::Unroutable => "destination cannot be routed to",
            Self::BadRoute => "source route makes no sense",
            Self::TtlExpired => "hop limit exceeded",
        }
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
