//! Goodput, packets sent for each one delivered, and the round-trip time of a concurrent ping.

use crate::pair::world::{Bottleneck, Losses, World, at, udp};
use crate::pair::{dproxy, opaque};
use hopline_middlebox::opaque::Shaping;
use hopline_proxy::arq;
use hopline_proxy::dproxy::opaque as asking;
use hopline_proxy::tunnel::RecoveryScheme;
use hopline_testkit::Side;
use hopline_testkit::namespace::RunningService;
use hopline_testkit::namespace::last_hop::SENDER;
use hopline_tools::link::NamespaceLink;
use std::io::{self, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Duration of a measurement.
const LASTS: Duration = Duration::from_secs(6);
/// Interval between two pings.
const EVERY: Duration = Duration::from_millis(20);
/// Maximum segment size in bytes, on the plain path.
const SEGMENT: f64 = 1448.0;

/// Repair scheme at both ends of the link.
#[derive(Clone, Copy, Debug)]
enum Pair {
    Nothing,
    ReadsTcp,
    Requests,
    RequestsShaped,
    Arq,
}

impl Pair {
    const fn target(self) -> Ipv4Addr {
        match self {
            Self::Nothing | Self::ReadsTcp => NamespaceLink::address(Side::B),
            Self::Requests | Self::RequestsShaped | Self::Arq => opaque::MOBILE,
        }
    }

    fn start(self, world: &World) -> Vec<RunningService> {
        let repair = match self {
            Self::Nothing => return Vec::new(),
            Self::ReadsTcp => return dproxy::pair(world, dproxy::both()).into(),
            Self::Requests | Self::RequestsShaped => RecoveryScheme::Nack(asking::Config::default()),
            Self::Arq => RecoveryScheme::Arq(arq::Config::default()),
        };
        let shaping =
            matches!(self, Self::RequestsShaped).then(|| Shaping::new(NonZeroU64::new(19_700_000).unwrap()));
        let config = |side| hopline_middlebox::opaque::Config { shaping, ..opaque::config(side, repair) };
        opaque::pair(world, [Side::A, Side::B].map(config)).into()
    }
}

/// Prints the result of each pair for each loss rate.
pub(crate) fn goodput() {
    let mut report =
        String::from("Mb/s; packets on the link for each segment delivered; ping in ms, median and 95 %\n");
    for law in ["cubic", "bbr"] {
        for loss in [0.0, 0.01, 0.03, 0.05, 0.10, 0.20] {
            let ceiling = 20.0 * (1.0 - loss) * SEGMENT / 1500.0;
            report += &format!("{law}, {:.0} % lost, ceiling {ceiling:.1}:\n", loss * 100.0);
            for (pair, bottleneck) in [
                (Pair::Nothing, Bottleneck::InLink),
                (Pair::ReadsTcp, Bottleneck::InLink),
                (Pair::ReadsTcp, Bottleneck::InNear),
                (Pair::Requests, Bottleneck::InLink),
                (Pair::Requests, Bottleneck::InNear),
                (Pair::RequestsShaped, Bottleneck::InLink),
                (Pair::Arq, Bottleneck::InLink),
            ] {
                report +=
                    &format!("  {pair:?}, queue {bottleneck:?}: {}\n", measure(pair, bottleneck, loss, law));
            }
        }
    }
    io::stderr().write_all(report.as_bytes()).unwrap();
}

fn measure(pair: Pair, bottleneck: Bottleneck, loss: f64, law: &str) -> String {
    let world = World::new(25, Losses::of(loss), bottleneck, 11);
    let _ends = pair.start(&world);
    let to = pair.target();
    let before = world.lossy.stats().forward.sent;
    let over = AtomicBool::new(false);
    let (received, round_trips) = thread::scope(|scope| {
        let pings = scope.spawn(|| pings(&world, to, &over));
        let received = world.received_within(to, law, LASTS);
        over.store(true, Ordering::Relaxed);
        (received, pings.join().unwrap())
    });
    let link = world.lossy.stats().forward;
    let pinged = round_trips.sent as f64;
    let each = ((link.sent - before) as f64 - pinged) * SEGMENT / received as f64;
    format!(
        "{:.2}; {each:.3}; {:.0} {:.0}, {:.0} % unanswered; {} found the link's queue full",
        received as f64 * 8.0 / LASTS.as_secs_f64() / 1e6,
        round_trips.quantile(0.5),
        round_trips.quantile(0.95),
        100.0 * (1.0 - round_trips.answered.len() as f64 / pinged),
        link.queue_drops
    )
}

/// Round-trip times in ascending order.
struct RoundTrips {
    sent: u32,
    answered: Vec<Duration>,
}

impl RoundTrips {
    fn quantile(&self, share: f64) -> f64 {
        let at = (self.answered.len() as f64 * share) as usize;
        self.answered.get(at).map_or(f64::NAN, |trip| trip.as_secs_f64() * 1e3)
    }
}

/// Sends datagrams from the sender to the mobile host and back, until `over`.
#[expect(clippy::disallowed_methods, reason = "round trips are measured in real time")]
fn pings(world: &World, to: Ipv4Addr, over: &AtomicBool) -> RoundTrips {
    let own = udp(world.sender(), at(SENDER, 0));
    let echo = udp(world.mobile(), at(to, 7));
    for socket in [&own, &echo] {
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    }
    let start = std::time::Instant::now();
    let now = || start.elapsed().as_nanos() as u64;
    let (mut sent, mut answered) = (0, Vec::new());
    thread::scope(|scope| {
        scope.spawn(|| answer(&echo, over));
        scope.spawn(|| {
            let mut said = [0; 8];
            while !over.load(Ordering::Relaxed) {
                if own.recv(&mut said).is_ok() {
                    answered.push(Duration::from_nanos(now() - u64::from_ne_bytes(said)));
                }
            }
        });
        while !over.load(Ordering::Relaxed) {
            own.send_to(&now().to_ne_bytes(), at(to, 7)).unwrap();
            sent += 1;
            thread::sleep(EVERY);
        }
    });
    answered.sort_unstable();
    RoundTrips { sent, answered }
}

fn answer(echo: &UdpSocket, over: &AtomicBool) {
    let mut buffer = [0; 16];
    while !over.load(Ordering::Relaxed) {
        if let Ok((len, from)) = echo.recv_from(&mut buffer) {
            echo.send_to(&buffer[..len], from).unwrap();
        }
    }
}
