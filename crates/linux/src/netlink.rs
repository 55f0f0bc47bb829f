//! Netlink messages and attributes (netlink(7)), and the socket for requests to rtnetlink(7). Input is not trusted:
//! parsing ends at an invalid length.

use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read};

/// Bytes of a message header.
pub const HEADER_LEN: usize = 16;
/// Bytes of an attribute header.
pub const ATTRIBUTE_HEADER_LEN: usize = 4;
/// Maximum bytes of an attribute's value: its length field has 16 bits.
pub const MAX_VALUE: usize = u16::MAX as usize - ATTRIBUTE_HEADER_LEN;

/// Returns an attribute: length, type and value, padded to a multiple of four.
pub fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity((ATTRIBUTE_HEADER_LEN + value.len()).next_multiple_of(4));
    put_attribute(&mut bytes, kind, value);
    bytes
}

/// Appends an attribute to a buffer with a length that is a multiple of four. `value` has at most [`MAX_VALUE`]
/// bytes.
pub fn put_attribute(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    debug_assert!(value.len() <= MAX_VALUE);
    out.extend(((ATTRIBUTE_HEADER_LEN + value.len()) as u16).to_ne_bytes());
    out.extend(kind.to_ne_bytes());
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// A message of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Type of the message.
    pub kind: u16,
    /// Sequence number of the request that it answers.
    pub sequence: u32,
    /// Bytes behind the header.
    pub body: &'a [u8],
}

/// Error: a length that is shorter than a header, or exceeds the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLength;

/// Returns the messages of a datagram, up to the first with an invalid length.
pub const fn messages(datagram: &[u8]) -> Messages<'_> {
    Messages { rest: datagram }
}

/// Returns types and values of attributes, up to the first with an invalid length.
pub const fn attributes(bytes: &[u8]) -> Attributes<'_> {
    Attributes { rest: bytes }
}

/// Unparsed rest of a datagram.
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>, BadLength>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let whole = ne32(self.rest, 0).and_then(|len| self.rest.get(..len as usize));
        let parts =
            whole.and_then(|whole| Some((whole, ne16(whole, 4)?, ne32(whole, 8)?, whole.get(HEADER_LEN..)?)));
        let Some((whole, kind, sequence, body)) = parts else {
            self.rest = &[];
            return Some(Err(BadLength));
        };
        self.rest = self.rest.get(whole.len().next_multiple_of(4)..).unwrap_or(&[]);
        Some(Ok(Message { kind, sequence, body }))
    }
}

/// Unparsed rest of a message.
#[derive(Clone, Debug)]
pub struct Attributes<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<(u16, &'a [u8]), BadLength>;

    fn next(&mut self) -> Option<Self::Item> {
        // The two highest bits describe the encoding of the value (nested, byte order), not the type.
        const KIND: u16 = 0x3fff;
        if self.rest.is_empty() {
            return None;
        }
        let whole = ne16(self.rest, 0).and_then(|len| self.rest.get(..usize::from(len)));
        let parts =
            whole.and_then(|whole| Some((whole, ne16(whole, 2)?, whole.get(ATTRIBUTE_HEADER_LEN..)?)));
        let Some((whole, kind, value)) = parts else {
            self.rest = &[];
            return Some(Err(BadLength));
        };
        self.rest = self.rest.get(whole.len().next_multiple_of(4)..).unwrap_or(&[]);
        Some(Ok((kind & KIND, value)))
    }
}

/// Returns the 16-bit number in host byte order at offset `at`.
pub fn ne16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().map(u16::from_ne_bytes).ok()
}

/// Returns the 32-bit number in host byte order at offset `at`.
pub fn ne32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().map(u32::from_ne_bytes).ok()
}

/// Returns a request that the kernel acknowledges. `flags`: in addition to those for that; `body`: a multiple of four
/// bytes.
pub fn message(kind: u16, flags: i32, body: &[u8]) -> Vec<u8> {
    let flags = flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK;
    let mut message = Vec::from(((HEADER_LEN + body.len()) as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend((flags as u16).to_ne_bytes());
    message.extend([0; 8]); // sequence number, port: nobody else asks on this socket
    message.extend(body);
    message
}

/// Sends requests for interfaces, routes and rules to the kernel, in the namespace in which it was opened.
#[derive(Debug)]
pub struct RouteSocket(Socket);

impl RouteSocket {
    /// Opens a socket of `NETLINK_ROUTE`.
    ///
    /// # Errors
    /// If the system has no socket.
    pub fn open() -> io::Result<Self> {
        let route = Protocol::from(libc::NETLINK_ROUTE);
        // Unconnected, it communicates with the kernel (netlink(7)).
        Socket::new(Domain::from(libc::AF_NETLINK), Type::from(libc::SOCK_RAW), Some(route)).map(Self)
    }

    /// Sends a [`message`] and waits for the acknowledgement.
    pub fn request(&mut self, message: &[u8]) -> io::Result<()> {
        self.0.send(message)?;
        let mut answer = [0; 1024];
        let len = self.0.read(&mut answer)?;
        // An error of zero is the acknowledgement.
        match answer[..len].get(HEADER_LEN..HEADER_LEN + 4) {
            Some(&[a, b, c, d]) => match i32::from_ne_bytes([a, b, c, d]) {
                0 => Ok(()),
                error => Err(io::Error::from_raw_os_error(-error)),
            },
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_have_their_unpadded_length() {
        assert_eq!(attribute(3, b"ab\0"), [&7u16.to_ne_bytes()[..], &3u16.to_ne_bytes(), b"ab\0\0"].concat());
        assert_eq!(attribute(40, &1u32.to_ne_bytes()).len(), 8);
        assert_eq!(attribute(1, &[7; MAX_VALUE])[..2], u16::MAX.to_ne_bytes());
    }
}
