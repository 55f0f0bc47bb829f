//! Connections that are begun and not waited for, and waiting for many streams at once.

use crate::streams::ANY;
use crate::streams::toy::Toy;
use hopline_streams::{Host, Interest, Listener, Stream};
use hopline_testkit::streams::until;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::task::{Context, Wake, Waker};
use std::thread;

/// Counts how often it is woken.
#[derive(Default)]
struct CountingWaker(AtomicU32);

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn is_readable(stream: &Stream<Toy>) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&now)).unwrap() == 1
}

fn pair() -> (Stream<Toy>, Stream<Toy>) {
    let listener = Listener::<Toy>::bind(ANY, &()).unwrap();
    let client = Stream::connect(listener.local_addr().unwrap(), &()).unwrap();
    (client, listener.accept().unwrap().0)
}

#[test]
fn the_descriptor_is_readable_once_a_started_connection_is_open_until_it_is_queried() {
    let host = Host::bind_with(ANY, Toy::default()).unwrap();
    let server = Host::bind_with(ANY, Toy::default()).unwrap();
    // It listens first: a host that does not refuses the connection.
    let listener = server.listen(&(), 1).unwrap();
    let begun = host.begin_connect(server.local_addr().unwrap(), &()).unwrap();
    until("it is open", || is_readable(&begun));
    assert!(begun.is_open().unwrap());
    assert!(!is_readable(&begun), "it was told");
    let _server = listener.accept().unwrap();
    assert!(!is_readable(&begun), "nothing came");
}

#[test]
fn the_descriptor_is_not_readable_after_waiting_for_the_connection() {
    let (client, _server) = pair();
    assert!(!is_readable(&client));
    assert!(client.is_open().unwrap());
}

#[test]
fn the_descriptor_is_readable_once_a_started_connection_has_failed() {
    let silent = std::net::UdpSocket::bind(ANY).unwrap();
    let nobody = silent.local_addr().unwrap();
    let host = Host::bind_with(ANY, Toy::default()).unwrap();
    let begun = host.begin_connect(nobody, &()).unwrap();
    until("it failed", || is_readable(&begun));
    assert_eq!(begun.is_open().unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(begun.await_open(None).unwrap_err().kind(), ErrorKind::TimedOut);
}

#[test]
fn a_waiting_reader_gets_the_end_when_reading_is_shut_down() {
    let (client, _server) = pair();
    thread::scope(|scope| {
        let reader = scope.spawn(|| { &client }.read(&mut [0; 9]));
        // Whether or not it waits by then.
        client.shutdown(Shutdown::Read).unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), 0);
    });
}

#[test]
fn all_observers_are_woken_with_the_possible_operations() {
    let (client, mut server) = pair();
    let counts = [(); 2].map(|()| Arc::<CountingWaker>::default());
    let wakers = counts.clone().map(Waker::from);
    for waker in &wakers {
        let ready = client.poll_ready(Interest::Both, &Context::from_waker(waker));
        assert_eq!((ready.readable, ready.writable, ready.over), (false, true, false));
    }
    server.write_all(b"x").unwrap();
    server.flush().unwrap();
    until("both are woken", || counts.iter().all(|count| count.0.load(SeqCst) > 0));
    let look = || client.poll_ready(Interest::Read, &Context::from_waker(Waker::noop()));
    assert!(look().readable);
    { &client }.read_exact(&mut [0]).unwrap();
    assert!(!look().readable);
    drop(server);
    until("its end came", || look().readable);
}
