//! SOCKS clients.

use crate::gateway::helpers::*;
use hopline_harness::{Need, Test};
use hopline_middlebox::gateway::{
    Allowed, EntranceConfig, ExitConfig, Fallback, ListenerConfig, socks::Login,
};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

pub(crate) fn tests() -> Vec<Test> {
    let mut tests: Vec<Test> = over_both!([]; a_client_selects_its_destination, a_name_is_resolved_by_the_exit,
        a_client_gets_the_reason_of_a_refusal, a_login_is_required, a_silent_client_is_reset_and_blocks_no_other,
        silent_clients_at_two_addresses_do_not_block_a_third, without_an_exit_a_client_reaches_only_permitted_destinations);
    tests.push(Test::new("curl_fetches_through_socks", [Need::Program("curl")], curl_fetches_through_socks));
    tests
}

fn way(login: Option<Login>) -> ListenerConfig {
    ListenerConfig::Socks { listen: (V4, 0).into(), login }
}

/// Returns a request for the address `to`.
fn request(to: SocketAddr) -> Vec<u8> {
    let SocketAddr::V4(to) = to else { unreachable!("tests name addresses of IPv4") };
    [&[5, 1, 0, 1][..], &to.ip().octets(), &to.port().to_be_bytes()].concat()
}

fn receive<const N: usize>(mut client: &TcpStream) -> [u8; N] {
    let mut heard = [0; N];
    client.read_exact(&mut heard).unwrap();
    heard
}

/// Connects without a login and sends a request, which must be answered with `code`.
fn connect_with_request(entry: SocketAddr, request: &[u8], code: u8) -> TcpStream {
    let mut client = connect(entry);
    client.write_all(&[5, 2, 0, 2]).unwrap();
    assert_eq!(receive(&client), [5, 0]);
    client.write_all(request).unwrap();
    assert_eq!(receive(&client), [5, code, 0, 1, 0, 0, 0, 0, 0, 0]);
    client
}

fn a_client_selects_its_destination() {
    let (listener, address) = server(V4);
    let pair = pair(way(None), &exit_config(V4));
    let client = connect_with_request(pair.address, &request(address), 0);
    exchange(&client, &accept(&listener), 500_000);
    pair.entrance.await_metric("finished_connections", |figure| figure == 1);
}

fn a_name_is_resolved_by_the_exit() {
    let (listener, address) = server(V4);
    let pair = pair(way(None), &exit_config(V4));
    let named =
        |name: &[u8]| [&[5, 1, 0, 3, name.len() as u8][..], name, &address.port().to_be_bytes()].concat();
    let client = connect_with_request(pair.address, &named(b"localhost"), 0);
    exchange(&client, &accept(&listener), 1000);
    // No host has such a name (RFC 6761 §6.4).
    connect_with_request(pair.address, &named(b"nowhere.invalid"), 4);
}

fn a_client_gets_the_reason_of_a_refusal() {
    let pair = pair(
        way(None),
        &ExitConfig { allowed: Allowed::Listed(vec!["127.0.0.1".parse().unwrap()]), ..exit_config(V4) },
    );
    let refused = address_without_listener(V4);
    for (request, code) in [
        (request(refused), 5),
        (request(([127, 0, 0, 2], 80).into()), 2),
        ([&[5, 3][..], &request(refused)[2..]].concat(), 7),
        ([&[5, 2][..], &request(refused)[2..]].concat(), 7),
    ] {
        let client = connect_with_request(pair.address, &request, code);
        assert_eq!(hash_of(&client).unwrap().1, 0, "an end, and no reset that could overtake the reply");
    }
    pair.entrance.await_metric("refused_connections", |figure| figure == 2);
    pair.entrance.await_metric("unintelligible_connections", |figure| figure == 2);
}

fn a_login_is_required() {
    let (listener, address) = server(V4);
    let pair = pair(way(Login::new("user", "secret")), &exit_config(V4));
    let show = |password: &[u8]| {
        let mut client = connect(pair.address);
        client.write_all(&[5, 2, 0, 2]).unwrap();
        assert_eq!(receive(&client), [5, 2]);
        let login = [&[1, 4][..], b"user", &[password.len() as u8], password].concat();
        client.write_all(&login).unwrap();
        (receive::<2>(&client), client)
    };
    let (told, client) = show(b"Secret");
    assert_eq!((told, hash_of(&client).unwrap().1), ([1, 1], 0));
    let (told, mut client) = show(b"secret");
    assert_eq!(told, [1, 0]);
    client.write_all(&request(address)).unwrap();
    assert_eq!(receive::<10>(&client)[1], 0);
    exchange(&client, &accept(&listener), 1000);
}

fn a_silent_client_is_reset_and_blocks_no_other() {
    let (listener, address) = server(V4);
    let (_exit, exit_address) = start_exit(&exit_config(V4));
    let config = EntranceConfig {
        max_connections: 20,
        negotiation_timeout: Duration::from_millis(1500),
        ..entrance_config(way(None), exit_address)
    };
    let (entrance, entry) = start_entrance(&config);
    let client = connect_with_request(entry, &request(address), 0);
    let carried = accept(&listener);
    // A client that is closed may learn of it by a failed write, and then by no read.
    let silent: Vec<_> = (0..200)
        .map(|i| {
            let mut client = connect(entry);
            let begun = client.write_all(&[5, 255, 0][..i % 4]);
            begun.is_ok().then_some(client)
        })
        .collect();
    // As many clients wait as there are places, and none has the place of an established connection.
    entrance.await_metric("turned_away_connections", |figure| figure == 180);
    exchange(&client, &carried, 10_000);
    entrance.await_metric("unintelligible_connections", |figure| figure == 20);
    silent.iter().flatten().for_each(assert_reset);
    let client = connect_with_request(entry, &request(address), 0);
    exchange(&client, &accept(&listener), 10_000);
}

fn silent_clients_at_two_addresses_do_not_block_a_third() {
    let (listener, address) = server(V4);
    let (_exit, exit_address) = start_exit(&exit_config(V4));
    let config = EntranceConfig {
        max_connections: 8,
        negotiation_timeout: Duration::from_secs(60),
        ..entrance_config(way(None), exit_address)
    };
    let (entrance, entry) = start_entrance(&config);
    let from = |ip: [u8; 4]| {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((ip, 0)).into()).unwrap();
        socket.connect(&entry.into()).unwrap();
        with_timeouts(socket.into())
    };
    let silent: Vec<_> = (0..24).map(|at| from([127, 0, 0, 2 + at % 2])).collect();
    entrance.await_metric("turned_away_connections", |figure| figure == 16);
    silent[..16].iter().for_each(assert_reset);
    let mut client = from([127, 0, 0, 4]);
    client.write_all(&[&[5, 1, 0][..], &request(address)].concat()).unwrap();
    assert_eq!(receive::<12>(&client)[..4], [5, 0, 5, 0]);
    exchange(&client, &accept(&listener), 1000);
    assert_eq!(entrance.metric("unintelligible_connections"), 0, "those that are left still wait");
}

fn without_an_exit_a_client_reaches_only_permitted_destinations() {
    let (listener, address) = server(V4);
    let silent = std::net::UdpSocket::bind((V4, 0)).unwrap();
    let refusing = EntranceConfig {
        fallback: Some(Fallback::Tcp),
        fallback_after: Duration::from_millis(300),
        ..entrance_config(way(None), silent.local_addr().unwrap())
    };
    let (entrance, entry) = start_entrance(&refusing);
    let private = SocketAddr::from(([10, 255, 255, 254], 80));
    for to in [address, private, ([169, 254, 169, 254], 80).into(), ([0, 0, 0, 0], address.port()).into()] {
        connect_with_request(entry, &request(to), 2);
    }
    let named = [&[5, 1, 0, 3, 9][..], b"localhost", &address.port().to_be_bytes()].concat();
    connect_with_request(entry, &named, 2);
    entrance.await_metric("not_allowed_connections", |figure| figure == 5);
    assert_eq!(entrance.metric("tcp_connections"), 0);
    let allowed = vec![format!("127.0.0.1 {}", address.port()).parse().unwrap()];
    let (entrance, entry) = start_entrance(&EntranceConfig { allowed, ..refusing });
    let client = connect_with_request(entry, &request(address), 0);
    exchange(&client, &accept(&listener), 1000);
    connect_with_request(entry, &request(([127, 0, 0, 2], address.port()).into()), 2);
    entrance.await_metric("tcp_connections", |figure| figure == 1);
}

/// Serves one HTTP response.
fn serve(listener: &TcpListener, body: &[u8]) {
    let mut stream = accept(listener);
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.extend(receive::<1>(&stream));
    }
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len()).unwrap();
    stream.write_all(body).unwrap();
}

fn curl_fetches_through_socks() {
    let (listener, address) = server(V4);
    let pair = pair(way(Login::new("user", "secret")), &exit_config(V4));
    let body = pattern(7, 2_000_000);
    thread::scope(|scope| {
        scope.spawn(|| serve(&listener, &body));
        let proxy = format!("socks5h://user:secret@{}", pair.address);
        let url = format!("http://localhost:{}/", address.port());
        let fetched = Command::new("curl")
            .args(["--silent", "--max-time", "30", "--proxy", &proxy, &url])
            .output()
            .unwrap();
        assert!(fetched.status.success(), "{fetched:?}");
        assert_eq!(hash(&fetched.stdout), hash(&body));
    });
    pair.entrance.await_metric("finished_connections", |figure| figure == 1);
}
