//! Memory of connections. It runs alone in its process, so that memory can be measured.

#![allow(clippy::unwrap_used, reason = "helpers of tests, though without `#[test]`")]
#![allow(clippy::print_stdout, reason = "it tells what it measures")]

use hopline_harness::Test;
use hopline_streams::tpa::{Host, TpaListener, TpaStream, config};
use std::fs;
use std::io::{ErrorKind, Write};
use std::net::Ipv4Addr;
use std::thread;
use std::time::Duration;

/// Runs in a process of its own, so that nothing else is counted.
pub(crate) fn tests() -> Vec<Test> {
    hopline_harness::tests!([]; an_idle_connection_takes_a_few_kilobytes_and_a_full_one_its_buffers)
        .map(|test| test.in_own_process(&[]))
        .into()
}

const CONNECTIONS: usize = 200;
const KIB: u64 = 1024;

/// Returns the resident memory of this process, in bytes.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * KIB
}

/// Returns both ends of a connection.
fn connect(client: &Host, listener: &TpaListener) -> (TpaStream, TpaStream) {
    let near = client.connect(listener.local_addr().unwrap(), &config(12), None).unwrap();
    (near, listener.accept().unwrap().0)
}

/// Writes until there is no room. Returns the bytes written.
fn fill(mut stream: &TpaStream) -> u64 {
    stream.set_nonblocking(true);
    let mut written = 0;
    loop {
        match stream.write(&[7; 1 << 14]) {
            Ok(len) => written += len as u64,
            Err(e) if e.kind() == ErrorKind::WouldBlock => return written,
            Err(e) => panic!("{e}"),
        }
    }
}

fn an_idle_connection_takes_a_few_kilobytes_and_a_full_one_its_buffers() {
    let server = Host::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let listener = server.listen(&config(12), CONNECTIONS).unwrap();
    let client = Host::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    // Allocations that occur only once.
    let first: Vec<_> = (0..8).map(|_| connect(&client, &listener)).collect();
    let before = resident();

    let pairs: Vec<_> = (0..CONNECTIONS).map(|_| connect(&client, &listener)).collect();
    let ends = 2 * CONNECTIONS as u64;
    let idle = resident().saturating_sub(before) / ends;

    let mut written = 0;
    // Data that have reached the readers' buffers leave room for more.
    for _ in 0..3 {
        written += pairs.iter().map(|(near, _)| fill(near)).sum::<u64>() / CONNECTIONS as u64;
        thread::sleep(Duration::from_millis(200));
    }
    let full = resident().saturating_sub(before) / CONNECTIONS as u64;
    println!(
        "idle: {idle} bytes an end; with {written} bytes written and none read: {full} bytes for both ends"
    );
    assert!((KIB..16 * KIB).contains(&idle), "{idle}");
    // A send buffer, a receive buffer and a segment, and a quarter more for the overhead of the allocator.
    assert!(full < (256 + 64 + 2) * KIB * 5 / 4 + 2 * idle, "{full}");
    drop(first);
}
