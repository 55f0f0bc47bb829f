//! Unauthenticated peers at the exit.

use crate::gateway::helpers::*;
use hopline_harness::Test;
use hopline_middlebox::gateway::ExitConfig;
use hopline_middlebox::gateway::handshake::{
    ANSWER_LEN, CHALLENGE_LEN, Challenge, Hello, Nonce, Request, Session, Verdict,
};
use hopline_streams::tpa::{Tpa, TpaStream};
use hopline_streams::wide::{self, Credentials, PrivateKey, Seed, Trust, Wide, WideListener, WideStream};
use hopline_streams::{Host, Protocol, Stream};
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

pub(crate) fn tests() -> Vec<Test> {
    hopline_harness::tests!([]; a_recorded_hello_or_request_is_rejected, garbage_is_counted_and_reset,
        unauthenticated_peers_get_only_a_challenge_and_a_timeout, unauthenticated_peers_do_not_block_entrances,
        an_address_of_an_authenticated_entrance_keeps_its_slot,
        unauthenticated_peers_at_two_addresses_do_not_block_an_entrance, unauthenticated_peers_at_two_addresses_do_not_block_an_entrance_over_tpa_wide,
        a_man_in_the_middle_cannot_act_as_exit_or_entrance)
    .into()
}

/// Returns a caller without restrictions, with its challenge.
fn connect_to_exit(exit: SocketAddr) -> (TpaStream, Challenge) {
    let mut stream = TpaStream::connect(exit, &trunk()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20)));
    let mut challenge = [0; CHALLENGE_LEN];
    stream.read_exact(&mut challenge).unwrap();
    (stream, Challenge::decode(&challenge).unwrap())
}

fn hello() -> Hello {
    Hello { name: name(), nonce: Nonce([7; 32]) }
}

fn request(destination: SocketAddr) -> Request {
    let destination = destination.to_string().parse().unwrap();
    Request { number: 1, destination, source: None }
}

fn send(mut stream: &TpaStream, data: &[u8]) {
    stream.write_all(data).unwrap();
    stream.flush().unwrap();
}

/// Checks that the exit closes the stream without an answer.
fn assert_closed(mut stream: &TpaStream) {
    let heard = stream.read(&mut [0; 100]);
    assert_eq!(heard.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

fn a_recorded_hello_or_request_is_rejected() {
    let (listener, address) = server(V4);
    let (exit, exit_address) = start_exit(&exit_config(V4));
    let (mut trunk, challenge) = connect_to_exit(exit_address);
    let recorded = hello().encode(&key(1), &challenge);
    send(&trunk, &recorded);
    let mut answer = [0; ANSWER_LEN];
    trunk.read_exact(&mut answer).unwrap();
    let session = Session::new(&key(1), &challenge, &hello().nonce);
    assert_eq!(Verdict::decode(&answer, &session, 0), Ok(Verdict::Connected));
    let (second, other) = connect_to_exit(exit_address);
    assert_ne!(challenge, other);
    send(&second, &recorded);
    assert_closed(&second);
    let recorded = request(address).encode(&session);
    let (first, _) = connect_to_exit(exit_address);
    send(&first, &recorded);
    accept(&listener);
    exit.await_metric("tpa_connections", |figure| figure == 1);
    let (second, _) = connect_to_exit(exit_address);
    send(&second, &recorded);
    assert_closed(&second);
    // Nor is it accepted once the trunk has ended.
    trunk.abort();
    exit.await_metric("open_trunks", |figure| figure == 0);
    let (third, _) = connect_to_exit(exit_address);
    send(&third, &Request { number: 2, ..request(address) }.encode(&session));
    assert_closed(&third);
    exit.await_metric("wrong_proofs", |figure| figure == 3);
    assert_eq!(exit.metric("tpa_connections"), 1);
}

fn garbage_is_counted_and_reset() {
    let (exit, exit_address) = start_exit(&exit_config(V4));
    let longest = [b"hgw\x02\x01\xff\xff".to_vec(), vec![0; 1000]].concat();
    let short = [b"hgw\x02\x02\x00\x20".to_vec(), vec![0; 32]].concat();
    for garbage in [b"GET / HTTP/1.0\r\n\r\n", &longest[..], &short, b"hgw\x01\x00\x40"] {
        let (stream, _) = connect_to_exit(exit_address);
        send(&stream, garbage);
        assert_closed(&stream);
    }
    exit.await_metric("malformed_requests", |figure| figure == 4);
}

fn unauthenticated_peers_get_only_a_challenge_and_a_timeout() {
    let config = ExitConfig { request_timeout: Duration::from_millis(500), ..exit_config(V4) };
    let (exit, exit_address) = start_exit(&config);
    let (silent, _) = connect_to_exit(exit_address);
    let (begins, _) = connect_to_exit(exit_address);
    send(&begins, b"hgw");
    assert_closed(&silent);
    assert_closed(&begins);
    exit.await_metric("silent_connections", |figure| figure == 2);
}

fn unauthenticated_peers_do_not_block_entrances() {
    let (listener, address) = server(V4);
    let config =
        ExitConfig { max_connections: 8, request_timeout: Duration::from_millis(1500), ..exit_config(V4) };
    let pair = pair(forward(address), &config);
    let client = connect(pair.address);
    let carried = accept(&listener);
    let exit_address = pair.exit_address;
    let strangers: Vec<_> = (0..10).map(|_| connect_to_exit(exit_address)).collect();
    // The entrance is at the same address.
    pair.exit.await_metric("turned_away_connections", |figure| figure == 2);
    exchange(&client, &carried, 10_000);
    strangers.iter().for_each(|(stranger, _)| assert_closed(stranger));
    pair.exit.await_metric("silent_connections", |figure| figure == 8);
    exchange(&connect(pair.address), &accept(&listener), 10_000);
}

/// Returns silent connections from `ip`.
fn silent<P: Protocol>(ip: [u8; 4], number: usize, exit: SocketAddr, config: &P::Config) -> Vec<Stream<P>> {
    let host = Host::<P>::bind(SocketAddr::from((ip, 0))).unwrap();
    (0..number).map(|_| host.connect(exit, config, Some(Duration::from_secs(20))).unwrap()).collect()
}

/// Starts an entrance while unauthenticated peers at two addresses occupy all places of the exit, and some were closed.
fn entrance_connects_beside<P: Protocol>(strangers: &P::Config) {
    let (listener, address) = server(V4);
    let config =
        ExitConfig { max_connections: 8, request_timeout: Duration::from_secs(30), ..exit_config(V4) };
    let (exit, exit_address) = start_exit(&config);
    let held = [2, 3].map(|host| silent::<P>([127, 0, 0, host], 8, exit_address, strangers));
    exit.await_metric("turned_away_connections", |figure| figure == 8);
    let (entrance, entry) = start_entrance(&entrance_config(forward(address), exit_address));
    exchange(&connect(entry), &accept(&listener), 10_000);
    assert_eq!((entrance.metric("tcp_connections"), exit.metric("silent_connections")), (0, 0));
    drop(held);
}

fn unauthenticated_peers_at_two_addresses_do_not_block_an_entrance() {
    entrance_connects_beside::<Tpa>(&trunk());
}

fn unauthenticated_peers_at_two_addresses_do_not_block_an_entrance_over_tpa_wide() {
    // Any key suffices for a connection; the entrance is authenticated afterwards.
    let private = PrivateKey::generate(&Seed::new([9; 32]));
    let config = wide::config(Credentials::Keys { private, trust: Trust::Anyone });
    with_carrier(Carrier::TpaWide, || entrance_connects_beside::<Wide>(&config));
}

fn an_address_of_an_authenticated_entrance_keeps_its_slot() {
    let (listener, address) = server(V4);
    let config =
        ExitConfig { max_connections: 8, request_timeout: Duration::from_secs(30), ..exit_config(V4) };
    let Pair { exit, exit_address, mut entrance, address: entry } = pair(forward(address), &config);
    exchange(&connect(entry), &accept(&listener), 1000);
    entrance.end();
    exit.await_metric("open_trunks", |figure| figure == 0);
    let (mut known, challenge) = connect_to_exit(exit_address);
    // All prefixes have as many connections as this one, and newer ones.
    let strangers: Vec<_> =
        (1..=16).map(|net| silent::<Tpa>([127, net, 0, 1], 1, exit_address, &trunk())).collect();
    exit.await_metric("turned_away_connections", |figure| figure == 9);
    send(&known, &hello().encode(&key(1), &challenge));
    known.read_exact(&mut [0; ANSWER_LEN]).unwrap();
    exit.await_metric("open_trunks", |figure| figure == 1);
    drop(strangers);
}

/// Relays the data of `from` until it ends.
fn relay(mut from: &WideStream, mut to: &WideStream) {
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        to.write_all(&buffer[..n]).and_then(|()| to.flush()).unwrap();
    }
    to.abort();
}

fn a_man_in_the_middle_cannot_act_as_exit_or_entrance() {
    with_carrier(Carrier::TpaWide, man_in_the_middle);
}

fn man_in_the_middle() {
    let (_listener, address) = server(V4);
    let (exit, exit_address) = start_exit(&exit_config(V4));
    // A connection is possible with any key, but the proofs of requests are bound to the keys of both peers.
    let private = PrivateKey::generate(&Seed::new([9; 32]));
    let config = wide::config(Credentials::Keys { private, trust: Trust::Anyone });
    let between = WideListener::bind((V4, 0), &config).unwrap();
    let (entrance, entry) = start_entrance(&entrance_config(forward(address), between.local_addr().unwrap()));
    let client = connect(entry);
    let (near, _) = between.accept().unwrap();
    let far = WideStream::connect(exit_address, &config).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| relay(&near, &far));
        scope.spawn(|| relay(&far, &near));
        assert_reset(&client);
    });
    exit.await_metric("wrong_proofs", |figure| figure == 1);
    entrance.await_metric("rejected_connections", |figure| figure == 1);
    assert_eq!(exit.metric("tpa_connections"), 0);
}
