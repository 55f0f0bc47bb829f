//! 100 Mb/s and 25 ms to the proxy, and from there 20 Mb/s and 2 ms that lose packets: what splitting gains.

use crate::split::daemon::PORT;
use crate::split::hosts::{meanwhile, print_uncaptured, reset};
use crate::split::measured::split;
use crate::split::router::divert;
use hopline_core::Duration;
use hopline_linux::tcp;
use hopline_testkit::namespace::last_hop::{self, LINK};
use hopline_testkit::{Emulation, Side};
use hopline_tools::link::{Lateness, NamespaceLink, Setup};
use socket2::{Domain, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

const SPAN: std::time::Duration = std::time::Duration::from_secs(10);
const SEEDS: u64 = 2;

/// A sender, a wired link, a proxy, a wireless link, a mobile host.
struct World {
    wired: NamespaceLink,
    wireless: NamespaceLink,
}

impl World {
    fn new(loss: f64, seed: u64) -> Self {
        let slow = |rate, ms, queue| {
            Emulation::default()
                .with_rate(Some(rate))
                .with_latency(Duration::from_millis(ms))
                .with_queue(Some(queue))
        };
        let (wire, air) = (slow(100_000_000, 25, 1000), slow(20_000_000, 2, 100));
        let lossy = air.clone().with_loss(loss);
        let [wired, wireless] = [Setup::new(wire.clone(), wire, seed), Setup::new(lossy, air, seed + 1)]
            .map(|setup| NamespaceLink::with(setup).unwrap());
        last_hop::join(&wired, &wireless, &[]);
        Self { wired, wireless }
    }

    /// Mb/s at the mobile host within the span from the call, of what the sender sends by `congestion`; and how late the links were.
    fn goodput(&self, congestion: &str) -> (f64, [Lateness; 2]) {
        let to = SocketAddr::from((NamespaceLink::address(Side::B), 5001));
        let listener = self.wireless.run_in_b(|| TcpListener::bind(to)).unwrap();
        let start = now();
        let sender = self.wired.run_in_a(|| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            tcp::set_congestion_control(&socket, congestion).unwrap();
            socket.connect(&to.into()).unwrap();
            TcpStream::from(socket)
        });
        let bytes = received(&listener, sender, start);
        let lateness = [&self.wired, &self.wireless].map(|link| link.stats().lateness);
        (bytes as f64 * 8.0 / SPAN.as_secs_f64() / 1e6, lateness)
    }
}

fn received(listener: &TcpListener, mut sender: TcpStream, start: Instant) -> usize {
    let (mut mobile, _) = listener.accept().unwrap();
    mobile.set_read_timeout(Some(std::time::Duration::from_millis(100))).unwrap();
    let writer = meanwhile(move || {
        sender.set_write_timeout(Some(SPAN)).unwrap();
        while sender.write_all(&[0; 1 << 14]).is_ok() {}
    });
    let (mut bytes, mut buffer) = (0, vec![0; 1 << 16]);
    while start.elapsed() < SPAN {
        match mobile.read(&mut buffer) {
            Ok(len) => bytes += len,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error}"),
        }
    }
    reset(mobile);
    writer.join().unwrap();
    bytes
}

/// A table over the share of packets lost.
pub(crate) fn lossy_link() {
    let variants = [
        ("end to end, CUBIC", "none", "cubic", "cubic"),
        ("bare loop, CUBIC", "copy", "cubic", "cubic"),
        ("split, CUBIC", "split", "cubic", "cubic"),
        ("end to end, BBR", "none", "bbr", "bbr"),
        ("split, BBR", "split", "bbr", "cubic"),
    ];
    print_uncaptured(&format!(
        "Mb/s at the mobile host over {SPAN:?}, mean of {SEEDS} seeds (each); lateness of the links"
    ));
    for percent in [0, 1, 3, 5, 10, 20] {
        for (name, splitter, mobile, sender) in variants {
            let runs: Vec<_> = thread::scope(|scope| {
                let run = |seed| {
                    scope.spawn(move || one(splitter, mobile, sender, f64::from(percent) / 100.0, seed))
                };
                let runs: Vec<_> = (0..SEEDS).map(run).collect();
                runs.into_iter().map(|run| run.join().unwrap()).collect()
            });
            let mean = runs.iter().map(|(rate, _)| rate).sum::<f64>() / runs.len() as f64;
            let each: Vec<String> = runs.iter().map(|(rate, _)| format!("{rate:.2}")).collect();
            let late = runs.iter().flat_map(|(_, late)| late).any(Lateness::is_late);
            let late = if late { "INVALID: late" } else { "in time" };
            print_uncaptured(&format!("{percent:>3} % {name:<18} {mean:>6.2} ({}) {late}", each.join(" ")));
        }
    }
}

fn one(splitter: &str, mobile: &str, sender: &str, loss: f64, seed: u64) -> (f64, [Lateness; 2]) {
    let world = World::new(loss, 10 * seed + 1);
    let router = world.wireless.host(Side::A);
    if splitter != "none" {
        divert(router, PORT);
    }
    let _splitter = split(router, splitter, &[("mobile", mobile), ("interface", LINK)]);
    world.goodput(sender)
}

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "it is measured")]
    Instant::now()
}
