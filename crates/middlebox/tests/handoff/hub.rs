//! A wire or a radio with many ends, in this process: it carries packets from one TUN interface to others, at a rate and with a delay.

use hopline_linux::{Tun, sched};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::time::Timespec;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Rate and delay of the packets from each end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Bits a second; `None`: they take no time.
    pub(crate) rate: Option<u64>,
    /// Propagation delay.
    pub(crate) delay: Duration,
}

/// Packets that wait for the rate; more are dropped.
const QUEUE: u32 = 100;
const MTU: u64 = 1500;

/// The thread that carries packets; it ends with the value.
pub(crate) struct Hub {
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    latest_ms: Arc<AtomicU64>,
}

impl Hub {
    /// Joins these ends. `ways`: to which ends a packet goes that one end has sent.
    pub(crate) fn new(
        ends: Vec<Tun>,
        pace: Pace,
        ways: impl FnMut(usize, &[u8]) -> Vec<usize> + Send + 'static,
    ) -> Self {
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        let free = vec![Instant::now(); ends.len()];
        let latest_ms = Arc::new(AtomicU64::new(0));
        let late = Arc::clone(&latest_ms);
        let carrier = HubThread { ends, pace, ways, free, in_flight: BTreeMap::new(), taken: 0, late };
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new().name("hub".into()).spawn(move || carrier.run(&stopped)).unwrap();
        Self { stop, thread: Some(thread), latest_ms }
    }

    /// By how much the latest packet was late, in ms.
    pub(crate) fn latest_ms(&self) -> u64 {
        self.latest_ms.load(Ordering::Relaxed)
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        rustix::io::write(&self.stop, &1u64.to_ne_bytes()).unwrap();
        // If it has panicked, it has said so, and nothing has come through.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct HubThread<W> {
    ends: Vec<Tun>,
    pace: Pace,
    ways: W,
    /// Time at which each end has sent all its packets.
    free: Vec<Instant>,
    in_flight: BTreeMap<(Instant, u64), (Vec<usize>, Vec<u8>)>,
    taken: u64,
    late: Arc<AtomicU64>,
}

impl<W: FnMut(usize, &[u8]) -> Vec<usize>> HubThread<W> {
    fn run(mut self, stop: &OwnedFd) {
        let _ = sched::request_real_time();
        let mut buffer = vec![0; 65_536];
        while self.wait(stop) {
            for end in 0..self.ends.len() {
                while let Ok(Some(len)) = self.ends[end].receive(&mut buffer) {
                    // The kernel has something to say over IPv6, too.
                    if buffer[0] >> 4 == 4 {
                        self.forward(end, &buffer[..len]);
                    }
                }
            }
            while let Some(next) = self.in_flight.first_entry()
                && next.key().0 <= Instant::now()
            {
                let late = next.key().0.elapsed().as_millis() as u64;
                self.late.fetch_max(late, Ordering::Relaxed);
                let (to, packet) = next.remove();
                // A host that takes nothing has lost it.
                to.into_iter().for_each(|end| drop(self.ends[end].send(&packet)));
            }
        }
    }

    fn wait(&self, stop: &OwnedFd) -> bool {
        let left = self.in_flight.keys().next().map(|(due, _)| due.saturating_duration_since(Instant::now()));
        let timeout =
            left.map(|left| Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() });
        let fds = [stop.as_fd()].into_iter().chain(self.ends.iter().map(AsFd::as_fd));
        let mut fds: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let _ = poll(&mut fds, timeout.as_ref());
        fds[0].revents().is_empty()
    }

    fn forward(&mut self, from: usize, packet: &[u8]) {
        let to = (self.ways)(from, packet);
        let now = Instant::now();
        let takes = |bytes: u64| self.pace.rate.map_or(0, |rate| bytes * 8 * 1_000_000_000 / rate);
        let begins = self.free[from].max(now);
        if to.is_empty() || begins - now > Duration::from_nanos(takes(MTU)) * QUEUE {
            return;
        }
        self.free[from] = begins + Duration::from_nanos(takes(packet.len() as u64));
        self.taken += 1;
        self.in_flight.insert((self.free[from] + self.pace.delay, self.taken), (to, packet.to_vec()));
    }
}
