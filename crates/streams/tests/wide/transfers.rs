//! Delivery of written data.

use crate::tpa::relay::Relay;
use crate::wide::*;
use hopline_streams::wide::{AsyncListener, AsyncStream};
use std::io::ErrorKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[test]
fn megabytes_go_there_and_back_byte_exact() {
    let (client, server) = pair();
    let data = pattern(1, 10_000_000);
    let back = thread::scope(|scope| {
        scope.spawn(|| echo(&server));
        through_echo(&client, &data)
    });
    assert!(back == data, "{} bytes of {}", back.len(), data.len());
    let info = client.info();
    assert_eq!((info.stats.bytes_acked, info.stats.bytes_received), (10_000_000, 10_000_000));
    assert!(info.srtt.is_some() && info.rate.is_some());
}

#[test]
fn so_they_do_over_ipv6() {
    let listener = WideListener::bind("[::1]:0", &quick()).unwrap();
    let client = WideStream::connect(listener.local_addr().unwrap(), &quick()).unwrap();
    let (server, _) = listener.accept().unwrap();
    let data = pattern(2, 300_000);
    let back = thread::scope(|scope| {
        scope.spawn(|| echo(&server));
        through_echo(&client, &data)
    });
    assert!(back == data);
    assert_eq!(client.info().mss, 1417);
}

#[test]
fn who_has_ended_its_stream_still_reads() {
    let (mut client, mut server) = pair();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(server.read(&mut [0; 9]).unwrap(), 0);
    let data = pattern(3, 200_000);
    thread::scope(|scope| {
        scope.spawn(|| {
            server.write_all(&data).unwrap();
            server.shutdown(Shutdown::Write).unwrap();
        });
        let mut got = Vec::new();
        client.read_to_end(&mut got).unwrap();
        assert!(got == data);
    });
    assert_eq!(client.write(b"more").unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[test]
fn what_was_written_before_the_drop_arrives() {
    let (mut client, mut server) = pair();
    let data = pattern(4, 150_000);
    client.write_all(&data).unwrap();
    drop(client);
    let mut got = Vec::new();
    server.read_to_end(&mut got).unwrap();
    assert!(got == data);
}

#[test]
fn close_returns_when_the_peer_has_everything() {
    let (mut client, mut server) = pair();
    let data = pattern(5, 50_000);
    client.write_all(&data).unwrap();
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut got = Vec::new();
            server.read_to_end(&mut got).map(|_| got).unwrap()
        });
        client.close().unwrap();
        assert!(reader.join().unwrap() == data);
    });
}

#[test]
fn who_writes_more_than_there_is_room_for_goes_on_once_there_is() {
    let (listener, address) = listener();
    let mut small = quick();
    small.transport.send_buffer = Some(10_000);
    small.transport.receive_buffer = 10_000;
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
fn who_does_not_read_stops_who_writes_until_it_reads() {
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
fn two_hundred_connections_at_once_share_a_socket_on_each_side() {
    const CONNECTIONS: usize = 200;
    let [server, client] = [(); 2].map(|()| Host::bind(ANY).unwrap());
    // With so many connections, datagrams are lost. The side that closes first must still exist when the peer retransmits
    // its FIN.
    let mut patient = quick();
    patient.transport.time_wait = Span::from_secs(3);
    let listener = server.listen(&patient, 300).unwrap();
    let address = server.local_addr().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..CONNECTIONS {
                let (stream, _) = listener.accept().unwrap();
                scope.spawn(move || echo(&stream));
            }
        });
        for number in 0..CONNECTIONS {
            let (client, patient) = (&client, &patient);
            scope.spawn(move || {
                let stream = client.connect(address, patient, None).unwrap();
                let data = pattern(number, 20_000 + number);
                assert!(through_echo(&stream, &data) == data, "connection {number}");
            });
        }
    });
    assert_eq!(server.stats().accepted, 200);
    until("all connections are over", || server.stats().connections + client.stats().connections == 0);
}

#[test]
fn a_connection_survives_a_new_address_of_the_peer_whoever_sends() {
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

#[test]
fn asynchronous_streams_echo() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let listener = AsyncListener::bind(ANY, &quick()).unwrap();
        let address = listener.get_ref().local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let (mut reader, mut writer) = tokio::io::split(stream);
            assert_eq!(tokio::io::copy(&mut reader, &mut writer).await.unwrap(), 500_000);
            writer.shutdown().await.unwrap();
        });
        let stream = AsyncStream::connect(address, &quick()).await.unwrap();
        let (mut reader, mut writer) = tokio::io::split(stream);
        let data = pattern(9, 500_000);
        let sent = data.clone();
        let sender = tokio::spawn(async move {
            writer.write_all(&sent).await.unwrap();
            writer.shutdown().await.unwrap();
        });
        let mut back = Vec::new();
        reader.read_to_end(&mut back).await.unwrap();
        assert!(back == data);
        sender.await.unwrap();
        server.await.unwrap();
    });
}
