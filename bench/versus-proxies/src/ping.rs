//! Round-trip times of small datagrams during the transfer.

use crate::condition::Addresses;
use crate::world::{Place, SENDER, World};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use versus::Failure;

/// Interval of datagrams.
const EVERY: Duration = Duration::from_millis(50);
/// Maximum number of attempts until the path carries a datagram, 100 ms apart.
const TRIES: u32 = 100;
/// Port of the echo service (RFC 862).
const ECHO: u16 = 7;

/// Both ends of the measurement.
pub(crate) struct Ping {
    own: UdpSocket,
    echo: UdpSocket,
    to: SocketAddr,
}

/// Result of the measurement.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundTrips {
    pub(crate) sent: u64,
    /// Round-trip times in milliseconds, shortest first.
    pub(crate) answered: Vec<f64>,
}

impl RoundTrips {
    /// Returns the quantile of the round-trip times at `share`; `None` without any.
    pub(crate) fn quantile(&self, share: f64) -> Option<f64> {
        let last = self.answered.len().checked_sub(1)?;
        Some(self.answered[(last as f64 * share).round() as usize])
    }
}

impl Ping {
    /// Creates both ends, at the sender and at the mobile host with this address; pings come from the end
    /// that can reach the other.
    pub(crate) fn new(world: &World, mobile: Ipv4Addr, addresses: Addresses) -> Result<Self, Failure> {
        let ends = [(world.sender(), SENDER), (world.host(Place::Mobile), mobile)];
        let [(caller, own), (called, to)] = match addresses {
            Addresses::Routed => ends,
            Addresses::Translated => [ends[1], ends[0]],
        };
        Ok(Self {
            own: World::udp(caller, (own, 0))?,
            echo: World::udp(called, (to, ECHO))?,
            to: (to, ECHO).into(),
        })
    }

    /// Waits until the path carries datagrams in both directions: cables need up to a second to come up.
    pub(crate) fn await_path(&self) -> Result<(), Failure> {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| answer(&self.echo, &over));
            let answered = (0..TRIES).any(|_| {
                // A datagram that cannot be sent is sent again.
                let _ = self.own.send_to(&[0; 8], self.to);
                self.own.recv(&mut [0; 8]).is_ok()
            });
            over.store(true, Ordering::Relaxed);
            if answered { Ok(()) } else { Err("the path carries nothing".into()) }
        })
    }

    /// Sends until `over` is set.
    pub(crate) fn run(&self, over: &AtomicBool) -> RoundTrips {
        let start = now();
        let nanoseconds = || start.elapsed().as_nanos() as u64;
        let mut trips = RoundTrips::default();
        let goes_on = || !over.load(Ordering::Relaxed);
        trips.answered = thread::scope(|scope| {
            scope.spawn(|| answer(&self.echo, over));
            let receiver = scope.spawn(|| {
                let (mut said, mut answered) = ([0; 8], Vec::new());
                while goes_on() {
                    // 0 is the content of probes of the path.
                    if self.own.recv(&mut said).is_ok() && said != [0; 8] {
                        answered.push((nanoseconds() - u64::from_ne_bytes(said)) as f64 / 1e6);
                    }
                }
                answered
            });
            while goes_on() {
                // A datagram that the interface refuses is lost, and counted as sent.
                let _ = self.own.send_to(&nanoseconds().to_ne_bytes(), self.to);
                trips.sent += 1;
                thread::sleep(EVERY);
            }
            receiver.join().expect("it does not panic")
        });
        trips.answered.sort_by(f64::total_cmp);
        trips
    }
}

fn answer(echo: &UdpSocket, over: &AtomicBool) {
    let mut buffer = [0; 16];
    while !over.load(Ordering::Relaxed) {
        if let Ok((len, from)) = echo.recv_from(&mut buffer) {
            let _ = echo.send_to(&buffer[..len], from);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "round trips are in real time")]
fn now() -> Instant {
    Instant::now()
}
