//! Latency under load, as in Flent's RRUL test: small datagrams that the server echoes, before, during and after the
//! test.

use super::protocol::{COOKIE_LEN, Cookie};
use super::{now, pump::CALL_TIMEOUT};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Time between two probes.
const PROBE_INTERVAL: Duration = Duration::from_millis(20);
/// Timeout of the last echoes.
const ECHO_TIMEOUT: Duration = Duration::from_millis(500);
/// Bytes of a probe: cookie, phase and nanoseconds since the first.
const PROBE_LEN: usize = COOKIE_LEN + 1 + 8;
/// Maximum round trips stored for a phase: a day of probes.
const MAX_SAMPLES: usize = 5_000_000;

/// Round trips before, during and after the load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latency {
    /// Before the first data are sent.
    pub before: RoundTrips,
    /// While data are in flight.
    pub during: RoundTrips,
    /// After the last data have arrived.
    pub after: RoundTrips,
}

/// Statistics of the probes of a phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundTrips {
    /// Probes sent.
    pub sent: u64,
    /// Probes that were echoed.
    pub answered: u64,
    /// 50th percentile of the round-trip times. It is zero, like the fields below, if no probe was echoed.
    pub p50: Duration,
    /// 95th percentile.
    pub p95: Duration,
    /// 99th percentile.
    pub p99: Duration,
    /// Longest.
    pub max: Duration,
}

impl Latency {
    /// Returns whether any probe was echoed. A firewall may block the port.
    pub(super) fn was_answered(&self) -> bool {
        [&self.before, &self.during, &self.after].iter().any(|phase| phase.answered > 0)
    }
}

/// Phase in which a probe was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum ProbePhase {
    Before,
    During,
    After,
}

/// Sends probes and measures their round-trip times.
#[derive(Debug)]
pub(super) struct Prober {
    socket: UdpSocket,
    cookie: Cookie,
    phase: AtomicU8,
    stopped: AtomicBool,
}

impl Prober {
    pub(super) fn new(here: SocketAddr, there: SocketAddr, cookie: Cookie) -> io::Result<Self> {
        let socket = UdpSocket::bind(here)?;
        socket.connect(there)?;
        let (when, over) = (AtomicU8::new(ProbePhase::Before as u8), AtomicBool::new(false));
        Ok(Self { socket, cookie, phase: when, stopped: over })
    }

    pub(super) fn enter_phase(&self, when: ProbePhase) {
        self.phase.store(when as u8, Relaxed);
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    /// Sends probes until it is stopped.
    pub(super) fn run(&self) -> Latency {
        let began = now();
        let mut phases: [Phase; 3] = Default::default();
        let (mut due, mut last) = (began, None);
        loop {
            let at = now();
            match last {
                None if self.stopped.load(Relaxed) => last = Some(at + ECHO_TIMEOUT),
                Some(end) if end <= at || phases.iter().all(Phase::is_complete) => break,
                _ => {}
            }
            if last.is_none() && due <= at {
                due = at + PROBE_INTERVAL;
                let when = self.phase.load(Relaxed);
                let mut probe = [0; PROBE_LEN];
                probe[..COOKIE_LEN].copy_from_slice(&self.cookie);
                probe[COOKIE_LEN] = when;
                probe[COOKIE_LEN + 1..].copy_from_slice(&((at - began).as_nanos() as u64).to_be_bytes());
                phases[usize::from(when)].sent += 1;
                // A probe that cannot be sent counts as lost.
                let _ = self.socket.send(&probe);
            }
            let wait = due.saturating_duration_since(now()).clamp(Duration::from_millis(1), PROBE_INTERVAL);
            self.receive_echoes(began, wait, &mut phases);
        }
        let [before, during, after] = phases.map(Phase::summary);
        Latency { before, during, after }
    }

    fn receive_echoes(&self, began: Instant, wait: Duration, phases: &mut [Phase; 3]) {
        let mut buffer = [0; PROBE_LEN + 1];
        // If the timeout cannot be set, the loop returns later.
        let _ = self.socket.set_read_timeout(Some(wait));
        match self.socket.recv(&mut buffer) {
            Ok(PROBE_LEN) if buffer[..COOKIE_LEN] == self.cookie => {
                let left =
                    u64::from_be_bytes(*buffer[COOKIE_LEN + 1..].first_chunk().expect("its length is known"));
                let trip = (now() - began).checked_sub(Duration::from_nanos(left));
                if let (Some(phase), Some(trip)) = (phases.get_mut(usize::from(buffer[COOKIE_LEN])), trip) {
                    phase.record(trip);
                }
            }
            Ok(_) => {}
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // No server listens at present; pause before the next probe.
            Err(_) => std::thread::sleep(wait),
        }
    }
}

#[derive(Debug, Default)]
struct Phase {
    sent: u64,
    trips: Vec<Duration>,
}

impl Phase {
    fn is_complete(&self) -> bool {
        self.trips.len() as u64 >= self.sent
    }

    fn record(&mut self, trip: Duration) {
        // The network may duplicate probes.
        if !self.is_complete() && self.trips.len() < MAX_SAMPLES {
            self.trips.push(trip);
        }
    }

    fn summary(mut self) -> RoundTrips {
        self.trips.sort_unstable();
        let nearest_rank = |percent: usize| {
            let rank = (self.trips.len() * percent).div_ceil(100).max(1);
            self.trips.get(rank - 1).copied().unwrap_or_default()
        };
        RoundTrips {
            sent: self.sent,
            answered: self.trips.len() as u64,
            p50: nearest_rank(50),
            p95: nearest_rank(95),
            p99: nearest_rank(99),
            max: nearest_rank(100),
        }
    }
}

/// Echoes datagrams that have the cookie of a test to its client. An echo is as long as the probe, so there is no
/// amplification.
#[derive(Debug)]
pub(super) struct Echo(UdpSocket);

impl Echo {
    /// Binds to any free port of `here`.
    pub(super) fn bind(here: IpAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind((here, 0))?;
        socket.set_read_timeout(Some(CALL_TIMEOUT))?;
        Ok(Self(socket))
    }

    pub(super) fn port(&self) -> io::Result<u16> {
        Ok(self.0.local_addr()?.port())
    }

    /// Echoes probes until `over` is set.
    pub(super) fn run(&self, cookie: &Cookie, client: IpAddr, over: &AtomicBool) {
        let mut buffer = [0; PROBE_LEN + 1];
        while !over.load(Relaxed) {
            match self.0.recv_from(&mut buffer) {
                Ok((PROBE_LEN, from)) if from.ip() == client && buffer[..COOKIE_LEN] == *cookie => {
                    let _ = self.0.send_to(&buffer[..PROBE_LEN], from);
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_echoed_probes() {
        let mut phase = Phase { sent: 200, ..Phase::default() };
        (1..=100).rev().for_each(|ms| phase.record(Duration::from_millis(ms)));
        let summary = phase.summary();
        assert_eq!((summary.sent, summary.answered), (200, 100));
        let ms = [summary.p50, summary.p95, summary.p99, summary.max].map(|trip| trip.as_millis());
        assert_eq!(ms, [50, 95, 99, 100]);
        assert_eq!(Phase::default().summary(), RoundTrips::default());
    }

    #[test]
    fn only_datagrams_with_the_cookie_are_echoed() {
        let here = IpAddr::from([127, 0, 0, 1]);
        let echo = Echo::bind(here).unwrap();
        let there = SocketAddr::new(here, echo.port().unwrap());
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| echo.run(&[b'a'; COOKIE_LEN], here, &over));
            let probe = |cookie| {
                let prober = Prober::new(SocketAddr::new(here, 0), there, [cookie; COOKIE_LEN]).unwrap();
                prober.stop();
                let mut phases: [Phase; 3] = Default::default();
                phases[0].sent = 1;
                let mut bytes = [cookie; PROBE_LEN];
                bytes[COOKIE_LEN..].fill(0);
                prober.socket.send(&bytes).unwrap();
                prober.receive_echoes(now(), Duration::from_millis(200), &mut phases);
                phases[0].trips.len()
            };
            let answered = [probe(b'b'), probe(b'a')];
            over.store(true, Relaxed);
            assert_eq!(answered, [0, 1]);
        });
    }
}
