//! Bytes and ends cross both ways, whatever the link does.

use super::world::*;
use crate::gateway::helpers::{accept, connect, hash, hash_of, pattern, send, server};
use hopline_core::Seq32;
use hopline_harness::{Test, tests};
use hopline_middlebox::gateway::ListenerConfig;
use hopline_middlebox::host_stack::{HostStackConfig, InitialSequence, StackConfig};
use hopline_testkit::Emulation;
use hopline_testkit::namespace::LINK;
use hopline_tools::link::NamespaceLink;
use hopline_transport::tcp::{BbrConfig, Config, CongestionControl, EcnMode};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

pub(crate) fn tests() -> Vec<Test> {
    type Tcp = fn() -> Config;
    let stacks: [(&str, Tcp); 4] = [
        ("cubic", Config::linux),
        ("newreno", || Config::modern().with_newreno()),
        ("door", door),
        ("bbr3", || {
            Config::linux()
                .with_congestion_control(CongestionControl::Bbr(BbrConfig::V3))
                .with_ecn(EcnMode::Never)
        }),
    ];
    let of_stacks = stacks.into_iter().flat_map(|(name, tcp)| {
        [("good", good as fn() -> Emulation, 2_000_000), ("bad", bad, 300_000)].into_iter().flat_map(
            move |(kind, way, len)| {
                let out = format!("outgoing_bytes_cross_a_{kind}_link_by_{name}");
                let inward = format!("incoming_bytes_cross_a_{kind}_link_by_{name}");
                [
                    Test::new(out, [LINK], move || outgoing(&link(&way()), config(tcp()), len)),
                    Test::new(inward, [LINK], move || incoming(&link(&way()), config(tcp()), len)),
                ]
            },
        )
    });
    let others = tests!([LINK];
        sequence_numbers_wrap_around,
        ipv6_works_like_ipv4,
        programs_select_the_destination_by_socks,
        a_server_that_does_not_read_closes_the_window,
        a_program_that_does_not_read_closes_the_window,
        a_link_with_a_small_mtu_is_supported,
    );
    of_stacks.chain(others).collect()
}

/// A program at host A and a server at host B, both ways at once.
fn outgoing(link: &NamespaceLink, config: HostStackConfig, len: usize) {
    let ip = link.address_b().into();
    let (ready, is_ready) = channel();
    let (over, is_over) = channel::<()>();
    link.run_both(
        move || {
            let (running, entry) = forwarding(config, is_ready.recv().unwrap());
            let client = connect(entry);
            send(&client, &pattern(1, len));
            assert_eq!(hash_of(&client).unwrap(), hash(&pattern(2, len)));
            running.await_metric("finished_connections", |figure| figure == 1);
            assert_eq!(running.metric("refused_packets"), 0);
            let _ = is_over.recv();
        },
        move || {
            let _over = over;
            let (listener, address) = server(ip);
            ready.send(address).unwrap();
            let server = accept(&listener);
            assert_eq!(server.peer_addr().unwrap().ip().is_ipv4(), ip.is_ipv4());
            thread::scope(|scope| {
                scope.spawn(|| send(&server, &pattern(2, len)));
                assert_eq!(hash_of(&server).unwrap(), hash(&pattern(1, len)));
            });
        },
    );
}

/// A program at host B, and a server behind the stack at host A.
fn incoming(link: &NamespaceLink, config: HostStackConfig, len: usize) {
    let (ready, is_ready) = channel();
    let (over, is_over) = channel::<()>();
    link.run_both(
        move || {
            let (listener, address) = server(Ipv4Addr::LOCALHOST.into());
            let running = accepting(config, address);
            ready.send(()).unwrap();
            let server = accept(&listener);
            thread::scope(|scope| {
                scope.spawn(|| send(&server, &pattern(2, len)));
                assert_eq!(hash_of(&server).unwrap(), hash(&pattern(1, len)));
            });
            running.await_metric("finished_connections", |figure| figure == 1);
            let _ = is_over.recv();
        },
        move || {
            let _over = over;
            is_ready.recv().unwrap();
            let client = connect((STACK, PORT).into());
            thread::scope(|scope| {
                scope.spawn(|| send(&client, &pattern(1, len)));
                assert_eq!(hash_of(&client).unwrap(), hash(&pattern(2, len)));
            });
        },
    );
}

fn sequence_numbers_wrap_around() {
    let config = config(Config::linux());
    let initial_sequence = InitialSequence::Fixed(Seq32(u32::MAX - 100_000));
    let stack = StackConfig { initial_sequence, ..config.stack };
    outgoing(&link(&bad()), HostStackConfig { stack, ..config }, 300_000);
}

fn ipv6_works_like_ipv4() {
    let link = link(&good());
    let Some(ip) = link.host_v6(hopline_link::Side::B) else { return };
    let (ready, is_ready) = channel();
    link.run_both(
        move || {
            let (running, entry) = forwarding(config(Config::linux()), is_ready.recv().unwrap());
            let client = connect(entry);
            send(&client, &pattern(1, 300_000));
            assert_eq!(hash_of(&client).unwrap(), hash(b"done"));
            running.await_metric("finished_connections", |figure| figure == 1);
        },
        move || {
            let (listener, address) = server(IpAddr::V6(ip));
            ready.send(address).unwrap();
            let server = accept(&listener);
            assert_eq!(hash_of(&server).unwrap(), hash(&pattern(1, 300_000)));
            send(&server, b"done");
            let _ = hash_of(&server);
        },
    );
}

fn programs_select_the_destination_by_socks() {
    let link = link(&good());
    let ip = link.address_b();
    let (ready, is_ready) = channel();
    link.run_both(
        move || {
            let server: SocketAddr = is_ready.recv().unwrap();
            let way = ListenerConfig::Socks { listen: (Ipv4Addr::LOCALHOST, 0).into(), login: None };
            let (_running, entry) = entered_by(config(Config::linux()), way);
            let ask = |ip: Ipv4Addr, port: u16| {
                let mut client = connect(entry);
                let request = [&[5, 1, 0, 5, 1, 0, 1][..], &ip.octets(), &port.to_be_bytes()].concat();
                client.write_all(&request).unwrap();
                let mut reply = [0; 12];
                client.read_exact(&mut reply).unwrap();
                (client, reply[3])
            };
            let (client, code) = ask(ip, server.port());
            assert_eq!(code, 0);
            send(&client, b"hello");
            assert_eq!(hash_of(&client).unwrap(), hash(b"hello back"));
            assert_eq!(ask(ip, 1).1, 5, "refused");
            assert_eq!(ask(Ipv4Addr::LOCALHOST, 80).1, 2, "not allowed");
            assert_eq!(ask(STACK, 80).1, 2, "not allowed");
            assert_eq!(ask(Ipv4Addr::new(10, 99, 0, 1), 80).1, 3, "no route");
        },
        move || {
            let (listener, address) = server(ip.into());
            ready.send(address).unwrap();
            let server = accept(&listener);
            assert_eq!(hash_of(&server).unwrap(), hash(b"hello"));
            send(&server, b"hello back");
            let _ = hash_of(&server);
        },
    );
}

/// The window stays closed for several probes, and then everything arrives.
const CLOSED_FOR: Duration = Duration::from_secs(3);

fn a_server_that_does_not_read_closes_the_window() {
    let link = link(&good());
    let (ready, is_ready) = channel();
    let len = 12_000_000;
    let ip = link.address_b();
    link.run_both(
        move || {
            let (running, entry) = forwarding(config(Config::linux()), is_ready.recv().unwrap());
            let client = connect(entry);
            send(&client, &pattern(1, len));
            assert_eq!(hash_of(&client).unwrap(), hash(b"done"));
            running.await_metric("finished_connections", |figure| figure == 1);
        },
        move || {
            let (listener, address) = server(ip.into());
            ready.send(address).unwrap();
            let server = accept(&listener);
            thread::sleep(CLOSED_FOR);
            assert_eq!(hash_of(&server).unwrap(), hash(&pattern(1, len)));
            send(&server, b"done");
            let _ = hash_of(&server);
        },
    );
}

fn a_program_that_does_not_read_closes_the_window() {
    let link = link(&good());
    let (ready, is_ready) = channel();
    let len = 12_000_000;
    let ip = link.address_b();
    link.run_both(
        move || {
            let (_running, entry) = forwarding(config(Config::linux()), is_ready.recv().unwrap());
            let client = connect(entry);
            thread::sleep(CLOSED_FOR);
            assert_eq!(hash_of(&client).unwrap(), hash(&pattern(1, len)));
        },
        move || {
            let (listener, address) = server(ip.into());
            ready.send(address).unwrap();
            let server = accept(&listener);
            send(&server, &pattern(1, len));
            let _ = hash_of(&server);
        },
    );
}

/// The interface of host A has a smaller MTU than the stack believes: the kernel reports it (ICMP), and segments become smaller.
fn a_link_with_a_small_mtu_is_supported() {
    let link = link(&good());
    let (ready, is_ready) = channel();
    let ip = link.address_b();
    link.run_both(
        move || {
            let to: SocketAddr = is_ready.recv().unwrap();
            hopline_linux::Interface::named("link0").unwrap().set_mtu(900).unwrap();
            let (running, entry) = forwarding(config(Config::linux()), to);
            let client = connect(entry);
            exchange_with(&client);
            running.await_metric("finished_connections", |figure| figure == 1);
            assert!(running.metric("router_reports") > 0);
        },
        move || {
            let (listener, address) = server(ip.into());
            ready.send(address).unwrap();
            let server = accept(&listener);
            assert_eq!(hash_of(&server).unwrap(), hash(&pattern(1, 200_000)));
            send(&server, b"done");
            let _ = hash_of(&server);
        },
    );
}

fn exchange_with(client: &std::net::TcpStream) {
    send(client, &pattern(1, 200_000));
    assert_eq!(hash_of(client).unwrap(), hash(b"done"));
}
