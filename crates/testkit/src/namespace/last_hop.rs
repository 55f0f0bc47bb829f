//! A sender behind a wired link, a router, and a mobile host behind a wireless one.
//!
//! ```text
//! sender 10.81.0.1 ══ wired ══ far 10.83.0.1 ── cable ── 10.83.0.2 router )) wireless (( mobile host
//! ```

use super::host::{address, forward, ip};
use hopline_link::Side;
use hopline_net::link::NamespaceLink;
use hopline_net::veth::{self, Trains};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpStream};
use std::thread;
use std::time::Instant;

/// The sender: host A of the wired link.
pub const SENDER: Ipv4Addr = Ipv4Addr::new(10, 81, 0, 1);
/// What both links call their interfaces.
pub const LINK: &str = "link0";

/// Where the wired link ends, and the router's end of the cable from there.
const FAR: Ipv4Addr = Ipv4Addr::new(10, 83, 0, 1);
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 83, 0, 2);
const CABLE: &str = "cable";

/// Joins two links that carry packets for whoever is beyond: host B of the wired one and host A of the wireless one forward. `networks`:
/// those behind the router beside that of the wireless link.
///
/// # Panics
/// If the system does not do what is asked.
pub fn join(wired: &NamespaceLink, wireless: &NamespaceLink, networks: &[&str]) {
    let (far, router) = (wired.host(Side::B), wireless.host(Side::A));
    // Both links have the same addresses at first.
    wired.run_in_a(|| address(LINK, SENDER, 24));
    wired.run_in_b(|| address(LINK, Ipv4Addr::new(10, 81, 0, 2), 24));
    veth::join([far, router], CABLE, Trains::Never).expect("neither host has a cable");
    far.run(|| address(CABLE, FAR, 24)).expect("a thread for the host");
    router.run(|| address(CABLE, ROUTER, 24)).expect("a thread for the host");
    for network in ["10.80.0.0/24"].iter().chain(networks) {
        ip(far, &format!("route add {network} via {ROUTER}"));
    }
    ip(router, &format!("route add 10.81.0.0/24 via {FAR}"));
    for host in [wired.host(Side::A), wireless.host(Side::B)] {
        ip(host, &format!("route add default dev {LINK}"));
    }
    [far, router].into_iter().for_each(forward);
}

/// The sender in IPv6, once [`speak_ipv6`] was called.
pub const SENDER_V6: Ipv6Addr = Ipv6Addr::new(0xfd81, 0, 0, 0, 0, 0, 0, 1);
/// The mobile host in IPv6: host B of the wireless link.
pub const MOBILE_V6: Ipv6Addr = Ipv6Addr::new(0xfd80, 0, 0, 0, 0, 0, 0, 2);

/// Gives two joined links IPv6 addresses and routes too.
///
/// # Panics
/// If the system does not do what is asked.
pub fn speak_ipv6(wired: &NamespaceLink, wireless: &NamespaceLink) {
    let (far, router) = (wired.host(Side::B), wireless.host(Side::A));
    // Both links have the same addresses at first.
    for (host, before, own) in [(wired.host(Side::A), 1, "fd81::1"), (far, 2, "fd81::2")] {
        ip(host, &format!("-6 addr del fd80::{before}/64 dev {LINK}"));
        ip(host, &format!("-6 addr add {own}/64 dev {LINK} nodad"));
    }
    // A router looks for its neighbours from a link-local address, and the kernel's own needs two seconds to be one (RFC 4862 §5.4).
    for (host, number) in [(far, 1), (router, 2)] {
        for network in ["fe80", "fd83"] {
            ip(host, &format!("-6 addr add {network}::{number}/64 dev {CABLE} nodad"));
        }
    }
    ip(far, "-6 route add fd80::/64 via fd83::2");
    ip(router, "-6 route add fd81::/64 via fd83::1");
    for host in [wired.host(Side::A), wireless.host(Side::B)] {
        ip(host, &format!("-6 route add default dev {LINK}"));
    }
    for host in [far, router] {
        let written = host.run(|| fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1"));
        written.expect("a thread for the host").expect("this process may set it");
    }
}

/// Sends so many bytes over a connection and compares what arrives; `meanwhile` is told how many have.
///
/// # Panics
/// If others arrive, or not all.
pub fn carry([mut sender, mut receiver]: [TcpStream; 2], bytes: usize, mut meanwhile: impl FnMut(usize)) {
    let content: Vec<u8> = (0..bytes).map(|i| (i * i / 251) as u8).collect();
    let sent = blake3::hash(&content);
    thread::scope(|scope| {
        scope.spawn(move || sender.write_all(&content).expect("the receiver takes it"));
        let (mut hasher, mut buffer, mut arrived) = (blake3::Hasher::new(), vec![0; 65_536], 0);
        loop {
            match receiver.read(&mut buffer).expect("it comes in time") {
                0 => break,
                len => {
                    hasher.update(&buffer[..len]);
                    arrived += len;
                    meanwhile(arrived);
                }
            }
        }
        assert_eq!((arrived, hasher.finalize()), (bytes, sent));
    });
}

/// Bytes that arrive over a connection until then, of as many as its sender can send. The receiver times out often.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "goodput is measured in real time")]
pub fn received_until([mut sender, mut receiver]: [TcpStream; 2], until: Instant) -> usize {
    thread::scope(|scope| {
        // It ends when the receiver is gone.
        scope.spawn(move || while sender.write_all(&[7; 65_536]).is_ok() {});
        let (mut buffer, mut received) = (vec![0; 65_536], 0);
        while Instant::now() < until {
            // Nothing came for a while: there may come more.
            received += receiver.read(&mut buffer).unwrap_or(0);
        }
        drop(receiver);
        received
    })
}
