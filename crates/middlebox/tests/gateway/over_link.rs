//! Gateways over an emulated link, in real time.

use crate::gateway::helpers::*;
use hopline_core::Duration as Span;
use hopline_harness::Test;
use hopline_middlebox::gateway::{
    Allowed, Entrance, EntranceConfig, Exit, ExitConfig, ListenerConfig, Transport,
};
use hopline_testkit::Emulation;
use hopline_testkit::namespace::{LINK, RunningService};
use hopline_tools::link::NamespaceLink;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::mpsc::channel;
use std::time::Duration;

pub(crate) fn tests() -> Vec<Test> {
    let losses = [(0.0, 2_000_000), (0.05, 300_000), (0.2, 100_000)];
    let carriers = [("tpa", Transport::tpa as fn() -> Transport), ("tpa_wide", Transport::tpa_wide)];
    let lossy = losses.into_iter().flat_map(|(loss, len)| {
        carriers.map(|(carrier, transport)| {
            let percent = loss * 100.0;
            let name = format!("bytes_both_ways_with_{percent}_percent_lost_each_way_over_{carrier}");
            Test::new(name, [LINK], move || bytes_both_ways(loss, len, &transport()))
        })
    });
    let mut tests: Vec<Test> = lossy.collect();
    tests.push(Test::new(
        "without_an_exit_behind_the_link_tcp_goes_on",
        [LINK],
        without_an_exit_connections_use_tcp,
    ));
    tests
}

const EXIT_PORT: u16 = 7172;

fn link(loss: f64) -> NamespaceLink {
    let way = Emulation::delay(Span::from_millis(5)).with_rate(Some(20_000_000)).with_loss(loss);
    NamespaceLink::new(way.clone(), way, 7).unwrap()
}

fn exit_at(ip: IpAddr, transport: Transport) -> ExitConfig {
    let allowed = Allowed::Listed(vec![format!("{ip}/32").parse().unwrap()]);
    ExitConfig { listen: (ip, EXIT_PORT).into(), allowed, transport, ..ExitConfig::new(vec![peer()]) }
}

fn entrance_to(server: SocketAddr, transport: Transport) -> EntranceConfig {
    let listen = (Ipv4Addr::LOCALHOST, 0).into();
    let way = ListenerConfig::Forward { listen, to: server.to_string().parse().unwrap() };
    let exit = SocketAddr::new(server.ip(), EXIT_PORT);
    EntranceConfig { transport, ..EntranceConfig::new(way, exit, name(), key(1)) }
}

/// Client and entrance on host A, exit and server on host B; transfers data in both directions.
fn bytes_both_ways(loss: f64, len: usize, transport: &Transport) {
    let link = link(loss);
    let ip = IpAddr::V4(link.address_b());
    let (ready, is_ready) = channel();
    let (over, is_over) = channel::<()>();
    let (there, back) = (&pattern(1, len), &pattern(2, len));
    link.run_both(
        move || {
            let server: SocketAddr = is_ready.recv().unwrap();
            let (entrance, entry) = start_entrance(&entrance_to(server, transport.clone()));
            let client = connect(entry);
            send(&client, there);
            assert_eq!(hash_of(&client).unwrap(), hash(back));
            entrance.await_metric("finished_connections", |figure| figure == 1);
            assert_eq!(entrance.metric("tpa_connections"), 1, "not by TCP");
            // The exit may have to request the last ACK again. The wait also ends on failure.
            let _ = is_over.recv();
        },
        move || {
            let _over = over;
            let (listener, address) = server(ip);
            let exit = RunningService::new(Exit::open(&exit_at(ip, transport.clone())).unwrap());
            ready.send(address).unwrap();
            let server = accept(&listener);
            assert_eq!(hash_of(&server).unwrap(), hash(there));
            send(&server, back);
            // The client has received everything and closed.
            exit.await_metric("finished_connections", |figure| figure == 1);
        },
    );
    let stats = link.stats();
    assert_eq!(loss > 0.0, stats.forward.losses + stats.reverse.losses > 0);
}

fn without_an_exit_connections_use_tcp() {
    let link = link(0.0);
    let ip = IpAddr::V4(link.address_b());
    let (ready, is_ready) = channel();
    link.run_both(
        move || {
            let server: SocketAddr = is_ready.recv().unwrap();
            let config = EntranceConfig {
                fallback_after: Duration::from_millis(500),
                ..entrance_to(server, Transport::tpa())
            };
            let entrance = Entrance::open(&config).unwrap();
            let entry = entrance.local_addrs().unwrap()[0];
            let entrance = RunningService::new(entrance);
            for seed in 0..2 {
                let client = connect(entry);
                send(&client, &pattern(seed, 10_000));
                assert_eq!(hash_of(&client).unwrap(), hash(b"done"));
            }
            entrance.await_metric("tcp_connections", |figure| figure == 2);
        },
        || {
            let (listener, address) = server(ip);
            // A silent socket, so that no ICMP error is sent.
            let _silent = std::net::UdpSocket::bind((ip, EXIT_PORT)).unwrap();
            ready.send(address).unwrap();
            for seed in 0..2 {
                let server = accept(&listener);
                assert_eq!(hash_of(&server).unwrap(), hash(&pattern(seed, 10_000)));
                send(&server, b"done");
            }
        },
    );
}
