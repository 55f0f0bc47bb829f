//! Blocking calls and readiness.

use crate::tpa::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::ErrorKind::WouldBlock;
use std::os::fd::AsFd;

/// Returns whether the descriptor becomes readable within `millis`.
fn readable(fd: &impl AsFd, millis: i64) -> bool {
    let timeout = Timespec { tv_sec: millis / 1000, tv_nsec: millis % 1000 * 1_000_000 };
    poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&timeout)).unwrap() == 1
}

const SOON: i64 = 20_000;

/// Writes until it would block.
fn fill(mut stream: &TpaStream) -> usize {
    let mut written = 0;
    loop {
        match stream.write(&pattern(0, written + 5000)[written..]) {
            Ok(len) => written += len,
            Err(e) => {
                assert_eq!(e.kind(), WouldBlock);
                return written;
            }
        }
    }
}

#[test]
fn a_peer_that_stops_reading_blocks_only_its_writer() {
    let (server, listener, client) = hosts();
    let connect = || {
        let near = client.connect(server.local_addr().unwrap(), &quick(), None).unwrap();
        (near, listener.accept().unwrap().0)
    };
    let (stuck, mut lazy) = connect();
    stuck.set_write_timeout(Some(Duration::from_millis(300)));
    let written = fill(&stuck);
    // The send buffer, the receive buffer, and a segment on its way to the reader.
    assert!((256 * 1024..=(256 + 64) * 1024 + 1452).contains(&written), "{written}");

    let (other, reader) = connect();
    let data = pattern(8, 300_000);
    let back = thread::scope(|scope| {
        scope.spawn(|| echo(&reader));
        through_echo(&other, &data)
    });
    assert!(back == data);

    stuck.shutdown(Shutdown::Write).unwrap();
    let mut got = Vec::new();
    lazy.read_to_end(&mut got).unwrap();
    assert!(got == pattern(0, written));
}

#[test]
fn a_read_times_out_with_would_block() {
    let (mut client, _server) = pair();
    client.set_read_timeout(Some(Duration::from_millis(30)));
    assert_eq!(client.read(&mut [0; 9]).unwrap_err().kind(), WouldBlock);
}

#[test]
fn the_descriptor_is_readable_while_there_is_something_to_read() {
    let (mut client, mut server) = pair();
    client.set_nonblocking(true);
    assert!(!readable(&client, 0));
    assert_eq!(client.read(&mut [0; 9]).unwrap_err().kind(), WouldBlock);
    server.write_all(b"four").unwrap();
    server.flush().unwrap();
    assert!(readable(&client, SOON));
    assert_eq!(client.read(&mut [0; 3]).unwrap(), 3);
    assert!(readable(&client, 0), "one byte is left");
    assert_eq!(client.read(&mut [0; 3]).unwrap(), 1);
    assert!(!readable(&client, 0));
    server.shutdown(Shutdown::Write).unwrap();
    assert!(readable(&client, SOON), "the end");
    assert_eq!(client.read(&mut [0; 3]).unwrap(), 0);
}

#[test]
fn a_descriptor_requested_late_has_the_current_state() {
    let (mut client, mut server) = pair();
    server.write_all(b"four").unwrap();
    server.flush().unwrap();
    // Once one byte has been read, the rest are available.
    client.read_exact(&mut [0; 1]).unwrap();
    assert!(readable(&client, 0));
    client.read_exact(&mut [0; 3]).unwrap();
    assert!(!readable(&client, 0));
}

#[test]
fn a_send_buffer_of_one_byte_is_sufficient() {
    let (listener, address) = listener();
    let config = quick().with_send_buffer(Some(1)).with_block_fill(Span::from_millis(1));
    let mut client = TpaStream::connect(address, &config).unwrap();
    client.write_all(b"one by one").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut got = String::new();
    listener.accept().unwrap().0.read_to_string(&mut got).unwrap();
    assert_eq!(got, "one by one");
}

#[test]
fn the_descriptor_is_readable_when_there_is_room_to_write_again() {
    let (client, mut server) = pair();
    client.set_nonblocking(true);
    let written = fill(&client);
    assert!(!readable(&client, 100));
    let mut got = vec![0; 200_000];
    server.read_exact(&mut got).unwrap();
    assert!(readable(&client, SOON));
    assert!(fill(&client) > 0);
    assert!(!readable(&client, 0) || written == 0, "tried, and full again");
}

#[test]
fn the_descriptor_of_a_listener_is_readable_while_a_connection_waits() {
    let (listener, address) = listener();
    listener.set_nonblocking(true);
    assert_eq!(listener.accept().unwrap_err().kind(), WouldBlock);
    assert!(!readable(&listener, 0));
    let _client = TpaStream::connect(address, &quick()).unwrap();
    assert!(readable(&listener, SOON));
    let _server = listener.accept().unwrap();
    assert!(!readable(&listener, 0));
}

#[test]
fn data_after_read_shutdown_are_discarded() {
    let (mut client, server) = pair();
    server.shutdown(Shutdown::Read).unwrap();
    client.write_all(&pattern(9, 1_000_000)).unwrap();
    client.close().unwrap();
    assert_eq!({ &server }.read(&mut [0; 9]).unwrap(), 0);
}
