//! What a transport has to do to be compared.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

/// Why a transport could not be measured.
pub type Failure = Box<dyn Error + Send + Sync>;

/// How often the two sides look whether it is over.
pub const LOOK: Duration = Duration::from_millis(50);

/// A transport. Both methods run on a thread of their host, at the same time; the end that is called begins.
pub trait Peer: Send + Sync {
    /// What tables call it.
    fn name(&self) -> &str;

    /// What it is for the number of seeds: whether single runs at high loss mean little.
    fn steadiness(&self) -> Steadiness {
        Steadiness::Steady
    }

    /// Bytes of application data in a full packet over an MTU of 1500.
    fn payload(&self) -> f64;

    /// Host B: takes data and reports it by `session.received(n)` until `session.is_closed()`. If A calls, it listens at
    /// `session.address` and says so by `session.listening()`.
    fn receive(&self, session: &Session) -> Result<(), Failure>;

    /// Host A: sends as much as it can until `session.is_over()`. If A calls, it connects to `session.address`. Gives its
    /// smoothed round-trip time at the end, if it tells.
    fn send(&self, session: &Session) -> Result<Option<Duration>, Failure>;
}

/// Whether runs of a transport are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steadiness {
    /// They are.
    Steady,
    /// BBR at 10 % loss and more: some runs reach a multiple of others.
    Erratic,
}

/// Host that opens the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Caller {
    /// The sender of the data.
    #[default]
    A,
    /// Their receiver, as behind a router that translates addresses. Only [`Kernel`](crate::Kernel) can.
    B,
}

/// What the two sides of one run share.
pub struct Session {
    /// Address at which the end that is called listens.
    pub address: SocketAddr,
    /// The other end.
    pub caller: Caller,
    /// Of the link, in bits per second: for transports that must be told.
    pub rate: u64,
    /// Of the link without queueing: for transports that must be told.
    pub round_trip: Duration,
    received: AtomicU64,
    over: AtomicBool,
    closed: AtomicBool,
    listening: SyncSender<()>,
}

impl Session {
    /// A session, and where it is told that an end listens.
    pub fn new(
        address: SocketAddr,
        caller: Caller,
        rate: u64,
        round_trip: Duration,
    ) -> (Self, std::sync::mpsc::Receiver<()>) {
        let (listening, told) = sync_channel(1);
        let (received, over, closed) = (AtomicU64::new(0), AtomicBool::new(false), AtomicBool::new(false));
        (Self { address, caller, rate, round_trip, received, over, closed, listening }, told)
    }

    /// Says that the other end may connect. Time counts from now.
    pub fn listening(&self) {
        // Nobody listens if the run was given up.
        let _ = self.listening.try_send(());
    }

    /// B got `n` more bytes, in order.
    pub fn received(&self, n: usize) {
        self.received.fetch_add(n as u64, Ordering::Relaxed);
    }

    /// Whether A is to stop.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Whether A has stopped, and B is to.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Stops B.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Stops A; gives the bytes received until now.
    pub fn end(&self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        self.received.load(Ordering::Relaxed)
    }
}
