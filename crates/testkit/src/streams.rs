//! Shared code of tests of streams, for any protocol.

use hopline_streams::{Protocol, Stream};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::Duration;

/// Number of times that [`until`] checks, 5 ms apart.
const MAX_CHECKS: u32 = 6000;

/// Returns bytes that depend on their position and on the stream.
#[must_use]
pub fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| ((i * 31 + i / 251) ^ seed.wrapping_mul(97)) as u8).collect()
}

/// Echoes all data, to the end of the stream.
pub fn echo<P: Protocol>(mut stream: &Stream<P>) {
    let mut buffer = vec![0; 10_000];
    loop {
        let len = stream.read(&mut buffer).expect("the peer goes on or ends");
        if len == 0 {
            break;
        }
        stream.write_all(&buffer[..len]).expect("the peer reads");
    }
    stream.shutdown(Shutdown::Write).expect("it is open");
}

/// Writes `data`, ends the stream, and returns the echoed data.
pub fn through_echo<P: Protocol>(stream: &Stream<P>, data: &[u8]) -> Vec<u8> {
    thread::scope(|scope| {
        scope.spawn(|| {
            { stream }.write_all(data).expect("the peer reads");
            stream.shutdown(Shutdown::Write).expect("it is open");
        });
        let mut back = Vec::new();
        { stream }.read_to_end(&mut back).expect("the peer sends it back");
        back
    })
}

/// Waits until `holds` returns `true`, half a minute at most.
///
/// # Panics
/// If it never does.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..MAX_CHECKS {
        if holds() {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("not within half a minute: {what}");
}
