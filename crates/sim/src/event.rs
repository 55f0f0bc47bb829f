//! Events, and the node or flow that each concerns.

use crate::ids::{Side, StationId, WireEnd};
use hopline_wire::dot11::MacAddr;

/// A scheduled event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// An event of the medium: nine of ten events.
    Air(AirEvent),
    /// A routing agent wants to be woken.
    Routing { node: u32 },
    /// A middlebox in the path of packets wants to be woken: that of this number at a node.
    Middlebox { node: u32, seat: u32 },
    /// A home agent, a base station or a mobile host wants to be woken.
    Cells { node: u32 },
    /// A transport endpoint of a flow wants to be woken.
    Endpoint { flow: u32, side: Side },
    /// A packet has crossed the link layer downward.
    LinkLayerDown { station: StationId },
    /// A packet has crossed the link layer upward.
    LinkLayerUp { station: StationId },
    /// The request of a station for an address is to leave.
    ArpRequest { station: StationId, of: MacAddr },
    /// The shaper of one end of a wired link releases its next packet.
    WireReleased { end: WireEnd },
    /// A packet has left one end of a wired link.
    WireSent { end: WireEnd },
    /// A packet has arrived from one end of a wired link at the other.
    WireArrived { end: WireEnd },
    /// A flow starts.
    FlowStart { flow: u32 },
    /// A flow stops.
    FlowStop { flow: u32 },
    /// An application wants to be woken: it sends a datagram or a request.
    Application { flow: u32 },
    /// A hostile node sends its next notice.
    NoticeFlood { flood: u32 },
    /// The state of all flows is sampled.
    Sample,
    /// Neighbourhoods are looked at.
    Observe,
    /// The warm-up is over.
    WarmupEnd,
}

/// A scheduled event of the radio medium.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AirEvent {
    /// A transmission begins at its receivers, from number `next` of its list on.
    TransmissionBegins { flight: u32, next: u32 },
    /// A transmission ends: at its sender, and then at its receivers.
    TransmissionEnds { flight: u32, sender: StationId },
    /// A transmission goes on ending at its receivers, from number `next` of its list on.
    TransmissionLands { flight: u32, next: u32 },
    /// A MAC wants to be woken.
    Mac { station: StationId },
}
