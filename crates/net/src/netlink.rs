//! Netlink messages and their attributes (netlink(7)), made and read. What is read is not believed: a length that does not fit ends it.

/// Bytes of an attribute before its value.
pub(crate) const ATTRIBUTE_HEADER: usize = 4;
/// Longest value of an attribute, in bytes: its length has 16 bits.
pub(crate) const LONGEST_VALUE: usize = u16::MAX as usize - ATTRIBUTE_HEADER;

/// Length, kind and value, filled up to a multiple of four.
pub(crate) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity((ATTRIBUTE_HEADER + value.len()).next_multiple_of(4));
    put_attribute(&mut bytes, kind, value);
    bytes
}

/// Appends it to what is a multiple of four long. `value` is no longer than [`LONGEST_VALUE`].
pub(crate) fn put_attribute(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    debug_assert!(value.len() <= LONGEST_VALUE);
    out.extend(((ATTRIBUTE_HEADER + value.len()) as u16).to_ne_bytes());
    out.extend(kind.to_ne_bytes());
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// Of a message, in bytes.
pub(crate) const HEADER: usize = 16;

/// Why something is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// A message longer than what is left, or shorter than its header.
    Length,
    /// An attribute longer than what is left, or shorter than its header.
    AttributeLength,
    /// An attribute whose value has another length than its kind demands.
    Value,
    /// The same attribute twice.
    Twice,
    /// Another version of nfnetlink.
    Version,
    /// A packet without a header.
    NoHeader,
}

/// A message: its kind, the request that it answers, and what stands behind its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    pub(crate) kind: u16,
    pub(crate) sequence: u32,
    pub(crate) body: &'a [u8],
}

/// The messages of a datagram, up to the first that has no end.
pub(crate) fn messages(datagram: &[u8]) -> Messages<'_> {
    Messages { rest: datagram }
}

/// What is left of a datagram.
#[derive(Clone, Debug)]
pub(crate) struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let len = ne32(self.rest, 0).map_or(0, |len| len as usize);
        if len < HEADER || len > self.rest.len() {
            self.rest = &[];
            return Some(Err(Malformed::Length));
        }
        let message = &self.rest[..len];
        self.rest = self.rest.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        let header = ne16(message, 4).zip(ne32(message, 8)).ok_or(Malformed::Length);
        Some(header.map(|(kind, sequence)| Message { kind, sequence, body: &message[HEADER..] }))
    }
}

/// What the body of an answer (`NLMSG_ERROR`) says. 0: done; else as errno(3) has them.
pub(crate) fn answer(body: &[u8]) -> Result<i32, Malformed> {
    // The kernel has them negative; the least number has no opposite.
    ne32(body, 0).map(|error| (error as i32).saturating_neg()).ok_or(Malformed::Length)
}

/// Kinds and values of attributes, up to the first that has no end.
pub(crate) fn attributes(bytes: &[u8]) -> Attributes<'_> {
    Attributes { rest: bytes }
}

/// What is left of them.
#[derive(Clone, Debug)]
pub(crate) struct Attributes<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<(u16, &'a [u8]), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        // The two highest bits say how the value is made (nested, byte order), not what it is.
        const KIND: u16 = 0x3fff;
        if self.rest.is_empty() {
            return None;
        }
        let header = ne16(self.rest, 0).zip(ne16(self.rest, 2));
        let (len, kind) = header.map_or((0, 0), |(len, kind)| (usize::from(len), kind & KIND));
        if len < ATTRIBUTE_HEADER || len > self.rest.len() {
            self.rest = &[];
            return Some(Err(Malformed::AttributeLength));
        }
        let value = &self.rest[ATTRIBUTE_HEADER..len];
        self.rest = self.rest.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        Some(Ok((kind, value)))
    }
}

fn ne16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().map(u16::from_ne_bytes).ok()
}

/// A number in this machine's byte order.
pub(crate) fn ne32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().map(u32::from_ne_bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_filled_up_but_say_how_long_they_are() {
        assert_eq!(attribute(3, b"ab\0"), [&7u16.to_ne_bytes()[..], &3u16.to_ne_bytes(), b"ab\0\0"].concat());
        assert_eq!(attribute(40, &1u32.to_ne_bytes()).len(), 8);
        assert_eq!(attribute(1, &[7; LONGEST_VALUE])[..2], u16::MAX.to_ne_bytes());
    }
}
