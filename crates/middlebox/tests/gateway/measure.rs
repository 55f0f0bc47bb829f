//! Goodput of gateways over lossy links, compared with the kernel's TCP from end to end. Run by hand (`--ignored`); takes
//! six minutes.

use crate::gateway::helpers::*;
use hopline_core::Duration as Span;
use hopline_harness::{Need, Test};
use hopline_linux::tcp;
use hopline_linux::transparent::LegOptions;
use hopline_middlebox::gateway::{
    Allowed, Entrance, EntranceConfig, Exit, ExitConfig, ListenerConfig, Transport,
};
use hopline_streams::tpa;
use hopline_testkit::namespace::last_hop;
use hopline_testkit::namespace::{LINK, RunningService};
use hopline_testkit::{Emulation, Side};
use hopline_tools::link::{NamespaceLink, Setup};
use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

pub(crate) fn tests() -> Vec<Test> {
    [("goodput_over_a_lossy_last_hop", 2), ("goodput_over_a_long_lossy_path", 25)]
        .map(|(name, ms)| Test::new(name, [LINK, Need::Program("ip")], move || goodput(ms)).long())
        .into()
}

const ENTRANCE: Ipv4Addr = Ipv4Addr::new(10, 83, 0, 2);
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(NamespaceLink::address(Side::B)), 5001);
const EXIT_PORT: u16 = 7172;
const SECONDS: u64 = 10;
const SEEDS: u64 = 2;
const LOSSES: [f64; 6] = [0.0, 0.01, 0.03, 0.05, 0.1, 0.2];
/// Concurrent runs of each of the two tests. With six, two processors were so busy that gateways carried a fifth less.
const AT_ONCE: usize = 2;

/// Transport from client to server.
#[derive(Clone, Copy, Debug)]
enum Route {
    /// The kernel's TCP from end to end.
    Tcp(&'static str),
    /// Split at the gateways, over TPA with this window.
    Tpa(u8),
    /// Split at the gateways, over TPA with their default parameters.
    DefaultTpa,
    /// Split at the gateways, over TPA-wide.
    Wide,
}

const ALL: [Route; 6] =
    [Route::Tcp("cubic"), Route::Tcp("bbr"), Route::Tpa(6), Route::Tpa(12), Route::DefaultTpa, Route::Wide];

/// Client, 100 Mb/s and 25 ms, entrance, 20 Mb/s that lose, exit and server.
struct World {
    wired: NamespaceLink,
    wireless: NamespaceLink,
}

impl World {
    fn new(loss: f64, ms: u64, seed: u64) -> Self {
        let link = |rate, ms, queue| {
            Emulation::default()
                .with_rate(Some(rate))
                .with_latency(Span::from_millis(ms))
                .with_queue(Some(queue))
        };
        // The path is equally long in both cases: the delay of the lossy part is taken from the other.
        let (wire, air) = (link(100_000_000, 27 - ms, 1000), link(20_000_000, ms, 100));
        let lossy = air.clone().with_loss(loss);
        let [wired, wireless] = [Setup::new(wire.clone(), wire, seed), Setup::new(lossy, air, seed + 1)]
            .map(|setup| NamespaceLink::with(setup).unwrap());
        last_hop::join(&wired, &wireless, &[]);
        Self { wired, wireless }
    }

    /// Returns the goodput of the server in Mb/s, and the packets sent on the lossy link per full packet of data.
    fn measure(&self, by: Route) -> (f64, f64) {
        let listener = self.wireless.run_in_b(|| TcpListener::bind(SERVER)).unwrap();
        let gateways = trunk_of(by).map(|trunk| self.gateways(trunk));
        let to = gateways.as_ref().map_or(SERVER, |(_, _, entry)| *entry);
        let congestion = if let Route::Tcp(name) = by { name } else { "cubic" };
        let mut client = self.wired.run_in_a(|| call(to, congestion));
        let mut server = accept(&listener);
        client.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        server.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let ends = self.wireless.now() + Span::from_secs(SECONDS);
        let goes_on = || self.wireless.now() < ends;
        let received = thread::scope(|scope| {
            scope.spawn(|| {
                let data = pattern(1, 1 << 16);
                while goes_on() {
                    let _ = client.write(&data);
                }
            });
            let mut buffer = vec![0; 1 << 16];
            let mut received = 0;
            while goes_on() {
                received += server.read(&mut buffer).unwrap_or(0);
            }
            received as f64
        });
        let stats = self.wireless.stats();
        assert!(!stats.lateness.is_late(), "the link was late: {}", stats.lateness);
        (received * 8.0 / SECONDS as f64 / 1e6, stats.forward.sent as f64 / (received / 1448.0))
    }

    fn gateways(&self, trunk: Transport) -> (RunningService, RunningService, SocketAddr) {
        let exit = ExitConfig {
            listen: (SERVER.ip(), EXIT_PORT).into(),
            allowed: Allowed::Listed(vec!["10.80.0.2 5001".parse().unwrap()]),
            transport: trunk.clone(),
            ..ExitConfig::new(vec![peer()])
        };
        let exit = self.wireless.run_in_b(|| RunningService::new(Exit::open(&exit).unwrap()));
        let way = ListenerConfig::Forward {
            listen: (ENTRANCE, 5000).into(),
            to: SERVER.to_string().parse().unwrap(),
        };
        let tcp = LegOptions::default().with_congestion(Some("cubic".into()));
        let config = EntranceConfig::new(way, SocketAddr::new(SERVER.ip(), EXIT_PORT), name(), key(1));
        let config = EntranceConfig { transport: trunk, tcp, ..config };
        let entrance = self.wireless.run_in_a(|| RunningService::new(Entrance::open(&config).unwrap()));
        (entrance, exit, (ENTRANCE, 5000).into())
    }
}

fn trunk_of(by: Route) -> Option<Transport> {
    match by {
        Route::Tcp(_) => None,
        Route::Tpa(cwnd_max) => Some(Transport::Tpa(tpa::config(cwnd_max))),
        Route::DefaultTpa => Some(Transport::tpa()),
        Route::Wide => Some(Transport::tpa_wide()),
    }
}

fn call(to: SocketAddr, congestion: &str) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    tcp::set_congestion_control(&socket, congestion).unwrap();
    socket.connect(&to.into()).unwrap();
    socket.into()
}

fn goodput(ms: u64) {
    let cases: Vec<_> = LOSSES.into_iter().flat_map(|loss| ALL.map(|by| (loss, by))).collect();
    let mut out = std::io::stdout();
    for case in cases.chunks(AT_ONCE) {
        thread::scope(|scope| {
            let runs: Vec<_> = case
                .iter()
                .map(|&(loss, by)| {
                    scope.spawn(move || {
                        let runs: Vec<_> =
                            (0..SEEDS).map(|seed| World::new(loss, ms, 2 * seed + 1).measure(by)).collect();
                        let mean =
                            |of: fn(&(f64, f64)) -> f64| runs.iter().map(of).sum::<f64>() / SEEDS as f64;
                        (loss, by, mean(|run| run.0), mean(|run| run.1))
                    })
                })
                .collect();
            for run in runs {
                let Ok((loss, by, goodput, packets)) = run.join() else { continue };
                writeln!(
                    out,
                    "{ms} ms, {:>4.1} % lost: {by:?}: {goodput:.2} Mb/s, {packets:.2}",
                    loss * 100.0
                )
                .unwrap();
            }
        });
    }
}
