//! Messages of vhost-user: a header of 12 bytes, and a payload. Descriptors come beside the bytes.

/// Length of a header in bytes.
pub const HEADER_LEN: usize = 12;
/// Longest payload that is accepted, in bytes: a table of eight regions.
pub const MAX_PAYLOAD: usize = 8 + 8 * 32;

const VERSION: u32 = 1;
const VERSION_MASK: u32 = 3;
const REPLY: u32 = 1 << 2;
const NEED_REPLY: u32 = 1 << 3;

/// Requests of the front-end, which is the kernel.
pub mod request {
    #![allow(missing_docs, reason = "the names are those of the specification")]
    pub const GET_FEATURES: u32 = 1;
    pub const SET_FEATURES: u32 = 2;
    pub const SET_OWNER: u32 = 3;
    pub const SET_MEM_TABLE: u32 = 5;
    pub const SET_VRING_NUM: u32 = 8;
    pub const SET_VRING_ADDR: u32 = 9;
    pub const SET_VRING_BASE: u32 = 10;
    pub const GET_PROTOCOL_FEATURES: u32 = 15;
    pub const SET_PROTOCOL_FEATURES: u32 = 16;
    pub const SET_VRING_ENABLE: u32 = 18;
    pub const SET_BACKEND_REQ_FD: u32 = 21;
    pub const GET_CONFIG: u32 = 24;
    pub const SET_CONFIG: u32 = 25;
    pub const VRING_KICK: u32 = 35;
}

/// Request of the back-end: the buffers of a queue were used.
pub const VRING_CALL: u32 = 4;

/// Header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Request.
    pub request: u32,
    /// Flags, with the version.
    pub flags: u32,
    /// Length of the payload in bytes.
    pub len: u32,
}

impl Header {
    /// Parses a header; `None` if it is of another version, or too long.
    #[must_use]
    pub fn parse(bytes: &[u8; HEADER_LEN]) -> Option<Self> {
        let [request, flags, len] = [0, 4, 8].map(|at| u32_at(bytes, at).unwrap_or(0));
        (flags & VERSION_MASK == VERSION && len as usize <= MAX_PAYLOAD).then_some(Self {
            request,
            flags,
            len,
        })
    }

    /// Returns whether the sender waits for an answer to a request that has none by itself.
    #[must_use]
    pub const fn needs_reply(&self) -> bool {
        self.flags & NEED_REPLY != 0
    }
}

/// Returns a reply with a payload.
#[must_use]
pub fn reply(request: u32, payload: &[u8]) -> Vec<u8> {
    message(request, VERSION | REPLY, payload)
}

/// Returns a request of the back-end to interrupt the kernel for queue `index`, which the kernel answers.
#[must_use]
pub fn vring_call(index: u32) -> Vec<u8> {
    let payload = u64::from(index).to_le_bytes();
    message(VRING_CALL, VERSION | NEED_REPLY, &payload)
}

fn message(request: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_LEN + payload.len());
    for word in [request, flags, payload.len() as u32] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes.extend(payload);
    bytes
}

/// Returns the number of 32 bits at an offset; `None` beyond the end.
#[must_use]
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Returns the number of 64 bits at an offset; `None` beyond the end.
#[must_use]
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_bears_the_version_and_the_reply_flag() {
        let bytes = reply(request::GET_FEATURES, &5u64.to_ne_bytes());
        let header = Header::parse(bytes[..HEADER_LEN].try_into().expect("12 bytes")).expect("a header");
        assert_eq!(header, Header { request: 1, flags: VERSION | REPLY, len: 8 });
        assert!(!header.needs_reply());
        assert_eq!(u64_at(&bytes, HEADER_LEN), Some(5));
    }

    #[test]
    fn an_interrupt_asks_for_a_reply() {
        let bytes = vring_call(1);
        let header = Header::parse(bytes[..HEADER_LEN].try_into().expect("12 bytes")).expect("a header");
        assert!(header.needs_reply());
        assert_eq!((u32_at(&bytes, HEADER_LEN), bytes.len()), (Some(1), 20));
    }

    #[test]
    fn headers_of_other_versions_and_with_long_payloads_are_refused() {
        let header = |flags: u32, len: u32| {
            let mut bytes = [0; HEADER_LEN];
            bytes[4..8].copy_from_slice(&flags.to_ne_bytes());
            bytes[8..].copy_from_slice(&len.to_ne_bytes());
            Header::parse(&bytes)
        };
        assert_eq!(header(2, 0), None);
        assert_eq!(header(1, MAX_PAYLOAD as u32 + 1), None);
        assert!(header(1, MAX_PAYLOAD as u32).is_some());
    }
}
