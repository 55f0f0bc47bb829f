//! The emulated link in real time: two network namespaces, joined by one thread that carries packets from one TUN
//! interface to the other and does to them what an [`Emulation`] says. Kernel TCP and UDP run over it unchanged.

mod damage;
mod forwarder;
mod lateness;
mod narrow;
mod nat;

pub use damage::Damage;
pub use lateness::Lateness;

use crate::sched::Priority;
use crate::{Error, Interface, Namespace, Tun};
use forwarder::Forwarder;
use hopline_core::Instant;
use hopline_link::{Counts, Emulation, OldPorts, Side};
use std::net::Ipv4Addr;
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
    /// Whose packets it carries. Default: those of the two hosts.
    pub reach: Reach,
}

/// Whose packets a link carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Those for the host at the far end.
    #[default]
    Ends,
    /// Those for whoever is beyond, too: the hosts may be routers, and have other addresses.
    Beyond,
}

impl Setup {
    /// The usual MTU and damage.
    #[must_use]
    pub fn new(forth: Emulation, back: Emulation, seed: u64) -> Self {
        Self { forth, back, seed, mtu: 1500, path_mtu: None, damage: Damage::default(), reach: Reach::Ends }
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
    /// Packets for a port that an address translator no longer, or not yet, knew.
    pub unknown_port: u64,
    /// Packets that were too long for the path and must not be cut.
    pub too_long: u64,
    /// Packets that the kernel would not take at the far end.
    pub refused: u64,
}

/// Two hosts, A and B, and a link between them. Everything goes when the value does.
#[derive(Debug)]
pub struct NamespaceLink {
    // Dropped in this order: the thread and its interfaces, then the namespaces.
    forwarder: Forwarder,
    hosts: [Namespace; 2],
}

/// The name of the interface, on both sides.
const INTERFACE: &str = "link0";
/// Bits that the two addresses have in common.
const PREFIX: u8 = 24;

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
        let hosts = [Namespace::new()?, Namespace::new()?];
        let [a, b] = [Side::A, Side::B].map(|side| host_interface(&hosts[side as usize], side, setup.mtu));
        let forwarder = Forwarder::start([a?, b?], setup)?;
        Ok(Self { forwarder, hosts })
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
        self.hosts[side as usize]
            .run(what)
            .expect("what could be entered when it was made can be entered again")
    }

    /// The host on `side`.
    #[must_use]
    pub fn host(&self, side: Side) -> &Namespace {
        &self.hosts[side as usize]
    }

    /// The address of a host.
    #[must_use]
    pub const fn address(side: Side) -> Ipv4Addr {
        match side {
            Side::A => Ipv4Addr::new(10, 80, 0, 1),
            Side::B => Ipv4Addr::new(10, 80, 0, 2),
        }
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
        self.forwarder.stats()
    }

    /// Each host stands behind an address translator. At first each UDP port can be reached by its own number. From now on
    /// the packets of the host on `side` come from other ports, and what is sent to a new port arrives once that host has
    /// sent from it; `old` says what becomes of the ports that the other host knows. TCP is left alone.
    pub fn rebind(&self, side: Side, old: OldPorts) {
        self.forwarder.rebind(side, old);
    }
}

fn host_interface(host: &Namespace, side: Side, mtu: u16) -> Result<Tun, Error> {
    host.run(|| {
        let tun = Tun::open(INTERFACE)?;
        let interface = Interface::named(tun.name())?;
        interface.set_mtu(mtu)?;
        interface.set_address(NamespaceLink::address(side), PREFIX)?;
        interface.up()?;
        Ok(tun)
    })?
}
