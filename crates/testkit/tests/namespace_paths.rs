//! TPA over UDP, in real time, over paths that do to datagrams what no emulated loss does.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

use hopline_core::Duration as Span;
use hopline_net::tpa::{TpaListener, TpaStream, config};
use hopline_testkit::Emulation;
use hopline_testkit::namespace::{NamespaceLink, run_tests};
use std::io::{Read, Write};
use std::process::{Command, ExitCode};
use std::thread;

fn main() -> ExitCode {
    run_tests(&[(
        "where_the_host_translates_its_own_addresses_segments_leave_one_by_one",
        where_the_host_translates_its_own_addresses_segments_leave_one_by_one,
    )])
}

/// Sends from A to B, and gives how the sender's end stood.
fn carry(link: &NamespaceLink, bytes: usize) -> hopline_net::tpa::Info {
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

fn where_the_host_translates_its_own_addresses_segments_leave_one_by_one() {
    let way = || Emulation::delay(Span::from_millis(5));
    let link = NamespaceLink::new(way(), way(), 1).unwrap();
    let source = format!("{}:20000-30000", link.address_a());
    let rule = ["-t", "nat", "-A", "POSTROUTING", "-p", "udp", "-j", "SNAT", "--to-source", &source];
    let translated = link.run_in_a(|| Command::new("iptables").args(rule).output());
    assert!(translated.is_ok_and(|done| done.status.success()), "iptables is there");
    let info = carry(&link, 1_000_000);
    println!("{info:?}");
}
