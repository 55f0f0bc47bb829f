//! The emulated link in real time: two network namespaces, joined by one thread that carries packets from one TUN
//! interface to the other and does to them what an [`Emulation`] says. Kernel TCP and UDP run over it unchanged.

mod damage;
mod forwarder;
mod hosts;
mod lateness;
mod narrow;
mod nat;

pub use damage::Damage;
pub use lateness::Lateness;

use crate::sched::Priority;
use crate::{Error, Namespace, Network};
use forwarder::Forwarder;
use hopline_core::Instant;
use hopline_link::{Counts, Emulation, OldPorts, Side};
use hosts::{End, Versions};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::thread;

/// What a [`NamespaceLink`] is to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// What happens to packets from A to B. Its instants count from the making of the link.
    pub forth: Emulation,
    /// What happens to packets from B to A.
    pub back: Emulation,
    /// Same seed and same packets at the same times: same fates. (Real hosts do not send at the same times twice.)
    pub seed: u64,
    /// Longest IP packet, in bytes. At least 68 (RFC 791); default 1500.
    pub mtu: u16,
    /// Longest IP packet that passes a router on the path, in bytes: longer ones it cuts into fragments, or drops in silence
    /// where it may not. At least 68; default `None`, as many as `mtu`.
    pub path_mtu: Option<u16>,
    /// What corruption does. Default: what the kernel's checksums notice.
    pub damage: Damage,
    /// Hosts or routers at A and at B. Default: a host at each.
    pub ends: [Ends; 2],
}

/// Host or router at one end of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Host or router.
    pub stands: Stands,
    /// Networks behind this end, beside those that the link makes: the other end has routes to them, and this end forwards.
    pub networks: Vec<Network>,
}

/// Role of an end of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stands {
    /// A host.
    #[default]
    Host,
    /// A router, by cable to a host behind it.
    Router,
}

impl Setup {
    /// The usual MTU and damage.
    #[must_use]
    pub fn new(forth: Emulation, back: Emulation, seed: u64) -> Self {
        Self {
            forth,
            back,
            seed,
            mtu: 1500,
            path_mtu: None,
            damage: Damage::default(),
            ends: Default::default(),
        }
    }
}

/// What a link has done so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkStats {
    /// To packets from A to B.
    pub forth: Counts,
    /// To packets from B to A.
    pub back: Counts,
    /// How late packets were, against their schedule. What the link did is worth nothing without it.
    pub lateness: Lateness,
    /// How the carrying thread is scheduled.
    pub priority: Priority,
    /// Packets that were lost beside what was emulated: from A to B, from B to A.
    pub drops: [Drops; 2],
}

/// Packets of one direction that the emulated link did not lose, and that did not arrive all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// Packets that the sending host's interface dropped: its queue of 500 was full, since the link's thread was late or packets came
    /// faster than it can carry them.
    pub interface: u64,
    /// Packets that were too long for the path and must not be cut.
    pub too_long: u64,
    /// Packets that are neither IPv4 nor IPv6.
    pub not_ip: u64,
    /// Reports of group memberships, which kernels send on their own account.
    pub memberships: u64,
    /// Packets for a port that an address translator no longer, or not yet, knew. They count as delivered by the emulation.
    pub unknown_port: u64,
    /// Packets that the kernel would not take at the far end. They count as delivered by the emulation.
    pub refused: u64,
}

impl LinkStats {
    /// Drops of both directions together.
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
    /// Packets that were dropped before the emulation.
    #[must_use]
    pub const fn before(&self) -> u64 {
        self.interface + self.too_long + self.not_ip
    }

    /// Packets that were dropped behind the emulation.
    #[must_use]
    pub const fn behind(&self) -> u64 {
        self.unknown_port + self.refused
    }
}

/// Two hosts, A and B, and a link between them. Everything goes when the value does.
#[derive(Debug)]
pub struct NamespaceLink {
    // Dropped in this order: the thread and its interfaces, then the namespaces.
    forwarder: Forwarder,
    ends: [End; 2],
}

/// Name of the interface to the link, on both sides.
const INTERFACE: &str = "link0";
/// Name of the interface between a router and the host behind it, on both sides.
const CABLE: &str = "lan0";

impl NamespaceLink {
    /// A link with the usual MTU.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if this process may not: it needs root and `/dev/net/tun`.
    pub fn new(forth: Emulation, back: Emulation, seed: u64) -> Result<Self, Error> {
        Self::with(Setup::new(forth, back, seed))
    }

    /// A link as `setup` says.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if this process may not: it needs root and `/dev/net/tun`.
    pub fn with(setup: Setup) -> Result<Self, Error> {
        let (a, tun_a) = End::new(Side::A, &setup)?;
        let (b, tun_b) = End::new(Side::B, &setup)?;
        let forwarder = Forwarder::start([tun_a, tun_b], setup)?;
        Ok(Self { forwarder, ends: [a, b] })
    }

    /// Runs `what` in a thread on host A and waits for it.
    ///
    /// # Panics
    /// If `what` does, or the system has no thread for it.
    pub fn run_in_a<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        self.run_in(Side::A, what)
    }

    /// Runs `what` in a thread on host B and waits for it.
    ///
    /// # Panics
    /// If `what` does, or the system has no thread for it.
    pub fn run_in_b<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        self.run_in(Side::B, what)
    }

    /// Runs `a` on host A and `b` on host B at the same time, and waits for both.
    ///
    /// # Panics
    /// If `a` or `b` does, or the system has no thread for them.
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

    /// The host on `side`: the one behind the router, where a router stands there.
    #[must_use]
    pub fn host(&self, side: Side) -> &Namespace {
        self.ends[side as usize].host()
    }

    /// The router on `side`, if one stands there.
    #[must_use]
    pub fn router(&self, side: Side) -> Option<&Namespace> {
        let End { end, behind, .. } = &self.ends[side as usize];
        behind.as_ref().map(|_| end)
    }

    /// Address of an end: of the host that stands there, or of the router.
    #[must_use]
    pub const fn address(side: Side) -> Ipv4Addr {
        hosts::end_v4(side)
    }

    /// IPv4 address of the host on `side`.
    #[must_use]
    pub fn host_v4(&self, side: Side) -> Ipv4Addr {
        match self.router(side) {
            Some(_) => hosts::behind(side).0,
            None => hosts::end_v4(side),
        }
    }

    /// IPv6 address of the host on `side`; `None` if this kernel or the link, by its MTU, has no IPv6.
    #[must_use]
    pub fn host_v6(&self, side: Side) -> Option<Ipv6Addr> {
        let address = match self.router(side) {
            Some(_) => hosts::behind(side).1,
            None => hosts::end_v6(side),
        };
        (self.ends[side as usize].versions == Versions::Both).then_some(address)
    }

    /// The address of host A.
    #[must_use]
    pub const fn address_a(&self) -> Ipv4Addr {
        Self::address(Side::A)
    }

    /// The address of host B.
    #[must_use]
    pub const fn address_b(&self) -> Ipv4Addr {
        Self::address(Side::B)
    }

    /// The time on the link's clock, which began when it was made: what blackouts are given in.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.forwarder.now()
    }

    /// What the link has done so far.
    #[must_use]
    pub fn stats(&self) -> LinkStats {
        let mut stats = self.forwarder.stats();
        for (drops, end) in stats.drops.iter_mut().zip(&self.ends) {
            // Without a thread for the host, its interface has told nothing.
            drops.interface = end.end.run(hosts::dropped_by_interface).unwrap_or(0);
        }
        stats
    }

    /// Each host stands behind an address translator. At first each UDP port can be reached by its own number. From now on
    /// the packets of the host on `side` come from other ports, and what is sent to a new port arrives once that host has
    /// sent from it; `old` says what becomes of the ports that the other host knows. TCP is left alone.
    pub fn rebind(&self, side: Side, old: OldPorts) {
        self.forwarder.rebind(side, old);
    }
}
