//! Hosts and cables, services on threads of their own, and nftables counters on the path.

use hopline_linux::Namespace;
use hopline_linux::veth::{self, Offload};
use hopline_middlebox::announce::{Announcements, Config, HostProtocols, Role};
use hopline_testkit::namespace::RunningService;
use hopline_testkit::namespace::host::{address, ip, open_with_retries, succeed};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Name of the interface that leads to the peer.
pub(crate) const CABLE: &str = "cable";
/// Number of the queue in the rules.
pub(crate) const QUEUE: u16 = 7;

/// A calling and a called host, connected by a cable.
pub(crate) struct World {
    pub(crate) caller: Namespace,
    pub(crate) called: Namespace,
}

pub(crate) const CALLER: Ipv4Addr = Ipv4Addr::new(10, 93, 0, 1);
pub(crate) const CALLED: Ipv4Addr = Ipv4Addr::new(10, 93, 0, 2);
pub(crate) const CALLED_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x93, 0, 0, 0, 0, 0, 2);

impl World {
    pub(crate) fn new() -> Self {
        let [caller, called] = [Namespace::new().unwrap(), Namespace::new().unwrap()];
        let world = Self { caller, called };
        world.join();
        world
    }

    /// Creates the cable, with addresses at its ends.
    pub(crate) fn join(&self) {
        veth::join([&self.caller, &self.called], CABLE, Offload::SinglePackets).unwrap();
        for (host, v4, last) in [(&self.caller, CALLER, 1), (&self.called, CALLED, 2)] {
            host.run(|| address(CABLE, v4, 24)).unwrap();
            ip(host, &format!("-6 address add fd00:93::{last}/64 dev {CABLE} nodad"));
        }
    }

    /// Starts the announcer of the calling host, which marks its SYNs.
    pub(crate) fn announcer(&self) -> RunningAnnouncer {
        RunningAnnouncer::at(&self.caller, Role::Client, Hooks::Local)
    }

    /// Starts the announcer of the called host, which answers marks.
    pub(crate) fn responder(&self) -> RunningAnnouncer {
        RunningAnnouncer::at(&self.called, Role::Server, Hooks::Local)
    }
}

/// Hooks at which handshakes are queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hooks {
    /// Those of the host's own connections.
    Local,
    /// Those of forwarded connections.
    Forward,
}

/// Queues handshakes that cross the cable.
pub(crate) fn divert(host: &Namespace, hooks: Hooks) {
    let places = match hooks {
        Hooks::Local => ["OUTPUT -o", "INPUT -i"],
        Hooks::Forward => ["FORWARD -o", "FORWARD -i"],
    };
    for iptables in ["iptables", "ip6tables"] {
        for place in places {
            let rule = format!(
                "-w -A {place} {CABLE} -p tcp --tcp-flags SYN SYN -j NFQUEUE --queue-num {QUEUE} --queue-bypass"
            );
            succeed(host, iptables, &rule);
        }
    }
}

/// Announcement service on a thread of its own.
pub(crate) struct RunningAnnouncer {
    pub(crate) known: HostProtocols,
    running: RunningService,
}

impl RunningAnnouncer {
    pub(crate) fn at(host: &Namespace, role: Role, hooks: Hooks) -> Self {
        Self::with(host, &Config::new(role, CABLE, QUEUE), hooks)
    }

    pub(crate) fn with(host: &Namespace, config: &Config, hooks: Hooks) -> Self {
        divert(host, hooks);
        let service = open_with_retries(host, || Announcements::open(config));
        let known = service.host_protocols();
        Self { known, running: RunningService::new(service) }
    }

    /// Stops the service, and waits for its end.
    pub(crate) fn end(mut self) -> RunningService {
        self.running.end();
        self.running
    }

    /// Returns whether a current notice of the service contains `words`.
    pub(crate) fn has_notice(&self, words: &str) -> bool {
        self.running.has_notice(words)
    }
}

/// Connects to a listener of the called host at `ip`, and transfers bytes in both directions.
pub(crate) fn transfer(world: &World, ip: impl Into<IpAddr>) {
    transfer_between(&world.caller, &world.called, ip.into());
}

pub(crate) fn transfer_between(caller: &Namespace, called: &Namespace, ip: IpAddr) {
    let listener = called.run(|| TcpListener::bind((ip, 0)).unwrap()).unwrap();
    let to = listener.local_addr().unwrap();
    let mut here = connect(caller, to);
    let (mut there, _) = listener.accept().unwrap();
    here.write_all(b"ping").unwrap();
    expect(&mut there, b"ping");
    there.write_all(b"pong").unwrap();
    expect(&mut here, b"pong");
}

pub(crate) fn connect(from: &Namespace, to: SocketAddr) -> TcpStream {
    from.run(|| TcpStream::connect_timeout(&to, Duration::from_secs(60)).unwrap()).unwrap()
}

fn expect(from: &mut TcpStream, what: &[u8; 4]) {
    from.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, what);
}

/// Counters of nftables for handshakes that arrive at a host, before other rules: those with reserved bits, and those
/// without.
pub(crate) struct HandshakeCounter<'a>(&'a Namespace);

/// Treatment of handshakes by nftables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandshakeFilter {
    Pass,
    /// Those with reserved bits are dropped, as on a path that does not support them.
    DropMarked,
    DropAll,
}

impl<'a> HandshakeCounter<'a> {
    pub(crate) fn of(host: &'a Namespace, seen: HandshakeFilter) -> Self {
        let (marked, plain) = match seen {
            HandshakeFilter::Pass => ("accept", "accept"),
            HandshakeFilter::DropMarked => ("drop", "accept"),
            HandshakeFilter::DropAll => ("drop", "drop"),
        };
        // Low half of the 13th byte of the TCP header: bits 100 to 103.
        let table = format!(
            "table inet sight {{
               counter marked {{ }}
               counter plain {{ }}
               chain prerouting {{
                 type filter hook prerouting priority -400;
                 iifname {CABLE} tcp flags & syn == syn @th,100,4 != 0 counter name marked {marked}
                 iifname {CABLE} tcp flags & syn == syn @th,100,4 == 0 counter name plain {plain}
               }}
             }}"
        );
        nft(host, &["-f", "-"], &table);
        Self(host)
    }

    /// Returns the number of SYNs or SYN-ACKs with reserved bits, and without.
    pub(crate) fn counts(&self) -> [u64; 2] {
        ["marked", "plain"].map(|counter| {
            let listed = nft(self.0, &["list", "counter", "inet", "sight", counter], "");
            let mut words = listed.split_whitespace().skip_while(|&word| word != "packets");
            words.nth(1).unwrap().parse().unwrap()
        })
    }

    /// Waits for the expected counts.
    pub(crate) fn await_counts(&self, is_right: impl Fn([u64; 2]) -> bool) -> [u64; 2] {
        for _ in 0..600 {
            let counts = self.counts();
            if is_right(counts) {
                return counts;
            }
            sleep(Duration::from_millis(100));
        }
        unreachable!("marked, plain: {:?}", self.counts())
    }
}

fn nft(host: &Namespace, words: &[&str], input: &str) -> String {
    let mut command = Command::new("nft");
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = host.spawn(command).unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "nft {words:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the number of segments with wrong checksums that the kernel of a host has received.
pub(crate) fn wrong_checksums(host: &Namespace) -> u64 {
    let text = host.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap()).unwrap();
    let mut lines = text.lines().filter(|line| line.starts_with("Tcp:"));
    let [names, values] = [lines.next().unwrap(), lines.next().unwrap()];
    let place = names.split(' ').position(|name| name == "InCsumErrors").unwrap();
    values.split(' ').nth(place).unwrap().parse().unwrap()
}
