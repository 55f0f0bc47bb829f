//! Threads and descriptors of dropped streams and listeners, of either transport. Each test is alone in its process, which
//! it looks at from outside.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

use hopline_core::Duration as Span;
use hopline_harness::Test;
use hopline_streams::tpa::{self, Tpa};
use hopline_streams::wide::{self, Credentials, PreSharedKey, Wide};
use hopline_streams::{Listener, Protocol, Stream};
use std::fs;
use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

/// The process is its own, so that nothing else in it is counted.
pub(crate) fn tests() -> Vec<Test> {
    hopline_harness::tests!([]; tpa_leaves_neither_threads_nor_descriptors, wide_leaves_neither_threads_nor_descriptors)
        .map(|test| test.in_own_process(&[]))
        .into()
}

fn threads_and_descriptors() -> (usize, usize) {
    let count = |path| fs::read_dir(path).expect("Linux has it").count();
    (count("/proc/self/task"), count("/proc/self/fd"))
}

fn tpa_leaves_neither_threads_nor_descriptors() {
    leaves_nothing::<Tpa>(&tpa::config(3).with_time_wait(Span::from_millis(20)));
}

fn wide_leaves_neither_threads_nor_descriptors() {
    let mut config = wide::config(Credentials::Shared(PreSharedKey::new([7; 32])));
    let transport = config.transport().with_time_wait(Span::from_millis(20));
    config = config.with_transport(transport);
    leaves_nothing::<Wide>(&config);
}

fn leaves_nothing<P: Protocol>(config: &P::Config) {
    let before = threads_and_descriptors();
    for _ in 0..5 {
        let listener = Listener::<P>::bind("127.0.0.1:0", config).unwrap();
        let address = listener.local_addr().unwrap();
        let mut clients: Vec<_> = (0..10).map(|_| Stream::<P>::connect(address, config).unwrap()).collect();
        let during = threads_and_descriptors();
        assert!(during.0 >= before.0 + 11 && during.1 >= before.1 + 33, "{before:?}, {during:?}");
        for client in &mut clients {
            let (mut server, _) = listener.accept().unwrap();
            client.write_all(b"hello").unwrap();
            client.flush().unwrap();
            server.read_exact(&mut [0; 5]).unwrap();
        }
    }
    for _ in 0..1000 {
        if threads_and_descriptors() == before {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(threads_and_descriptors(), before);
}
