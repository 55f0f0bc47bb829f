//! Failures and the errors that report them.

use crate::both::failures::kind;
use crate::tpa::relay::Relay;
use crate::wide::*;
use std::io::ErrorKind::{self, TimedOut};

#[test]
fn without_a_listener_there_is_no_answer() {
    let host = Host::bind(ANY).unwrap();
    let address = host.local_addr().unwrap();
    assert_eq!(kind(impatient().connect(address, &quick(), None)), TimedOut);
}

#[test]
fn with_a_full_accept_queue_a_peer_connects_once_one_is_accepted() {
    let server = Host::bind(ANY).unwrap();
    let listener = server.listen(&quick(), 2).unwrap();
    let address = server.local_addr().unwrap();
    let _waiting = [(); 2].map(|()| WideStream::connect(address, &quick()).unwrap());
    until("both wait", || server.stats().sealed.backlog == 2);
    let third = Host::bind(ANY).unwrap();
    let limit = Some(Duration::from_millis(100));
    assert_eq!(kind(third.connect(address, &quick(), limit)), TimedOut);
    assert_eq!(server.stats().connections, 2);
    let _accepted = listener.accept().unwrap();
    let _third = third.connect(address, &quick(), None).unwrap();
}

#[test]
fn a_restarted_listener_resets_old_connections() {
    let theirs = || quick_with(key(1, Trust::Anyone));
    let (first, second) = (Host::bind(ANY).unwrap(), Host::bind(ANY).unwrap());
    let listener = first.listen(&theirs(), 4).unwrap();
    let address = first.local_addr().unwrap();
    let relay = Relay::to(address);
    let mut client = WideStream::connect(relay.address, &quick_with(knows(2, 1))).unwrap();
    let _server = listener.accept().unwrap();
    // Another port implies another key for stateless resets: its resets are ignored.
    let elsewhere = second.listen(&theirs(), 4).unwrap();
    relay.replace_server(second.local_addr().unwrap());
    client.write_all(b"who are you?").unwrap();
    until("it was told", || second.stats().sealed.resets_sent > 0);
    client.set_read_timeout(Some(Duration::from_millis(100)));
    assert_eq!(kind(client.read(&mut [0; 9])), ErrorKind::WouldBlock);
    drop(elsewhere);
    relay.replace_server(address);
    until("what was written arrives", || client.info().unacknowledged == 0);
}

#[test]
fn a_full_host_reports_it() {
    let config = Wide::host_config().unwrap().with_connections(1);
    let host = Host::bind_with(ANY, Wide::with(config).unwrap()).unwrap();
    let (_listener, address) = listener();
    let _one = host.connect(address, &quick(), None).unwrap();
    assert_eq!(kind(host.connect(address, &quick(), None)), ErrorKind::ResourceBusy);
}
