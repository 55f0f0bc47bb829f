//! Unauthenticated peers at the exit.

use crate::gateway::helpers::*;
use hopline_harness::Test;
use hopline_middlebox::gateway::ExitConfig;
use hopline_middlebox::gateway::greeting::{
    ANSWER_LEN, CHALLENGE_LEN, Challenge, Hello, Nonce, Request, Session, Verdict,
};
use hopline_streams::streams::{Host, Protocol, Stream};
use hopline_streams::tpa::{Tpa, TpaStream};
use hopline_streams::wide::{self, Credentials, PrivateKey, Seed, Trust, Wide, WideListener, WideStream};
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

pub(crate) fn tests() -> Vec<Test> {
    hopline_harness::tests!([]; a_recorded_hello_or_request_is_good_for_nothing, garbage_is_counted_and_reset,
        strangers_hear_a_challenge_and_nothing_else_and_not_for_long, strangers_do_not_keep_peers_out,
        a_host_at_which_an_entrance_was_keeps_its_place_at_the_exit,
        strangers_at_two_addresses_do_not_keep_an_entrance_out, strangers_at_two_addresses_do_not_keep_an_entrance_out_over_tpa_wide,
        who_is_in_between_is_no_exit_and_no_entrance)
    .into()
}

/// Returns a caller without restrictions, with its challenge.
fn caller(exit: SocketAddr) -> (TpaStream, Challenge) {
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

fn say(mut stream: &TpaStream, data: &[u8]) {
    stream.write_all(data).unwrap();
    stream.flush().unwrap();
}

/// Checks that the exit closes the stream without an answer.
fn is_cut_off(mut stream: &TpaStream) {
    let heard = stream.read(&mut [0; 100]);
    assert_eq!(heard.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

fn a_recorded_hello_or_request_is_good_for_nothing() {
    let (listener, address) = server(V4);
    let (exit, exit_address) = start_exit(&exit_config(V4));
    let (mut trunk, challenge) = caller(exit_address);
    let recorded = hello().encode(&key(1), &challenge);
    say(&trunk, &recorded);
    let mut answer = [0; ANSWER_LEN];
    trunk.read_exact(&mut answer).unwrap();
    let session = Session::new(&key(1), &challenge, &hello().nonce);
    assert_eq!(Verdict::decode(&answer, &session, 0), Ok(Verdict::Connected));
    let (second, other) = caller(exit_address);
    assert_ne!(challenge, other);
    say(&second, &recorded);
    is_cut_off(&second);
    let recorded = request(address).encode(&session);
    let (first, _) = caller(exit_address);
    say(&first, &recorded);
    accept(&listener);
    exit.await_figure("tpa_connections", |figure| figure == 1);
    let (second, _) = caller(exit_address);
    say(&second, &recorded);
    is_cut_off(&second);
    // Nor is it accepted once the trunk has ended.
    trunk.abort();
    exit.await_figure("open_trunks", |figure| figure == 0);
    let (third, _) = caller(exit_address);
    say(&third, &Request { number: 2, ..request(address) }.encode(&session));
    is_cut_off(&third);
    exit.await_figure("wrong_proofs", |figure| figure == 3);
    assert_eq!(exit.figure("tpa_connections"), 1);
}

fn garbage_is_counted_and_reset() {
    let (exit, exit_address) = start_exit(&exit_config(V4));
    let longest = [b"hgw\x02\x01\xff\xff".to_vec(), vec![0; 1000]].concat();
    let short = [b"hgw\x02\x02\x00\x20".to_vec(), vec![0; 32]].concat();
    for garbage in [b"GET / HTTP/1.0\r\n\r\n", &longest[..], &short, b"hgw\x01\x00\x40"] {
        let (stream, _) = caller(exit_address);
        say(&stream, garbage);
        is_cut_off(&stream);
    }
    exit.await_figure("malformed_requests", |figure| figure == 4);
}

fn strangers_hear_a_challenge_and_nothing_else_and_not_for_long() {
    let config = ExitConfig { request_timeout: Duration::from_millis(500), ..exit_config(V4) };
    let (exit, exit_address) = start_exit(&config);
    let (silent, _) = caller(exit_address);
    let (begins, _) = caller(exit_address);
    say(&begins, b"hgw");
    is_cut_off(&silent);
    is_cut_off(&begins);
    exit.await_figure("silent_connections", |figure| figure == 2);
}

fn strangers_do_not_keep_peers_out() {
    let (listener, address) = server(V4);
    let config =
        ExitConfig { max_connections: 8, request_timeout: Duration::from_millis(1500), ..exit_config(V4) };
    let pair = pair(forward(address), &config);
    let client = connect(pair.address);
    let carried = accept(&listener);
    let exit_address = pair.exit_address;
    let strangers: Vec<_> = (0..10).map(|_| caller(exit_address)).collect();
    // The entrance is at the same address.
    pair.exit.await_figure("turned_away_connections", |figure| figure == 2);
    exchange(&client, &carried, 10_000);
    strangers.iter().for_each(|(stranger, _)| is_cut_off(stranger));
    pair.exit.await_figure("silent_connections", |figure| figure == 8);
    exchange(&connect(pair.address), &accept(&listener), 10_000);
}

/// Returns silent connections from `ip`.
fn silent<P: Protocol>(ip: [u8; 4], number: usize, exit: SocketAddr, config: &P::Config) -> Vec<Stream<P>> {
    let host = Host::<P>::bind(SocketAddr::from((ip, 0))).unwrap();
    (0..number).map(|_| host.connect(exit, config, Some(Duration::from_secs(20))).unwrap()).collect()
}

/// Starts an entrance while unauthenticated peers at two addresses occupy all places of the exit, and some were closed.
fn an_entrance_gets_in_beside<P: Protocol>(strangers: &P::Config) {
    let (listener, address) = server(V4);
    let config =
        ExitConfig { max_connections: 8, request_timeout: Duration::from_secs(30), ..exit_config(V4) };
    let (exit, exit_address) = start_exit(&config);
    let held = [2, 3].map(|host| silent::<P>([127, 0, 0, host], 8, exit_address, strangers));
    exit.await_figure("turned_away_connections", |figure| figure == 8);
    let (entrance, entry) = start_entrance(&entrance_config(forward(address), exit_address));
    exchange(&connect(entry), &accept(&listener), 10_000);
    assert_eq!((entrance.figure("tcp_connections"), exit.figure("silent_connections")), (0, 0));
    drop(held);
}

fn strangers_at_two_addresses_do_not_keep_an_entrance_out() {
    an_entrance_gets_in_beside::<Tpa>(&trunk());
}

fn strangers_at_two_addresses_do_not_keep_an_entrance_out_over_tpa_wide() {
    // Any key suffices for a connection; the entrance is authenticated afterwards.
    let private = PrivateKey::generate(&Seed::new([9; 32]));
    let config = wide::config(Credentials::Keys { private, trust: Trust::Anyone });
    carried_by(Carrier::TpaWide, || an_entrance_gets_in_beside::<Wide>(&config));
}

fn a_host_at_which_an_entrance_was_keeps_its_place_at_the_exit() {
    let (listener, address) = server(V4);
    let config =
        ExitConfig { max_connections: 8, request_timeout: Duration::from_secs(30), ..exit_config(V4) };
    let Pair { exit, exit_address, mut entrance, address: entry } = pair(forward(address), &config);
    exchange(&connect(entry), &accept(&listener), 1000);
    entrance.end();
    exit.await_figure("open_trunks", |figure| figure == 0);
    let (mut known, challenge) = caller(exit_address);
    // All prefixes have as many connections as this one, and newer ones.
    let strangers: Vec<_> =
        (1..=16).map(|net| silent::<Tpa>([127, net, 0, 1], 1, exit_address, &trunk())).collect();
    exit.await_figure("turned_away_connections", |figure| figure == 9);
    say(&known, &hello().encode(&key(1), &challenge));
    known.read_exact(&mut [0; ANSWER_LEN]).unwrap();
    exit.await_figure("open_trunks", |figure| figure == 1);
    drop(strangers);
}

/// Relays the data of `from` until it ends.
fn pass_on(mut from: &WideStream, mut to: &WideStream) {
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        to.write_all(&buffer[..n]).and_then(|()| to.flush()).unwrap();
    }
    to.abort();
}

fn who_is_in_between_is_no_exit_and_no_entrance() {
    carried_by(Carrier::TpaWide, stands_in_between);
}

fn stands_in_between() {
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
        scope.spawn(|| pass_on(&near, &far));
        scope.spawn(|| pass_on(&far, &near));
        is_reset(&client);
    });
    exit.await_figure("wrong_proofs", |figure| figure == 1);
    entrance.await_figure("rejected_connections", |figure| figure == 1);
    assert_eq!(exit.figure("tpa_connections"), 0);
}
