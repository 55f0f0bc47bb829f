//! Requests to generic netlink families (linux/genetlink.h).

use crate::error::Error;
use crate::netlink::{HEADER_LEN, Message, attribute, attributes, messages, ne16, ne32};
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};
use std::io;
use std::os::fd::OwnedFd;

/// Bytes of the header of all generic messages: command, version, two reserved bytes.
pub const GENL_HEADER_LEN: usize = 4;

/// `CTRL_ATTR_FAMILY_ID` and `CTRL_ATTR_FAMILY_NAME`.
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// The controller family, which resolves names of families, and the version of its messages.
const CONTROL: u16 = libc::GENL_ID_CTRL as u16;
const VERSION: u8 = 1;
/// Maximum bytes of a datagram: the kernel makes parts of a dump no longer than 32 KiB.
const MAX_DATAGRAM: usize = 32 << 10;

/// A netlink socket that receives messages of the kernel only.
#[derive(Debug)]
pub struct GenericSocket {
    fd: OwnedFd,
    buffer: Box<[u8]>,
    sequence: u32,
}

impl GenericSocket {
    /// Opens a socket in the calling thread's namespace.
    pub fn open() -> Result<Self, Error> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::GENERIC))
            .map_err(|e| Error::new("opening a socket of generic netlink", e))?;
        connect(&fd, &SocketAddrNetlink::new(0, 0))
            .map_err(|e| Error::new("connecting to generic netlink", e))?;
        Ok(Self { fd, buffer: vec![0; MAX_DATAGRAM].into_boxed_slice(), sequence: 0 })
    }

    /// Returns the identifier of the family called `name`.
    pub fn family(&mut self, name: &str) -> Result<u16, Error> {
        let name_of = attribute(FAMILY_NAME, &[name.as_bytes(), &[0]].concat());
        let mut found = None;
        self.request(CONTROL, libc::CTRL_CMD_GETFAMILY as u8, libc::NLM_F_ACK, &name_of, |body| {
            found = found.or_else(|| family_id(body));
        })
        .and_then(|()| found.ok_or_else(|| io::ErrorKind::NotFound.into()))
        .map_err(|e| Error::new(format!("looking for {name} in this kernel"), e))
    }

    /// Dumps all objects of `family`, and passes each message of the answer, from its command on, to `take`.
    pub fn dump(&mut self, family: u16, command: u8, what: &[u8], take: impl FnMut(&[u8])) -> io::Result<()> {
        self.request(family, command, libc::NLM_F_DUMP, what, take)
    }

    fn request(
        &mut self,
        family: u16,
        command: u8,
        flags: libc::c_int,
        what: &[u8],
        mut take: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let asked = self.sequence;
        send(&self.fd, &encode_request(family, command, flags, asked, what), SendFlags::empty())?;
        // The kernel has answered, or written the first part of a dump, before `send` returns; it writes the following
        // parts in `recv`.
        loop {
            let (len, _) = recv(&self.fd, &mut self.buffer[..], RecvFlags::empty())?;
            for message in messages(&self.buffer[..len]).map_while(Result::ok) {
                if message.sequence != asked {
                    continue;
                }
                match final_status(message) {
                    None => take(message.body),
                    Some(0) => return Ok(()),
                    Some(error) => return Err(io::Error::from_raw_os_error(error)),
                }
            }
        }
    }
}

/// Returns the final status, if the message ends a request: 0, or an error number as in errno(3).
fn final_status(message: Message<'_>) -> Option<i32> {
    match i32::from(message.kind) {
        // Older kernels end a dump without a number.
        libc::NLMSG_ERROR | libc::NLMSG_DONE => {
            Some((ne32(message.body, 0).unwrap_or(0) as i32).saturating_neg())
        }
        _ => None,
    }
}

fn encode_request(family: u16, command: u8, flags: libc::c_int, sequence: u32, what: &[u8]) -> Vec<u8> {
    let mut message = Vec::from(((HEADER_LEN + GENL_HEADER_LEN + what.len()) as u32).to_ne_bytes());
    message.extend(family.to_ne_bytes());
    message.extend(((libc::NLM_F_REQUEST | flags) as u16).to_ne_bytes());
    message.extend(sequence.to_ne_bytes());
    message.extend([0; 4]); // to the kernel
    message.extend([command, VERSION, 0, 0]);
    message.extend(what);
    message
}

fn family_id(body: &[u8]) -> Option<u16> {
    let known = attributes(body.get(GENL_HEADER_LEN..)?).map_while(Result::ok);
    known.into_iter().find(|(kind, _)| *kind == FAMILY_ID).and_then(|(_, id)| ne16(id, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_encoded_completely() {
        let what = attribute(FAMILY_NAME, b"nl80211\0");
        let request = encode_request(CONTROL, 3, libc::NLM_F_ACK, 7, &what);
        let message = messages(&request).next().unwrap().unwrap();
        assert_eq!((message.kind, message.sequence), (16, 7));
        assert_eq!(message.body[..GENL_HEADER_LEN], [3, 1, 0, 0]);
        assert_eq!(attributes(&message.body[GENL_HEADER_LEN..]).next(), Some(Ok((2, &b"nl80211\0"[..]))));
    }

    #[test]
    fn the_kernel_knows_its_families() {
        let mut socket = GenericSocket::open().unwrap();
        assert_eq!(socket.family("nlctrl").unwrap(), CONTROL);
        let error = socket.family("no-such-family").unwrap_err().to_string();
        assert!(error.contains("looking for no-such-family in this kernel"), "{error}");
        // The previous request has left no message behind.
        assert_eq!(socket.family("nlctrl").unwrap(), CONTROL);
        let mut families = 0;
        socket
            .dump(CONTROL, libc::CTRL_CMD_GETFAMILY as u8, &[], |body| {
                families += usize::from(family_id(body).is_some());
            })
            .unwrap();
        assert!(families >= 1);
    }

    #[test]
    fn a_truncated_number_is_no_family() {
        let said = |value: &[u8]| family_id(&[&[1, 2, 0, 0][..], &attribute(FAMILY_ID, value)].concat());
        assert_eq!(said(&28u16.to_ne_bytes()), Some(28));
        assert_eq!((said(&[28]), said(&[]), family_id(&[1])), (None, None, None));
    }
}
