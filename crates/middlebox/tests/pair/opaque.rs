//! Tunnels with local retransmission, over TUN and UDP.

use crate::pair::world::{Bottleneck, Losses, World, at, last_figures, udp};
use hopline_linux::Namespace;
use hopline_linux::veth::{self, Offload};
use hopline_middlebox::nfqueue::Injector;
use hopline_middlebox::opaque::{Config, Opaque};
use hopline_proxy::dproxy::{Key, opaque};
use hopline_proxy::tunnel::RecoveryScheme;
use hopline_proxy::{InjectResult, QueuePosition, arq};
use hopline_testkit::Side;
use hopline_testkit::namespace::RunningService;
use hopline_testkit::namespace::host::{ip, open_with_retries};
use hopline_testkit::namespace::last_hop::LINK;
use hopline_testkit::streams::until;
use hopline_tools::link::NamespaceLink;
use hopline_wire::dproxy::tunnel::{HANDSHAKE_LEN, MAGIC, VERSION};
use hopline_wire::ipv4::{Ecn, Header, Protocol};
use hopline_wire::udp::Datagram;
use socket2::{Domain, Socket, Type};
use std::io::Read;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV6};
use std::num::NonZeroU8;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

const KEY: Key = Key::new([3; 32]);
const TUN: &str = "dproxy0";
/// Addresses of the interfaces.
const NEAR: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 1);
pub(crate) const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 2);
const MTU: usize = 1444;

const ASKING: fn() -> RecoveryScheme = || RecoveryScheme::Nack(opaque::Config::default());
const ACKNOWLEDGING: fn() -> RecoveryScheme = || RecoveryScheme::Arq(arq::Config::default());

pub(crate) fn config(side: Side, repair: RecoveryScheme) -> Config {
    let [local, peer] = [side, side.other()].map(|side| NamespaceLink::address(side).into());
    Config { repair, ..Config::new(local, peer, KEY) }
}

/// Starts one end, with address and routes.
pub(crate) fn start(world: &World, side: Side, config: &Config) -> RunningService {
    let host = world.lossy.host(side);
    let end = open_with_retries(host, || Opaque::open(config));
    let (own, v6) = if side == Side::A { (NEAR, "fd90::1") } else { (MOBILE, "fd90::2") };
    ip(host, &format!("addr add {own}/24 dev {TUN}"));
    ip(host, &format!("-6 addr add {v6}/64 dev {TUN} nodad"));
    if side == Side::B {
        ip(host, &format!("route add 10.81.0.0/24 dev {TUN}"));
    }
    RunningService::in_real_time(end)
}

/// Starts both ends.
pub(crate) fn pair(world: &World, configs: [Config; 2]) -> [RunningService; 2] {
    let ends = [start(world, Side::A, &configs[0]), start(world, Side::B, &configs[1])];
    for end in &ends {
        until("the ends know each other", || end.metric("peer_ready") == 1);
    }
    ends
}

fn both(repair: RecoveryScheme) -> [Config; 2] {
    [Side::A, Side::B].map(|side| config(side, repair))
}

fn world(losses: Losses) -> World {
    World::new(5, losses, Bottleneck::InLink, 11)
}

pub(crate) fn all_bytes_arrive_with_every_repair_scheme() {
    let bursts = Losses { share: 0.05, burst: Some(4.0), back: false };
    let both_ways = Losses { share: 0.1, burst: None, back: true };
    for (losses, bytes) in [(Losses::of(0.0), 500_000), (bursts, 1_000_000), (both_ways, 1_000_000)] {
        for repair in [ASKING(), ACKNOWLEDGING()] {
            let world = world(losses);
            let [near, _mobile] = pair(&world, both(repair));
            world.transfer(MOBILE, bytes, |_| {});
            let lost = world.lossy.stats().forward.losses;
            let figure = last_figures(near);
            let again = figure("packets_sent_again");
            // All losses may be acknowledgements, which are not repeated. Without losses, an end may still retransmit
            // when it gets no processor time for the 5 ms of its timer.
            assert!(lost == 0 || again > 0, "{lost} lost, {losses:?} {repair:?}");
        }
    }
}

/// Duration of a CUBIC transfer: the bytes carried in two seconds are compared.
const LASTS: Duration = Duration::from_secs(2);

pub(crate) fn cubic_doubles_its_goodput_at_5_percent_loss() {
    let plain = World::new(25, Losses::of(0.05), Bottleneck::InLink, 5).received_within(
        NamespaceLink::address(Side::B),
        "cubic",
        LASTS,
    );
    for repair in [ASKING(), ACKNOWLEDGING()] {
        let world = World::new(25, Losses::of(0.05), Bottleneck::InLink, 5);
        let _ends = pair(&world, both(repair));
        let repaired = world.received_within(MOBILE, "cubic", LASTS);
        assert!(repaired >= 2 * plain, "{repaired} bytes with {repair:?}, {plain} without");
    }
}

pub(crate) fn packets_take_other_routes_while_the_peer_is_absent() {
    let world = world(Losses::of(0.0));
    let networks = ["10.99.0.0", "fd99::"].map(|address| address.parse().unwrap());
    let routes = networks.into_iter().zip([24, 64]).collect();
    let with = Config { routes, ..config(Side::A, ASKING()) };
    // A route to the same network is no obstacle: packets take it without the tunnel.
    let before = format!("route add 10.99.0.0/24 via {}", NamespaceLink::address(Side::B));
    ip(world.near(), &before);
    let near = start(&world, Side::A, &with);
    let tunnelled = |family: &str| {
        let asked = format!("ip {family} route show dev {TUN} | grep -c '99'; true");
        let mut command = Command::new("sh");
        command.args(["-c", &asked]).stdout(Stdio::piped());
        let output = world.near().spawn(command).unwrap().wait_with_output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim() == "1"
    };
    until("it is said that it is alone", || near.has_notice("take the routes beside the tunnel"));
    assert!(!tunnelled("-4") && !tunnelled("-6"));
    let mobile = start(&world, Side::B, &config(Side::B, ASKING()));
    until("the routes lead into the tunnel", || tunnelled("-4") && tunnelled("-6"));
    assert!(near.has_notice("is there"));
    drop(mobile);
    let sender = udp(world.near(), at(NEAR, 0));
    until("they do not any more", || {
        let _ = sender.send_to(b"traffic", at(MOBILE, 9));
        !tunnelled("-4") && !tunnelled("-6")
    });
}

pub(crate) fn a_transfer_survives_the_loss_of_either_end() {
    for (who, repair) in [(Side::A, ASKING()), (Side::B, ACKNOWLEDGING())] {
        let world = world(Losses::of(0.02));
        let [near, mobile] = pair(&world, both(repair));
        let mut ends = [Some(near), Some(mobile)];
        let mut has_ended = false;
        world.transfer(MOBILE, 1_500_000, |arrived| {
            if arrived > 500_000 && !has_ended {
                has_ended = true;
                ends[who as usize].take();
                let end = start(&world, who, &config(who, repair));
                ends[who as usize] = Some(end);
            }
        });
        let other = last_figures(ends[who.other() as usize].take().unwrap());
        assert!(has_ended && other("sessions") == 2, "{}", other("sessions"));
    }
}

pub(crate) fn without_the_peer_only_one_greeting_a_second_is_sent() {
    let world = world(Losses::of(0.0));
    let near = start(&world, Side::A, &config(Side::A, ASKING()));
    let socket = udp(world.near(), at(NEAR, 0));
    for _ in 0..20 {
        socket.send_to(b"is anybody there?", at(MOBILE, 9)).unwrap();
    }
    thread::sleep(Duration::from_millis(1200));
    let figure = last_figures(near);
    // The kernel also sends IPv6 packets by itself.
    let (packets, dropped) = (figure("packets"), figure("packets_without_peer"));
    assert!(packets >= 20 && dropped == packets && figure("peer_ready") == 0, "{dropped} of {packets}");
    assert!((1..8).contains(&figure("greetings_sent")), "{}", figure("greetings_sent"));
    assert!(figure("peer_unreachable") > 0, "its host says that nobody listens");
    // A peer that starts late is detected.
    let _ends = pair(&world, both(ASKING()));
    world.transfer(MOBILE, 100_000, |_| {});
}

pub(crate) fn another_key_is_counted() {
    let world = world(Losses::of(0.0));
    let other = Config { key: Key::new([4; 32]), ..config(Side::B, ASKING()) };
    let ends = [start(&world, Side::A, &config(Side::A, ASKING())), start(&world, Side::B, &other)];
    for end in &ends {
        until("greetings are heard", || end.metric("greetings_forged") > 1);
        assert_eq!((end.metric("peer_ready"), end.metric("sessions")), (0, 0));
    }
}

pub(crate) fn errors_are_named() {
    let world = world(Losses::of(0.0));
    let right = config(Side::A, ASKING());
    let error = |config: &Config| world.near().run(|| Opaque::open(config).unwrap_err().to_string()).unwrap();
    let nobody = Config { local: Ipv4Addr::new(9, 9, 9, 9).into(), ..right.clone() };
    assert!(error(&nobody).contains("binding UDP 9.9.9.9:1022: no interface here"), "{}", error(&nobody));
    let small = Config { mtu: 1300, ..right.clone() };
    assert!(error(&small).contains("`mtu` must be at least 1336"), "{}", error(&small));
    let taken = Config { tun: LINK.into(), ..right };
    assert!(error(&taken).contains("making the TUN interface link0"), "{}", error(&taken));
}

pub(crate) fn datagrams_up_to_the_mtu_and_pings_cross_over_ipv4_and_ipv6() {
    let parity = opaque::Parity::Adaptive { min_group: NonZeroU8::MIN, max_group: NonZeroU8::MIN };
    for repair in
        [ASKING(), ACKNOWLEDGING(), RecoveryScheme::Nack(opaque::Config { parity, ..Default::default() })]
    {
        let world = world(Losses { share: 0.1, burst: None, back: true });
        let _ends = pair(&world, both(repair));
        let [near, mobile] =
            [(world.near(), NEAR), (world.mobile(), MOBILE)].map(|(host, own)| udp(host, at(own, 7)));
        let v6 = |n| SocketAddrV6::new(Ipv6Addr::new(0xfd90, 0, 0, 0, 0, 0, 0, n), 7, 0, 0);
        let [near6, mobile6] = [(world.near(), 1), (world.mobile(), 2)].map(|(host, n)| udp(host, v6(n)));
        let mut buffer = vec![0; 65_536];
        for round in 0..20u8 {
            for (len, from, to, address) in [
                (MTU - 28, &near, &mobile, at(MOBILE, 7).into()),
                (MTU - 48, &near6, &mobile6, v6(2).into()),
                (0, &mobile, &near, at(NEAR, 7).into()),
                // Fragmented.
                (4000, &mobile6, &near6, std::net::SocketAddr::from(v6(1))),
            ] {
                from.send_to(&vec![round; len], address).unwrap();
                assert_eq!(to.recv(&mut buffer).unwrap(), len, "{repair:?}");
                assert!(buffer[..len].iter().all(|byte| *byte == round));
            }
        }
        (0..10).for_each(|sequence| ping(&world, sequence));
    }
}

pub(crate) fn the_ends_may_have_ipv6_addresses() {
    let hosts = [Namespace::new().unwrap(), Namespace::new().unwrap()];
    veth::join([&hosts[0], &hosts[1]], "cable", Offload::SinglePackets).unwrap();
    let outer = |n| Ipv6Addr::new(0xfd80, 0, 0, 0, 0, 0, 0, n);
    for (host, n) in hosts.iter().zip([1, 2]) {
        ip(host, &format!("-6 addr add {}/64 dev cable nodad", outer(n)));
        ip(host, "link set cable up");
    }
    let ends: Vec<RunningService> = [(0, 1, 2, NEAR), (1, 2, 1, MOBILE)]
        .map(|(at, local, peer, own)| {
            let config = Config::new(outer(local).into(), outer(peer).into(), KEY);
            let end = open_with_retries(&hosts[at], || Opaque::open(&config));
            ip(&hosts[at], &format!("addr add {own}/24 dev {TUN}"));
            RunningService::in_real_time(end)
        })
        .into();
    ends.iter().for_each(|end| until("the ends know each other", || end.metric("peer_ready") == 1));
    let [from, to] = [(0, NEAR), (1, MOBILE)].map(|(which, own): (usize, _)| udp(&hosts[which], at(own, 7)));
    from.send_to(&[9; MTU - 20 - 28], at(MOBILE, 7)).unwrap();
    assert_eq!(to.recv(&mut [0; 2000]).unwrap(), MTU - 20 - 28);
}

/// Sends an ICMP echo over the link and back.
fn ping(world: &World, sequence: u8) {
    let icmp = Some(socket2::Protocol::ICMPV4);
    let mut socket = world.near().run(|| Socket::new(Domain::IPV4, Type::RAW, icmp).unwrap()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut echo = vec![8, 0, 0, 0, 0, 7, 0, sequence, 1, 2, 3, 4];
    let sum = hopline_wire::checksum::internet(&echo);
    echo[2..4].copy_from_slice(&sum.to_be_bytes());
    socket.send_to(&echo, &at(MOBILE, 0).into()).unwrap();
    let mut buffer = [0; 100];
    loop {
        let len = socket.read(&mut buffer).unwrap();
        if len == 32 && buffer[20] == 0 && buffer[27] == sequence {
            return assert_eq!(buffer[28..32], [1, 2, 3, 4]);
        }
    }
}

pub(crate) fn replayed_datagrams_are_rejected() {
    let world = world(Losses::of(0.0));
    let [near, mobile] = pair(&world, both(ASKING()));
    let raw = Some(socket2::Protocol::UDP);
    // Receives copies of all packets that arrive at the mobile host.
    let mut copies = world.mobile().run(|| Socket::new(Domain::IPV4, Type::RAW, raw).unwrap()).unwrap();
    copies.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let [sender, receiver] =
        [(world.near(), NEAR), (world.mobile(), MOBILE)].map(|(host, own)| udp(host, at(own, 7)));
    for n in 0..50u8 {
        sender.send_to(&[n; 100], at(MOBILE, 7)).unwrap();
        receiver.recv(&mut [0; 200]).unwrap();
    }
    // The last ones belong to the next incarnation of the near end.
    drop(near);
    let near = start(&world, Side::A, &config(Side::A, ASKING()));
    until("the other end follows", || mobile.metric("sessions") == 2 && near.metric("peer_ready") == 1);
    let mut recorded = Vec::new();
    let mut buffer = [0; 2000];
    while let Ok(len) = copies.read(&mut buffer) {
        // Exclude packets that came out of the tunnel.
        if len > 0 && buffer[12..16] == NamespaceLink::address(Side::A).octets() {
            recorded.push(buffer[..len].to_vec());
        }
    }
    assert!(recorded.len() > 50);
    until("it is written down", || mobile.metric("datagrams_received") >= recorded.len() as u64);
    let delivered = mobile.metric("packets_delivered");
    let injector = world.near().run(|| Injector::new(0).unwrap()).unwrap();
    for some in [&recorded, &recorded].into_iter().flat_map(|all| all.chunks(20)) {
        some.iter()
            .for_each(|packet| assert_eq!(injector.send(QueuePosition::Back, packet), InjectResult::Sent));
        // So few at a time fit into the link's queue.
        thread::sleep(Duration::from_millis(20));
    }
    until("all have come", || mobile.metric("datagrams_received") >= 3 * recorded.len() as u64);
    receiver.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert!(receiver.recv(&mut [0; 200]).is_err(), "none of them brings a packet");
    let figure = last_figures(mobile);
    // The kernel sends few IPv6 packets of its own.
    assert!(figure("packets_delivered") < delivered + 10 && figure("sessions") == 2);
    assert!(figure("datagrams_forged") >= 100, "{}", figure("datagrams_forged"));
}

pub(crate) fn a_flood_of_forgeries_is_counted_or_rejected() {
    let world = world(Losses::of(0.0));
    let [_near, mobile] = pair(&world, both(ASKING()));
    let injector = world.near().run(|| Injector::new(0).unwrap()).unwrap();
    let before = mobile.metric("datagrams_sent");
    let mut sent = 0u32;
    for n in 0..100_000u32 {
        let peer = NamespaceLink::address(Side::A);
        let from = if n % 4 == 0 { peer } else { Ipv4Addr::from_bits(0x0b00_0000 + n) };
        sent += u32::from(injector.send(QueuePosition::Back, &forgery(from, n)) == InjectResult::Sent);
        if n % 100 == 0 {
            // Let the link read them.
            thread::sleep(Duration::from_millis(1));
        }
    }
    assert!(sent > 50_000, "{sent}");
    thread::sleep(Duration::from_millis(700));
    // The packets that fit into the link's queue are enough to tell.
    let counted = mobile.metric("datagrams_forged") + mobile.metric("greetings_forged");
    assert!(counted > 1000 && mobile.metric("packets_delivered") < 10, "{counted}");
    assert!(mobile.metric("datagrams_sent") - before < 30, "nobody is answered");
    world.transfer(MOBILE, 200_000, |_| {});
}

/// Returns a datagram that resembles one of the link.
fn forgery(from: Ipv4Addr, n: u32) -> Vec<u8> {
    let mut payload = vec![n as u8; HANDSHAKE_LEN];
    payload[..4].copy_from_slice(&[MAGIC, VERSION << 4 | (n / 4 % 2) as u8, 0, 2]);
    let payload = bytes::Bytes::from(payload);
    let datagram = Datagram { src_port: 1022, dst_port: 1022, payload };
    let (dst, protocol) = (NamespaceLink::address(Side::B), Protocol::Udp);
    let ip = Header { src: from, dst, ttl: 64, protocol, ecn: Ecn::NotCapable, id: 0 };
    let mut packet = Vec::new();
    ip.emit(datagram.wire_len(), &mut packet);
    datagram.emit(&ip, &mut packet);
    packet
}
