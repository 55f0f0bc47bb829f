//! Interface of a transport in a comparison.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

/// Reason for which a transport could not be measured.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Interval at which the two sides check for the end.
pub const LOOK: Duration = Duration::from_millis(50);

/// A transport. Both methods run at the same time, each on a thread of its host; the listening end begins.
pub trait Peer: Send + Sync {
    /// Returns its name in tables.
    fn name(&self) -> &str;

    /// Returns whether its runs are alike, which determines the number of seeds.
    fn steadiness(&self) -> Steadiness {
        Steadiness::Steady
    }

    /// Returns the bytes of application data in a full packet over an MTU of 1500.
    fn payload(&self) -> f64;

    /// Runs on host B: receives data and reports it by `session.received(n)` until `session.is_closed()`. If
    /// A is the caller, it listens at `session.address` and reports that by `session.listening()`.
    fn receive(&self, session: &Session) -> Result<(), Failure>;

    /// Runs on host A: sends as much as it can until `session.is_over()`. If A is the caller, it connects to
    /// `session.address`. Returns the smoothed round-trip time at the end, if available.
    fn send(&self, session: &Session) -> Result<Option<Duration>, Failure>;
}

/// Variation of a transport's runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steadiness {
    /// Runs are alike.
    Steady,
    /// Runs vary: BBR at 10 % loss and more reaches a multiple in some runs.
    Erratic,
}

/// Host that opens the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Caller {
    /// The sender of the data.
    #[default]
    A,
    /// The receiver of the data, as behind a router that translates addresses. Only [`Kernel`](crate::Kernel)
    /// supports it.
    B,
}

/// State shared by the two sides of a run.
pub struct Session {
    /// Address at which the listening end listens.
    pub address: SocketAddr,
    /// Host that opens the connection.
    pub caller: Caller,
    /// Rate of the link, bit/s, for transports that need it.
    pub rate: u64,
    /// Round-trip time of the link without queueing, for transports that need it.
    pub round_trip: Duration,
    received: AtomicU64,
    over: AtomicBool,
    closed: AtomicBool,
    listening: SyncSender<()>,
}

impl Session {
    /// Creates a session, and the channel that reports that an end listens.
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

    /// Reports that the other end may connect. Time counts from now.
    pub fn listening(&self) {
        // The receiver is gone if the run was given up.
        let _ = self.listening.try_send(());
    }

    /// Reports that B received `n` more bytes, in order.
    pub fn received(&self, n: usize) {
        self.received.fetch_add(n as u64, Ordering::Relaxed);
    }

    /// Returns whether A must stop.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Returns whether A has stopped, so that B must stop.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Stops B.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Stops A. Returns the bytes received until now.
    pub fn end(&self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        self.received.load(Ordering::Relaxed)
    }
}
