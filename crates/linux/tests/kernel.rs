//! Kernel behaviour that this crate relies on.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

use hopline_harness::Test;
use hopline_linux::sched::{Priority, request_real_time};
use hopline_linux::veth::{self, Offload};
use hopline_linux::{Error, Interface, Namespace, Tun, tcp};
use hopline_streams::tpa::{self, TpaListener, TpaStream};
use hopline_testkit::namespace::LINK;
use hopline_testkit::streams::until;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use socket2::{Domain, Socket, Type};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::panic::catch_unwind;
use std::thread;
use std::time::Duration;

pub(crate) fn tests() -> Vec<Test> {
    hopline_harness::tests!([LINK];
        a_namespace_has_only_a_loopback_interface,
        namespaces_are_isolated,
        a_panic_inside_is_propagated,
        the_default_route_leads_to_the_tun,
        a_packet_written_to_the_tun_arrives,
        errors_are_named,
        congestion_control_is_set_for_a_socket,
        a_forbidden_congestion_control_is_answered_with_the_permitted_ones,
        tcp_info_has_the_round_trip_time,
        root_gets_real_time_scheduling,
        a_cable_uses_gso_unless_disabled,
        an_interface_name_is_unique,
        tpa_adapts_to_a_small_path_mtu,
    )
    .into()
}

const HERE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);

fn interfaces() -> Vec<String> {
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    text.lines().skip(2).map(|line| line.split(':').next().unwrap().trim().to_owned()).collect()
}

/// Returns a TUN interface that is up, with a default route.
fn tun() -> Tun {
    let tun = Tun::open("tun%d").unwrap();
    let interface = Interface::named(tun.name()).unwrap();
    interface.set_mtu(1400).unwrap();
    interface.set_address(HERE, 24).unwrap();
    interface.up().unwrap();
    interface.add_route(Ipv4Addr::UNSPECIFIED, 0).unwrap();
    tun
}

/// Returns the next IPv4 packet from the kernel.
fn next_packet(tun: &Tun) -> Vec<u8> {
    let mut buffer = vec![0; 2000];
    loop {
        match tun.receive(&mut buffer).unwrap() {
            Some(len) if buffer[0] >> 4 == 4 => return buffer[..len].to_vec(),
            Some(_) => {}
            None => thread::sleep(Duration::from_millis(1)),
        }
    }
}

fn a_namespace_has_only_a_loopback_interface() {
    let host = Namespace::new().unwrap();
    host.run(|| {
        assert_eq!(interfaces(), ["lo"]);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(b"me", socket.local_addr().unwrap()).unwrap();
        assert_eq!(socket.recv(&mut [0; 9]).unwrap(), 2);
        assert!(UdpSocket::bind((HERE, 0)).is_err(), "nobody has this address");
    })
    .unwrap();
}

fn namespaces_are_isolated() {
    let hosts = [Namespace::new().unwrap(), Namespace::new().unwrap()];
    let tuns = hosts.each_ref().map(|host| host.run(tun).unwrap());
    for (host, tun) in hosts.iter().zip(&tuns) {
        assert_eq!(tun.name(), "tun0");
        assert_eq!(host.run(interfaces).unwrap(), ["lo", "tun0"]);
    }
    drop(tuns);
    for host in &hosts {
        // A process that another test forks at this moment holds the TUN descriptor too, until it executes its program.
        host.run(|| until("only the loopback is left", || interfaces() == ["lo"])).unwrap();
    }
}

fn a_panic_inside_is_propagated() {
    let host = Namespace::new().unwrap();
    let panicked = catch_unwind(|| host.run(|| panic!("meant to"))).unwrap_err();
    assert_eq!(panicked.downcast_ref::<&str>(), Some(&"meant to"));
}

fn the_default_route_leads_to_the_tun() {
    let host = Namespace::new().unwrap();
    host.run(|| {
        let tun = tun();
        let socket = UdpSocket::bind((HERE, 0)).unwrap();
        socket.send_to(b"anybody?", (ELSEWHERE, 9)).unwrap();
        let packet = next_packet(&tun);
        assert_eq!((&packet[12..16], &packet[16..20]), (&HERE.octets()[..], &ELSEWHERE.octets()[..]));
        assert_eq!(&packet[28..], b"anybody?");
        // Longer than the MTU: fragmented.
        socket.send_to(&[7; 2000], (ELSEWHERE, 9)).unwrap();
        assert_eq!(next_packet(&tun).len(), 20 + 1376);
        assert_eq!(next_packet(&tun).len(), 20 + 8 + 2000 - 1376);
    })
    .unwrap();
}

fn a_packet_written_to_the_tun_arrives() {
    let host = Namespace::new().unwrap();
    host.run(|| {
        let tun = tun();
        let socket = UdpSocket::bind((HERE, 0)).unwrap();
        // The answer is the request with source and destination swapped, which leaves every checksum valid.
        socket.send_to(b"echo", (ELSEWHERE, socket.local_addr().unwrap().port())).unwrap();
        let mut packet = next_packet(&tun);
        let (source, destination) = packet[12..20].split_at_mut(4);
        source.swap_with_slice(destination);
        tun.send(&packet).unwrap();
        let mut buffer = [0; 9];
        let (len, from) = socket.recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..len], from.ip()), (&b"echo"[..], ELSEWHERE.into()));
        assert!(tun.send(&[0xff; 40]).is_err(), "no version of IP");
    })
    .unwrap();
}

fn errors_are_named() {
    let host = Namespace::new().unwrap();
    host.run(|| {
        let said = |result: Result<(), Error>| {
            let error = result.unwrap_err();
            assert!(!error.is_unavailable(), "{error}");
            error.to_string()
        };
        let _tun = Tun::open("tun0").unwrap();
        let tun = Interface::named("tun0").unwrap();
        assert!(said(Tun::open("tun0").map(drop)).starts_with("making the TUN interface tun0: "));
        assert!(said(Tun::open("sixteen-bytes-xx").map(drop)).contains("Invalid argument"));
        assert!(said(tun.set_mtu(67)).starts_with("setting the MTU of tun0: Invalid argument"));
        tun.set_address(HERE, 24).unwrap();
        assert!(
            said(tun.add_route(ELSEWHERE, 24)).starts_with("adding a route through tun0: Invalid argument")
        );
        assert!(said(Interface::named("").unwrap().up()).starts_with("bringing up : "));
    })
    .unwrap();
}

fn congestion_control_is_set_for_a_socket() {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    tcp::set_congestion_control(&socket, "reno").unwrap();
    assert_eq!(tcp::congestion_control(&socket).unwrap(), "reno");
    let error = tcp::set_congestion_control(&socket, "nosuch").unwrap_err().to_string();
    assert!(error.starts_with("there is no congestion control `nosuch` here; this kernel has: "), "{error}");
    assert!(error.contains("reno"), "{error}");
    assert_eq!(tcp::congestion_control(&socket).unwrap(), "reno");
}

fn a_forbidden_congestion_control_is_answered_with_the_permitted_ones() {
    let listed =
        |what: &str| fs::read_to_string(format!("/proc/sys/net/ipv4/tcp_{what}_congestion_control")).unwrap();
    let (available, allowed) = (listed("available"), listed("allowed"));
    // Capabilities are those of a thread.
    let without_privilege = || {
        let none = CapabilitySet::empty();
        let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
        set_capabilities(None, sets).unwrap();
        for name in available.split_whitespace() {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            let set = tcp::set_congestion_control(&socket, name).map_err(|error| error.to_string());
            if allowed.split_whitespace().any(|allowed| allowed == name) {
                assert_eq!(set, Ok(()));
            } else {
                let said = set.unwrap_err();
                assert!(
                    said.starts_with(&format!("this process may not use the congestion control `{name}`")),
                    "{said}"
                );
                assert!(said.contains("CAP_NET_ADMIN") && said.ends_with(allowed.trim()), "{said}");
            }
        }
    };
    thread::scope(|scope| scope.spawn(without_privilege).join().unwrap());
}

fn tcp_info_has_the_round_trip_time() {
    let host = Namespace::new().unwrap();
    host.run(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut a = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut b = listener.accept().unwrap().0;
        a.write_all(b"there").unwrap();
        b.read_exact(&mut [0; 5]).unwrap();
        b.write_all(b"back").unwrap();
        a.read_exact(&mut [0; 4]).unwrap();
        let info = tcp::info(&a).unwrap();
        assert!(info.srtt > Duration::ZERO && info.srtt < Duration::from_secs(60), "{info:?}");
        assert!(info.cwnd > 0 && info.mss > 500 && info.retransmitted == 0, "{info:?}");
    })
    .unwrap();
}

fn root_gets_real_time_scheduling() {
    thread::scope(|scope| {
        let policy = || {
            let priority = request_real_time();
            // proc_pid_stat(5): the 41st field is the policy; SCHED_FIFO is 1.
            let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
            (priority, stat.rsplit(')').next().unwrap().split_whitespace().nth(38).unwrap().to_owned())
        };
        match scope.spawn(policy).join().unwrap() {
            (Priority::RealTime, policy) => assert_eq!(policy, "1"),
            (Priority::Ordinary, policy) => assert_eq!(policy, "0"),
        }
    });
}

/// Returns two hosts with a cable between them, and the address of the second.
fn cable(trains: Offload) -> ([Namespace; 2], Ipv4Addr) {
    let hosts = [Namespace::new().unwrap(), Namespace::new().unwrap()];
    veth::join([&hosts[0], &hosts[1]], "cable", trains).unwrap();
    let address = |n| Ipv4Addr::new(10, 2, 0, n);
    for (host, n) in hosts.iter().zip(1..) {
        host.run(|| {
            let interface = Interface::named("cable").unwrap();
            interface.set_address(address(n), 24).unwrap();
            interface.up().unwrap();
        })
        .unwrap();
    }
    (hosts, address(2))
}

/// Returns the packets received by the end of the cable in this namespace.
fn received() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let line = text.lines().find_map(|line| line.trim().strip_prefix("cable:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn a_cable_uses_gso_unless_disabled() {
    const BYTES: usize = 4_000_000;
    let packets = |trains| {
        let ([a, b], address) = cable(trains);
        let listener = b.run(|| TcpListener::bind((address, 5000)).unwrap()).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                a.run(|| TcpStream::connect((address, 5000)).unwrap().write_all(&vec![7; BYTES]).unwrap())
            });
            let mut data = Vec::new();
            listener.accept().unwrap().0.read_to_end(&mut data).unwrap();
            assert!(data.len() == BYTES && data.iter().all(|&byte| byte == 7));
        });
        b.run(received).unwrap()
    };
    let alone = BYTES as u64 / 1448;
    assert!(packets(Offload::SinglePackets) >= alone);
    assert!(packets(Offload::Gso) < alone);
}

fn an_interface_name_is_unique() {
    let ([a, b], _) = cable(Offload::Gso);
    let error = veth::join([&a, &b], "cable", Offload::Gso).unwrap_err().to_string();
    assert_eq!(error, "making the veth pair cable: File exists (os error 17)");
}

fn tpa_adapts_to_a_small_path_mtu() {
    // The kernel fragments single datagrams, but rejects GSO groups of them.
    for trains in [Offload::Gso, Offload::SinglePackets] {
        let (hosts, address) = cable(trains);
        for host in &hosts {
            host.run(|| Interface::named("cable").unwrap().set_mtu(1300).unwrap()).unwrap();
        }
        let [a, b] = hosts;
        let listener = b.run(|| TpaListener::bind((address, 5000), &tpa::config(12)).unwrap()).unwrap();
        let mut near = a.run(|| TpaStream::connect((address, 5000), &tpa::config(12)).unwrap()).unwrap();
        let mut far = listener.accept().unwrap().0;
        let data: Vec<_> = (0..200_000u32).map(|n| (n / 7) as u8).collect();
        near.write_all(&data).unwrap();
        near.shutdown(Shutdown::Write).unwrap();
        let mut got = Vec::new();
        far.read_to_end(&mut got).unwrap();
        assert!(got == data);
        assert_eq!(near.host().stats().send_failures, 0, "{trains:?}");
    }
}
