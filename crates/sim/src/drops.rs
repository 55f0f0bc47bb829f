//! Reasons for which packets are dropped, and counts of them.

use hopline_routing::DropReason as RoutingDrop;

/// Reason for which a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The interface queue was full.
    QueueFull,
    /// Early drop by the interface queue, as a congestion signal before it was full.
    Early,
    /// Neighborhood RED spared the neighborhood a packet.
    Neighborhood,
    /// The MAC gave up after its last retry; or a link that repairs its losses did.
    RetryLimit,
    /// Another packet was to wait for the neighbour's address.
    Unresolved,
    /// Its next hop is no neighbour that the node has an interface to.
    NoNeighbour,
    /// No route to the destination.
    NoRoute,
    /// Hop limit exceeded.
    Ttl,
    /// Too much for a policer in front of a wired link.
    Policed,
    /// Damaged on a wired link, or lost on the air without an ACK that would have revealed it.
    LinkError,
    /// Came from a node that is not heard at the time ([`OutageSpec`](crate::spec::OutageSpec)).
    Outage,
    /// It came from a station that a mobile host does not listen to.
    OtherCell,
    /// The routing agent gave it up.
    Routing(RoutingDrop),
}

impl DropReason {
    /// Returns the reason in words.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::QueueFull => "interface queue full",
            Self::Early => "early detection",
            Self::Neighborhood => "neighborhood RED",
            Self::RetryLimit => "retry limit reached",
            Self::Unresolved => "address not resolved",
            Self::NoNeighbour => "next hop is no neighbour",
            Self::NoRoute => "no route",
            Self::Ttl => "hop limit exceeded",
            Self::Policed => "over the policer's rate",
            Self::LinkError => "damaged on the link",
            Self::Outage => "link outage",
            Self::OtherCell => "of another cell",
            Self::Routing(reason) => reason.as_str(),
        }
    }
}

/// Counts of packets dropped, by reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DropCounts {
    /// The interface queue was full.
    pub queue_full: u64,
    /// Early drop by the interface queue, as a congestion signal before it was full.
    pub early: u64,
    /// Neighborhood RED spared the neighborhood a packet.
    pub neighborhood: u64,
    /// The MAC gave up after its last retry; or a link that repairs its losses did.
    pub retry_limit: u64,
    /// Another packet was to wait for the address of a neighbour
    /// ([`AddressResolution`](crate::spec::AddressResolution)), or the next hop was no neighbour at all.
    pub unresolved: u64,
    /// There was no route, or it took too long to find one; at a mobile host, it came from a station that the
    /// host does not listen to.
    pub no_route: u64,
    /// Hop limit exceeded.
    pub ttl: u64,
    /// Too much for a policer in front of a wired link.
    pub policed: u64,
    /// Damaged on a wired link, or lost on the air without an ACK that would have revealed it.
    pub link_error: u64,
    /// Came in an outage over a wired link, or over the air in one that blocks packets. Frames that an outage blocks are
    /// not packets dropped: they count where the sender gives up.
    pub outage: u64,
}

impl DropCounts {
    /// Returns the number of packets dropped for any reason.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.queue_full
            + self.early
            + self.neighborhood
            + self.retry_limit
            + self.unresolved
            + self.no_route
            + self.ttl
            + self.policed
            + self.link_error
            + self.outage
    }

    /// Counts a drop.
    pub(crate) fn count(&mut self, reason: DropReason) {
        let counter = match reason {
            DropReason::QueueFull => &mut self.queue_full,
            DropReason::Early => &mut self.early,
            DropReason::Neighborhood => &mut self.neighborhood,
            DropReason::RetryLimit | DropReason::Routing(RoutingDrop::LinkFailure) => &mut self.retry_limit,
            DropReason::Unresolved | DropReason::NoNeighbour => &mut self.unresolved,
            DropReason::NoRoute | DropReason::OtherCell | DropReason::Routing(_) => &mut self.no_route,
            DropReason::Ttl => &mut self.ttl,
            DropReason::Policed => &mut self.policed,
            DropReason::LinkError => &mut self.link_error,
            DropReason::Outage => &mut self.outage,
        };
        *counter += 1;
    }
}
