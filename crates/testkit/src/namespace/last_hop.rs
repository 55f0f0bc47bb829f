//! A sender behind a wired link, a router, and a mobile host behind a wireless one.
//!
//! ```text
//! sender 10.81.0.1 ══ wired ══ far 10.83.0.1 ── cable ── 10.83.0.2 router )) wireless (( mobile host
//! ```

use super::host::{address, forward, ip};
use hopline_link::Side;
use hopline_linux::veth::{self, Offload};
use hopline_tools::link::NamespaceLink;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpStream};
use std::thread;
use std::time::Instant;

/// Address of the sender: host A of the wired link.
pub const SENDER: Ipv4Addr = Ipv4Addr::new(10, 81, 0, 1);
/// Name of the interfaces of both links.
pub const LINK: &str = "link0";

/// Addresses of the cable between the far end of the wired link and the router.
const FAR: Ipv4Addr = Ipv4Addr::new(10, 83, 0, 1);
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 83, 0, 2);
const CABLE: &str = "cable";

/// Joins two links into one path: host B of the wired link and host A of the wireless link forward packets. `networks`:
/// networks behind the router other than that of the wireless link.
///
/// # Panics
/// If the system rejects a command.
pub fn join(wired: &NamespaceLink, wireless: &NamespaceLink, networks: &[&str]) {
    let (far, router) = (wired.host(Side::B), wireless.host(Side::A));
    // Both links have the same addresses at first.
    wired.run_in_a(|| address(LINK, SENDER, 24));
    wired.run_in_b(|| address(LINK, Ipv4Addr::new(10, 81, 0, 2), 24));
    veth::join([far, router], CABLE, Offload::SinglePackets).expect("neither host has a cable");
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

/// IPv6 address of the sender, after [`add_ipv6`].
pub const SENDER_V6: Ipv6Addr = Ipv6Addr::new(0xfd81, 0, 0, 0, 0, 0, 0, 1);
/// IPv6 address of the mobile host: host B of the wireless link.
pub const MOBILE_V6: Ipv6Addr = Ipv6Addr::new(0xfd80, 0, 0, 0, 0, 0, 0, 2);

/// Adds IPv6 addresses and routes to two joined links.
///
/// # Panics
/// If the system rejects a command.
pub fn add_ipv6(wired: &NamespaceLink, wireless: &NamespaceLink) {
    let (far, router) = (wired.host(Side::B), wireless.host(Side::A));
    // Both links have the same addresses at first.
    for (host, before, own) in [(wired.host(Side::A), 1, "fd81::1"), (far, 2, "fd81::2")] {
        ip(host, &format!("-6 addr del fd80::{before}/64 dev {LINK}"));
        ip(host, &format!("-6 addr add {own}/64 dev {LINK} nodad"));
    }
    // A router solicits its neighbours from a link-local address. The kernel's own takes two seconds to become valid (RFC
    // 4862 §5.4).
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

/// Sends `bytes` bytes over a connection and compares the result. `meanwhile` is called with the number received so far.
///
/// # Panics
/// If the bytes that arrive differ, or are not complete.
pub fn transfer_data(
    [mut sender, mut receiver]: [TcpStream; 2],
    bytes: usize,
    mut meanwhile: impl FnMut(usize),
) {
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

/// Returns the number of bytes that arrive over a connection until this time, from a sender without limit. The receiver
/// times out often.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "goodput is measured in real time")]
pub fn received_until([mut sender, mut receiver]: [TcpStream; 2], until: Instant) -> usize {
    thread::scope(|scope| {
        // The thread ends when the receiver is closed.
        scope.spawn(move || while sender.write_all(&[7; 65_536]).is_ok() {});
        let (mut buffer, mut received) = (vec![0; 65_536], 0);
        while Instant::now() < until {
            // No data within the time limit of the read: more may follow.
            received += receiver.read(&mut buffer).unwrap_or(0);
        }
        drop(receiver);
        received
    })
}
