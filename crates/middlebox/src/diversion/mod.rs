//! Forwarded connections that a local listener accepts once the router's firewall has let them through.
//!
//! A rule that captures a connection before routing would bypass the hook `forward`, and with it the router's firewall.
//! Here a SYN is forwarded as any other packet is. Behind all rules of `forward` it waits in an NFQUEUE. To divert the
//! connection, a raw socket sends the SYN to this host. Its mark makes a routing rule lead it to the loopback interface;
//! its priority makes an nftables rule (`tproxy`) select the listener. The queued SYN is dropped. A connection that the
//! firewall drops or rejects therefore gets the same answer as without a listener.
//!
//! On a router that selects routes by more than the destination ([`policy`](hopline_linux::policy)), a connection is not diverted
//! if a connection from this host would take another route.
//!
//! The firewall sees only the first packet of a connection, as does a firewall that accepts established connections.

mod unaccepted;

pub(crate) use unaccepted::SYN_ACK_TIMEOUT;
pub use unaccepted::Unaccepted;

use crate::nfqueue::{self, PacketQueue, QueuedPacket, WhenFull, destination, raw_socket};
use crate::own_routes::{Halves, OwnRoutes};
use crate::service::{Metric, Service, ServiceStatus};
use crate::split::Refusal;
use hopline_linux::Error;
use hopline_proxy::PacketVerdict as PacketFate;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket2::{Domain, Socket};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// Path of a SYN from the end of the hook `forward` to a local listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Diversion {
    /// Number of the queue, as in the rule.
    pub queue: u16,
    /// Upper half of the mark by which a routing rule leads packets to this host.
    pub mark: u16,
    /// Port of the listener, at the loopback addresses.
    pub port: u16,
}

/// Upper half of the priority of packets that are sent to this host: a major number of tc(8).
pub const MAJOR: u16 = 0x686f;
/// Description of the metric for connections that pass because their routes differ.
pub(crate) const BYPASS_DESCRIPTION: &str = "calls that were forwarded, as rules of routing lead what this machine sends another way than what it forwards";
/// SYNs that the kernel may queue in addition to those that are held.
pub(crate) const QUEUE_MARGIN: u32 = 1024;
/// Maximum interval between two updates of a [`Diverter`]'s counters.
const UPDATE_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

impl Diversion {
    /// Binds the queue, in the calling thread's namespace, with room for `held` SYNs. The kernel drops SYNs when it is
    /// full.
    pub(crate) fn open_queue(self, held: usize) -> Result<PacketQueue, Error> {
        // A SYN takes 80 bytes, and about 800 more in the kernel.
        PacketQueue::open(&nfqueue::Config {
            length: u32::try_from(held).unwrap_or(u32::MAX).saturating_add(QUEUE_MARGIN),
            receive_buffer: 4 << 20,
            when_full: WhenFull::Drop,
            ..nfqueue::Config::new(self.queue, "")
        })
    }

    /// Opens the socket that sends SYNs to the listener.
    pub(crate) fn to_listener(self) -> Result<Loopback, Error> {
        self.with_code(self.port)
    }

    /// Opens the socket that sends SYNs to this host with a code in place of a port.
    pub(crate) fn with_code(self, code: u16) -> Result<Loopback, Error> {
        Loopback::open(u32::from(self.mark) << 16, u32::from(MAJOR) << 16 | u32::from(code))
    }
}

/// Sends forwarded packets to this host.
#[derive(Debug)]
pub(crate) struct Loopback {
    v4: Socket,
    /// Raw socket for IPv6. `None` if the kernel has no IPv6.
    v6: Option<Socket>,
}

impl Loopback {
    fn open(mark: u32, priority: u32) -> Result<Self, Error> {
        let failed = |e| Error::new("opening a raw socket", e);
        let v4 = raw_socket(Domain::IPV4, mark, priority).map_err(failed)?;
        let v6 = match raw_socket(Domain::IPV6, mark, priority) {
            Ok(socket) => Some(socket),
            Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => None,
            Err(error) => return Err(failed(error)),
        };
        Ok(Self { v4, v6 })
    }

    /// Sends a packet. Returns whether the kernel has accepted it: a rule of the hook `output` may reject it.
    #[must_use]
    pub(crate) fn send(&self, packet: &[u8]) -> bool {
        let Some(to) = destination(packet) else { return false };
        let socket = if to.is_ipv4() { Some(&self.v4) } else { self.v6.as_ref() };
        socket.is_some_and(|socket| socket.send_to(packet, &to.into()).is_ok())
    }
}

/// Diverts all connections of its queue.
#[derive(Debug)]
pub struct Diverter {
    gate: PacketQueue,
    listener: Loopback,
    own_routes: OwnRoutes,
    unaccepted: Unaccepted,
    /// Sends SYNs to a rule that resets them. `None`: they are forwarded.
    reset_path: Option<Loopback>,
    diverted: u64,
    undiverted: u64,
    refused: u64,
    asymmetric: u64,
}

/// Treatment of a SYN that cannot be passed to the listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverflowPolicy {
    /// It is forwarded, as without a listener.
    Forward,
    /// It is reset, since no connection may bypass the listener: see [`Refusal::Reset`].
    Reset,
}

impl Diverter {
    /// Binds the queue, in the calling thread's namespace. `unaccepted`: connections that the listener has yet to accept.
    /// The listener removes those that it accepts.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_ADMIN` and `CAP_NET_RAW`; if another program has the queue.
    pub fn open(diversion: Diversion, unaccepted: Unaccepted, beyond: OverflowPolicy) -> Result<Self, Error> {
        let (gate, listener) = (diversion.open_queue(0)?, diversion.to_listener()?);
        let refusing = match beyond {
            OverflowPolicy::Forward => None,
            OverflowPolicy::Reset => Some(diversion.with_code(Refusal::Reset.code())?),
        };
        // Towards servers, the peer gateway or this one connects under its own address.
        let own_routes = OwnRoutes::open(diversion, Halves::Client, None)?;
        let (diverted, undiverted, refused, unfollowed) = (0, 0, 0, 0);
        Ok(Self {
            gate,
            listener,
            own_routes,
            unaccepted,
            reset_path: refusing,
            diverted,
            undiverted,
            refused,
            asymmetric: unfollowed,
        })
    }

    fn handle_syns(&mut self) -> io::Result<()> {
        for passing in self.gate.receive()? {
            if !self.own_routes.match_forwarded(&passing) {
                self.decline(&passing, |own| &mut own.asymmetric);
                continue;
            }
            match divert(&mut self.gate, &self.listener, &self.unaccepted, (now(), &passing)) {
                DivertResult::Sent => self.diverted += 1,
                DivertResult::Full | DivertResult::Forbidden => {
                    self.decline(&passing, |own| &mut own.undiverted)
                }
            }
        }
        self.gate.flush()
    }

    /// Forwards or resets a SYN that does not go to the listener. `forwarded` selects the counter for the former.
    fn decline(&mut self, syn: &QueuedPacket, forwarded: fn(&mut Self) -> &mut u64) {
        let Some(refusing) = &self.reset_path else {
            self.gate.set_verdict(syn, &PacketFate::Forward);
            *forwarded(self) += 1;
            return;
        };
        // If the reset is lost, the client repeats its SYN.
        let _ = refusing.send(syn.packet.as_deref().unwrap_or_default());
        self.gate.set_verdict(syn, &PacketFate::Drop);
        self.refused += 1;
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::counter("diverted_syns", "SYNs that went to the listener", self.diverted),
            Metric::counter("undiverted_syns", "SYNs that were forwarded instead", self.undiverted),
            Metric::counter(
                "refused_syns",
                "SYNs that were reset, as they could not go to the listener and nothing may go past it",
                self.refused,
            ),
            Metric::counter("unfollowed_syns", BYPASS_DESCRIPTION, self.asymmetric),
        ]
    }
}

impl Service for Diverter {
    fn run(mut self: Box<Self>, stop: BorrowedFd<'_>, ledger: &ServiceStatus) -> io::Result<()> {
        loop {
            let mut fds =
                [PollFd::from_borrowed_fd(stop, PollFlags::IN), PollFd::new(&self.gate, PollFlags::IN)];
            match poll(&mut fds, Some(&UPDATE_INTERVAL)) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let [is_over, is_ready] = fds.each_ref().map(|fd| !fd.revents().is_empty());
            if is_ready {
                self.handle_syns()?;
            }
            ledger.set_metrics(self.metrics());
            if is_over {
                return Ok(());
            }
        }
    }
}

/// Result of diverting a queued SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DivertResult {
    /// It was sent to the listener.
    Sent,
    /// It still waits: its network has used its share of connections that the listener has not accepted.
    Full,
    /// It still waits: a firewall rule of this host rejects it.
    Forbidden,
}

/// Sends a queued SYN to the listener, if there is room.
pub(crate) fn divert(
    gate: &mut PacketQueue,
    listener: &Loopback,
    unaccepted: &Unaccepted,
    (now, syn): (Instant, &QueuedPacket),
) -> DivertResult {
    let packet = syn.packet.as_deref().unwrap_or_default();
    if !unaccepted.enter(now, packet) {
        return DivertResult::Full;
    }
    if !listener.send(packet) {
        return DivertResult::Forbidden;
    }
    gate.set_verdict(syn, &PacketFate::Drop);
    DivertResult::Sent
}

#[expect(clippy::disallowed_methods, reason = "calls come in real time")]
fn now() -> Instant {
    Instant::now()
}
