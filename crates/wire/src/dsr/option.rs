//! The options of a DSR Options header (RFC 4728 §6.2 to §6.7).

use crate::emit::{address, be16};
use crate::error::ParseError;
use smallvec::SmallVec;
use std::net::Ipv4Addr;

/// Nodes on a path, in the order of travel. Paths of up to 16 are kept without allocating.
pub type Addresses = SmallVec<[Ipv4Addr; 16]>;

/// DSR option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DsrOption {
    /// Type 1.
    Request(RouteRequest),
    /// Type 2.
    Reply(RouteReply),
    /// Type 3.
    Error(RouteError),
    /// Type 160.
    AckRequest(AckRequest),
    /// Type 32.
    Ack(Ack),
    /// Type 96.
    SourceRoute(SourceRoute),
    /// Another type. Its upper three bits tell a node without support for it how to treat it (§6).
    Unknown {
        /// The option type.
        kind: u8,
        /// Option data.
        data: SmallVec<[u8; 8]>,
    },
}

/// Route request; flooded (§6.2). The initiator is the source of the IP packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteRequest {
    /// Request id; unique together with initiator and target.
    pub id: u16,
    /// Target of the discovery.
    pub target: Ipv4Addr,
    /// Nodes that have forwarded it, from the first behind the initiator.
    pub path: Addresses,
}

/// Route reply (§6.3). The route begins at the destination of the IP packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteReply {
    /// Kind of the last hop.
    pub last: LastHop,
    /// The nodes behind the first, the target included. At least one.
    pub path: Addresses,
}

/// Route error: reports a broken hop (§6.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteError {
    /// Salvage count of the lost packet, 0 to 15.
    pub salvage: u8,
    /// Node that discovered the error.
    pub source: Ipv4Addr,
    /// Node to be informed.
    pub destination: Ipv4Addr,
    /// Error type.
    pub kind: ErrorKind,
}

/// Error that a route error reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Type 1: the neighbour of the error's source that was not reached (§6.4.1).
    NodeUnreachable(Ipv4Addr),
    /// Another error type.
    Other {
        /// Error type.
        kind: u8,
        /// Type-specific information.
        data: SmallVec<[u8; 8]>,
    },
}

/// Acknowledgement request to the next node (§6.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckRequest {
    /// Identification, copied into the acknowledgement.
    pub id: u16,
}

/// Acknowledgement of a packet over one hop (§6.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Identification of the request.
    pub id: u16,
    /// Node that acknowledges.
    pub source: Ipv4Addr,
    /// Node that requested the acknowledgement.
    pub destination: Ipv4Addr,
}

/// Source route of a packet (§6.7). Neither its source nor its destination is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRoute {
    /// Kind of the first hop.
    pub first: FirstHop,
    /// Kind of the last hop.
    pub last: LastHop,
    /// Number of times the packet was salvaged, 0 to 15.
    pub salvage: u8,
    /// Nodes of `path` that the packet has not reached yet. At most the length of `path`, and 63.
    pub segments_left: u8,
    /// Nodes between source and destination.
    pub path: Addresses,
}

/// Kind of the first hop of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum FirstHop {
    /// An ordinary hop.
    #[default]
    Ordinary,
    /// A path of any length outside the DSR network.
    External,
}

/// Kind of the last hop of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum LastHop {
    /// An ordinary hop.
    #[default]
    Ordinary,
    /// A path of any length outside the DSR network.
    External,
}

const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const ERROR: u8 = 3;
const ACK: u8 = 32;
const SOURCE_ROUTE: u8 = 96;
const ACK_REQUEST: u8 = 160;

const ADDRESS_LEN: usize = 4;
/// Option type and length.
const OPTION_HEADER_LEN: usize = 2;
/// Data lengths of the options, without addresses.
const REQUEST_LEN: usize = 6;
const REPLY_LEN: usize = 1;
const ERROR_LEN: usize = 10;
const ACK_LEN: usize = 10;
const SOURCE_ROUTE_LEN: usize = 2;
const ACK_REQUEST_LEN: usize = 2;

const NODE_UNREACHABLE: u8 = 1;
const REPLY_LAST_EXTERNAL: u8 = 0x80;
/// Fields of the 16 bits of a source route: F, L, four reserved, Salvage (4), Segments Left (6).
const FIRST_EXTERNAL: u16 = 0x8000;
const LAST_EXTERNAL: u16 = 0x4000;
const SALVAGE_SHIFT: u32 = 6;
const SALVAGE: u16 = 0xf;
const SEGMENTS_LEFT: u16 = 0x3f;

impl DsrOption {
    /// The option of type `kind` with these data.
    pub(super) fn parse(kind: u8, data: &[u8]) -> Result<Self, ParseError> {
        Ok(match kind {
            REQUEST => Self::Request(RouteRequest::parse(data)?),
            REPLY => Self::Reply(RouteReply::parse(data)?),
            ERROR => Self::Error(RouteError::parse(data)?),
            ACK_REQUEST => {
                exactly("dsr acknowledgement request", data, ACK_REQUEST_LEN)?;
                Self::AckRequest(AckRequest { id: be16(data, 0) })
            }
            ACK => {
                exactly("dsr acknowledgement", data, ACK_LEN)?;
                Self::Ack(Ack { id: be16(data, 0), source: address(data, 2), destination: address(data, 6) })
            }
            SOURCE_ROUTE => Self::SourceRoute(SourceRoute::parse(data)?),
            kind => Self::Unknown { kind, data: data.into() },
        })
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        let len = self.wire_len() - OPTION_HEADER_LEN;
        out.extend([self.kind(), u8::try_from(len).expect("an option is at most 255 bytes long")]);
        match self {
            Self::Request(request) => request.emit(out),
            Self::Reply(reply) => reply.emit(out),
            Self::Error(error) => error.emit(out),
            Self::AckRequest(request) => out.extend(request.id.to_be_bytes()),
            Self::Ack(ack) => {
                out.extend(ack.id.to_be_bytes());
                out.extend(ack.source.octets());
                out.extend(ack.destination.octets());
            }
            Self::SourceRoute(route) => route.emit(out),
            Self::Unknown { data, .. } => out.extend_from_slice(data),
        }
    }

    /// Length on the wire, in bytes.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        let addresses = |path: &Addresses| path.len() * ADDRESS_LEN;
        let data = match self {
            Self::Request(request) => REQUEST_LEN + addresses(&request.path),
            Self::Reply(reply) => REPLY_LEN + addresses(&reply.path),
            Self::Error(error) => ERROR_LEN + error.kind.wire_len(),
            Self::AckRequest(_) => ACK_REQUEST_LEN,
            Self::Ack(_) => ACK_LEN,
            Self::SourceRoute(route) => SOURCE_ROUTE_LEN + addresses(&route.path),
            Self::Unknown { data, .. } => data.len(),
        };
        OPTION_HEADER_LEN + data
    }

    const fn kind(&self) -> u8 {
        match self {
            Self::Request(_) => REQUEST,
            Self::Reply(_) => REPLY,
            Self::Error(_) => ERROR,
            Self::AckRequest(_) => ACK_REQUEST,
            Self::Ack(_) => ACK,
            Self::SourceRoute(_) => SOURCE_ROUTE,
            Self::Unknown { kind, .. } => *kind,
        }
    }
}

impl RouteRequest {
    fn parse(data: &[u8]) -> Result<Self, ParseError> {
        let path = parse_path("dsr route request", data, REQUEST_LEN)?;
        Ok(Self { id: be16(data, 0), target: address(data, 2), path })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        out.extend(self.id.to_be_bytes());
        out.extend(self.target.octets());
        emit_path(&self.path, out);
    }
}

impl RouteReply {
    fn parse(data: &[u8]) -> Result<Self, ParseError> {
        let path = parse_path("dsr route reply", data, REPLY_LEN)?;
        if path.is_empty() {
            return Err(ParseError::BadLength { what: "dsr route reply", value: data.len() });
        }
        let last = if data[0] & REPLY_LAST_EXTERNAL != 0 { LastHop::External } else { LastHop::Ordinary };
        Ok(Self { last, path })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        out.push(if self.last == LastHop::External { REPLY_LAST_EXTERNAL } else { 0 });
        emit_path(&self.path, out);
    }
}

impl RouteError {
    fn parse(data: &[u8]) -> Result<Self, ParseError> {
        const WHAT: &str = "dsr route error";
        at_least(WHAT, data, ERROR_LEN)?;
        let kind = match data[0] {
            NODE_UNREACHABLE => {
                at_least(WHAT, data, ERROR_LEN + ADDRESS_LEN)?;
                ErrorKind::NodeUnreachable(address(data, ERROR_LEN))
            }
            kind => ErrorKind::Other { kind, data: data[ERROR_LEN..].into() },
        };
        let salvage = data[1] & SALVAGE as u8;
        Ok(Self { salvage, source: address(data, 2), destination: address(data, 6), kind })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        let kind = match &self.kind {
            ErrorKind::NodeUnreachable(_) => NODE_UNREACHABLE,
            ErrorKind::Other { kind, .. } => *kind,
        };
        out.extend([kind, self.salvage & SALVAGE as u8]);
        out.extend(self.source.octets());
        out.extend(self.destination.octets());
        match &self.kind {
            ErrorKind::NodeUnreachable(node) => out.extend(node.octets()),
            ErrorKind::Other { data, .. } => out.extend_from_slice(data),
        }
    }
}

impl ErrorKind {
    fn wire_len(&self) -> usize {
        match self {
            Self::NodeUnreachable(_) => ADDRESS_LEN,
            Self::Other { data, .. } => data.len(),
        }
    }
}

impl SourceRoute {
    /// The node that the packet goes to next: one of the path, or `destination`.
    #[must_use]
    pub fn next_hop(&self, destination: Ipv4Addr) -> Ipv4Addr {
        let travelled = self.path.len() - usize::from(self.segments_left);
        self.path.get(travelled).copied().unwrap_or(destination)
    }

    fn parse(data: &[u8]) -> Result<Self, ParseError> {
        let path = parse_path("dsr source route", data, SOURCE_ROUTE_LEN)?;
        let bits = be16(data, 0);
        let segments_left = (bits & SEGMENTS_LEFT) as u8;
        if usize::from(segments_left) > path.len() {
            // RFC 4728 §8.1.5
            return Err(ParseError::BadLength { what: "dsr segments left", value: segments_left.into() });
        }
        Ok(Self {
            first: if bits & FIRST_EXTERNAL != 0 { FirstHop::External } else { FirstHop::Ordinary },
            last: if bits & LAST_EXTERNAL != 0 { LastHop::External } else { LastHop::Ordinary },
            salvage: (bits >> SALVAGE_SHIFT & SALVAGE) as u8,
            segments_left,
            path,
        })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        let first = if self.first == FirstHop::External { FIRST_EXTERNAL } else { 0 };
        let last = if self.last == LastHop::External { LAST_EXTERNAL } else { 0 };
        let salvage = (u16::from(self.salvage) & SALVAGE) << SALVAGE_SHIFT;
        let bits = first | last | salvage | u16::from(self.segments_left) & SEGMENTS_LEFT;
        out.extend(bits.to_be_bytes());
        emit_path(&self.path, out);
    }
}

/// The addresses behind the first `fixed` bytes.
fn parse_path(what: &'static str, data: &[u8], fixed: usize) -> Result<Addresses, ParseError> {
    at_least(what, data, fixed)?;
    let addresses = &data[fixed..];
    if !addresses.len().is_multiple_of(ADDRESS_LEN) {
        return Err(ParseError::BadLength { what, value: data.len() });
    }
    Ok(addresses.chunks_exact(ADDRESS_LEN).map(|bytes| address(bytes, 0)).collect())
}

fn emit_path(path: &Addresses, out: &mut Vec<u8>) {
    out.extend(path.iter().flat_map(Ipv4Addr::octets));
}

fn at_least(what: &'static str, data: &[u8], len: usize) -> Result<(), ParseError> {
    if data.len() < len { Err(ParseError::BadLength { what, value: data.len() }) } else { Ok(()) }
}

fn exactly(what: &'static str, data: &[u8], len: usize) -> Result<(), ParseError> {
    if data.len() == len { Ok(()) } else { Err(ParseError::BadLength { what, value: data.len() }) }
}
