//! TPA over UDP, in real time, over paths that treat datagrams in ways that emulated loss does not.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

use hopline_core::Duration as Span;
use hopline_harness::{Need, Test};
use hopline_streams::tpa::{TpaListener, TpaStream, config};
use hopline_testkit::Emulation;
use hopline_testkit::namespace::{LINK, NamespaceLink, Setup};
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, set_ip_mtu_discover};
use std::fs;
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

pub(crate) fn tests() -> Vec<Test> {
    let tests = [
        ("what_must_not_be_cut_vanishes_and_what_may_arrives", cut_or_vanished as fn()),
        ("a_router_with_a_small_mtu_that_says_nothing_is_found_out", small_mtu),
        ("a_small_mtu_and_losses_together_end_nothing", small_mtu_and_losses),
    ];
    let translating = Test::new(
        "where_the_host_translates_its_own_addresses_segments_leave_one_by_one",
        [LINK, Need::Program("iptables")],
        translated,
    );
    let deleted = Test::new("a_link_whose_interface_is_deleted_stands_still", [LINK], deleted);
    // The only link of its process.
    let alone = [translating, deleted.in_own_process(&[])];
    tests.map(|(name, body)| Test::new(name, [LINK], body)).into_iter().chain(alone).collect()
}

/// Sends from A to B, and returns the state of the sender's end.
fn transfer(link: &NamespaceLink, bytes: usize) -> hopline_streams::tpa::Info {
    let listener = link.run_in_b(|| TpaListener::bind((link.address_b(), 7172), &config(12)).unwrap());
    let mut near = link.run_in_a(|| TpaStream::connect((link.address_b(), 7172), &config(12)).unwrap());
    let (mut far, _) = listener.accept().unwrap();
    thread::scope(|scope| {
        let reading = scope.spawn(move || {
            let mut got = vec![0; bytes];
            far.read_exact(&mut got).unwrap();
            got
        });
        let data: Vec<u8> = (0..bytes).map(|i| (i * 31 % 251) as u8).collect();
        near.write_all(&data).unwrap();
        near.flush().unwrap();
        assert!(reading.join().unwrap() == data);
    });
    near.info()
}

fn narrow(loss: f64) -> NamespaceLink {
    let way = || Emulation::delay(Span::from_millis(5)).with_rate(Some(20_000_000)).with_loss(loss);
    NamespaceLink::with(Setup { path_mtu: Some(1400), ..Setup::new(way(), way(), 1) }).unwrap()
}

fn cut_or_vanished() {
    let link = narrow(0.0);
    let far = link.run_in_b(|| UdpSocket::bind((link.address_b(), 9)).unwrap());
    far.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let near = link.run_in_a(|| UdpSocket::bind((link.address_a(), 0)).unwrap());
    near.connect((link.address_b(), 9)).unwrap();
    let mut buffer = [0; 2000];
    for (fragments, len, arrives) in [
        (Ipv4PathMtuDiscovery::PROBE, 1373, false),
        (Ipv4PathMtuDiscovery::PROBE, 1372, true),
        (Ipv4PathMtuDiscovery::DONT, 1373, true),
        (Ipv4PathMtuDiscovery::DONT, 1472, true),
    ] {
        set_ip_mtu_discover(&near, fragments).unwrap();
        near.send(&vec![7; len]).unwrap();
        assert_eq!(far.recv(&mut buffer).is_ok_and(|got| got == len), arrives, "{len} bytes");
    }
    assert_eq!(link.stats().all_drops().too_long, 1);
}

fn small_mtu() {
    let link = narrow(0.0);
    // Ten seconds, in which path MTU discovery ends.
    let info = transfer(&link, 20_000_000);
    assert!((1300..=1348).contains(&info.mss), "{} bytes in a segment", info.mss);
    // Three lengths that do not pass, each three times.
    assert!((3..=12).contains(&link.stats().all_drops().too_long), "{:?}", link.stats());
}

fn small_mtu_and_losses() {
    let info = transfer(&narrow(0.02), 1_000_000);
    assert!(info.mss <= 1348, "{}", info.mss);
}

fn translated() {
    let way = || Emulation::delay(Span::from_millis(5));
    let link = NamespaceLink::new(way(), way(), 1).unwrap();
    let source = format!("{}:20000-30000", link.address_a());
    let rule = ["-t", "nat", "-A", "POSTROUTING", "-p", "udp", "-j", "SNAT", "--to-source", &source];
    let translated = link.run_in_a(|| Command::new("iptables").args(rule).output());
    assert!(translated.is_ok_and(|done| done.status.success()), "iptables cannot translate here");
    // At most three GSO bursts of eleven segments, if the kernel breaks them; if each burst were lost, it would be some 600.
    let info = transfer(&link, 1_000_000);
    assert!(info.stats.timeouts <= 40, "{info:?}");
}

fn deleted() {
    let link = NamespaceLink::with(Setup::new(Emulation::default(), Emulation::default(), 1)).unwrap();
    link.run_in_a(|| {
        assert!(Command::new("ip").args(["link", "delete", "link0"]).status().unwrap().success());
    });
    let watched = Duration::from_millis(300);
    let before = used_by_link();
    thread::sleep(watched);
    assert!(used_by_link() - before < watched / 10);
    // The link can still be ended.
    drop(link);
}

/// Returns the processor time of the link's thread.
fn used_by_link() -> Duration {
    let of_link = |task: &Path| fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "link");
    let task = fs::read_dir("/proc/self/task")
        .unwrap()
        .map(|task| task.unwrap().path())
        .find(|task| of_link(task))
        .expect("the link has a thread");
    let used = fs::read_to_string(task.join("schedstat")).unwrap();
    Duration::from_nanos(used.split(' ').next().unwrap().parse().unwrap())
}
