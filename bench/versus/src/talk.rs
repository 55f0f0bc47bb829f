//! One run of a transport over any link: one end listens, the other connects, and A sends until its time is
//! over. A run has one connection or several.

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

/// Result of a run of several flows.
pub struct Crowd<R> {
    /// Bytes received by B's application in the time, of each flow.
    pub bytes: Vec<u64>,
    /// Smoothed round-trip time at the end, as reported by A, of each flow.
    pub srtts: Vec<Option<Duration>>,
    /// Errors of flows, such as a connection that timed out. Their bytes count.
    pub failures: Vec<Failure>,
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
    let Crowd { bytes, srtts, failures, readings } = crowd(hosts, peer, nature, 1, duration)?;
    failures.into_iter().next().map_or(Ok(()), Err)?;
    Ok(Talk { bytes: bytes.iter().sum(), srtt: srtts.into_iter().flatten().next(), readings })
}

/// Lets A send to B for `duration`, connecting included, over `flows` connections that begin together.
pub fn crowd<H: Hosts>(
    hosts: &H,
    peer: &dyn Peer,
    nature: Nature,
    flows: u16,
    duration: Duration,
) -> Result<Crowd<H::Reading>, Failure> {
    let (sessions, listening): (Vec<_>, Vec<_>) = (0..flows)
        .map(|flow| {
            let address = SocketAddr::from((hosts.address_called(), PORT + flow));
            Session::new(address, hosts.caller(), nature.rate, nature.round_trip)
        })
        .unzip();
    let (sent, received, bytes, readings) = thread::scope(|scope| {
        let receive = |session| scope.spawn(move || hosts.in_b(|| peer.receive(session)));
        let send = |session| scope.spawn(move || hosts.in_a(|| peer.send(session)));
        let ready =
            || listening.iter().zip(&sessions).for_each(|(told, session)| await_listener(told, session));
        let (begin, before, senders, receivers): (_, _, Vec<_>, Vec<_>) = match hosts.caller() {
            Caller::A => {
                let receivers = sessions.iter().map(receive).collect();
                ready();
                (now(), hosts.read(), sessions.iter().map(send).collect(), receivers)
            }
            Caller::B => {
                let senders = sessions.iter().map(send).collect();
                ready();
                (now(), hosts.read(), senders, sessions.iter().map(receive).collect())
            }
        };
        while !senders.iter().all(|sender| sender.is_finished()) {
            let left = duration.saturating_sub(now() - begin);
            if left.is_zero() {
                break;
            }
            thread::sleep(left.min(Duration::from_millis(100)));
        }
        // Read before any end closes.
        let after = hosts.read();
        let bytes: Vec<u64> = sessions.iter().map(Session::end).collect();
        let sent: Vec<_> = senders.into_iter().map(|sender| sender.join()).collect();
        sessions.iter().for_each(Session::close);
        let received: Vec<_> = receivers.into_iter().map(|receiver| receiver.join()).collect();
        (sent, received, bytes, [before, after])
    });
    let mut failures: Vec<Failure> = Vec::new();
    let mut srtts = Vec::new();
    for (sent, received) in sent.into_iter().zip(received) {
        let sent = sent.map_err(|_| "a sender panicked")?;
        let received = received.map_err(|_| "a receiver panicked")?;
        srtts.push(sent.as_ref().ok().copied().flatten());
        failures.extend(sent.and(received).err());
    }
    Ok(Crowd { bytes, srtts, failures, readings })
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
