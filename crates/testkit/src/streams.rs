//! What tests of streams share, whichever protocol carries them.

use hopline_net::streams::{Protocol, Stream};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::Duration;

/// Number of times that [`until`] checks, 5 ms apart.
const LOOKS: u32 = 6000;

/// Bytes that tell where they belong, and of which stream they are.
#[must_use]
pub fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| ((i * 31 + i / 251) ^ seed.wrapping_mul(97)) as u8).collect()
}

/// Sends back what it receives, to the end.
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

/// Writes `data`, ends the stream, and gives what comes back.
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

/// Waits for what must come about sooner or later: half a minute at most.
///
/// # Panics
/// If it never does.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..LOOKS {
        if holds() {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("not within half a minute: {what}");
}
