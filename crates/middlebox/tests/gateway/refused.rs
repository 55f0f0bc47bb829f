//! Impossible connections and absent exits.

use crate::gateway::between::{Relay, RelayMode};
use crate::gateway::helpers::*;
use hopline_core::Duration as Span;
use hopline_harness::Test;
use hopline_middlebox::gateway::{Allowed, EntranceConfig, ExitConfig, Fallback, Transport};
use hopline_streams::tpa;
use hopline_streams::wide::{self, Credentials, PrivateKey, Seed, Trust};
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

pub(crate) fn tests() -> Vec<Test> {
    over_both!([]; a_refusing_destination_is_a_reset, a_forbidden_destination_is_a_reset,
        without_an_exit_connections_use_tcp_until_it_returns, without_an_exit_connections_can_be_refused,
        a_connection_above_the_limit_of_the_exit_uses_tcp, a_connection_above_the_limit_of_the_entrance_waits,
        connections_that_wait_too_long_or_exceed_the_limit_are_reset,
        another_key_or_name_is_rejected, an_exit_of_another_version_is_absent, an_exit_by_name_is_found_at_its_second_address,
        connections_through_a_silent_exit_are_reset, parameters_out_of_range_are_named)
}

fn a_refusing_destination_is_a_reset() {
    let pair = pair_to(address_without_listener(V4));
    assert_reset(&connect(pair.address));
    pair.exit.await_metric("failed_requests", |figure| figure == 1);
    pair.entrance.await_metric("refused_connections", |figure| figure == 1);
}

fn a_forbidden_destination_is_a_reset() {
    let (_listener, address) = server(V4);
    let beyond = ExitConfig { allowed: Allowed::NonLocal, ..exit_config(V4) };
    let pair = pair(forward(address), &beyond);
    assert_reset(&connect(pair.address));
    pair.exit.await_metric("not_allowed_requests", |figure| figure == 1);
}

/// Returns an entrance with short timeouts for an absent exit.
fn with_short_timeouts(server: SocketAddr, exit: SocketAddr) -> EntranceConfig {
    let millis = Duration::from_millis;
    EntranceConfig {
        fallback: Some(Fallback::Tcp),
        fallback_after: millis(300),
        retry_after: millis(200),
        ..entrance_config(forward(server), exit)
    }
}

fn assert_carries(listener: &TcpListener, address: SocketAddr) {
    let client = connect(address);
    exchange(&client, &accept(listener), 10_000);
}

fn without_an_exit_connections_use_tcp_until_it_returns() {
    let (listener, address) = server(V4);
    // A silent socket: neither an answer nor an ICMP error.
    let silent = std::net::UdpSocket::bind((V4, 0)).unwrap();
    let exit_address = silent.local_addr().unwrap();
    let (entrance, entry) = start_entrance(&with_short_timeouts(address, exit_address));
    for _ in 0..3 {
        assert_carries(&listener, entry);
    }
    entrance.await_metric("tcp_connections", |figure| figure == 3);
    assert_eq!([entrance.metric("tpa_connections"), entrance.metric("exit_absences")], [0, 1]);
    drop(silent);
    let (exit, _) = start_exit(&ExitConfig { listen: exit_address, ..exit_config(V4) });
    let by_tpa = eventually(|| {
        assert_carries(&listener, entry);
        entrance.metric("tpa_connections") > 0
    });
    assert!(by_tpa && eventually(|| exit.metric("tpa_connections") > 0));
    // The exit ends, and returns.
    drop(exit);
    let absent = eventually(|| {
        assert_carries(&listener, entry);
        entrance.metric("exit_absences") == 2
    });
    assert!(absent);
}

fn without_an_exit_connections_can_be_refused() {
    let (_listener, address) = server(V4);
    let silent = std::net::UdpSocket::bind((V4, 0)).unwrap();
    let config = EntranceConfig {
        fallback: Some(Fallback::Refuse),
        ..with_short_timeouts(address, silent.local_addr().unwrap())
    };
    let (entrance, entry) = start_entrance(&config);
    assert_reset(&connect(entry));
    assert_reset(&connect(entry));
    entrance.await_metric("refused_connections", |figure| figure == 2);
}

fn a_connection_above_the_limit_of_the_exit_uses_tcp() {
    let (listener, address) = server(V4);
    let max_wait = Duration::from_millis(100);
    let (exit, exit_address) = start_exit(&ExitConfig { max_connections: 1, max_wait, ..exit_config(V4) });
    let config =
        EntranceConfig { fallback: Some(Fallback::Tcp), ..entrance_config(forward(address), exit_address) };
    let (entrance, entry) = start_entrance(&config);
    let _first = (connect(entry), accept(&listener));
    entrance.await_metric("tpa_connections", |figure| figure == 1);
    // Its first bytes went to the exit, which did not pass them on.
    assert_carries(&listener, entry);
    entrance.await_metric("tcp_connections", |figure| figure == 1);
    assert_eq!(entrance.metric("exit_absences"), 0);
    exit.await_metric("too_many_requests", |figure| figure == 1);
}

fn a_connection_above_the_limit_of_the_entrance_waits() {
    let (listener, address) = server(V4);
    let (_exit, exit_address) = start_exit(&exit_config(V4));
    let config = EntranceConfig { max_connections: 1, ..entrance_config(forward(address), exit_address) };
    let (entrance, entry) = start_entrance(&config);
    let first = (connect(entry), accept(&listener));
    let second = connect(entry);
    send(&second, b"waits");
    exchange(&first.0, &first.1, 1000);
    drop(first);
    let server = accept(&listener);
    assert_eq!(hash_of(&server).unwrap(), hash(b"waits"));
    drop(server);
    assert_eq!(entrance.metric("turned_away_connections"), 0);
}

fn connections_that_wait_too_long_or_exceed_the_limit_are_reset() {
    let (listener, address) = server(V4);
    let (_exit, exit_address) = start_exit(&exit_config(V4));
    let max_wait = Duration::from_millis(500);
    let config =
        EntranceConfig { max_connections: 2, max_wait, ..entrance_config(forward(address), exit_address) };
    let (entrance, entry) = start_entrance(&config);
    let open: Vec<_> = (0..2).map(|_| (connect(entry), accept(&listener))).collect();
    // As many may wait, and a third replaces the oldest.
    let waiting = [(); 3].map(|()| connect(entry));
    waiting.iter().for_each(assert_reset);
    entrance.await_metric("turned_away_connections", |figure| figure == 3);
    for (client, server) in &open {
        exchange(client, server, 1000);
    }
}

fn another_key_or_name_is_rejected() {
    let (_listener, address) = server(V4);
    let (exit, exit_address) = start_exit(&exit_config(V4));
    let right = entrance_config(forward(address), exit_address);
    let wrong_key = EntranceConfig { key: key(2), ..right.clone() };
    let wrong_name = EntranceConfig { name: "somebody".parse().unwrap(), ..right };
    for (config, figure) in [(wrong_key, "wrong_proofs"), (wrong_name, "unknown_peers")] {
        let (entrance, entry) = start_entrance(&config);
        assert_reset(&connect(entry));
        entrance.await_metric("rejected_connections", |figure| figure == 1);
        // The entrance continues to try.
        assert!(eventually(|| exit.metric(figure) > 0));
        assert_eq!([entrance.metric("tcp_connections"), exit.metric("tpa_connections")], [0, 0]);
    }
}

/// Sends the first message of version 1 to all callers.
fn an_exit_of_another_version_is_absent() {
    let (listener, address) = server(V4);
    let challenge = [&b"hgw\x01"[..], &[7; 32]].concat();
    let old = exit_that_sends(challenge);
    let (entrance, entry) = start_entrance(&with_short_timeouts(address, old));
    assert_carries(&listener, entry);
    entrance.await_metric("tcp_connections", |figure| figure == 1);
    assert_eq!([entrance.metric("exit_absences"), entrance.metric("exit_present")], [1, 0]);
}

/// Returns a listener that sends `says` to each caller, over the transport of the test.
fn exit_that_sends(says: Vec<u8>) -> SocketAddr {
    match carrier() {
        Carrier::Tpa => {
            let listener = tpa::TpaListener::bind((V4, 0), &trunk()).unwrap();
            let address = listener.local_addr().unwrap();
            send_to_all(says, move || listener.accept().unwrap().0);
            address
        }
        Carrier::TpaWide => {
            let private = PrivateKey::generate(&Seed::new([9; 32]));
            let config = wide::config(Credentials::Keys { private, trust: Trust::Anyone });
            let listener = wide::WideListener::bind((V4, 0), &config).unwrap();
            let address = listener.local_addr().unwrap();
            send_to_all(says, move || listener.accept().unwrap().0);
            address
        }
    }
}

/// Runs until the test ends.
fn send_to_all<S: Write + Send + 'static>(says: Vec<u8>, accept: impl Fn() -> S + Send + 'static) {
    let talk = move || {
        let mut held = Vec::new();
        loop {
            let mut stream = accept();
            let _ = stream.write_all(&says).and_then(|()| stream.flush());
            held.push(stream);
        }
    };
    thread::Builder::new().spawn(talk).unwrap();
}

fn an_exit_by_name_is_found_at_its_second_address() {
    let (listener, address) = server(V4);
    // On many hosts the name also has an IPv6 address, at which there is no listener.
    let (_exit, exit_address) = start_exit(&exit_config(V4));
    let name = format!("localhost:{}", exit_address.port());
    let config = EntranceConfig {
        exit: name.parse().unwrap(),
        fallback: Some(Fallback::Refuse),
        ..entrance_config(forward(address), exit_address)
    };
    let (entrance, entry) = start_entrance(&config);
    entrance.await_metric("exit_present", |figure| figure == 1);
    assert_carries(&listener, entry);
    entrance.await_metric("tpa_connections", |figure| figure == 1);
}

fn connections_through_a_silent_exit_are_reset() {
    let (listener, address) = server(V4);
    let exit = ExitConfig { transport: patient_transport(), ..exit_config(V4) };
    let (_exit, exit_address) = start_exit(&exit);
    let relay = Relay::before(exit_address, RelayMode::Pass);
    let config = EntranceConfig {
        transport: patient_transport(),
        reset_after: Duration::from_millis(700),
        ..with_short_timeouts(address, relay.address)
    };
    let (entrance, entry) = start_entrance(&config);
    let open: Vec<_> = (0..3).map(|_| (connect(entry), accept(&listener))).collect();
    exchange(&open[0].0, &open[0].1, 1000);
    relay.set(RelayMode::Drop);
    // Silent connections too.
    for (client, _) in &open[1..] {
        assert_reset(client);
    }
    entrance.await_metric("broken_connections", |figure| figure == 2);
    // The idle timeout of the transport is a minute.
    relay.set(RelayMode::Pass);
    entrance.await_metric("exit_present", |figure| figure == 1);
    // The exit has learned of it, and has reset the connections with the servers.
    for (_, server) in &open[1..] {
        assert_reset(server);
    }
}

/// Returns the transport of the test with the default idle timeout.
fn patient_transport() -> Transport {
    let minute = Some(Span::from_secs(60));
    match transport() {
        Transport::Tpa(config) => Transport::Tpa(config.with_silence_limit(minute)),
        Transport::TpaWide(config) => Transport::TpaWide(config.with_silence_limit(minute)),
    }
}

fn parameters_out_of_range_are_named() {
    let exit = |change: fn(&mut ExitConfig)| {
        let mut config = exit_config(V4);
        change(&mut config);
        hopline_middlebox::gateway::Exit::open(&config).unwrap_err().to_string()
    };
    assert_eq!(exit(|c| c.peers.clear()), "`peers` must be at least one");
    assert_eq!(exit(|c| c.peers.push(peer())), "`peers` must be of different names");
    assert_eq!(exit(|c| c.max_connections = 0), "`max_connections` must be 1 to 65535");
    assert_eq!(exit(|c| c.connect_timeout = Duration::ZERO), "`connect_timeout` must be 100 ms to 25 s");
    let tpa = |config| {
        let config = ExitConfig { transport: Transport::Tpa(config), ..exit_config(V4) };
        config.validate().unwrap_err().to_string()
    };
    assert_eq!(tpa(trunk().with_cwnd_max(13)), "`cwnd_max` must be 1 to 12");
    assert!(tpa(trunk().with_keep_alive(None)).starts_with("`keep_alive` must be set"));
    let entrance = |change: fn(&mut EntranceConfig)| {
        let mut config = entrance_config(forward(address_without_listener(V4)), address_without_listener(V4));
        change(&mut config);
        hopline_middlebox::gateway::Entrance::open(&config).unwrap_err().to_string()
    };
    assert_eq!(entrance(|c| c.listeners.clear()), "`ways` must be at least one");
    assert_eq!(entrance(|c| c.max_wait = Duration::ZERO), "`max_wait` must be 100 ms to 30 s");
    assert_eq!(entrance(|c| c.reset_after = Duration::ZERO), "`reset_after` must be 100 ms to 1 h");
    assert_eq!(entrance(|c| c.spare_connections = 65), "`spare_connections` must be 0 to 64");
    assert_eq!(entrance(|c| c.buffer = 1), "`buffer` must be 4 KiB to 1 MiB");
    assert_eq!(entrance(|c| c.fallback_after = Duration::ZERO), "`fallback_after` must be 100 ms to 60 s");
}
