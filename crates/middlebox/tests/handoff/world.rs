//! A server, a home agent, two stations 25 ms from it, and a mobile host that hears both.
//!
//! ```text
//! server 10.70.0.1 ── home agent 10.60.0.254 ══ wire ══ stations 10.60.0.1, 10.60.0.2 )) radio (( mobile host 10.50.0.9
//! ```

use crate::handoff::hub::{Hub, Pace};
use hopline_core::Duration as Span;
use hopline_linux::veth::{self, Offload};
use hopline_linux::{Interface, Namespace, Tun};
use hopline_middlebox::handoff::{
    BaseStation, HandoffRule, HomeAgent, HomeConfig, Key, MobileConfig, MobileHost, Scheme, StationConfig,
};
use hopline_testkit::namespace::RunningService;
use hopline_testkit::namespace::host::{address, forward, ip, open_with_retries};
use std::io;
use std::io::Write;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 70, 0, 1);
pub(crate) const HOME: Ipv4Addr = Ipv4Addr::new(10, 60, 0, 254);
pub(crate) const STATIONS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 60, 0, 1), Ipv4Addr::new(10, 60, 0, 2)];
pub(crate) const HOST: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 9);
/// Of home addresses.
const NETWORK: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 50, 0, 0), 24);
pub(crate) const KEY: Key = Key::new([7; 16]);
pub(crate) const BEACON: Span = Span::from_millis(100);
/// Names of interfaces.
pub(crate) const WIRE: &str = "wire";
pub(crate) const RADIO: &str = "radio";
const CABLE: &str = "cable";
/// UDP port of messages, and the types that say which station is to forward.
pub(crate) const PORT: u16 = 1021;
pub(crate) const FORWARD: u8 = 2;
pub(crate) const REGISTER: u8 = 5;

pub(crate) struct World {
    // Dropped in this order.
    hubs: Vec<Hub>,
    _switch: Option<Namespace>,
    pub(crate) air: Arc<Air>,
    pub(crate) server: Namespace,
    pub(crate) home: Namespace,
    pub(crate) stations: [Namespace; 2],
    pub(crate) mobile: Namespace,
    /// The interfaces of the mobile host.
    radios: Vec<String>,
}

/// Packets that the mobile host hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reception {
    /// Those of both stations.
    AllStations,
    /// Of the one that it has asked last to forward, and messages of both.
    CurrentStation,
}

/// State of the radio network.
pub(crate) struct Air {
    radio: Reception,
    /// The station that the host has asked last to forward.
    current: AtomicUsize,
    /// Times at which the current station changed.
    changes: Mutex<Vec<Instant>>,
    /// Requests of the host, as they were sent.
    requests: Mutex<Vec<Vec<u8>>>,
    /// Stations out of reach.
    pub(crate) muted: [AtomicBool; 2],
    /// One of so many packets to the host is lost, messages excepted; 0: none.
    pub(crate) loss_interval: AtomicU32,
    sent: AtomicU32,
}

impl Air {
    fn new(radio: Reception) -> Self {
        Self {
            radio,
            current: AtomicUsize::new(usize::MAX),
            changes: Mutex::default(),
            requests: Mutex::default(),
            muted: Default::default(),
            loss_interval: AtomicU32::new(0),
            sent: AtomicU32::new(0),
        }
    }

    pub(crate) fn changes(&self) -> Vec<Instant> {
        self.changes.lock().unwrap().clone()
    }

    /// The number of the station that the host has asked last to forward.
    pub(crate) fn station(&self) -> Option<usize> {
        Some(self.current.load(Ordering::Relaxed)).filter(|&station| station < STATIONS.len())
    }

    /// The first request of this type to a station.
    pub(crate) fn first_request(&self, kind: u8) -> Vec<u8> {
        self.requests.lock().unwrap().iter().find(|message| message[0] == kind).unwrap().clone()
    }

    fn is_lost(&self) -> bool {
        match self.loss_interval.load(Ordering::Relaxed) {
            0 => false,
            n => self.sent.fetch_add(1, Ordering::Relaxed) % n == n - 1,
        }
    }

    /// End 0 is the mobile host, 1 and 2 are the stations.
    fn destinations(&self, from: usize, packet: &[u8]) -> Vec<usize> {
        let message = message(packet);
        if from > 0 {
            let audible = self.radio == Reception::AllStations
                || message.is_some()
                || self.current.load(Ordering::Relaxed) == from - 1;
            let reached = audible && !self.muted[from - 1].load(Ordering::Relaxed);
            let arrives = reached && (message.is_some() || !self.is_lost());
            return if arrives { vec![0] } else { vec![] };
        }
        if message.is_some() {
            self.requests.lock().unwrap().push(packet[28..].to_vec());
        }
        let named = STATIONS.iter().position(|station| packet[16..20] == station.octets());
        if let (Some(station), Some(FORWARD | REGISTER)) = (named, message)
            && self.current.swap(station, Ordering::Relaxed) != station
        {
            self.changes.lock().unwrap().push(Instant::now());
        }
        let to = named.filter(|_| message.is_some()).unwrap_or(self.current.load(Ordering::Relaxed));
        let reached = self.muted.get(to).is_some_and(|mute| !mute.load(Ordering::Relaxed));
        if reached { vec![to + 1] } else { vec![] }
    }
}

/// The type of a message between stations and hosts.
fn message(packet: &[u8]) -> Option<u8> {
    let is_udp = packet[9] == 17 && packet.len() > 28;
    (is_udp && packet[22..24] == PORT.to_be_bytes()).then(|| packet[28])
}

/// End 0 is the home agent, 1 and 2 are the stations.
fn wire_destinations(from: usize, packet: &[u8]) -> Vec<usize> {
    let to = Ipv4Addr::from(*packet[16..].first_chunk::<4>().unwrap());
    let station = STATIONS.iter().position(|&station| station == to);
    match (from, station) {
        (_, Some(station)) => vec![station + 1],
        (0, None) if to.is_multicast() => vec![1, 2],
        (0, None) => vec![],
        _ => vec![0],
    }
}

impl World {
    pub(crate) fn new(radio: Reception) -> Self {
        let [server, home, near, far, mobile] = hosts();
        let stations = [near, far];
        let wire_ends = [(&home, HOME), (&stations[0], STATIONS[0]), (&stations[1], STATIONS[1])];
        let wire_ends = wire_ends.map(|(host, own)| host.run(|| tun(WIRE, Some((own, 24)))).unwrap()).into();
        stations.iter().for_each(|station| ip(station, &format!("route add default dev {WIRE}")));
        let radio_ends = [(&mobile, Some((HOST, 32))), (&stations[0], None), (&stations[1], None)];
        let radio_ends = radio_ends.map(|(host, own)| host.run(|| tun(RADIO, own)).unwrap()).into();
        stations.iter().chain([&home]).for_each(forward);
        let air = Arc::new(Air::new(radio));
        let wire = Pace { rate: Some(100_000_000), delay: Duration::from_millis(25) };
        let ether = Pace { rate: Some(10_000_000), delay: Duration::from_millis(1) };
        let of_air = Arc::clone(&air);
        Self {
            hubs: vec![
                Hub::new(wire_ends, wire, wire_destinations),
                Hub::new(radio_ends, ether, move |from, packet| of_air.destinations(from, packet)),
            ],
            _switch: None,
            radios: vec![RADIO.into()],
            air,
            server,
            home,
            stations,
            mobile,
        }
    }

    /// The same of the kernel's own cables. The wire is a bridge that knows the members of each group (IGMP snooping), and
    /// the mobile host has a radio for each station. Nothing takes time, and what the host sends is not observed.
    pub(crate) fn of_cables() -> Self {
        let [server, home, near, far, mobile] = hosts();
        let stations = [near, far];
        let switch = Namespace::new().unwrap();
        ip(
            &switch,
            "link add br0 type bridge mcast_snooping 1 mcast_querier 1 mcast_query_response_interval 20",
        );
        ip(&switch, "link set br0 up");
        let wired = [(&home, HOME), (&stations[0], STATIONS[0]), (&stations[1], STATIONS[1])];
        for (number, (host, own)) in wired.into_iter().enumerate() {
            let port = format!("w{number}");
            veth::join([host, &switch], &port, Offload::SinglePackets).unwrap();
            ip(&switch, &format!("link set {port} master br0 up"));
            ip(host, &format!("link set {port} name {WIRE}"));
            ip(host, &format!("addr add {own}/24 dev {WIRE}"));
            ip(host, &format!("link set {WIRE} up"));
        }
        ip(&mobile, &format!("addr add {HOST}/32 dev lo"));
        let radios: Vec<_> = (0..stations.len()).map(|number| format!("r{number}")).collect();
        for (station, radio) in stations.iter().zip(&radios) {
            ip(station, &format!("route add default via {HOME}"));
            veth::join([&mobile, station], radio, Offload::SinglePackets).unwrap();
            ip(&mobile, &format!("link set {radio} up"));
            ip(station, &format!("link set {radio} name {RADIO}"));
            ip(station, &format!("link set {RADIO} up"));
        }
        stations.iter().chain([&home]).for_each(forward);
        let air = Arc::new(Air::new(Reception::AllStations));
        Self { hubs: Vec::new(), _switch: Some(switch), air, server, home, stations, mobile, radios }
    }

    /// By how much packets were late at most, in ms.
    pub(crate) fn latest_ms(&self) -> u64 {
        self.hubs.iter().map(Hub::latest_ms).max().unwrap_or(0)
    }

    /// The router to which the mobile host's default route leads.
    pub(crate) fn default_route(&self) -> Option<String> {
        let mut command = Command::new("ip");
        command.args(["route", "show", "default"]).stdout(Stdio::piped());
        let said = self.mobile.spawn(command).unwrap().wait_with_output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        said.split_whitespace().skip_while(|&word| word != "via").nth(1).map(str::to_owned)
    }

    pub(crate) fn home_agent(&self, scheme: Scheme) -> RunningService {
        let config = HomeConfig {
            mobiles: vec![HOST],
            interfaces: vec![WIRE.into()],
            scheme,
            ..HomeConfig::new(HOME, NETWORK, KEY)
        };
        RunningService::in_real_time(open_with_retries(&self.home, || HomeAgent::open(&config)))
    }

    pub(crate) fn station(&self, number: usize) -> RunningService {
        RunningService::in_real_time(self.open_station(number, |_| {}))
    }

    pub(crate) fn open_station(&self, number: usize, change: impl FnOnce(&mut StationConfig)) -> BaseStation {
        let mut config = StationConfig::new([STATIONS[number], HOME], NETWORK, [WIRE, RADIO], KEY);
        config.beacon_interval = BEACON;
        change(&mut config);
        open_with_retries(&self.stations[number], || BaseStation::open(&config))
    }

    pub(crate) fn mobile_host(&self, change: impl FnOnce(&mut MobileConfig)) -> RunningService {
        let mut config = MobileConfig {
            interfaces: self.radios.clone(),
            lifetime: BEACON.saturating_mul(10),
            ..MobileConfig::new(HOST, KEY)
        };
        change(&mut config);
        RunningService::in_real_time(open_with_retries(&self.mobile, || MobileHost::open(&config)))
    }

    /// Starts the home agent, the stations and a mobile host that changes its station at the interval `every`.
    pub(crate) fn deployment(&self, scheme: Scheme, every: Span) -> Deployment {
        let home = self.home_agent(scheme);
        let stations = [0, 1].map(|number| self.station(number));
        let mobile = self.mobile_host(|config| {
            config.scheme = scheme;
            config.decide = HandoffRule::Periodic(every);
        });
        Deployment { home, stations, mobile }
    }
}

pub(crate) struct Deployment {
    pub(crate) home: RunningService,
    pub(crate) stations: [RunningService; 2],
    pub(crate) mobile: RunningService,
}

impl Deployment {
    /// Of both stations together.
    pub(crate) fn sum_of_stations(&self, figure: &str) -> u64 {
        self.stations.iter().map(|station| station.metric(figure)).sum()
    }

    /// Ends all, and so brings their ledgers up to date.
    pub(crate) fn end(&mut self) {
        [&mut self.home, &mut self.mobile]
            .into_iter()
            .chain(&mut self.stations)
            .for_each(RunningService::end);
    }
}

/// A server before a home agent, two stations and a mobile host.
fn hosts() -> [Namespace; 5] {
    let hosts: [Namespace; 5] = std::array::from_fn(|_| Namespace::new().unwrap());
    let [server, home, ..] = &hosts;
    veth::join([server, home], CABLE, Offload::SinglePackets).unwrap();
    server.run(|| address(CABLE, SERVER, 24)).unwrap();
    home.run(|| address(CABLE, Ipv4Addr::new(10, 70, 0, 2), 24)).unwrap();
    ip(server, "route add default via 10.70.0.2");
    hosts
}

fn tun(name: &str, own: Option<(Ipv4Addr, u8)>) -> Tun {
    let tun = Tun::open(name).unwrap();
    let interface = Interface::named(name).unwrap();
    if let Some((address, prefix)) = own {
        interface.set_address(address, prefix).unwrap();
    }
    interface.up().unwrap();
    tun
}

/// To people, past the capture of tests' output.
pub(crate) fn print_uncaptured(line: &str) {
    // A failure to write cannot be reported.
    let _ = writeln!(io::stderr(), "{line}");
}
