//! Unencrypted bytes of applications: an entrance with an encrypted trunk sends none, whatever a relay between the
//! gateways does.

use crate::gateway::between::{Does, Relay, SECRET};
use crate::gateway::helpers::*;
use hopline_harness::Test;
use hopline_middlebox::gateway::{EntranceConfig, Fallback};
use hopline_testkit::namespace::Running;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

pub(crate) fn tests() -> Vec<Test> {
    hopline_harness::tests!([]; nothing_leaves_in_clear_while_datagrams_are_dropped_or_delayed,
        nothing_leaves_in_clear_while_icmp_says_that_there_is_no_exit, a_trunk_that_stood_and_is_cut_sends_nothing_in_clear,
        in_clear_only_where_that_is_written_and_it_is_counted)
    .into()
}

/// Returns an entrance over TPA-wide with short timeouts for an absent exit.
fn impatient(server: SocketAddr, exit: SocketAddr) -> EntranceConfig {
    let millis = Duration::from_millis;
    EntranceConfig {
        fallback_after: millis(400),
        retry_after: millis(200),
        ..entrance_config(forward(server), exit)
    }
}

/// Checks that a client that sends its secret is reset.
fn is_refused(entry: SocketAddr) {
    let mut client = connect(entry);
    // The client may learn of the reset here.
    if client.write_all(SECRET).is_ok() {
        is_reset(&client);
    }
}

/// Checks that the server has received no connection.
fn is_left_alone(listener: &TcpListener) {
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    listener.set_nonblocking(false).unwrap();
}

fn carries(listener: &TcpListener, entry: SocketAddr) {
    let client = connect(entry);
    let server = accept(listener);
    server.set_nonblocking(false).unwrap();
    send(&client, SECRET);
    assert_eq!(hash_of(&server).unwrap(), hash(SECRET));
    send(&server, SECRET);
    assert_eq!(hash_of(&client).unwrap(), hash(SECRET));
}

/// Waits until the entrance has its trunk.
fn stands(entrance: &Running) {
    entrance.await_figure("exit_present", |figure| figure == 1);
}

fn nothing_leaves_in_clear_while_datagrams_are_dropped_or_delayed() {
    carried_by(Carrier::TpaWide, || {
        for does in [Does::Drop, Does::Delay] {
            let (listener, address) = server(V4);
            let (_exit, exit_address) = start_exit(&exit_config(V4));
            let relay = Relay::before(exit_address, does);
            let (entrance, entry) = start_entrance(&impatient(address, relay.address));
            is_refused(entry);
            is_refused(entry);
            is_left_alone(&listener);
            relay.set(Does::Pass);
            stands(&entrance);
            carries(&listener, entry);
            let figures = ["tcp_connections", "clear_connections"].map(|name| entrance.figure(name));
            assert_eq!((figures, relay.in_clear()), ([0, 0], 0), "{does:?}");
            assert!(relay.passed() > 0);
        }
    });
}

fn nothing_leaves_in_clear_while_icmp_says_that_there_is_no_exit() {
    carried_by(Carrier::TpaWide, || {
        let (listener, address) = server(V4);
        // A closed port: the kernel's ICMP error is the same as a forged one.
        let exit_address = UdpSocket::bind((V4, 0)).unwrap().local_addr().unwrap();
        let (entrance, entry) = start_entrance(&impatient(address, exit_address));
        is_refused(entry);
        is_refused(entry);
        is_left_alone(&listener);
        entrance.await_figure("refused_connections", |figure| figure == 2);
        assert_eq!(entrance.figure("tcp_connections"), 0);
    });
}

fn a_trunk_that_stood_and_is_cut_sends_nothing_in_clear() {
    carried_by(Carrier::TpaWide, || {
        let (listener, address) = server(V4);
        let (_exit, exit_address) = start_exit(&exit_config(V4));
        let relay = Relay::before(exit_address, Does::Pass);
        let config =
            EntranceConfig { reset_after: Duration::from_secs(1), ..impatient(address, relay.address) };
        let (entrance, entry) = start_entrance(&config);
        carries(&listener, entry);
        relay.set(Does::Drop);
        is_refused(entry);
        is_refused(entry);
        is_left_alone(&listener);
        relay.set(Does::Pass);
        stands(&entrance);
        carries(&listener, entry);
        assert_eq!([entrance.figure("tcp_connections"), relay.in_clear()], [0, 0]);
    });
}

fn in_clear_only_where_that_is_written_and_it_is_counted() {
    carried_by(Carrier::TpaWide, || {
        let (listener, address) = server(V4);
        let silent = UdpSocket::bind((V4, 0)).unwrap();
        let config = impatient(address, silent.local_addr().unwrap());
        let (entrance, entry) = start_entrance(&EntranceConfig { fallback: Some(Fallback::Tcp), ..config });
        carries(&listener, entry);
        entrance.await_figure("clear_connections", |figure| figure == 1);
        assert_eq!(entrance.figure("tcp_connections"), 1);
    });
    let (listener, address) = server(V4);
    let silent = UdpSocket::bind((V4, 0)).unwrap();
    let (entrance, entry) = start_entrance(&impatient(address, silent.local_addr().unwrap()));
    carries(&listener, entry);
    entrance.await_figure("tcp_connections", |figure| figure == 1);
    // TPA does not encrypt, so the counter does not apply.
    assert_eq!(entrance.figure("clear_connections"), 0);
}
