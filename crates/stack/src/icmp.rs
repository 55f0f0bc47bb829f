//! ICMP (RFC 792) and ICMPv6 (RFC 4443) as far as a TCP host needs them: reports about its own segments, and echo requests.

use hopline_core::Seq32;
use hopline_wire::checksum::{ChecksumSum, internet};
use hopline_wire::ip::{Header, IpHeader, Protocol};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Protocol number of ICMPv6.
pub(crate) const ICMPV6_PROTOCOL: Protocol = Protocol::Other(58);
/// Bytes of a message before what it quotes, or before the data of an echo.
const HEADER_LEN: usize = 8;
/// Bytes of a quoted TCP header that every router quotes (RFC 792): ports and sequence number.
const QUOTED_LEN: usize = 8;
const IPV4_HEADER_LEN: usize = 20;
const IPV6_HEADER_LEN: usize = 40;
const TCP_PROTOCOL: u8 = 6;

/// Reason for which a packet was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnreachableReason {
    /// A router has no route to the network.
    Network,
    /// The last router does not reach the host.
    Host,
    /// The host does not speak TCP, or has nothing at the port.
    Port,
    /// A filter drops such packets.
    Prohibited,
}

/// Content of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IcmpError {
    Unreachable(UnreachableReason),
    /// The packet was larger than a link on its path takes, so many bytes; 0: the router does not say.
    TooBig {
        mtu: u32,
    },
}

/// A report about a segment of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IcmpReport {
    pub(crate) error: IcmpError,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) seq: Seq32,
}

/// Meaning of an ICMP message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IcmpMessage {
    Report(IcmpReport),
    EchoRequest,
    /// Cut short, or with a wrong checksum.
    Malformed,
    /// Any other message.
    Other,
}

/// Reads the message `bytes`, the payload of the packet with header `ip`.
pub(crate) fn parse(ip: &Header, bytes: &[u8]) -> IcmpMessage {
    if bytes.len() < HEADER_LEN || !has_valid_checksum(ip, bytes) {
        return IcmpMessage::Malformed;
    }
    let report = match (ip, bytes[0], bytes[1]) {
        (Header::V4(_), 8, 0) | (Header::V6(_), 128, 0) => return IcmpMessage::EchoRequest,
        (Header::V4(_), 3, 0 | 6 | 8 | 11) | (Header::V6(_), 1, 0) => {
            IcmpError::Unreachable(UnreachableReason::Network)
        }
        (Header::V4(_), 3, 1 | 5 | 7 | 12) | (Header::V6(_), 1, 3) => {
            IcmpError::Unreachable(UnreachableReason::Host)
        }
        (Header::V4(_), 3, 2 | 3) | (Header::V6(_), 1, 4) => IcmpError::Unreachable(UnreachableReason::Port),
        (Header::V4(_), 3, 9 | 10 | 13) | (Header::V6(_), 1, 1 | 5 | 6) => {
            IcmpError::Unreachable(UnreachableReason::Prohibited)
        }
        (Header::V4(_), 3, 4) => IcmpError::TooBig { mtu: u16::from_be_bytes([bytes[6], bytes[7]]).into() },
        (Header::V6(_), 2, _) => {
            IcmpError::TooBig { mtu: u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) }
        }
        _ => return IcmpMessage::Other,
    };
    let quoted = match ip {
        Header::V4(_) => quoted_v4(&bytes[HEADER_LEN..]),
        Header::V6(_) => quoted_v6(&bytes[HEADER_LEN..]),
    };
    match quoted {
        Some((local, remote, seq)) => IcmpMessage::Report(IcmpReport { error: report, local, remote, seq }),
        None => IcmpMessage::Other,
    }
}

/// Turns an echo request into its answer (RFC 792, RFC 4443 §4.2). Swapped addresses leave the checksum of ICMPv6 as it is.
pub(crate) fn echo_reply(ip: &Header, request: &[u8]) -> Vec<u8> {
    let mut answer = request.to_vec();
    answer[0] = if matches!(ip, Header::V4(_)) { 0 } else { 129 };
    answer[2..4].fill(0);
    let checksum = match ip {
        Header::V4(_) => internet(&answer),
        Header::V6(_) => {
            let mut sum = ChecksumSum::pseudo_header(ip, answer.len());
            sum.add(&answer);
            sum.finish()
        }
    };
    answer[2..4].copy_from_slice(&checksum.to_be_bytes());
    answer
}

fn has_valid_checksum(ip: &Header, bytes: &[u8]) -> bool {
    let mut sum = match ip {
        Header::V4(_) => ChecksumSum::default(),
        Header::V6(_) => ChecksumSum::pseudo_header(ip, bytes.len()),
    };
    sum.add(bytes);
    sum.finish() == 0
}

type QuotedSegment = Option<(SocketAddr, SocketAddr, Seq32)>;

/// Reads the quoted IPv4 header and the beginning of the segment behind it. The header's checksum may be stale.
fn quoted_v4(bytes: &[u8]) -> QuotedSegment {
    let header_len = usize::from(bytes.first()? & 0xf) * 4;
    let header = bytes.get(..header_len).filter(|_| header_len >= IPV4_HEADER_LEN)?;
    let is_first_of_tcp =
        header[9] == TCP_PROTOCOL && u16::from_be_bytes([header[6], header[7]]) & 0x1fff == 0;
    let address = |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
    let ends = [address(12).into(), address(16).into()];
    quoted_segment(ends, bytes.get(header_len..)?).filter(|_| is_first_of_tcp)
}

/// Reads the quoted IPv6 header and the beginning of the segment behind it. Packets of this host have no extension headers.
fn quoted_v6(bytes: &[u8]) -> QuotedSegment {
    let header = bytes.get(..IPV6_HEADER_LEN).filter(|header| header[6] == TCP_PROTOCOL)?;
    let address = |at: usize| {
        let octets: [u8; 16] = core::array::from_fn(|i| header[at + i]);
        IpAddr::from(Ipv6Addr::from(octets))
    };
    quoted_segment([address(8), address(24)], &bytes[IPV6_HEADER_LEN..])
}

fn quoted_segment([local, remote]: [IpAddr; 2], bytes: &[u8]) -> QuotedSegment {
    let quoted = bytes.get(..QUOTED_LEN)?;
    let port = |at: usize| u16::from_be_bytes([quoted[at], quoted[at + 1]]);
    let seq = Seq32(u32::from_be_bytes([quoted[4], quoted[5], quoted[6], quoted[7]]));
    Some(((local, port(0)).into(), (remote, port(2)).into(), seq))
}

/// Returns whether a packet with header `ip` is one of ICMP of its own version of IP.
pub(crate) fn is_icmp(ip: &Header) -> bool {
    ip.protocol() == if matches!(ip, Header::V4(_)) { Protocol::Icmp } else { ICMPV6_PROTOCOL }
}
