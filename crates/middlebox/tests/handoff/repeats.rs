//! Losses of a download in a handoff, and a host that repeats its last ACKs when the handoff is over.

use crate::handoff::world::{HOST, Reception, World, print_uncaptured};
use hopline_core::Duration as Span;
use hopline_linux::{Namespace, sched, tcp};
use hopline_middlebox::handoff::{HandoffRule, Scheme};
use hopline_testkit::streams::until;
use socket2::{Domain, Socket, Type};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU8;
use std::thread;
use std::time::{Duration, Instant};

/// Between handoffs.
const EVERY: Span = Span::from_secs(3);
/// Longer than anything here is silent.
const PATIENCE: Duration = Duration::from_secs(30);

/// Result of a download over handoffs.
struct WalkResult {
    handoffs: usize,
    /// Longest time without data about each handoff, in ms, sorted.
    pauses_ms: Vec<f64>,
    received: usize,
    repeated: u64,
}

impl WalkResult {
    fn median_ms(&self) -> f64 {
        self.pauses_ms.get(self.pauses_ms.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

fn with_sack(host: &Namespace, sack: bool) {
    let value = if sack { "1" } else { "0" };
    host.run(|| fs::write("/proc/sys/net/ipv4/tcp_sack", value)).unwrap().unwrap();
}

/// Downloads over so many handoffs between stations that keep nothing.
fn download_over_handoffs(handoffs: usize, sack: bool, repeats: u8) -> WalkResult {
    let world = World::new(Reception::CurrentStation);
    [&world.server, &world.mobile].into_iter().for_each(|host| with_sack(host, sack));
    let home = world.home_agent(Scheme::Registration);
    let stations = [0, 1].map(|number| world.station(number));
    let mut mobile = world.mobile_host(|config| {
        config.scheme = Scheme::Registration;
        config.decide = HandoffRule::Periodic(EVERY);
        config.fast_retransmit = NonZeroU8::new(repeats);
    });
    until("a first station", || world.air.station().is_some());
    let to = SocketAddr::from((HOST, 5001));
    let listener = world.mobile.run(|| TcpListener::bind(to)).unwrap().unwrap();
    let mut sender = world.server.run(|| connect(to)).unwrap();
    let mut receiver = listener.accept().unwrap().0;
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let (arrivals, received) = thread::scope(|scope| {
        // It ends when the receiver is gone.
        scope.spawn(move || while sender.write_all(&[7; 16_384]).is_ok() {});
        let _ = sched::request_real_time();
        let (mut arrivals, mut received, mut buffer) = (vec![Instant::now()], 0, [0; 65_536]);
        // The first change is the first station.
        while world.air.changes().len() <= handoffs || arrivals.last() < world.air.changes().last() {
            received += receiver.read(&mut buffer).unwrap();
            arrivals.push(Instant::now());
        }
        drop(receiver);
        (arrivals, received)
    });
    let changes = world.air.changes();
    let pause = |change: &Instant| {
        let about = |at: Instant| at > *change && at < *change + Duration::from_millis(2_500);
        let pairs = arrivals.windows(2).filter(|pair| about(pair[1]));
        pairs.map(|pair| (pair[1] - pair[0]).as_secs_f64() * 1e3).fold(0.0, f64::max)
    };
    let mut pauses_ms: Vec<f64> = changes[1..=handoffs].iter().map(pause).collect();
    pauses_ms.sort_by(f64::total_cmp);
    mobile.end();
    let repeated = mobile.metric("repeated_acks");
    assert_eq!(mobile.metric("unsent_acks"), 0);
    drop((home, stations));
    WalkResult { handoffs: changes.len() - 1, pauses_ms, received, repeated }
}

fn connect(to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    tcp::set_congestion_control(&socket, "reno").unwrap();
    socket.connect(&to.into()).unwrap();
    TcpStream::from(socket)
}

pub(crate) fn the_last_ack_of_a_download_is_repeated_after_a_handoff() {
    let walks = thread::scope(|scope| {
        let walks = [0, 4].map(|repeats| scope.spawn(move || download_over_handoffs(3, false, repeats)));
        walks.map(|walk| walk.join().unwrap())
    });
    let [none, four] = walks;
    assert_eq!(none.repeated, 0);
    // One download.
    assert!(four.repeated >= 4 && four.repeated.is_multiple_of(4), "{}", four.repeated);
    assert!(four.repeated <= 4 * (four.handoffs as u64 + 1), "{} of {}", four.repeated, four.handoffs);
}

/// Prints the figures of docs/protocols/handoff.md.
pub(crate) fn figures() {
    for sack in [false, true] {
        for repeats in [0, 3] {
            let walk = download_over_handoffs(20, sack, repeats);
            print_uncaptured(&format!(
                "SACK {sack}, {repeats} repeated: pause {:.0} ms at the median, {:.0} to {:.0}, {:.2} Mb/s, {} repeated in {} handoffs",
                walk.median_ms(),
                walk.pauses_ms[0],
                walk.pauses_ms[walk.pauses_ms.len() - 1],
                walk.received as f64 * 8e-6 / (EVERY.as_secs_f64() * walk.handoffs as f64),
                walk.repeated,
                walk.handoffs,
            ));
        }
    }
}
