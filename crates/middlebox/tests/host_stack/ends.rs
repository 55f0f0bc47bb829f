//! Connections that are refused, reset, or lose the stack.

use super::world::*;
use crate::gateway::helpers::{accept, assert_reset, connect, server, set_reset_on_close};
use hopline_harness::{Need, Test, tests};
use hopline_middlebox::host_stack::{AcceptPort, HostStack, HostStackConfig};
use hopline_middlebox::service::{Service, ServiceStatus};
use hopline_testkit::namespace::LINK;
use hopline_transport::tcp::Config;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;

pub(crate) fn tests() -> Vec<Test> {
    tests!([LINK];
        a_closed_port_of_the_peer_resets_the_program,
        a_closed_port_of_the_stack_refuses,
        a_missing_program_resets_the_peer,
        a_reset_of_either_side_reaches_the_other,
        a_stack_that_ends_resets_all_connections,
        an_address_of_the_host_or_a_duplicate_port_is_rejected,
        an_address_in_the_network_of_an_interface_is_reported,
    )
    .into_iter()
    .chain(tests!([LINK, Need::Program("ip")]; a_removed_interface_ends_the_stack))
    .collect()
}

fn a_closed_port_of_the_peer_resets_the_program() {
    let link = link(&good());
    let to = SocketAddr::from((link.address_b(), 1));
    link.run_in_a(move || {
        let (running, entry) = forwarding(config(Config::linux()), to);
        assert_reset(&connect(entry));
        running.await_metric("refused_connections", |figure| figure == 1);
    });
}

fn a_closed_port_of_the_stack_refuses() {
    let link = link(&good());
    let (ready, is_ready) = channel();
    let (over, is_over) = channel::<()>();
    link.run_both(
        move || {
            let _running = accepting(config(Config::linux()), (Ipv4Addr::LOCALHOST, 1).into());
            ready.send(()).unwrap();
            let _ = is_over.recv();
        },
        move || {
            let _over = over;
            is_ready.recv().unwrap();
            let refused = TcpStream::connect((STACK, PORT + 1)).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        },
    );
}

/// Returns a configuration with these addresses.
fn at(addresses: &[IpAddr]) -> HostStackConfig {
    HostStackConfig::new(Config::linux(), addresses.to_vec()).unwrap()
}

fn an_address_of_the_host_or_a_duplicate_port_is_rejected() {
    let link = link(&good());
    let own = IpAddr::from(link.address_a());
    link.run_in_a(move || {
        let error = HostStack::open(at(&[own])).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{own} is an address of this machine")), "{error}");
        let accept = [80, 81, 80].map(|port| AcceptPort { port, to: "127.0.0.1:1".parse().unwrap() });
        let error = HostStack::open(HostStackConfig { accept: accept.into(), ..at(&[STACK.into()]) });
        assert_eq!(error.unwrap_err().to_string(), "`accept` must be ports of which none is named twice");
    });
}

fn an_address_in_the_network_of_an_interface_is_reported() {
    let link = link(&good());
    let neighbour = IpAddr::from(link.address_b());
    link.run_in_a(move || {
        assert_eq!(HostStack::open(at(&[STACK.into()])).unwrap().on_link_addresses(), []);
        let host = HostStack::open(at(&[STACK.into(), neighbour])).unwrap();
        assert_eq!(host.on_link_addresses()[0].0, neighbour);
    });
}

fn a_missing_program_resets_the_peer() {
    let link = link(&good());
    let (ready, is_ready) = channel();
    let (over, is_over) = channel::<()>();
    link.run_both(
        move || {
            let _running = accepting(config(Config::linux()), (Ipv4Addr::LOCALHOST, 1).into());
            ready.send(()).unwrap();
            let _ = is_over.recv();
        },
        move || {
            let _over = over;
            is_ready.recv().unwrap();
            assert_reset(&connect((STACK, PORT).into()));
        },
    );
}

fn a_reset_of_either_side_reaches_the_other() {
    let link = link(&good());
    let (ready, is_ready) = channel();
    let (one, first) = channel();
    let ip = link.address_b();
    link.run_both(
        move || {
            let (running, entry) = forwarding(config(Config::linux()), is_ready.recv().unwrap());
            let mut client = connect(entry);
            client.write_all(b"x").unwrap();
            assert_reset(&client);
            let mut client = connect(entry);
            client.write_all(b"x").unwrap();
            first.recv().unwrap();
            set_reset_on_close(&client);
            drop(client);
            running.await_metric("broken_connections", |figure| figure == 2);
        },
        move || {
            let (listener, address) = server(ip.into());
            ready.send(address).unwrap();
            let mut peer = accept(&listener);
            peer.read_exact(&mut [0]).unwrap();
            set_reset_on_close(&peer);
            drop(peer);
            let mut peer = accept(&listener);
            peer.read_exact(&mut [0]).unwrap();
            one.send(()).unwrap();
            assert_reset(&peer);
        },
    );
}

fn a_stack_that_ends_resets_all_connections() {
    let link = link(&good());
    let (ready, is_ready) = channel();
    let (met, have_met) = channel();
    let ip = link.address_b();
    link.run_both(
        move || {
            let (mut running, entry) = forwarding(config(Config::linux()), is_ready.recv().unwrap());
            let client = connect(entry);
            have_met.recv().unwrap();
            running.end();
            assert_reset(&client);
        },
        move || {
            let (listener, address) = server(ip.into());
            ready.send(address).unwrap();
            let peer = accept(&listener);
            met.send(()).unwrap();
            assert_reset(&peer);
        },
    );
}

fn a_removed_interface_ends_the_stack() {
    let link = link(&good());
    link.run_in_a(move || {
        let host = HostStack::open(config(Config::linux())).unwrap();
        let interface = host.interface().to_owned();
        let (_stop, stopped) = UnixStream::pair().unwrap();
        let ended = thread::scope(|scope| {
            let running = scope.spawn(move || Box::new(host).run(stopped.as_fd(), &ServiceStatus::default()));
            assert!(Command::new("ip").args(["link", "del", &interface]).status().unwrap().success());
            running.join().unwrap()
        });
        assert!(ended.is_err());
    });
}
