//! A sender, a wired link of 100 Mb/s and 25 ms to a router, and a lossy wireless link of 20 Mb/s and 2 ms to a mobile
//! host.

use crate::nfqueue::router;
use bytes::Bytes;
use hopline_core::Duration;
use hopline_linux::tcp;
use hopline_middlebox::middlebox_loop;
use hopline_middlebox::nfqueue::{self, Queue};
use hopline_proxy::driver::Driver;
use hopline_proxy::snoop::{Config, WindowedSnoop, windowed};
use hopline_proxy::{Pep, hop_window};
use hopline_testkit::namespace::host::{ip, tc};
use hopline_testkit::namespace::last_hop::{self, LINK, SENDER, SENDER_V6};
use hopline_testkit::{Emulation, Side};
use hopline_tools::link::{NamespaceLink, Setup};
use rustix::event::{EventfdFlags, eventfd};
use rustix::time::{ClockId, Timespec, clock_gettime};
use socket2::{Domain, Socket, Type};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// Timeout, longer than any regular silence.
pub(crate) const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// A sender, a wired link, a router, a wireless link, a mobile host.
pub(crate) struct World {
    pub(crate) wired: NamespaceLink,
    pub(crate) wireless: NamespaceLink,
}

/// Location and length, in packets, of the queue before the 20 Mb/s towards the mobile host.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bottleneck {
    /// In the link, FIFO: the router can neither see nor reorder it.
    InLink(usize),
    /// In the router's interface, FIFO.
    InRouter(usize),
    /// In the router's interface, with priority for urgent packets.
    WithPriorities(usize),
}

impl Bottleneck {
    const fn packets(self) -> usize {
        let (Self::InLink(packets) | Self::InRouter(packets) | Self::WithPriorities(packets)) = self;
        packets
    }
}

impl World {
    /// Creates a world with a wireless link that loses this share of the packets to the mobile host.
    pub(crate) fn new(loss: f64, seed: u64, bottleneck: Bottleneck) -> Self {
        Self::with(Emulation::default().with_loss(loss), seed, bottleneck)
    }

    /// Creates a world with a wireless link that applies the given emulation, apart from rate and delay, in both
    /// directions. Losses apply to packets to the mobile host only.
    pub(crate) fn with(asked: Emulation, seed: u64, bottleneck: Bottleneck) -> Self {
        let slow = |rate, ms, queue| {
            Emulation::default()
                .with_rate(Some(rate))
                .with_latency(Duration::from_millis(ms))
                .with_queue(Some(queue))
        };
        let wire = slow(100_000_000, 25, 1000);
        let (loss, blackouts) = (asked.loss(), asked.blackouts().to_vec());
        let air = slow(20_000_000, 2, bottleneck.packets()).with_blackouts(blackouts);
        let lossy = match bottleneck {
            Bottleneck::InLink(_) => air.clone().with_loss(loss),
            Bottleneck::InRouter(_) | Bottleneck::WithPriorities(_) => {
                air.clone().with_loss(loss).with_rate(None).with_queue(None)
            }
        };
        let world = Self::of(wire, [lossy, air], seed);
        match bottleneck {
            Bottleneck::InLink(_) => {}
            Bottleneck::InRouter(packets) => world.slow_down("pfifo", packets),
            Bottleneck::WithPriorities(packets) => world.slow_down("pfifo_fast", packets),
        }
        world
    }

    /// Creates a world with a wireless link that loses this share of the packets from the mobile host.
    pub(crate) fn losing_uploads(loss: f64, seed: u64) -> Self {
        let slow = |rate, ms| {
            Emulation::default()
                .with_rate(Some(rate))
                .with_latency(Duration::from_millis(ms))
                .with_queue(Some(1000))
        };
        let air = slow(20_000_000, 2);
        Self::of(slow(100_000_000, 25), [air.clone(), air.with_loss(loss)], seed)
    }

    /// Creates a world with a wired link, and a wireless one in both directions.
    fn of(wire: Emulation, [forth, back]: [Emulation; 2], seed: u64) -> Self {
        let [wired, wireless] = [Setup::new(wire.clone(), wire, seed), Setup::new(forth, back, seed + 1)]
            .map(|setup| NamespaceLink::with(setup).unwrap());
        last_hop::join(&wired, &wireless, &[]);
        Self { wired, wireless }
    }

    /// Limits the router's interface to 20 Mb/s.
    fn slow_down(&self, discipline: &str, packets: usize) {
        let router = self.wireless.host(Side::A);
        ip(router, &format!("link set {LINK} txqueuelen {packets}"));
        // Its own limit, in bytes, is never reached.
        tc(router, &format!("qdisc add dev {LINK} root handle 1: tbf rate 20mbit burst 3000 limit 2000000"));
        tc(router, &format!("qdisc add dev {LINK} parent 1:1 handle 10: {discipline}"));
    }

    /// Connects the sender to the mobile host, with this congestion control algorithm. Returns both ends.
    pub(crate) fn connection(&self, congestion_control: &str) -> [TcpStream; 2] {
        self.connection_to(NamespaceLink::address(Side::B).into(), congestion_control)
    }

    /// Connects to this address of the mobile host, like [`Self::connection`].
    pub(crate) fn connection_to(&self, mobile: IpAddr, congestion_control: &str) -> [TcpStream; 2] {
        let to = SocketAddr::new(mobile, 5001);
        let listener = self.wireless.run_in_b(|| TcpListener::bind(to)).unwrap();
        let sender = self.wired.run_in_a(|| {
            let socket = Socket::new(Domain::for_address(to), Type::STREAM, None).unwrap();
            tcp::set_congestion_control(&socket, congestion_control).unwrap();
            socket.connect(&to.into()).unwrap();
            TcpStream::from(socket)
        });
        let (mobile, from) = listener.accept().unwrap();
        let sent_from: IpAddr = if to.is_ipv4() { SENDER.into() } else { SENDER_V6.into() };
        assert_eq!(from.ip(), sent_from, "nobody's address is changed");
        sender.set_write_timeout(Some(PATIENCE)).unwrap();
        mobile.set_read_timeout(Some(PATIENCE)).unwrap();
        [sender, mobile]
    }

    /// Runs Snoop in the router, as `hopline proxy` does.
    pub(crate) fn snoop(&self) -> RunningMiddlebox {
        let router = self.wireless.host(Side::A);
        let config = Config { hop_window: Some(hop_window::Config::DEFAULT), ..Config::modern() };
        RunningMiddlebox::with(router::queue_again(router, LINK), windowed(config))
    }
}

pub(crate) type EndedMiddlebox<M> = (Driver<M>, nfqueue::Counts);

/// A middlebox on a thread of its own.
pub(crate) struct RunningMiddlebox<M = WindowedSnoop<Bytes>> {
    stop: Arc<OwnedFd>,
    thread: JoinHandle<(EndedMiddlebox<M>, Timespec)>,
}

impl<M: Pep<Bytes> + Send + 'static> RunningMiddlebox<M> {
    pub(crate) fn with(mut queue: Queue, machine: M) -> Self {
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        let stopped = Arc::clone(&stop);
        let stand = move || {
            let mut driver = Driver::new(machine);
            middlebox_loop::run(&mut driver, &mut queue, stopped.as_fd()).unwrap();
            let counts = queue.counts();
            ((driver, counts), clock_gettime(ClockId::ThreadCPUTime))
        };
        let thread = thread::Builder::new().name("machine".into()).spawn(stand).unwrap();
        Self { stop, thread }
    }

    pub(crate) fn end(self) -> EndedMiddlebox<M> {
        self.end_timed().0
    }

    /// Stops the middlebox. Also returns the processor time of its thread.
    pub(crate) fn end_timed(self) -> (EndedMiddlebox<M>, Timespec) {
        rustix::io::write(&self.stop, &1u64.to_ne_bytes()).unwrap();
        self.thread.join().unwrap()
    }
}

/// Transfers and compares `bytes` bytes; `meanwhile` gets the number of those that have arrived.
pub(crate) fn transfer(world: &World, bytes: usize, meanwhile: impl FnMut(usize)) {
    last_hop::transfer_data(world.connection("cubic"), bytes, meanwhile);
}
