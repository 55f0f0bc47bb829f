//! Packets of connections that nobody has.

use crate::start::BOTH;
use crate::transfer::{End, Pace, Transfer, transfer};
use crate::world::{Daemon, Ground, MOBILE, ROUTER, SERVER, shell, until_or};
use hopline_core::{Purpose, Stream};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

const FLOWS: u32 = 100_000;
/// Memory that a flood may take.
const GROWTH: u64 = 96 << 20;
/// Flags of TCP.
const SYN: u8 = 0x02;
const PSH_ACK: u8 = 0x18;
/// Lengths of the headers.
const IP: usize = 20;
const TCP: usize = 20;

/// From where and which port, to which port.
struct Flow {
    from: (Ipv4Addr, u16),
    to_port: u16,
}

/// Has the server send packets to the mobile host in the names of its neighbours.
fn flood(ground: &Ground, flags: u8, data: usize, flow: impl Fn(&mut Stream) -> Flow + Sync) {
    let send = || {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(whole_packets()))).unwrap();
        let to: Ipv4Addr = MOBILE.parse().unwrap();
        let address: SockAddr = SocketAddrV4::new(to, 0).into();
        let mut random = Stream::keyed(5, 0, 0, Purpose::Emulation);
        for _ in 0..FLOWS {
            let packet = packet(&flow(&mut random), to, random.below(u32::MAX), flags, data);
            // What the queue of the interface has no room for is lost.
            let _ = socket.send_to(&packet, &address);
        }
    };
    ground.server.run(send).unwrap();
}

/// `IPPROTO_RAW`: the header of IP is ours (raw(7)).
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

/// That of TCP, with the addresses, the protocol and the length before it (RFC 9293 §3.1); the header of IP is left to the kernel.
fn checksum(packet: &[u8]) -> u16 {
    let words =
        packet[12..].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum::<u32>() + 6 + (packet.len() - IP) as u32;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn neighbour(random: &mut Stream) -> Ipv4Addr {
    Ipv4Addr::new(10, 8, 0, 2 + random.below(200) as u8)
}

fn port(random: &mut Stream) -> u16 {
    (1024 + random.below(60_000)) as u16
}

fn has_grown_little(daemon: &Daemon, before: u64) {
    let now = daemon.resident();
    assert!(now < before + GROWTH, "{now} bytes, {before} before the flood");
}

pub(crate) fn forged_flows_are_bounded_and_transfers_go_on() {
    let ground = Ground::new();
    let mut daemon = ground.start(BOTH);
    let before = daemon.resident();
    flood(&ground, PSH_ACK, 400, |random| Flow { from: (neighbour(random), 5001), to_port: port(random) });
    daemon.wait_until("it sees them", |status| status["proxies"][0]["state"] == "running");
    transfer([&ground.mobile, &ground.server], (SERVER, 5001), 500_000);
    until_or(|| panic!("{}", daemon.status()), || daemon.figure("snoop", "segments_to_mobile") > 1000);
    has_grown_little(&daemon, before);
    assert!(daemon.ended_by("TERM").success());
}

pub(crate) fn forged_calls_are_bounded_and_transfers_go_on_when_they_are_given_up() {
    let ground = Ground::new();
    // What nobody confirms is given up after 3 s rather than after a minute. Until then the kernel answers by SYN cookies, whose ACKs it
    // does not recognise where calls are diverted: callers are reset.
    shell(&ground.router, "echo 1 > /proc/sys/net/ipv4/tcp_synack_retries");
    let mut daemon = ground.start(BOTH);
    let before = daemon.resident();
    flood(&ground, SYN, 0, |random| Flow { from: (neighbour(random), port(random)), to_port: 5002 });
    has_grown_little(&daemon, before);
    let hosts = [&ground.mobile, &ground.server];
    let crosses = || {
        let tried = Transfer::start(hosts, (SERVER, 5002), 500_000, Pace::AtOnce);
        tried.is_ok_and(|transfer| transfer.ends().0 == End::Whole)
    };
    until_or(|| panic!("{}", daemon.status()), crosses);
    assert!(daemon.ended_by("TERM").success());
}

pub(crate) fn a_tunnel_answers_strangers_with_no_more_than_they_sent() {
    let ground = Ground::new();
    let key = ground.folder.path().join("link.key");
    fs::write(&key, "5a".repeat(32)).unwrap();
    let mut daemon = ground.start(&format!(
        "[[proxy]]\nkind = \"opaque\"\nlocal = \"{}\"\npeer = \"10.9.0.7\"\nkey_file = \"{}\"\n",
        ROUTER[0],
        key.display()
    ));
    let socket = ground.mobile.run(|| UdpSocket::bind((MOBILE, 1022)).unwrap()).unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut random = Stream::keyed(6, 0, 0, Purpose::Emulation);
    let (mut asked, mut answered, mut buffer) = (0, 0, [0; 2048]);
    for _ in 0..20_000 {
        let datagram: Vec<u8> = (0..random.below(200)).map(|_| random.below(256) as u8).collect();
        asked += socket.send_to(&datagram, (ROUTER[0], 1022)).unwrap_or(0);
        answered += socket.recv(&mut buffer).unwrap_or(0);
    }
    while let Ok(len) = socket.recv(&mut buffer) {
        answered += len;
    }
    assert!(answered <= asked, "{answered} bytes to {asked}");
    assert_eq!(daemon.status()["proxies"][0]["state"], "running");
    assert!(daemon.resident() < GROWTH, "{} bytes", daemon.resident());
    assert!(daemon.ended_by("TERM").success());
}
