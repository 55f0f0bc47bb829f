//! Numbered datagrams from the server to the mobile host, and what of them arrives.

use crate::handoff::world::{HOST, World};
use hopline_harness::if_on_time;
use hopline_linux::sched;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PORT: u16 = 9000;
/// Time between two datagrams.
const INTERVAL: Duration = Duration::from_millis(5);
const LEN: usize = 200;
/// Greatest lateness on a machine without other load, in ms.
const TOO_LATE_MS: u64 = 20;

/// Datagrams of a stream that were sent, and those that arrived.
pub(crate) struct Stream {
    pub(crate) sent: u32,
    /// Greatest lateness of the sender and of the hubs, in ms.
    latest_ms: u64,
    /// Numbers, in the order of arrival.
    pub(crate) arrived: Vec<(Instant, u32)>,
}

impl Stream {
    /// Sends until `is_enough`, and waits for what is under way.
    pub(crate) fn run(world: &World, mut is_enough: impl FnMut() -> bool + Send) -> Self {
        let over = AtomicBool::new(false);
        let receiver = world.mobile.run(|| UdpSocket::bind((HOST, PORT))).unwrap().unwrap();
        // Not connected, so that Linux gives its packets the identification 0.
        let sender = world.server.run(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
        receiver.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        thread::scope(|scope| {
            let receiving = scope.spawn(|| receive(&receiver, &over));
            let sending = scope.spawn(|| send(&sender, &mut is_enough));
            let (sent, late) = sending.join().unwrap();
            over.store(true, Ordering::Relaxed);
            Self { sent, latest_ms: late.max(world.latest_ms()), arrived: receiving.join().unwrap() }
        })
    }

    /// Asserts that nothing was lost. Stations keep 60 ms of the stream: on a machine that is too busy the test is repeated.
    pub(crate) fn assert_complete(&self, why: &str) {
        let lost = self.lost();
        let late = (self.latest_ms > TOO_LATE_MS)
            .then(|| format!("{why}: packets were {} ms late, {} lost", self.latest_ms, lost.len()));
        if_on_time(late, || assert_eq!(lost, Vec::<u32>::new(), "{why}; {} ms late", self.latest_ms));
    }

    /// Numbers that never arrived.
    pub(crate) fn lost(&self) -> Vec<u32> {
        let mut seen = vec![false; self.sent as usize];
        self.arrived.iter().for_each(|&(_, number)| seen[number as usize] = true);
        (0..).zip(seen).filter(|&(_, seen)| !seen).map(|(number, _)| number).collect()
    }

    /// Arrivals of numbers that had arrived.
    pub(crate) fn duplicates(&self) -> usize {
        self.arrived.len() - (self.sent as usize - self.lost().len())
    }

    /// The longest time without an arrival, in ms.
    pub(crate) fn longest_pause(&self) -> f64 {
        let pauses = self.arrived.windows(2).map(|pair| (pair[1].0 - pair[0].0).as_secs_f64() * 1e3);
        pauses.fold(0.0, f64::max)
    }

    /// The longest time without an arrival about each of these instants, in ms; its median.
    pub(crate) fn median_pause(&self, changes: &[Instant]) -> f64 {
        let pause = |&change: &Instant| {
            let about = |at: Instant| {
                at + Duration::from_millis(20) > change && at < change + Duration::from_millis(250)
            };
            let pairs = self.arrived.windows(2).filter(|pair| about(pair[1].0));
            pairs.map(|pair| (pair[1].0 - pair[0].0).as_secs_f64() * 1e3).fold(0.0, f64::max)
        };
        let mut pauses: Vec<f64> = changes.iter().map(pause).collect();
        pauses.sort_by(f64::total_cmp);
        pauses.get(pauses.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// Sends until `is_enough`. Returns the number of datagrams and their greatest lateness in ms.
fn send(socket: &UdpSocket, is_enough: &mut impl FnMut() -> bool) -> (u32, u64) {
    let _ = sched::request_real_time();
    let (begun, mut sent, mut late) = (Instant::now(), 0u32, Duration::ZERO);
    while !is_enough() {
        let mut datagram = [0; LEN];
        datagram[..4].copy_from_slice(&sent.to_be_bytes());
        socket.send_to(&datagram, (HOST, PORT)).unwrap();
        sent += 1;
        let due = begun + INTERVAL * sent;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        late = late.max(due.elapsed());
    }
    (sent, late.as_millis() as u64)
}

/// Until nothing has come for a while after the sender has finished.
fn receive(socket: &UdpSocket, over: &AtomicBool) -> Vec<(Instant, u32)> {
    let _ = sched::request_real_time();
    let (mut arrived, mut buffer) = (Vec::new(), [0; LEN]);
    loop {
        match socket.recv(&mut buffer) {
            Ok(_) => {
                let number = u32::from_be_bytes(*buffer.first_chunk().unwrap());
                arrived.push((Instant::now(), number));
            }
            Err(_) if over.load(Ordering::Relaxed) => return arrived,
            Err(_) => {}
        }
    }
}
