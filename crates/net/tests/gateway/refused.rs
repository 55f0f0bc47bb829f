//! Connections that cannot be, and exits that are not there.

use crate::gateway::helpers::*;
use hopline_harness::Test;
use hopline_net::gateway::{Allowed, EntranceConfig, ExitConfig, Fallback, Transport};
use hopline_net::tpa;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

pub(crate) fn tests() -> Vec<Test> {
    over_both!([]; a_destination_that_refuses_is_a_reset, a_destination_that_is_not_allowed_is_a_reset,
        without_an_exit_connections_go_by_tcp_until_it_is_back, without_an_exit_connections_can_be_refused,
        one_connection_too_many_for_the_exit_goes_by_tcp, one_connection_too_many_for_the_entrance_is_reset,
        another_key_or_name_reaches_nothing, parameters_out_of_range_are_named)
}

fn a_destination_that_refuses_is_a_reset() {
    let pair = pair_to(nobody(V4));
    is_reset(&connect(pair.address));
    pair.exit.await_figure("failed_requests", 1);
    pair.entrance.await_figure("refused_connections", 1);
}

fn a_destination_that_is_not_allowed_is_a_reset() {
    let (_listener, address) = server(V4);
    let beyond = ExitConfig { allowed: Allowed::Beyond, ..exit_config(V4) };
    let pair = pair(forward(address), &beyond);
    is_reset(&connect(pair.address));
    pair.exit.await_figure("not_allowed_requests", 1);
}

/// An entrance whose exit may be there or not.
fn impatient(server: SocketAddr, exit: SocketAddr) -> EntranceConfig {
    let millis = Duration::from_millis;
    EntranceConfig {
        fallback_after: millis(300),
        retry_after: millis(200),
        ..entrance_config(forward(server), exit)
    }
}

fn carries(listener: &TcpListener, address: SocketAddr) {
    let client = connect(address);
    exchange(&client, &accept(listener), 10_000);
}

fn without_an_exit_connections_go_by_tcp_until_it_is_back() {
    let (listener, address) = server(V4);
    // Nobody answers there, nor says so.
    let silent = std::net::UdpSocket::bind((V4, 0)).unwrap();
    let exit_address = silent.local_addr().unwrap();
    let (entrance, entry) = start_entrance(&impatient(address, exit_address));
    for _ in 0..3 {
        carries(&listener, entry);
    }
    entrance.await_figure("tcp_connections", 3);
    assert_eq!([entrance.figure("tpa_connections"), entrance.figure("exit_absences")], [0, 1]);
    drop(silent);
    let (exit, _) = start_exit(&ExitConfig { listen: exit_address, ..exit_config(V4) });
    let by_tpa = eventually(|| {
        carries(&listener, entry);
        entrance.figure("tpa_connections") > 0
    });
    assert!(by_tpa && eventually(|| exit.figure("tpa_connections") > 0));
    // It goes, and comes again.
    drop(exit);
    let absent = eventually(|| {
        carries(&listener, entry);
        entrance.figure("exit_absences") == 2
    });
    assert!(absent);
}

fn without_an_exit_connections_can_be_refused() {
    let (_listener, address) = server(V4);
    let silent = std::net::UdpSocket::bind((V4, 0)).unwrap();
    let config =
        EntranceConfig { fallback: Fallback::Refuse, ..impatient(address, silent.local_addr().unwrap()) };
    let (entrance, entry) = start_entrance(&config);
    is_reset(&connect(entry));
    is_reset(&connect(entry));
    entrance.await_figure("refused_connections", 2);
}

fn one_connection_too_many_for_the_exit_goes_by_tcp() {
    let (listener, address) = server(V4);
    let pair = pair(forward(address), &ExitConfig { max_connections: 1, ..exit_config(V4) });
    let _first = (connect(pair.address), accept(&listener));
    pair.entrance.await_figure("tpa_connections", 1);
    carries(&listener, pair.address);
    pair.entrance.await_figure("tcp_connections", 1);
    assert_eq!(pair.entrance.figure("exit_absences"), 0);
}

fn one_connection_too_many_for_the_entrance_is_reset() {
    let (listener, address) = server(V4);
    let (_exit, exit_address) = start_exit(&exit_config(V4));
    let config = EntranceConfig { max_connections: 1, ..entrance_config(forward(address), exit_address) };
    let (entrance, entry) = start_entrance(&config);
    let first = (connect(entry), accept(&listener));
    is_reset(&connect(entry));
    entrance.await_figure("turned_away_connections", 1);
    exchange(&first.0, &first.1, 1000);
    drop(first);
    entrance.await_figure("open_connections", 0);
    carries(&listener, entry);
}

fn another_key_or_name_reaches_nothing() {
    let (_listener, address) = server(V4);
    let (exit, exit_address) = start_exit(&exit_config(V4));
    let right = entrance_config(forward(address), exit_address);
    let wrong_key = EntranceConfig { key: key(2), ..right.clone() };
    let wrong_name = EntranceConfig { name: "somebody".parse().unwrap(), ..right };
    for (config, figure) in [(wrong_key, "wrong_proofs"), (wrong_name, "unknown_peers")] {
        let (entrance, entry) = start_entrance(&config);
        is_reset(&connect(entry));
        exit.await_figure(figure, 1);
        entrance.await_figure("rejected_connections", 1);
        assert_eq!([entrance.figure("tcp_connections"), exit.figure("tpa_connections")], [0, 0]);
    }
}

fn parameters_out_of_range_are_named() {
    let exit = |change: fn(&mut ExitConfig)| {
        let mut config = exit_config(V4);
        change(&mut config);
        hopline_net::gateway::Exit::open(&config).unwrap_err().to_string()
    };
    assert_eq!(exit(|c| c.peers.clear()), "`peers` must be at least one");
    assert_eq!(exit(|c| c.peers.push(peer())), "`peers` must be of different names");
    assert_eq!(exit(|c| c.max_connections = 0), "`max_connections` must be 1 to 65535");
    assert_eq!(exit(|c| c.connect_timeout = Duration::ZERO), "`connect_timeout` must be 100 ms to 25 s");
    let tpa = |change: fn(&mut tpa::Config)| {
        let mut config = trunk();
        change(&mut config);
        let config = ExitConfig { transport: Transport::Tpa(config), ..exit_config(V4) };
        config.validate().unwrap_err().to_string()
    };
    assert_eq!(tpa(|c| c.cwnd_max = 13), "`cwnd_max` must be 1 to 12");
    assert!(tpa(|c| c.keep_alive = None).starts_with("`keep_alive` must be set"));
    let entrance = |change: fn(&mut EntranceConfig)| {
        let mut config = entrance_config(forward(nobody(V4)), nobody(V4));
        change(&mut config);
        hopline_net::gateway::Entrance::open(&config).unwrap_err().to_string()
    };
    assert_eq!(entrance(|c| c.ways.clear()), "`ways` must be at least one");
    assert_eq!(entrance(|c| c.buffer = 1), "`buffer` must be 4 KiB to 1 MiB");
    assert_eq!(entrance(|c| c.fallback_after = Duration::ZERO), "`fallback_after` must be 100 ms to 60 s");
}
