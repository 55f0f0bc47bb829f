//! Statistics of an interface's queueing discipline: `RTM_GETQDISC` of rtnetlink(7), linux/gen_stats.h.

use crate::error::Error;
use crate::netlink::{self, attributes, ne32};
use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};
use std::io;
use std::os::fd::OwnedFd;

/// Statistics of an interface's root queueing discipline, including those below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QdiscStats {
    /// Queued packets.
    pub packets: u32,
    /// Queued bytes.
    pub bytes: u32,
    /// Packets dropped since the discipline was installed; the counter wraps around.
    pub drops: u32,
}

/// Requests statistics of one interface's queue.
#[derive(Debug)]
pub struct Qdisc {
    fd: OwnedFd,
    interface: u32,
    sequence: u32,
    buffer: Vec<u8>,
}

/// Maximum bytes of a datagram: the kernel fills the buffer up to this size.
const MAX_DATAGRAM: usize = 32 << 10;
/// `struct tcmsg` of linux/rtnetlink.h, in bytes.
const TC_HEADER: usize = 20;
/// Parent of the root discipline.
const ROOT: u32 = 0xffff_ffff;
/// Attributes of linux/rtnetlink.h and linux/gen_stats.h.
const TCA_STATS2: u16 = 7;
const TCA_STATS_QUEUE: u16 = 3;

impl Qdisc {
    /// Opens a socket for this interface of the calling thread's namespace.
    ///
    /// # Errors
    /// If there is no such interface, or no socket can be opened.
    pub fn of(interface: &str) -> Result<Self, Error> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // `NETLINK_ROUTE` is protocol 0.
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)
            .map_err(|e| Error::new("opening a netlink socket of routing", e))?;
        connect(&fd, &SocketAddrNetlink::new(0, 0)).map_err(|e| Error::new("connecting to routing", e))?;
        let index = name_to_index(&fd, interface).map_err(|e| Error::of_interface(interface, e))?;
        Ok(Self { fd, interface: index, sequence: 0, buffer: vec![0; MAX_DATAGRAM] })
    }

    /// Returns the current statistics; `None` if no queue reports any, or the interface no longer exists.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn read(&mut self) -> io::Result<Option<QdiscStats>> {
        self.sequence = self.sequence.wrapping_add(1);
        send(&self.fd, &request(self.sequence), SendFlags::empty())?;
        let mut found = None;
        // The kernel has the answer before `send` returns, or creates it during reception.
        loop {
            let len = match recv(&self.fd, self.buffer.as_mut_slice(), RecvFlags::empty()) {
                Ok((len, _)) => len,
                Err(Errno::AGAIN) => return Ok(found),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let part = parse(&self.buffer[..len], self.sequence, self.interface);
            found = found.or(part.stats);
            if part.is_last {
                return Ok(found);
            }
        }
    }
}

/// Returns a request for all disciplines of the namespace. For a request about one, the kernel would notify all listeners
/// for changes.
fn request(sequence: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(netlink::HEADER_LEN + TC_HEADER);
    out.extend(((netlink::HEADER_LEN + TC_HEADER) as u32).to_ne_bytes());
    out.extend(libc::RTM_GETQDISC.to_ne_bytes());
    out.extend(((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16).to_ne_bytes());
    out.extend(sequence.to_ne_bytes());
    out.extend([0; 4]); // to the kernel
    out.extend([0; TC_HEADER]);
    out
}

/// Content of a datagram that answers a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Statistics of the interface, if the datagram has them.
    pub stats: Option<QdiscStats>,
    /// `true` if no further datagram follows.
    pub is_last: bool,
}

/// Reads a datagram that answers the request `sequence`: the statistics of the root discipline of `interface`. Other
/// messages are skipped.
#[must_use]
pub fn parse(datagram: &[u8], sequence: u32, interface: u32) -> Part {
    let mut part = Part::default();
    for message in netlink::messages(datagram) {
        // Behind a message with an invalid length nothing can be parsed.
        let Ok(message) = message else { return Part { is_last: true, ..part } };
        if message.sequence != sequence {
            continue;
        }
        match i32::from(message.kind) {
            libc::NLMSG_DONE | libc::NLMSG_ERROR => part.is_last = true,
            kind if kind == i32::from(libc::RTM_NEWQDISC) && is_root_of(message.body, interface) => {
                part.stats = part.stats.or_else(|| stats(message.body));
            }
            _ => {}
        }
    }
    part
}

/// Returns whether a discipline is the root of an interface.
fn is_root_of(body: &[u8], interface: u32) -> bool {
    ne32(body, 4) == Some(interface) && ne32(body, 12) == Some(ROOT)
}

/// Returns the statistics of a discipline, if it has any.
fn stats(body: &[u8]) -> Option<QdiscStats> {
    let figures = find(body.get(TC_HEADER..)?, TCA_STATS2)?;
    let queue = find(figures, TCA_STATS_QUEUE)?;
    // `struct gnet_stats_queue`; later kernels may append fields.
    let number = |index: usize| ne32(queue, 4 * index);
    Some(QdiscStats { packets: number(0)?, bytes: number(1)?, drops: number(2)? })
}

/// Returns the value of an attribute, unless an earlier one has an invalid length.
fn find(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    let found = attributes(bytes).map_while(Result::ok).find(|(kind, _)| *kind == wanted)?;
    Some(found.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::attribute;
    use proptest::prelude::*;

    fn message(kind: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        let len = (netlink::HEADER_LEN + body.len()) as u32;
        [&len.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 2], &sequence.to_ne_bytes(), &[0; 4], body]
            .concat()
    }

    const INTERFACE: u32 = 5;

    fn discipline(interface: u32, parent: u32, figures: &[u8]) -> Vec<u8> {
        let header: Vec<u8> =
            [0, interface, 0x1_0000, parent, 2].into_iter().flat_map(u32::to_ne_bytes).collect();
        let body = [&header[..], &attribute(1, b"tbf\0"), &attribute(TCA_STATS2, figures)].concat();
        message(libc::RTM_NEWQDISC, 7, &body)
    }

    fn figures(packets: u32) -> Vec<u8> {
        let queue: Vec<u8> = [packets, 4500, 9, 0, 2].into_iter().flat_map(u32::to_ne_bytes).collect();
        [attribute(1, &[0; 12]), attribute(TCA_STATS_QUEUE, &queue)].concat()
    }

    fn saying(figures: &[u8]) -> Vec<u8> {
        discipline(INTERFACE, ROOT, figures)
    }

    #[test]
    fn queue_length_and_drops_are_read_at_the_root_of_the_interface() {
        let others =
            [discipline(INTERFACE - 1, ROOT, &figures(1)), discipline(INTERFACE, 0x1_0001, &figures(2))];
        let datagram =
            [&others.concat()[..], &saying(&figures(3)), &message(libc::NLMSG_DONE as u16, 7, &[0; 4])]
                .concat();
        let counted = Some(QdiscStats { packets: 3, bytes: 4500, drops: 9 });
        assert_eq!(parse(&datagram, 7, INTERFACE), Part { stats: counted, is_last: true });
        assert_eq!(parse(&others.concat(), 7, INTERFACE), Part::default());
    }

    #[test]
    fn unrelated_answers_are_ignored() {
        assert_eq!(parse(&saying(&figures(3)), 8, INTERFACE), Part::default());
    }

    #[test]
    fn a_queue_without_statistics_has_none() {
        let short = attribute(TCA_STATS_QUEUE, &[0; 8]);
        for nothing in [saying(&[]), saying(&short), message(libc::RTM_NEWQDISC, 7, &[0; 3])] {
            assert_eq!(parse(&nothing, 7, INTERFACE), Part::default());
        }
        let refused = message(libc::NLMSG_ERROR as u16, 7, &(-libc::EPERM).to_ne_bytes());
        assert_eq!(parse(&refused, 7, INTERFACE), Part { stats: None, is_last: true });
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>(), with in any::<u8>()) {
            let _ = parse(&bytes, 7, INTERFACE);
            let mut damaged = saying(&figures(3));
            let at = at.index(damaged.len());
            damaged[at] = with;
            let _ = parse(&damaged, 7, INTERFACE);
            let _ = parse(&damaged[..at], 7, INTERFACE);
        }
    }
}
