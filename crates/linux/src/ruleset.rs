//! Generation number of the nftables rule set, by which a program detects changes without listing the rules.

use crate::netlink::{attributes, message, messages};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind, Read};

/// Reads the generation of the nftables rule set, in the namespace in which it was opened. It covers the rules of
/// iptables if those are kept in nftables (`iptables-nft`).
#[derive(Debug)]
pub struct Ruleset(Socket);

/// `NFT_MSG_GETGEN` and `NFT_MSG_NEWGEN` of the subsystem `NFNL_SUBSYS_NFTABLES`, and `NFTA_GEN_ID` (linux/netfilter/nf_tables.h).
const SUBSYSTEM: u16 = 10 << 8;
const GET: u16 = SUBSYSTEM | 16;
const NEW: u16 = SUBSYSTEM | 15;
const ID: u16 = 1;
/// Bytes of `struct nfgenmsg` (linux/netfilter/nfnetlink.h): family, version, resource.
const GENERAL: usize = 4;

impl Ruleset {
    /// # Errors
    /// If the system has no socket.
    pub fn open() -> io::Result<Self> {
        let netfilter = Protocol::from(libc::NETLINK_NETFILTER);
        Socket::new(Domain::from(libc::AF_NETLINK), Type::from(libc::SOCK_RAW), Some(netfilter)).map(Self)
    }

    /// Returns the generation number.
    ///
    /// # Errors
    /// Error of the system: `EPERM` without `CAP_NET_ADMIN`, `EINVAL` if the kernel has no nftables.
    pub fn generation(&mut self) -> io::Result<u32> {
        self.0.send(&message(GET, 0, &[0; GENERAL]))?;
        // The kernel has answered and acknowledged when `send` returns.
        let mut generation = None;
        loop {
            let mut answer = [0; 1024];
            let len = self.0.read(&mut answer)?;
            for message in messages(&answer[..len]) {
                let message = message.map_err(|_| ErrorKind::InvalidData)?;
                match i32::from(message.kind) {
                    libc::NLMSG_ERROR => return check_answer(message.body, generation),
                    _ if message.kind == NEW => generation = read(message.body),
                    _ => {}
                }
            }
        }
    }
}

/// An error of zero is the acknowledgement (netlink(7)).
fn check_answer(body: &[u8], generation: Option<u32>) -> io::Result<u32> {
    match body.first_chunk().copied().map(i32::from_ne_bytes) {
        Some(0) => generation.ok_or_else(|| ErrorKind::InvalidData.into()),
        Some(error) => Err(io::Error::from_raw_os_error(error.saturating_neg())),
        None => Err(ErrorKind::UnexpectedEof.into()),
    }
}

fn read(body: &[u8]) -> Option<u32> {
    let mut of_body = attributes(body.get(GENERAL..)?);
    let id = of_body.find_map(|attribute| attribute.ok().filter(|(kind, _)| *kind == ID))?.1;
    id.first_chunk().copied().map(u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::attribute;

    #[test]
    fn a_generation_is_parsed_and_truncated_answers_have_none() {
        let body = [&[0; GENERAL][..], &attribute(2, b"nft\0"), &attribute(ID, &7u32.to_be_bytes())].concat();
        assert_eq!(read(&body), Some(7));
        for len in 0..body.len() {
            assert_eq!(read(&body[..len]), None);
        }
        assert_eq!(check_answer(&0i32.to_ne_bytes(), Some(7)).unwrap(), 7);
        assert_eq!(check_answer(&(-1i32).to_ne_bytes(), None).unwrap_err().raw_os_error(), Some(1));
        assert!(check_answer(&[], Some(7)).is_err() && check_answer(&[0; 4], None).is_err());
    }
}
