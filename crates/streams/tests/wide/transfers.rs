//! Delivery of written data.

use crate::tpa::relay::Relay;
use crate::wide::*;

#[test]
fn packets_over_ipv6_have_room_for_its_header() {
    let listener = WideListener::bind("[::1]:0", &quick()).unwrap();
    let client = WideStream::connect(listener.local_addr().unwrap(), &quick()).unwrap();
    let (server, _) = listener.accept().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| echo(&server));
        through_echo(&client, &pattern(2, 300_000))
    });
    assert_eq!(client.info().mss, 1417);
}

#[test]
fn a_writer_without_room_continues_once_there_is_room() {
    let (listener, address) = listener();
    let small = quick();
    let transport = small.transport().with_send_buffer(Some(10_000)).with_receive_buffer(10_000);
    let small = small.with_transport(transport);
    let client = WideStream::connect(address, &small).unwrap();
    let (server, _) = listener.accept().unwrap();
    let data = pattern(6, 400_000);
    let back = thread::scope(|scope| {
        scope.spawn(|| echo(&server));
        through_echo(&client, &data)
    });
    assert!(back == data);
}

#[test]
fn a_receiver_that_does_not_read_stops_the_sender() {
    let (listener, address) = listener();
    let client = WideStream::connect(address, &quick()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    client.set_nonblocking(true);
    let data = pattern(7, 1 << 16);
    let mut written = 0;
    // Until the send buffer and the initial receive window are full, and no data move any more.
    until("nothing more is taken", || {
        let before = written;
        while let Ok(len) = { &client }.write(&data) {
            written += len;
        }
        thread::sleep(Duration::from_millis(50));
        written == before && written > 4_000_000
    });
    client.shutdown(Shutdown::Write).unwrap();
    let read = std::io::copy(&mut server, &mut std::io::sink()).unwrap();
    assert_eq!(read, written as u64);
}

#[test]
fn a_connection_survives_a_new_address_of_the_peer_in_either_direction() {
    for client_sends in [true, false] {
        let (listener, address) = listener();
        let relay = Relay::to(address);
        let lively = given_up_after(Span::from_secs(20));
        let client = WideStream::connect(relay.address, &lively).unwrap();
        let (server, before) = listener.accept().unwrap();
        let data = pattern(8, 3_000_000);
        let (from, to) = if client_sends { (&client, &server) } else { (&server, &client) };
        thread::scope(|scope| {
            scope.spawn(|| {
                { from }.write_all(&data).unwrap();
                from.shutdown(Shutdown::Write).unwrap();
            });
            let mut got = vec![0; data.len()];
            { to }.read_exact(&mut got[..1_000_000]).unwrap();
            relay.rebind();
            { to }.read_exact(&mut got[1_000_000..]).unwrap();
            assert!(got == data);
        });
        until("the server knows the new address", || server.peer_addr() != before);
        assert_eq!(listener.host().stats().sealed.moved, 1);
    }
}
