//! Making and dropping links leaves no descriptor, thread or namespace behind. Alone in its process, so that it can count.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

use hopline_harness::Test;
use hopline_testkit::Emulation;
use hopline_testkit::namespace::{LINK, NamespaceLink};
use std::fs;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// The process is its own, so that only the link is counted.
pub(crate) fn tests() -> Vec<Test> {
    hopline_harness::tests!([LINK]; a_link_leaves_no_descriptor_thread_or_namespace)
        .map(|test| test.in_own_process(&[]))
        .into()
}

fn a_link_leaves_no_descriptor_thread_or_namespace() {
    let home = own_namespace();
    let before = traces();
    for seed in 0..10 {
        let link = NamespaceLink::new(
            Emulation::delay(hopline_core::Duration::from_millis(5)),
            Emulation::default(),
            seed,
        )
        .unwrap();
        assert!(traces().0 > before.0, "this test cannot see what a link is made of");
        let a = link.run_in_a(|| UdpSocket::bind((link.address_a(), 0)).unwrap());
        let b = link.run_in_b(|| UdpSocket::bind((link.address_b(), 9)).unwrap());
        a.send_to(b"hello", b.local_addr().unwrap()).unwrap();
        assert_eq!(b.recv(&mut [0; 9]).unwrap(), 5);
        // Packets in flight disappear with the link.
        a.send_to(b"never", b.local_addr().unwrap()).unwrap();
    }
    // A thread that has been joined is listed for a moment longer.
    let gone = (0..1000).any(|_| {
        thread::sleep(Duration::from_millis(1));
        let (descriptors, threads) = traces();
        descriptors <= before.0 && threads <= before.1
    });
    assert!(gone, "{before:?} before, {:?} after", traces());
    assert_eq!(own_namespace(), home);
}

/// Returns the numbers of open descriptors and threads of this process. A namespace exists while one of them is in it.
fn traces() -> (usize, usize) {
    let entries = |path: &str| fs::read_dir(path).unwrap().count();
    (entries("/proc/self/fd"), entries("/proc/self/task"))
}

/// Returns the network namespace of this thread.
fn own_namespace() -> PathBuf {
    fs::read_link("/proc/thread-self/ns/net").unwrap()
}
