//! One run of a transport over any link: one end listens, the other connects, and A sends until its time is
//! over.

use crate::peer::{Caller, Failure, Peer, Session};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

const PORT: u16 = 5201;
/// Maximum time until an end listens.
const PATIENCE: Duration = Duration::from_secs(10);

/// Two hosts and the link between them.
pub trait Hosts: Sync {
    /// Counters of the link at the beginning and at the end.
    type Reading;

    /// Returns the address of the listening end.
    fn address_called(&self) -> Ipv4Addr;

    /// Returns the connecting end.
    fn caller(&self) -> Caller {
        Caller::A
    }

    /// Runs `what` in a thread on host A.
    fn in_a<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T;

    /// Runs `what` in a thread on host B.
    fn in_b<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T;

    fn read(&self) -> Self::Reading;
}

/// Properties of the link for transports that need them.
#[derive(Clone, Copy, Debug)]
pub struct Nature {
    /// Rate, bit/s.
    pub rate: u64,
    /// Round-trip time without queueing.
    pub round_trip: Duration,
}

/// Result of a run.
pub struct Talk<R> {
    /// Bytes received by B's application in the time.
    pub bytes: u64,
    /// Smoothed round-trip time at the end, as reported by A.
    pub srtt: Option<Duration>,
    /// Counters of the link, when connecting began and when A's time was over.
    pub readings: [R; 2],
}

/// Lets A send to B for `duration`, connecting included.
pub fn talk<H: Hosts>(
    hosts: &H,
    peer: &dyn Peer,
    nature: Nature,
    duration: Duration,
) -> Result<Talk<H::Reading>, Failure> {
    let address = SocketAddr::from((hosts.address_called(), PORT));
    let (session, listening) = Session::new(address, hosts.caller(), nature.rate, nature.round_trip);
    let (sent, received, bytes, readings) = thread::scope(|scope| {
        let receive = || scope.spawn(|| hosts.in_b(|| peer.receive(&session)));
        let send = || scope.spawn(|| hosts.in_a(|| peer.send(&session)));
        let ready = || await_listener(&listening, &session);
        let (begin, before, sender, receiver) = match session.caller {
            Caller::A => {
                let receiver = receive();
                ready();
                (now(), hosts.read(), send(), receiver)
            }
            Caller::B => {
                let sender = send();
                ready();
                (now(), hosts.read(), sender, receive())
            }
        };
        while !sender.is_finished() {
            let left = duration.saturating_sub(now() - begin);
            if left.is_zero() {
                break;
            }
            thread::sleep(left.min(Duration::from_millis(100)));
        }
        // Read before any end closes.
        let after = hosts.read();
        let bytes = session.end();
        let sent = sender.join();
        session.close();
        (sent, receiver.join(), bytes, [before, after])
    });
    let srtt = sent.map_err(|_| "the sender panicked")??;
    received.map_err(|_| "the receiver panicked")??;
    Ok(Talk { bytes, srtt, readings })
}

fn await_listener(listening: &Receiver<()>, session: &Session) {
    if listening.recv_timeout(PATIENCE).is_err() {
        session.end();
    }
}

#[expect(clippy::disallowed_methods, reason = "what is measured is in real time")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}
