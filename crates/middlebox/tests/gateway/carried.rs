//! Connections through gateways.

use crate::gateway::helpers::*;
use hopline_harness::Test;
use hopline_linux::transparent::LegOptions;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

pub(crate) fn tests() -> Vec<Test> {
    over_both!([]; bytes_both_ways_over_ipv4, bytes_both_ways_over_ipv6, a_half_closed_connection_continues,
        a_request_is_answered_while_both_ends_stay_open, a_reset_passes_from_the_client, a_reset_passes_from_the_server,
        a_reset_passes_after_the_end_of_one_direction, a_server_that_does_not_read_stops_the_client,
        hundreds_of_connections_at_once, a_gateway_that_stops_resets_its_connections)
}

/// Opens a connection and waits until all parts have it.
fn open(listener: &TcpListener, pair: &Pair) -> (TcpStream, TcpStream) {
    let mut client = connect(pair.address);
    let mut server = accept(listener);
    client.write_all(b".").unwrap();
    server.read_exact(&mut [0]).unwrap();
    (client, server)
}

fn bytes_both_ways_over_ipv4() {
    bytes_both_ways(V4);
}

fn bytes_both_ways_over_ipv6() {
    bytes_both_ways(V6);
}

fn bytes_both_ways(ip: IpAddr) {
    let (listener, address) = server(ip);
    let pair = pair_to(address);
    let client = connect(pair.address);
    exchange(&client, &accept(&listener), 3_000_000);
    for end in [&pair.entrance, &pair.exit] {
        end.await_metric("finished_connections", |figure| figure == 1);
        assert_eq!([end.metric("out_bytes"), end.metric("back_bytes")], [3_000_000; 2]);
        assert_eq!([end.metric("broken_connections"), end.metric("open_connections")], [0; 2]);
    }
    assert_eq!(pair.entrance.metric("tpa_connections"), 1);
}

fn a_half_closed_connection_continues() {
    let (listener, address) = server(V4);
    let pair = pair_to(address);
    let client = connect(pair.address);
    let server = accept(&listener);
    send(&client, b"all that I have to say");
    assert_eq!(hash_of(&server).unwrap(), hash(b"all that I have to say"));
    // The server sends only now, after the end of the client's data.
    let answer = pattern(3, 500_000);
    send(&server, &answer);
    assert_eq!(hash_of(&client).unwrap(), hash(&answer));
    pair.entrance.await_metric("finished_connections", |figure| figure == 1);
}

fn a_request_is_answered_while_both_ends_stay_open() {
    let (listener, address) = server(V4);
    let pair = pair_to(address);
    let mut client = connect(pair.address);
    let mut server = accept(&listener);
    let mut word = [0; 4];
    for _ in 0..20 {
        client.write_all(b"ping").unwrap();
        server.read_exact(&mut word).unwrap();
        assert_eq!(&word, b"ping");
        server.write_all(b"pong").unwrap();
        client.read_exact(&mut word).unwrap();
        assert_eq!(&word, b"pong");
    }
}

fn a_reset_passes_from_the_client() {
    let (listener, address) = server(V4);
    let pair = pair_to(address);
    let (client, server) = open(&listener, &pair);
    set_reset_on_close(&client);
    drop(client);
    assert_reset(&server);
    pair.exit.await_metric("broken_connections", |figure| figure == 1);
    pair.entrance.await_metric("broken_connections", |figure| figure == 1);
}

fn a_reset_passes_from_the_server() {
    let (listener, address) = server(V4);
    let pair = pair_to(address);
    let (client, server) = open(&listener, &pair);
    set_reset_on_close(&server);
    drop(server);
    assert_reset(&client);
    pair.entrance.await_metric("broken_connections", |figure| figure == 1);
}

fn a_reset_passes_after_the_end_of_one_direction() {
    let (listener, address) = server(V4);
    let pair = pair_to(address);
    let (client, server) = open(&listener, &pair);
    server.shutdown(Shutdown::Write).unwrap();
    assert_eq!(hash_of(&client).unwrap().1, 0);
    // No side reads any more, and the client is silent. The reset still arrives, with the error that follows an end
    // (tcp(7)).
    set_reset_on_close(&server);
    drop(server);
    assert!(eventually(|| client.take_error().unwrap().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe)));
    pair.entrance.await_metric("broken_connections", |figure| figure == 1);
}

fn a_server_that_does_not_read_stops_the_client() {
    let small = LegOptions::default().with_send_buffer(Some(32 << 10)).with_receive_buffer(Some(32 << 10));
    let (listener, address) = server(V4);
    let mut exit = exit_config(V4);
    exit.tcp = small.clone();
    let (_exit, exit_address) = start_exit(&exit);
    let mut entrance = entrance_config(forward(address), exit_address);
    entrance.tcp = small;
    let (_entrance, address) = start_entrance(&entrance);
    let mut client = connect(address);
    let server = accept(&listener);
    client.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let chunk = pattern(1, 1 << 14);
    let mut taken = Vec::new();
    loop {
        match client.write(&chunk) {
            Ok(len) => taken.extend(&chunk[..len]),
            Err(error) => break assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    // In addition to the buffers of the gateways and of TPA, there are those of both applications: up to 4 MB to send and
    // 6 MB to receive.
    assert!((256 << 10..12 << 20).contains(&taken.len()), "{} bytes", taken.len());
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(hash_of(&server).unwrap(), hash(&taken));
}

fn hundreds_of_connections_at_once() {
    const MANY: usize = 300;
    let (listener, address) = server(V4);
    let pair = pair_to(address);
    let clients: Vec<_> = (0..MANY).map(|_| connect(pair.address)).collect();
    let servers: Vec<_> = (0..MANY).map(|_| accept(&listener)).collect();
    for (i, client) in clients.iter().enumerate() {
        send(client, &pattern(i, 5000));
    }
    let mut heard: Vec<_> = servers.iter().map(|server| *hash_of(server).unwrap().0.as_bytes()).collect();
    let mut said: Vec<_> = (0..MANY).map(|i| *blake3::hash(&pattern(i, 5000)).as_bytes()).collect();
    heard.sort_unstable();
    said.sort_unstable();
    assert!(heard == said);
    drop(servers);
    pair.entrance.await_metric("finished_connections", |figure| figure == MANY as u64);
    assert_eq!(pair.entrance.metric("tpa_connections"), MANY as u64);
}

fn a_gateway_that_stops_resets_its_connections() {
    let (listener, address) = server(V4);
    for which in 0..2 {
        let mut pair = pair_to(address);
        let (mut client, server) = open(&listener, &pair);
        client.write_all(b"the beginning of something").unwrap();
        if which == 0 {
            pair.entrance.end()
        } else {
            pair.exit.end()
        }
        thread::scope(|scope| {
            scope.spawn(|| assert_reset(&server));
            assert_reset(&client);
        });
    }
}
