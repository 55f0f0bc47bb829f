//! Short queries over new connections, on a long path: through gateways and directly.

use crate::gateway::helpers::*;
use hopline_core::Duration as Span;
use hopline_harness::Test;
use hopline_middlebox::gateway::{
    Allowed, Entrance, EntranceConfig, Exit, ExitConfig, ListenerConfig, Transport,
};
use hopline_testkit::Emulation;
use hopline_testkit::namespace::{LINK, RunningService, unless_late};
use hopline_tools::link::NamespaceLink;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::thread;

pub(crate) fn tests() -> Vec<Test> {
    // TPA sends a block at a time: the answer of the exit is one, that of the server another.
    let carriers =
        [("tpa", Transport::tpa as fn() -> Transport, 1.1), ("tpa_wide", Transport::tpa_wide, 0.8)];
    let tests = carriers.map(|(carrier, transport, most)| {
        let name = format!("a_query_over_a_new_connection_takes_no_longer_than_directly_over_{carrier}");
        Test::new(name, [LINK], move || a_new_connection_costs_no_round_trip(&transport(), most))
    });
    tests.into()
}

const EXIT_PORT: u16 = 7172;
/// One way.
const LATENCY: Span = Span::from_millis(40);
const QUERY: &[u8; 10] = b"a question";
const ANSWER: [u8; 9] = *b"an answer";
/// Queries of which the median counts.
const QUERIES: usize = 5;

/// `most`: of the time that a query takes directly.
fn a_new_connection_costs_no_round_trip(transport: &Transport, most: f64) {
    let way = Emulation::delay(LATENCY).with_rate(Some(20_000_000));
    let link = NamespaceLink::new(way.clone(), way, 7).unwrap();
    let (listener, server) = link.run_in_b(|| server(IpAddr::V4(link.address_b())));
    // It ends with the first call that asks nothing, or with the test.
    let answering = move || while listener.accept().is_ok_and(|(stream, _)| answer(stream).is_some()) {};
    thread::Builder::new().spawn(answering).unwrap();
    let exit = ExitConfig {
        listen: (server.ip(), EXIT_PORT).into(),
        allowed: Allowed::Listed(vec![server.ip().to_string().parse().unwrap()]),
        transport: transport.clone(),
        ..ExitConfig::new(vec![peer()])
    };
    let _exit = link.run_in_b(|| RunningService::new(Exit::open(&exit).unwrap()));
    let to = ListenerConfig::Forward {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        to: server.to_string().parse().unwrap(),
    };
    let config = EntranceConfig {
        transport: transport.clone(),
        ..EntranceConfig::new(to, exit.listen, name(), key(1))
    };
    let entrance = link.run_in_a(|| Entrance::open(&config).unwrap());
    let entry = entrance.local_addrs().unwrap()[0];
    let entrance = link.run_in_a(|| RunningService::new(entrance));
    entrance.await_metric("exit_present", |figure| figure == 1);
    let median = |to| {
        let mut took: Vec<_> = (0..QUERIES).map(|_| query(&link, to)).collect();
        took.sort_unstable();
        took[QUERIES / 2]
    };
    let (directly, through) = (median(server), median(entry));
    unless_late(&link, "a query", || {
        let ratio = through.as_secs_f64() / directly.as_secs_f64();
        assert!(ratio <= most, "{through} through gateways, {directly} directly");
    });
    assert_eq!(entrance.metric("tcp_connections"), 0);
    link.run_in_a(|| drop(TcpStream::connect(server)));
}

/// Time from the call to the last byte of the answer.
fn query(link: &NamespaceLink, to: SocketAddr) -> Span {
    let began = link.now();
    link.run_in_a(|| {
        let mut stream = connect(to);
        stream.write_all(QUERY).unwrap();
        let mut answer = [0; ANSWER.len()];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, ANSWER);
    });
    link.now() - began
}

/// Answers one question; `None` if there was none.
fn answer(mut stream: TcpStream) -> Option<()> {
    let mut question = [0; QUERY.len()];
    stream.read_exact(&mut question).ok()?;
    stream.write_all(&ANSWER).ok()
}
