//! Unencrypted bytes of applications: an entrance with an encrypted trunk sends none, whatever a relay between the
//! gateways does.

use crate::gateway::between::{Relay, RelayMode, SECRET};
use crate::gateway::helpers::*;
use hopline_harness::Test;
use hopline_middlebox::gateway::{EntranceConfig, Fallback};
use hopline_testkit::namespace::RunningService;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

pub(crate) fn tests() -> Vec<Test> {
    hopline_harness::tests!([]; nothing_leaves_unencrypted_while_datagrams_are_dropped_or_delayed,
        nothing_leaves_unencrypted_after_forged_icmp_messages, an_interrupted_trunk_sends_nothing_unencrypted,
        an_unencrypted_fallback_must_be_configured_and_is_counted)
    .into()
}

/// Returns an entrance over TPA-wide with short timeouts for an absent exit.
fn with_short_timeouts(server: SocketAddr, exit: SocketAddr) -> EntranceConfig {
    let millis = Duration::from_millis;
    EntranceConfig {
        fallback_after: millis(400),
        retry_after: millis(200),
        ..entrance_config(forward(server), exit)
    }
}

/// Checks that a client that sends its secret is reset.
fn assert_refused(entry: SocketAddr) {
    let mut client = connect(entry);
    // The client may learn of the reset here.
    if client.write_all(SECRET).is_ok() {
        assert_reset(&client);
    }
}

/// Checks that the server has received no connection.
fn assert_no_connection(listener: &TcpListener) {
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    listener.set_nonblocking(false).unwrap();
}

fn assert_carries(listener: &TcpListener, entry: SocketAddr) {
    let client = connect(entry);
    let server = accept(listener);
    server.set_nonblocking(false).unwrap();
    send(&client, SECRET);
    assert_eq!(hash_of(&server).unwrap(), hash(SECRET));
    send(&server, SECRET);
    assert_eq!(hash_of(&client).unwrap(), hash(SECRET));
}

/// Waits until the entrance has its trunk.
fn await_trunk(entrance: &RunningService) {
    entrance.await_metric("exit_present", |figure| figure == 1);
}

fn nothing_leaves_unencrypted_while_datagrams_are_dropped_or_delayed() {
    with_carrier(Carrier::TpaWide, || {
        for does in [RelayMode::Drop, RelayMode::Delay] {
            let (listener, address) = server(V4);
            let (_exit, exit_address) = start_exit(&exit_config(V4));
            let relay = Relay::before(exit_address, does);
            let (entrance, entry) = start_entrance(&with_short_timeouts(address, relay.address));
            assert_refused(entry);
            assert_refused(entry);
            assert_no_connection(&listener);
            relay.set(RelayMode::Pass);
            await_trunk(&entrance);
            assert_carries(&listener, entry);
            let figures = ["tcp_connections", "clear_connections"].map(|name| entrance.metric(name));
            assert_eq!((figures, relay.in_clear()), ([0, 0], 0), "{does:?}");
            assert!(relay.passed() > 0);
        }
    });
}

fn nothing_leaves_unencrypted_after_forged_icmp_messages() {
    with_carrier(Carrier::TpaWide, || {
        let (listener, address) = server(V4);
        // A closed port: the kernel's ICMP error is the same as a forged one.
        let exit_address = UdpSocket::bind((V4, 0)).unwrap().local_addr().unwrap();
        let (entrance, entry) = start_entrance(&with_short_timeouts(address, exit_address));
        assert_refused(entry);
        assert_refused(entry);
        assert_no_connection(&listener);
        entrance.await_metric("refused_connections", |figure| figure == 2);
        assert_eq!(entrance.metric("tcp_connections"), 0);
    });
}

fn an_interrupted_trunk_sends_nothing_unencrypted() {
    with_carrier(Carrier::TpaWide, || {
        let (listener, address) = server(V4);
        let (_exit, exit_address) = start_exit(&exit_config(V4));
        let relay = Relay::before(exit_address, RelayMode::Pass);
        let config = EntranceConfig {
            reset_after: Duration::from_secs(1),
            ..with_short_timeouts(address, relay.address)
        };
        let (entrance, entry) = start_entrance(&config);
        assert_carries(&listener, entry);
        relay.set(RelayMode::Drop);
        assert_refused(entry);
        assert_refused(entry);
        assert_no_connection(&listener);
        relay.set(RelayMode::Pass);
        await_trunk(&entrance);
        assert_carries(&listener, entry);
        assert_eq!([entrance.metric("tcp_connections"), relay.in_clear()], [0, 0]);
    });
}

fn an_unencrypted_fallback_must_be_configured_and_is_counted() {
    with_carrier(Carrier::TpaWide, || {
        let (listener, address) = server(V4);
        let silent = UdpSocket::bind((V4, 0)).unwrap();
        let config = with_short_timeouts(address, silent.local_addr().unwrap());
        let (entrance, entry) = start_entrance(&EntranceConfig { fallback: Some(Fallback::Tcp), ..config });
        assert_carries(&listener, entry);
        entrance.await_metric("clear_connections", |figure| figure == 1);
        assert_eq!(entrance.metric("tcp_connections"), 1);
    });
    let (listener, address) = server(V4);
    let silent = UdpSocket::bind((V4, 0)).unwrap();
    let (entrance, entry) = start_entrance(&with_short_timeouts(address, silent.local_addr().unwrap()));
    assert_carries(&listener, entry);
    entrance.await_metric("tcp_connections", |figure| figure == 1);
    // TPA does not encrypt, so the counter does not apply.
    assert_eq!(entrance.metric("clear_connections"), 0);
}
