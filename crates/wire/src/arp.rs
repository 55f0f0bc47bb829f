//! Address resolution between IPv4 and link-layer addresses (RFC 826).

use crate::dot11::MacAddr;
use crate::emit::{address, array, be16};
use crate::error::{ParseError, require};
use std::net::Ipv4Addr;

/// Length of a message, in bytes.
pub const LEN: usize = 28;
/// EtherType of messages.
pub const ETHERTYPE: u16 = 0x0806;

/// Hardware type Ethernet, protocol type IPv4, and the lengths of their addresses.
const FIXED_FIELDS: [u8; 6] = [0, 1, 0x08, 0, 6, 4];

/// ARP request or reply.
///
/// # Example
///
/// ```
/// use hopline_core::NodeId;
/// use hopline_wire::arp::{Message, Operation};
/// use hopline_wire::dot11::MacAddr;
///
/// let asked = NodeId(1).ipv4();
/// let request = Message {
///     operation: Operation::Request,
///     sender: (MacAddr::of_node(NodeId(0)), NodeId(0).ipv4()),
///     target: (MacAddr([0; 6]), asked),
/// };
/// let mut bytes = Vec::new();
/// request.emit(&mut bytes);
/// assert_eq!(Message::parse(&bytes), Ok(request));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// Operation code.
    pub operation: Operation,
    /// Link-layer and IP address of the sender.
    pub sender: (MacAddr, Ipv4Addr),
    /// Link-layer and IP address of the target; in a request the link-layer address is zero.
    pub target: (MacAddr, Ipv4Addr),
}

/// Operation of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Request for the link-layer address of the target's IP address.
    Request,
    /// Reply with the link-layer address of the sender.
    Reply,
}

impl Message {
    /// Parses the payload behind the LLC header. Bytes after it are ignored.
    ///
    /// # Errors
    /// `Truncated`; `Unsupported` for other kinds of addresses and other operations.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        require(bytes, LEN)?;
        if array::<6>(bytes, 0) != FIXED_FIELDS {
            return Err(ParseError::Unsupported { what: "hardware type", value: be16(bytes, 0).into() });
        }
        let operation = match be16(bytes, 6) {
            1 => Operation::Request,
            2 => Operation::Reply,
            other => return Err(ParseError::Unsupported { what: "ARP operation", value: other.into() }),
        };
        Ok(Self {
            operation,
            sender: (MacAddr(array(bytes, 8)), address(bytes, 14)),
            target: (MacAddr(array(bytes, 18)), address(bytes, 24)),
        })
    }

    /// Appends the message, to follow an LLC header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let operation: u16 = match self.operation {
            Operation::Request => 1,
            Operation::Reply => 2,
        };
        out.extend(FIXED_FIELDS);
        out.extend(operation.to_be_bytes());
        for (mac, ip) in [self.sender, self.target] {
            out.extend(mac.0);
            out.extend(ip.octets());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_core::NodeId;

    const REQUEST: Message = Message {
        operation: Operation::Request,
        sender: (MacAddr([2, 0, 0, 0, 0, 1]), Ipv4Addr::new(10, 0, 0, 1)),
        target: (MacAddr([0; 6]), Ipv4Addr::new(10, 0, 0, 2)),
    };

    fn emitted(message: Message) -> Vec<u8> {
        let mut out = Vec::new();
        message.emit(&mut out);
        out
    }

    #[test]
    fn a_request_is_encoded_as_in_the_rfc() {
        let bytes = emitted(REQUEST);
        assert_eq!(bytes[..8], [0, 1, 8, 0, 6, 4, 0, 1]);
        assert_eq!(bytes[8..18], [2, 0, 0, 0, 0, 1, 10, 0, 0, 1]);
        assert_eq!((bytes.len(), &bytes[18..]), (LEN, [0, 0, 0, 0, 0, 0, 10, 0, 0, 2].as_slice()));
    }

    #[test]
    fn emitted_messages_parse_back_and_others_are_refused() {
        let reply = Message {
            operation: Operation::Reply,
            target: (MacAddr::of_node(NodeId(7)), NodeId(7).ipv4()),
            ..REQUEST
        };
        for message in [REQUEST, reply] {
            let bytes = emitted(message);
            assert_eq!(Message::parse(&bytes), Ok(message));
            assert!((0..LEN).all(|end| Message::parse(&bytes[..end]).is_err()));
        }
        for (at, value) in [(0, 1), (1, 6), (3, 1), (4, 8), (5, 16), (7, 3)] {
            let mut bytes = emitted(REQUEST);
            bytes[at] = value;
            assert!(matches!(Message::parse(&bytes), Err(ParseError::Unsupported { .. })), "{at}");
        }
    }
}
