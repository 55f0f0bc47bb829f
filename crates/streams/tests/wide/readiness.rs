//! Readiness of many streams.

use crate::wide::*;
use hopline_streams::Interest;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::task::{Context, Wake, Waker};

/// Waker that counts its calls.
#[derive(Default)]
struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Writes until the peer, which does not read, accepts no more. Returns the bytes written.
fn fill(stream: &WideStream) -> usize {
    stream.set_nonblocking(true);
    let (mut written, mut looked, mut refused) = (0, 0, 0);
    while refused < 30 && looked < 3000 {
        match { stream }.write(&[7; 1 << 16]) {
            Ok(len) => (written, refused) = (written + len, 0),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                refused += 1;
                thread::sleep(Duration::from_millis(10));
            }
        }
        looked += 1;
    }
    written
}

#[test]
fn a_writer_is_woken_once_there_is_room() {
    let (client, mut server) = pair();
    let written = fill(&client);
    let count = Arc::<Count>::default();
    let waker = Waker::from(Arc::clone(&count));
    let look = || client.poll_ready(Interest::Write, &Context::from_waker(&waker));
    assert!(!look().writable);
    server.read_exact(&mut vec![0; written]).unwrap();
    until("there is room", || look().writable);
    assert!(count.0.load(SeqCst) > 0);
}

#[test]
fn room_is_a_separate_edge_while_data_are_readable() {
    let (client, mut server) = pair();
    let edges = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
    epoll::add(&edges, &client, epoll::EventData::new_u64(0), flags).unwrap();
    let edge = || {
        let mut events = Vec::with_capacity(1);
        epoll::wait(&edges, spare_capacity(&mut events), Some(&Timespec::default())).unwrap() == 1
    };
    server.write_all(b"x").unwrap();
    until("it arrived", &edge);
    let written = fill(&client);
    while edge() {}
    server.read_exact(&mut vec![0; written]).unwrap();
    until("there is room", &edge);
    assert!({ &client }.write(b"x").is_ok());
}

#[test]
fn a_closed_connection_is_readable_and_writable() {
    let (client, server) = pair();
    let look = || client.poll_ready(Interest::Both, &Context::from_waker(Waker::noop()));
    assert_eq!((look().readable, look().writable, look().over), (false, true, false));
    server.abort();
    until("it is told", || look().over);
    assert_eq!((look().readable, look().writable), (true, true));
}
