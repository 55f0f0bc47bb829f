//! A server, a home agent, two stations and a mobile host between them, with a daemon on each machine but the server.
//!
//! ```text
//! server 10.70.0.1 ── home agent 10.60.0.254 ══ wire ══ stations 10.60.0.1, 10.60.0.2 )) radios (( mobile host 10.50.0.9
//! ```

use crate::proxy::world::{
    Daemon, PATIENCE, hopline, listing, proxy, secret, shell, sorted, tables, until_or,
};
use hopline_linux::Namespace;
use hopline_linux::veth::{self, Offload};
use hopline_testkit::namespace::host::open_with_retries;
use socket2::SockRef;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Stdio;
use tempfile::TempDir;

pub(crate) const SERVER: &str = "10.70.0.1";
pub(crate) const HOST: &str = "10.50.0.9";
const HOME: &str = "10.60.0.254";
pub(crate) const STATIONS: [&str; 2] = ["10.60.0.1", "10.60.0.2"];
const NETWORK: &str = "10.50.0.0/24";
/// Keys of networks: of all, and of a station that is a stranger's.
pub(crate) const KEYS: [&str; 2] = ["07070707070707070707070707070707", "09090909090909090909090909090909"];
/// Port at which stations ask each other.
pub(crate) const PORT: u16 = 7071;

pub(crate) struct Cells {
    // Dropped before the hosts.
    pub(crate) mobile_host: Option<Daemon>,
    pub(crate) stations: [Option<Daemon>; 2],
    home_agent: Option<Daemon>,
    pub(crate) server: Namespace,
    home: Namespace,
    pub(crate) hosts: [Namespace; 2],
    pub(crate) mobile: Namespace,
    _switch: Namespace,
    folder: TempDir,
}

/// Takes IPv6 from an interface: its addresses and routes would come at any time.
fn without_ipv6(interface: &str) -> String {
    let switch = format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6");
    format!("[ ! -e {switch} ] || echo 1 > {switch}")
}

impl Cells {
    /// Machines and cables, without daemons.
    pub(crate) fn new() -> Self {
        let [server, home, near, far, mobile, switch] = [(); 6].map(|()| Namespace::new().unwrap());
        let hosts = [near, far];
        veth::join([&server, &home], "cable", Offload::SinglePackets).unwrap();
        shell(
            &server,
            &format!(
                "ip addr add {SERVER}/24 dev cable; ip link set cable up; ip route add default via 10.70.0.2"
            ),
        );
        shell(&home, "ip addr add 10.70.0.2/24 dev cable; ip link set cable up");
        shell(
            &switch,
            "ip link add br0 type bridge mcast_snooping 1 mcast_querier 1 mcast_query_response_interval 20; ip link set br0 up",
        );
        for (number, (host, own)) in
            [(&home, HOME), (&hosts[0], STATIONS[0]), (&hosts[1], STATIONS[1])].into_iter().enumerate()
        {
            let port = format!("w{number}");
            veth::join([host, &switch], &port, Offload::SinglePackets).unwrap();
            shell(&switch, &format!("ip link set {port} master br0 up"));
            shell(
                host,
                &format!(
                    "ip link set {port} name wire; {}; ip addr add {own}/24 dev wire; ip link set wire up; \
                     echo 1 > /proc/sys/net/ipv4/ip_forward",
                    without_ipv6("wire")
                ),
            );
        }
        shell(&mobile, &format!("ip addr add {HOST}/32 dev lo; ip link set lo up"));
        for (number, host) in hosts.iter().enumerate() {
            let radio = format!("r{number}");
            veth::join([&mobile, host], &radio, Offload::SinglePackets).unwrap();
            shell(&mobile, &format!("ip link set {radio} up"));
            shell(
                host,
                &format!(
                    "ip link set lo up; ip link set {radio} name radio; {}; ip link set radio up; ip route add default via {HOME}",
                    without_ipv6("radio")
                ),
            );
            shell(host, &tables());
        }
        let folder = TempDir::new().unwrap();
        let (mobile_host, stations, home_agent) = (None, [None, None], None);
        let cells =
            Self { mobile_host, stations, home_agent, server, home, hosts, mobile, _switch: switch, folder };
        cells.set_signal([-50, -80]);
        // The kernel notes a while later that cables have two ends.
        let routes = || cells.listings().concat();
        until_or(|| panic!("{}", routes()), || !routes().contains("linkdown"));
        cells
    }

    /// All daemons, with the mobile host at the first station.
    pub(crate) fn running(scheme: &str) -> Self {
        let mut cells = Self::new();
        cells.start_home_agent(scheme);
        (0..2).for_each(|number| cells.start_station(number, KEYS[0]));
        cells.start_mobile_host(scheme);
        cells.wait_for_station(0);
        cells
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn key(&self, key: &str) -> PathBuf {
        let path = self.path(&format!("{}.key", &key[..2]));
        secret(&path, key);
        path
    }

    /// Starts a daemon, and waits until all of its proxies run.
    fn start(&self, host: &Namespace, name: &str, text: &str) -> Daemon {
        let (file, state) = (self.path(&format!("{name}.toml")), self.path(&format!("{name}.state")));
        fs::write(&file, format!("state_dir = \"{}\"\n{text}", state.display())).unwrap();
        let mut daemon = Daemon::begin(host, &file, &state);
        daemon.wait_until("it runs", |status| {
            status["proxies"].as_array().unwrap().iter().all(|proxy| proxy["state"] == "running")
        });
        daemon
    }

    pub(crate) fn start_home_agent(&mut self, scheme: &str) {
        let key = self.key(KEYS[0]);
        let text = format!(
            "[[proxy]]\nkind = \"home-agent\"\naddress = \"{HOME}\"\nnetwork = \"{NETWORK}\"\nmobiles = [\"{HOST}\"]\n\
             interfaces = [\"wire\"]\nkey_file = \"{}\"\nscheme = \"{scheme}\"\nstations = {STATIONS:?}\n",
            key.display()
        );
        self.home_agent = Some(self.start(&self.home, "home", &text));
    }

    /// The file of a station, with `moves`.
    pub(crate) fn station(&self, number: usize, key: &str) -> String {
        let key = self.key(key);
        format!(
            "[[proxy]]\nkind = \"base-station\"\naddress = \"{}\"\nhome_agent = \"{HOME}\"\nnetwork = \"{NETWORK}\"\n\
             wired = \"wire\"\ninterface = \"radio\"\nkey_file = \"{}\"\nbeacon_s = 0.1\n\
             [[proxy]]\nkind = \"split\"\ninterface = \"radio\"\nmoves = {{ stations = [\"{}\"] }}\n",
            STATIONS[number],
            key.display(),
            STATIONS[1 - number]
        )
    }

    pub(crate) fn start_station(&mut self, number: usize, key: &str) {
        self.start_station_of(number, &self.station(number, key));
    }

    /// Starts a station with this file.
    pub(crate) fn start_station_of(&mut self, number: usize, text: &str) {
        self.stations[number] = Some(self.start(&self.hosts[number], &format!("station{number}"), text));
    }

    /// Starts the daemon of a station, which is to end at once, and returns what it says. `check` says the same.
    pub(crate) fn fails(&self, number: usize, text: &str) -> String {
        let (file, state) = (self.path("fails.toml"), self.path("fails.state"));
        fs::write(&file, format!("state_dir = \"{}\"\n{text}", state.display())).unwrap();
        let said = ["run", "check"].map(|what| {
            let mut command = proxy(what, &file);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let output = self.hosts[number].spawn(command).unwrap().wait_with_output().unwrap();
            assert!(!output.status.success(), "{what}");
            String::from_utf8(output.stderr).unwrap()
        });
        let lines = said.each_ref().map(|said| said.lines().last().unwrap());
        assert_eq!(lines[0], lines[1]);
        said[0].clone()
    }

    pub(crate) fn start_mobile_host(&mut self, scheme: &str) {
        let mut made = hopline();
        made.args(["proxy", "host-key"]).arg(self.key(KEYS[0])).arg(HOST).stdout(Stdio::piped());
        let key = self.path("host.key");
        secret(&key, &String::from_utf8(made.output().unwrap().stdout).unwrap());
        let text = format!(
            "[[proxy]]\nkind = \"mobile-host\"\naddress = \"{HOST}\"\ninterfaces = [\"r0\", \"r1\"]\nkey_file = \"{}\"\n\
             scheme = \"{scheme}\"\nsignals = \"{}\"\nlifetime_s = 1\n",
            key.display(),
            self.path("signals").display()
        );
        self.mobile_host = Some(self.start(&self.mobile, "mobile", &text));
    }

    /// Sets the strengths at which the mobile host hears the stations.
    fn set_signal(&self, dbm: [i32; 2]) {
        let lines = STATIONS.iter().zip(dbm).map(|(station, dbm)| format!("{station} {dbm}\n"));
        let (new, file) = (self.path("signals.new"), self.path("signals"));
        fs::write(&new, lines.collect::<String>()).unwrap();
        fs::rename(&new, &file).unwrap();
    }

    /// Has the mobile host go to a station.
    pub(crate) fn move_to(&self, number: usize) {
        self.set_signal(if number == 0 { [-50, -80] } else { [-80, -50] });
    }

    /// Waits until the mobile host sends by a station.
    pub(crate) fn wait_for_station(&self, number: usize) {
        let route = || shell(&self.mobile, "ip route show default");
        until_or(|| panic!("{}", route()), || route().contains(&format!("via {} ", STATIONS[number])));
    }

    /// A figure of a proxy at a station.
    pub(crate) fn metric(&self, station: usize, proxy: &str, name: &str) -> u64 {
        self.daemon(station).metric(proxy, name)
    }

    pub(crate) fn daemon(&self, station: usize) -> &Daemon {
        self.stations[station].as_ref().unwrap()
    }

    /// Waits until a figure of the split proxy at a station is this.
    pub(crate) fn wait_for(&self, station: usize, name: &str, wanted: u64) {
        let is = || self.metric(station, "split", name);
        let all =
            || [0, 1].map(|at| self.stations[at].as_ref().map(|daemon| (daemon.status(), daemon.log_text())));
        until_or(
            || panic!("{name} of station {station} is {}, not {wanted}: {:?}", is(), all()),
            || is() == wanted,
        );
    }

    /// A connection that the mobile host has made: its end, and the server's.
    pub(crate) fn connect(&self, port: u16) -> [TcpStream; 2] {
        let to = SocketAddr::new(SERVER.parse().unwrap(), port);
        let listener = open_with_retries(&self.server, || TcpListener::bind(to));
        SockRef::from(&listener).set_read_timeout(Some(PATIENCE)).unwrap();
        // It may be answered before the host's first route is there.
        let mut ours = None;
        until_or(
            || panic!("no connection"),
            || {
                let call = || TcpStream::connect_timeout(&to, PATIENCE);
                ours = self.mobile.run(call).unwrap().ok();
                ours.is_some()
            },
        );
        let ends = [ours.unwrap(), listener.accept().unwrap().0];
        for end in &ends {
            end.set_read_timeout(Some(PATIENCE)).unwrap();
            end.set_write_timeout(Some(PATIENCE)).unwrap();
        }
        ends
    }

    /// All that the kernels of the stations were told.
    pub(crate) fn listings(&self) -> [String; 2] {
        [0, 1].map(|number| listing(&self.hosts[number]))
    }

    /// Ends the stations as asked for, and expects nothing that was not there before.
    pub(crate) fn end_stations(&mut self, before: &[String; 2]) {
        for (number, before) in before.iter().enumerate() {
            let mut daemon = self.stations[number].take().unwrap();
            assert!(daemon.ended_by("TERM").success(), "{}", daemon.log_text());
            let is = || listing(&self.hosts[number]);
            until_or(|| panic!("before:\n{before}\nnow:\n{}", is()), || sorted(&is()) == sorted(before));
        }
    }
}
