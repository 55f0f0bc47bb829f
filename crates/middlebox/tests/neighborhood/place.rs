//! Hosts on one Ethernet, some with Neighborhood RED.

use bytes::Bytes;
use hopline_linux::Namespace;
use hopline_linux::frames::{self, FrameSocket};
use hopline_linux::veth::{self, Offload};
use hopline_middlebox::neighborhood::{Config, Neighborhood, Source};
use hopline_testkit::namespace::RunningService;
use hopline_testkit::namespace::host::{ip, open_with_retries, succeed};
use hopline_wire::dot11::MacAddr;
use hopline_wire::ipv4::{self, Ecn, Protocol};
use hopline_wire::ncn::{self, NormalizedPb, Notice, StarvedNode};
use hopline_wire::udp;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex, Weak};
use std::thread::{self, sleep};
use std::time::Duration;
use tempfile::TempDir;

/// Name of the hosts' interface.
pub(crate) const RADIO: &str = "wlan0";
/// Number of the queue in the rules.
pub(crate) const QUEUE: u16 = 9;
/// Bit rate of the channel: 2 Mb/s.
pub(crate) const RATE: u64 = 2_000_000;

/// A switch and the hosts behind it.
pub(crate) struct Switch {
    _switch: Namespace,
    hosts: Vec<Namespace>,
}

impl Switch {
    /// Creates a switch with `hosts` hosts.
    pub(crate) fn new(hosts: u8) -> Self {
        let switch = Namespace::new().unwrap();
        ip(&switch, "link add bridge type bridge");
        ip(&switch, "link set bridge up");
        let hosts = (0..hosts).map(|number| host(&switch, number)).collect();
        Self { _switch: switch, hosts }
    }

    pub(crate) fn host(&self, number: u8) -> &Namespace {
        &self.hosts[usize::from(number)]
    }

    /// Opens a raw socket at a host's interface, for forged frames.
    pub(crate) fn frames(&self, number: u8) -> FrameSocket {
        self.host(number).run(|| FrameSocket::open(RADIO)).unwrap().unwrap()
    }

    /// Opens a UDP socket on a host.
    pub(crate) fn datagrams(&self, number: u8) -> UdpSocket {
        let socket = self.host(number).run(|| UdpSocket::bind((address(number), 0))).unwrap().unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        socket
    }

    /// Runs Neighborhood RED on a host, with the defaults altered by `change`.
    pub(crate) fn member(&self, number: u8, change: impl FnOnce(&mut Config)) -> RunningNode {
        divert(self.host(number));
        self.member_without_rules(number, change)
    }

    pub(crate) fn member_without_rules(&self, number: u8, change: impl FnOnce(&mut Config)) -> RunningNode {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::new(RADIO, RATE, QUEUE);
        config.source = Source::Socket(folder.path().join("radio"));
        config.seed = Some(u64::from(number) + 1);
        config.machine.sampling = hopline_core::Duration::from_millis(10);
        config.machine.notice_interval = hopline_core::Duration::from_millis(50);
        config.machine.lifetime = hopline_core::Duration::from_millis(400);
        change(&mut config);
        let service = open_with_retries(self.host(number), || Neighborhood::open(&config));
        RunningNode::new(service, folder)
    }
}

fn host(switch: &Namespace, number: u8) -> Namespace {
    let host = Namespace::new().unwrap();
    let port = format!("port{number}");
    veth::join([&host, switch], &port, Offload::SinglePackets).unwrap();
    ip(&host, &format!("link set {port} name {RADIO}"));
    ip(switch, &format!("link set {port} master bridge"));
    ip(switch, &format!("link set {port} up"));
    host.run(|| hopline_testkit::namespace::host::address(RADIO, address(number), 24)).unwrap();
    host
}

/// Returns the address of a host.
pub(crate) const fn address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 90, 0, number + 1)
}

/// Queues the packets that cross the radio of a host.
pub(crate) fn divert(host: &Namespace) {
    for way in ["PREROUTING -i", "POSTROUTING -o"] {
        let rule = format!("-w -t mangle -A {way} {RADIO} -j NFQUEUE --queue-num {QUEUE} --queue-bypass");
        succeed(host, "iptables", &rule);
    }
}

/// Neighborhood RED on a thread of its own.
pub(crate) struct RunningNode {
    running: RunningService,
    radio: Radio,
}

impl RunningNode {
    fn new(service: Neighborhood, folder: TempDir) -> Self {
        Self { running: RunningService::new(service), radio: Radio::new(folder) }
    }

    /// Returns the last written value of a metric.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        self.running.metric(name)
    }

    /// Waits until a metric has an expected value.
    pub(crate) fn await_metric(&self, name: &str, is_right: impl Fn(u64) -> bool) -> u64 {
        self.running.await_metric(name, is_right)
    }

    /// Sets the load of its radio: percentages of busy, receiving and transmitting time.
    pub(crate) fn set_load(&self, percent: [u64; 3]) {
        *self.radio.load.lock().unwrap() = Some(percent);
    }

    /// Stops the readings of its radio.
    pub(crate) fn stop_readings(&self) {
        *self.radio.load.lock().unwrap() = None;
    }

    /// Stops the service, and waits for its end.
    pub(crate) fn end(mut self) -> RunningService {
        self.running.end();
        self.running
    }

    /// Waits until the service has ended by itself.
    pub(crate) fn wait(mut self) -> io::Result<()> {
        self.running.wait()
    }
}

/// Returns a notice with a lifetime of two seconds.
pub(crate) fn notice(share: f64) -> Notice {
    let lifetime = hopline_core::Duration::from_secs(2);
    Notice { normalized_pb: NormalizedPb::of(share), lifetime, starved_node: StarvedNode::Sender }
}

/// Returns a frame with a notice: source address `from`, destination and port.
pub(crate) fn notice_frame(
    sender: &FrameSocket,
    from: Ipv4Addr,
    (mac, to): (MacAddr, Ipv4Addr),
    port: u16,
    notice: &Notice,
) -> Vec<u8> {
    let mut payload = Vec::new();
    notice.emit(&mut payload);
    let ip =
        ipv4::Header { src: from, dst: to, ttl: 1, protocol: Protocol::Udp, ecn: Ecn::NotCapable, id: 0 };
    let datagram = udp::Datagram { src_port: port, dst_port: port, payload: Bytes::from(payload) };
    let mut frame = [mac.0, sender.address().0].concat();
    frame.extend(frames::IPV4.to_be_bytes());
    ip.emit(datagram.wire_len(), &mut frame);
    datagram.emit(&ip, &mut frame);
    frame
}

/// Destination of honest notices.
pub(crate) const ALL: (MacAddr, Ipv4Addr) = (frames::BROADCAST, Ipv4Addr::BROADCAST);

/// A neighbour that sends a notice every 210 ms, until it is dropped.
pub(crate) struct ComplainingNeighbour {
    _held: Arc<()>,
}

impl ComplainingNeighbour {
    pub(crate) fn new(place: &Switch, number: u8, share: f64) -> Self {
        let held = Arc::new(());
        let (socket, holder) = (place.frames(number), Arc::downgrade(&held));
        let complain = move || {
            let frame = notice_frame(&socket, address(number), ALL, ncn::PORT, &notice(share));
            while holder.upgrade().is_some() {
                socket.send(&frame).unwrap();
                sleep(Duration::from_millis(210));
            }
        };
        thread::Builder::new().name("complaint".into()).spawn(complain).unwrap();
        Self { _held: held }
    }
}

/// Reports the times of a radio every ten milliseconds, until it is dropped.
struct Radio {
    load: Arc<Mutex<Load>>,
}

/// Percentages of busy, receiving and transmitting time; `None`: no readings.
type Load = Option<[u64; 3]>;

impl Radio {
    fn new(folder: TempDir) -> Self {
        let load = Arc::new(Mutex::new(Some([0; 3])));
        let shared = Arc::downgrade(&load);
        let tell = move || tell(&folder, &shared);
        thread::Builder::new().name("radio".into()).spawn(tell).unwrap();
        Self { load }
    }
}

fn tell(folder: &TempDir, load: &Weak<Mutex<Load>>) {
    let socket = UnixDatagram::unbound().unwrap();
    socket.set_nonblocking(true).unwrap();
    let path = folder.path().join("radio");
    let (mut time, mut parts) = (0_u64, [0_u64; 3]);
    while let Some(load) = load.upgrade() {
        if let Some(percent) = *load.lock().unwrap() {
            time += 10;
            parts.iter_mut().zip(percent).for_each(|(part, percent)| *part += percent);
            let [busy, receiving, transmitting] = parts.map(|part| part / 10);
            // The socket is full or closed; the next reading includes this one.
            let _ = socket.send_to(format!("{time} {busy} {receiving} {transmitting}").as_bytes(), &path);
        }
        drop(load);
        sleep(Duration::from_millis(10));
    }
}
