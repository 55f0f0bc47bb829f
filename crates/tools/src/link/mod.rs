//! Emulated link in real time. One thread connects two network namespaces: it carries packets from one TUN interface to
//! the other, and applies an [`Emulation`] to them. Kernel TCP and UDP run over it unchanged.

mod damage;
mod forwarder;
mod fragmentation;
mod hosts;
mod lateness;
mod nat;

pub use damage::Damage;
pub use lateness::{Lateness, LatenessRecorder};

use forwarder::Forwarder;
use hopline_core::Instant;
use hopline_link::{DirectionStats, Emulation, NatPortPolicy, Side};
use hopline_linux::sched::Priority;
use hopline_linux::{Error, Namespace, Network};
use hosts::{End, Versions};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::thread;

/// Parameters of a [`NamespaceLink`].
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Emulation of the direction from A to B. Its times count from the creation of the link.
    pub forward: Emulation,
    /// Emulation of the direction from B to A.
    pub reverse: Emulation,
    /// Random seed. The same seed and the same packets at the same times give the same results, but real hosts never
    /// repeat their times exactly.
    pub seed: u64,
    /// MTU of the link: maximum bytes of an IP packet. At least 68 (RFC 791); default 1500.
    pub mtu: u16,
    /// Path MTU, in bytes, if a router on the path has a smaller one. It fragments longer packets, or drops them silently
    /// if they must not be fragmented. At least 68; default `None`, which means `mtu`.
    pub path_mtu: Option<u16>,
    /// Effect of corruption. Default: errors that the kernel's checksums detect.
    pub damage: Damage,
    /// Hosts or routers at A and at B. Default: a host at each.
    pub ends: [EndConfig; 2],
}

/// Host or router at one end of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndConfig {
    /// Role of the end.
    pub role: EndRole,
    /// Further networks behind this end. The other end has routes to them, and this end forwards.
    pub networks: Vec<Network>,
}

/// Role of an end of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndRole {
    /// A host.
    #[default]
    Host,
    /// A router, connected to the host behind it.
    Router,
}

impl Setup {
    /// Returns parameters with the default MTU and damage.
    #[must_use]
    pub fn new(forth: Emulation, back: Emulation, seed: u64) -> Self {
        Self {
            forward: forth,
            reverse: back,
            seed,
            mtu: 1500,
            path_mtu: None,
            damage: Damage::default(),
            ends: Default::default(),
        }
    }
}

/// Statistics of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkStats {
    /// Packets from A to B.
    pub forward: DirectionStats,
    /// Packets from B to A.
    pub reverse: DirectionStats,
    /// Delay of deliveries relative to their schedule. Measurements are only valid if it is small.
    pub lateness: Lateness,
    /// Scheduling priority of the forwarding thread.
    pub priority: Priority,
    /// Packets lost apart from the emulation: from A to B, from B to A.
    pub drops: [Drops; 2],
}

/// Packets of one direction that were lost although the emulation did not drop them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// Packets dropped by the sending host's interface: its queue of 500 was full, since the forwarding thread was late,
    /// or packets came faster than it can carry them.
    pub interface: u64,
    /// Packets that exceed the path MTU and must not be fragmented.
    pub too_long: u64,
    /// Packets that are neither IPv4 nor IPv6.
    pub not_ip: u64,
    /// Membership reports, which kernels send by themselves.
    pub memberships: u64,
    /// Packets for a port that the address translator does not know, or no longer. They count as delivered by the
    /// emulation.
    pub unknown_port: u64,
    /// Packets that the receiving kernel rejected. They count as delivered by the emulation.
    pub refused: u64,
}

impl LinkStats {
    /// Returns the sums over both directions.
    #[must_use]
    pub const fn all_drops(&self) -> Drops {
        let [forth, back] = self.drops;
        Drops {
            interface: forth.interface + back.interface,
            too_long: forth.too_long + back.too_long,
            not_ip: forth.not_ip + back.not_ip,
            memberships: forth.memberships + back.memberships,
            unknown_port: forth.unknown_port + back.unknown_port,
            refused: forth.refused + back.refused,
        }
    }
}

impl Drops {
    /// Returns the packets that were dropped before the emulation.
    #[must_use]
    pub const fn before_emulation(&self) -> u64 {
        self.interface + self.too_long + self.not_ip
    }

    /// Returns the packets that were dropped after the emulation.
    #[must_use]
    pub const fn after_emulation(&self) -> u64 {
        self.unknown_port + self.refused
    }
}

/// Two hosts, A and B, and a link between them. Dropping the value removes all of it.
#[derive(Debug)]
pub struct NamespaceLink {
    // Dropped in this order: the thread and its interfaces, then the namespaces.
    forwarder: Forwarder,
    ends: [End; 2],
}

/// Name of the interface to the link, on both sides.
const INTERFACE: &str = "link0";
/// Name of the interface between a router and the host behind it, on both sides.
const LAN_INTERFACE: &str = "lan0";

impl NamespaceLink {
    /// Creates a link with the default MTU.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without privileges: it needs root and `/dev/net/tun`.
    pub fn new(forth: Emulation, back: Emulation, seed: u64) -> Result<Self, Error> {
        Self::with(Setup::new(forth, back, seed))
    }

    /// Creates a link with the parameters `setup`.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without privileges: it needs root and `/dev/net/tun`.
    pub fn with(setup: Setup) -> Result<Self, Error> {
        let (a, tun_a) = End::new(Side::A, &setup)?;
        let (b, tun_b) = End::new(Side::B, &setup)?;
        let forwarder = Forwarder::start([tun_a, tun_b], setup)?;
        Ok(Self { forwarder, ends: [a, b] })
    }

    /// Runs `what` in a thread on host A and waits for it.
    ///
    /// # Panics
    /// If `what` panics, or the system cannot start a thread.
    pub fn run_in_a<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        self.run_in(Side::A, what)
    }

    /// Runs `what` in a thread on host B and waits for it.
    ///
    /// # Panics
    /// If `what` panics, or the system cannot start a thread.
    pub fn run_in_b<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        self.run_in(Side::B, what)
    }

    /// Runs `a` on host A and `b` on host B at the same time, and waits for both.
    ///
    /// # Panics
    /// If `a` or `b` panics, or the system cannot start a thread.
    pub fn run_both<A: Send, B: Send>(
        &self,
        a: impl FnOnce() -> A + Send,
        b: impl FnOnce() -> B + Send,
    ) -> (A, B) {
        thread::scope(|scope| {
            let other = scope.spawn(|| self.run_in_b(b));
            let a = self.run_in_a(a);
            (a, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }

    fn run_in<T: Send>(&self, side: Side, what: impl FnOnce() -> T + Send) -> T {
        self.host(side).run(what).expect("what could be entered when it was made can be entered again")
    }

    /// Returns the host on `side`. If that end is a router, this is the host behind it.
    #[must_use]
    pub fn host(&self, side: Side) -> &Namespace {
        self.ends[side as usize].host()
    }

    /// Returns the router on `side`, if that end is one.
    #[must_use]
    pub fn router(&self, side: Side) -> Option<&Namespace> {
        let End { end, behind, .. } = &self.ends[side as usize];
        behind.as_ref().map(|_| end)
    }

    /// Returns the address of an end: that of the host or of the router.
    #[must_use]
    pub const fn address(side: Side) -> Ipv4Addr {
        hosts::end_v4(side)
    }

    /// Returns the IPv4 address of the host on `side`.
    #[must_use]
    pub fn host_v4(&self, side: Side) -> Ipv4Addr {
        match self.router(side) {
            Some(_) => hosts::behind(side).0,
            None => hosts::end_v4(side),
        }
    }

    /// Returns the IPv6 address of the host on `side`; `None` if the kernel has no IPv6, or the MTU of the link is too
    /// small for it.
    #[must_use]
    pub fn host_v6(&self, side: Side) -> Option<Ipv6Addr> {
        let address = match self.router(side) {
            Some(_) => hosts::behind(side).1,
            None => hosts::end_v6(side),
        };
        (self.ends[side as usize].versions == Versions::Both).then_some(address)
    }

    /// Returns the address of host A.
    #[must_use]
    pub const fn address_a(&self) -> Ipv4Addr {
        Self::address(Side::A)
    }

    /// Returns the address of host B.
    #[must_use]
    pub const fn address_b(&self) -> Ipv4Addr {
        Self::address(Side::B)
    }

    /// Returns the time on the link's clock, which starts with the link. Blackouts are given in this time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.forwarder.now()
    }

    /// Returns the statistics of the link so far.
    #[must_use]
    pub fn stats(&self) -> LinkStats {
        let mut stats = self.forwarder.stats();
        for (drops, end) in stats.drops.iter_mut().zip(&self.ends) {
            // Without a thread on the host, the counter of its interface cannot be read.
            drops.interface = end.end.run(hosts::dropped_by_interface).unwrap_or(0);
        }
        stats
    }

    /// Rebinds the host on `side`, which is behind an address translator, as each host is. At first, each UDP port is
    /// reachable under its own number. From now on, packets of the host come from other ports, and packets to a new port
    /// arrive once that host has sent from it. `old` selects the treatment of the ports that the other host knows. TCP is
    /// not translated.
    pub fn rebind(&self, side: Side, old: NatPortPolicy) {
        self.forwarder.rebind(side, old);
    }
}
