//! Split connections on Linux (I-TCP; Bakre, Badrinath 1995): the kernel's TCP ends here, under the address of the host beyond, and another
//! one leads on, under the address of the client. Each half repairs its own losses, with a congestion control of its own.
//!
//! Rules of iptables hand the calls over that pass through this machine (`TPROXY`), and find the packets that come back for the halves
//! (`socket`), ICMP about them included. Here for port 7070 and calls by the hosts beyond `wlan0`; for IPv6 the same with `ip6tables`, `ip -6`,
//! `ipv6-icmp`, `::1` and `::/0`:
//!
//! ```text
//! ip rule add fwmark 0x686f lookup 26735
//! ip route add local 0.0.0.0/0 dev lo table 26735
//! iptables -t mangle -N hopline-divert
//! iptables -t mangle -A hopline-divert -j MARK --set-mark 0x686f
//! iptables -t mangle -A hopline-divert -j ACCEPT
//! iptables -t mangle -A PREROUTING -p tcp ! --syn -m socket --transparent -j hopline-divert
//! iptables -t mangle -A PREROUTING -p icmp -m socket --transparent -j hopline-divert
//! iptables -t mangle -A PREROUTING -i wlan0 -p tcp --syn -m addrtype ! --dst-type LOCAL \
//!     -j TPROXY --on-ip 127.0.0.1 --on-port 7070 --tproxy-mark 0x686f
//! ```
//!
//! With `--syn` connections that were there before go on as they were, and a client may call again from a port that it has just used:
//! `TPROXY` knows what to do with a call for a socket in TIME-WAIT, the `socket` match does not. While there is no listener,
//! the kernel drops what a rule with `TPROXY` matches, so remove the rules when you stop the proxy. Without the rule for
//! ICMP, a host would be told of the path of the half that is not its own.
//!
//! # What hosts notice
//!
//! * With [`ConnectOrder::ClientFirst`] **the client is answered before the server has answered**, unlike in [`hopline_proxy::split`]: the kernel accepts a
//!   SYN that reaches a listener. If the server refuses, cannot be reached (ICMP), or says nothing for [`Config::connect_timeout`], the client
//!   is reset. It has believed meanwhile to be connected; nothing that it sent has been acknowledged by anybody else.
//! * With [`ConnectOrder::ServerFirst`] the SYN waits in an NFQUEUE between the rule with `TPROXY` and the listener until the server has answered.
//!   What the server or the network refuses the client is refused: a SYN comes out of the queue with the mark of a [`Refusal`], which a rule
//!   behind the queue answers. `docs/protocols/split.md` has the rest, `crates/daemon/src/rules/held_syns.rs` the rules.
//! * The end of a direction is passed on after the last byte before it. A reset resets the other half at once, before what waits.
//! * ACKs reach a sender before the data reach the receiver: what was acknowledged is lost if this machine is.
//! * When the proxy dies, in whatever way, both hosts are reset ([`transparent`](hopline_linux::transparent)): a stream that was cut off never looks
//!   complete. Once both hosts have ended, the kernel alone sends what is left, also after the proxy.
//! * Urgent data arrive in their row, not as urgent (RFC 6093).
//!
//! # Bounds
//!
//! Calls that were let on to the listener and are not accepted have a share of its queue by network prefix; with a diversion, calls beyond it
//! are forwarded unsplit. At most [`Config::max_connections`] are open at once; calls beyond that are reset. A call for this
//! machine itself is reset too, whichever rule sent it or none, so that the port cannot be used as a relay. Of each
//! connection at most [`Config::buffer_bytes`] wait here each way, and only while the receiver takes nothing; beside them
//! the kernel's buffers ([`LegOptions`]).
//!
//! Opening and running take `CAP_NET_RAW`, for sockets with addresses of other hosts and for marks; a congestion control that is not in
//! `net.ipv4.tcp_allowed_congestion_control` takes `CAP_NET_ADMIN`, and clients with ports below 1024 take
//! `CAP_NET_BIND_SERVICE`.

mod acceptor;
mod connector;
mod counts;
mod leg_options;
mod moving;
mod pair;
mod pending;
mod refusal;
mod slots;
mod spare_descriptor;
mod syn_holder;
mod worker;

pub use leg_options::{LegPolicy, MobileHosts, Network, NetworkError};
#[doc(hidden)]
pub use moving::moved_state;
pub use moving::{BaseStation, ClaimReport, MoveConfig, MoveKey};
pub use refusal::Refusal;

use crate::diversion::{Diversion, Unaccepted};
use crate::nfqueue::queue_stats;
use crate::service::{Metric, Service, ServiceStatus};
use acceptor::Acceptor;
use counts::Counts;
use hopline_linux::Error;
use hopline_linux::descriptors;
use hopline_linux::transparent::{LegOptions, TransparentListener};
use moving::{ClaimListener, Claimant};
use pair::Pair;
use rustix::event::{EventfdFlags, eventfd};
use spare_descriptor::SpareDescriptor;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Builder, ScopedJoinHandle};
use std::time::Duration;
use syn_holder::{PendingTable, Queue, SynHolder};
use worker::{Inbox, Worker, now};

/// Configuration of a [`Split`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Addresses to which firewall rules hand calls over: one for IPv4, one for IPv6, or either. Default 127.0.0.1 and ::1,
    /// port 7070, which other hosts cannot address.
    pub listen: Vec<SocketAddr>,
    /// Order of calling the server and answering the client. Default [`ConnectOrder::ClientFirst`], without a diversion.
    pub connect_order: ConnectOrder,
    /// Mobile hosts, and the socket options of the halves. May be changed later ([`Control::set_legs`]).
    pub legs: LegPolicy,
    /// Longest time that a server may take to answer a call. Default 30 s. The system gives up after about two minutes in
    /// any case (`net.ipv4.tcp_syn_retries`).
    pub connect_timeout: Duration,
    /// Most connections at once, with those that wait for the server. Each takes two descriptors, and 256 are kept for the rest:
    /// `RLIMIT_NOFILE` is raised to that, beyond its hard limit only with `CAP_SYS_RESOURCE`. Default 8192.
    pub max_connections: NonZeroUsize,
    /// Threads that carry. Default: as many as there are processors.
    pub workers: NonZeroUsize,
    /// Bytes that are read at once, and of each connection and direction the most that wait here. Default 65,536.
    pub buffer_bytes: NonZeroUsize,
    /// Time that connections may go on after the proxy is stopped, before they are reset. Default 0: none.
    pub drain: Duration,
    /// Other stations between which connections move with their mobile hosts. Default `None`: connections stay.
    pub moves: Option<MoveConfig>,
}

/// Order of calling the server and answering the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectOrder {
    /// Before the client is answered. Its SYN waits behind the firewall until the server has answered, and goes to the listener then; what
    /// the server or the network refuses the client is refused.
    ServerFirst(Diversion),
    /// After the client's connection has been accepted. Its SYN goes to the listener when the firewall has let it through; without
    /// a diversion rules hand calls to the listener by themselves.
    ClientFirst(Option<Diversion>),
}

impl ConnectOrder {
    /// Returns the way of calls to the listener; `None`: that of rules alone.
    #[must_use]
    pub const fn diversion(self) -> Option<Diversion> {
        match self {
            Self::ServerFirst(diversion) => Some(diversion),
            Self::ClientFirst(diversion) => diversion,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        const fn at_least_one(number: usize) -> NonZeroUsize {
            match NonZeroUsize::new(number) {
                Some(number) => number,
                None => NonZeroUsize::MIN,
            }
        }
        Self {
            listen: vec![(Ipv4Addr::LOCALHOST, 7070).into(), (Ipv6Addr::LOCALHOST, 7070).into()],
            connect_order: ConnectOrder::ClientFirst(None),
            legs: LegPolicy::default(),
            connect_timeout: Duration::from_secs(30),
            max_connections: at_least_one(8192),
            workers: thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            buffer_bytes: at_least_one(65_536),
            drain: Duration::ZERO,
            moves: None,
        }
    }
}

/// Splits the connections that rules hand over.
#[derive(Debug)]
pub struct Split {
    listeners: Vec<TransparentListener>,
    /// If calls are diverted.
    queue: Option<Queue>,
    /// If connections move.
    claim_listener: Option<ClaimListener>,
    shared: Arc<Shared>,
    drain: Duration,
}

/// Says something to a [`Split`] that runs.
#[derive(Clone, Debug)]
pub struct Control(Arc<Shared>);

/// State shared by all threads.
#[derive(Debug)]
struct Shared {
    connect_order: ConnectOrder,
    legs: Mutex<Arc<LegPolicy>>,
    connect_timeout: Duration,
    max_connections: usize,
    buffer_bytes: usize,
    counts: Counts,
    pending: PendingTable,
    unaccepted: Unaccepted,
    spare_descriptor: SpareDescriptor,
    inboxes: Vec<Inbox>,
    /// Number of the next worker that goes on with a connection.
    next_adopter: AtomicUsize,
    moves: Option<MoveConfig>,
}

impl Split {
    /// Listens, in the calling thread's namespace; and has the system tell now what it would not take later.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_RAW`; [`Error::NoSuchCongestionControl`]; if a port is taken, or there may not be as many
    /// descriptors as [`Config::max_connections`] take.
    pub fn open(config: &Config) -> Result<Self, Error> {
        let Config { listen, connect_order: onward, legs, connect_timeout, max_connections, workers, .. } =
            config;
        let Config { buffer_bytes, drain, moves, .. } = config;
        legs.check()?;
        // Of the client and of the server.
        descriptors::reserve(max_connections.get(), 2)?;
        let listeners = listen.iter().map(|&address| TransparentListener::bind(address));
        let listeners: Vec<_> = listeners.collect::<Result<_, _>>()?;
        if let Some(BaseStation { mark, .. }) = moves.as_ref().and_then(|moves| moves.base_station.as_ref()) {
            listeners.iter().try_for_each(|listener| listener.mark(*mark))?;
        }
        let inboxes: io::Result<_> = (0..workers.get()).map(|_| Inbox::open()).collect();
        let shared = Shared {
            connect_order: *onward,
            legs: Mutex::new(Arc::new(legs.clone())),
            connect_timeout: *connect_timeout,
            max_connections: max_connections.get(),
            buffer_bytes: buffer_bytes.get(),
            counts: Counts::default(),
            pending: PendingTable::new(max_connections.get()),
            unaccepted: Unaccepted::of(&listeners)?,
            spare_descriptor: SpareDescriptor::new(),
            inboxes: inboxes.map_err(|e| Error::new("opening an eventfd", e))?,
            next_adopter: AtomicUsize::new(0),
            moves: moves.clone(),
        };
        let gate = moves.clone().map(ClaimListener::open).transpose()?;
        let beside = moves.as_ref().and_then(|moves| moves.base_station.as_ref());
        let open = |diversion| Queue::open(diversion, max_connections.get(), beside);
        let queue = onward.diversion().map(open).transpose()?;
        Ok(Self { listeners, queue, claim_listener: gate, shared: Arc::new(shared), drain: *drain })
    }

    /// For what may be said to it while it runs.
    #[must_use]
    pub fn control(&self) -> Control {
        Control(Arc::clone(&self.shared))
    }
}

impl Control {
    /// Has connections from now on be told this. Those that are there stay as they are.
    ///
    /// # Errors
    /// As [`Split::open`] has for them; then nothing has changed.
    pub fn set_legs(&self, legs: LegPolicy) -> Result<(), Error> {
        legs.check()?;
        *self.0.legs.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(legs);
        Ok(())
    }
}

impl LegPolicy {
    fn check(&self) -> Result<(), Error> {
        [&self.mobile, &self.fixed].into_iter().try_for_each(LegOptions::check)
    }
}

impl Shared {
    fn metrics(&self) -> Vec<Metric> {
        let held = Metric::gauge(
            "calls_held",
            "calls that wait for the server, or to be accepted, before they are split",
            self.pending.len(),
        );
        let in_kernel = self.connect_order.diversion().and_then(|diversion| queue_stats(diversion.queue));
        let dropped =
            in_kernel.map_or(0, |kernel| u64::from(kernel.queue_dropped) + u64::from(kernel.user_dropped));
        let dropped = Metric::counter("dropped_syns", "SYNs that found the queue full", dropped);
        [self.counts.metrics(), vec![held, dropped]].concat()
    }

    /// Has a worker go on with a connection. Without workers it is reset; returns whether it goes on.
    fn adopt(&self, pair: Pair) -> bool {
        let number = self.next_adopter.fetch_add(1, Ordering::Relaxed) % self.inboxes.len();
        self.inboxes[number].adopt(pair).is_ok()
    }

    fn base_station(&self) -> Option<&BaseStation> {
        self.moves.as_ref()?.base_station.as_ref()
    }

    /// Returns what claims connections for visitors of the base station, for each other station.
    fn claimants<'a>(&'a self, ledger: &'a ServiceStatus) -> impl Iterator<Item = Claimant<'a>> {
        let visitors = self.base_station().map(|station| &station.visitors);
        let stations = self.moves.iter().flat_map(|moves| &moves.stations);
        stations.zip(visitors.into_iter().cycle()).map(move |(&station, visitors)| Claimant {
            shared: self,
            visitors,
            station,
            ledger,
        })
    }

    fn legs(&self) -> Arc<LegPolicy> {
        Arc::clone(&self.legs.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn join_thread(thread: ScopedJoinHandle<'_, io::Result<()>>) -> io::Result<()> {
    thread.join().unwrap_or_else(|p| resume_unwind(p))
}

impl Service for Split {
    /// Stopped, it takes no more calls, and resets what is left after [`Config::drain`].
    fn run(self: Box<Self>, stop: BorrowedFd<'_>, ledger: &ServiceStatus) -> io::Result<()> {
        let Self { listeners, queue, claim_listener: gate, shared, drain } = *self;
        let shared = &*shared;
        let inboxes = &shared.inboxes;
        // All that is open from the start, before a call can take its place.
        let workers: io::Result<Vec<_>> = inboxes.iter().map(|inbox| Worker::new(shared, inbox)).collect();
        let workers = workers?;
        let end_of_holder = queue.as_ref().map(Queue::end).transpose()?;
        let holder = queue.map(|queue| SynHolder::new(shared, queue)).transpose()?;
        let end_of_gate = eventfd(0, EventfdFlags::CLOEXEC)?;
        let claims_are_over = AtomicBool::new(false);
        let ended = thread::scope(|scope| {
            let named = || Builder::new().name("split".into());
            let started: io::Result<Vec<_>> = workers
                .into_iter()
                .map(|mut worker| named().spawn_scoped(scope, move || worker.run()))
                .collect();
            let holder =
                holder.map(|mut holder| named().spawn_scoped(scope, move || holder.run())).transpose();
            let gate = gate.as_ref().map(|gate| {
                let end = end_of_gate.as_fd();
                named().spawn_scoped(scope, move || gate.run(shared, end))
            });
            let gate = gate.transpose();
            let claimants = shared.claimants(ledger).map(|claimant| {
                let is_over = &claims_are_over;
                named().spawn_scoped(scope, move || claimant.run(is_over)).map(drop)
            });
            let claimants: io::Result<()> = claimants.collect();
            let came = started.as_ref().map_or(Ok(()), |workers| {
                let holders = || holder.as_ref().into_iter().flatten();
                let alive = || !workers.iter().chain(holders()).any(ScopedJoinHandle::is_finished);
                Acceptor::new(shared, &listeners, inboxes).run(stop, ledger, alive)
            });
            if let Some(end) = &end_of_holder {
                // It has room for one more.
                let _ = rustix::io::write(end, &1u64.to_ne_bytes());
            }
            let _ = rustix::io::write(&end_of_gate, &1u64.to_ne_bytes());
            claims_are_over.store(true, Ordering::SeqCst);
            if let Some(BaseStation { visitors, .. }) = shared.base_station() {
                visitors.wake();
            }
            let left = gate.map(|gate| gate.map_or(Ok(()), join_thread));
            let held = holder.map(|holder| holder.map_or(Ok(()), join_thread));
            // From here on the kernel refuses.
            drop(listeners);
            inboxes.iter().for_each(|inbox| inbox.set_deadline(now() + drain));
            let carried = started?.into_iter().try_for_each(join_thread);
            came.and(held?).and(left?).and(claimants).and(carried)
        });
        ledger.set_metrics(shared.metrics());
        ended
    }
}
