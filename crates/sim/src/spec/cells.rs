//! Base stations, the home agent behind them, and hosts that move between them.

use hopline_core::{Duration, NodeId};
pub use hopline_proxy::fast_retransmit;
pub use hopline_proxy::handoff::{HandoffRule, Key, Scheme, StartState};

/// A network of cells. The nodes in it that are no mobile hosts reach each other over wires; what is for a
/// mobile host goes to its home agent, and from there on in a tunnel.
#[derive(Clone, Debug)]
pub struct CellsSpec {
    /// Scheme by which packets reach the station of a mobile host.
    pub scheme: Scheme,
    /// Home agent of the mobile hosts. It may be a station as well.
    pub home_agent: NodeId,
    /// Nodes with a radio that are base stations.
    pub stations: Vec<NodeId>,
    /// Hosts that move.
    pub mobiles: Vec<MobileSpec>,
    /// Time between two beacons of a station, not zero. Default 1 s.
    pub beacon_interval: Duration,
    /// Packets that a station keeps for a host. Default 12.
    pub buffer_packets: u16,
    /// Initial state of middleboxes at a station to which a host comes. Default cold.
    pub cold: StartState,
    /// The key of all. Default none.
    pub key: Option<Key>,
}

/// A mobile host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MobileSpec {
    /// The node. Its address is its home address.
    pub node: NodeId,
    /// Rule that decides when it changes its station.
    pub handoff_decision: HandoffRule,
    /// Stations beside the current one that keep packets for it. Default 1.
    pub buffering_stations: u8,
    /// Time for which a station that is heard no more is taken to be present. Default 3 s.
    pub station_lifetime: Duration,
    /// Whom it hears.
    pub accepts: AcceptedStations,
    /// Fast retransmission after a handoff: the host asks again for packets that the handoff may have lost.
    /// Default none.
    pub fast_retransmit: Option<fast_retransmit::Config>,
}

/// Stations from which a mobile host accepts packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AcceptedStations {
    /// Packets of every station: it may still receive from the one that it has left.
    #[default]
    All,
    /// Packets of its current station, as a radio tuned to one cell; of other stations it hears the beacons
    /// alone.
    Current,
}
