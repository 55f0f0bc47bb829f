//! Packets of connections that do not exist.

use crate::proxy::start::BOTH;
use crate::proxy::transfer::run_transfer;
use crate::proxy::world::{Daemon, Ground, MOBILE, ROUTER, SERVER, secret, shell, until_or};
use hopline_core::{Purpose, RandomStream};
use hopline_linux::Namespace;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

const FLOWS: u32 = 100_000;
/// Most memory that a flood may take, bytes.
const GROWTH: u64 = 96 << 20;
/// Flags of TCP.
const SYN: u8 = 0x02;
const PSH_ACK: u8 = 0x18;
/// Lengths of the headers.
const IP: usize = 20;
const TCP: usize = 20;

/// Source address and port, and destination port.
struct Flow {
    from: (Ipv4Addr, u16),
    to_port: u16,
}

/// Sends packets from the server to the mobile host in the names of the server's neighbours.
fn flood(ground: &Ground, flags: u8, data: usize, flow: impl Fn(&mut RandomStream) -> Flow + Sync) {
    let send = || {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(whole_packets()))).unwrap();
        let to: Ipv4Addr = MOBILE.parse().unwrap();
        let address: SockAddr = SocketAddrV4::new(to, 0).into();
        let mut random = RandomStream::keyed(5, 0, 0, Purpose::Emulation);
        for _ in 0..FLOWS {
            let packet = packet(&flow(&mut random), to, random.below(u32::MAX), flags, data);
            // Packets that the queue of the interface has no room for are lost.
            let _ = socket.send_to(&packet, &address);
        }
    };
    ground.server.run(send).unwrap();
}

/// Sends SYNs from a host under its own address, each from another port.
pub(crate) fn syns(host: &Namespace, from: Ipv4Addr, to: Ipv4Addr, to_port: u16, number: u32) {
    let send = || {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(whole_packets()))).unwrap();
        let address: SockAddr = SocketAddrV4::new(to, 0).into();
        for i in 0..number {
            let flow = Flow { from: (from, 20_000 + i as u16), to_port };
            let _ = socket.send_to(&packet(&flow, to, i, SYN, 0), &address);
        }
    };
    host.run(send).unwrap();
}

/// `IPPROTO_RAW`: the program writes the IP header (raw(7)).
const fn whole_packets() -> i32 {
    255
}

fn packet(flow: &Flow, to: Ipv4Addr, seq: u32, flags: u8, data: usize) -> Vec<u8> {
    let mut bytes = vec![0; IP + TCP + data];
    let total = u16::try_from(bytes.len()).unwrap();
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&total.to_be_bytes());
    (bytes[8], bytes[9]) = (64, 6);
    bytes[12..16].copy_from_slice(&flow.from.0.octets());
    bytes[16..20].copy_from_slice(&to.octets());
    bytes[20..22].copy_from_slice(&flow.from.1.to_be_bytes());
    bytes[22..24].copy_from_slice(&flow.to_port.to_be_bytes());
    bytes[24..28].copy_from_slice(&seq.to_be_bytes());
    (bytes[32], bytes[33]) = (5 << 4, flags);
    bytes[34..36].copy_from_slice(&8192u16.to_be_bytes());
    let sum = checksum(&bytes);
    bytes[36..38].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// Returns the TCP checksum, with the pseudo header (RFC 9293 §3.1). The kernel writes the IP header checksum.
fn checksum(packet: &[u8]) -> u16 {
    let words =
        packet[12..].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum::<u32>() + 6 + (packet.len() - IP) as u32;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn neighbour(random: &mut RandomStream) -> Ipv4Addr {
    Ipv4Addr::new(10, 8, 0, 2 + random.below(200) as u8)
}

fn port(random: &mut RandomStream) -> u16 {
    (1024 + random.below(60_000)) as u16
}

fn has_grown_little(daemon: &Daemon, before: u64) {
    let now = daemon.resident();
    assert!(now < before + GROWTH, "{now} bytes, {before} before the flood");
}

pub(crate) fn forged_flows_are_bounded_and_transfers_continue() {
    let ground = Ground::new();
    let mut daemon = ground.start(BOTH);
    let before = daemon.resident();
    flood(&ground, PSH_ACK, 400, |random| Flow { from: (neighbour(random), 5001), to_port: port(random) });
    daemon.wait_until("it sees them", |status| status["proxies"][0]["state"] == "running");
    run_transfer([&ground.mobile, &ground.server], (SERVER, 5001), 500_000);
    until_or(|| panic!("{}", daemon.status()), || daemon.metric("snoop", "segments_to_mobile") > 1000);
    has_grown_little(&daemon, before);
    assert!(daemon.ended_by("TERM").success());
}

pub(crate) fn forged_connections_are_bounded_and_transfers_continue() {
    let ground = Ground::new();
    let mut daemon = ground.start(BOTH);
    let before = daemon.resident();
    flood(&ground, SYN, 0, |random| Flow { from: (neighbour(random), port(random)), to_port: 5002 });
    has_grown_little(&daemon, before);
    run_transfer([&ground.mobile, &ground.server], (SERVER, 5002), 500_000);
    assert!(daemon.ended_by("TERM").success());
}

/// Receiver of datagrams: its section without the key, its port, and its counters of rejected datagrams.
struct Listener {
    section: String,
    port: u16,
    counters: &'static [&'static str],
}

/// Returns every kind of receiver of datagrams, on the router.
fn listeners(ground: &Ground) -> Vec<Listener> {
    let folder = ground.folder.path().display();
    let [near, far] = ROUTER;
    let listener = |kind: &str, port, rest: String, counters| Listener {
        section: format!("[[proxy]]\nkind = \"{kind}\"\nname = \"it\"\n{rest}\n"),
        port,
        counters,
    };
    let link = |rest: &str| {
        format!("local = \"{near}\"\npeer = \"{PEER}\"\nkey_file = \"{folder}/link.key\"\n{rest}")
    };
    let cells = |rest: String| format!("key_file = \"{folder}/cells.key\"\n{rest}");
    let on_mobile = "interface = \"mobile\"";
    vec![
        listener("opaque", 1022, link(""), &["datagrams_malformed", "datagrams_forged", "greetings_forged"]),
        listener("d-proxy", 1022, link(on_mobile), &["messages_malformed", "messages_forged"]),
        // Datagrams that are not TPA are not counted.
        listener("gateway-exit", 7172, format!("peers = [\"drone-7 = {folder}/link.key\"]"), &[]),
        listener(
            "home-agent",
            1021,
            cells(format!(
                "address = \"{near}\"\nnetwork = \"10.10.0.0/24\"\nmobiles = [\"10.10.0.7\"]\ninterfaces = [\"mobile\"]"
            )),
            &["malformed", "forged", "foreign"],
        ),
        listener(
            "base-station",
            1021,
            cells(format!(
                "address = \"{near}\"\nhome_agent = \"{far}\"\nnetwork = \"10.10.0.0/24\"\nwired = \"fixed\"\n{on_mobile}"
            )),
            &["malformed", "forged", "foreign"],
        ),
        listener(
            "mobile-host",
            1021,
            format!("key_file = \"{folder}/link.key\"\naddress = \"{near}\"\ninterfaces = [\"mobile\"]"),
            &["malformed", "forged", "foreign"],
        ),
        listener(
            "neighborhood-red",
            1022,
            format!(
                "{on_mobile}\nsamples = \"file:{folder}/samples\"\nneighborhood_red = {{ bandwidth_mbps = 54 }}"
            ),
            &["notices_malformed"],
        ),
    ]
}

/// Other end of links, which does not exist: datagrams from it are forged.
const PEER: &str = "10.9.0.7";
const STRANGER: &str = "10.9.0.66";

/// Sends datagrams to the router. Returns the bytes sent and the bytes received.
fn datagrams(ground: &Ground, from: &str, port: u16) -> (usize, usize) {
    let socket = ground.mobile.run(|| UdpSocket::bind((from, port)).unwrap()).unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut random = RandomStream::keyed(6, port.into(), 0, Purpose::Emulation);
    let (mut asked, mut answered, mut buffer) = (0, 0, [0; 2048]);
    for i in 0..5_000 {
        let mut datagram: Vec<u8> = (0..random.below(200)).map(|_| random.below(256) as u8).collect();
        // Types and versions of formats are small numbers: these datagrams are truncated after them, or have wrong content.
        if let Some(first) = datagram.first_mut().filter(|_| i % 2 == 0) {
            *first %= 16;
        }
        asked += socket.send_to(&datagram, (ROUTER[0], port)).unwrap_or(0);
        answered += socket.recv(&mut buffer).unwrap_or(0);
    }
    while let Ok(len) = socket.recv(&mut buffer) {
        answered += len;
    }
    (asked, answered)
}

pub(crate) fn receivers_of_datagrams_count_garbage_and_do_not_amplify() {
    let ground = Ground::new();
    for (name, bytes) in [("link.key", 32), ("cells.key", 16)] {
        secret(&ground.folder.path().join(name), &"5a".repeat(bytes));
    }
    for address in [PEER, STRANGER] {
        shell(&ground.mobile, &format!("ip addr add {address}/24 dev mobile"));
    }
    for Listener { section, port, counters } in listeners(&ground) {
        let mut daemon = ground.start(&section);
        for from in [STRANGER, PEER] {
            let (asked, answered) = datagrams(&ground, from, port);
            assert!(answered <= asked, "{answered} bytes to {asked}: {section}");
        }
        let counted = || counters.iter().map(|counter| daemon.metric("it", counter)).sum::<u64>();
        until_or(|| panic!("{section}{}", daemon.status()), || counters.is_empty() || counted() > 0);
        let proxy = &daemon.status()["proxies"][0];
        assert_eq!((&proxy["state"], &proxy["restarts"]), (&"running".into(), &0.into()), "{section}{proxy}");
        assert!(daemon.resident() < GROWTH, "{} bytes: {section}", daemon.resident());
        assert!(daemon.ended_by("TERM").success(), "{section}");
    }
}
