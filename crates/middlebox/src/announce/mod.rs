//! TPA announcements in the handshakes of the kernel's TCP (TPA §6). The service runs the
//! [state machine](hopline_proxy::announce) on packets from an [NFQUEUE](crate::nfqueue).
//!
//! Firewall rules lead only SYNs and SYN-ACKs to the queue. For connections of this host:
//!
//! ```text
//! iptables -A OUTPUT -o wlan0 -p tcp --tcp-flags SYN SYN -j NFQUEUE --queue-num 7 --queue-bypass
//! iptables -A INPUT -i wlan0 -p tcp --tcp-flags SYN SYN -j NFQUEUE --queue-num 7 --queue-bypass
//! ```
//!
//! For connections of hosts behind this one, use the same rules in `FORWARD`; for IPv6, use `ip6tables`. With
//! `--queue-bypass`, handshakes pass unchanged while this process does not run. Code that opens connections queries
//! [`HostProtocols`]. A query takes one lock, which it shares only with the handling of handshakes.

mod figures;

use crate::nfqueue::{self, PacketQueue, QueuedPacket};
use crate::service::{Notice, Service, ServiceStatus, Severity};
use figures::Counts;
use hopline_core::Instant;
use hopline_linux::Error;
use hopline_linux::event_loop::{Clock, MetricsTimer, WaitResult};
use hopline_linux::watched::WatchedInterfaces;
use hopline_proxy::PacketVerdict;
use hopline_proxy::announce::{self as machine, AnnounceAction, Announcer, Direction};
pub use hopline_proxy::announce::{Role, TransportSupport};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Configuration of the announcement service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Interface that leads to the peer. Packets pass unchanged if they do not cross it, or if they both arrive and leave by
    /// it.
    pub interface: String,
    /// Number of the NFQUEUE in the firewall rules, 0 to 65,535.
    pub queue: u16,
    /// Maximum number of handshake packets in the queue, 1 or more. Further ones pass unchanged. Default 1024.
    pub queue_length: u32,
    /// Configuration of the state machine, with its role (client or server).
    pub machine: machine::Config,
}

impl Config {
    /// Returns the defaults for this role, interface and queue.
    #[must_use]
    pub fn new(role: Role, interface: impl Into<String>, queue: u16) -> Self {
        Self { interface: interface.into(), queue, queue_length: 1024, machine: machine::Config::new(role) }
    }
}

/// Service that adds TPA announcements to TCP handshakes and reads those of peers.
#[derive(Debug)]
pub struct Announcements {
    gate: PacketQueue,
    protocols: HostProtocols,
    /// The interface that leads to the peer.
    watched: WatchedInterfaces,
    /// Index of the interface in the kernel. `None` while the interface does not exist.
    index: Option<u32>,
    counts: Counts,
}

/// Table of the transport protocols that hosts support. Clones share one table.
#[derive(Clone, Debug)]
pub struct HostProtocols {
    announcer: Arc<Mutex<Announcer>>,
    clock: Clock,
}

impl Announcements {
    /// Binds the NFQUEUE, in the calling thread's network namespace. From then on handshakes wait until the service runs.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_ADMIN`, without NFQUEUE in the kernel, or if another process has bound the
    /// queue; [`Error::NoSuchInterface`].
    pub fn open(config: &Config) -> Result<Self, Error> {
        let Config { interface, queue, queue_length, machine } = config.clone();
        let queue = nfqueue::Config { length: queue_length, ..nfqueue::Config::new(queue, "") };
        let gate = PacketQueue::open(&queue)?;
        let watched = WatchedInterfaces::new([interface.as_str()])?;
        let index = watched.first_index();
        let known =
            HostProtocols { announcer: Arc::new(Mutex::new(Announcer::new(machine))), clock: Clock::start() };
        Ok(Self { gate, protocols: known, watched, index, counts: Counts::default() })
    }

    /// Returns the shared table, for code that opens connections.
    #[must_use]
    pub fn host_protocols(&self) -> HostProtocols {
        self.protocols.clone()
    }

    fn handle_packets(&mut self, now: Instant) -> io::Result<()> {
        for mut passing in self.gate.receive()? {
            let fate = self.process(now, &mut passing);
            self.gate.set_verdict(&passing, &fate);
        }
        self.gate.flush()
    }

    fn process(&mut self, now: Instant, passing: &mut QueuedPacket) -> PacketVerdict {
        let (Some(towards), Some(packet)) = (self.direction(passing), &mut passing.packet) else {
            self.counts.ineligible += 1;
            return PacketVerdict::Forward;
        };
        let done = self.protocols.lock().pass(now, towards, packet);
        self.counts.record(done);
        match done {
            AnnounceAction::SynMarked
            | AnnounceAction::MarkRead
            | AnnounceAction::SynAckMarked
            | AnnounceAction::Learned(..) => PacketVerdict::Replace(std::mem::take(packet)),
            AnnounceAction::Unchanged => PacketVerdict::Forward,
        }
    }

    /// Returns the direction of a packet. `None` if it does not cross the interface.
    fn direction(&self, passing: &QueuedPacket) -> Option<Direction> {
        let is_ours = |interface: Option<u32>| interface.is_some() && interface == self.index;
        match (is_ours(passing.in_interface), is_ours(passing.out_interface)) {
            (false, true) => Some(Direction::ToPeer),
            (true, false) => Some(Direction::ToHosts),
            _ => None,
        }
    }

    /// Updates the index of the interface, which changes when the interface disappears and returns. The table is kept.
    fn refresh_interface(&mut self, ledger: &ServiceStatus) {
        let index = self.watched.first_index();
        if index == self.index {
            return;
        }
        self.index = index;
        let (tone, text) = match self.watched.check() {
            Err(gone) if index.is_none() => (Severity::Warning, gone.to_string()),
            _ => (Severity::Normal, "the interface of announcements exists again".to_owned()),
        };
        ledger.report(Notice { subject: "interface".into(), severity: tone, text });
    }

    fn poll(&mut self, written: &mut MetricsTimer, ledger: &ServiceStatus) -> io::Result<()> {
        let now = self.protocols.clock.now();
        self.handle_packets(now)?;
        if written.is_due(now) {
            ledger.set_metrics(self.counts.metrics(self.gate.error_counts()));
            self.refresh_interface(ledger);
        }
        Ok(())
    }
}

impl Service for Announcements {
    fn run(mut self: Box<Self>, stop: BorrowedFd<'_>, ledger: &ServiceStatus) -> io::Result<()> {
        let mut written = MetricsTimer::default();
        let ended = loop {
            if let Err(error) = self.poll(&mut written, ledger) {
                break Err(error);
            }
            match self.protocols.clock.wait([self.gate.as_fd(), stop], stop, None) {
                Ok(WaitResult::Ready) => {}
                Ok(WaitResult::Stopped) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        ledger.set_metrics(self.counts.metrics(self.gate.error_counts()));
        ended
    }
}

impl HostProtocols {
    /// Returns the transport support of `host`. `None` if it is unknown, or if the entry has expired.
    #[must_use]
    pub fn protocols_of(&self, host: IpAddr) -> Option<TransportSupport> {
        self.lock().transport_support(self.clock.now(), host)
    }

    fn lock(&self) -> MutexGuard<'_, Announcer> {
        self.announcer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
